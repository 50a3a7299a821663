//! The row of a discipline says what a person and the program need to know of it. It is a constant in the discipline's
//! file, and a value that owns its texts in a registry.

use crate::cause::OwnCause;
use crate::gauge::{Gauge, Gauges};
use crate::param::{CAPACITY, Param, Refusal, Text, Values};
use base::Rate;

/// Where the texts of a row are, and with them its lists: in the program itself, or in memory that the row owns. The
/// constants of disciplines are of the first form alone, as they build on each other with `..`, which a constant may
/// not do with a type that has a destructor.
pub trait Storage: 'static {
    /// A list that is in the same place.
    type List<X: 'static>;
}

impl Storage for &'static str {
    type List<X: 'static> = &'static [X];
}

impl Storage for Text {
    type List<X: 'static> = Vec<X>;
}

/// One row: what a person reads about a discipline, and its parameters. A constant is a `Row`. A registry has
/// `Row<Text>`, which owns the texts that were made while the program runs.
#[derive(Clone, Copy, Debug)]
pub struct Row<T: Storage = &'static str> {
    /// The name in scenarios, as `tc` or the paper has it.
    pub name: T,
    /// Other names that it is known by.
    pub aliases: T::List<T>,
    /// The idea in one sentence.
    pub doc: T,
    /// Where it was published.
    pub source: T,
    /// Year of publication.
    pub year: u16,
    /// Whether it marks ECN-capable packets when `ecn` is set.
    pub marks: bool,
    /// All its parameters, `limit` and `ecn` among them; `dialect` where there are several.
    pub params: T::List<Param<T>>,
    /// Parameters that cannot change while a run goes on: the units and the sizes of a state, and what only serves to
    /// compute other parameters. All others may be set ([`Qdisc::retune`](crate::Qdisc::retune)).
    pub fixed: T::List<T>,
    /// What it shows of itself, at most one in each column of the tables.
    pub gauges: T::List<Gauge<T>>,
    /// Causes of its own, for which it loses or marks packets.
    pub causes: T::List<OwnCause>,
    /// Whether the discipline computes anything from the link's rate, when it is resolved or while packets pass. The
    /// values have not been resolved yet. If it ever does, [`CAPACITY`] is among the parameters.
    pub uses_rate: fn(&Values) -> bool,
    /// Computes the parameters without a default from the others and the link's rate. Refuses values that are each in
    /// range but do not fit together, such as thresholds out of order. Resolved values resolve to themselves.
    pub resolve: fn(&mut Values, Rate) -> Result<(), Refusal>,
}

impl From<Row> for Row<Text> {
    fn from(row: Row) -> Self {
        let Row { name, aliases, doc, source, year, marks, params, fixed, gauges, causes, uses_rate, resolve } = row;
        Self {
            name: name.into(),
            aliases: owned(aliases),
            doc: doc.into(),
            source: source.into(),
            year,
            marks,
            params: owned(params),
            fixed: owned(fixed),
            gauges: owned(gauges),
            causes: causes.to_vec(),
            uses_rate,
            resolve,
        }
    }
}

fn owned<T: Copy, U: From<T>>(list: &[T]) -> Vec<U> {
    list.iter().copied().map(U::from).collect()
}

impl Row<Text> {
    /// The parameter called `name`.
    pub fn param(&self, name: &str) -> Option<&Param<Text>> {
        self.params.iter().find(|param| param.name == name)
    }

    /// Resolves `values` by [`Row::resolve`], before a link that tells this rate, or none. A `capacity` among them is
    /// taken for the link's rate.
    ///
    /// # Errors
    /// The values do not fit together, or there is no rate to compute from.
    pub fn complete(&self, values: &mut Values, told: Option<Rate>) -> Result<(), Refusal> {
        if told.is_none() && values.find_rate(CAPACITY.name).is_none() && (self.uses_rate)(values) {
            let why = "the rate to compute from, such as 10mbit: the link tells of none (told_rate = \"nothing\")";
            return Err(Refusal::new(CAPACITY.name, why));
        }
        // Where there is none, it is not looked at.
        let link = told.unwrap_or(Rate::from_bps(1));
        (self.resolve)(values, values.rate_at(link))
    }

    /// Refuses `values` in which a fixed parameter differs from the one `before`.
    ///
    /// # Errors
    /// Names the first such parameter.
    pub fn keeps_fixed(&self, before: &Values, values: &Values) -> Result<(), Refusal> {
        match self.fixed.iter().find(|name| before.0.get(*name) != values.0.get(*name)) {
            None => Ok(()),
            Some(name) => {
                let name = name.clone();
                let value = before.0.get(&name).map_or("nothing".to_owned(), ToString::to_string);
                Err(Refusal::new(name, format!("{value} as before: it cannot change while a run goes on")))
            }
        }
    }

    /// The gauge called `name` among `gauges`.
    pub fn reading(&self, name: &str, gauges: &Gauges) -> Option<f64> {
        self.gauges.iter().find(|gauge| gauge.name == name)?.column.of(gauges)
    }

    /// All its names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.aliases.iter().chain([&self.name]).map(AsRef::as_ref)
    }
}
