//! SRED is stabilized RED. It compares each arriving packet with one drawn from a list of recent packets. How often the
//! two are of the same flow tells how many flows there are, without counting them. SRED signals the less the fewer
//! flows there are, so that the queue stays where it is whatever their number. It signals a packet more that was such a
//! hit.
//!
//! Source: Ott, Lakshman and Wong, "SRED: Stabilized RED", INFOCOM 1999.
//!
//! | paper | here |
//! |---|---|
//! | zombie list of `M` flows | `zombies` |
//! | `p`, overwriting a zombie that was no hit | `r` |
//! | `P(t) = (1 - alpha) P(t-1) + alpha Hit(t)`, `alpha = p / M` | `hit_rate` |
//! | `p_sred(q)` | `by_queue` |
//! | `p_zap`, simple and full | `probability` |
//!
//! Deviations. While the list fills there is nothing to compare with, and the hit frequency stays at 0, which stands
//! for very many flows. Zombies have no count and no time stamp: nothing that is signalled depends on them.

use super::{Arrival, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Length, Param, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{FlowKey, Rate, Stream, Time};

const PAPER: &str = "Ott, Lakshman and Wong 1999";

/// With this many flows and more the probability depends on the queue alone.
const MANY: f64 = 256.0;

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen; the buffer B of the paper"),
    registry::ECN,
    Param {
        name: "dialect",
        kind: Kind::Word(&["full", "simple"]),
        default: "full",
        range: Param::ANY,
        doc: "Whether a hit raises the packet's own probability (full SRED) or not (simple SRED).",
        source: PAPER,
    },
    number(
        "probability",
        "0.15",
        (0.0, 1.0),
        "Probability with very many flows and a third of the limit waiting (p_max).",
    ),
    Param {
        name: "zombies",
        kind: Kind::Integer,
        default: "1000",
        range: (1.0, 1e6),
        doc: "Flows in the list of recent packets (M).",
        source: PAPER,
    },
    number("r", "0.25", (1e-9, 1.0), "Probability with which a packet that is no hit takes the zombie's place."),
];

const fn number(name: &'static str, default: &'static str, range: (f64, f64), doc: &'static str) -> Param {
    Param { name, kind: Kind::Number, default, range, doc, source: PAPER }
}

/// The law.
#[derive(Clone, Debug)]
pub struct Sred {
    limit: Length,
    max_p: f64,
    is_full: bool,
    ecn_enabled: bool,
    zombies: Vec<FlowKey>,
    size: usize,
    replace_p: f64,
    /// `P`: about one over the number of flows.
    hit_rate: f64,
    /// The probability that comes with the queue at the last arrival.
    by_queue: f64,
    stream: Stream,
}

impl Sred {
    /// SRED from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let size = values.integer("zombies") as usize;
        Self {
            limit: values.length("limit"),
            max_p: values.number("probability"),
            is_full: values.word("dialect") == "full",
            ecn_enabled: values.flag("ecn"),
            zombies: Vec::with_capacity(size),
            size,
            replace_p: values.number("r"),
            hit_rate: 0.0,
            by_queue: 0.0,
            stream: site.stream,
        }
    }

    /// Compares a packet of `flow` with a zombie. Returns whether it is a hit.
    fn meet(&mut self, flow: FlowKey) -> bool {
        if self.zombies.len() < self.size {
            self.zombies.push(flow);
            return false;
        }
        let zombie = self.stream.below(self.size as u64) as usize;
        let is_hit = self.zombies[zombie] == flow;
        if !is_hit && super::is_drawn(&mut self.stream, self.replace_p) {
            self.zombies[zombie] = flow;
        }
        self.hit_rate += self.replace_p / self.size as f64 * (f64::from(u8::from(is_hit)) - self.hit_rate);
        is_hit
    }

    /// `p_sred`, which rises in steps of the instantaneous queue.
    fn by_queue(&self, backlog: Backlog) -> f64 {
        let full = match self.limit {
            Length::Packets(limit) => f64::from(backlog.packets) / limit,
            Length::Bytes(limit) => backlog.bytes as f64 / limit,
        };
        if full >= 1.0 / 3.0 {
            self.max_p
        } else if full >= 1.0 / 6.0 {
            self.max_p / 4.0
        } else {
            0.0
        }
    }

    /// `p_zap`.
    fn probability(&self, is_hit: bool) -> f64 {
        // No hit rate: very many flows.
        let few = if self.hit_rate * MANY > 1.0 { self.hit_rate * MANY } else { 1.0 };
        let simple = self.by_queue / (few * few);
        if self.is_full && is_hit { simple * (1.0 + 1.0 / self.hit_rate) } else { simple }
    }
}

impl Law for Sred {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        let is_hit = self.meet(arrival.flow);
        self.by_queue = self.by_queue(arrival.backlog);
        let p = self.probability(is_hit);
        if super::is_drawn(&mut self.stream, p) {
            return Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY);
        }
        Verdict::Pass
    }

    fn on_overflow(&mut self, arrival: &Arrival, _now: Time) {
        self.meet(arrival.flow);
    }

    fn gauges(&self) -> Gauges {
        Gauges { probability: Some(self.probability(false)), control: Some(self.hit_rate), tracked_flows: None }
    }

    fn retune(&mut self, values: &Values, rate: Rate, _now: Time) {
        let mut fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        std::mem::swap(&mut fresh.zombies, &mut self.zombies);
        let Self { hit_rate, by_queue, .. } = *self;
        *self = Self { hit_rate, by_queue, ..fresh };
    }
}

impl LawRow for Sred {
    const ROW: Row = Row {
        name: "sred",
        aliases: &[],
        doc: "Signals by the queue and the number of flows, which it estimates by comparing packets at random.",
        source: PAPER,
        year: 1999,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "zombies"],
        gauges: &[
            Gauge::probability("Probability of a packet that is no hit."),
            Gauge::control("hit_rate", "", "Share of packets that hit a zombie: about one over the number of flows."),
        ],
        causes: &[],
        uses_rate: registry::never,
        resolve: registry::as_given,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }

    fn own_bytes(values: &Values) -> usize {
        values.integer("zombies") as usize * size_of::<FlowKey>()
    }
}
