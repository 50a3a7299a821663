//! PIE: proportional-integral controller enhanced. As [`super::pi`], but of the waiting time rather than the length, so
//! that one setting fits every rate; steps that grow with the probability, so that one setting fits light and heavy
//! congestion; and no signals for the first moments of a burst.
//!
//! Source: Pan, Natarajan, Baker and White, "Proportional Integral Controller Enhanced (PIE)", RFC 8033, 2017.
//!
//! | RFC 8033 | here |
//! |---|---|
//! | `QDELAY_REF`, `T_UPDATE`, `MAX_BURST`, `mark_ecnth` | `target`, `tupdate`, `max_burst`, `ecn_prob` |
//! | `alpha`, `beta` in Hz | the same; `tc` writes sixteenths, 2 and 20 |
//! | `drop_prob_` | `probability` |
//! | `current_qdelay`, `qdelay_old_` | `delay_s`, `delay_old_s` |
//! | `burst_allowance_`, `accu_prob_` | `burst`, [`Accumulator`] |
//!
//! The waiting time is that of the last packet that left, or 0 if none waited behind it; with `dq_rate_estimator` it is
//! the queue over the rate at which it drains. RFC 8033 allows both, and prefers neither.
//!
//! Dialect `linux`: signals are always spaced by the accumulated probability; a waiting time above 250 ms adds 2 % a
//! step; the burst allowance runs with departures rather than with steps, and with `dq_rate_estimator` only when a
//! measurement ends, by its length; the probability decays by 1/64 rather than 0.02, and not where a packet waits; the
//! latest waiting time decides whether the queue is short, not that of the last step; a queue of exactly two packets is
//! not spared; marks stop above `ecn_prob`, not at it; a mark that comes for certain, at a sum of 8.5, does not restart
//! the sum, so that every packet is marked from there on; the probability does not stop at 1; and the drain rate is
//! counted otherwise ([`super::drain`]).
//!
//! Deviations. The RFC's text lets the probability decay when both waiting times are 0 (§4.2), its appendix when both
//! are below half the target; here the text holds. Linux takes its first step after half a second, here as any other.
//! The limit comes first, as in both.

use super::clock::Clock;
use super::drain::{Drain, Measure};
use super::{Arrival, Departure, Gauges, Law, Verdict};
use crate::gauge::Gauge;
use crate::packet::{Backlog, Cause};
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

/// Fills in what the dialect decides.
pub fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let is_linux = values.word("dialect") == "linux";
    values.fill("derandomize", Value::Flag(is_linux));
    // tc's own defaults: sixteen times too much, and nothing else would tell.
    if (values.number("alpha"), values.number("beta")) == (2.0, 20.0) {
        return Err(Refusal::new(
            "beta",
            "hertz as in RFC 8033: tc writes sixteenths, its 2 and 20 are 0.125 and 1.25",
        ));
    }
    Ok(())
}

/// By what a step is divided at a probability of `p` (RFC 8033 §4.2): a light one moves in small steps.
pub fn divisor(p: f64) -> f64 {
    const STEPS: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (0.1, 2.0)];
    STEPS.iter().find(|(below, _)| p < *below).map_or(1.0, |(_, by)| *by)
}

/// The step is never larger than this where the probability is [`HEAVY`] (RFC 8033 §5.5).
pub const LARGEST_STEP: f64 = 0.02;
/// See [`LARGEST_STEP`].
pub const HEAVY: f64 = 0.1;

/// Where Linux's probability starts again from 1: 2^64 of 2^56.
const LINUX_END: f64 = 256.0;

/// Spaces signals by the probability summed up since the last (RFC 8033 §5.4): the sum, and what it was at the last
/// signal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accumulator {
    sum: f64,
    last: f64,
}

/// The sum at which a signal is certain.
const CERTAIN: f64 = 8.5;

impl Accumulator {
    /// Adds `p` and decides; a signal begins a new sum.
    pub fn is_due(&mut self, p: f64, stream: &mut Stream) -> bool {
        self.add(p);
        self.is_signalled(p, stream)
    }

    /// Adds `p` for a packet.
    pub fn add(&mut self, p: f64) {
        self.sum = if p > 0.0 { self.sum + p } else { 0.0 };
    }

    /// Decides about the packet that `p` was added for.
    pub fn is_signalled(&mut self, p: f64, stream: &mut Stream) -> bool {
        let is_due = self.sum >= 0.85 && (self.sum >= CERTAIN || super::is_drawn(stream, p));
        if is_due {
            (self.sum, self.last) = (0.0, self.sum);
        }
        is_due
    }

    /// Begins a new sum.
    pub fn reset(&mut self) {
        self.sum = 0.0;
    }

    /// Takes up the sum again that made the last signal certain.
    fn resume(&mut self) {
        if self.last >= CERTAIN {
            self.sum = self.last;
        }
    }
}

/// The law.
#[derive(Clone, Debug)]
pub struct Pie {
    clock: Clock,
    tupdate: Span,
    target_s: f64,
    alpha: f64,
    beta: f64,
    max_burst: Span,
    ecn_enabled: bool,
    ecn_prob: f64,
    weighs_size: bool,
    mean_packet: u32,
    is_linux: bool,
    probability: f64,
    /// Waiting time of the last packet that left.
    sojourn_s: f64,
    /// Waiting time at the last step.
    delay_old_s: f64,
    burst: Span,
    /// When the last packet left, while the waiting time is measured (Linux, to run the burst allowance down).
    left_at: Option<Time>,
    drain: Option<Drain>,
    spacing: Option<Accumulator>,
    stream: Stream,
}

impl Pie {
    /// PIE from resolved values.
    pub fn new(values: &Values, stream: Stream) -> Self {
        let is_linux = values.word("dialect") == "linux";
        let measure = if is_linux { Measure::Rate } else { Measure::Time };
        let (tupdate, max_burst) = (values.time("tupdate"), values.time("max_burst"));
        Self {
            clock: Clock::every(tupdate),
            tupdate,
            target_s: values.time("target").secs_f64(),
            alpha: values.number("alpha"),
            beta: values.number("beta"),
            max_burst,
            ecn_enabled: values.flag("ecn"),
            ecn_prob: values.number("ecn_prob"),
            weighs_size: values.flag("bytemode"),
            mean_packet: values.size("mean_packet"),
            is_linux,
            probability: 0.0,
            sojourn_s: 0.0,
            delay_old_s: 0.0,
            burst: max_burst,
            left_at: None,
            drain: values.flag("dq_rate_estimator").then(|| Drain::new(measure)),
            spacing: values.flag("derandomize").then(Accumulator::default),
            stream,
        }
    }

    /// Whether the queue is too short to signal, whatever the probability (RFC 8033 §4.1).
    fn is_spared(&self, backlog: Backlog) -> bool {
        let (two, bytes) = (2 * u64::from(self.mean_packet), backlog.bytes);
        let is_short = if self.is_linux { bytes < two } else { bytes <= two };
        let delay_s = if self.is_linux && self.drain.is_none() { self.sojourn_s } else { self.delay_old_s };
        is_short || (delay_s < self.target_s / 2.0 && self.probability < 0.2)
    }

    /// The waiting time now.
    fn delay_s(&self, backlog: Backlog) -> f64 {
        match &self.drain {
            Some(drain) => drain.delay_s(backlog.bytes),
            None => self.sojourn_s,
        }
    }

    /// The probability after a `step`. Linux has it in 64 bits of which 56 are 1, and stops at the end of those: steps
    /// beyond 1 have to be taken back before anything passes.
    fn advanced(&self, step: f64) -> f64 {
        let next = self.probability + step;
        match self.is_linux {
            true if next >= LINUX_END => 1.0,
            true => next.max(0.0),
            false => next.clamp(0.0, 1.0),
        }
    }

    /// A step of the probability (RFC 8033 §4.2).
    fn step(&mut self, delay_s: f64, backlog: Backlog) {
        let (target_s, old_s) = (self.target_s, self.delay_old_s);
        let mut step = (self.alpha * (delay_s - target_s) + self.beta * (delay_s - old_s)) / divisor(self.probability);
        if self.probability >= HEAVY {
            step = step.min(LARGEST_STEP);
        }
        if self.is_linux && delay_s > 0.25 {
            step += 0.02;
        }
        let mut probability = self.advanced(step);
        if delay_s == 0.0 && old_s == 0.0 {
            let waits = backlog.packets > 0;
            probability *= match self.is_linux {
                false => 0.98,
                true if waits => 1.0,
                true => 1.0 - 1.0 / 64.0,
            };
        }
        self.probability = probability;
        self.delay_old_s = delay_s;
        if !self.is_linux {
            self.burst = self.burst.saturating_sub(self.tupdate);
        }
        // Congestion is over: the next one may begin with a burst again (RFC 8033 §4.4).
        let is_measured = self.drain.as_ref().is_none_or(Drain::is_measured);
        let is_quiet = probability == 0.0 && delay_s < target_s / 2.0 && old_s < target_s / 2.0;
        if is_quiet && (!self.is_linux || is_measured) {
            self.burst = self.max_burst;
            if self.is_linux {
                self.left_at = None;
                self.drain.iter_mut().for_each(Drain::reset);
                self.spacing.iter_mut().for_each(Accumulator::reset);
            }
        }
    }
}

impl Law for Pie {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        if self.burst > Span::ZERO || self.is_spared(arrival.backlog) {
            return Verdict::Pass;
        }
        let weight = f64::from(arrival.size) / f64::from(self.mean_packet);
        let p = if self.weighs_size { self.probability * weight.min(1.0) } else { self.probability };
        let is_signalled = match &mut self.spacing {
            Some(spacing) => spacing.is_due(p, &mut self.stream),
            None => super::is_drawn(&mut self.stream, p),
        };
        if !is_signalled {
            return Verdict::Pass;
        }
        let p = self.probability;
        let is_light = p < self.ecn_prob || self.is_linux && p == self.ecn_prob;
        let verdict = match Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::Early) {
            Verdict::Mark(_) if !is_light => Verdict::Drop(Cause::Overload),
            verdict => verdict,
        };
        // In Linux a signal that came for certain restarts the sum only if it is a loss: after such a mark every packet
        // is marked, until one is lost or the probability has come down to 0.
        if let (true, Some(spacing), Verdict::Mark(_)) = (self.is_linux, &mut self.spacing, verdict) {
            spacing.resume();
        }
        verdict
    }

    fn on_overflow(&mut self, _arrival: &Arrival, _now: Time) {
        self.spacing.iter_mut().for_each(Accumulator::reset);
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        let is_last = departure.backlog.packets == 0;
        self.sojourn_s = if is_last { 0.0 } else { now.since(departure.enqueued).secs_f64() };
        let passed = match &mut self.drain {
            Some(drain) => drain.on_departure(departure, now),
            None if self.is_linux => self.left_at.replace(now).map(|before| now.since(before)),
            None => None,
        };
        if let (true, Some(passed)) = (self.is_linux, passed) {
            self.burst = self.burst.saturating_sub(passed);
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
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_spaced_by_the_sum() {
        let mut stream = Stream::named(1, "spacing");
        // At p = 1/64, sums exact, 0.85 is first passed by the 55th packet (0.859): none before.
        for _ in 0..1000 {
            let mut spacing = Accumulator::default();
            let gap = (1..).find(|_| spacing.is_due(1.0 / 64.0, &mut stream)).expect("a signal comes");
            // 8.5 is reached by the 544th.
            assert!((55..=544).contains(&gap), "{gap}");
        }
    }

    #[test]
    fn a_signal_comes_for_certain_at_a_sum_of_8_5() {
        let mut stream = Stream::named(1, "spacing");
        let mut spacing = Accumulator::default();
        (0..543).for_each(|_| spacing.add(1.0 / 64.0));
        assert!(!spacing.is_signalled(0.0, &mut stream));
        spacing.add(1.0 / 64.0);
        assert!(spacing.is_signalled(0.0, &mut stream));
        assert!(!spacing.is_signalled(1.0, &mut stream), "a new sum has begun");
    }
}
