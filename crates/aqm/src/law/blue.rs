//! BLUE decides without the length of the queue. It signals packets with one probability, which rises by a step when
//! the queue overflows, falls by a smaller step while the link is idle, and rests for a while after each step. Losses
//! and idle time say directly that too little or too much is signalled.
//!
//! Source: Feng, Kandlur, Saha and Shin, "BLUE: A New Class of Active Queue Management Algorithms", U. Michigan
//! CSE-TR-387-99, 1999 ("the report"); "The BLUE Active Queue Management Algorithms", IEEE/ACM ToN 10(4), 2002.
//!
//! | report | here |
//! |---|---|
//! | `p_m` | `probability` |
//! | `d1`, `d2` | `increment`, `decrement` (the names of tc-sfb(8)) |
//! | `freeze_time` | `freeze` |
//! | `L` in "packet loss or `Q_len` > `L`" | `threshold` |
//! | `last_update` | `stepped` |
//!
//! Deviations. "Link idle" is an event in the report; while the link stays idle it is taken to recur as soon as
//! `freeze` allows, one step after the other, which the first packet afterwards finds done. A step may follow the one
//! before after exactly `freeze` (the report: after more). Nothing was stepped before the first event (the ns-3 port
//! counts from time 0 and so ignores overflows in the first `freeze`).

use super::threshold::Threshold;
use super::{Arrival, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::param::{Kind, Param, Refusal, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Span, Stream, Time};

const REPORT: &str = "Feng, Kandlur, Saha and Shin 1999";

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen; the report's experiments have 100 kB to 1 MB"),
    registry::ECN,
    registry::only(&["paper"], REPORT),
    Param {
        name: "increment",
        kind: Kind::Number,
        default: "0.0025",
        range: (0.0, 1.0),
        doc: "How much the probability rises at a time (d1).",
        source: "Feng et al. 1999, one of the report's two sets; the other has 0.02",
    },
    Param {
        name: "decrement",
        kind: Kind::Number,
        default: "0.00025",
        range: (0.0, 1.0),
        doc: "How much the probability falls at a time (d2); much less than increment, because a busy link says less \
              than an overflow.",
        source: "Feng et al. 1999, one of the report's two sets; the other has 0.002",
    },
    Param {
        name: "freeze",
        kind: Kind::Time,
        default: "100ms",
        range: (1e-6, 100.0),
        doc: "Least time between two steps, for the last one to take effect: a round trip or more.",
        source: "Feng et al. 1999: 10 or 100 ms",
    },
    Param {
        name: "threshold",
        kind: Kind::Length,
        default: "",
        range: (0.0, 4e9),
        doc: "A queue longer than this counts as an overflow, so that room is left for bursts; absent by default.",
        source: REPORT,
    },
];

fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    values.ordered("decrement", "increment")
}

/// The law.
#[derive(Clone, Debug)]
pub struct Blue {
    increment: f64,
    decrement: f64,
    freeze: Span,
    threshold: Option<Threshold>,
    ecn_enabled: bool,
    probability: f64,
    /// When the probability was last stepped.
    stepped: Option<Time>,
    is_idle: bool,
    stream: Stream,
}

impl Blue {
    /// BLUE from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        Self {
            increment: values.number("increment"),
            decrement: values.number("decrement"),
            freeze: values.time("freeze"),
            threshold: Threshold::find(values, "threshold"),
            ecn_enabled: values.flag("ecn"),
            probability: 0.0,
            stepped: None,
            is_idle: false,
            stream: site.stream,
        }
    }

    /// When the next step may be taken.
    fn thawed(&self) -> Time {
        self.stepped.map_or(Time::ZERO, |stepped| stepped + self.freeze)
    }

    fn overflowed(&mut self, now: Time) {
        if now >= self.thawed() {
            self.probability = (self.probability + self.increment).min(1.0);
            self.stepped = Some(now);
        }
    }

    fn wake(&mut self, now: Time) {
        self.settle(now);
        self.is_idle = false;
    }

    /// Takes the steps that have come due since the link became idle, if it is.
    fn settle(&mut self, now: Time) {
        let thawed = self.thawed();
        if self.is_idle && now >= thawed {
            let further = now.since(thawed).ns() / self.freeze.ns();
            self.probability = (self.probability - (1 + further) as f64 * self.decrement).max(0.0);
            self.stepped = Some(thawed + self.freeze * further);
        }
    }
}

impl Law for Blue {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        self.wake(now);
        if self.threshold.is_some_and(|threshold| threshold.is_exceeded_by(arrival.backlog)) {
            self.overflowed(now);
        }
        if super::is_drawn(&mut self.stream, self.probability) {
            return Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY);
        }
        Verdict::Pass
    }

    fn on_overflow(&mut self, _arrival: &Arrival, now: Time) {
        self.wake(now);
        self.overflowed(now);
    }

    fn on_idle(&mut self, now: Time) {
        if self.is_idle {
            return self.settle(now);
        }
        self.is_idle = true;
        // A step at once unless frozen; further ones are due `freeze` apart.
        if now >= self.thawed() {
            self.probability = (self.probability - self.decrement).max(0.0);
            self.stepped = Some(now);
        }
    }

    fn gauges(&self) -> Gauges {
        Gauges { probability: Some(self.probability), control: None, tracked_flows: None }
    }

    fn retune(&mut self, values: &Values, rate: Rate, _now: Time) {
        let fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        let Self { probability, stepped, is_idle, .. } = *self;
        *self = Self { probability, stepped, is_idle, ..fresh };
    }
}

impl LawRow for Blue {
    const ROW: Row = Row {
        name: "blue",
        aliases: &[],
        doc: "Raises one probability when the queue overflows and lowers it while the link is idle.",
        source: REPORT,
        year: 1999,
        marks: true,
        params: PARAMS,
        fixed: &["dialect"],
        gauges: &[Gauge::probability("Probability of a packet.")],
        causes: &[],
        uses_rate: registry::never,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }
}
