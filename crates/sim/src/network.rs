//! The network: [`net`], with the simulator's packets and everything that is pending.

use crate::connection::{Connections, Path};
use crate::packets::{Carried, Parcel, Segments, What};
use crate::probes::Probes;
use crate::queue::EventQueue;
use crate::tmix::Conditions;
use aqm::{Ack, Cause, Delivery, Packet, Tap};
use base::{Rate, Span, Time};
use net::{Bottleneck, Rank, Receivers, Watch};
use record::{Meter, Sink, Tally};
use scenario::Impairments;
use tcp::{Emit, Flags, Segment};

/// Everything between the hosts, and the events that are pending.
pub struct Network {
    /// What the packets on their way carry.
    pub segments: Segments,
    /// The bottleneck.
    pub bottleneck: Bottleneck<Parcel>,
    /// What is counted of each direction.
    pub meters: [Meter; 2],
    /// Pending events.
    pub queue: EventQueue<What>,
    /// Rate of the access links.
    pub access: Rate,
    /// The access links of receivers behind each egress.
    pub receivers: [Receivers; 2],
    /// The hosts of each source, for those without connections.
    pub hosts: Vec<[u32; 2]>,
    /// What the path does to packets before the bottleneck, if anything.
    pub impairments: Option<Impairments>,
    /// Whether losses and marks are written down.
    pub writes_drops: bool,
    /// Probes on their way.
    pub probes: Probes,
}

/// The gate of the bottleneck of a side: of the fields, since the bottleneck itself is called with it.
macro_rules! gate {
    ($network:ident, $side:ident, $connections:ident, $sink:ident) => {
        Gate {
            tally: Tally {
                meter: &mut $network.meters[$side],
                sink: $sink,
                direction: $side as u8,
                writes_drops: $network.writes_drops,
            },
            segments: &mut $network.segments,
            connections: $connections,
            hosts: &$network.hosts,
            probes: &mut $network.probes,
        }
    };
}

impl Network {
    /// A packet reached the egress of its direction.
    #[inline]
    pub fn arrive(&mut self, packet: Parcel, connections: &mut Connections, now: Time, sink: &mut dyn Sink) {
        let side = packet.side();
        let mut gate = gate!(self, side, connections, sink);
        self.bottleneck.offer(side, packet, now, &mut gate);
    }

    /// Lets the egress of `side` do what is due at `now`: a tick of its law, or the end of a transmission.
    #[inline]
    pub fn advance(&mut self, side: usize, connections: &mut Connections, now: Time, sink: &mut dyn Sink) {
        let mut gate = gate!(self, side, connections, sink);
        let Some(delivery) = self.bottleneck.advance(side, now, &mut gate) else { return };
        let packet = delivery.packet;
        let takes = self.access.time_for(u64::from(packet.size()));
        let mut received = delivery.at + takes;
        let mut source = 0;
        if !packet.is_udp() {
            source = self.segments.connection(packet.place());
            received = self.receivers[side]
                .receive(source, takes, delivery.at, || connections.get(source).path.links.receiving(1 - side));
        } else if packet.is_probe() {
            received = self.probes.crosses(packet.place(), delivery.at, takes);
        }
        self.queue.push(received, Rank::Deliver, source, What::packet(packet));
    }
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
        let side = self.side as usize;
        let takes = self.access.time_for(u64::from(segment.size));
        let troubles = &mut self.troubles;
        let fate = || troubles.as_mut().map_or(Some(Span::ZERO), |troubles| troubles.meet(side as u8, &mut segment));
        let Some(arrives) = self.path.links.send(side, takes, self.now, fate) else {
            self.meters[side].lost_before_link(false);
            return;
        };
        *self.in_flight += 1;
        let place = self.segments.insert(Carried { segment, connection: self.place });
        let parcel = Parcel::tcp(self.path.flow, place, segment.size, segment.ecn, self.path.dscp, self.side);
        self.queue.push(arrives, Rank::Arrive, self.place, What::packet(parcel));
    }
}

/// What happens at one bottleneck is counted; the places of packets that are lost are given back.
struct Gate<'a> {
    tally: Tally<'a>,
    segments: &'a mut Segments,
    connections: &'a mut Connections,
    hosts: &'a [[u32; 2]],
    probes: &'a mut Probes,
}

impl Watch<Parcel> for Gate<'_> {
    #[inline]
    fn offered(&mut self, packet: &Parcel, _now: Time) {
        self.tally.meter.offered(packet.is_udp());
    }

    #[inline]
    fn waiting(&mut self, packets: u32, now: Time) {
        self.tally.meter.waiting(packets, now);
    }

    #[inline]
    fn delivered(&mut self, delivery: &Delivery<Parcel>) {
        self.tally.meter.delivered(delivery.packet.size(), delivery.waited);
    }
}

impl Tap<Parcel> for Gate<'_> {
    #[inline]
    fn accepted(&mut self, _packet: &Parcel, _now: Time) {
        self.tally.meter.accepted();
    }

    fn dropped(&mut self, packet: Parcel, cause: Cause, now: Time) {
        self.tally.dropped(&packet, packet.is_udp(), cause, now);
        if packet.is_probe() {
            self.probes.lost(packet.place(), self.tally.sink);
        } else if !packet.is_udp() {
            let place = self.segments.remove(packet.place()).connection;
            self.connections.get(place).in_flight -= 1;
            self.connections.release(place);
        }
    }

    fn marked(&mut self, packet: &Parcel, cause: Cause, now: Time) {
        self.tally.marked(packet, cause, now);
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
