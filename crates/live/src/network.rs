//! What happens to packets between one device and the other: the simulator's network, with a router's packets.
//!
//! ```text
//! left ─ access ─ delay ─ [egress forward] ─ access ─ right
//! left ─ access ─ [egress reverse] ─ delay ─ access ─ right
//! ```
//!
//! A packet of side `s` is serialized onto its flow's access link, takes the flow's propagation delay, goes through
//! egress `s`, and is serialized onto the flow's access link on the other side: in the order and with the rounding of
//! the simulator. The two TUN devices are the ends of a wire: the time to live is as it was.
//!
//! It is told what time it is and says when something happens next. What is due is done in the order of its own times,
//! however late it is asked, so that a router that comes late bends neither the link nor the law, only the instant at
//! which a packet is handed over.

use crate::flows::Flows;
use crate::frame::Frame;
use crate::pool::Pool;
use crate::wire::{self, Malformed};
use aqm::registry::{self, Site};
use aqm::{Ack, Cause, Counts, Egress, Packet, Tap};
use base::{Ecn, Rate, Stream, Time};
use record::Meter;
use scenario::{QdiscSpec, Scenario};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Why something that was read did not come to the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It is no packet.
    Malformed(Malformed),
    /// There is no buffer left.
    NoRoom,
}

/// A packet that has crossed the network. Its place must be given back: [`Network::give_back`].
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    /// When it arrives.
    pub at: Time,
    /// On which side: 0 left, 1 right.
    pub side: usize,
    frame: Frame,
}

/// Everything between the two devices.
pub struct Network {
    pool: Pool,
    flows: Flows,
    access: Rate,
    egress: [Egress<Frame>; 2],
    meters: [Meter; 2],
    pending: BinaryHeap<Reverse<Pending>>,
    sequence: u64,
    /// What was read, by side; what of it was no packet, and what found no buffer.
    counts: [Ingress; 2],
    /// Packets that have arrived and whose place was not yet given back.
    leaving: usize,
}

/// What came in on one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ingress {
    /// Read from the device.
    pub read: u64,
    /// No well-formed IP packets, and so dropped.
    pub malformed: u64,
    /// Dropped because all buffers were in use.
    pub no_room: u64,
}

/// A packet on its way to an egress, or to its host.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: Time,
    is_delivery: bool,
    sequence: u64,
    frame: Frame,
}

impl Pending {
    /// As in the simulator: arrivals at the bottleneck before arrivals at hosts, then as they were sent.
    fn key(&self) -> (Time, bool, u64) {
        (self.at, self.is_delivery, self.sequence)
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Network {
    /// The network of `scenario`, idle. Of the scenario it is `link`, `path` and `seed` that count; the disciplines
    /// draw from the streams that they draw from in the simulator.
    pub fn new(scenario: &Scenario) -> Self {
        let link = &scenario.link;
        let egress = |rate: Rate, qdisc: &QdiscSpec, direction: &str| {
            let stream = Stream::named(scenario.seed, &format!("link/{direction}/qdisc"));
            Egress::new(rate, registry::build(qdisc.kind, &qdisc.values, Site { rate, stream }))
                .with_overhead(link.overhead)
        };
        let mut meters = [Meter::new(), Meter::new()];
        meters.iter_mut().for_each(|meter| meter.start(Time::ZERO));
        Self {
            pool: Pool::default(),
            flows: Flows::new(scenario.path.rtt.clone(), scenario.seed),
            access: scenario.path.access_rate,
            egress: [
                egress(link.rate, &link.qdisc, "forward"),
                egress(link.reverse_rate, &link.reverse_qdisc, "reverse"),
            ],
            meters,
            pending: BinaryHeap::with_capacity(1 << 14),
            sequence: 0,
            counts: [Ingress::default(); 2],
            leaving: 0,
        }
    }

    /// A place for the next packet; `None` when there is no buffer left.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.pool.take()
    }

    /// The buffer of a place that was taken.
    #[inline]
    pub fn buffer(&mut self, place: u32) -> &mut [u8] {
        self.pool.buffer_mut(place)
    }

    /// Gives back a place that was taken for nothing.
    #[inline]
    pub fn untake(&mut self, place: u32) {
        self.pool.give_back(place);
    }

    /// A packet was read for which there was no place.
    pub fn no_room(&mut self, side: usize) {
        self.counts[side].read += 1;
        self.counts[side].no_room += 1;
    }

    /// The first `size` bytes at `place` came from `side` at `now`, which never goes back.
    ///
    /// # Errors
    /// What is no packet is counted, and its place given back.
    #[inline]
    pub fn arrive(&mut self, place: u32, size: usize, side: usize, now: Time) -> Result<(), Malformed> {
        self.counts[side].read += 1;
        let header = wire::parse(&self.pool.buffer(place)[..size]).inspect_err(|_| {
            self.counts[side].malformed += 1;
            self.pool.give_back(place);
        })?;
        let wire::Header { size, ecn, dscp, flow, is_udp } = header;
        let frame = Frame { flow, place, size, dscp, ecn, side: side as u8, is_udp };
        let path = self.flows.path(flow, now);
        let at = path.send(side, frame.size(), self.access, now) + path.delay;
        self.push(at, false, frame);
        Ok(())
    }

    /// Copies `packet` in, as if it had been read from `side` at `now`.
    ///
    /// # Errors
    /// Where it is no packet, or there is no buffer.
    pub fn send(&mut self, packet: &[u8], side: usize, now: Time) -> Result<(), Refused> {
        let Some(place) = self.take() else {
            self.no_room(side);
            return Err(Refused::NoRoom);
        };
        let buffer = self.buffer(place);
        let size = packet.len().min(buffer.len());
        buffer[..size].copy_from_slice(&packet[..size]);
        self.arrive(place, size, side, now).map_err(Refused::Malformed)
    }

    fn push(&mut self, at: Time, is_delivery: bool, frame: Frame) {
        self.sequence += 1;
        self.pending.push(Reverse(Pending { at, is_delivery, sequence: self.sequence, frame }));
    }

    /// When something happens next.
    #[inline]
    pub fn next_event(&self) -> Time {
        let pending = self.pending.peek().map_or(Time::NEVER, |Reverse(pending)| pending.at);
        pending.min(self.egress[0].next_event()).min(self.egress[1].next_event())
    }

    /// Does what is due at or before `now` until a packet has arrived, and returns that; call until it returns `None`.
    #[inline]
    pub fn advance(&mut self, now: Time) -> Option<Leaving> {
        loop {
            let at = self.next_event();
            if at > now {
                return None;
            }
            // An egress first at the same instant, forward before reverse.
            if let Some(side) = (0..2).find(|&side| self.egress[side].next_event() == at) {
                self.advance_egress(side, at);
                continue;
            }
            let Reverse(Pending { is_delivery, frame, .. }) = self.pending.pop().expect("it has the next event");
            if is_delivery {
                self.leaving += 1;
                return Some(Leaving { at, side: 1 - usize::from(frame.side), frame });
            }
            self.offer(frame, at);
        }
    }

    fn offer(&mut self, frame: Frame, now: Time) {
        let side = usize::from(frame.side);
        self.meters[side].offered(frame.is_udp);
        let mut gate = Gate { pool: &mut self.pool, meter: &mut self.meters[side] };
        self.egress[side].offer(frame, now, &mut gate);
        self.meters[side].waiting(self.egress[side].backlog().packets, now);
    }

    fn advance_egress(&mut self, side: usize, now: Time) {
        let mut gate = Gate { pool: &mut self.pool, meter: &mut self.meters[side] };
        let delivery = self.egress[side].advance(now, &mut gate);
        self.meters[side].waiting(self.egress[side].backlog().packets, now);
        let Some(delivery) = delivery else { return };
        let frame = delivery.packet;
        self.meters[side].delivered(frame.size(), delivery.waited);
        let received =
            self.flows.path(frame.flow, delivery.at).receive(1 - side, frame.size(), self.access, delivery.at);
        self.push(received, true, frame);
    }

    /// The bytes of a packet that has arrived, its ECN field as the discipline left it.
    #[inline]
    pub fn bytes(&mut self, leaving: &Leaving) -> &[u8] {
        let Frame { place, size, ecn, .. } = leaving.frame;
        let packet = &mut self.pool.buffer_mut(place)[..usize::from(size)];
        if ecn == Ecn::Ce {
            wire::set_ecn(packet, ecn);
        }
        packet
    }

    /// The packet has left.
    #[inline]
    pub fn give_back(&mut self, leaving: Leaving) {
        self.leaving -= 1;
        self.pool.give_back(leaving.frame.place);
    }

    /// What came in on `side`.
    pub fn ingress(&self, side: usize) -> Ingress {
        self.counts[side]
    }

    /// What went through the egress of `side`.
    pub fn counts(&self, side: usize) -> &Counts {
        self.egress[side].counts()
    }

    /// The meter of the egress of `side`.
    pub fn meter(&self, side: usize) -> &Meter {
        &self.meters[side]
    }

    /// The rate of the egress of `side`.
    pub fn rate(&self, side: usize) -> Rate {
        self.egress[side].rate()
    }

    /// How many flows were seen; one that comes back after a long silence counts again.
    pub fn flows(&self) -> u64 {
        self.flows.seen()
    }

    /// How many packets of `side` the network holds: on their way to the bottleneck, in it, and after it.
    pub fn held(&self, side: usize) -> Held {
        let mut held = Held::default();
        for Reverse(pending) in self.pending.iter().filter(|Reverse(pending)| usize::from(pending.frame.side) == side) {
            *if pending.is_delivery { &mut held.after } else { &mut held.before } += 1;
        }
        let Counts { offered, delivered, .. } = *self.counts(side);
        held.within = offered - delivered - self.counts(side).dropped_total();
        held
    }

    /// Asserts that no packet was lost unaccounted or made up: at the ways in, in the disciplines, and that every
    /// buffer is somebody's.
    pub fn assert_conserved(&self) {
        let mut held = self.leaving as u64;
        for side in 0..2 {
            self.egress[side].assert_conserved();
            let Ingress { read, malformed, no_room } = self.counts[side];
            let (offered, Held { before, within, after }) = (self.counts(side).offered, self.held(side));
            assert!(
                read == malformed + no_room + before + offered,
                "packets are conserved: read {read} = malformed {malformed} + no room {no_room} \
                 + on their way {before} + offered {offered}"
            );
            held += before + within + after;
        }
        assert!(held == self.pool.held() as u64, "{held} packets hold {} buffers", self.pool.held());
    }
}

/// Where packets are that the network holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// On their way to the bottleneck.
    pub before: u64,
    /// Waiting there, or in transmission.
    pub within: u64,
    /// On their way to a host.
    pub after: u64,
}

/// What the discipline tells goes to the meter; buffers of packets that are lost are given back.
struct Gate<'a> {
    pool: &'a mut Pool,
    meter: &'a mut Meter,
}

impl Tap<Frame> for Gate<'_> {
    #[inline]
    fn accepted(&mut self, _packet: &Frame, _now: Time) {
        self.meter.accepted();
    }

    fn dropped(&mut self, packet: Frame, cause: Cause, _now: Time) {
        self.meter.dropped(cause, packet.is_udp);
        self.pool.give_back(packet.place);
    }

    fn marked(&mut self, _packet: &Frame, cause: Cause, _now: Time) {
        self.meter.marked(cause);
    }

    fn hosts(&self, packet: &Frame) -> Option<(u32, u32)> {
        wire::hosts(self.bytes(packet))
    }

    fn ack(&self, packet: &Frame) -> Option<Ack> {
        wire::ack(self.bytes(packet))
    }
}

impl Gate<'_> {
    fn bytes(&self, packet: &Frame) -> &[u8] {
        &self.pool.buffer(packet.place)[..usize::from(packet.size)]
    }
}
