//! Probe flows measure loss, one-way delay and its variation, packet by packet.
//!
//! - One-way delay: from the instant at which the sender has the packet to that at which the receiver has all of it
//!   (RFC 7679), its own serialization included.
//! - Loss: a packet that was dropped (RFC 7680). A run of losses is consecutive lost packets of one flow, a loss period
//!   of RFC 3357.
//! - Jitter: the mean of |D|, the difference of the one-way delays of successive packets that were received (RFC 3550
//!   §6.4.1, of which its J is a moving average; RFC 3393's variation where none was lost between them).
//!
//! A packet counts if it was sent within the measured window and its fate was known when the run ended. Fates are told
//! in any order and settled in the order of sending: a discipline may drop a packet before it sends an earlier one.

use crate::fates::{Fate, Fates, Sent};
use crate::measures::{Row, percentiles, values};
use crate::rows::{ProbeRow, Sink};
use crate::seconds::seconds;
use base::{Span, Time};
use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// What all probe flows of a run have seen.
#[derive(Clone, Debug)]
pub struct Probes {
    flows: Vec<Flow>,
    window: (Time, Time),
    sent: u64,
    lost: u64,
    /// One-way delays, in units of 100 ns.
    delays: Histogram<u64>,
    delay_ns: u128,
    jitter_ns: u128,
    jitter_count: u64,
    /// How many runs of losses there were of each length; the last holds all longer ones.
    runs: [u64; 64],
    /// Losses in all of them.
    run_losses: u64,
}

/// One probe flow.
#[derive(Clone, Debug)]
struct Flow {
    traffic: u16,
    source: u32,
    direction: u8,
    packets: Fates<()>,
    /// Delay of the last packet received.
    delay: Option<Span>,
    /// Losses in a row so far.
    run: u32,
}

/// Unit of the histogram of delays, and the longest it tells apart, as which all longer ones count: 859 s.
const UNIT_NS: u64 = 100;
const MOST: u64 = (1 << 33) - 1;

impl Probes {
    /// Probes without flows. Packets that are sent from `from` on and before `to` count.
    pub fn new(from: Time, to: Time) -> Self {
        Self {
            flows: Vec::new(),
            window: (from, to),
            sent: 0,
            lost: 0,
            delays: Histogram::new_with_bounds(1, MOST, 3).expect("the bounds are in order"),
            delay_ns: 0,
            jitter_ns: 0,
            jitter_count: 0,
            runs: [0; 64],
            run_losses: 0,
        }
    }

    /// Adds a flow: its block of traffic, its number within the block and its direction. Returns its number here.
    pub fn add_flow(&mut self, traffic: u16, source: u32, direction: u8) -> u32 {
        self.flows.push(Flow { traffic, source, direction, packets: Fates::new(), delay: None, run: 0 });
        self.flows.len() as u32 - 1
    }

    /// Notes that a flow sends a packet at `now`; returns the number of the packet.
    pub fn sent(&mut self, flow: u32, now: Time) -> u32 {
        self.flows[flow as usize].packets.sent(now, ())
    }

    /// Notes that the receiver has all of a packet.
    pub fn received(&mut self, flow: u32, packet: u32, now: Time, sink: &mut dyn Sink) {
        self.tell(flow, packet, Fate::Received(now), sink);
    }

    /// Notes that a packet is lost.
    pub fn lost(&mut self, flow: u32, packet: u32, sink: &mut dyn Sink) {
        self.tell(flow, packet, Fate::Lost, sink);
    }

    /// Ends the run. Packets that are still on their way have no fate and do not count; packets sent after them may.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        for index in 0..self.flows.len() {
            while let Some((sequence, packet)) = self.flows[index].packets.next(true) {
                self.settle(index, sequence, packet, sink);
            }
            self.end_run(index);
        }
    }

    fn tell(&mut self, flow: u32, packet: u32, fate: Fate, sink: &mut dyn Sink) {
        let index = flow as usize;
        self.flows[index].packets.tell(packet, fate);
        while let Some((sequence, packet)) = self.flows[index].packets.next(false) {
            self.settle(index, sequence, packet, sink);
        }
    }

    /// Counts a packet if it was sent within the window. The packets before it have been settled.
    fn settle(&mut self, index: usize, sequence: u32, packet: Sent<()>, sink: &mut dyn Sink) {
        let flow = &mut self.flows[index];
        if packet.at < self.window.0 || packet.at >= self.window.1 {
            return;
        }
        let delay = match packet.fate {
            Fate::Unknown => return,
            Fate::Lost => None,
            Fate::Received(at) => Some(at.since(packet.at)),
        };
        sink.probe(&ProbeRow {
            sent: packet.at,
            delay,
            packet: sequence,
            traffic: flow.traffic,
            source: flow.source,
            direction: flow.direction,
        });
        self.sent += 1;
        let Some(delay) = delay else {
            flow.run += 1;
            self.lost += 1;
            return;
        };
        self.delays.saturating_record(delay.ns() / UNIT_NS);
        self.delay_ns += u128::from(delay.ns());
        if let Some(before) = flow.delay.replace(delay) {
            self.jitter_ns += u128::from(delay.abs_diff(before).ns());
            self.jitter_count += 1;
        }
        self.end_run(index);
    }

    fn end_run(&mut self, index: usize) {
        let run = std::mem::take(&mut self.flows[index].run);
        if run > 0 {
            let last = self.runs.len() - 1;
            self.runs[(run as usize).min(last)] += 1;
            self.run_losses += u64::from(run);
        }
    }

    fn is_used(&self) -> bool {
        !self.flows.is_empty()
    }

    /// The table of the summary, all null where there are no probes.
    pub fn to_json(&self) -> Value {
        values(ROWS, |value| value(self))
    }
}

/// A function that works out one number of the probes.
pub type OfProbes = fn(&Probes) -> Value;

/// The measures of probes, as the summary has them.
pub const ROWS: &[Row<OfProbes>] = &[
    Row {
        name: "sent_packets",
        title: "probes sent",
        unit: "packets",
        formula: "packets of probes that were sent and whose fate is known, as in probes.parquet; of all flows",
        source: "probes.parquet",
        parameters: None,
        value: |probes| json!(probes.is_used().then_some(probes.sent)),
    },
    Row {
        name: "lost_packets",
        title: "probes lost",
        unit: "packets",
        formula: "of the packets sent, those that were lost",
        source: "`delay_ns`",
        parameters: None,
        value: |probes| json!(probes.is_used().then_some(probes.lost)),
    },
    Row {
        name: "loss_ratio",
        title: "probe loss",
        unit: "share of packets",
        formula: "probes lost ÷ probes sent (RFC 7680)",
        source: "`delay_ns`",
        parameters: None,
        value: |probes| json!((probes.sent > 0).then(|| probes.lost as f64 / probes.sent as f64)),
    },
    Row {
        name: "loss_run_mean",
        title: "consecutive probes lost",
        unit: "packets",
        formula: "losses in runs ÷ runs; a run is consecutive lost packets of a flow, a loss period of RFC 3357",
        source: "`delay_ns`",
        parameters: None,
        value: |probes| {
            let runs: u64 = probes.runs.iter().sum();
            json!((runs > 0).then(|| probes.run_losses as f64 / runs as f64))
        },
    },
    Row {
        name: "loss_runs",
        title: "runs of probes lost",
        unit: "",
        formula: "numbers of runs of 1, 2, 3, ... packets; the last counts runs of 63 packets and more",
        source: "`delay_ns`",
        parameters: None,
        value: |probes| json!(probes.runs.iter().rposition(|&n| n > 0).map(|last| probes.runs[1..=last].to_vec())),
    },
    Row {
        name: "one_way_delay_s",
        title: "one-way delay",
        unit: "s",
        formula: "percentiles `p10` `p25` `p50` `p75` `p90` `p95` `p99` over the packets of all flows, to three digits",
        source: "`delay_ns`",
        parameters: None,
        value: |probes| {
            let has_arrived = probes.sent > probes.lost;
            percentiles(|q| has_arrived.then(|| seconds((probes.delays.value_at_quantile(q) * UNIT_NS) as f64)))
        },
    },
    Row {
        name: "one_way_delay_mean_s",
        title: "mean one-way delay",
        unit: "s",
        formula: "Σ one-way delay ÷ packets of all flows that were received",
        source: "`delay_ns`",
        parameters: None,
        value: |probes| {
            let received = probes.sent - probes.lost;
            json!((received > 0).then(|| seconds(probes.delay_ns as f64) / received as f64))
        },
    },
    Row {
        name: "jitter_mean_s",
        title: "jitter",
        unit: "s",
        formula: "Σ abs(difference between the delays of successive packets of a flow that were received) ÷ their number (the D of RFC 3550 §6.4.1)",
        source: "`delay_ns`",
        parameters: None,
        value: |probes| {
            json!((probes.jitter_count > 0).then(|| seconds(probes.jitter_ns as f64) / probes.jitter_count as f64))
        },
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{DropRow, ExchangeRow, QueueRow};

    #[derive(Default)]
    struct Kept(Vec<ProbeRow>);

    impl Sink for Kept {
        fn exchange(&mut self, _row: &ExchangeRow) {}
        fn queue(&mut self, _row: &QueueRow) {}
        fn drop(&mut self, _row: &DropRow) {}
        fn probe(&mut self, row: &ProbeRow) {
            self.0.push(*row);
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// Ten packets 20 ms apart, of which the first is sent before the window and the last still under way at the end.
    /// Fates come in another order than the packets.
    #[test]
    fn fates_are_settled_in_the_order_of_sending() {
        let (mut probes, mut rows) = (Probes::new(at(20), at(1000)), Kept::default());
        let flow = probes.add_flow(3, 7, 1);
        for k in 0..10 {
            assert_eq!(probes.sent(flow, at(20 * k)), k as u32);
        }
        // Lost: 3, 4, 7. Delays: 1, 2 and 5 take 30, 34 and 31 ms; 6 and 8 32 ms.
        probes.lost(flow, 4, &mut rows);
        probes.received(flow, 0, at(30), &mut rows);
        probes.received(flow, 2, at(40 + 34), &mut rows);
        assert!(rows.0.is_empty(), "before packet 1 is known, nothing after it counts");
        probes.received(flow, 1, at(20 + 30), &mut rows);
        probes.lost(flow, 7, &mut rows);
        probes.lost(flow, 3, &mut rows);
        for (k, ms) in [(5, 31), (6, 32), (8, 32)] {
            probes.received(flow, k, at(20 * u64::from(k) + ms), &mut rows);
        }
        probes.finish(&mut rows);
        assert_eq!(rows.0.iter().map(|row| row.packet).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((rows.0[0].traffic, rows.0[0].source, rows.0[0].direction), (3, 7, 1));
        assert_eq!((rows.0[0].delay, rows.0[2].delay), (Some(Span::from_ms(30)), None));
        let found = probes.to_json();
        assert_eq!((&found["sent_packets"], &found["lost_packets"]), (&json!(8), &json!(3)));
        assert_eq!((&found["loss_runs"], &found["loss_run_mean"]), (&json!([1, 1]), &json!(1.5)));
        // Successive packets received: 30, 34, 31, 32, 32 ms.
        let mean = found["one_way_delay_mean_s"].as_f64().expect("a number");
        assert!((mean - (0.030 + 0.034 + 0.031 + 0.032 + 0.032) / 5.0).abs() < 1e-12, "{mean}");
        let jitter = found["jitter_mean_s"].as_f64().expect("a number");
        assert!((jitter - (0.004 + 0.003 + 0.001) / 4.0).abs() < 1e-12, "{jitter}");
    }

    #[test]
    fn the_longest_delays_count_as_the_longest() {
        let (mut probes, mut rows) = (Probes::new(at(0), at(1000)), Kept::default());
        let flow = probes.add_flow(0, 0, 0);
        for delay_s in [700, 1000] {
            let packet = probes.sent(flow, at(0));
            probes.received(flow, packet, at(1000 * delay_s), &mut rows);
        }
        let found = probes.to_json();
        let [less, more] = ["p10", "p90"].map(|share| found["one_way_delay_s"][share].as_f64().expect("a number"));
        assert!((less - 700.0).abs() < 0.7 && (more - 858.99).abs() < 0.01, "{less} {more}");
    }

    #[test]
    fn without_probes_there_is_nothing() {
        let found = Probes::new(at(0), at(1)).to_json();
        let Value::Object(keys) = found else { panic!("an object") };
        let is_nothing = |value: &Value| match value {
            Value::Object(inner) => inner.values().all(Value::is_null),
            value => value.is_null(),
        };
        assert!(keys.values().all(is_nothing), "{keys:?}");
    }
}
