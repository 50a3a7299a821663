//! These measures are of one direction of a link.

use super::Row;
use crate::meter::Counts;
use crate::seconds::seconds;
use aqm::{Cause, OwnCause};
use serde_json::{Map, Value, json};

/// What the measures of one direction of a link are worked out of.
pub struct Way<'a> {
    /// What was counted.
    pub counts: &'a Counts,
    /// Causes of the discipline's own.
    pub causes: &'a [OwnCause],
    /// What the link carries, in the mean over the window, bits a second.
    pub capacity_bps: f64,
    /// Length of the measured window, seconds.
    pub measured_s: f64,
}

impl Way<'_> {
    fn bits(&self) -> f64 {
        self.counts.delivered_bytes as f64 * 8.0
    }

    fn wire_bits(&self) -> f64 {
        self.counts.wire_bytes as f64 * 8.0
    }

    fn of_offered(&self, packets: u64) -> Option<f64> {
        (self.counts.offered > 0).then(|| packets as f64 / self.counts.offered as f64)
    }
}

fn by_cause(counts: &[u64; Cause::ALL.len()]) -> Value {
    let named = Cause::ALL.iter().map(|&cause| (cause.name().to_owned(), json!(counts[cause.index()])));
    Value::Object(named.collect::<Map<_, _>>())
}

/// The counts of each cause of the discipline's own.
fn by_own_cause(way: &Way<'_>) -> Value {
    let counted = |cause: Cause| way.counts.own.iter().find(|(known, _)| *known == cause).map_or([0; 2], |(_, n)| *n);
    let told = way.causes.iter().map(|own| {
        let [dropped, marked] = counted(own.cause);
        let kind = own.cause.kind().name();
        (own.cause.name().to_owned(), json!({ "kind": kind, "dropped": dropped, "marked": marked }))
    });
    Value::Object(told.collect())
}

/// The parameters of a measure that is a quotient of sums over both directions unless one is named.
const BOTH: Option<&str> = Some("`direction` both, `link`");
/// The parameters of a measure that one direction has by itself.
const ONE: Option<&str> = Some("`direction` forward, `link`");

/// A function that works out one number of a direction.
pub type OfWay = fn(&Way<'_>) -> Value;

/// The rows, as the summary has them.
pub const ROWS: &[Row<OfWay>] = &[
    Row {
        name: "utilisation",
        title: "utilisation",
        unit: "share of the link",
        formula: "bits of IP packets sent ÷ (rate × window); of a link that changes, ÷ what it could have sent in the window; of a trace, ÷ its mean, so that a rich part of it can be above 1; a packet that began before the window or an outage counts where it ends, so that it can be above 1",
        source: "`delivered_bytes` × 8, rates of the scenario",
        parameters: BOTH,
        value: |way| json!(way.bits() / (way.capacity_bps * way.measured_s)),
    },
    Row {
        name: "busy_ratio",
        title: "busy",
        unit: "share of the link",
        formula: "bits of IP packets sent, with what `link.overhead` and the cells of `link.framing` add to each ÷ (rate × \
                  window): the share of time in which the link was busy; of a link that changes, ÷ what it could \
                  have sent in the window, and of a trace, ÷ its mean, as for `utilisation`: a share of that and not of \
                  time",
        source: "the sizes of the packets sent, `link.overhead`, `link.framing`",
        parameters: None,
        value: |way| json!(way.wire_bits() / (way.capacity_bps * way.measured_s)),
    },
    Row {
        name: "throughput_bps",
        title: "throughput",
        unit: "bit/s",
        formula: "bits of IP packets sent ÷ window; of both directions the sum",
        source: "`delivered_bytes` × 8",
        parameters: BOTH,
        value: |way| json!(way.bits() / way.measured_s),
    },
    Row {
        name: "offered_packets",
        title: "offered",
        unit: "packets",
        formula: "packets that arrived at the discipline",
        source: "`offered_packets`",
        parameters: None,
        value: |way| json!(way.counts.offered),
    },
    Row {
        name: "delivered_packets",
        title: "delivered",
        unit: "packets",
        formula: "packets whose last bit left",
        source: "`delivered_packets`",
        parameters: None,
        value: |way| json!(way.counts.delivered),
    },
    Row {
        name: "dropped_packets",
        title: "lost",
        unit: "packets",
        formula: "packets lost",
        source: "`dropped_packets`",
        parameters: None,
        value: |way| json!(way.counts.dropped_total()),
    },
    Row {
        name: "marked_packets",
        title: "marked",
        unit: "packets",
        formula: "packets marked",
        source: "`marked_packets`",
        parameters: None,
        value: |way| json!(way.counts.marked_total()),
    },
    Row {
        name: "dropped_by_cause",
        title: "lost by cause",
        unit: "packets",
        formula: "packets lost, by [cause](glossary.md#cause)",
        source: "`cause` of drops.parquet",
        parameters: None,
        value: |way| by_cause(&way.counts.dropped),
    },
    Row {
        name: "marked_by_cause",
        title: "marked by cause",
        unit: "packets",
        formula: "packets marked, by [cause](glossary.md#cause)",
        source: "`cause` of drops.parquet",
        parameters: None,
        value: |way| by_cause(&way.counts.marked),
    },
    Row {
        name: "own_causes",
        title: "own causes",
        unit: "packets",
        formula: "packets lost and marked for each [cause of the discipline's own](laws.md#causes-of-its-own), which are counted in its kind too",
        source: "`cause` of drops.parquet",
        parameters: None,
        value: by_own_cause,
    },
    Row {
        name: "loss_ratio",
        title: "loss",
        unit: "share of packets",
        formula: "packets lost ÷ packets offered",
        source: "`dropped_packets`, `offered_packets`",
        parameters: BOTH,
        value: |way| json!(way.of_offered(way.counts.dropped_total())),
    },
    Row {
        name: "mark_ratio",
        title: "marked",
        unit: "share of packets",
        formula: "packets marked ÷ packets offered",
        source: "`marked_packets`, `offered_packets`",
        parameters: BOTH,
        value: |way| json!(way.of_offered(way.counts.marked_total())),
    },
    Row {
        name: "packet_mean_bytes",
        title: "mean packet",
        unit: "bytes",
        formula: "bytes sent ÷ packets sent",
        source: "`delivered_bytes`, `delivered_packets`",
        parameters: None,
        value: |way| {
            let counts = way.counts;
            json!((counts.delivered > 0).then(|| counts.delivered_bytes as f64 / counts.delivered as f64))
        },
    },
    Row {
        name: "queue_delay_mean_s",
        title: "mean queueing delay",
        unit: "s",
        formula: "sum of the waits of the packets that left ÷ their number",
        source: "`queue_delay_sum_ns`, `delivered_packets`",
        parameters: BOTH,
        value: |way| json!(way.counts.wait_mean_s()),
    },
    Row {
        name: "queue_delay_sd_s",
        title: "sd of queueing delay",
        unit: "s",
        formula: "√(mean of the squares of the waits − square of their mean), over the packets that left",
        source: "waits of packets",
        parameters: ONE,
        value: |way| json!(way.counts.wait_sd_s()),
    },
    Row {
        name: "queue_delay_p50_s",
        title: "median queueing delay",
        unit: "s",
        formula: "the wait that half of the packets that left did not exceed, to two digits",
        source: "waits of packets",
        parameters: None,
        value: |way| json!(way.counts.wait_quantile_s(0.5)),
    },
    Row {
        name: "queue_delay_p95_s",
        title: "95 % of queueing delay",
        unit: "s",
        formula: "the wait that 95 % of the packets that left did not exceed, to two digits",
        source: "waits of packets",
        parameters: None,
        value: |way| json!(way.counts.wait_quantile_s(0.95)),
    },
    Row {
        name: "queue_delay_p99_s",
        title: "99 % of queueing delay",
        unit: "s",
        formula: "the wait that 99 % of the packets that left did not exceed, to two digits",
        source: "waits of packets",
        parameters: None,
        value: |way| json!(way.counts.wait_quantile_s(0.99)),
    },
    Row {
        name: "queue_mean_packets",
        title: "mean queue",
        unit: "packets",
        formula: "∫ packets waiting in the discipline dt ÷ window, those included that are dropped later",
        source: "arrivals and departures of packets",
        parameters: ONE,
        value: |way| json!(seconds(way.counts.waiting_packet_ns as f64) / way.measured_s),
    },
    Row {
        name: "loss_run_mean",
        title: "consecutive losses",
        unit: "packets",
        formula: "losses in runs ÷ runs; a run is consecutive losses with no packet accepted in between, and counts whole where it ends within the window",
        source: "losses in their order",
        parameters: ONE,
        value: |way| json!(way.counts.loss_run_mean()),
    },
    Row {
        name: "loss_runs",
        title: "runs of losses",
        unit: "",
        formula: "numbers of runs of 1, 2, 3, ... losses; the last counts runs of 63 losses and more",
        source: "losses in their order",
        parameters: None,
        value: |way| {
            let runs = &way.counts.runs;
            json!(runs.iter().rposition(|&n| n > 0).map(|last| runs[1..=last].to_vec()))
        },
    },
];
