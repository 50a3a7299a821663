//! FQ is fair queueing by finish times. It imagines a link that serves one bit of every waiting flow in turn, and sends
//! whole packets in the order in which that link would have finished them. Every flow gets what it would get there, to
//! within one packet. Round robins approximate this reference. Linux's `sch_fq`, which paces the flows of one host, is
//! something else.
//!
//! Source: Demers, Keshav and Shenker, "Analysis and Simulation of a Fair Queueing Algorithm", SIGCOMM 1989 ("the
//! paper"); the bound: Parekh and Gallager, "A Generalized Processor Sharing Approach to Flow Control in Integrated
//! Services Networks", IEEE/ACM ToN 1(3), 1993.
//!
//! | paper | here |
//! |---|---|
//! | `R(t)`, rounds served by the imagined link | `Reference::round`, in bytes of each flow |
//! | `S_i = max(F_(i-1), R(t_i))`, `F_i = S_i + P_i` | `Tagged::start`, and its size later |
//! | `N_ac(t)`, flows active in the imagined link | `Reference::active` |
//! | drop the last packet of the flow that uses most of the buffer | `Fq::make_room` |
//!
//! Dialect `ns2` (fq.cc) has no imagined link: a packet that comes to the head of its flow at `now` starts at max(now,
//! finish of the flow before), and finishes its size times the flows that wait, reckoned anew at each choice, later.
//!
//! Deviations. The imagined link has served what the real one has sent, so that framing, which a discipline does not
//! see, cannot make it run ahead. The paper's promptness `delta` is 0. A flow that loses its last packet gets back the
//! time it had been given. ns-2 has at most 32 flows, each with a queue and a limit of its own; here all share one
//! `limit`.

use super::fifo::Limit;
use super::heap::Heap;
use super::pool::{Pool, Queue};
use super::tournament::Tournament;
use super::{Held, Qdisc, Taken};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::law::{Gauges, flows::FlowTable};
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::{Kind, Param, Values};
use crate::registry::{self, Discipline, Row, Site};
use base::{Ecn, FlowKey, Rate, Time};

const PAPER: &str = "Demers, Keshav and Shenker 1989";

const PARAMS: &[Param] = &[
    registry::limit_of_flows("1000p", "the interface's txqueuelen; the packets of all flows together"),
    registry::ECN,
    Param {
        name: "dialect",
        kind: Kind::Word(&["paper", "ns2"]),
        default: "paper",
        range: Param::ANY,
        doc: "Finish times by a bit-by-bit round robin (paper), or by the clock and the number of flows (ns2).",
        source: PAPER,
    },
    registry::CAPACITY,
];

/// A packet with its place in the order.
#[derive(Clone, Copy, Debug)]
struct Tagged<P> {
    packet: P,
    /// The round in which it starts (paper).
    start: f64,
    /// Packets that were accepted before it.
    number: u64,
}

impl<P: Packet> Packet for Tagged<P> {
    fn size(&self) -> u32 {
        self.packet.size()
    }
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    fn mark(&mut self) {
        self.packet.mark();
    }
    fn flow(&self) -> FlowKey {
        self.packet.flow()
    }
}

impl<P: Packet> Tagged<P> {
    fn finish(&self) -> f64 {
        self.start + f64::from(self.packet.size())
    }
}

#[derive(Clone, Debug)]
struct Flow {
    key: FlowKey,
    queue: Queue,
    /// When its last packet finishes: the round (paper), or seconds (ns-2).
    finish: f64,
}

/// What comes first has the greatest key: the earliest round, then the least number.
type Order = u128;

fn order(round: f64, number: u64) -> Order {
    // Numbers of one sign are in the order of their bits.
    !(u128::from(round.to_bits()) << 64 | u128::from(number))
}

/// The imagined link.
#[derive(Clone, Debug)]
struct Reference {
    /// Bytes that each flow that has been active throughout was served since the link was idle.
    round: f64,
    /// Flows that it has not finished, by the round in which it will, or by an earlier one in which it would have.
    active: Heap<f64>,
    bytes_per_ns: f64,
    /// How much of the packet on the real link is not served here yet, as of `served_until`.
    left: f64,
    served_until: Time,
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    limit: Limit,
    is_ns2: bool,
    reference: Reference,
    table: FlowTable<u32>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// Flows with packets, in the order in which they are to be sent.
    next: Heap<Order>,
    /// Flows with packets, in the order in which ns-2 is to send them.
    by_clock: Tournament,
    /// Flows with packets, by bytes.
    longest: Heap<u64>,
    accepted: u64,
    pool: Pool<Tagged<P>>,
    held: Backlog,
}

impl<P: Packet> Fq<P> {
    /// Empty queues.
    pub fn new(values: &Values, site: Site) -> Self {
        let bytes_per_ns = site.rate.bps_f64() / 8e9;
        Self {
            limit: Limit::of(values),
            is_ns2: values.word("dialect") == "ns2",
            reference: Reference {
                round: 0.0,
                active: Heap::new(64),
                bytes_per_ns,
                left: 0.0,
                served_until: Time::ZERO,
            },
            table: FlowTable::with_room_for(64),
            flows: Vec::with_capacity(64),
            free: Vec::with_capacity(64),
            next: Heap::new(64),
            by_clock: Tournament::new(1e-9 / bytes_per_ns),
            longest: Heap::new(64),
            accepted: 0,
            pool: Pool::default(),
            held: Backlog::default(),
        }
    }

    /// Moves the imagined link on to `now`; `is_sent` if the real link has sent its packet. Flows that it has finished
    /// and that hold nothing are forgotten.
    fn serve(&mut self, now: Time, is_sent: bool) {
        if self.is_ns2 {
            return self.forget_until(now.secs_f64());
        }
        let reference = &mut self.reference;
        let passed = reference.bytes_per_ns * now.since(reference.served_until).ns() as f64;
        let mut work = if is_sent { reference.left } else { passed.min(reference.left) };
        reference.left -= work;
        reference.served_until = now;
        let flows = &self.flows;
        while let Some((finish, index)) = reference.active.settle(|index| Some(-flows[index as usize].finish)) {
            let active = reference.active.len() as f64;
            let until_finish = (-finish - reference.round).max(0.0) * active;
            if until_finish > work {
                reference.round += work / active;
                break;
            }
            work -= until_finish;
            reference.round = reference.round.max(-finish);
            reference.active.remove(index);
            Self::forget_if_empty(&mut self.table, flows, &mut self.free, index);
        }
    }

    /// Hears that the link is idle. The imagined link has done all its work too, but for rounding.
    fn rest(&mut self) {
        while let Some((_, index)) = self.reference.active.top() {
            self.reference.active.remove(index);
            Self::forget_if_empty(&mut self.table, &self.flows, &mut self.free, index);
        }
        self.reference.round = 0.0;
    }

    /// Forgets flows without packets at the time at which their last packet finishes (ns-2).
    fn forget_until(&mut self, now_s: f64) {
        while let Some((finish, index)) = self.reference.active.top()
            && -finish <= now_s
        {
            self.reference.active.remove(index);
            Self::forget_if_empty(&mut self.table, &self.flows, &mut self.free, index);
        }
    }

    fn forget_if_empty(table: &mut FlowTable<u32>, flows: &[Flow], free: &mut Vec<u32>, index: u32) {
        let flow = &flows[index as usize];
        if flow.queue.is_empty() {
            table.remove(flow.key);
            free.push(index);
        }
    }

    /// The number of the flow. A flow of which nothing is known gets a new one.
    fn find(&mut self, key: FlowKey) -> u32 {
        if let Some(index) = self.table.get(key) {
            return *index;
        }
        let flow = Flow { key, queue: Queue::default(), finish: 0.0 };
        let index = match self.free.pop() {
            Some(index) => {
                self.flows[index as usize] = flow;
                index
            }
            None => {
                self.flows.push(flow);
                self.flows.len() as u32 - 1
            }
        };
        *self.table.get_or_insert(key, index)
    }

    /// Loses packets until one of `size` bytes fits that belongs to `flow`; false if that one is to be lost itself.
    fn make_room(&mut self, size: u32, flow: FlowKey, now: Time, tap: &mut dyn Tap<P>) -> bool {
        if !self.limit.admits(Backlog::default(), size) {
            return false;
        }
        let own = self.table.get(flow).map_or(0, |index| self.flows[*index as usize].queue.backlog().bytes);
        while !self.limit.admits(self.held, size) {
            let (bytes, longest) = self.longest.top().expect("a full queue holds packets");
            if own + u64::from(size) >= bytes {
                return false;
            }
            let flow = &mut self.flows[longest as usize];
            let held = self.pool.pop_tail(&mut flow.queue).expect("the longest queue holds packets");
            if !self.is_ns2 {
                flow.finish = held.packet.start;
            }
            if !self.is_ns2 || flow.queue.is_empty() {
                self.reference.active.raise(longest, -flow.finish);
            }
            self.count_out(longest, &held);
            tap.dropped(held.packet.packet, Cause::TAIL, now);
        }
        true
    }

    /// Notes that a packet has left the queue of `index`.
    fn count_out(&mut self, index: u32, held: &Held<Tagged<P>>) {
        let bytes = self.flows[index as usize].queue.backlog().bytes;
        if bytes == 0 {
            self.longest.remove(index);
            if self.is_ns2 {
                self.by_clock.remove(index);
            } else {
                self.next.remove(index);
            }
        } else {
            self.longest.set(index, bytes);
        }
        self.held.packets -= 1;
        self.held.bytes -= u64::from(held.packet.size());
    }

    /// Notes that the packet at the head of `index` has come there at `now`.
    fn line_up(&mut self, index: u32, now: Time) {
        let flow = &self.flows[index as usize];
        if let Some(Held { packet, .. }) = self.pool.head(&flow.queue) {
            if self.is_ns2 {
                self.by_clock.set(index, now.secs_f64().max(flow.finish), packet.size(), packet.number);
            } else {
                self.next.set(index, order(packet.finish(), packet.number));
            }
        }
    }

    /// The packet whose turn it is, by the clock of the reference.
    fn next(&mut self, now: Time) -> Option<Held<P>> {
        self.serve(now, true);
        let index = if self.is_ns2 {
            let (finish, index) = self.by_clock.first()?;
            self.flows[index as usize].finish = finish;
            index
        } else {
            let Some((_, index)) = self.next.top() else {
                self.rest();
                return None;
            };
            index
        };
        let flow = &mut self.flows[index as usize];
        let held = self.pool.pop(&mut flow.queue)?;
        let is_empty = flow.queue.is_empty();
        self.reference.left = f64::from(held.packet.size());
        self.count_out(index, &held);
        if !is_empty {
            self.line_up(index, now);
        } else if self.is_ns2 {
            self.reference.active.set(index, -self.flows[index as usize].finish);
        } else if !self.reference.active.contains(index) {
            Self::forget_if_empty(&mut self.table, &self.flows, &mut self.free, index);
        }
        Some(Held { packet: held.packet.packet, enqueued: held.enqueued })
    }
}

impl<P: Packet> Qdisc<P> for Fq<P> {
    fn offer(&mut self, packet: P, now: Time, driver: &mut dyn Driver<P>) {
        self.serve(now, false);
        let size = packet.size();
        if !self.limit.admits(self.held, size) && !self.make_room(size, packet.flow(), now, driver) {
            return driver.dropped(packet, Cause::TAIL, now);
        }
        driver.accepted(&packet, now);
        let index = self.find(packet.flow());
        let flow = &mut self.flows[index as usize];
        let start = flow.finish.max(self.reference.round);
        let tagged = Tagged { packet, start, number: self.accepted };
        self.accepted += 1;
        if self.is_ns2 {
            self.reference.active.remove(index);
        } else {
            flow.finish = tagged.finish();
            self.reference.active.raise(index, -flow.finish);
        }
        let is_head = flow.queue.is_empty();
        self.pool.push(&mut flow.queue, Held { packet: tagged, enqueued: now });
        self.longest.set(index, flow.queue.backlog().bytes);
        self.held.packets += 1;
        self.held.bytes += u64::from(size);
        if is_head {
            self.line_up(index, now);
        }
    }

    fn take(&mut self, now: Time, _tap: &mut dyn Tap<P>) -> Taken<P> {
        self.next(now).into()
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn gauges(&self) -> Gauges {
        Gauges { tracked_flows: Some(self.table.len() as u32), ..Gauges::default() }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        self.limit = Limit::of(values);
        let bytes_per_ns = rate.bps_f64() / 8e9;
        if bytes_per_ns != self.reference.bytes_per_ns {
            self.serve(now, false);
            self.reference.bytes_per_ns = bytes_per_ns;
            self.by_clock.set_pace(1e-9 / bytes_per_ns);
        }
    }
}

/// Its row; the discipline itself is [`Fq`].
pub struct FairQueueing;

impl Discipline for FairQueueing {
    const ROW: Row = Row {
        name: "fq",
        aliases: &[],
        doc: "Fair queueing: sends packets in the order in which a bit-by-bit round robin would finish them.",
        source: PAPER,
        year: 1989,
        marks: false,
        params: PARAMS,
        fixed: &["dialect"],
        gauges: &[Gauge::flows("Flows that the imagined link has not finished.")],
        causes: &[],
        uses_rate: registry::always,
        resolve: registry::as_given,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(Fq::new(values, site))
    }
}
