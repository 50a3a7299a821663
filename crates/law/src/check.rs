//! This file tries a new law before anything depends on it: with random arrivals and departures, ticks when they are
//! due, bursts, a full queue, and silence. It counts what the law does. If the law breaks a promise, it tells the last
//! operations.

use aqm::fault::{Fault, caught};
use aqm::param::Values;
use aqm::registry::{Entry, Site};
use aqm::{Cause, Headers, Packet, Qdisc, Tap};
use base::{Ecn, FlowKey, Rate, Span, Stream, Time};
use std::collections::VecDeque;

/// How many of the last operations are told.
const STORY: usize = 8;
/// Silence after which a law should let a lone packet pass.
const SILENCE: Span = Span::from_secs(60);

/// A packet of the check.
#[derive(Clone, Copy, Debug)]
struct Parcel {
    size: u32,
    ecn: Ecn,
    flow: u64,
}

impl Packet for Parcel {
    fn size(&self) -> u32 {
        self.size
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn flow(&self) -> FlowKey {
        FlowKey(self.flow)
    }
}

/// The counts of a trial.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Packets that arrived.
    pub offered: u64,
    /// Packets that left.
    pub taken: u64,
    /// Packets that the law lost.
    pub lost: u64,
    /// Packets that a full queue refused.
    pub refused: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Ticks.
    pub ticks: u64,
    /// Lone packets that the law lost after a long silence.
    pub lost_when_idle: u64,
    /// A hash of everything that happened, in its order.
    pub history: u64,
}

/// Counts what the discipline tells.
#[derive(Default)]
struct Seen {
    counts: Counts,
}

impl Seen {
    fn note(&mut self, what: u64, now: Time) {
        let mixed = FlowKey(self.counts.history ^ now.ns()).hash(what);
        self.counts.history = mixed;
    }
}

impl Tap<Parcel> for Seen {
    fn dropped(&mut self, packet: Parcel, cause: Cause, now: Time) {
        let counts = &mut self.counts;
        *(if cause == Cause::Tail { &mut counts.refused } else { &mut counts.lost }) += 1;
        self.note(u64::from(packet.size) + packet.flow + 10_000 * cause as u64, now);
    }
    fn marked(&mut self, packet: &Parcel, _cause: Cause, now: Time) {
        self.counts.marked += 1;
        self.note(100_000 + u64::from(packet.size), now);
    }
}

impl Headers<Parcel> for Seen {
    fn hosts(&self, packet: &Parcel) -> Option<(u32, u32)> {
        Some((packet.flow as u32 % 4, packet.flow as u32 % 7))
    }
}

/// A law in its queue, driven at random.
struct Drive {
    qdisc: Box<dyn Qdisc<Parcel> + Send>,
    rate: Rate,
    now: Time,
    seen: Seen,
    story: VecDeque<String>,
    tells: bool,
}

impl Drive {
    fn tell(&mut self, what: impl FnOnce() -> String) {
        if self.tells {
            if self.story.len() == STORY {
                self.story.pop_front();
            }
            self.story.push_back(format!("{:.6} s: {}", self.now.secs_f64(), what()));
        }
    }

    /// Lets time pass, and the law tick when it wants to.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while self.qdisc.next_tick() <= until {
            self.now = self.qdisc.next_tick().max(self.now);
            let waits = self.qdisc.backlog().packets;
            self.tell(|| format!("the law ticks; {waits} packets wait"));
            self.seen.counts.ticks += 1;
            self.qdisc.tick(self.now);
        }
        self.now = until;
        self.qdisc.gauges();
    }

    fn offer(&mut self, packet: Parcel) {
        let waits = self.qdisc.backlog().packets;
        let Parcel { size, ecn, flow } = packet;
        self.tell(|| format!("a packet of {size} bytes ({ecn:?}, flow {flow}) arrives; {waits} wait"));
        self.seen.counts.offered += 1;
        self.qdisc.offer(packet, self.now, &mut self.seen);
        self.is_conserved();
    }

    /// Takes a packet and sends it; false where none waits.
    fn take(&mut self) -> bool {
        let waits = self.qdisc.backlog().packets;
        self.tell(|| format!("the link asks for a packet; {waits} wait"));
        let taken = self.qdisc.take(self.now, &mut self.seen).packet();
        self.is_conserved_after(taken.is_some());
        let Some(held) = taken else { return false };
        self.seen.note(200_000 + held.packet.flow, held.enqueued);
        self.pass(Span::from_secs_f64(f64::from(held.packet.size) * 8.0 / self.rate.bps_f64()));
        true
    }

    fn is_conserved_after(&mut self, is_taken: bool) {
        self.seen.counts.taken += u64::from(is_taken);
        self.is_conserved();
    }

    fn is_conserved(&self) {
        let Counts { offered, taken, lost, refused, .. } = self.seen.counts;
        let held = u64::from(self.qdisc.backlog().packets);
        assert_eq!(offered, taken + lost + refused + held, "packets are conserved");
    }

    /// Makes rounds of a burst and departures, lighter and heavier by turns. Then come silence and a lone packet.
    fn run(&mut self, random: &mut Stream, operations: u32) {
        let mut done = 0;
        while done < operations {
            let (most, heavy) = (1 + random.below(40), 1 + random.below(3));
            for _ in 0..1 + random.below(400) {
                for _ in 0..random.below(1 + most.min(heavy * 2)) {
                    self.offer(parcel(random));
                    done += 1;
                }
                if !self.take() {
                    self.pass(Span::from_us(random.below(5_000)));
                }
                done += 1;
            }
            for _ in 0..most * random.below(30) {
                self.offer(parcel(random));
                done += 1;
            }
            while random.below(3) > 0 && self.take() {
                done += 1;
            }
        }
        while self.take() {}
        self.pass(SILENCE);
        let before = self.seen.counts.lost;
        self.offer(Parcel { size: 1500, ecn: Ecn::NotEct, flow: 1 });
        self.take();
        self.seen.counts.lost_when_idle += self.seen.counts.lost - before;
    }
}

fn parcel(random: &mut Stream) -> Parcel {
    let size = [40, 576, 1500][random.below(3) as usize];
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][random.below(3) as usize];
    Parcel { size, ecn, flow: random.below(8) }
}

/// Drives a discipline with `values`, before a link of `rate`, through a trial that `seed` determines. Returns its
/// counts. The error says what the law did wrong, with the last operations if `tells` is set.
///
/// # Errors
/// The law has broken a promise.
pub fn drive(
    entry: &Entry,
    values: &Values,
    rate: Rate,
    seed: u64,
    operations: u32,
    tells: bool,
) -> Result<Counts, (Fault, Vec<String>)> {
    let (mut random, stream) = (Stream::named(seed, "check"), Stream::named(seed, "law"));
    let built = caught(|| entry.build(values, Site { rate, stream }));
    let qdisc = built.map_err(|fault| (fault, vec!["the law is made, and prepare is called".to_owned()]))?;
    let mut drive = Drive { qdisc, rate, now: Time::ZERO, seen: Seen::default(), story: VecDeque::new(), tells };
    match caught(|| drive.run(&mut random, operations)) {
        Ok(()) => Ok(drive.seen.counts),
        Err(fault) => Err((fault, drive.story.into())),
    }
}
