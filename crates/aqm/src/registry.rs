//! Every discipline there is: one row each. Nothing else names them.

use crate::law;
use crate::packet::Packet;
use crate::param::{Kind, Param, Refusal, Values};
use crate::qdisc::{self, Qdisc};
use crate::redopt;
use base::{Rate, Stream};

/// Writes the table and the constructor from one list.
macro_rules! disciplines {
    ($($discipline:path),* $(,)?) => {
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
            panic!("a discipline is called {name}")
        }
    };
}

disciplines! {
    law::pass::Pfifo,
    law::pass::Bfifo,
    law::red::Red,
    law::ared::Ared,
    law::pi::Pi,
    law::rem::Rem,
    law::codel::Codel,
    qdisc::fq_codel::FqCodel,
    law::pie::Pie,
    law::docsis_pie::DocsisPie,
    qdisc::fq_pie::FqPie,
    law::pi2::Pi2,
    qdisc::dualpi2::Dual,
    law::cobalt::CobaltLaw,
    qdisc::cake::CakeRow,
    law::blue::Blue,
    law::step::Step,
    law::gsp::Gsp,
    law::sfb::Sfb,
    law::dcn::Dcn,
    law::afd::Afd,
    qdisc::sfq::StochasticFairness,
    qdisc::drr::DeficitRoundRobin,
    qdisc::fq::FairQueueing,
    law::rio::Rio,
    law::rio_ps::RioPs,
    law::feng_red::FengRed,
    law::red_pd::RedPd,
    redopt::RedOpt,
    law::fred::Fred,
    law::sred::Sred,
    qdisc::choke::ChooseAndKeep,
}

/// Every discipline, in the order they are shown.
pub fn rows() -> &'static [Row] {
    ROWS
}

/// The discipline of this name or alias.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.is_called(name))
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
    /// Fills in the parameters without a default from the others and the link's rate, and refuses values that are
    /// each in range but do not fit together (thresholds out of order). Doing it again changes nothing.
    pub resolve: fn(&mut Values, Rate) -> Result<(), Refusal>,
}

impl Row {
    /// The parameter called `name`.
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
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
    doc: "Mark ECN-capable packets where others are dropped. No effect on a discipline that never signals.",
    source: "tc-red(8), tc-pie(8): off unless asked for",
};

/// A row's `resolve` that has nothing to do.
pub fn as_given(_values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    Ok(())
}
