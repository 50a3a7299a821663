//! The link of the records: Linux's HTB with one class, as it asks the discipline below it for packets.
//!
//! A class that has tokens may send, and goes into debt by what it sends; in debt it waits until that is paid. Tokens
//! are time: what a packet takes at the class's rate. Departures are therefore at the start of what would be a
//! packet's transmission, and after a pause the burst lets the second one leave with the first.

use super::{Arrival, Discipline, Fate, Numbered, Record, Told, fate, tick};
use base::{FlowKey, Stream, Time};

/// Bytes that the class may send at once after a pause: `burst` of the records' command.
const BURST_BYTES: u64 = 1600;

/// What became of the packets of a record when our discipline decided for itself.
#[derive(Debug)]
pub struct Outcome {
    /// Of each packet in order of arrival.
    pub fates: Vec<Fate>,
    /// When each left, if it did.
    pub left: Vec<Option<Time>>,
}

impl Record {
    /// Feeds our discipline with the same packets at the same times, below an HTB of ours. Random numbers are those of
    /// the stream `linux` of `seed`.
    pub fn run(&self, seed: u64) -> Outcome {
        let (mut qdisc, keys) = self.build(seed);
        let mut link = Htb::new(self);
        let mut told = Told::new(self.arrivals.len());
        let mut left: Vec<Option<Time>> = vec![None; self.arrivals.len()];
        // How the kernel's timers stood to the packets is not known: a second holds every period of theirs.
        let phase = Stream::named(seed, "phase").below(1_000_000_000 / self.quantum_ns()) * self.quantum_ns();
        let later = |at: Time| Time::from_ns(at.ns() + phase);
        for (number, arrival) in self.arrivals.iter().enumerate() {
            let arrival = &Arrival { at: later(arrival.at), ..*arrival };
            link.send_until(arrival.at, &mut qdisc, &mut told, &mut left);
            tick(&mut qdisc, arrival.at);
            told.arrived += 1;
            qdisc.offer(numbered(number, arrival, &keys), arrival.at, &mut told);
            // A packet that finds the class with tokens leaves at once.
            link.send_at(arrival.at, &mut qdisc, &mut told, &mut left);
        }
        link.send_until(Time::NEVER, &mut qdisc, &mut told, &mut left);
        let left = left.into_iter().map(|at| Some(Time::from_ns(at?.ns() - phase))).collect();
        Outcome { fates: told.fates, left }
    }
}

impl Record {
    /// The step of the kernel's clock.
    fn quantum_ns(&self) -> u64 {
        self.text["quantum_ns"].as_u64().expect("quantum_ns")
    }
}

fn numbered(number: usize, arrival: &Arrival, keys: &[FlowKey]) -> Numbered {
    let flow = keys.get(arrival.flow as usize).copied().unwrap_or(FlowKey(arrival.flow));
    Numbered { number, arrival: *arrival, ecn: arrival.ecn, flow }
}

/// A class: its tokens in nanoseconds, and when they were last counted.
struct Htb {
    rate_bps: u64,
    quantum_ns: u64,
    burst_ns: i64,
    tokens_ns: i64,
    counted: Time,
    /// In debt: when it is next asked.
    due: Option<Time>,
}

impl Htb {
    fn new(record: &Record) -> Self {
        let rate_bps = record.text["rate_bps"].as_u64().expect("rate_bps");
        let burst_ns = takes_ns(BURST_BYTES, rate_bps);
        let quantum_ns = record.quantum_ns();
        Self { rate_bps, quantum_ns, burst_ns, tokens_ns: burst_ns, counted: Time::ZERO, due: None }
    }

    /// Sends whatever leaves before `until`; at [`Time::NEVER`], all there is.
    fn send_until(&mut self, until: Time, qdisc: &mut Discipline, told: &mut Told, left: &mut [Option<Time>]) {
        while let Some(due) = self.due.filter(|due| *due < until) {
            self.due = None;
            self.send_at(due, qdisc, told, left);
        }
    }

    /// Sends what may leave at this instant.
    fn send_at(&mut self, now: Time, qdisc: &mut Discipline, told: &mut Told, left: &mut [Option<Time>]) {
        if self.due.is_some_and(|due| due > now) {
            return;
        }
        self.due = None;
        loop {
            self.count(now);
            if self.tokens_ns < 0 {
                // The kernel's clock has steps; its timer goes off with the first one that is late enough.
                let due = now.ns() + self.tokens_ns.unsigned_abs();
                self.due = Some(Time::from_ns(due.next_multiple_of(self.quantum_ns)));
                return;
            }
            tick(qdisc, now);
            // HTB knows when the queue below it is empty and does not ask: RED, for one, does not hear of the pause.
            if qdisc.backlog().packets == 0 {
                return;
            }
            let Some(held) = qdisc.take(now, told).packet() else { return };
            let packet = held.packet;
            self.tokens_ns -= takes_ns(u64::from(packet.arrival.size), self.rate_bps);
            told.fates[packet.number] = fate(packet.arrival.ecn, packet.ecn);
            left[packet.number] = Some(now);
        }
    }

    fn count(&mut self, now: Time) {
        let passed = now.since(self.counted).ns().min(i64::MAX as u64 / 2) as i64;
        self.tokens_ns = (self.tokens_ns + passed).min(self.burst_ns);
        self.counted = now;
    }
}

fn takes_ns(bytes: u64, rate_bps: u64) -> i64 {
    (bytes * 8_000_000_000 / rate_bps) as i64
}
