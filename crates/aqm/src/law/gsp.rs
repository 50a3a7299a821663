//! GSP is global synchronization protection. A full drop-tail queue loses packets of half its flows within a round
//! trip, and they all slow down at once. GSP loses one packet when the queue passes a threshold, and then none for an
//! interval, in which the effect of that loss shows. If one loss an interval is not enough, the time that the queue
//! spends above the threshold shortens the interval. Time below the threshold lengthens it again.
//!
//! Source: Lautenschlaeger and Francini, "Global Synchronization Protection for Bandwidth Sharing TCP Flows in
//! High-Speed Links", HPSR 2015 ("the paper"); draft-lauten-aqm-gsp.
//!
//! | paper | here |
//! |---|---|
//! | `presetInt`, the longest interval | `interval` |
//! | `cumulTime`, `maxTime` | `cumulative_s`, `max_time` |
//! | `tau`, `alpha` | `tau`, `alpha` |
//! | `time_above_threshold`, `time_below_threshold` | `above`, `below` |
//! | overflow, then empty, then above the threshold | `Cycle` |
//!
//! With a threshold in time the queue counts as above while the packet that left last had stayed longer (the paper's
//! delay-based form). A loss at the hard limit while no interval runs starts one: it is the loss that GSP would have
//! chosen. Deviations: the paper gives no figure for the longest accumulated time and none for ECN; here marks replace
//! losses one for one.

use super::threshold::Threshold;
use super::{Arrival, Departure, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Span, Time};

const PAPER: &str = "Lautenschlaeger and Francini 2015";

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen; the paper wants it well above the threshold"),
    registry::ECN,
    registry::only(&["paper"], PAPER),
    Param {
        name: "threshold",
        kind: Kind::LengthOrTime,
        default: "100p",
        range: (0.0, 4e9),
        doc: "Signal above it: a queue before the arriving packet longer than this length, or a last packet that \
              stayed longer than this time.",
        source: "a tenth of the limit; the paper has no single figure, only well below the limit",
    },
    Param {
        name: "interval",
        kind: Kind::Time,
        default: "200ms",
        range: (1e-6, 100.0),
        doc: "Least time between two signals; with adaptive the longest such time.",
        source: PAPER,
    },
    Param {
        name: "adaptive",
        kind: Kind::Flag,
        default: "true",
        range: Param::ANY,
        doc: "Shorten the interval while the queue stays above the threshold.",
        source: PAPER,
    },
    Param {
        name: "alpha",
        kind: Kind::Number,
        default: "2",
        range: (0.0, 1e3),
        doc: "What time above the threshold weighs against time below.",
        source: "Lautenschlaeger and Francini 2015: not much larger than 1",
    },
    Param {
        name: "tau",
        kind: Kind::Time,
        default: "",
        range: (1e-6, 1e4),
        doc: "Accumulated time that halves the interval. Computed: five intervals.",
        source: PAPER,
    },
    Param {
        name: "max_time",
        kind: Kind::Time,
        default: "50s",
        range: (0.0, 1e6),
        doc: "The most time that is accumulated; it bounds the interval from below.",
        source: "none published; with the defaults the interval falls to 4 ms, what 100 Reno flows need at 100 Mb/s \
                 and 100 ms",
    },
];

fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let interval = values.time("interval");
    values.fill("tau", Value::Time(interval * 5));
    Ok(())
}

/// Where the queue is after an overflow. Time below the threshold counts only when it is clear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cycle {
    /// It has not overflowed since it was last above the threshold.
    Clear,
    /// It overflowed and has not been empty since.
    Overflowed,
    /// It overflowed, was empty, and has not been above the threshold since.
    Drained,
}

/// The law.
#[derive(Clone, Debug)]
pub struct Gsp {
    threshold: Threshold,
    preset_s: f64,
    adapts: bool,
    alpha: f64,
    tau_s: f64,
    max_s: f64,
    ecn_enabled: bool,
    /// The end of the running interval.
    quiet_until: Option<Time>,
    is_above: bool,
    cycle: Cycle,
    /// The instant until which `above` and `below` are counted; these are sums since the last arrival.
    counted_until: Time,
    above: Span,
    below: Span,
    cumulative_s: f64,
}

impl Gsp {
    /// GSP from resolved values.
    pub fn new(values: &Values) -> Self {
        Self {
            threshold: Threshold::find(values, "threshold").expect("the threshold has a default"),
            preset_s: values.time("interval").secs_f64(),
            adapts: values.flag("adaptive"),
            alpha: values.number("alpha"),
            tau_s: values.time("tau").secs_f64(),
            max_s: values.time("max_time").secs_f64(),
            ecn_enabled: values.flag("ecn"),
            quiet_until: None,
            is_above: false,
            cycle: Cycle::Clear,
            counted_until: Time::ZERO,
            above: Span::ZERO,
            below: Span::ZERO,
            cumulative_s: 0.0,
        }
    }

    /// The least time to the next signal, in seconds.
    fn interval_s(&self) -> f64 {
        if self.adapts { self.preset_s / (1.0 + self.cumulative_s / self.tau_s) } else { self.preset_s }
    }

    /// Starts an interval unless one is running.
    fn is_due(&mut self, now: Time) -> bool {
        let is_due = self.quiet_until.is_none_or(|until| now > until);
        if is_due {
            self.quiet_until = Some(now + Span::from_secs_f64(self.interval_s()));
        }
        is_due
    }

    /// Counts the time since the last event as above or below the threshold.
    fn count(&mut self, now: Time) {
        let span = now.since(self.counted_until);
        self.counted_until = now;
        if self.is_above {
            self.above = self.above + span;
        } else if self.cycle == Cycle::Clear {
            self.below = self.below + span;
        }
    }

    /// Adds what was counted to the accumulated time, at every arrival.
    fn accumulate(&mut self, now: Time) {
        self.count(now);
        let change = self.alpha * self.above.secs_f64() - self.below.secs_f64();
        self.cumulative_s = (self.cumulative_s + change).clamp(0.0, self.max_s);
        self.above = Span::ZERO;
        self.below = Span::ZERO;
    }

    fn set_above(&mut self, is_above: bool) {
        self.is_above = is_above;
        if is_above && self.cycle == Cycle::Drained {
            self.cycle = Cycle::Clear;
        }
    }
}

impl Law for Gsp {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        self.accumulate(now);
        let verdict = if self.is_above && self.is_due(now) {
            Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY)
        } else {
            Verdict::Pass
        };
        if !matches!(verdict, Verdict::Drop(_)) && matches!(self.threshold, Threshold::Length(_)) {
            let Backlog { packets, bytes } = arrival.backlog;
            let with_it = Backlog { packets: packets + 1, bytes: bytes + u64::from(arrival.size) };
            self.set_above(self.threshold.is_exceeded_by(with_it));
        }
        verdict
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        self.accumulate(now);
        // A packet that is larger than the limit overflows an empty queue.
        self.cycle = if arrival.backlog.packets == 0 { Cycle::Drained } else { Cycle::Overflowed };
        self.is_due(now);
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        self.count(now);
        let sojourn = now.since(departure.enqueued);
        self.set_above(self.threshold.is_exceeded_by(departure.backlog) || self.threshold.is_exceeded_in(sojourn));
        if departure.backlog.packets == 0 && self.cycle == Cycle::Overflowed {
            self.cycle = Cycle::Drained;
        }
        Verdict::Pass
    }

    fn on_idle(&mut self, now: Time) {
        self.count(now);
        self.set_above(false);
    }

    fn gauges(&self) -> Gauges {
        Gauges { probability: None, control: Some(self.interval_s()), tracked_flows: None }
    }

    fn retune(&mut self, values: &Values, _rate: Rate, _now: Time) {
        let fresh = Self::new(values);
        let Self { quiet_until, is_above, cycle, counted_until, above, below, cumulative_s, .. } = *self;
        *self = Self { quiet_until, is_above, cycle, counted_until, above, below, cumulative_s, ..fresh };
    }
}

impl LawRow for Gsp {
    const ROW: Row = Row {
        name: "gsp",
        aliases: &[],
        doc: "Signals one packet when the queue passes a threshold and then none for an interval, which adapts.",
        source: PAPER,
        year: 2015,
        marks: true,
        params: PARAMS,
        fixed: &["dialect"],
        gauges: &[Gauge::control("interval", "s", "Least time between two signals.")],
        causes: &[],
        uses_rate: registry::never,
        resolve,
    };

    fn made(values: &Values, _site: Site) -> Self {
        Self::new(values)
    }
}
