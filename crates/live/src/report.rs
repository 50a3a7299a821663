//! What a run of the router leaves behind.

use crate::lateness::{Budget, Lateness};
use crate::network::{Held, Ingress, Network};
use aqm::Cause;
use base::Time;
use serde_json::{Value, json};

/// The counts of a run, and how punctual it was.
#[derive(Clone, Debug)]
pub struct Report {
    /// `real` or `virtual`.
    pub clock: &'static str,
    /// When it ended.
    pub ended: Time,
    /// Left to right, and right to left.
    pub directions: [Direction; 2],
    /// How many flows were seen.
    pub flows: u64,
    /// How late packets left, and stalls.
    pub lateness: Lateness,
    /// What the run may be late by.
    pub budget: Budget,
}

/// One direction.
#[derive(Clone, Debug)]
pub struct Direction {
    /// What came in.
    pub ingress: Ingress,
    /// What went through the bottleneck.
    pub egress: aqm::Counts,
    /// What was held when the run ended.
    pub held: Held,
    /// What the hosts were handed.
    pub written: u64,
    /// What the hosts' interface did not take.
    pub untaken: u64,
    /// Mean wait in the bottleneck's queue, seconds; `None` if nothing left it.
    pub queue_delay_mean_s: Option<f64>,
    /// The wait that 99 % did not exceed, seconds.
    pub queue_delay_p99_s: Option<f64>,
    /// Throughput over rate, IP packets.
    pub utilisation: f64,
}

impl Direction {
    /// What happened on the way from `side` in the `ended` since the start of the run.
    pub fn new(network: &Network, side: usize, written: u64, untaken: u64, ended: Time) -> Self {
        let counted = network.meter(side).window();
        let carries = network.rate(side).bps_f64() * ended.secs_f64();
        Self {
            ingress: network.ingress(side),
            egress: *network.counts(side),
            held: network.held(side),
            written,
            untaken,
            queue_delay_mean_s: counted.wait_mean_s(),
            queue_delay_p99_s: counted.wait_quantile_s(0.99),
            utilisation: if carries > 0.0 { counted.delivered_bytes as f64 * 8.0 / carries } else { 0.0 },
        }
    }

    fn to_json(&self, name: &str) -> Value {
        let by_cause = |counts: &[u64]| -> Value {
            Cause::ALL.iter().zip(counts).map(|(cause, count)| (cause.name().to_owned(), json!(count))).collect()
        };
        json!({
            "direction": name,
            "read": self.ingress.read,
            "malformed": self.ingress.malformed,
            "no_room": self.ingress.no_room,
            "offered": self.egress.offered,
            "delivered": self.egress.delivered,
            "dropped": by_cause(&self.egress.dropped),
            "marked": by_cause(&self.egress.marked),
            "held": { "before": self.held.before, "within": self.held.within, "after": self.held.after },
            "written": self.written,
            "untaken": self.untaken,
            "queue_delay_mean_s": self.queue_delay_mean_s,
            "queue_delay_p99_s": self.queue_delay_p99_s,
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

    /// All of it, as JSON.
    pub fn to_json(&self) -> Value {
        let us = |span: base::Span| span.ns() as f64 * 1e-3;
        let late = &self.lateness;
        let void = self.void();
        json!({
            "clock": self.clock,
            "duration_s": self.ended.secs_f64(),
            "flows": self.flows,
            "directions": [self.directions[0].to_json("forward"), self.directions[1].to_json("reverse")],
            "lateness": {
                "packets": late.packets(),
                "p50_us": us(late.quantile(0.5)),
                "p90_us": us(late.quantile(0.9)),
                "p99_us": us(late.quantile(0.99)),
                "p999_us": us(late.quantile(0.999)),
                "max_us": us(late.most()),
                "stalls": late.stalls(),
                "longest_away_us": us(late.longest()),
            },
            "budget": {
                "fraction": self.budget.fraction,
                "usual_us": us(self.budget.usual),
                "most_us": us(self.budget.most),
                "fraction_within": late.within(self.budget.usual),
                "is_kept": void.is_none(),
                "void": void,
            },
        })
    }
}
