//! PIE is an enhanced proportional-integral controller ([`super::pi`]). It controls the waiting time rather than the
//! length, so that one setting fits every rate. Its steps grow with the probability, so that one setting fits light and
//! heavy congestion. And it signals nothing in the first moments of a burst.
//!
//! Source: Pan, Natarajan, Baker and White, "Proportional Integral Controller Enhanced (PIE)", RFC 8033, 2017.
//!
//! | RFC 8033 | here |
//! |---|---|
//! | `QDELAY_REF`, `T_UPDATE`, `MAX_BURST`, `mark_ecnth` | `target`, `tupdate`, `max_burst`, `ecn_prob` |
//! | `alpha`, `beta` in Hz | the same; `tc` writes sixteenths, 2 and 20 |
//! | `drop_prob_` | `probability` |
//! | `current_qdelay`, `qdelay_old_` | `delay_s`, `delay_old_s` |
//! | `burst_allowance_` | `burst` |
//! | `accu_prob_` | [`super::spacing`] |
//!
//! The waiting time is that of the last packet that left, or 0 if none waited behind it. With `dq_rate_estimator` it is
//! the queue over the rate at which it drains ([`super::drain`]). RFC 8033 allows both, and prefers neither.
//!
//! The forms in use are one algorithm, and differ in this:
//!
//! | what | `rfc` | `linux` |
//! |---|---|---|
//! | signals are spaced where `derandomize` is not set | no | yes |
//! | a waiting time above 250 ms adds to a step | nothing | 2 % |
//! | when both waiting times are 0, the probability loses | 2 % | 1/64, nothing while a packet waits |
//! | the largest probability | 1 | 256, from where it starts again at 1 |
//! | the burst allowance runs down | with steps | with the time between departures |
//! | the same with `dq_rate_estimator` | with steps | when a measurement ends, by its length |
//! | the waiting time that spares a packet, without `dq_rate_estimator` | of the last step | of the last departure |
//! | a queue of exactly two packets | is spared | is not |
//! | a probability of exactly `ecn_prob` | drops | marks |
//! | a mark that comes for certain, at a sum of 8.5 | begins a new sum | does not: all are marked until it is 256 |
//! | when congestion is over | a burst may begin | all begins anew, with `dq_rate_estimator` once it has measured |
//! | the drain rate is averaged by | the time of 16 KiB, 1/4 | the rate itself, 1/8 |
//!
//! [`super::docsis_pie`] shares the [`Controller`] and the spacing.
//!
//! Deviations. The RFC's text lets the probability decay when both waiting times are 0 (§4.2), its appendix when both
//! are below half the target; here the text holds. Linux takes its first step after half a second, here as any other.
//! The limit comes first, as in both.

use super::clock::Clock;
use super::drain::{Drain, Measure};
use super::spacing::Accumulator;
use super::{Arrival, Departure, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Span, Stream, Time};

const RFC: &str = "RFC 8033 §4, §5; tc-pie(8)";

/// PIE's `dialect`.
pub const DIALECT: Param = Param {
    name: "dialect",
    kind: Kind::Word(&["rfc", "linux"]),
    default: "rfc",
    range: Param::ANY,
    doc: "Where the RFC and Linux differ: spacing of signals, long waits, bursts, decay, and short queues.",
    source: "RFC 8033",
};

/// PIE's `target`.
pub const TARGET: Param = Param {
    name: "target",
    kind: Kind::Time,
    default: "15ms",
    range: (1e-6, 10.0),
    doc: "The waiting time to settle at.",
    source: RFC,
};

/// PIE's `tupdate`.
pub const TUPDATE: Param = Param {
    name: "tupdate",
    kind: Kind::Time,
    default: "15ms",
    range: (1e-6, 10.0),
    doc: "How often the probability is computed.",
    source: RFC,
};

/// PIE's `alpha`.
pub const ALPHA: Param = Param {
    name: "alpha",
    kind: Kind::Number,
    default: "0.125",
    range: (0.0, 1e6),
    doc: "Gain on the distance of the waiting time from its target, in Hz; tc writes 16 times it.",
    source: RFC,
};

/// PIE's `beta`.
pub const BETA: Param = Param {
    name: "beta",
    kind: Kind::Number,
    default: "1.25",
    range: (0.0, 1e6),
    doc: "Gain on the change of the waiting time since the last step, in Hz; tc writes 16 times it.",
    source: RFC,
};

/// PIE's `max_burst`.
pub const MAX_BURST: Param = Param {
    name: "max_burst",
    kind: Kind::Time,
    default: "150ms",
    range: (0.0, 100.0),
    doc: "How long nothing is signalled when congestion begins.",
    source: RFC,
};

/// PIE's `ecn_prob`.
pub const ECN_PROB: Param = Param {
    name: "ecn_prob",
    kind: Kind::Number,
    default: "0.1",
    range: (0.0, 1.0),
    doc: "Probability from which on ECN-capable packets are dropped as others are.",
    source: "RFC 8033 §5.1; tc-fq_pie(8)",
};

/// PIE's `bytemode`.
pub const BYTEMODE: Param = Param {
    name: "bytemode",
    kind: Kind::Flag,
    default: "false",
    range: Param::ANY,
    doc: "Scale the probability of a packet by its size over mean_packet, up to 1.",
    source: "tc-pie(8): off",
};

/// PIE's `mean_packet`.
pub const MEAN_PACKET: Param = Param {
    name: "mean_packet",
    kind: Kind::Size,
    default: "1500b",
    range: (1.0, 65_535.0),
    doc: "Nothing is signalled while two such packets wait or less; what bytemode scales by.",
    source: "Linux sch_pie.c: the interface's MTU; RFC 8033 leaves it open",
};

/// PIE's `dq_rate_estimator`.
pub const DQ_RATE_ESTIMATOR: Param = Param {
    name: "dq_rate_estimator",
    kind: Kind::Flag,
    default: "false",
    range: Param::ANY,
    doc: "Compute the waiting time from the queue and the rate at which it drains, instead of measuring it.",
    source: "tc-pie(8): off",
};

/// PIE's `derandomize`.
pub const DERANDOMIZE: Param = Param {
    name: "derandomize",
    kind: Kind::Flag,
    default: "",
    range: Param::ANY,
    doc: "Space signals: none before the probability has summed up to 0.85, one for certain at 8.5. Computed: true for \
          linux.",
    source: "RFC 8033 §5.4: optional; Linux sch_pie.c: always",
};

/// What differs between the forms in use.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    /// Signals are spaced unless `derandomize` says otherwise.
    is_spaced: bool,
    /// What a waiting time above [`LONG_S`] adds to a step.
    for_long_waits: f64,
    /// What a step without waiting times leaves of the probability: while nothing waits, and while a packet does.
    decay: [f64; 2],
    /// Where the probability ends. It goes on from 1 there.
    end: f64,
    /// Where the sum of spaced signals ends. It goes on from 0 there.
    sum_end: f64,
    /// The burst allowance runs down with departures, not with steps.
    runs_with_departures: bool,
    /// The latest waiting time decides whether the queue is short, not that of the last step.
    spares_by_latest: bool,
    /// A queue of exactly two packets may be signalled.
    signals_two: bool,
    /// At exactly `ecn_prob` packets are still marked.
    marks_at_ecn_prob: bool,
    /// Only a loss restarts a sum at which the signal was certain.
    resumes_after_mark: bool,
    /// The end of congestion restarts spacing and measurements too, and is none before the first measurement.
    begins_anew: bool,
    /// How `dq_rate_estimator` measures.
    measure: Measure,
}

/// RFC 8033.
const RFC_8033: Dialect = Dialect {
    is_spaced: false,
    for_long_waits: 0.0,
    decay: [0.98, 0.98],
    end: 1.0,
    sum_end: f64::INFINITY,
    runs_with_departures: false,
    spares_by_latest: false,
    signals_two: false,
    marks_at_ecn_prob: false,
    resumes_after_mark: false,
    begins_anew: false,
    measure: Measure::Time,
};

/// Linux sch_pie.c, pie.h.
const LINUX: Dialect = Dialect {
    is_spaced: true,
    for_long_waits: 0.02,
    decay: [1.0 - 1.0 / 64.0, 1.0],
    // It has 64 bits, of which 56 are 1.
    end: 256.0,
    sum_end: 256.0,
    runs_with_departures: true,
    spares_by_latest: true,
    signals_two: true,
    marks_at_ecn_prob: true,
    resumes_after_mark: true,
    begins_anew: true,
    measure: Measure::Rate,
};

impl Dialect {
    fn of(values: &Values) -> Self {
        match values.word("dialect") {
            "linux" => LINUX,
            _ => RFC_8033,
        }
    }
}

/// A waiting time above this is a long one (Linux sch_pie.c), in seconds.
const LONG_S: f64 = 0.25;

/// Fills in `derandomize` as the dialect has it, and refuses gains in the unit of tc.
pub fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let is_spaced = Dialect::of(values).is_spaced;
    values.fill("derandomize", Value::Flag(is_spaced));
    // tc's own defaults: sixteen times too much, and nothing else would tell.
    if (values.number("alpha"), values.number("beta")) == (2.0, 20.0) {
        return Err(Refusal::new(
            "beta",
            "hertz as in RFC 8033: tc writes sixteenths, its 2 and 20 are 0.125 and 1.25",
        ));
    }
    Ok(())
}

/// The controller of all forms of PIE. It says how far the probability moves in a step (RFC 8033 §4.2).
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    target_s: f64,
    alpha: f64,
    beta: f64,
    heavy: &'static [(f64, f64)],
}

impl Controller {
    /// What a step is divided by below each probability, so that a small one moves in small steps.
    const LIGHT: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
    /// From this probability on a step is never larger than [`Controller::LARGEST_STEP`] (RFC 8033 §5.5).
    const HEAVY: f64 = 0.1;
    const LARGEST_STEP: f64 = 0.02;

    /// The controller of `target`, `alpha` and `beta`. `heavy` has the divisors for probabilities of a tenth and more.
    /// Above all of these a step is not divided.
    pub fn new(values: &Values, heavy: &'static [(f64, f64)]) -> Self {
        let (alpha, beta) = (values.number("alpha"), values.number("beta"));
        Self { target_s: values.time("target").secs_f64(), alpha, beta, heavy }
    }

    /// The change of the probability `p` when the waiting time was `old_s` and is `delay_s`.
    pub fn step(&self, p: f64, delay_s: f64, old_s: f64) -> f64 {
        let divisor = Self::LIGHT.iter().chain(self.heavy).find(|(below, _)| p < *below).map_or(1.0, |(_, by)| *by);
        let step = (self.alpha * (delay_s - self.target_s) + self.beta * (delay_s - old_s)) / divisor;
        if p >= Self::HEAVY { step.min(Self::LARGEST_STEP) } else { step }
    }

    /// Whether a waiting time is below half the target.
    pub fn is_short(&self, delay_s: f64) -> bool {
        delay_s < self.target_s / 2.0
    }

    /// Whether a waiting time is too short to signal at the probability `p` (RFC 8033 §4.1).
    pub fn spares(&self, delay_s: f64, p: f64) -> bool {
        self.is_short(delay_s) && p < 0.2
    }

    /// Whether congestion is over (RFC 8033 §4.4): nothing is signalled, and the last two waiting times were short.
    pub fn is_quiet(&self, p: f64, delay_s: f64, old_s: f64) -> bool {
        p == 0.0 && self.is_short(delay_s) && self.is_short(old_s)
    }
}

/// The law.
#[derive(Clone, Debug)]
pub struct Pie {
    dialect: Dialect,
    clock: Clock,
    tupdate: Span,
    controller: Controller,
    max_burst: Span,
    ecn_enabled: bool,
    ecn_prob: f64,
    weighs_size: bool,
    mean_packet: u32,
    probability: f64,
    /// Waiting time of the last packet that left.
    sojourn_s: f64,
    /// Waiting time at the last step.
    delay_old_s: f64,
    burst: Span,
    /// When the last packet left, in the dialect whose burst allowance runs down with departures.
    left_at: Option<Time>,
    drain: Option<Drain>,
    spacing: Option<Accumulator>,
    stream: Stream,
}

impl Pie {
    /// PIE from resolved values.
    pub fn new(values: &Values, stream: Stream) -> Self {
        let dialect = Dialect::of(values);
        let (tupdate, max_burst) = (values.time("tupdate"), values.time("max_burst"));
        Self {
            dialect,
            clock: Clock::every(tupdate),
            tupdate,
            controller: Controller::new(values, &[]),
            max_burst,
            ecn_enabled: values.flag("ecn"),
            ecn_prob: values.number("ecn_prob"),
            weighs_size: values.flag("bytemode"),
            mean_packet: values.size("mean_packet"),
            probability: 0.0,
            sojourn_s: 0.0,
            delay_old_s: 0.0,
            burst: max_burst,
            left_at: None,
            drain: values.flag("dq_rate_estimator").then(|| Drain::new(dialect.measure)),
            spacing: values.flag("derandomize").then(|| Accumulator::until(dialect.sum_end)),
            stream,
        }
    }

    /// Whether the queue is too short to signal, whatever the probability (RFC 8033 §4.1).
    fn is_spared(&self, backlog: Backlog) -> bool {
        let two = 2 * u64::from(self.mean_packet);
        if backlog.bytes < two || backlog.bytes == two && !self.dialect.signals_two {
            return true;
        }
        let is_latest = self.dialect.spares_by_latest && self.drain.is_none();
        self.controller.spares(if is_latest { self.sojourn_s } else { self.delay_old_s }, self.probability)
    }

    /// Whether this packet is to be signalled (RFC 8033 §4.1, §5.4).
    fn is_signalled(&mut self, size: u32) -> bool {
        let weight = f64::from(size) / f64::from(self.mean_packet);
        let p = if self.weighs_size { self.probability * weight.min(1.0) } else { self.probability };
        match &mut self.spacing {
            Some(spacing) => spacing.is_due(p, &mut self.stream),
            None => super::is_drawn(&mut self.stream, p),
        }
    }

    /// The waiting time now.
    fn delay_s(&self, backlog: Backlog) -> f64 {
        match &self.drain {
            Some(drain) => drain.delay_s(backlog.bytes),
            None => self.sojourn_s,
        }
    }

    /// Takes a step of the probability (RFC 8033 §4.2).
    fn step(&mut self, delay_s: f64, backlog: Backlog) {
        let old_s = std::mem::replace(&mut self.delay_old_s, delay_s);
        let mut step = self.controller.step(self.probability, delay_s, old_s);
        if delay_s > LONG_S {
            step += self.dialect.for_long_waits;
        }
        let next = self.probability + step;
        self.probability = if next >= self.dialect.end { 1.0 } else { next.max(0.0) };
        if delay_s == 0.0 && old_s == 0.0 {
            self.probability *= self.dialect.decay[usize::from(backlog.packets > 0)];
        }
        if !self.dialect.runs_with_departures {
            self.burst = self.burst.saturating_sub(self.tupdate);
        }
        if self.controller.is_quiet(self.probability, delay_s, old_s) {
            self.end_congestion();
        }
    }

    /// Notes that congestion is over. The next one may begin with a burst again (RFC 8033 §4.4).
    fn end_congestion(&mut self) {
        if self.dialect.begins_anew {
            if self.drain.as_ref().is_some_and(|drain| !drain.is_measured()) {
                return;
            }
            self.left_at = None;
            self.drain.iter_mut().for_each(Drain::reset);
            self.spacing.iter_mut().for_each(Accumulator::reset);
        }
        self.burst = self.max_burst;
    }
}

impl Law for Pie {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        if self.burst > Span::ZERO || self.is_spared(arrival.backlog) || !self.is_signalled(arrival.size) {
            return Verdict::Pass;
        }
        let signal = Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY);
        if signal != Verdict::Mark(Cause::EARLY) {
            return signal;
        }
        let p = self.probability;
        if p > self.ecn_prob || p == self.ecn_prob && !self.dialect.marks_at_ecn_prob {
            return Verdict::Drop(Cause::OVERLOAD);
        }
        if let (true, Some(spacing)) = (self.dialect.resumes_after_mark, &mut self.spacing) {
            spacing.resume();
        }
        signal
    }

    fn on_overflow(&mut self, _arrival: &Arrival, _now: Time) {
        self.spacing.iter_mut().for_each(Accumulator::reset);
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        let is_last = departure.backlog.packets == 0;
        self.sojourn_s = if is_last { 0.0 } else { now.since(departure.enqueued).secs_f64() };
        let measured = self.drain.as_mut().and_then(|drain| drain.on_departure(departure, now));
        if self.dialect.runs_with_departures {
            let passed = match self.drain {
                Some(_) => measured,
                None => self.left_at.replace(now).map(|before| now.since(before)),
            };
            self.burst = self.burst.saturating_sub(passed.unwrap_or(Span::ZERO));
        }
        Verdict::Pass
    }

    fn next_tick(&self) -> Time {
        self.clock.next()
    }

    fn tick(&mut self, backlog: Backlog, now: Time) {
        if self.clock.take(now) {
            self.step(self.delay_s(backlog), backlog);
        }
    }

    fn is_at_rest(&self) -> bool {
        let is_calm = self.probability == 0.0 && self.sojourn_s == 0.0 && self.delay_old_s == 0.0;
        is_calm && self.burst == self.max_burst && self.left_at.is_none()
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn gauges(&self) -> Gauges {
        Gauges { probability: Some(self.probability.min(1.0)), control: Some(self.delay_old_s), tracked_flows: None }
    }

    fn retune(&mut self, values: &Values, _rate: Rate, now: Time) {
        let fresh = Self::new(values, self.stream.clone());
        let Self { probability, sojourn_s, delay_old_s, left_at, .. } = *self;
        let clock = fresh.clock.instead_of(self.clock, now);
        // What is left of a burst is no more than a burst; a whole one is a whole one.
        let burst = if self.burst == self.max_burst { fresh.burst } else { self.burst.min(fresh.burst) };
        let drain = fresh.drain.clone().map(|fresh| self.drain.take().unwrap_or(fresh));
        let spacing = fresh.spacing.map(|fresh| self.spacing.unwrap_or(fresh));
        *self = Self { probability, sojourn_s, delay_old_s, left_at, clock, burst, drain, spacing, ..fresh };
    }
}

impl LawRow for Pie {
    const ROW: Row = Row {
        name: "pie",
        aliases: &[],
        doc: "Controls the waiting time to a target by an integrating controller whose steps grow with its output.",
        source: "Pan et al. 2013; RFC 8033",
        year: 2013,
        marks: true,
        params: &[
            registry::limit("1000p", "tc-pie(8): 1000 packets"),
            registry::ECN,
            DIALECT,
            TARGET,
            TUPDATE,
            ALPHA,
            BETA,
            MAX_BURST,
            ECN_PROB,
            BYTEMODE,
            MEAN_PACKET,
            DQ_RATE_ESTIMATOR,
            DERANDOMIZE,
        ],
        fixed: &["dialect"],
        gauges: &[
            Gauge::probability("Probability of a packet."),
            Gauge::control("delay", "s", "Waiting time at the last step."),
        ],
        causes: &[],
        uses_rate: registry::never,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site.stream)
    }
}
