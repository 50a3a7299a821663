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
use crate::packets::{InFlight, Owner, Packets, Parcel};
use crate::queue::{EventQueue, Rank};
use aqm::{Cause, Egress, Tap};
use base::{Rate, Time};
use record::{DropRow, Meter, Sink};
use tcp::{Emit, Segment};

/// Everything between the hosts, and the events that are pending.
pub struct Network {
    /// Packets on their way.
    pub packets: Packets,
    /// The bottleneck: forward, and in reverse.
    pub egress: [Egress<Parcel>; 2],
    /// What is counted of each.
    pub meters: [Meter; 2],
    /// Pending events.
    pub queue: EventQueue,
    /// Rate of the access links.
    pub access: Rate,
    /// Whether losses and marks are written down.
    pub writes_drops: bool,
}

impl Network {
    /// A packet reached the egress of its direction.
    #[inline]
    pub fn arrive(&mut self, id: u32, connections: &mut Connections, now: Time, sink: &mut dyn Sink) {
        let packet = self.packets.get(id);
        let is_udp = matches!(packet.owner, Owner::Udp(_));
        let parcel = Parcel { flow: packet.flow, id, size: packet.segment.size, ecn: packet.segment.ecn, is_udp };
        let side = packet.side as usize;
        self.meters[side].offered(is_udp);
        let mut gate = Gate {
            packets: &mut self.packets,
            meter: &mut self.meters[side],
            connections,
            sink,
            direction: side as u8,
            writes: self.writes_drops,
        };
        self.egress[side].offer(parcel, now, &mut gate);
    }

    /// Lets the egress of `side` do what is due at `now`: a tick of its law, or the end of a transmission.
    #[inline]
    pub fn advance(&mut self, side: usize, connections: &mut Connections, now: Time, sink: &mut dyn Sink) {
        let mut gate = Gate {
            packets: &mut self.packets,
            meter: &mut self.meters[side],
            connections,
            sink,
            direction: side as u8,
            writes: self.writes_drops,
        };
        let Some(delivery) = self.egress[side].advance(now, &mut gate) else { return };
        let parcel = delivery.packet;
        self.meters[side].delivered(u32::from(parcel.size), delivery.waited);
        self.packets.set_ecn(parcel.id, parcel.ecn);
        let mut received = delivery.at + self.access.time_for(u64::from(parcel.size));
        let mut source = 0;
        if let Owner::Tcp(place) = self.packets.get(parcel.id).owner {
            source = place;
            // Packets leave the bottleneck no closer together than its rate allows: only a slower access link queues.
            if self.access < self.egress[side].rate() {
                let free_at = &mut connections.get(place).path.receives_at[1 - side];
                received = (*free_at).max(delivery.at) + self.access.time_for(u64::from(parcel.size));
                *free_at = received;
            }
        }
        self.queue.push(received, Rank::Deliver, source, parcel.id);
    }
}

/// Where an endpoint's segments go: onto its access link.
pub struct Sender<'a> {
    /// Packets on their way.
    pub packets: &'a mut Packets,
    /// Pending events.
    pub queue: &'a mut EventQueue,
    /// The connection's path.
    pub path: &'a mut Path,
    /// The connection's packets on their way.
    pub in_flight: &'a mut u32,
    /// The connection.
    pub place: u32,
    /// Which end sends.
    pub side: u8,
    /// Rate of the access link.
    pub access: Rate,
    /// Now.
    pub now: Time,
}

impl Emit for Sender<'_> {
    #[inline]
    fn emit(&mut self, segment: Segment) {
        *self.in_flight += 1;
        let free_at = &mut self.path.sends_at[self.side as usize];
        *free_at = (*free_at).max(self.now) + self.access.time_for(u64::from(segment.size));
        let arrives = *free_at + self.path.delay;
        let id = self.packets.insert(InFlight {
            segment,
            owner: Owner::Tcp(self.place),
            flow: self.path.flow,
            side: self.side,
        });
        self.queue.push(arrives, Rank::Arrive, self.place, id);
    }
}

/// What the discipline tells goes to the meter; packets that are lost are given back.
struct Gate<'a> {
    packets: &'a mut Packets,
    meter: &'a mut Meter,
    connections: &'a mut Connections,
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
                size_bytes: u32::from(packet.size),
                flow: packet.flow.0,
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
        self.meter.dropped(cause, packet.is_udp);
        self.write(&packet, false, cause, now);
        if let Owner::Tcp(place) = self.packets.remove(packet.id).owner {
            self.connections.get(place).in_flight -= 1;
        }
    }

    fn marked(&mut self, packet: &Parcel, cause: Cause, now: Time) {
        self.meter.marked(cause);
        self.write(packet, true, cause, now);
    }
}
