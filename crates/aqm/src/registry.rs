//! Every discipline there is: one row each. Nothing else names them.

use crate::law::{self, Law};
use crate::packet::Packet;
use crate::param::{Kind, Param, Refusal, Values};
use crate::qdisc::fifo::Fifo;
use crate::qdisc::{self, Qdisc, fq_law};
use crate::redopt;
use base::{Rate, Stream};
use std::sync::LazyLock;

/// Writes the table and the constructor from one list. A `law` is a discipline in a first-in-first-out queue, and once
/// more under fair queueing; a law `alone` is so in the former only; a `queue` is what its own file makes of it.
macro_rules! disciplines {
    ($($kind:ident $discipline:path),* $(,)?) => {
        static ROWS: &[Row] = &[$(<$discipline as Discipline>::ROW),*];

        /// Builds the discipline called `name` (a name or an alias of a row) before the link `site` describes.
        ///
        /// `values` are admitted by each [`Param`] and resolved by [`Row::resolve`]; anything else, like a name
        /// without a row, is a broken invariant and panics: the scenario refuses it first.
        pub fn build<P: Packet + Send + 'static>(
            name: &str,
            values: &Values,
            site: Site,
        ) -> Box<dyn Qdisc<P> + Send> {
            $(if <$discipline as Discipline>::ROW.is_called(name) {
                return <$discipline as Discipline>::build(values, site);
            })*
            let law = fq_law::law_of(name).unwrap_or_else(|| panic!("a discipline is called {name}"));
            $(disciplines!(@fair $kind $discipline, law, values, site);)*
            panic!("{law} is a law")
        }

        /// Bytes that the discipline called `name` holds before the first packet: its state, times its queues
        /// where each has one. Values are as for [`build`].
        pub fn state_bytes(name: &str, values: &Values) -> usize {
            $(if <$discipline as Discipline>::ROW.is_called(name) {
                return <$discipline as Discipline>::state_bytes(values);
            })*
            let law = fq_law::law_of(name).unwrap_or_else(|| panic!("a discipline is called {name}"));
            $(disciplines!(@state $kind $discipline, law, values);)*
            panic!("{law} is a law")
        }

        static LAWS: &[fn() -> Option<Row>] = &[$(|| disciplines!(@row $kind $discipline)),*];

        static ARE_LAWS: &[bool] = &[$(disciplines!(@is $kind)),*];
    };
    (@fair law $law:path, $name:ident, $values:ident, $site:ident) => {
        if <$law as LawRow>::ROW.name == $name {
            return fq_law::build::<P, $law>($values, $site);
        }
    };
    (@state law $law:path, $name:ident, $values:ident) => {
        if <$law as LawRow>::ROW.name == $name {
            return fq_law::state_bytes::<$law>($values);
        }
    };
    (@state $other:ident $queue:path, $name:ident, $values:ident) => {};
    (@fair $other:ident $queue:path, $name:ident, $values:ident, $site:ident) => {};
    (@row law $law:path) => { Some(<$law as LawRow>::ROW) };
    (@row $other:ident $queue:path) => { None };
    (@is queue) => { false };
    (@is $law:ident) => { true };
}

disciplines! {
    queue law::pass::Pfifo,
    queue law::pass::Bfifo,
    law law::red::Red,
    law law::ared::Ared,
    law law::pi::Pi,
    law law::rem::Rem,
    law law::codel::Codel,
    queue qdisc::fq_codel::FqCodel,
    law law::pie::Pie,
    law law::docsis_pie::DocsisPie,
    queue qdisc::fq_pie::FqPie,
    law law::pi2::Pi2,
    queue qdisc::dualpi2::Dual,
    law law::cobalt::CobaltLaw,
    queue qdisc::cake::CakeRow,
    law law::blue::Blue,
    law law::step::Step,
    law law::gsp::Gsp,
    law law::sfb::Sfb,
    law law::dcn::Dcn,
    law law::afd::Afd,
    queue qdisc::sfq::StochasticFairness,
    queue qdisc::drr::DeficitRoundRobin,
    queue qdisc::fq::FairQueueing,
    law law::rio::Rio,
    law law::rio_ps::RioPs,
    law law::feng_red::FengRed,
    law law::red_pd::RedPd,
    alone redopt::RedOpt,
    law law::fred::Fred,
    law law::sred::Sred,
    queue qdisc::choke::ChooseAndKeep,
}

/// Laws under fair queueing that have no row of their own.
static FAIR: LazyLock<Vec<Row>> = LazyLock::new(|| {
    LAWS.iter().filter_map(|law| Some(fq_law::row(&law()?))).filter(|row| !has_own(row.name)).collect()
});

fn has_own(name: &str) -> bool {
    ROWS.iter().any(|row| row.is_called(name))
}

/// Every discipline, in the order they are shown.
pub fn rows() -> &'static [Row] {
    ROWS
}

/// Whether the discipline of this name or alias is a law in a first-in-first-out queue.
pub fn is_law(name: &str) -> bool {
    ROWS.iter().zip(ARE_LAWS).any(|(row, is_law)| *is_law && row.is_called(name))
}

/// Every law under fair queueing, `fq_` before its name, but for those that are among [`rows`].
pub fn fair_rows() -> &'static [Row] {
    &FAIR
}

/// The discipline of this name or alias, be it one of [`rows`] or of [`fair_rows`].
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.is_called(name)).or_else(|| FAIR.iter().find(|row| row.name == name))
}

/// What a discipline is built with besides its parameters.
#[derive(Clone, Debug)]
pub struct Site {
    /// Rate of the link it stands before.
    pub rate: Rate,
    /// Its random stream.
    pub stream: Stream,
}

/// One row: what a person reads about a discipline, and its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name in scenarios, as `tc` or the paper has it.
    pub name: &'static str,
    /// Other names it is known by.
    pub aliases: &'static [&'static str],
    /// The idea in one sentence.
    pub doc: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Year of publication.
    pub year: u16,
    /// Whether it marks ECN-capable packets when `ecn` is set.
    pub marks: bool,
    /// All its parameters, `limit` and `ecn` among them; `dialect` where there are several.
    pub params: &'static [Param],
    /// Parameters that stay what they are while a run goes on: what a state is counted in or how much room it has, and
    /// what only others are computed from. All others may be set, see [`Qdisc::retune`].
    pub fixed: &'static [&'static str],
    /// Fills in the parameters without a default from the others and the link's rate, and refuses values that are
    /// each in range but do not fit together (thresholds out of order). Doing it again changes nothing.
    pub resolve: fn(&mut Values, Rate) -> Result<(), Refusal>,
}

impl Row {
    /// The parameter called `name`.
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// Refuses `values` in which a parameter that is fixed is not what it was `before`.
    ///
    /// # Errors
    /// Names the first such parameter.
    pub fn keeps_fixed(&self, before: &Values, values: &Values) -> Result<(), Refusal> {
        match self.fixed.iter().find(|name| before.0.get(*name) != values.0.get(*name)) {
            None => Ok(()),
            Some(name) => {
                let value = before.0.get(name).map_or("nothing".to_owned(), ToString::to_string);
                Err(Refusal::new(name, format!("{value} as before: it cannot change while a run goes on")))
            }
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// What a discipline's own file provides: its row, and how it is built.
pub trait Discipline {
    /// Its row.
    const ROW: Row;

    /// Builds it from resolved values.
    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send>;

    /// Bytes that it then holds, before the first packet.
    fn state_bytes(_values: &Values) -> usize {
        SMALL_STATE
    }
}

/// Bytes, at most, of a discipline whose state no parameter makes larger.
pub const SMALL_STATE: usize = 16 << 10;

/// What a law's own file provides: its row, and how one is made.
pub trait LawRow: Law + Send + Sized + 'static {
    /// Its row.
    const ROW: Row;

    /// Makes one from resolved values.
    fn made(values: &Values, site: Site) -> Self;

    /// Bytes that it then holds beside itself, before the first packet.
    fn own_bytes(_values: &Values) -> usize {
        0
    }
}

/// A law alone is a discipline: in a first-in-first-out queue.
impl<L: LawRow> Discipline for L {
    const ROW: Row = L::ROW;

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(Fifo::around(L::made(values, site), values))
    }

    fn state_bytes(values: &Values) -> usize {
        SMALL_STATE + size_of::<L>() + L::own_bytes(values)
    }
}

/// The `limit` every discipline has.
pub const fn limit(default: &'static str, source: &'static str) -> Param {
    Param {
        name: "limit",
        kind: Kind::Length,
        default,
        // What counters of packets and exact floats of bytes hold.
        range: (0.0, 4e9),
        doc: "How much may wait, in packets or bytes; what arrives beyond is lost. The packet in transmission is \
              not counted.",
        source,
    }
}

/// The `ecn` every discipline has.
pub const ECN: Param = Param {
    name: "ecn",
    kind: Kind::Flag,
    default: "false",
    range: Param::ANY,
    doc: "Mark ECN-capable packets where others are dropped. Refused on a discipline that never marks.",
    source: "tc-red(8), tc-pie(8): off unless asked for",
};

/// The `dialect` of a discipline of which there is one form, wherever it is, called by its source.
pub const fn only(form: &'static [&'static str; 1], source: &'static str) -> Param {
    Param {
        name: "dialect",
        kind: Kind::Word(form),
        default: form[0],
        range: Param::ANY,
        doc: "Whose form: there is one.",
        source,
    }
}

/// A row's `resolve` that has nothing to do.
pub fn as_given(_values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    Ok(())
}
