//! RIO-PS is RIO with preferential treatment to short flows. The first packets of each flow are tagged short (IN),
//! later packets long (OUT). A congested link loses the long ones first, because a short flow that loses a packet waits
//! for a timeout, and a long flow does not.
//!
//! Source: Guo and Matta, "The War Between Mice and Elephants", ICNP 2001.
//!
//! | paper | here |
//! |---|---|
//! | packets of a flow so far, `L_t` | `sent`, `threshold` |
//! | `T_u`, `T_c`, `SLR` | `tu`, `tc`, `slr` |
//! | the core's RIO | [`pair`] |
//!
//! Packets here carry no tag, so that the edge's table of flows stands before the queue of the core. Every `tc` the
//! threshold moves by a packet: up while there are fewer than `slr` short flows for each long one, down while there are
//! more. A flow is short while it has sent no more than the threshold, and active for `tu` after each packet.
//!
//! Deviations. A flow is forgotten exactly `tu` after its last packet, not at the next of the edge's rounds. The step
//! of a packet and the bounds of the threshold are not the paper's, nor is its first value. Both averages decay while
//! the link is idle, until a packet of either class arrives. With 1,048,576 flows the table is full (48 MB): packets of
//! further ones are short and not counted, until others are forgotten.

use super::clock::Clock;
use super::flows::FlowTable;
use super::rio::pair::{self, Pair};
use super::{Arrival, Departure, Gauges, Law, Verdict, red};
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{FlowKey, Rate, Span, Time};

const PAPER: &str = "Guo and Matta 2001";

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen"),
    registry::ECN,
    pair::DIALECT,
    Param {
        name: "threshold",
        kind: Kind::Integer,
        default: "8",
        range: (1.0, 1e6),
        doc: "Packets of a flow that are short, to begin with (L_t).",
        source: "not published as such; with their headers what the nine responses in ten up to 10 kB need",
    },
    Param {
        name: "slr",
        kind: Kind::Number,
        default: "3",
        range: (0.0, 1e6),
        doc: "Active short flows for each active long one that the threshold is moved towards; 0 leaves it.",
        source: PAPER,
    },
    time("tu", "1s", "Silence after which a flow has ended."),
    time("tc", "10s", "Time between two steps of the threshold."),
    computed_length(
        pair::MIN_IN,
        "Average queue of short packets below which none of them is signalled; computed: 0.15 limit.",
    ),
    computed_length(
        pair::MAX_IN,
        "Average queue of short packets at which their probability reaches its maximum, in the unit of min_in; \
         computed: 0.35 limit.",
    ),
    Param { default: "0.05", source: PAPER, ..pair::PROBABILITY_IN },
    computed_length(pair::MIN_OUT, "Average queue below which no long packet is signalled; computed: 0.15 limit."),
    computed_length(
        pair::MAX_OUT,
        "Average queue at which the probability of long packets reaches its maximum, in the unit of min_out; computed: \
         0.5 limit.",
    ),
    Param { default: "0.1", source: PAPER, ..pair::PROBABILITY_OUT },
    Param { default: "0.001953125", source: "Guo and Matta 2001: 1/512", ..red::param::WQ },
    pair::SHARED[0],
    pair::SHARED[1],
    pair::SHARED[2],
    pair::SHARED[3],
    pair::SHARED[4],
    pair::SHARED[5],
    registry::CAPACITY,
];

const fn time(name: &'static str, default: &'static str, doc: &'static str) -> Param {
    Param { name, kind: Kind::Time, default, range: (1e-3, 1e4), doc, source: PAPER }
}

const fn computed_length(param: Param, doc: &'static str) -> Param {
    Param { default: "", doc, source: PAPER, ..param }
}

/// Computes from the limit the thresholds that were not given.
pub fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    let limit = values.length("limit");
    for (name, share) in [("min_in", 0.15), ("max_in", 0.35), ("min_out", 0.15), ("max_out", 0.5)] {
        values.fill(name, Value::Length(limit.times(share)));
    }
    pair::resolve(values, rate)
}

/// How many flows the table holds at most.
const MOST_FLOWS: usize = 1 << 20;

/// An active flow.
#[derive(Clone, Copy, Debug)]
struct Active {
    sent: u64,
    last: Time,
}

/// The law.
#[derive(Clone, Debug)]
pub struct RioPs {
    reds: Pair,
    flows: FlowTable<Active>,
    threshold: u64,
    /// The threshold that was given to begin with.
    first_threshold: u64,
    slr: f64,
    tu: Span,
    sweeps: Clock,
    steps: Clock,
}

impl RioPs {
    /// RIO-PS from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        Self {
            reds: Pair::new(values, site.rate, site.stream),
            flows: FlowTable::with_room_for(64),
            threshold: values.integer("threshold"),
            first_threshold: values.integer("threshold"),
            slr: values.number("slr"),
            tu: values.time("tu"),
            sweeps: Clock::every(values.time("tu")),
            steps: Clock::every(values.time("tc")),
        }
    }

    /// How many packets of a flow are short, at present.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Counts a packet of `flow`. Returns whether it is short.
    fn tag(&mut self, flow: FlowKey, now: Time) -> bool {
        let fresh = Active { sent: 0, last: now };
        if self.flows.len() >= MOST_FLOWS && self.flows.get(flow).is_none() {
            return true;
        }
        let active = self.flows.get_or_insert(flow, fresh);
        if now.since(active.last) >= self.tu {
            *active = fresh;
        }
        active.sent += 1;
        active.last = now;
        active.sent <= self.threshold
    }

    fn sweep(&mut self, now: Time) {
        let tu = self.tu;
        self.flows.retain(|_, active| now.since(active.last) < tu);
    }

    /// Moves the threshold towards the wanted ratio.
    fn step(&mut self) {
        let short = self.flows.iter().filter(|(_, active)| active.sent <= self.threshold).count();
        let long = self.flows.len() - short;
        let wanted = self.slr * long as f64;
        if (short as f64) < wanted {
            self.threshold += 1;
        } else if short as f64 > wanted && self.slr > 0.0 {
            self.threshold = (self.threshold - 1).max(1);
        }
    }
}

impl Law for RioPs {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        let is_short = self.tag(arrival.flow, now);
        self.reds.judge(arrival, is_short, now)
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        let is_short = self.tag(arrival.flow, now);
        self.reds.overflow(arrival, is_short, now);
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        self.reds.depart(departure, now);
        Verdict::Pass
    }

    fn on_idle(&mut self, now: Time) {
        self.reds.idle_from(now);
    }

    fn next_tick(&self) -> Time {
        self.sweeps.next().min(self.steps.next())
    }

    fn tick(&mut self, _backlog: Backlog, now: Time) {
        let is_step = self.steps.take(now);
        if self.sweeps.take(now) || is_step {
            self.sweep(now);
        }
        if is_step {
            self.step();
        }
    }

    fn follows_packets(&self) -> bool {
        true
    }

    fn gauges(&self) -> Gauges {
        Gauges { tracked_flows: Some(self.flows.len() as u32), ..self.reds.gauges() }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let mut reds = self.reds.clone();
        reds.retune(values, rate);
        let mut fresh = Self::new(values, Site { rate, stream: reds.stream().clone() });
        std::mem::swap(&mut fresh.flows, &mut self.flows);
        let threshold = if fresh.first_threshold == self.first_threshold { self.threshold } else { fresh.threshold };
        let sweeps = fresh.sweeps.instead_of(self.sweeps, now);
        let steps = fresh.steps.instead_of(self.steps, now);
        *self = Self { reds, threshold, sweeps, steps, ..fresh };
    }
}

impl LawRow for RioPs {
    const ROW: Row = Row {
        name: "rio_ps",
        aliases: &[],
        doc: "RIO that tags the first packets of each flow IN, so that short flows lose nothing while long ones do.",
        source: PAPER,
        year: 2001,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet"],
        gauges: &[pair::GAUGES[0], pair::GAUGES[1], Gauge::flows("Active flows.")],
        causes: &[],
        uses_rate: registry::always,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }

    fn own_bytes(_values: &Values) -> usize {
        pair::TAGS + FlowTable::<Active>::bytes_for(64)
    }
}
