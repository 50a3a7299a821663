//! A report has what a run of the router leaves behind.

use crate::lateness::{Budget, Lateness};
use crate::network::{Held, Ingress, Network};
use crate::urgency::{Class, Waited};
use aqm::Cause;
use base::{Span, Time};
use record::{Crossing, Meter};
use serde_json::{Value, json};

/// The counts of a run, and how punctual it was.
#[derive(Clone, Debug)]
pub struct Report {
    /// `real` or `virtual`.
    pub clock: &'static str,
    /// When it ended.
    pub ended: Time,
    /// How much of the measured window it went through.
    pub measured: Span,
    /// Left to right, and right to left.
    pub directions: [Direction; 2],
    /// What was counted at each port within the measured window.
    pub meters: Vec<Meter>,
    /// What packets waited on their routes, where there are several links.
    pub crossings: Vec<Crossing>,
    /// How many flows were seen, and how many of these nobody had announced.
    pub flows: u64,
    /// How many of these no host had announced, so that their delay was drawn.
    pub flows_drawn: u64,
    /// How late packets left, and stalls.
    pub lateness: Lateness,
    /// What the run may be late by.
    pub budget: Budget,
    /// How urgent the router was to the scheduler; `None` in virtual time.
    pub class: Option<Class>,
    /// How long it waited for a processor, and how often; `None` where the kernel does not say.
    pub waited: Option<Waited>,
    /// Losses and marks of which no row was written, since too many waited to be.
    pub drops_missed: u64,
}

/// One direction.
#[derive(Clone, Debug)]
pub struct Direction {
    /// What came in.
    pub ingress: Ingress,
    /// What went through the links.
    pub egress: aqm::Counts,
    /// What was held when the run ended.
    pub held: Held,
    /// What the hosts were handed.
    pub written: u64,
    /// What the hosts' interface did not take.
    pub untaken: u64,
    /// What was counted at the first link within the measured window.
    pub meter: Meter,
    /// Throughput over rate there, IP packets.
    pub utilisation: f64,
}

impl Direction {
    /// What happened on the way from `side` in the `measured` part of the window.
    pub fn new(network: &Network, side: usize, written: u64, untaken: u64, measured: Span) -> Self {
        let meter = network.meters()[side].clone();
        let carries = network.capacity_bps(side) * measured.secs_f64();
        let bits = meter.window().delivered_bytes as f64 * 8.0;
        Self {
            ingress: network.ingress(side),
            egress: network.counts(side),
            held: network.held(side),
            written,
            untaken,
            meter,
            utilisation: if carries > 0.0 { bits / carries } else { 0.0 },
        }
    }

    fn to_json(&self, name: &str) -> Value {
        let by_cause = |counts: &[u64]| -> Value {
            Cause::ALL.iter().zip(counts).map(|(cause, count)| (cause.name().to_owned(), json!(count))).collect()
        };
        let window = self.meter.window();
        json!({
            "direction": name,
            "read": self.ingress.read,
            "malformed": self.ingress.malformed,
            "no_room": self.ingress.no_room,
            "lost_on_path": self.ingress.lost,
            "offered": self.egress.offered,
            "delivered": self.egress.delivered,
            "dropped": by_cause(&self.egress.dropped),
            "marked": by_cause(&self.egress.marked),
            "held": { "before": self.held.before, "within": self.held.within, "after": self.held.after },
            "written": self.written,
            "untaken": self.untaken,
            "queue_delay_mean_s": window.wait_mean_s(),
            "queue_delay_p99_s": window.wait_quantile_s(0.99),
            "utilisation": self.utilisation,
        })
    }

    /// Asserts that what left the bottleneck was written, was not taken or is held.
    pub fn assert_conserved(&self) {
        let (delivered, Held { after, .. }) = (self.egress.delivered, self.held);
        let (written, untaken) = (self.written, self.untaken);
        assert!(
            delivered == written + untaken + after,
            "packets are conserved: delivered {delivered} = written {written} + not taken {untaken} \
             + on their way {after}"
        );
    }
}

impl Report {
    /// Why the run is void; `None` if it was punctual.
    pub fn void(&self) -> Option<String> {
        self.lateness.breaks(&self.budget)
    }

    /// All of it, as JSON. Counts and lateness are of the whole run; waits and utilisation of the measured window.
    pub fn to_json(&self) -> Value {
        let late = &self.lateness;
        let void = self.void();
        let backlogged = [0, 1].map(|side| late.pace(side).backlogged().secs_f64());
        let both = |of: fn(&crate::pace::Pace) -> Option<f64>| [0, 1].map(|side| of(late.pace(side)));
        json!({
            "clock": self.clock,
            "void": void,
            "duration_s": self.ended.secs_f64(),
            "measured_s": self.measured.secs_f64(),
            "flows": self.flows,
            "flows_drawn": self.flows_drawn,
            "directions": [self.directions[0].to_json("forward"), self.directions[1].to_json("reverse")],
            "packets": late.packets(),
            "lateness_s": {
                "p50": late.quantile(0.5).secs_f64(),
                "p90": late.quantile(0.9).secs_f64(),
                "p99": late.quantile(0.99).secs_f64(),
                "p999": late.quantile(0.999).secs_f64(),
                "max": late.most().secs_f64(),
            },
            "late_share": 1.0 - late.within(self.budget.usual),
            "unread_max_s": late.longest_unread().secs_f64(),
            "drops_missed": self.drops_missed,
            "stalls": late.stalls(),
            "longest_away_s": late.longest().secs_f64(),
            "scheduling": self.class.map(Class::name),
            "waited_for_processor_s": self.waited.map(|waited| waited.ns as f64 * 1e-9),
            "waited_for_processor_worst_second_s": late.longest_waited().secs_f64(),
            "times_woken": self.waited.map(|waited| waited.times),
            "rate_error": both(crate::pace::Pace::error),
            "rate_error_worst": both(crate::pace::Pace::worst),
            "backlogged_s": backlogged,
            "budget": {
                "lateness_share": self.budget.fraction,
                "lateness_s": self.budget.usual.secs_f64(),
                "lateness_max_s": self.budget.most.secs_f64(),
                "rate_error": self.budget.rate_error,
            },
        })
    }
}
