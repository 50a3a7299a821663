//! DOCSIS-PIE is the PIE of cable modems. It is [`super::pie`] with four differences: the waiting time is computed from
//! the queue and the known rate; the probability of a packet is scaled by its size, and may grow until the smallest
//! packets are signalled; signals are always spaced; and a burst is allowed only after a second of quiet.
//!
//! Source: White and Pan, "Active Queue Management (AQM) Based on Proportional Integral Controller Enhanced (PIE) for
//! Data-Over-Cable Service Interface Specifications (DOCSIS) Cable Modems", RFC 8034, 2017, Appendix A.
//!
//! | RFC 8034 | here |
//! |---|---|
//! | `LATENCY_TARGET`, `INTERVAL`, `A`, `B` | `target`, `tupdate`, `alpha`, `beta` |
//! | `MAX_BURST`, `BURST_RESET_TIMEOUT` | `max_burst`, `burst_reset` |
//! | `MEAN_PKTSIZE`, `MIN_PKTSIZE` | `mean_packet`, `min_packet` |
//! | `LATENCY_LOW`, `LATENCY_HIGH` | `latency_low`, `latency_high` |
//! | `drop_prob_`, per mean packet, up to 13.6 | `probability` |
//! | `INACTIVE`, `QUIESCENT`, `ACTIVE` | `state` |
//! | `BUFFER_SIZE` | `limit` |
//!
//! Deviations. A plain link stands for the cable's grants: `MSR` and `PEAK_RATE` are its rate, and there are no tokens.
//! The RFC knows no ECN; with `ecn` on, capable packets are marked where they would be dropped.

use super::clock::Clock;
use super::pie::{self, Controller};
use super::spacing::Accumulator;
use super::{Arrival, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Length, Param, Refusal, Value, Values};
use crate::qdisc::fifo::Limit;
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Span, Stream, Time};

const RFC: &str = "RFC 8034 Appendix A";

const PARAMS: &[Param] = &[
    Param {
        doc: "How much may wait, in packets or bytes; what arrives beyond is lost. Up to a third of it is never \
              signalled after quiet. Computed: what the link sends in 250 ms.",
        ..registry::limit("", "RFC 8034 leaves it to the operator; 250 ms as in RFC 9332 A.1")
    },
    Param { source: "RFC 8034: no ECN", ..registry::ECN },
    registry::only(&["rfc"], "RFC 8034"),
    Param { default: "10ms", source: RFC, ..pie::TARGET },
    Param { default: "16ms", source: RFC, ..pie::TUPDATE },
    Param {
        default: "0.25",
        source: RFC,
        doc: "Gain on the distance of the waiting time from its target, in Hz (A).",
        ..pie::ALPHA
    },
    Param {
        default: "2.5",
        source: RFC,
        doc: "Gain on the change of the waiting time since the last step, in Hz (B).",
        ..pie::BETA
    },
    Param {
        default: "142ms",
        source: RFC,
        doc: "How long nothing is signalled after the first signal that follows quiet.",
        ..pie::MAX_BURST
    },
    Param {
        name: "burst_reset",
        kind: Kind::Time,
        default: "1s",
        range: (0.0, 1000.0),
        doc: "How long it must be quiet before the queue may grow to a third of the limit without a signal.",
        source: RFC,
    },
    Param {
        name: "mean_packet",
        kind: Kind::Size,
        default: "1024b",
        range: (1.0, 65_535.0),
        doc: "The size of packet that the probability is meant for; two of them may always wait.",
        source: RFC,
    },
    Param {
        name: "min_packet",
        kind: Kind::Size,
        default: "64b",
        range: (1.0, 65_535.0),
        doc: "The smallest packet: the probability stops growing when one is signalled with 0.85.",
        source: RFC,
    },
    Param {
        name: "latency_low",
        kind: Kind::Time,
        default: "5ms",
        range: (0.0, 10.0),
        doc: "Waiting time below which the probability also decays by 2 % a step.",
        source: RFC,
    },
    Param {
        name: "latency_high",
        kind: Kind::Time,
        default: "200ms",
        range: (0.0, 100.0),
        doc: "Waiting time above which the probability also grows by 0.02 a step.",
        source: RFC,
    },
    registry::CAPACITY,
];

/// The largest probability of a packet: `PROB_LOW` of RFC 8034.
const LARGEST: f64 = 0.85;

/// What a step is divided by below each large probability. These go further here than in RFC 8033.
const HEAVY: [(f64, f64); 3] = [(1.0, 0.5), (10.0, 0.125), (f64::INFINITY, 0.03125)];

fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    let bytes = rate.bytes_in(Span::from_ms(250)) as f64;
    values.fill("limit", Value::Length(Length::Bytes(bytes.min(4e9))));
    values.ordered("latency_low", "latency_high")
}

/// How much the queue may grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// To a third of the limit: it has been quiet for long.
    Inactive,
    /// Freely, until the first signal, which allows a burst.
    Quiescent,
    /// As much as the controller allows.
    Active,
}

/// The law.
#[derive(Clone, Debug)]
pub struct DocsisPie {
    clock: Clock,
    tupdate: Span,
    rate: Rate,
    limit: Limit,
    controller: Controller,
    max_burst: Span,
    burst_reset: Span,
    mean_packet: f64,
    largest: f64,
    latency_low_s: f64,
    latency_high_s: f64,
    ecn_enabled: bool,
    state: State,
    probability: f64,
    delay_old_s: f64,
    burst: Span,
    quiet: Span,
    spacing: Accumulator,
    stream: Stream,
}

impl DocsisPie {
    /// DOCSIS-PIE from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let (mean_packet, min_packet) = (f64::from(values.size("mean_packet")), f64::from(values.size("min_packet")));
        Self {
            clock: Clock::every(values.time("tupdate")),
            tupdate: values.time("tupdate"),
            rate: site.rate,
            limit: Limit::of(values),
            controller: Controller::new(values, &HEAVY),
            max_burst: values.time("max_burst"),
            burst_reset: values.time("burst_reset"),
            mean_packet,
            largest: LARGEST * mean_packet / min_packet,
            latency_low_s: values.time("latency_low").secs_f64(),
            latency_high_s: values.time("latency_high").secs_f64(),
            ecn_enabled: values.flag("ecn"),
            state: State::Inactive,
            probability: 0.0,
            delay_old_s: 0.0,
            burst: Span::ZERO,
            quiet: Span::ZERO,
            spacing: Accumulator::default(),
            stream: site.stream,
        }
    }

    /// Whether less than a third of the limit waits.
    fn is_small(&self, backlog: Backlog) -> bool {
        match self.limit {
            Limit::Packets(limit) => 3 * u64::from(backlog.packets) < u64::from(limit),
            Limit::Bytes(limit) => 3 * backlog.bytes < limit,
        }
    }

    /// Whether this packet is signalled (`drop_early`).
    fn is_signalled(&mut self, arrival: &Arrival) -> bool {
        if self.burst > Span::ZERO {
            return false;
        }
        // Before anything else is asked, also while the law is inactive.
        if self.probability == 0.0 {
            self.spacing.reset();
        }
        if self.state == State::Inactive {
            if self.is_small(arrival.backlog) {
                return false;
            }
            self.state = State::Quiescent;
        }
        let p = (self.probability * f64::from(arrival.size) / self.mean_packet).min(LARGEST);
        self.spacing.add(p);
        let is_short = self.controller.spares(self.delay_old_s, self.probability);
        if is_short || arrival.backlog.bytes as f64 <= 2.0 * self.mean_packet {
            return false;
        }
        self.spacing.is_signalled(p, &mut self.stream)
    }

    /// Takes a step of the probability (`calculate_drop_prob`).
    fn step(&mut self, delay_s: f64) {
        let old_s = std::mem::replace(&mut self.delay_old_s, delay_s);
        if self.burst > Span::ZERO {
            self.probability = 0.0;
            self.burst = self.burst.saturating_sub(self.tupdate);
            self.update_state(delay_s, old_s);
            return;
        }
        self.probability += self.controller.step(self.probability, delay_s, old_s);
        if delay_s < self.latency_low_s && old_s < self.latency_low_s {
            self.probability *= 0.98;
        } else if delay_s > self.latency_high_s {
            self.probability += 0.02;
        }
        self.probability = self.probability.clamp(0.0, self.largest);
        self.update_state(delay_s, old_s);
    }

    fn update_state(&mut self, delay_s: f64, old_s: f64) {
        let is_quiet = self.controller.is_quiet(self.probability, delay_s, old_s) && self.burst == Span::ZERO;
        match self.state {
            State::Active if is_quiet => {
                self.state = State::Quiescent;
                self.quiet = Span::ZERO;
            }
            State::Quiescent if is_quiet => {
                self.quiet = self.quiet + self.tupdate;
                if self.quiet > self.burst_reset {
                    self.state = State::Inactive;
                    self.quiet = Span::ZERO;
                }
            }
            _ => self.quiet = Span::ZERO,
        }
    }
}

impl Law for DocsisPie {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        if !self.is_signalled(arrival) {
            return Verdict::Pass;
        }
        if self.state == State::Quiescent {
            self.state = State::Active;
            self.burst = self.max_burst;
        }
        Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY)
    }

    fn on_overflow(&mut self, _arrival: &Arrival, _now: Time) {
        self.spacing.reset();
    }

    fn next_tick(&self) -> Time {
        self.clock.next()
    }

    fn tick(&mut self, backlog: Backlog, now: Time) {
        if self.clock.take(now) {
            self.step(backlog.bytes as f64 * 8.0 / self.rate.bps_f64());
        }
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            probability: Some(self.probability.min(LARGEST)),
            control: Some(self.probability),
            tracked_flows: None,
        }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        let Self { state, probability, delay_old_s, burst, quiet, spacing, .. } = *self;
        let clock = fresh.clock.instead_of(self.clock, now);
        *self = Self { state, probability, delay_old_s, burst, quiet, spacing, clock, ..fresh };
    }
}

impl LawRow for DocsisPie {
    const ROW: Row = Row {
        name: "docsis_pie",
        aliases: &[],
        doc: "PIE as cable modems have it: waiting time from the known rate, probability scaled by size.",
        source: "RFC 8034",
        year: 2014,
        marks: true,
        params: PARAMS,
        fixed: &["dialect"],
        gauges: &[
            Gauge::probability("Probability of a packet of mean size, 0.85 at most."),
            Gauge::control("unbounded", "", "The same probability without that bound."),
        ],
        causes: &[],
        uses_rate: registry::always,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }
}
