//! Fair queueing stands around any law. Flows are hashed to queues, queues take turns by bytes, and a queue that was
//! empty a moment ago goes first. So a flow that sends less than its share does not wait behind others. A law of its
//! own acts on each queue.
//!
//! Source: Hoeiland-Joergensen, McKenney, Taht, Gettys and Dumazet, "The Flow Queue CoDel Packet Scheduler and Active
//! Queue Management Algorithm", RFC 8290, 2018; the turns: Shreedhar and Varghese, "Efficient Fair Queuing Using
//! Deficit Round-Robin", SIGCOMM 1995; MacGregor and Shi, "Deficits for Bursty Latency-critical Flows: DRR++", ICON
//! 2000.
//!
//! | RFC 8290 | here |
//! |---|---|
//! | flow (a queue) | `Flow` |
//! | new flows, old flows | lists `NEW`, `OLD` |
//! | quantum, byte credits | `quantum`, `deficit` |
//! | the queue with the largest byte count, batch of drops | `evict` |
//!
//! The forms in use differ in this:
//!
//! | what | the RFC | `linux` |
//! |---|---|---|
//! | a new queue found empty while none is old | grows old | leaves the lists, and is new with its next packet |
//! | eviction takes half of the fattest queue's | packets, rounded up here | bytes, rounded down |
//!
//! All other dialects are the law's alone, with the RFC's turns and evictions. So is `ns3`, while ns-3 itself evicts
//! half of the bytes as Linux does.
//!
//! Randomness: the first number of the stream, drawn when the discipline is made, perturbs the hash; the law of each
//! queue brings its own.
//!
//! Deviations. Sizes are IP packets, without the link's header. No limit on memory: the kernel's counts its buffers.

use super::heap::Heap;
use super::pool::{Pool, Queue};
use super::rota::Rota;
use super::{Held, Qdisc, Taken, fifo::Limit};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::law::{Arrival, Departure, Gauges, Law, Verdict};
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::{Kind, Param, Values};
use crate::registry;
use base::{FlowKey, Rate, Stream, Time};

/// The `flows` of fair queueing.
pub const FLOWS: Param = Param {
    name: "flows",
    kind: Kind::Integer,
    default: "1024",
    range: (1.0, 65_536.0),
    doc: "Number of queues that flows are hashed to; flows that meet in one share it.",
    source: "RFC 8290 §5.2.5",
};

/// The `quantum` of fair queueing.
pub const QUANTUM: Param = Param {
    name: "quantum",
    kind: Kind::Size,
    default: "1514b",
    range: (1.0, 1_048_576.0),
    doc: "Bytes that a queue may send in its turn.",
    source: "RFC 8290 §5.2.4; tc-fq_codel(8): the MTU with its Ethernet header",
};

/// The `drop_batch` of fair queueing.
pub const DROP_BATCH: Param = Param {
    name: "drop_batch",
    kind: Kind::Integer,
    default: "64",
    range: (1.0, 65_536.0),
    doc: "At the limit, the fattest queue loses half of its packets (linux: of its bytes) from the head, but so many \
          packets at most.",
    source: "RFC 8290 §4.1; tc-fq_codel(8): 64",
};

/// What fair queueing shows.
pub const GAUGES: &[Gauge] = &[Gauge::flows("Queues of flows that hold packets or have a turn.")];

/// Queues with a turn at once: they were empty a moment ago.
const NEW: u32 = 0;
/// Queues that wait for their turn.
const OLD: u32 = 1;

/// What happens at the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Full {
    /// The fattest queue loses up to so many packets.
    EvictFattest(u32),
    /// The arriving packet is lost.
    RefuseArriving,
}

/// What a law takes for its queue's backlog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// That of its own queue.
    Own,
    /// That of all queues together.
    All,
}

/// What differs between the forms in use.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    /// A new queue that is found empty leaves the lists where none is old.
    leaves_at_once: bool,
    /// Eviction takes half of the bytes, not of the packets.
    evicts_bytes: bool,
}

/// RFC 8290.
const RFC_8290: Dialect = Dialect { leaves_at_once: false, evicts_bytes: false };

/// Linux sch_fq_codel.c, sch_fq_pie.c.
const LINUX: Dialect = Dialect { leaves_at_once: true, evicts_bytes: true };

impl Dialect {
    fn of(values: &Values) -> Self {
        match values.find_word("dialect") {
            Some("linux") => LINUX,
            _ => RFC_8290,
        }
    }
}

#[derive(Clone, Debug)]
struct Flow<L> {
    law: L,
    queue: Queue,
    /// Bytes it may still send in this turn; no turn at 0 or below.
    deficit: i64,
    /// The beat since which its law sleeps; none if it is among those whose law ticks.
    asleep_since: Option<u64>,
}

impl<L> Flow<L> {
    /// The key by which the fattest queue is found: its bytes. Of equal queues the first is fattest.
    fn fatness(&self, index: u32) -> Option<(u64, u32)> {
        let bytes = self.queue.backlog().bytes;
        (bytes > 0).then_some((bytes, u32::MAX - index))
    }
}

impl<L: Law> Flow<L> {
    /// Tells the law at once that an empty queue is idle again, after the packet that arrived was lost. An empty queue
    /// has no turn in which that would be seen, and the law would take the time until the next arrival for a busy one.
    #[inline]
    fn stays_empty(&mut self, now: Time) {
        if self.queue.is_empty() {
            self.law.on_idle(now);
        }
    }
}

/// Queues around laws.
#[derive(Clone, Debug)]
pub struct FairQueue<P, L> {
    limit: Limit,
    full: Full,
    seen: Seen,
    dialect: Dialect,
    quantum: i64,
    salt: u64,
    flows: Vec<Flow<L>>,
    turns: Rota,
    /// Where the fattest loses: queues by bytes, and the first before others, or by what these once were and are below
    /// now.
    fattest: Heap<(u64, u32)>,
    pool: Pool<P>,
    held: Backlog,
    /// A law without a queue: it keeps the time for queues that wake.
    pace: L,
    /// The queues whose law ticks, in no order. A queue sleeps until its first packet comes, and while it is empty, has
    /// no turn and its law is at rest: so a law that sleeps hears of nothing until it wakes.
    awake: Vec<u32>,
    /// How often `pace` has ticked.
    beats: u64,
    /// When the next law ticks.
    due: Time,
}

/// How many bytes so many queues hold before the first packet, each with a law `L` that holds `own` beside itself.
pub fn state_bytes<L>(queues: u64, own: usize) -> usize {
    let turn = size_of::<(u32, u32)>();
    let (place, awake) = (size_of::<u32>(), size_of::<u32>());
    // The allocator rounds up what a law asks for.
    let rounded = own + if own > 0 { 64 } else { 0 };
    registry::SMALL_STATE + (queues as usize + 1) * (size_of::<Flow<L>>() + turn + place + awake + rounded)
}

impl<P: Packet, L: Law> FairQueue<P, L> {
    /// So many empty queues with `quantum`, `limit` and `dialect` of `values`, each around a law that `law` makes.
    pub fn new(
        values: &Values,
        queues: u32,
        stream: &mut Stream,
        full: Full,
        seen: Seen,
        mut law: impl FnMut() -> L,
    ) -> Self {
        let pace = law();
        let mut flow = || Flow { law: law(), queue: Queue::default(), deficit: 0, asleep_since: Some(0) };
        Self {
            limit: Limit::of(values),
            full,
            seen,
            dialect: Dialect::of(values),
            quantum: i64::from(values.size("quantum")),
            salt: stream.bits(),
            flows: (0..queues).map(|_| flow()).collect(),
            turns: Rota::new(queues, 2),
            fattest: Heap::new(if full == Full::RefuseArriving { 0 } else { queues as usize }),
            pool: Pool::default(),
            held: Backlog::default(),
            // Room for all, if any law ticks at all.
            awake: Vec::with_capacity(if pace.next_tick().is_set() { queues as usize } else { 0 }),
            beats: 0,
            due: pace.next_tick(),
            pace,
        }
    }

    /// The queue of a flow.
    #[inline]
    fn index(&self, flow: FlowKey) -> usize {
        ((u128::from(flow.hash(self.salt)) * self.flows.len() as u128) >> 64) as usize
    }

    #[inline]
    fn seen_by(&self, index: usize) -> Backlog {
        match self.seen {
            Seen::Own => self.flows[index].queue.backlog(),
            Seen::All => self.held,
        }
    }

    /// Takes the packet at the head of a queue, past its law.
    fn pop(&mut self, index: usize) -> Option<Held<P>> {
        let held = self.pool.pop(&mut self.flows[index].queue)?;
        self.held.packets -= 1;
        self.held.bytes -= u64::from(held.packet.size());
        Some(held)
    }

    /// The next packet of a queue that its law lets pass.
    fn pull(&mut self, index: usize, now: Time, tap: &mut dyn Tap<P>) -> Option<Held<P>> {
        while let Some(Held { mut packet, enqueued }) = self.pop(index) {
            let backlog = self.seen_by(index);
            let (size, ecn, dscp, flow) = (packet.size(), packet.ecn(), packet.dscp(), packet.flow());
            let departure = Departure { size, ecn, dscp, flow, enqueued, backlog };
            match self.flows[index].law.on_departure(&departure, now) {
                Verdict::Pass => {}
                Verdict::Mark(cause) => {
                    packet.mark();
                    tap.marked(&packet, cause, now);
                }
                Verdict::Drop(cause) => {
                    tap.dropped(packet, cause, now);
                    continue;
                }
            }
            return Some(Held { packet, enqueued });
        }
        self.flows[index].law.on_idle(now);
        None
    }

    /// Goes through as many whole rounds as give no queue a turn. No queue has one now, and none is new.
    #[cold]
    fn skip_rounds(&mut self) {
        let rounds = |item: u32| (-self.flows[item as usize].deficit / self.quantum).max(0) as u64;
        let rounds = self.turns.least(OLD, rounds) as i64;
        if rounds > 0 {
            self.turns.iter(OLD).for_each(|item| self.flows[item as usize].deficit += rounds * self.quantum);
        }
    }

    /// RFC 8290 §4.1: the queue with the most bytes loses from its head half of its packets, in Linux half of its
    /// bytes, or `batch` packets.
    fn evict(&mut self, batch: u32, now: Time, tap: &mut dyn Tap<P>) {
        let flows = &self.flows;
        let fattest = self.fattest.settle(|index| flows[index as usize].fatness(index));
        let fattest = fattest.expect("the queues are beyond the limit").1 as usize;
        let before = self.flows[fattest].queue.backlog();
        let (mut packets, mut lost) = (0, 0);
        let mut is_enough = false;
        while packets < batch && !is_enough {
            let held = self.pop(fattest).expect("a queue beyond the limit holds packets");
            packets += 1;
            lost += u64::from(held.packet.size());
            is_enough = match self.dialect.evicts_bytes {
                true => lost >= before.bytes / 2,
                false => packets >= before.packets.div_ceil(2),
            };
            tap.dropped(held.packet, Cause::TAIL, now);
        }
        self.flows[fattest].law.on_eviction(packets, now);
    }

    /// Wakes a queue that sleeps since a beat, before its law hears of anything. It takes the ticks that it slept
    /// through: nothing has come since, and nothing waited.
    #[cold]
    fn wake(&mut self, index: usize, since: u64) {
        let flow = &mut self.flows[index];
        flow.law.sleep_through(self.beats - since);
        flow.asleep_since = None;
        self.awake.push(index as u32);
    }

    /// When the first of all laws that tick wants to.
    fn first_tick(&self) -> Time {
        let awake = self.awake.iter().map(|&item| self.flows[item as usize].law.next_tick());
        awake.fold(self.pace.next_tick(), Time::min)
    }

    /// The packet whose turn it is and that its law lets pass.
    fn next(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Option<Held<P>> {
        // The first whose turn was over, since the last that had one.
        let mut first = None;
        // RFC 8290 §4.2.
        loop {
            let new = self.turns.first(NEW);
            let item = new.or_else(|| self.turns.first(OLD))?;
            let index = item as usize;
            if first == Some(item) {
                self.skip_rounds();
            }
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                self.turns.push(OLD, item);
                first.get_or_insert(item);
                continue;
            }
            first = None;
            if let Some(held) = self.pull(index, now, tap) {
                self.flows[index].deficit -= i64::from(held.packet.size());
                return Some(held);
            }
            // An empty new queue waits one round among the old, or it could come back as new again and again. Linux
            // sees no need where there are no old ones.
            if new.is_some() && !(self.dialect.leaves_at_once && self.turns.is_empty(OLD)) {
                self.turns.push(OLD, item);
            } else {
                self.turns.remove(item);
            }
        }
    }
}

impl<P: Packet, L: Law> Qdisc<P> for FairQueue<P, L> {
    fn offer(&mut self, mut packet: P, now: Time, driver: &mut dyn Driver<P>) {
        let index = self.index(packet.flow());
        let size = packet.size();
        if let Some(since) = self.flows[index].asleep_since
            && self.pace.next_tick().is_set()
        {
            self.wake(index, since);
        }
        let backlog = self.seen_by(index);
        let arrival = Arrival { size, ecn: packet.ecn(), flow: packet.flow(), backlog };
        if self.full == Full::RefuseArriving && !self.limit.admits(self.held, size) {
            self.flows[index].law.on_overflow(&arrival, now);
            self.flows[index].stays_empty(now);
            return driver.dropped(packet, Cause::TAIL, now);
        }
        let flow = &mut self.flows[index];
        if flow.law.wants_hosts() {
            flow.law.hear_hosts(driver.hosts(&packet));
        }
        match flow.law.on_arrival(&arrival, now) {
            Verdict::Pass => {}
            Verdict::Mark(cause) => {
                packet.mark();
                driver.marked(&packet, cause, now);
            }
            Verdict::Drop(cause) => {
                flow.stays_empty(now);
                return driver.dropped(packet, cause, now);
            }
        }
        driver.accepted(&packet, now);
        self.held.packets += 1;
        self.held.bytes += u64::from(size);
        self.pool.push(&mut flow.queue, Held { packet, enqueued: now });
        if let Full::EvictFattest(_) = self.full
            && let Some(fatness) = flow.fatness(index as u32)
        {
            self.fattest.raise(index as u32, fatness);
        }
        if !self.turns.is_listed(index as u32) {
            flow.deficit = self.quantum;
            self.turns.push(NEW, index as u32);
        }
        while let Full::EvictFattest(batch) = self.full
            && !self.limit.holds(self.held)
        {
            self.evict(batch, now, driver);
        }
    }

    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Taken<P> {
        self.next(now, tap).into()
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn next_tick(&self) -> Time {
        self.due
    }

    fn gauges(&self) -> Gauges {
        let active = self.turns.iter(NEW).chain(self.turns.iter(OLD)).count();
        Gauges { tracked_flows: Some(active as u32), ..Gauges::default() }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        self.limit = Limit::of(values);
        self.quantum = i64::from(values.size("quantum"));
        if let Full::EvictFattest(batch) = &mut self.full {
            *batch = values.integer("drop_batch") as u32;
        }
        self.pace.retune(values, rate, now);
        for flow in &mut self.flows {
            if let Some(since) = &mut flow.asleep_since {
                // Up to now its ticks are those of the parameters before.
                flow.law.sleep_through(self.beats - std::mem::replace(since, self.beats));
            }
            flow.law.hear_backlog(flow.queue.backlog());
            flow.law.retune(values, rate, now);
        }
        self.due = self.first_tick();
    }

    fn tick(&mut self, now: Time) {
        if now < self.due {
            return;
        }
        if self.pace.next_tick() <= now {
            self.pace.tick(Backlog::default(), now);
            self.beats += 1;
        }
        let mut at = 0;
        while let Some(&item) = self.awake.get(at) {
            let backlog = self.seen_by(item as usize);
            let flow = &mut self.flows[item as usize];
            flow.law.tick(backlog, now);
            // While it has a turn, its law hears that the turn finds nothing.
            if flow.queue.is_empty() && !self.turns.is_listed(item) && flow.law.is_at_rest() {
                flow.asleep_since = Some(self.beats);
                self.awake.swap_remove(at);
            } else {
                at += 1;
            }
        }
        self.due = self.first_tick();
    }
}
