//! PI is a proportional-integral controller. At a fixed frequency it moves the probability of a signal by how far the
//! queue is from its reference now, and by how far it was before. It settles only with the queue at its reference.
//!
//! Source: Hollot, Misra, Towsley and Gong, "On Designing Improved Controllers for AQM Routers Supporting TCP Flows",
//! INFOCOM 2001; "Analysis and Design of Controllers for AQM Routers Supporting TCP Flows", IEEE TAC 47(6), 2002.
//!
//! | paper | here |
//! |---|---|
//! | `p(kT) = a (q(kT) - q_ref) - b (q((k-1)T) - q_ref) + p((k-1)T)` | [`Pi::tick`] |
//! | sampling frequency 1/T | `w` (ns-2's name) |
//! | `C`, `N`, `R+` | the link, `flows`, `rtt` |
//! | `K`, `z`, crossover `beta / R+` | [`design`] |
//!
//! Gains are in packets: where bytes are measured, `mean_packet` bytes are one packet. An ECN-capable packet is marked
//! at any probability; the source knows no threshold above which to drop it (nor does ns-2).
//!
//! Deviations. None known from the paper. Where steps up and down ought to cancel, rounding may leave a probability
//! such as 1e-17 instead of 0. Below 2^-53 it is as good as none: random numbers are multiples of 2^-53, and only a 0
//! among them would signal.

use super::clock::Clock;
use super::measure::{self, Measure};
use super::{Arrival, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Stream, Time};

const PAPER: &str = "Hollot, Misra, Towsley and Gong 2001";

/// The gains that the paper designed for 3750 packets a second, 60 flows and round trips up to 246 ms. Since then
/// everybody has used them on every link.
const PUBLISHED: (f64, f64) = (1.822e-5, 1.816e-5);

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen; the paper's example has 800 packets"),
    registry::ECN,
    Param {
        name: "dialect",
        kind: Kind::Word(&["paper", "ns2"]),
        default: "paper",
        range: Param::ANY,
        doc: "Whose form: ns-2's is the paper's.",
        source: "Hollot, Misra, Towsley and Gong 2001; ns-2.35 queue/pi.cc",
    },
    Param {
        name: "qref",
        kind: Kind::LengthOrTime,
        default: "50p",
        range: (0.0, 1e9),
        doc: "The queue to settle at. In byte mode packets are mean packets; a time is what the link sends in it.",
        source: "ns-2 qref_; the paper's example has 200, the UNC studies 24 and 240",
    },
    Param {
        name: "a",
        kind: Kind::Number,
        default: "",
        range: (1e-24, 1.0),
        doc: "Gain on the queue now, per packet. Computed: 1.822e-5, or from flows and rtt if they are given.",
        source: PAPER,
    },
    Param {
        name: "b",
        kind: Kind::Number,
        default: "",
        range: (0.0, 1.0),
        doc: "Gain on the queue one period ago, per packet, less than a. Computed: 1.816e-5, or as a.",
        source: PAPER,
    },
    Param {
        name: "w",
        kind: Kind::Frequency,
        default: "170hz",
        range: (0.1, 1e6),
        doc: "How often the probability is computed.",
        source: "ns-2 w_; the paper's example has 160",
    },
    measure::mode("packet", "Hollot et al. 2001; Le et al. 2007 run it in byte mode"),
    measure::MEAN_PACKET,
    measure::WEIGHT_PACKET,
    Param {
        name: "flows",
        kind: Kind::Number,
        default: "",
        range: (1.0, 1e9),
        doc: "Smallest number of long-lived flows to be stable with (N-), to compute a and b from; absent by default.",
        source: PAPER,
    },
    Param {
        name: "rtt",
        kind: Kind::Time,
        default: "",
        range: (1e-6, 100.0),
        doc: "Largest round-trip time to be stable with (R+), to compute a and b from; absent by default.",
        source: PAPER,
    },
    Param {
        name: "beta",
        kind: Kind::Number,
        default: "0.13",
        range: (0.001, 0.85),
        doc: "Crossover frequency times rtt, to compute a and b with: larger is faster and less stable.",
        source: "the paper's example: 0.53 rad/s at 246 ms; above 0.85 no phase margin is left",
    },
    registry::CAPACITY,
];

/// Whether the gains, or a length written as a time, is computed from the link's rate.
fn uses_rate(values: &Values) -> bool {
    let designs = !values.0.contains_key("a") && values.0.contains_key("flows");
    designs || values.find_time("qref").is_some()
}

/// Computes the gains that were not given.
pub fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    match (values.find_number("a"), values.find_number("b")) {
        (Some(a), Some(b)) if b < a => return Ok(()),
        (Some(a), Some(_)) => return Err(Refusal::new("b", format!("less than a, {a}"))),
        (Some(_), None) => return Err(Refusal::new("b", "to be given together with a")),
        (None, Some(_)) => return Err(Refusal::new("a", "to be given together with b")),
        (None, None) => {}
    }
    let (a, b) = match (values.find_number("flows"), values.find_time("rtt")) {
        (Some(flows), Some(rtt)) => design(
            measure::capacity(values, rate),
            flows,
            rtt.secs_f64(),
            values.number("beta"),
            1.0 / values.frequency("w"),
        ),
        (None, None) => PUBLISHED,
        (Some(_), None) => return Err(Refusal::new("rtt", "to be given together with flows")),
        (None, Some(_)) => return Err(Refusal::new("flows", "to be given together with rtt")),
    };
    if b < 0.0 {
        return Err(Refusal::new("w", "a higher frequency: the loop of these flows and rtt is faster than it"));
    }
    values.fill("a", Value::Number(a));
    values.fill("b", Value::Number(b));
    Ok(())
}

/// The gains for a link of `capacity` packets a second, at least `flows` flows and round trips of at most `rtt_s`,
/// sampled every `period_s`. The controller's zero cancels the window's pole. Its gain puts the crossover at
/// `beta / rtt`. The bilinear transform makes it discrete (TAC 2002, Proposition 2).
pub fn design(capacity: f64, flows: f64, rtt_s: f64, beta: f64, period_s: f64) -> (f64, f64) {
    let zero = 2.0 * flows / (rtt_s * rtt_s * capacity);
    let loop_gain = rtt_s * capacity / (2.0 * flows);
    // |1 + j w R| at the crossover, over the plant's gain (R C)^3 / (2 N)^2.
    let gain = beta / rtt_s * (1.0 + beta * beta).sqrt() / (loop_gain * loop_gain * rtt_s * capacity);
    (gain * (1.0 / zero + period_s / 2.0), gain * (1.0 / zero - period_s / 2.0))
}

/// The law.
#[derive(Clone, Debug)]
pub struct Pi {
    measure: Measure,
    clock: Clock,
    qref: f64,
    a: f64,
    b: f64,
    ecn_enabled: bool,
    probability: f64,
    queue_before: f64,
    stream: Stream,
}

impl Pi {
    /// PI from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let qref = values.length_at("qref", site.rate);
        let measure = Measure::new(values, qref);
        Self {
            measure,
            clock: Clock::at_hz(values.frequency("w")),
            qref: measure.length(qref),
            a: values.number("a"),
            b: values.number("b"),
            ecn_enabled: values.flag("ecn"),
            probability: 0.0,
            queue_before: 0.0,
            stream: site.stream,
        }
    }
}

impl Law for Pi {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        if super::is_drawn(&mut self.stream, self.probability * self.measure.weight(arrival.size)) {
            return Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY);
        }
        Verdict::Pass
    }

    fn next_tick(&self) -> Time {
        self.clock.next()
    }

    fn tick(&mut self, backlog: Backlog, now: Time) {
        if self.clock.take(now) {
            let queue = self.measure.queue(backlog);
            let step = self.a * (queue - self.qref) - self.b * (self.queue_before - self.qref);
            self.probability = (self.probability + step).clamp(0.0, 1.0);
            self.queue_before = queue;
        }
    }

    fn is_at_rest(&self) -> bool {
        // What a tick adds is then (b - a) times the reference.
        self.probability == 0.0 && self.queue_before == 0.0 && self.a >= self.b
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            probability: Some(self.probability),
            control: Some(self.queue_before - self.qref),
            tracked_flows: None,
        }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        let Self { probability, queue_before, .. } = *self;
        *self = Self { probability, queue_before, clock: fresh.clock.instead_of(self.clock, now), ..fresh };
    }
}

impl LawRow for Pi {
    const ROW: Row = Row {
        name: "pi",
        aliases: &[],
        doc: "Controls the queue to a reference length by an integrating controller.",
        source: PAPER,
        year: 2001,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet", "weight_packet", "flows", "rtt", "beta"],
        gauges: &[
            Gauge::probability("Probability of a packet of mean size."),
            Gauge::control("error", "packets", "Distance of the queue from qref at the last update."),
        ],
        causes: &[],
        uses_rate,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_design_rule_gives_the_published_gains() {
        // The paper's example. Its K = 9.64e-6 belongs to a crossover of 0.52 rad/s where the text says 0.53: the rule
        // gives 2 % more, K = 9.80e-6, than what was published.
        let (a, b) = design(3750.0, 60.0, 0.246, 0.53 * 0.246, 1.0 / 160.0);
        assert!((a / PUBLISHED.0 - 1.0).abs() < 0.021 && (b / PUBLISHED.1 - 1.0).abs() < 0.021, "{a} {b}");
    }

    #[test]
    fn the_design_rule_at_other_points() {
        // Worked by hand from the formulas, to the digits shown.
        for (flows, a, b) in [(100.0, 2.686_82e-6, 2.682_78e-6), (300.0, 8.072_60e-6, 8.036_22e-6)] {
            let designed = design(12_500.0, flows, 0.25, 0.13, 1.0 / 170.0);
            assert!((designed.0 / a - 1.0).abs() < 2e-6 && (designed.1 / b - 1.0).abs() < 2e-6, "{designed:?}");
        }
    }
}
