//! A run writes a line of `progress.jsonl` for each [`Progress`] while it goes on.

use crate::monitor::{Seen, SeenWay};
use crate::news::TallySums;
use base::{Span, Time};
use record::Responses;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// How far a run is, and what the link looks like. Pairs are forward and in reverse.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Now, since the start of the run.
    pub at: Time,
    /// The whole run, seconds.
    pub duration_s: f64,
    /// Packets that left the bottleneck so far, both ways.
    pub bottleneck_packets: u64,
    /// Throughput since the last time, bits a second.
    pub rate_bps: [f64; 2],
    /// Packets that wait.
    pub queue_packets: [u64; 2],
    /// How long the last packet that left had waited, seconds.
    pub queue_delay_s: [f64; 2],
    /// Packets lost since the last time.
    pub drops: [u64; 2],
    /// Packets marked since the last time.
    pub marks: [u64; 2],
    /// Exchanges that were completed within the measured window so far.
    pub exchanges: u64,
    /// Their response times at 50, 95 and 99 %, seconds.
    pub response_s: [Option<f64>; 3],
    /// What 99 % of packets left late by at most, and what the latest did, seconds.
    pub lateness_s: [f64; 2],
    /// Stalls of the router so far.
    pub stalls: u64,
    /// Connections that are open, or being opened.
    pub connections: u64,
    /// Whether the link is still being checked: nothing else of this means anything then.
    pub checks_link: bool,
}

impl Progress {
    /// How far a run is, with sums of the whole run where [`Progress::since`] has those since the last time.
    pub fn new(at: Time, duration: Span, seen: &Seen, sums: &TallySums, responses: &Responses) -> Self {
        let [left, right] = seen.ways;
        let both = |of: fn(SeenWay) -> u64| [of(left), of(right)];
        Self {
            at,
            duration_s: duration.secs_f64(),
            bottleneck_packets: left.delivered + right.delivered,
            rate_bps: both(|way| way.delivered_bytes).map(|bytes| bytes as f64 * 8.0),
            queue_packets: both(|way| way.queue_packets),
            queue_delay_s: [left, right].map(|way| way.queue_delay.secs_f64()),
            drops: both(|way| way.dropped),
            marks: both(|way| way.marked),
            exchanges: responses.count(),
            response_s: [0.5, 0.95, 0.99].map(|share| responses.quantile_s(share)),
            lateness_s: [seen.late_p99, seen.late_most].map(Span::secs_f64),
            stalls: seen.stalls,
            connections: sums.connections_opened.saturating_sub(sums.connections_completed + sums.connections_failed),
            checks_link: false,
        }
    }

    /// A sign of life while the link of a run of `duration` is checked.
    pub fn checking(duration: Span) -> Self {
        Self { duration_s: duration.secs_f64(), checks_link: true, ..Self::default() }
    }

    /// The same with the rate, losses and marks since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let seconds = self.at.since(earlier.at).secs_f64();
        let rate = |way: usize| {
            let bits = self.rate_bps[way] - earlier.rate_bps[way];
            if seconds > 0.0 { bits / seconds } else { 0.0 }
        };
        Self {
            rate_bps: [rate(0), rate(1)],
            drops: [0, 1].map(|way| self.drops[way] - earlier.drops[way]),
            marks: [0, 1].map(|way| self.marks[way] - earlier.marks[way]),
            ..self.clone()
        }
    }

    /// As a line of `progress.jsonl`.
    pub fn to_json(&self) -> Value {
        let [p50, p95, p99] = self.response_s;
        let [late_p99, late_max] = self.lateness_s;
        json!({
            "time_s": self.at.secs_f64(),
            "duration_s": self.duration_s,
            "bottleneck_packets": self.bottleneck_packets,
            "wall_s": self.at.secs_f64(),
            "rate_bps": self.rate_bps,
            "queue_packets": self.queue_packets,
            "queue_delay_s": self.queue_delay_s,
            "drops": self.drops,
            "marks": self.marks,
            "exchanges": self.exchanges,
            "response_s": { "p50": p50, "p95": p95, "p99": p99 },
            "lateness_s": { "p99": late_p99, "max": late_max },
            "stalls": self.stalls,
            "connections": self.connections,
            "checks_link": self.checks_link,
        })
    }
}

/// The file of lines.
#[derive(Debug)]
pub struct ProgressFile {
    file: File,
    is_virtual: bool,
}

impl ProgressFile {
    /// A new one in `directory`, of a run in virtual time or not.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn create(directory: &Path, is_virtual: bool) -> io::Result<Self> {
        File::create(directory.join("progress.jsonl")).map(|file| Self { file, is_virtual })
    }

    /// Writes a line, for another kernel to see at once where this one's is virtual.
    ///
    /// # Errors
    /// Whatever the file system says.
    pub fn write(&mut self, progress: &Progress) -> io::Result<()> {
        self.file.write_all(format!("{}\n", progress.to_json()).as_bytes())?;
        // A busy disk takes a second for it: not where somebody waits for that.
        if self.is_virtual { self.file.sync_data() } else { Ok(()) }
    }
}
