//! SFQ is stochastic fairness queueing. Flows are hashed to queues that take turns. When the buffer is full, the
//! longest queue loses. Flows that meet in a queue share its turns, and the hash may be changed now and then so that
//! they do not meet for ever. SFQ keeps no state of flows and measures no rates.
//!
//! Source: McKenney, "Stochastic Fairness Queueing", INFOCOM 1990 ("the paper"). All forms in use differ; two are here:
//!
//! - `linux` (sch_sfq; parameters as in tc-sfq(8)): turns by bytes, `quantum` each, what a packet takes beyond is owed;
//!   at most `depth` packets in a queue: what arrives beyond is refused, or with `headdrop` takes the place of the
//!   oldest; over the limit, the arrival counted, the longest queue in packets loses its newest, or with `headdrop` its
//!   oldest, and of several the one whose length changed last; if all hold one packet, the one whose turn is next loses
//!   it; a flow that finds all `flows` queues in use is refused, and there are no more of them than `limit` packets;
//!   `perturb`.
//! - `ns2` (sfq.cc): turns by packets; the arriving packet is refused if its queue holds half of what is free or more,
//!   or if less than a packet per queue is free and its queue holds more than `limit / flows`; no packet is ever lost
//!   after it was accepted. With a `limit` in bytes the same in bytes, where the arriving packet's size is a packet.
//!
//! Deviations. Linux's RED within queues is not here, nor was its old charge by multiples of 8 bytes. Linux bounds the
//! queues by a `limit` that is written, but has 128 for the 127 packets of its default; here what is written and what
//! is not do the same. A `limit` in bytes (Linux has none) bounds no queues; a packet that can never fit is lost alone.
//! A change of hash is due at each multiple of `perturb` from the start of the run and comes with the first arrival or
//! request from then on, several at once as one; it draws its hash from the stream, whose first number is the first
//! hash. ns-2 hashes addresses, here the flow.

use super::fifo::{End, Limit};
use super::heap::Heap;
use super::pool::{Pool, Queue};
use super::rota::Rota;
use super::{Held, Qdisc, Taken, fq_frame};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::law::Gauges;
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, Discipline, Row, Site};
use base::{FlowKey, Rate, Span, Stream, Time};

const TC: &str = "tc-sfq(8)";

const PARAMS: &[Param] = &[
    registry::limit_of_flows("127p", "tc-sfq(8); ns-2 maxqueue_ = 40"),
    registry::ECN,
    Param {
        name: "dialect",
        kind: Kind::Word(&["linux", "ns2"]),
        default: "linux",
        range: Param::ANY,
        doc: "Turns by bytes and losses from the longest queue (linux), or turns by packets and refusals (ns2).",
        source: "the paper leaves both open; sch_sfq is what runs",
    },
    Param {
        name: "flows",
        kind: Kind::Integer,
        default: "",
        range: (1.0, 65_408.0),
        doc: "Number of queues; in linux no more than packets in `limit`. Computed: 128, or 16 in ns2.",
        source: "tc-sfq(8); ns-2 buckets_",
    },
    Param {
        name: "divisor",
        kind: Kind::Integer,
        default: "1024",
        range: (1.0, 65_536.0),
        doc: "linux: size of the table of hashes through which flows find their queues, a power of two; ns2 hashes to \
              the queues.",
        source: TC,
    },
    Param {
        name: "depth",
        kind: Kind::Integer,
        default: "127",
        range: (1.0, 1e6),
        doc: "linux: most packets in one queue.",
        source: TC,
    },
    Param { source: TC, doc: "linux: bytes that a queue may send in its turn.", ..fq_frame::QUANTUM },
    Param {
        name: "perturb",
        kind: Kind::Time,
        default: "0s",
        range: (0.0, 1e6),
        doc: "linux: time between two changes of the hash; 0 is never.",
        source: TC,
    },
    Param {
        name: "headdrop",
        kind: Kind::Flag,
        default: "false",
        range: Param::ANY,
        doc: "linux: lose the oldest packet of a queue instead of its newest.",
        source: TC,
    },
];

fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let flows = if values.word("dialect") == "ns2" { 16 } else { 128 };
    values.fill("flows", Value::Integer(flows));
    match values.word("dialect") {
        "ns2" if values.flag("headdrop") => {
            Err(Refusal::new("headdrop", "false in the ns2 dialect, which loses no packet that it accepted"))
        }
        "linux" if !values.integer("divisor").is_power_of_two() => {
            Err(Refusal::new("divisor", "a power of two from 1 to 65536 in the linux dialect"))
        }
        _ => Ok(()),
    }
}

/// The one list of queues that wait for their turn.
const TURNS: u32 = 0;
/// "No queue".
const NONE: u32 = u32::MAX;

#[derive(Clone, Default, Debug)]
struct Slot {
    queue: Queue,
    /// How many packets it has, one that is about to join included; 0 is a free queue.
    length: u32,
    /// Where in the table of hashes it is found.
    bucket: u32,
    /// Bytes that it may still send; no turn at 0 or below.
    allot: i64,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Sfq<P> {
    limit: Limit,
    is_linux: bool,
    depth: u32,
    quantum: i64,
    loses: End,
    perturb: Span,
    perturb_at: Time,
    salt: u64,
    stream: Stream,
    /// The queue of each hash.
    table: Vec<u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    turns: Rota,
    /// Queues by length, and by when it last changed.
    longest: Heap<(u32, u64)>,
    changes: u64,
    pool: Pool<P>,
    held: Backlog,
    /// Room for all packets while they are hashed anew.
    scratch: Vec<Held<P>>,
}

fn lost_end(values: &Values) -> End {
    if values.flag("headdrop") { End::Head } else { End::Tail }
}

/// The time between two changes of the hash; 0 is never.
fn perturb(values: &Values) -> Span {
    if values.word("dialect") == "linux" { values.time("perturb") } else { Span::ZERO }
}

/// The first multiple of `perturb` after `now`.
fn next_change(perturb: Span, now: Time) -> Time {
    match now.ns().checked_div(perturb.ns()) {
        Some(periods) => Time::ZERO + perturb * (periods + 1),
        None => Time::NEVER,
    }
}

impl<P: Packet> Sfq<P> {
    /// Empty queues.
    pub fn new(values: &Values, site: Site) -> Self {
        let is_linux = values.word("dialect") == "linux";
        let flows = values.integer("flows") as u32;
        let divisor = if is_linux { values.integer("divisor") as usize } else { flows as usize };
        let perturb = perturb(values);
        let mut stream = site.stream;
        Self {
            limit: Limit::of(values),
            is_linux,
            depth: values.integer("depth") as u32,
            quantum: i64::from(values.size("quantum")),
            loses: lost_end(values),
            perturb,
            perturb_at: next_change(perturb, Time::ZERO),
            salt: stream.bits(),
            stream,
            table: vec![NONE; divisor],
            slots: vec![Slot::default(); flows as usize],
            // Linux links them in as on a stack: the first to be used is the last.
            free: (0..flows).collect(),
            turns: Rota::new(flows, 1),
            longest: Heap::new(flows as usize),
            changes: 0,
            pool: Pool::default(),
            held: Backlog::default(),
            scratch: Vec::new(),
        }
    }

    #[inline]
    fn bucket(&self, flow: FlowKey) -> u32 {
        ((u128::from(flow.hash(self.salt)) * self.table.len() as u128) >> 64) as u32
    }

    /// Whether a queue is free: in Linux there are no more of them than packets in the limit.
    #[inline]
    fn has_free(&self) -> bool {
        let used = self.slots.len() - self.free.len();
        let is_within = match self.limit {
            Limit::Packets(limit) if self.is_linux => used < limit as usize,
            _ => true,
        };
        is_within && !self.free.is_empty()
    }

    /// Whether ns-2 accepts a packet of `size` into a queue of `queue`.
    fn is_welcome(&self, queue: Backlog, size: u32) -> bool {
        let flows = self.slots.len() as u64;
        let (limit, used, held, packet) = match self.limit {
            Limit::Packets(limit) => (u64::from(limit), u64::from(queue.packets), u64::from(self.held.packets), 1),
            Limit::Bytes(limit) => (limit, queue.bytes, self.held.bytes, u64::from(size)),
        };
        let left = limit.saturating_sub(held);
        used < left / 2 && (left >= flows * packet || used <= limit / flows) && left >= packet
    }

    /// The queue of `bucket`, a free one if it has none, grows by a packet that [`Sfq::push`] brings.
    fn grow(&mut self, bucket: u32) -> u32 {
        let entry = &mut self.table[bucket as usize];
        if *entry == NONE {
            *entry = self.free.pop().expect("a queue is free");
            let slot = &mut self.slots[*entry as usize];
            slot.bucket = bucket;
            slot.allot = self.quantum;
            self.turns.push(TURNS, *entry);
        }
        let index = *entry;
        self.slots[index as usize].length += 1;
        self.touch(index);
        index
    }

    /// Notes that a queue has lost or sent a packet. An empty queue is free.
    fn shrink(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.length -= 1;
        if slot.length > 0 {
            return self.touch(index);
        }
        self.table[slot.bucket as usize] = NONE;
        self.longest.remove(index);
        self.turns.remove(index);
        self.free.push(index);
    }

    /// Notes that the length of a queue changed.
    #[inline]
    fn touch(&mut self, index: u32) {
        self.changes += 1;
        self.longest.set(index, (self.slots[index as usize].length, self.changes));
    }

    fn push(&mut self, index: u32, held: Held<P>) {
        self.held.packets += 1;
        self.held.bytes += u64::from(held.packet.size());
        self.pool.push(&mut self.slots[index as usize].queue, held);
    }

    fn pop(&mut self, index: u32, end: End) -> Option<Held<P>> {
        let queue = &mut self.slots[index as usize].queue;
        let held = match end {
            End::Head => self.pool.pop(queue),
            End::Tail => self.pool.pop_tail(queue),
        }?;
        self.held.packets -= 1;
        self.held.bytes -= u64::from(held.packet.size());
        Some(held)
    }

    /// Loses packets until one of `size` bytes fits by which queue `own` has grown; false if that one is to be lost
    /// itself.
    fn make_room(&mut self, size: u32, own: u32, now: Time, tap: &mut dyn Tap<P>) -> bool {
        while !self.limit.admits(self.held, size) {
            let victim = match self.longest.top().expect("the arrival's queue has a length") {
                ((1, _), _) => self.turns.first(TURNS).expect("a queue with a length has its turn"),
                (_, longest) => longest,
            };
            let is_arrival = victim == own && (self.loses == End::Tail || self.slots[own as usize].queue.is_empty());
            if is_arrival {
                return false;
            }
            let held = self.pop(victim, self.loses).expect("only the arrival's own queue may be empty");
            self.shrink(victim);
            tap.dropped(held.packet, Cause::TAIL, now);
        }
        true
    }

    /// Goes through as many whole rounds as give no queue a turn. No queue has one now.
    #[cold]
    fn skip_rounds(&mut self) {
        let rounds = |index: u32| (-self.slots[index as usize].allot / self.quantum).max(0) as u64;
        let rounds = self.turns.least(TURNS, rounds) as i64;
        if rounds > 0 {
            self.turns.iter(TURNS).for_each(|index| self.slots[index as usize].allot += rounds * self.quantum);
        }
    }

    /// Changes the hash if it is time; packets that then find no queue or a full one are lost.
    fn rehash(&mut self, now: Time, tap: &mut dyn Tap<P>) {
        self.perturb_at = next_change(self.perturb, now);
        self.salt = self.stream.bits();
        for index in 0..self.slots.len() as u32 {
            while let Some(held) = self.pop(index, End::Head) {
                self.shrink(index);
                self.scratch.push(held);
            }
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        for held in scratch.drain(..) {
            let bucket = self.bucket(held.packet.flow());
            let is_lost = match self.table[bucket as usize] {
                NONE => !self.has_free(),
                index => self.slots[index as usize].length >= self.depth,
            };
            if is_lost {
                tap.dropped(held.packet, Cause::TAIL, now);
            } else {
                let index = self.grow(bucket);
                self.push(index, held);
            }
        }
        self.scratch = scratch;
    }

    /// The packet whose turn it is.
    fn next(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Option<Held<P>> {
        if now >= self.perturb_at {
            self.rehash(now, tap);
        }
        let mut index = self.turns.first(TURNS)?;
        // The first that had no turn.
        let mut first = None;
        while self.slots[index as usize].allot <= 0 {
            if first == Some(index) {
                self.skip_rounds();
            }
            self.slots[index as usize].allot += self.quantum;
            self.turns.push(TURNS, index);
            first.get_or_insert(index);
            index = self.turns.first(TURNS)?;
        }
        let held = self.pop(index, End::Head)?;
        self.shrink(index);
        let slot = &mut self.slots[index as usize];
        if slot.length == 0 {
            return Some(held);
        }
        if self.is_linux {
            slot.allot -= i64::from(held.packet.size());
        } else {
            self.turns.push(TURNS, index);
        }
        Some(held)
    }
}

impl<P: Packet> Qdisc<P> for Sfq<P> {
    fn offer(&mut self, packet: P, now: Time, driver: &mut dyn Driver<P>) {
        if now >= self.perturb_at {
            self.rehash(now, driver);
        }
        let size = packet.size();
        let bucket = self.bucket(packet.flow());
        let index = self.table[bucket as usize];
        let queue = self.slots.get(index as usize).map_or(Backlog::default(), |slot| slot.queue.backlog());
        let is_deep = self.is_linux && queue.packets >= self.depth;
        let is_welcome = if self.is_linux {
            (index != NONE || self.has_free()) && (!is_deep || self.loses == End::Head)
        } else {
            self.is_welcome(queue, size)
        };
        if !is_welcome || !self.limit.admits(Backlog::default(), size) {
            return driver.dropped(packet, Cause::TAIL, now);
        }
        let index = if is_deep {
            // An exchange; to Linux the length has not changed.
            let held = self.pop(index, End::Head).expect("a full queue holds packets");
            driver.dropped(held.packet, Cause::TAIL, now);
            index
        } else {
            self.grow(bucket)
        };
        if !self.make_room(size, index, now, driver) {
            self.shrink(index);
            return driver.dropped(packet, Cause::TAIL, now);
        }
        driver.accepted(&packet, now);
        self.push(index, Held { packet, enqueued: now });
    }

    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Taken<P> {
        self.next(now, tap).into()
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn gauges(&self) -> Gauges {
        Gauges { tracked_flows: Some(self.turns.iter(TURNS).count() as u32), ..Gauges::default() }
    }

    fn retune(&mut self, values: &Values, _rate: Rate, now: Time) {
        self.limit = Limit::of(values);
        self.depth = values.integer("depth") as u32;
        self.quantum = i64::from(values.size("quantum"));
        self.loses = lost_end(values);
        let perturb = perturb(values);
        if perturb != self.perturb {
            self.perturb = perturb;
            self.perturb_at = next_change(perturb, now);
        }
    }
}

/// Its row; the discipline itself is [`Sfq`].
pub struct StochasticFairness;

impl Discipline for StochasticFairness {
    const ROW: Row = Row {
        name: "sfq",
        aliases: &[],
        doc: "Stochastic fairness queueing: hashed flows take turns, and the longest queue loses when all is full.",
        source: "McKenney 1990; tc-sfq(8)",
        year: 1990,
        marks: false,
        params: PARAMS,
        fixed: &["dialect", "flows", "divisor"],
        gauges: &[Gauge::flows("Queues of flows that hold packets or have a turn.")],
        causes: &[],
        uses_rate: registry::never,
        resolve,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(Sfq::new(values, site))
    }

    fn state_bytes(values: &Values) -> usize {
        let (flows, divisor) = (values.integer("flows") as usize, values.integer("divisor") as usize);
        // A slot, its turn, its places in the heap and among the free; the table of hashes.
        registry::SMALL_STATE + flows * (size_of::<Slot>() + 16) + divisor.max(flows) * size_of::<u32>()
    }
}
