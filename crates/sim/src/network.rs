//! The network: an egress each way, and hosts' access links and delays around it.
//!
//! ```text
//! left host ─ access ─ delay ─ [egress forward] ─ access ─ right host
//! left host ─ access ─ [egress reverse] ─ delay ─ access ─ right host
//! ```
//!
//! A packet of side `s` is serialized onto its access link, takes the connection's propagation delay, goes through
//! egress `s`, and is serialized onto the other side's access link. The delay is constant for a connection and lies
//! between the sending host and the bottleneck, where the studies' delay emulators stood; with one bottleneck each
//! way only the sum over a round trip matters. Every connection has access links of its own.

use crate::connection::{Connections, Path};
use crate::packets::{Carried, Parcel, Segments, What};
use crate::probes::Probes;
use crate::queue::{EventQueue, Rank};
use crate::tmix::Conditions;
use aqm::{Ack, Cause, Egress, Packet, Tap};
use base::{Rate, Span, Time};
use record::{DropRow, Meter, Sink};
use scenario::Impairments;
use std::collections::VecDeque;
use tcp::{Emit, Flags, Segment};

/// Everything between the hosts, and the events that are pending.
pub struct Network {
    /// What the packets on their way carry.
    pub segments: Segments,
    /// The bottleneck: forward, and in reverse.
    pub egress: [Egress<Parcel>; 2],
    /// What is counted of each.
    pub meters: [Meter; 2],
    /// Pending events.
    pub queue: EventQueue<What>,
    /// Rate of the access links.
    pub access: Rate,
    /// Whether packets that come out of an egress may pile up at a receiver's access link: where that is slower than
    /// the bottleneck, or where packets leave that in bursts.
    pub receives_apart: [bool; 2],
    /// Packets on receivers' access links: until when, and of which connection. Only where they do not pile up.
    pub receiving: [VecDeque<(Time, u32)>; 2],
    /// The hosts of each source, for those without connections.
    pub hosts: Vec<[u32; 2]>,
    /// What the path does to packets before the bottleneck, if anything.
    pub impairments: Option<Impairments>,
    /// Whether losses and marks are written down.
    pub writes_drops: bool,
    /// Probes on their way.
    pub probes: Probes,
}

impl Network {
    /// A packet reached the egress of its direction.
    #[inline]
    pub fn arrive(&mut self, packet: Parcel, connections: &mut Connections, now: Time, sink: &mut dyn Sink) {
        let side = packet.side();
        self.meters[side].offered(packet.is_udp());
        let mut gate = Gate {
            segments: &mut self.segments,
            meter: &mut self.meters[side],
            connections,
            hosts: &self.hosts,
            probes: &mut self.probes,
            sink,
            direction: side as u8,
            writes: self.writes_drops,
        };
        self.egress[side].offer(packet, now, &mut gate);
        self.meters[side].waiting(self.egress[side].backlog().packets, now);
    }

    /// Lets the egress of `side` do what is due at `now`: a tick of its law, or the end of a transmission.
    #[inline]
    pub fn advance(&mut self, side: usize, connections: &mut Connections, now: Time, sink: &mut dyn Sink) {
        let mut gate = Gate {
            segments: &mut self.segments,
            meter: &mut self.meters[side],
            connections,
            hosts: &self.hosts,
            probes: &mut self.probes,
            sink,
            direction: side as u8,
            writes: self.writes_drops,
        };
        let delivery = self.egress[side].advance(now, &mut gate);
        self.meters[side].waiting(self.egress[side].backlog().packets, now);
        let Some(delivery) = delivery else { return };
        let packet = delivery.packet;
        self.meters[side].delivered(packet.size(), delivery.waited);
        let takes = self.access.time_for(u64::from(packet.size()));
        let mut received = delivery.at + takes;
        let mut source = 0;
        if !packet.is_udp() {
            source = self.segments.connection(packet.place());
            received = if self.receives_apart[side] {
                let free_at = &mut connections.get(source).path.receives_at[1 - side];
                *free_at = (*free_at).max(delivery.at) + takes;
                *free_at
            } else {
                follow(&mut self.receiving[side], source, delivery.at, takes)
            };
        } else if packet.is_probe() {
            received = self.probes.crosses(packet.place(), delivery.at, takes);
        }
        self.queue.push(received, Rank::Deliver, source, What::packet(packet));
    }
}

/// When a packet that left the bottleneck at `left_at` has crossed its connection's access link, which is no slower
/// than the bottleneck but still may have the large packet before it. Such packets are few and all among the last ones:
/// looking through them costs less than fetching the connection.
fn follow(receiving: &mut VecDeque<(Time, u32)>, connection: u32, left_at: Time, takes: Span) -> Time {
    while receiving.front().is_some_and(|&(until, _)| until <= left_at) {
        receiving.pop_front();
    }
    let before = receiving.iter().rev().find(|&&(_, other)| other == connection);
    let received = before.map_or(left_at, |&(until, _)| until.max(left_at)) + takes;
    receiving.push_back((received, connection));
    received
}

/// Where an endpoint's segments go: onto its access link.
pub struct Sender<'a> {
    /// What the packets on their way carry.
    pub segments: &'a mut Segments,
    /// Pending events.
    pub queue: &'a mut EventQueue<What>,
    /// The connection's path.
    pub path: &'a mut Path,
    /// The connection's packets on their way.
    pub in_flight: &'a mut u32,
    /// What becomes of segments before the bottleneck, beside delay.
    pub troubles: Option<Troubles<'a>>,
    /// What is counted of the bottleneck, and of what is lost before it.
    pub meters: &'a mut [Meter; 2],
    /// The connection.
    pub place: u32,
    /// Which end sends.
    pub side: u8,
    /// Rate of the access link.
    pub access: Rate,
    /// Now.
    pub now: Time,
}

/// What becomes of a connection's segments before the bottleneck, beside delay.
pub struct Troubles<'a> {
    /// What the connection has of its connection vector, if it plays one.
    pub conditions: Option<&'a mut Conditions>,
    /// See [`Network::impairments`].
    pub impairments: Option<&'a mut Impairments>,
}

impl Troubles<'_> {
    /// What a segment that `side` sends meets: how much later it arrives, or `None` if it is lost.
    fn meet(&mut self, side: u8, segment: &mut Segment) -> Option<Span> {
        if let Some(conditions) = &mut self.conditions {
            segment.window = conditions.window(side, segment.window);
            if conditions.loses(side) {
                return None;
            }
        }
        self.impairments.as_mut().map_or(Some(Span::ZERO), |impairments| impairments.fate(side as usize))
    }
}

impl Emit for Sender<'_> {
    #[inline]
    fn emit(&mut self, mut segment: Segment) {
        let free_at = &mut self.path.sends_at[self.side as usize];
        *free_at = (*free_at).max(self.now) + self.access.time_for(u64::from(segment.size));
        let mut arrives = *free_at + self.path.delay;
        if let Some(troubles) = &mut self.troubles {
            match troubles.meet(self.side, &mut segment) {
                Some(later) => arrives += later,
                None => {
                    self.meters[self.side as usize].lost_before_link(false);
                    return;
                }
            }
        }
        *self.in_flight += 1;
        let place = self.segments.insert(Carried { segment, connection: self.place });
        let parcel = Parcel::tcp(self.path.flow, place, segment.size, segment.ecn, self.path.dscp, self.side);
        self.queue.push(arrives, Rank::Arrive, self.place, What::packet(parcel));
    }
}

/// What the discipline tells goes to the meter; packets that are lost are given back.
struct Gate<'a> {
    segments: &'a mut Segments,
    meter: &'a mut Meter,
    connections: &'a mut Connections,
    hosts: &'a [[u32; 2]],
    probes: &'a mut Probes,
    sink: &'a mut dyn Sink,
    direction: u8,
    writes: bool,
}

impl Gate<'_> {
    fn write(&mut self, packet: &Parcel, is_mark: bool, cause: Cause, now: Time) {
        if self.writes {
            self.sink.drop(&DropRow {
                time_s: now.secs_f64(),
                direction: self.direction,
                is_mark,
                cause,
                size_bytes: packet.size(),
                flow: packet.flow().0,
            });
        }
    }
}

impl Tap<Parcel> for Gate<'_> {
    #[inline]
    fn accepted(&mut self, _packet: &Parcel, _now: Time) {
        self.meter.accepted();
    }

    fn dropped(&mut self, packet: Parcel, cause: Cause, now: Time) {
        self.meter.dropped(cause, packet.is_udp());
        self.write(&packet, false, cause, now);
        if packet.is_probe() {
            self.probes.lost(packet.place(), self.sink);
        } else if !packet.is_udp() {
            let place = self.segments.remove(packet.place()).connection;
            self.connections.get(place).in_flight -= 1;
            self.connections.release(place);
        }
    }

    fn marked(&mut self, packet: &Parcel, cause: Cause, now: Time) {
        self.meter.marked(cause);
        self.write(packet, true, cause, now);
    }

    fn hosts(&self, packet: &Parcel) -> Option<(u32, u32)> {
        let hosts = if packet.is_probe() {
            self.hosts[self.probes.source(packet.place()) as usize]
        } else if packet.is_udp() {
            self.hosts[packet.place() as usize]
        } else {
            self.connections.path(self.segments.connection(packet.place())).hosts
        };
        Some((hosts[packet.side()], hosts[1 - packet.side()]))
    }

    fn ack(&self, packet: &Parcel) -> Option<Ack> {
        if packet.is_udp() {
            return None;
        }
        let Segment { flags, ack, sacks, payload, .. } = self.segments.segment(packet.place());
        if flags.has(Flags::SYN) || !flags.has(Flags::ACK) {
            return None;
        }
        let (mut blocks, mut count) = ([(0, 0); 4], 0);
        for (slot, (start, end)) in blocks.iter_mut().zip(sacks.above(*ack)) {
            *slot = (start as u32, end as u32);
            count += 1;
        }
        let is_pure = *payload == 0 && !flags.has(Flags::FIN);
        let echo = u8::from(flags.has(Flags::ECE)) | u8::from(flags.has(Flags::CWR)) << 1;
        Some(Ack { is_pure, echo, number: *ack as u32, blocks, count })
    }
}
