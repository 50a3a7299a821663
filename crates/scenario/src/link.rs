//! `[link]`: the bottleneck, whose rates are constant or those of traces.
//!
//! ```toml
//! trace = "cellular-down.trace"      # in place of rate
//! reverse_trace = "cellular-up.trace"
//! ```
//!
//! A file of opportunities to deliver is mm-link(1)'s: a whole number of milliseconds on each line, which do not fall.
//! Its mean is written as the rate beside it.
//!
//! ```toml
//! device_queue = "64p"               # or in bytes, "30kb"
//! ```
//!
//! A queue of the network interface behind the discipline, in both directions. Without the key there is none, and
//! nothing is written of it.

use crate::distribution::is_data;
use crate::error::Error;
use crate::kept::{self, ReadFile};
use crate::qdisc;
use crate::scenario::{Link, QdiscSpec};
use crate::section::{Entry, Section};
use crate::units;
use crate::written::{Fields, Written};
use aqm::param::Length;
use aqm::qdisc::fifo::Limit;
use aqm::registry::Site;
use aqm::{Egress, Packet, Trace};
use base::{Rate, Stream};

const KEYS: &[&str] =
    &["rate", "reverse_rate", "trace", "reverse_trace", "overhead", "device_queue", "qdisc", "reverse_qdisc"];

/// The largest ring of descriptors: more than drivers have (`ethtool -g`).
const MOST_DESCRIPTORS: u32 = 1 << 16;
/// The most bytes: about what Linux lets a limit grow to (`DQL_MAX_LIMIT`).
const MOST_DEVICE_BYTES: u64 = 1 << 30;

/// One direction's rate, and the trace of which it is the mean.
struct Capacity {
    rate: Rate,
    trace: Option<(Trace, Written)>,
}

pub(crate) fn read(section: &Section<'_>) -> Result<(Link, Fields), Error> {
    section.only(&[KEYS])?;
    let forward = capacity(section, "rate", "trace")?;
    let forward = forward.unwrap_or(Capacity { rate: Rate::from_bps(100_000_000), trace: None });
    let reverse = capacity(section, "reverse_rate", "reverse_trace")?;
    let reverse = reverse.unwrap_or_else(|| Capacity { rate: forward.rate, trace: forward.trace.clone() });
    let overhead = section.read("overhead", 0, |entry| entry.size_within(0..=1_000))?;
    let traced = forward.trace.is_some() || reverse.trace.is_some();
    let device_queue = section.get("device_queue").map(|entry| device_queue(&entry, traced)).transpose()?;
    let forward_section = section.section("qdisc")?;
    let reverse_section = if section.get("reverse_qdisc").is_some() {
        section.section("reverse_qdisc")?
    } else {
        section.section("qdisc")?
    };
    let qdisc = qdisc::read(&forward_section, forward.rate)?;
    let reverse_qdisc = qdisc::read(&reverse_section, reverse.rate)?;
    let mut written = Vec::new();
    let mut traces = [None, None];
    let each = [(forward, "rate", "trace"), (reverse, "reverse_rate", "reverse_trace")];
    let [rate, reverse_rate] = [each[0].0.rate, each[1].0.rate];
    for ((capacity, rate, trace), place) in each.into_iter().zip(&mut traces) {
        written.push((rate, Written::Text(units::write_rate(capacity.rate))));
        if let Some((opportunities, file)) = capacity.trace {
            written.push((trace, file));
            *place = Some(opportunities);
        }
    }
    written.push(("overhead", Written::Text(units::write_bytes(overhead as f64))));
    // Only where there is one, so that scenarios without keep their text and its digest.
    written.extend(device_queue.map(|limit| ("device_queue", Written::Text(write_device_queue(limit)))));
    written.extend([
        ("qdisc", Written::Section(qdisc::write(&qdisc))),
        ("reverse_qdisc", Written::Section(qdisc::write(&reverse_qdisc))),
    ]);
    let overhead = u32::try_from(overhead).expect("the range ends below 2^32");
    Ok((Link { rate, reverse_rate, traces, overhead, device_queue, qdisc, reverse_qdisc }, written))
}

/// Refuses what the kernel does not do where it is the bottleneck.
pub(crate) fn need_what_kernels_do(section: &Section<'_>) -> Result<(), Error> {
    for (key, expected) in [
        ("trace", "a constant rate with live.qdisc = \"kernel\": the kernel shapes to no trace"),
        ("reverse_trace", "a constant rate with live.qdisc = \"kernel\": the kernel shapes to no trace"),
        ("device_queue", "none with live.qdisc = \"kernel\": the kernel's discipline paces its packets to the rate"),
    ] {
        if let Some(entry) = section.get(key) {
            return Err(entry.expected(expected));
        }
    }
    Ok(())
}

/// What a device queue holds.
fn device_queue(entry: &Entry<'_>, is_traced: bool) -> Result<Limit, Error> {
    let limit = match entry.length()? {
        Length::Packets(packets)
            if packets.fract() == 0.0 && (1.0..=f64::from(MOST_DESCRIPTORS)).contains(&packets) =>
        {
            Limit::Packets(packets as u32)
        }
        Length::Bytes(bytes) if bytes.fract() == 0.0 && (1.0..=MOST_DEVICE_BYTES as f64).contains(&bytes) => {
            Limit::Bytes(bytes as u64)
        }
        _ => {
            let most = [Limit::Packets(MOST_DESCRIPTORS), Limit::Bytes(MOST_DEVICE_BYTES)].map(write_device_queue);
            return Err(entry.expected(format!("whole packets from 1p to {} or bytes from 1b to {}", most[0], most[1])));
        }
    };
    if is_traced {
        return Err(entry.expected("none on a link with a trace, whose opportunities are the discipline's"));
    }
    Ok(limit)
}

fn write_device_queue(limit: Limit) -> String {
    units::write_length(match limit {
        Limit::Packets(packets) => Length::Packets(f64::from(packets)),
        Limit::Bytes(bytes) => Length::Bytes(bytes as f64),
    })
}

/// What the keys of one direction say; `None` where they say nothing.
fn capacity(section: &Section<'_>, rate: &str, trace: &str) -> Result<Option<Capacity>, Error> {
    let given = section.get(rate).map(|entry| Ok::<_, Error>((entry.rate()?, entry))).transpose()?;
    let Some(entry) = section.get(trace) else {
        return Ok(given.map(|(rate, _)| Capacity { rate, trace: None }));
    };
    let file = kept::read(&entry, "opportunities to deliver, in milliseconds")?;
    let opportunities = opportunities(&file)?;
    let mean = opportunities.rate();
    // A resolved scenario has both.
    if let Some((_, entry)) = given.filter(|(rate, _)| *rate != mean) {
        let mean = units::write_rate(mean);
        return Err(
            entry.expected(format!("no {rate} beside {trace}, or {mean}, which {} is in the mean", file.kept.file))
        );
    }
    Ok(Some(Capacity { rate: mean, trace: Some((opportunities, kept::write(&file))) }))
}

/// The lines of a file of opportunities.
fn opportunities(file: &ReadFile) -> Result<Trace, Error> {
    let expected = "expected whole milliseconds, one opportunity a line, such as 12";
    let mut at_ms: Vec<u32> = Vec::new();
    let mut last = 1;
    for (number, line) in (1..).zip(file.text.lines()).filter(|(_, line)| is_data(line)) {
        let at = line.trim().parse().map_err(|_| file.error(number, expected.into()))?;
        if at_ms.last().is_some_and(|before| at < *before) {
            return Err(file.error(number, "expected times that do not fall from one line to the next".into()));
        }
        at_ms.push(at);
        last = number;
    }
    if at_ms.is_empty() {
        return Err(file.error(1, expected.into()));
    }
    let lasts = "expected a last opportunity later than 0: there the trace begins again";
    Trace::new(at_ms).ok_or_else(|| file.error(last, lasts.into()))
}

impl Link {
    /// The egress of direction `side`, 0 forward, idle, in a run seeded with `seed`.
    pub fn egress<P: Packet + Send + 'static>(&self, side: usize, seed: u64) -> Egress<P> {
        let (rate, QdiscSpec { entry, values, .. }, direction) = match side {
            0 => (self.rate, &self.qdisc, "forward"),
            _ => (self.reverse_rate, &self.reverse_qdisc, "reverse"),
        };
        let stream = Stream::named(seed, &format!("link/{direction}/qdisc"));
        let qdisc = entry.build(values, Site { rate, stream });
        let egress = match &self.traces[side] {
            Some(trace) => Egress::traced(trace.clone(), qdisc),
            None => Egress::new(rate, qdisc),
        };
        let egress = egress.with_overhead(self.overhead);
        match self.device_queue {
            Some(limit) => egress.with_device_queue(limit),
            None => egress,
        }
    }
}
