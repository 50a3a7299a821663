//! DRR is deficit round robin. Flows are hashed to queues that take turns. Each turn adds a quantum of bytes to what a
//! queue may send. What it could not use, because its next packet was too large, it keeps for the next turn. So flows
//! share in bytes whatever their packets' sizes, and choosing the next packet costs the same however many they are.
//!
//! Source: Shreedhar and Varghese, "Efficient Fair Queuing Using Deficit Round-Robin", SIGCOMM 1995; IEEE/ACM ToN 4(3),
//! 1996 ("the paper"). What a full queue loses: ns-2's drr.cc.
//!
//! | paper | here |
//! |---|---|
//! | `ActiveList` | `turns` |
//! | `DC_i` | `Flow::deficit` |
//! | `Quantum_i` | `quantum`, the same for all |
//! | buffer stealing from the longest queue (McKenney) | `Drr::make_room` |
//!
//! Over any time in which two flows are both waiting, what they send differs by at most a quantum and two packets. A
//! quantum below the largest packet is fair too, but some turns then send nothing. Rounds in which nobody can send are
//! not gone through: all get at once what they bring.
//!
//! In the dialect `linux` (sch_drr) queues share no buffer. Each queue has the `limit` for itself and loses its own
//! packets, as a pfifo in each class does, or a pfifo_head_drop with `drop = "head"`.
//!
//! Deviations. A packet that can never fit is lost alone, where ns-2 would first lose what its queue holds. In ns-2 a
//! queue that loses its only packet in the midst of its turn goes without a quantum the next time. ns-2 hashes the
//! source address, here the flow; and it has a limit of 25,000 bytes, 10 queues and a quantum of 250 bytes. Linux has
//! classes, found by filters, with a quantum each.

use super::fifo::{End, Limit};
use super::fq_frame;
use super::heap::Heap;
use super::pool::{Pool, Queue};
use super::rota::Rota;
use super::{Held, Qdisc, Taken};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::law::Gauges;
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, Discipline, Row, Site};
use base::{FlowKey, Rate, Time};

const PAPER: &str = "Shreedhar and Varghese 1995";

const PARAMS: &[Param] = &[
    registry::limit_of_flows("1000p", "the interface's txqueuelen; the packets of all flows together"),
    registry::ECN,
    fq_frame::FLOWS,
    Param { source: "tc-drr(8): the MTU with its Ethernet header; the paper wants no less", ..fq_frame::QUANTUM },
    Param {
        name: "dialect",
        kind: Kind::Word(&["paper", "linux"]),
        default: "paper",
        range: Param::ANY,
        doc: "What `limit` is of: all queues together, and the longest loses (paper), or each queue, which then loses \
              its own (linux).",
        source: PAPER,
    },
    Param {
        name: "drop",
        kind: Kind::Word(&["head", "tail"]),
        default: "",
        range: Param::ANY,
        doc: "What is lost when the limit is reached: the oldest (head) or the newest (tail) packet of the queue with \
              the most bytes, the arriving packet counted; of several, of the one whose turn is next; linux: of \
              the arriving packet's queue. Computed: head, or tail in linux.",
        source: "ns-2 drr.cc: head; tc-drr(8): a class has a pfifo",
    },
];

fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let drop = if values.word("dialect") == "linux" { "tail" } else { "head" };
    values.fill("drop", Value::Word(drop));
    Ok(())
}

/// The one list of queues that wait for their turn.
const TURNS: u32 = 0;

#[derive(Clone, Default, Debug)]
struct Flow {
    queue: Queue,
    /// Bytes that it may still send.
    deficit: u64,
    /// When it went to the end of the turns, counted down: the greatest is first.
    place: u64,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Drr<P> {
    limit: Limit,
    /// Each queue has the limit for itself, and loses its own packets.
    limits_each: bool,
    loses: End,
    quantum: u64,
    salt: u64,
    flows: Vec<Flow>,
    turns: Rota,
    /// Whether the first queue in turn has had its quantum.
    has_quantum: bool,
    /// The next [`Flow::place`].
    next_place: u64,
    /// Queues by bytes, and by whose turn is next, or by what these once were and are below now: what leaves and what
    /// waits on costs nothing here.
    longest: Heap<(u64, u64)>,
    pool: Pool<P>,
    held: Backlog,
}

impl<P: Packet> Drr<P> {
    /// Empty queues.
    pub fn new(values: &Values, mut site: Site) -> Self {
        let flows = values.integer("flows") as u32;
        Self {
            limit: Limit::of(values),
            limits_each: values.word("dialect") == "linux",
            loses: End::of(values),
            quantum: u64::from(values.size("quantum")),
            salt: site.stream.bits(),
            flows: vec![Flow::default(); flows as usize],
            turns: Rota::new(flows, 1),
            has_quantum: false,
            next_place: u64::MAX,
            longest: Heap::new(flows as usize),
            pool: Pool::default(),
            held: Backlog::default(),
        }
    }

    #[inline]
    fn index(&self, flow: FlowKey) -> u32 {
        ((u128::from(flow.hash(self.salt)) * self.flows.len() as u128) >> 64) as u32
    }

    /// The backlog that the limit is for, when a packet goes to queue `own`.
    #[inline]
    fn limited(&self, own: u32) -> Backlog {
        if self.limits_each { self.flows[own as usize].queue.backlog() } else { self.held }
    }

    /// Loses packets until one of `size` bytes fits that goes to queue `own`, which has its turn; false if that one is
    /// to be lost itself.
    fn make_room(&mut self, size: u32, own: u32, now: Time, tap: &mut dyn Tap<P>) -> bool {
        while !self.limit.admits(self.limited(own), size) {
            let victim = if self.limits_each { own } else { self.longest(own, size) };
            if victim == own && (self.loses == End::Tail || self.flows[own as usize].queue.is_empty()) {
                return false;
            }
            let held = self.remove(victim, self.loses).expect("only the arrival's own queue may be empty");
            // A queue that is about to get a packet keeps its turn.
            if victim != own {
                self.rest_if_empty(victim);
            }
            tap.dropped(held.packet, Cause::TAIL, now);
        }
        true
    }

    /// The queue with the most bytes, a packet of `size` bytes that goes to queue `own` counted as if it were there.
    fn longest(&mut self, own: u32, size: u32) -> u32 {
        let flows = &self.flows;
        let key = |index: u32| {
            let flow = &flows[index as usize];
            let bytes = flow.queue.backlog().bytes + if index == own { u64::from(size) } else { 0 };
            (bytes > 0).then_some((bytes, flow.place))
        };
        if let Some(key) = key(own) {
            self.longest.raise(own, key);
        }
        self.longest.settle(key).expect("the arrival's queue has a length").1
    }

    fn remove(&mut self, index: u32, end: End) -> Option<Held<P>> {
        let queue = &mut self.flows[index as usize].queue;
        let held = match end {
            End::Head => self.pool.pop(queue),
            End::Tail => self.pool.pop_tail(queue),
        }?;
        self.held.packets -= 1;
        self.held.bytes -= u64::from(held.packet.size());
        Some(held)
    }

    /// Sends a queue to the end of the turns.
    fn go_last(&mut self, index: u32) {
        self.turns.push(TURNS, index);
        self.flows[index as usize].place = self.next_place;
        self.next_place -= 1;
    }

    /// Goes through as many whole rounds as let no queue send. None can send now.
    #[cold]
    fn skip_rounds(&mut self) {
        let rounds = self.turns.least(TURNS, |index| {
            let flow = &self.flows[index as usize];
            let head = self.pool.head(&flow.queue).expect("a queue in turn holds packets");
            let lacks = u64::from(head.packet.size()).saturating_sub(flow.deficit);
            lacks.saturating_sub(1) / self.quantum
        });
        if rounds > 0 {
            self.turns.iter(TURNS).for_each(|index| self.flows[index as usize].deficit += rounds * self.quantum);
        }
    }

    /// An empty queue has no turn and keeps no deficit.
    fn rest_if_empty(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if flow.queue.is_empty() {
            flow.deficit = 0;
            self.has_quantum &= self.turns.first(TURNS) != Some(index);
            self.turns.remove(index);
        }
    }

    /// The packet whose turn it is.
    fn next(&mut self) -> Option<Held<P>> {
        // The first that could not send.
        let mut first = None;
        loop {
            let index = self.turns.first(TURNS)?;
            if first == Some(index) {
                self.skip_rounds();
            }
            let flow = &mut self.flows[index as usize];
            if !self.has_quantum {
                flow.deficit += self.quantum;
                self.has_quantum = true;
            }
            let head = self.pool.head(&flow.queue).expect("a queue in turn holds packets");
            let size = u64::from(head.packet.size());
            if size <= flow.deficit {
                flow.deficit -= size;
                let held = self.remove(index, End::Head);
                self.rest_if_empty(index);
                return held;
            }
            self.has_quantum = false;
            self.go_last(index);
            first.get_or_insert(index);
        }
    }
}

impl<P: Packet> Qdisc<P> for Drr<P> {
    fn offer(&mut self, packet: P, now: Time, driver: &mut dyn Driver<P>) {
        let size = packet.size();
        if !self.limit.admits(Backlog::default(), size) {
            return driver.dropped(packet, Cause::TAIL, now);
        }
        let index = self.index(packet.flow());
        if !self.turns.is_listed(index) {
            self.go_last(index);
        }
        if !self.limit.admits(self.limited(index), size) && !self.make_room(size, index, now, driver) {
            self.rest_if_empty(index);
            return driver.dropped(packet, Cause::TAIL, now);
        }
        driver.accepted(&packet, now);
        let flow = &mut self.flows[index as usize];
        self.pool.push(&mut flow.queue, Held { packet, enqueued: now });
        if !self.limits_each {
            self.longest.raise(index, (flow.queue.backlog().bytes, flow.place));
        }
        self.held.packets += 1;
        self.held.bytes += u64::from(size);
    }

    fn take(&mut self, _now: Time, _tap: &mut dyn Tap<P>) -> Taken<P> {
        self.next().into()
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn gauges(&self) -> Gauges {
        Gauges { tracked_flows: Some(self.turns.iter(TURNS).count() as u32), ..Gauges::default() }
    }

    fn retune(&mut self, values: &Values, _rate: Rate, _now: Time) {
        self.limit = Limit::of(values);
        self.loses = End::of(values);
        self.quantum = u64::from(values.size("quantum"));
    }
}

/// Its row; the discipline itself is [`Drr`].
pub struct DeficitRoundRobin;

impl Discipline for DeficitRoundRobin {
    const ROW: Row = Row {
        name: "drr",
        aliases: &[],
        doc: "Deficit round robin: flows take turns by bytes, and the longest queue loses when all is full.",
        source: PAPER,
        year: 1995,
        marks: false,
        params: PARAMS,
        fixed: &["dialect", "flows"],
        gauges: &[Gauge::flows("Queues of flows that hold packets or have a turn.")],
        causes: &[],
        uses_rate: registry::never,
        resolve,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(Drr::new(values, site))
    }

    fn state_bytes(values: &Values) -> usize {
        // A queue, its turn and its place in the heap.
        registry::SMALL_STATE + values.integer("flows") as usize * (size_of::<Flow>() + 12)
    }
}
