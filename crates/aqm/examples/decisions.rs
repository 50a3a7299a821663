//! What the decisions of every discipline cost: what `benches/bench.py` times and has counted by callgrind.
//!
//! ```text
//! decisions time [ROUNDS]     nanoseconds a packet, drop-tail beside each discipline, and the memory of each
//! decisions list              the stretches that `count` runs, one a line, in their order
//! decisions count [NAME]      each stretch once, for callgrind to collect in and dump after `decisions::stretch`
//! ```
//!
//! A stream of packets is offered to the egress of a link, as the simulator and a router would: gaps as of a Poisson
//! process, flows drawn alike, a table of both made before the clock starts. Its load is 103 %, so that a discipline
//! that controls the queue has to lose three packets in a hundred, stays where it wants the queue, and decides about
//! every packet. Costs are per packet offered; drop-tail's are those of the link and of holding a packet at all.

#[path = "../tests/common/mod.rs"]
mod common;

use aqm::param::{Kind, Text};
use aqm::registry::{self, Row};
use aqm::{Cause, Egress, Headers, Packet, Tap};
use base::{Ecn, FlowKey, Rate, Stream, Time, maths};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Packets offered between two looks at the clock: some milliseconds, so that many stretches meet no other process.
const STRETCH: usize = 40_000;
/// Packets offered before: half a minute at 100 Mb/s, by which controllers have settled.
const WARM_UP: usize = 300_000;
const LINK: Rate = Rate::from_bps(100_000_000);
const FAST_LINK: Rate = Rate::from_bps(10_000_000_000);
const FULL_SIZE: u32 = 1500;

/// What is offered to which link.
#[derive(Clone, Copy)]
struct Regime {
    name: &'static str,
    rate: Rate,
    load: f64,
    flows: u32,
    /// Sizes from 40 to 1500 bytes and all four ECN fields, instead of full-sized packets without ECN.
    is_mixed: bool,
    /// The queue in packets to which the parameters are set, and which waits when the stream begins.
    queue: Option<u32>,
}

const USUAL: Regime = Regime { name: "standing", rate: LINK, load: 1.03, flows: 100, is_mixed: false, queue: None };

const REGIMES: [Regime; 9] = [
    USUAL,
    Regime { name: "light", load: 0.6, ..USUAL },
    Regime { name: "flows-1000", flows: 1000, ..USUAL },
    Regime { name: "mixed", is_mixed: true, ..USUAL },
    Regime { name: "overload", load: 1.5, ..USUAL },
    Regime { name: "flows-10", flows: 10, ..USUAL },
    Regime { name: "flows-10000", flows: 10_000, ..USUAL },
    Regime { name: "queue-10", rate: FAST_LINK, queue: Some(10), ..USUAL },
    Regime { name: "queue-100000", rate: FAST_LINK, queue: Some(100_000), ..USUAL },
];

/// A packet as small as it can be.
#[derive(Clone, Copy)]
struct Parcel {
    flow: u32,
    size: u16,
    ecn: Ecn,
}

impl Packet for Parcel {
    fn size(&self) -> u32 {
        u32::from(self.size)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn flow(&self) -> FlowKey {
        FlowKey(u64::from(self.flow))
    }
}

/// What a driver's tap does at least.
struct Deaf;

impl Tap<Parcel> for Deaf {
    fn dropped(&mut self, _packet: Parcel, _cause: Cause, _now: Time) {}
    fn marked(&mut self, _packet: &Parcel, _cause: Cause, _now: Time) {}
}

impl Headers<Parcel> for Deaf {
    fn hosts(&self, packet: &Parcel) -> Option<(u32, u32)> {
        // Eight flows from each host, each to a host of its own.
        Some((packet.flow / 8, packet.flow))
    }
}

/// A link under a stream of packets.
struct Bench {
    egress: Egress<Parcel>,
    /// Packets and the time from one to the next, in nanoseconds, to be gone through again and again.
    offers: Vec<(u32, Parcel)>,
    next: usize,
    now: Time,
}

impl Bench {
    fn new(row: &Row<Text>, regime: &Regime) -> Self {
        let written = regime.queue.map_or(Vec::new(), |queue| standing_at(row, queue, regime.rate));
        Self::written(row, regime, &written)
    }

    fn written(row: &Row<Text>, regime: &Regime, written: &[(String, String)]) -> Self {
        let qdisc = common::build(&row.name, written, regime.rate, Stream::named(1, "discipline"))
            .unwrap_or_else(|error| panic!("{}: {error}", row.name));
        let egress = Egress::new(regime.rate, qdisc);
        let mut bench = Self { egress, offers: offers(regime), next: 0, now: Time::ZERO };
        for place in 0..regime.queue.unwrap_or(0) {
            let (_, parcel) = bench.offers[place as usize % bench.offers.len()];
            bench.egress.offer(parcel, Time::ZERO, &mut Deaf);
        }
        bench
    }

    fn warm_up(&mut self) {
        for _ in 0..WARM_UP {
            self.step();
        }
    }

    #[inline]
    fn step(&mut self) {
        let (gap_ns, parcel) = self.offers[self.next];
        self.next = if self.next + 1 == self.offers.len() { 0 } else { self.next + 1 };
        self.now = Time::from_ns(self.now.ns() + u64::from(gap_ns));
        while self.egress.next_event() <= self.now {
            black_box(self.egress.advance(self.now, &mut Deaf));
        }
        self.egress.offer(parcel, self.now, &mut Deaf);
    }
}

/// What is timed, and what callgrind collects in.
#[inline(never)]
fn stretch(bench: &mut Bench, packets: usize) {
    for _ in 0..packets {
        bench.step();
    }
}

fn offers(regime: &Regime) -> Vec<(u32, Parcel)> {
    let mut stream = Stream::named(2, "offers");
    // Enough to meet all flows, few enough to be in a near cache while they are few.
    let count = (8 * regime.flows as usize).max(8192);
    let sizes: Vec<u16> = (0..count)
        .map(|_| match (regime.is_mixed, stream.below(10)) {
            (false, _) | (true, 4..) => FULL_SIZE as u16,
            (true, 0..2) => 40,
            (true, _) => 41 + stream.below(1459) as u16,
        })
        .collect();
    let mean = sizes.iter().map(|size| f64::from(*size)).sum::<f64>() / count as f64;
    let gap_ns = mean * 8e9 / regime.rate.bps_f64() / regime.load;
    let fields = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
    let draw = |size| {
        let ecn = if regime.is_mixed { fields[stream.below(4) as usize] } else { Ecn::NotEct };
        let parcel = Parcel { flow: stream.below(u64::from(regime.flows)) as u32, size, ecn };
        ((-gap_ns * maths::ln(stream.open_unit())) as u32, parcel)
    };
    let mut offers: Vec<(u32, Parcel)> = sizes.into_iter().map(draw).collect();
    // The gaps as drawn are a load of some percent more or less.
    let drawn_ns: f64 = offers.iter().map(|(gap_ns, _)| f64::from(*gap_ns)).sum();
    let scale = gap_ns * count as f64 / drawn_ns;
    offers.iter_mut().for_each(|(gap_ns, _)| *gap_ns = (f64::from(*gap_ns) * scale) as u32);
    offers
}

/// Parameters, by their names, with which a queue of `queue` packets is where a discipline wants it.
fn standing_at(row: &Row<Text>, queue: u32, rate: Rate) -> Vec<(String, String)> {
    let ns = f64::from(queue) * f64::from(FULL_SIZE) * 8e9 / rate.bps_f64();
    let (below, above) = (f64::from(queue) * 0.75, f64::from(queue) * 1.5);
    let is_delayed = row.params.iter().any(|param| param.name == "target" && param.kind == Kind::Time);
    let mut written = Vec::new();
    for param in &row.params {
        let text = match (&*param.name, param.kind) {
            ("limit", _) => format!("{}p", 2 * queue),
            ("qref", _) | ("threshold" | "target", Kind::LengthOrTime) => format!("{queue}p"),
            ("target", Kind::Time) => format!("{ns}ns"),
            // No shorter than the target, which RFC 8289 has at a twentieth of it.
            ("interval" | "rtt", Kind::Time) if is_delayed && ns > 1e8 => format!("{}ns", 20.0 * ns),
            ("min" | "min_in" | "min_out", Kind::Length) => format!("{below}p"),
            ("max" | "max_in" | "max_out", Kind::Length) => format!("{above}p"),
            ("depth", _) => format!("{queue}"),
            _ => continue,
        };
        written.push((param.name.to_string(), text));
    }
    written
}

/// What one discipline cost in one regime.
struct Cost {
    ns: f64,
    droptail_ns: f64,
    mean_queue: f64,
    loss: f64,
}

/// Times a discipline and drop-tail in turn. The least of all stretches: what else runs on a machine only ever adds.
#[expect(clippy::disallowed_methods, reason = "a program that times")]
fn time(row: &Row<Text>, regime: &Regime, rounds: usize) -> Cost {
    let mut pair = [registry::row("pfifo").expect("drop-tail is there"), row].map(|row| Bench::new(row, regime));
    pair.iter_mut().for_each(Bench::warm_up);
    let mut least_ns = [f64::INFINITY; 2];
    let before = *pair[1].egress.counts();
    let mut queues = 0.0;
    for _ in 0..rounds {
        for (bench, least_ns) in pair.iter_mut().zip(&mut least_ns) {
            // The first few thousand bring it back into the caches.
            stretch(bench, STRETCH / 10);
            let started = Instant::now();
            stretch(bench, STRETCH);
            *least_ns = least_ns.min(started.elapsed().as_secs_f64() * 1e9 / STRETCH as f64);
        }
        queues += f64::from(pair[1].egress.backlog().packets);
    }
    let after = pair[1].egress.counts();
    let lost = after.dropped_total() + after.marked_total() - before.dropped_total() - before.marked_total();
    Cost {
        ns: least_ns[1],
        droptail_ns: least_ns[0],
        mean_queue: queues / rounds as f64,
        loss: lost as f64 / (after.offered - before.offered) as f64,
    }
}

/// Bytes on the heap that a discipline has, with room for 1000 packets, once a stream has gone through it; `is_flood`:
/// of flows of one packet each.
fn memory(row: &Row<Text>, regime: &Regime, packets: usize, is_flood: bool) -> usize {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let mut bench = Bench::written(row, regime, &[("limit".to_owned(), "1000p".to_owned())]);
    for number in 0..packets {
        if is_flood {
            let place = bench.next;
            bench.offers[place].1.flow = number as u32;
        }
        bench.step();
    }
    let offers = bench.offers.capacity() * size_of::<(u32, Parcel)>();
    ALLOCATED.load(Ordering::Relaxed) - before - offers
}

/// Live bytes of the heap.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting bytes.
struct Counting;

// SAFETY: every call goes to the system's allocator as it is; counting touches nothing of it and does not allocate.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(memory, layout) }
    }
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATED.fetch_add(size, Ordering::Relaxed);
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(clippy::print_stdout, reason = "a program that prints what it measured")]
fn time_all(rounds: usize) {
    for row in registry::rows() {
        for regime in &REGIMES {
            let Cost { ns, droptail_ns, mean_queue, loss } = time(row, regime, rounds);
            println!(
                "{{\"discipline\": \"{}\", \"regime\": \"{}\", \"ns\": {ns:.2}, \"droptail_ns\": {droptail_ns:.2}, \
                 \"mean_queue\": {mean_queue:.1}, \"signalled\": {loss:.4}}}",
                row.name, regime.name
            );
        }
        let of_flows = |flows| memory(row, &Regime { flows, ..USUAL }, WARM_UP, false);
        let of_flood = |packets| memory(row, &USUAL, packets, true);
        println!(
            "{{\"discipline\": \"{}\", \"regime\": \"memory\", \"flows_10\": {}, \"flows_10000\": {}, \
             \"flood_100000\": {}, \"flood_1000000\": {}}}",
            row.name,
            of_flows(10),
            of_flows(10_000),
            of_flood(100_000),
            of_flood(1_000_000)
        );
    }
}

fn count(name: Option<&str>) {
    for row in registry::rows().filter(|row| name.is_none_or(|name| name == row.name)) {
        for regime in &REGIMES {
            let mut bench = Bench::new(row, regime);
            bench.warm_up();
            stretch(&mut bench, STRETCH);
        }
    }
}

#[expect(clippy::print_stdout, reason = "a program that prints")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["time"] => time_all(20),
        ["time", rounds] if rounds.parse::<usize>().is_ok_and(|rounds| rounds > 0) => {
            time_all(rounds.parse().expect("it was read before"));
        }
        ["list"] => {
            for row in registry::rows() {
                REGIMES.iter().for_each(|regime| println!("{} {}", row.name, regime.name));
            }
        }
        ["count"] => count(None),
        ["count", name] if registry::row(name).is_some() => count(Some(name)),
        _ => {
            eprintln!("decisions: expected time [ROUNDS], list, or count [NAME of a discipline]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
