//! Adaptive RED keeps the average queue of RED in the middle of the band, by slowly moving the maximum probability. It
//! computes its other parameters from the link's rate and a target delay.
//!
//! Source: Floyd, Gummadi and Shenker, "Adaptive RED: An Algorithm for Increasing the Robustness of RED's Active Queue
//! Management", technical report, August 2001.
//!
//! | paper | here |
//! |---|---|
//! | `interval`, `target` | `interval`, the band's middle fifth |
//! | `alpha`, `beta` | `alpha`, `beta` |
//! | `w_q = 1 - exp(-1/C)`, `min_th = max(5, delay_target C / 2)`, `max_th = 3 min_th` | computed by [`resolve`] |
//!
//! Every detail of RED itself is [`red`]'s: parameters, dialects, modes, ECN.
//!
//! The adaptation runs by the clock, also while the link is idle, on the average as decayed until then, as in Linux. In
//! the dialect `ns2` a step is taken at an arrival, more than `interval` after the last one; the last step towards a
//! bound passes it; and `bottom` follows from the link. ALTQ has no adaptive RED: in the dialect `altq` the adaptation
//! is the paper's, by the clock, with [ALTQ's RED](red::altq) under it.
//!
//! Deviations. A step stops at the bounds, where Linux passes them once. Both slopes of gentle follow the maximum
//! probability (ns-2 keeps the second where it was, and the curve jumps back at `max`).

use super::clock::Clock;
use super::red::{self, form::Form};
use super::{Arrival, Gauges, Law, Verdict, measure};
use crate::packet::Backlog;
use crate::param::{Kind, Length, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Span, Stream, Time, maths};

const PAPER: &str = "Floyd, Gummadi and Shenker 2001";

const fn number(name: &'static str, default: &'static str, range: (f64, f64), doc: &'static str) -> Param {
    Param { name, kind: Kind::Number, default, range, doc, source: PAPER }
}

const fn time(name: &'static str, default: &'static str, range: (f64, f64), doc: &'static str) -> Param {
    Param { name, kind: Kind::Time, default, range, doc, source: PAPER }
}

const PARAMS: &[Param] = &[
    Param {
        default: "",
        doc: "How much may wait, in packets or bytes; computed: twice gentle_end, and at least 1000p, so that the \
              average decides before the buffer does.",
        ..registry::limit("", "Le et al. 2004: large enough that tail drops never occur")
    },
    registry::ECN,
    red::param::DIALECT_OR_ALTQ,
    Param {
        default: "",
        doc: "Average queue below which nothing is signalled; computed: the larger of 5 and half the packets the link \
              sends in target_delay, or a third of max if that is given.",
        source: PAPER,
        ..red::param::MIN
    },
    Param {
        default: "",
        doc: "Average queue at which the probability reaches its maximum, in the unit of min; computed: 3 min.",
        source: PAPER,
        ..red::param::MAX
    },
    Param {
        default: "0.1",
        doc: "Maximum probability to begin with.",
        // From zero no step would lead away.
        range: (1e-6, 1.0),
        source: "ns-2.35 linterm_ = 10",
        ..red::param::PROBABILITY
    },
    Param {
        default: "",
        doc: "Weight of each sample in the average queue; computed: 1 - exp(-1/C), with C the link's packets a second.",
        source: PAPER,
        ..red::param::WQ
    },
    time("target_delay", "5ms", (1e-6, 10.0), "Queueing delay aimed at, from which min and max are computed."),
    Param {
        default: "",
        doc: "Above max let the probability rise to 1 at gentle_end instead of jumping there. Computed: true, but false \
              in linux, whose RED has no such slope.",
        source: PAPER,
        ..red::param::GENTLE
    },
    red::param::GENTLE_END,
    red::param::MODE,
    measure::MEAN_PACKET,
    red::param::WAIT,
    red::param::MARK_UNTIL,
    red::param::MARK_P,
    red::param::AVERAGE_OVERFLOW,
    time(
        "interval",
        "500ms",
        (1e-3, 1e3),
        "Time between two steps of the maximum probability; in the ns2 dialect the least time, for steps are taken at \
         arrivals.",
    ),
    number("alpha", "0.01", (0.0, 1.0), "Largest step up of the maximum probability; never more than a quarter of it."),
    number("beta", "0.9", (0.0, 1.0), "Factor of a step down of the maximum probability."),
    Param {
        source: "Floyd, Gummadi and Shenker 2001; ns-2.35 bottom_ = 0",
        ..number(
            "bottom",
            "",
            (1e-6, 1.0),
            "Smallest maximum probability; computed: 0.01, in the ns2 dialect no more than the inverse of the packets \
             of 1000 bytes that the link sends in 100 ms.",
        )
    },
    number("top", "0.5", (0.0, 1.0), "Largest maximum probability."),
    registry::CAPACITY,
];

/// Computes from the link the thresholds, the weight and the limit that were not given.
pub fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    let capacity = measure::capacity(values, rate);
    // -expm1(-x), which `1 - exp` only approximates where C is large; the digits lost there are below C * 1e-16.
    values.fill("wq", Value::Number(1.0 - maths::exp(-1.0 / capacity)));
    let automatic = Length::Packets((values.time("target_delay").secs_f64() * capacity / 2.0).max(5.0));
    let min = values.find_length("max").map_or(automatic, |max| max.times(1.0 / 3.0));
    values.fill("min", Value::Length(min));
    values.fill("max", Value::Length(values.length("min").times(3.0)));
    values.fill("gentle", Value::Flag(values.word("dialect") != "linux"));
    red::resolve(values, rate)?;
    let limit = match values.length("gentle_end").times(2.0) {
        Length::Packets(packets) => Length::Packets(packets.max(1000.0).ceil()),
        Length::Bytes(bytes) => Length::Bytes(bytes.max(1000.0 * f64::from(values.size("mean_packet"))).ceil()),
    };
    values.fill("limit", Value::Length(limit));
    let inverse_window = match values.word("dialect") {
        "ns2" => 80_000.0 / rate.bps_f64(),
        _ => f64::INFINITY,
    };
    values.fill("bottom", Value::Number(inverse_window.clamp(1e-6, 0.01)));
    values.ordered("bottom", "top")?;
    // The paper keeps max_p between them, always; ns-2 and Linux ask only before a step, and take what they are given.
    if !matches!(values.word("dialect"), "ns2" | "linux") {
        values.ordered("bottom", "probability")?;
        values.ordered("probability", "top")?;
    }
    Ok(())
}

/// When the maximum probability may move.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// At every tick.
    Clock(Clock),
    /// At an arrival more than `interval` after the last time it moved (ns-2).
    Arrivals { interval: Span, last: Time },
}

/// The law.
#[derive(Clone, Debug)]
pub struct Ared {
    red: Form,
    stream: Stream,
    pace: Pace,
    /// The average queue below and above which the maximum probability moves.
    target: (f64, f64),
    alpha: f64,
    beta: f64,
    bounds: (f64, f64),
}

impl Ared {
    /// Adaptive RED from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let red = Form::new(values, site.rate);
        let (min, max) = red.band();
        let interval = values.time("interval");
        Self {
            red,
            stream: site.stream,
            pace: match values.word("dialect") {
                "ns2" => Pace::Arrivals { interval, last: Time::ZERO },
                _ => Pace::Clock(Clock::every(interval)),
            },
            target: (min + 0.4 * (max - min), min + 0.6 * (max - min)),
            alpha: values.number("alpha"),
            beta: values.number("beta"),
            bounds: (values.number("bottom"), values.number("top")),
        }
    }

    /// Takes the queue that a packet finds into the average; in ns-2 this is also when a step may be taken.
    #[inline]
    fn observe(&mut self, arrival: &Arrival, now: Time) {
        self.red.observe(arrival.backlog, now);
        if let Pace::Arrivals { interval, last } = self.pace
            && now > last + interval
            && self.adapt(self.red.average())
        {
            self.pace = Pace::Arrivals { interval, last: now };
        }
    }

    /// Moves the maximum probability if the average is off target. Returns whether it moved.
    fn adapt(&mut self, average: f64) -> bool {
        let before = self.red.max_p();
        let (bottom, top) = self.bounds;
        // A maximum probability that was given outside the bounds (ns-2, Linux) stays until a step leads inside.
        let stepped = if average > self.target.1 && before < top {
            before + self.alpha.min(before / 4.0)
        } else if average < self.target.0 && before > bottom {
            before * self.beta
        } else {
            return false;
        };
        let max_p = match &self.pace {
            Pace::Clock(_) => stepped.clamp(bottom.min(before), top.max(before)),
            Pace::Arrivals { .. } => stepped.min(1.0),
        };
        self.red.set_max_p(max_p);
        max_p != before
    }
}

impl Law for Ared {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        self.observe(arrival, now);
        self.red.judge(arrival, &mut self.stream)
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        self.observe(arrival, now);
        self.red.overflow(arrival, &mut self.stream);
    }

    fn on_idle(&mut self, now: Time) {
        self.red.idle_from(now);
    }

    fn next_tick(&self) -> Time {
        match &self.pace {
            Pace::Clock(clock) => clock.next(),
            Pace::Arrivals { .. } => Time::NEVER,
        }
    }

    fn tick(&mut self, _backlog: Backlog, now: Time) {
        if let Pace::Clock(clock) = &mut self.pace
            && clock.take(now)
        {
            self.adapt(self.red.average_at(now));
        }
    }

    fn gauges(&self) -> Gauges {
        self.red.gauges()
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        let red = fresh.red.clone().instead_of(&self.red);
        let pace = match (fresh.pace, self.pace) {
            (Pace::Clock(clock), Pace::Clock(before)) => Pace::Clock(clock.instead_of(before, now)),
            (Pace::Arrivals { interval, .. }, Pace::Arrivals { last, .. }) => Pace::Arrivals { interval, last },
            (pace, _) => pace,
        };
        *self = Self { red, pace, ..fresh };
    }
}

impl LawRow for Ared {
    const ROW: Row = Row {
        name: "ared",
        aliases: &[],
        doc: "RED that adapts its maximum probability and sets its other parameters from the link.",
        source: PAPER,
        year: 2001,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet", "target_delay", "average_overflow"],
        gauges: red::GAUGES,
        causes: &[],
        uses_rate: registry::always,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }
}
