//! This file reads a link, `[link]` or one of `[links]`: its rates, which are constant, of traces, or [`changing`], its
//! queues and its delay.
//!
//! ```toml
//! trace = "cellular-down.trace"      # in place of rate
//! reverse_trace = "cellular-up.trace"
//! ```
//!
//! A trace is a file of opportunities to deliver a packet, as mm-link(1) has it: each line has a whole number of
//! milliseconds, and these do not fall. The resolved scenario has its mean rate beside it.
//!
//! ```toml
//! device_queue = "64p"               # or in bytes, "30kb"
//! ```
//!
//! This is the queue of the network interface behind the discipline, in both directions. Without the key there is none.
//!
//! ```toml
//! framing = "atm"                    # or "ptm"; tc-cake(8) has these words
//! ```
//!
//! Packets with their overhead are sent in whole cells: 53 bytes for 48, or a byte more for each 64.
//!
//! ```toml
//! delay = "2ms"                      # and reverse_delay, unless it is the same
//! ```
//!
//! This is the propagation delay behind the link, beside that of the connections.

use crate::changing::{self, Likeness};
use crate::distribution::is_data;
use crate::document::Data;
use crate::error::Error;
use crate::kept::{self, ReadFile};
use crate::qdisc;
use crate::scenario::{Link, QdiscSpec, ToldRate};
use crate::section::{Entry, Section};
use crate::units;
use crate::written::{Fields, Written};
use aqm::changes::{Changes, Condition, Sendable, mean_bps};
use aqm::param::Length;
use aqm::qdisc::fifo::Limit;
use aqm::registry::Site;
use aqm::{Cells, Egress, Framing, Packet, Trace};
use base::{Rate, Span, Stream, Time};
use net::Delay;
use std::sync::Arc;

/// The key of one link, which is also its name.
pub(crate) const LINK: &str = "link";
/// The table of several.
pub(crate) const LINKS: &str = "links";
const KEYS: &[&str] = &[
    "rate",
    "reverse_rate",
    "trace",
    "reverse_trace",
    "delay",
    "reverse_delay",
    "overhead",
    "framing",
    "device_queue",
    "qdisc",
    "reverse_qdisc",
];

/// The largest ring of descriptors: more than drivers have (`ethtool -g`).
const MOST_DESCRIPTORS: u32 = 1 << 16;
/// The most bytes of a device queue: about what Linux lets a limit grow to (`DQL_MAX_LIMIT`).
const MOST_DEVICE_BYTES: u64 = 1 << 30;

/// The words of `told_rate`.
const TOLD_RATE: [(&str, ToldRate); 3] =
    [("nothing", ToldRate::Nothing), ("nominal", ToldRate::Nominal), ("present", ToldRate::Present)];
/// The words for directions in the names of random streams.
const DIRECTIONS: [&str; 2] = ["forward", "reverse"];

/// One direction's rate, and the trace of which it is the mean.
struct Capacity {
    rate: Rate,
    trace: Option<(Trace, Written)>,
}

pub(crate) fn read(section: &Section<'_>, name: &str) -> Result<(Link, Fields), Error> {
    section.only(&[KEYS, changing::KEYS])?;
    let forward = capacity(section, "rate", "trace")?;
    let forward = forward.unwrap_or(Capacity { rate: Rate::from_bps(100_000_000), trace: None });
    let reverse = capacity(section, "reverse_rate", "reverse_trace")?;
    let rate_follows = reverse.is_none();
    let reverse = reverse.unwrap_or_else(|| Capacity { rate: forward.rate, trace: forward.trace.clone() });
    let delay = section.read("delay", Span::ZERO, changing::read_delay)?;
    let delay_follows = section.get("reverse_delay").is_none();
    let reverse_delay = section.read("reverse_delay", delay, changing::read_delay)?;
    let start = Likeness {
        conditions: [(&forward, delay), (&reverse, reverse_delay)]
            .map(|(capacity, delay)| Condition { rate: capacity.rate, delay }),
        rate_follows,
        delay_follows,
    };
    let (pattern, start) = changing::read(section, start)?;
    let told_rate = section.read("told_rate", ToldRate::Nominal, |entry| told_rate(entry, pattern.is_some()))?;
    let overhead = section.read("overhead", 0, |entry| entry.size_within(0..=1_000))?;
    let cells = section.read("framing", Cells::None, |entry| entry.word(&Cells::WORDS))?;
    let device_queue = section.get("device_queue").map(|entry| device_queue(&entry)).transpose()?;
    let forward_section = section.section("qdisc")?;
    let reverse_section = if section.get("reverse_qdisc").is_some() {
        section.section("reverse_qdisc")?
    } else {
        section.section("qdisc")?
    };
    let rates = start.map(|condition| condition.rate);
    let delays = start.map(|condition| condition.delay);
    let told = |rate| (told_rate != ToldRate::Nothing).then_some(rate);
    let qdisc = qdisc::read(&forward_section, told(rates[0]))?;
    let reverse_qdisc = qdisc::read(&reverse_section, told(rates[1]))?;
    let mut written = Vec::new();
    let mut traces = [None, None];
    let each = [(forward, "rate", "trace"), (reverse, "reverse_rate", "reverse_trace")];
    for (side, (capacity, rate, trace)) in each.into_iter().enumerate() {
        written.push((rate, Written::Text(units::write_rate(rates[side]))));
        if let Some((opportunities, file)) = capacity.trace {
            written.push((trace, file));
            traces[side] = Some(opportunities);
        }
    }
    // The keys that follow are written only where they are given, so that scenarios without keep their text and digest.
    if delays != [Span::ZERO; 2] {
        let [forward, reverse] = delays.map(|delay| Written::Text(units::write_span(delay)));
        written.extend([("delay", forward), ("reverse_delay", reverse)]);
    }
    if let Some(pattern) = &pattern {
        written.extend(changing::write(pattern));
    }
    if pattern.is_some() || told_rate == ToldRate::Nothing {
        let (word, _) = TOLD_RATE.into_iter().find(|(_, told)| *told == told_rate).expect("each has a word");
        written.push(("told_rate", Written::Text(word.to_owned())));
    }
    written.push(("overhead", Written::Text(units::write_bytes(overhead as f64))));
    if cells != Cells::None {
        let (word, _) = Cells::WORDS.into_iter().find(|(_, other)| *other == cells).expect("each has a word");
        written.push(("framing", Written::Text(word.to_owned())));
    }
    written.extend(device_queue.map(|limit| ("device_queue", Written::Text(write_device_queue(limit)))));
    written.extend([("qdisc", qdisc::write(&qdisc)), ("reverse_qdisc", qdisc::write(&reverse_qdisc))]);
    let overhead = u32::try_from(overhead).expect("the range ends below 2^32");
    let (name, changes) = (name.to_owned(), pattern.map(Arc::new));
    let qdiscs = [qdisc, reverse_qdisc];
    Ok((Link { name, rates, traces, delays, changes, told_rate, overhead, cells, device_queue, qdiscs }, written))
}

/// Reads `told_rate` of a link that `changes` or does not.
fn told_rate(entry: &Entry<'_>, changes: bool) -> Result<ToldRate, Error> {
    match entry.word(&TOLD_RATE)? {
        ToldRate::Nominal | ToldRate::Present if !changes => {
            Err(entry.expected("\"nothing\", or no such key, on a link without a schedule or states"))
        }
        told => Ok(told),
    }
}

/// The most links of the kernel's in a run. Each takes two of the devices that the router waits for.
const MOST_KERNEL_LINKS: usize = 14;

/// Refuses what the kernel cannot do where links are its own.
pub(crate) fn need_what_kernels_do(root: &Section<'_>) -> Result<(), Error> {
    let Some(entry) = root.get(LINKS) else {
        return need_what_a_kernel_does(&root.section(LINK)?);
    };
    let links = entry.section("a table of links by name")?;
    if links.names().count() > MOST_KERNEL_LINKS {
        return Err(entry.error(format!("expected at most {MOST_KERNEL_LINKS} links with live.qdisc = \"kernel\"")));
    }
    links.names().try_for_each(|name| need_what_a_kernel_does(&links.section(name)?))
}

/// Refuses what the kernel cannot do as this link.
fn need_what_a_kernel_does(section: &Section<'_>) -> Result<(), Error> {
    for (key, expected) in [
        ("trace", "a constant rate with live.qdisc = \"kernel\": the kernel shapes to no trace"),
        ("reverse_trace", "a constant rate with live.qdisc = \"kernel\": the kernel shapes to no trace"),
        ("framing", "no cells with live.qdisc = \"kernel\": the kernel's discipline paces its packets to the rate"),
        ("device_queue", "none with live.qdisc = \"kernel\": the kernel's discipline paces its packets to the rate"),
        ("schedule", "a constant rate with live.qdisc = \"kernel\": the kernel shapes to no schedule"),
        ("states", "a constant rate with live.qdisc = \"kernel\": the kernel shapes to no schedule"),
    ] {
        if let Some(entry) = section.get(key) {
            return Err(entry.expected(expected));
        }
    }
    Ok(())
}

/// Reads the limit of a device queue.
fn device_queue(entry: &Entry<'_>) -> Result<Limit, Error> {
    match entry.length()? {
        Length::Packets(packets)
            if packets.fract() == 0.0 && (1.0..=f64::from(MOST_DESCRIPTORS)).contains(&packets) =>
        {
            Ok(Limit::Packets(packets as u32))
        }
        Length::Bytes(bytes) if bytes.fract() == 0.0 && (1.0..=MOST_DEVICE_BYTES as f64).contains(&bytes) => {
            Ok(Limit::Bytes(bytes as u64))
        }
        _ => {
            let most = [Limit::Packets(MOST_DESCRIPTORS), Limit::Bytes(MOST_DEVICE_BYTES)].map(write_device_queue);
            Err(entry.expected(format!("whole packets from 1p to {} or bytes from 1b to {}", most[0], most[1])))
        }
    }
}

fn write_device_queue(limit: Limit) -> String {
    units::write_length(match limit {
        Limit::Packets(packets) => Length::Packets(f64::from(packets)),
        Limit::Bytes(bytes) => Length::Bytes(bytes as f64),
    })
}

/// Reads rate or trace of one direction; `None` where neither is given.
fn capacity(section: &Section<'_>, rate: &str, trace: &str) -> Result<Option<Capacity>, Error> {
    let given = section.get(rate).map(|entry| Ok::<_, Error>((constant(&entry, trace)?, entry))).transpose()?;
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

/// Reads a constant rate; a trace has another key, `trace`.
fn constant(entry: &Entry<'_>, trace: &str) -> Result<Rate, Error> {
    match entry.data() {
        Data::Table(table) if table.contains_key("trace") => {
            Err(entry.expected(format!("a rate such as 100mbit; that of a trace is {trace} = \"FILE\" in the link")))
        }
        _ => entry.rate(),
    }
}

/// Reads the lines of a file of opportunities.
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
    /// What packets take of it.
    pub fn framing(&self) -> Framing {
        Framing { overhead: self.overhead, cells: self.cells }
    }

    /// The egress of direction `side`, 0 forward, idle, in a run seeded with `seed`.
    pub fn egress<P: Packet + Send + 'static>(&self, side: usize, seed: u64) -> Egress<P> {
        let rate = self.rates[side];
        let QdiscSpec { entry, values, .. } = &self.qdiscs[side];
        let stream = Stream::named(seed, &format!("{}/{}/qdisc", self.stream(), DIRECTIONS[side]));
        let qdisc = entry.build(values, Site { rate, stream });
        let egress = match &self.traces[side] {
            Some(trace) => Egress::traced(trace.clone(), qdisc),
            None => Egress::new(rate, qdisc),
        };
        let egress = egress.with_framing(self.framing());
        let egress = match self.changes(side, seed) {
            Some(changes) if self.told_rate == ToldRate::Present => {
                egress.with_changes(changes).telling_rate(values.clone())
            }
            Some(changes) => egress.with_changes(changes),
            None => egress,
        };
        match self.device_queue {
            Some(limit) => egress.with_device_queue(limit),
            None => egress,
        }
    }

    /// The rate that the discipline of direction `side` is told when the link's is `present`.
    pub fn told(&self, side: usize, present: Rate) -> Option<Rate> {
        match self.told_rate {
            ToldRate::Nothing => None,
            ToldRate::Nominal => Some(self.rates[side]),
            ToldRate::Present => Some(present),
        }
    }

    /// The delay behind that egress.
    pub fn delay(&self, side: usize, seed: u64) -> Delay {
        match self.changes(side, seed) {
            Some(changes) => Delay::changing(self.delays[side], changes),
            None => Delay::constant(self.delays[side]),
        }
    }

    /// Its mean rate from `from` until `to`, bits a second.
    pub fn mean_bps(&self, side: usize, seed: u64, from: Time, to: Time) -> f64 {
        match self.changes(side, seed) {
            Some(changes) => mean_bps(self.start(side), changes, from, to),
            None => self.rates[side].bps_f64(),
        }
    }

    /// How much it can send, if that changes; else its rate says it.
    pub fn sendable(&self, side: usize, seed: u64) -> Option<Sendable> {
        self.changes(side, seed).map(|changes| Sendable::new(self.start(side), changes))
    }

    /// What it is like at the start of the run, one way.
    fn start(&self, side: usize) -> Condition {
        Condition { rate: self.rates[side], delay: self.delays[side] }
    }

    /// How it changes, one way. Both ways draw from the same stream, and so change together.
    fn changes(&self, side: usize, seed: u64) -> Option<Changes> {
        let stream = || Stream::named(seed, &format!("{}/changes", self.stream()));
        self.changes.as_ref().map(|pattern| Changes::new(pattern.clone(), side, stream()))
    }

    /// The path of its random streams.
    fn stream(&self) -> String {
        if self.name == LINK { LINK.to_owned() } else { format!("links/{}", self.name) }
    }
}
