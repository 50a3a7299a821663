//! The row of a discipline: a constant in its own file, and in a registry a value that owns its texts.

use crate::gauge::Gauge;
use crate::law::Gauges;
use crate::param::{Param, Refusal, Text, Values};
use crate::registry::CAPACITY;
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

/// One row: what a person reads about a discipline, and its parameters. It is `Row` where it is a constant, and
/// `Row<Text>` in a registry, which owns what was made while the program runs.
#[derive(Clone, Copy, Debug)]
pub struct Row<T: Storage = &'static str> {
    /// The name in scenarios, as `tc` or the paper has it.
    pub name: T,
    /// Other names it is known by.
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
    /// Parameters that stay what they are while a run goes on: what a state is counted in or how much room it has, and
    /// what only others are computed from. All others may be set, see [`Qdisc::retune`](crate::Qdisc::retune).
    pub fixed: T::List<T>,
    /// What it shows of itself, at most one in each column of the tables.
    pub gauges: T::List<Gauge<T>>,
    /// Whether anything is computed from the link's rate, here or while packets pass, with values that have not been
    /// resolved yet. Where it may be, [`CAPACITY`] is among the parameters.
    pub uses_rate: fn(&Values) -> bool,
    /// Fills in the parameters without a default from the others and the link's rate, and refuses values that are
    /// each in range but do not fit together (thresholds out of order). Doing it again changes nothing.
    pub resolve: fn(&mut Values, Rate) -> Result<(), Refusal>,
}

impl From<Row> for Row<Text> {
    fn from(row: Row) -> Self {
        let Row { name, aliases, doc, source, year, marks, params, fixed, gauges, uses_rate, resolve } = row;
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

    /// Resolves `values` before a link that tells of this rate, or of none: see [`Row::resolve`]. A `capacity` among
    /// them is taken for the link's rate.
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

    /// Refuses `values` in which a parameter that is fixed is not what it was `before`.
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

    /// What it shows as `name`, of all that it shows.
    pub fn reading(&self, name: &str, gauges: &Gauges) -> Option<f64> {
        self.gauges.iter().find(|gauge| gauge.name == name)?.column.of(gauges)
    }

    /// All its names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.aliases.iter().chain([&self.name]).map(AsRef::as_ref)
    }
}
