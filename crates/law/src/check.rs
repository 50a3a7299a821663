//! This file tries a new law or discipline before anything depends on it: with random arrivals and departures, ticks
//! when they are due, bursts, a full queue, and silence. It counts what becomes of packets. If a promise is broken, it
//! tells the last operations, and before them those of the packet that it is about.

use aqm::fault::{Fault, caught};
use aqm::param::Values;
use aqm::qdisc::Taken;
use aqm::registry::{Entry, Site};
use aqm::{Cause, Headers, Packet, Qdisc, Tap};
use base::{Ecn, FlowKey, Rate, Span, Stream, Time};
use std::collections::BTreeSet;

/// How many of the last operations are told.
const STORY: usize = 8;
/// Spans of time between two looks at what the law shows, which runs look at once in many packets too.
const UNSEEN: u32 = 16;
/// Silence after which a law should let a lone packet pass.
const SILENCE: Span = Span::from_secs(60);
/// Packets of the burst that a trial begins with, at most: more than most queues hold.
const BURST: u64 = 1_500;
/// Flows that packets are of.
const FLOWS: u64 = 8;
/// How often a link asks in vain, while nothing arrives, until a discipline is taken to keep packets back for ever.
const VAIN: u32 = 10_000;

/// A packet of the check.
#[derive(Clone, Copy, Debug)]
struct Parcel {
    /// Which one it is; the first is 1.
    number: u64,
    size: u32,
    ecn: Ecn,
    flow: u64,
    dscp: u8,
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
    fn dscp(&self) -> u8 {
        self.dscp
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
    /// Packets that left after a later one of their flow.
    pub reordered: u64,
    /// The first two of these: a packet, and an earlier one of its flow that left after it.
    pub overtaking: Option<(u64, u64)>,
    /// A hash of everything that happened, in its order.
    pub history: u64,
}

/// Counts what the discipline tells, and keeps the story.
#[derive(Default)]
struct Seen {
    counts: Counts,
    /// Packets that are held.
    held: BTreeSet<u64>,
    /// For each flow the latest packet that has left.
    latest: [u64; FLOWS as usize],
    /// What happened, and to which packet.
    story: Option<Vec<(u64, String)>>,
}

impl Seen {
    fn note(&mut self, what: u64, now: Time) {
        let mixed = FlowKey(self.counts.history ^ now.ns()).hash(what);
        self.counts.history = mixed;
    }

    fn tell(&mut self, packet: u64, now: Time, what: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push((packet, format!("{:.6} s: {}", now.secs_f64(), what())));
        }
    }

    /// A packet leaves.
    fn leaves(&mut self, packet: &Parcel) {
        self.held.remove(&packet.number);
        self.counts.taken += 1;
        let latest = &mut self.latest[packet.flow as usize];
        if packet.number < *latest {
            self.counts.reordered += 1;
            self.counts.overtaking.get_or_insert((*latest, packet.number));
        }
        *latest = packet.number.max(*latest);
    }

    /// The last operations, and before them those of a packet.
    fn told(self, packet: Option<u64>) -> Vec<String> {
        let mut story = self.story.unwrap_or_default();
        let last = story.split_off(story.len().saturating_sub(STORY));
        let its = story.into_iter().filter(|(of, _)| Some(*of) == packet);
        its.chain(last).map(|(_, line)| line).collect()
    }
}

impl Tap<Parcel> for Seen {
    fn dropped(&mut self, packet: Parcel, cause: Cause, now: Time) {
        let counts = &mut self.counts;
        *(if cause.kind() == Cause::TAIL { &mut counts.refused } else { &mut counts.lost }) += 1;
        self.held.remove(&packet.number);
        self.tell(packet.number, now, || format!("packet {} is lost ({})", packet.number, cause.name()));
        // Which number an own cause has differs between processes.
        let name: u64 = cause.name().bytes().filter(|_| cause.is_own()).map(u64::from).sum();
        self.note(u64::from(packet.size) + packet.flow + 10_000 * cause.index() as u64 + name, now);
    }
    fn marked(&mut self, packet: &Parcel, cause: Cause, now: Time) {
        self.tell(packet.number, now, || format!("packet {} is marked ({})", packet.number, cause.name()));
        self.counts.marked += 1;
        self.note(100_000 + u64::from(packet.size), now);
    }
}

impl Headers<Parcel> for Seen {
    fn hosts(&self, packet: &Parcel) -> Option<(u32, u32)> {
        Some((packet.flow as u32 % 4, packet.flow as u32 % 7))
    }
}

/// A discipline, be it a law in its queue, driven at random.
struct Drive {
    qdisc: Box<dyn Qdisc<Parcel> + Send>,
    /// What it is called.
    name: String,
    rate: Rate,
    now: Time,
    seen: Seen,
    passed: u32,
}

/// What a link that asked for a packet got.
enum Got {
    Packet,
    Later(Time),
    Nothing,
}

impl Drive {
    /// Lets time pass, and the discipline tick when it wants to.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while self.qdisc.next_tick() <= until {
            self.now = self.qdisc.next_tick().max(self.now);
            let waits = self.qdisc.backlog().packets;
            self.seen.tell(0, self.now, || format!("it ticks; {waits} packets wait"));
            self.seen.counts.ticks += 1;
            self.qdisc.tick(self.now);
        }
        self.now = until;
        self.passed += 1;
        if self.passed.is_multiple_of(UNSEEN) {
            self.qdisc.gauges();
        }
    }

    fn offer(&mut self, mut packet: Parcel) {
        let waits = self.qdisc.backlog().packets;
        self.seen.counts.offered += 1;
        packet.number = self.seen.counts.offered;
        let Parcel { number, size, ecn, flow, .. } = packet;
        self.seen.tell(number, self.now, || {
            format!("packet {number} of {size} bytes ({ecn:?}, flow {flow}) arrives; {waits} wait")
        });
        self.seen.held.insert(number);
        self.qdisc.offer(packet, self.now, &mut self.seen);
        self.is_conserved();
    }

    /// Takes a packet and sends it.
    fn ask(&mut self) -> Got {
        let waits = self.qdisc.backlog().packets;
        self.seen.tell(0, self.now, || format!("the link asks for a packet; {waits} wait"));
        let held = match self.qdisc.take(self.now, &mut self.seen) {
            Taken::Packet(held) => held,
            Taken::Later(at) => {
                self.seen.tell(0, self.now, || format!("it is to ask again at {:.6} s", at.secs_f64()));
                self.is_conserved();
                return Got::Later(at);
            }
            Taken::Empty => {
                self.is_conserved();
                return Got::Nothing;
            }
        };
        self.seen.leaves(&held.packet);
        self.seen.tell(held.packet.number, self.now, || format!("packet {} leaves", held.packet.number));
        self.is_conserved();
        self.seen.note(200_000 + held.packet.flow, held.enqueued);
        self.pass(Span::from_secs_f64(f64::from(held.packet.size) * 8.0 / self.rate.bps_f64()));
        Got::Packet
    }

    /// Takes a packet and sends it; false where none is to be had now.
    fn take(&mut self) -> bool {
        matches!(self.ask(), Got::Packet)
    }

    /// Takes what waits until nothing does. Nothing arrives meanwhile.
    fn drain(&mut self) {
        let (mut since, mut in_vain) = (self.now, 0);
        loop {
            match self.ask() {
                Got::Nothing => return,
                Got::Packet => (since, in_vain) = (self.now, 0),
                Got::Later(at) => {
                    in_vain += 1;
                    if in_vain > VAIN || at.since(since) > SILENCE {
                        self.keeps_back(since, in_vain);
                    }
                    self.pass(at.since(self.now));
                }
            }
        }
    }

    /// A discipline holds packets back and sends nothing.
    fn keeps_back(&self, since: Time, in_vain: u32) -> ! {
        let waited = self.now.since(since).secs_f64();
        let times = if in_vain == 1 { "once".into() } else { format!("{in_vain} times") };
        let Some(oldest) = self.seen.held.first() else {
            let what = format!("asked to be asked again though it holds nothing, {times} within {waited:.6} s");
            Fault::of_discipline(&*self.name, what).raise()
        };
        let what = format!(
            "keeps packet {oldest} back: nothing else arrives, the link asked {times} within {waited:.6} s, and it \
             sends nothing"
        );
        Fault::of_discipline(&*self.name, what).about(*oldest).raise()
    }

    fn is_conserved(&self) {
        let Counts { offered, taken, lost, refused, .. } = self.seen.counts;
        let held = u64::from(self.qdisc.backlog().packets);
        assert_eq!(offered, taken + lost + refused + held, "packets are conserved");
    }

    /// Makes a burst, before the law has seen a packet leave, so that packets wait as long as the queue lets them. Then
    /// come rounds of a burst and departures, lighter and heavier by turns, and at last silence and a lone packet.
    fn run(&mut self, random: &mut Stream, operations: u32) {
        let mut done = 0;
        for _ in 0..BURST / 2 + random.below(BURST / 2) {
            self.offer(parcel(random));
            done += 1;
        }
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
        self.drain();
        self.pass(SILENCE);
        let before = self.seen.counts.lost;
        self.offer(Parcel { number: 0, size: 1500, ecn: Ecn::NotEct, flow: 1, dscp: 0 });
        if !self.take() {
            self.drain();
        }
        self.seen.counts.lost_when_idle += self.seen.counts.lost - before;
    }
}

fn parcel(random: &mut Stream) -> Parcel {
    let size = [40, 576, 1500][random.below(3) as usize];
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][random.below(3) as usize];
    let flow = random.below(FLOWS);
    Parcel { number: 0, size, ecn, flow, dscp: [0, 8, 46][flow as usize % 3] }
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
    let qdisc = built.map_err(|fault| (fault, vec!["it is made, and prepare is called".to_owned()]))?;
    let seen = Seen { story: tells.then(Vec::new), ..Seen::default() };
    let mut drive = Drive { qdisc, name: entry.row().name.to_string(), rate, now: Time::ZERO, seen, passed: 0 };
    match caught(|| drive.run(&mut random, operations)) {
        Ok(()) => Ok(drive.seen.counts),
        Err(fault) => {
            let story = drive.seen.told(fault.packet());
            Err((fault, story))
        }
    }
}
