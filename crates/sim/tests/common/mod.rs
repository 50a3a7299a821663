//! What the tests of whole runs share: a run and all that it wrote, and what the summary makes of it.

#![allow(dead_code, reason = "not every test uses all of it")]

use base::Rate;
use record::{DemandRow, DropRow, Engine, ExchangeRow, FrameRow, ProbeRow, QueueRow, Sink, TcpRow};
use scenario::Scenario;
use serde_json::Value;
use sim::Outcome;

/// Keeps every row.
#[derive(Default)]
pub struct Kept {
    pub exchanges: Vec<ExchangeRow>,
    pub queue: Vec<QueueRow>,
    pub drops: Vec<DropRow>,
    pub probes: Vec<ProbeRow>,
    pub frames: Vec<FrameRow>,
    pub tcp: Vec<TcpRow>,
    pub demands: Vec<DemandRow>,
}

impl Sink for Kept {
    fn exchange(&mut self, row: &ExchangeRow) {
        self.exchanges.push(*row);
    }
    fn queue(&mut self, row: &QueueRow) {
        self.queue.push(*row);
    }
    fn drop(&mut self, row: &DropRow) {
        self.drops.push(*row);
    }
    fn probe(&mut self, row: &ProbeRow) {
        self.probes.push(*row);
    }
    fn frame(&mut self, row: &FrameRow) {
        self.frames.push(*row);
    }
    fn tcp(&mut self, row: &TcpRow) {
        self.tcp.push(*row);
    }
    fn demand(&mut self, row: &DemandRow) {
        self.demands.push(*row);
    }
}

/// A finished run.
pub struct Ran {
    pub outcome: Outcome,
    pub rows: Kept,
    pub summary: Value,
}

impl Ran {
    /// A number of the summary, by its dotted name.
    pub fn number(&self, name: &str) -> f64 {
        let pointer = format!("/{}", name.replace('.', "/"));
        self.summary.pointer(&pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{name} is a number"))
    }

    /// Response times in nanoseconds, in the order of completion.
    pub fn response_times_ns(&self) -> Vec<u64> {
        self.rows.exchanges.iter().map(|row| row.response_time.ns()).collect()
    }
}

/// Runs the scenario in `text`.
pub fn run(text: &str) -> Ran {
    run_with(text, &|name| Err(format!("{name}: tests read no files")))
}

/// Runs the scenario in `text`, which names files.
pub fn run_with(text: &str, files: scenario::Files<'_>) -> Ran {
    let resolved = scenario::resolve(text, "test.toml", &[], files).expect("a scenario");
    let scenario: &Scenario = resolved.scenario().expect("no load to calibrate");
    let mut rows = Kept::default();
    let outcome = sim::run(scenario, &mut rows, &mut |_| true).expect("nobody breaks it off");
    let summary = outcome.summary(scenario, &Engine { kind: "sim", ..Engine::default() }).to_json();
    Ran { outcome, rows, summary }
}

/// One way across an idle network: when the packets of `sizes`, handed over at the same instant `at` in their order,
/// have arrived. Three stores one after the other, each of which takes the next packet when it has all of it and is
/// done with the one before.
pub fn across(at: u64, sizes: &[u64], rate: Rate, delay_ns: u64) -> Vec<u64> {
    const ACCESS_NS_PER_BYTE: u64 = 8; // 1 Gb/s
    let link_ns_per_byte = 8_000_000_000 / rate.bps();
    let (mut sent, mut crossed, mut received) = (at, 0, 0);
    let arrivals = sizes.iter().map(|size| {
        sent += size * ACCESS_NS_PER_BYTE;
        crossed = crossed.max(sent + delay_ns) + size * link_ns_per_byte;
        received = received.max(crossed) + size * ACCESS_NS_PER_BYTE;
        received
    });
    arrivals.collect()
}
