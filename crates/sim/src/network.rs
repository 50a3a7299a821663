//! The network: [`net`], with the simulator's packets and everything that is pending.

use crate::connection::{Connections, Path};
use crate::packets::{Carried, Parcel, Segments, What};
use crate::probes::Probes;
use crate::queue::EventQueue;
use crate::tmix::Conditions;
use aqm::{Ack, Cause, Delivery, Headers, Packet, Tap};
use base::{Rate, Span, Time};
use net::{Net, Port, Rank, Receivers, Routes, Step, Watch};
use record::{Meter, Sink, Tally, Waits};
use scenario::{Built, Impairments, Scenario};
use tcp::{Emit, Flags, Segment};

/// Everything between the hosts, and the events that are pending.
pub struct Network {
    /// The links.
    pub net: Net<Parcel, At>,
    /// What lies around them.
    pub around: Around,
}

/// What is kept at each port.
pub struct At {
    /// What is counted there.
    pub meter: Meter,
    /// The access links of receivers behind it.
    receivers: Receivers,
}

/// What lies around the links: routes, packets on their way and what they carry, and what is written down of them.
pub struct Around {
    /// The routes over the links.
    pub routes: Routes,
    /// The first step of each block's packets, by the side that sends.
    pub steps: Vec<[Step; 2]>,
    /// Rate of the access links.
    pub access: Rate,
    /// What the path does to packets before the links, if anything.
    pub impairments: Option<Impairments>,
    /// Pending events.
    pub queue: EventQueue<What>,
    /// What the packets on their way carry.
    pub segments: Segments,
    /// Probes on their way.
    pub probes: Probes,
    /// The hosts of each source, for those without connections.
    pub hosts: Vec<[u32; 2]>,
    /// What packets waited at each step; nothing where there is one link.
    pub waits: Vec<Waits>,
    /// Whether losses and marks are written down.
    pub writes_drops: bool,
}

impl Network {
    /// The network of `scenario`, idle.
    pub fn new(scenario: &Scenario) -> Self {
        let Built { net, routes, steps } = scenario.network(|receivers| At { meter: Meter::new(), receivers });
        let [from, to, _] = scenario.edges();
        let fastest = scenario.links.iter().flat_map(|link| link.rates).max().expect("there is a link");
        let around = Around {
            waits: if scenario.has_routes() { vec![Waits::default(); routes.steps()] } else { Vec::new() },
            routes,
            steps,
            access: scenario.path.access_rate,
            impairments: Impairments::of(scenario),
            queue: EventQueue::new(slot_shift(fastest)),
            segments: Segments::default(),
            probes: Probes::new(from, to),
            hosts: Vec::new(),
            writes_drops: scenario.record.drops,
        };
        Self { net, around }
    }

    /// A packet reached the next port of its route.
    #[inline]
    pub fn arrive(&mut self, packet: Parcel, connections: &mut Connections, now: Time, sink: &mut dyn Sink) {
        let Self { net, around } = self;
        let port = around.routes.port(packet.step());
        net.offer(port, packet, now, |at| Gate { port, at, around, connections, sink });
    }

    /// Lets `port` do what is due at `now`: a tick of its law, or the end of a transmission.
    #[inline]
    pub fn advance(&mut self, port: Port, connections: &mut Connections, now: Time, sink: &mut dyn Sink) {
        let Self { net, around } = self;
        net.advance(port, now, |at| Gate { port, at, around, connections, sink });
    }

    /// A packet was lost before the first link of its route, which begins with `step`.
    pub fn lost_before_link(&mut self, step: Step, is_udp: bool) {
        self.net.own(self.around.routes.port(step)).meter.lost_before_link(is_udp);
    }
}

/// A slot of the event queue should hold a few events: about four full packets' time on the link, 1 us to 32 us.
fn slot_shift(rate: Rate) -> u32 {
    rate.time_for(4 * 1500).ns().max(1).ilog2().clamp(10, 15)
}

/// Where an endpoint's segments go: onto its access link.
pub struct Sender<'a> {
    /// The network.
    pub network: &'a mut Network,
    /// The connection's path.
    pub path: &'a mut Path,
    /// The connection's packets on their way.
    pub in_flight: &'a mut u32,
    /// What the connection has of its connection vector, if it plays one.
    pub conditions: Option<&'a mut Conditions>,
    /// The connection.
    pub place: u32,
    /// Which end sends.
    pub side: u8,
    /// Now.
    pub now: Time,
}

impl Sender<'_> {
    /// What a segment meets before the first link: how much later it arrives, or `None` if it is lost.
    fn fate(
        side: u8,
        segment: &mut Segment,
        conditions: Option<&mut Conditions>,
        impairments: Option<&mut Impairments>,
    ) -> Option<Span> {
        if let Some(conditions) = conditions {
            segment.window = conditions.window(side, segment.window);
            if conditions.loses(side) {
                return None;
            }
        }
        impairments.map_or(Some(Span::ZERO), |impairments| impairments.fate(side as usize))
    }
}

impl Emit for Sender<'_> {
    #[inline]
    fn emit(&mut self, mut segment: Segment) {
        let side = self.side as usize;
        let around = &mut self.network.around;
        let takes = around.access.time_for(u64::from(segment.size));
        let (conditions, impairments) = (self.conditions.as_deref_mut(), around.impairments.as_mut());
        let fate = || Self::fate(side as u8, &mut segment, conditions, impairments);
        let step = self.path.steps[side];
        let Some(arrives) = self.path.links.send(side, takes, self.now, fate) else {
            return self.network.lost_before_link(step, false);
        };
        *self.in_flight += 1;
        let place = around.segments.insert(Carried { segment, connection: self.place });
        let Path { flow, dscp, .. } = *self.path;
        let parcel = Parcel::tcp(flow, step, place, segment.size, segment.ecn, dscp, self.side);
        around.queue.push(arrives, Rank::Arrive, self.place, What::packet(parcel));
    }
}

/// What happens at one port is counted; the places of packets that are lost are given back, and what has left goes on.
struct Gate<'a> {
    port: Port,
    at: &'a mut At,
    around: &'a mut Around,
    connections: &'a mut Connections,
    sink: &'a mut dyn Sink,
}

impl Gate<'_> {
    fn tally(&mut self) -> Tally<'_> {
        Tally { meter: &mut self.at.meter, sink: self.sink, port: self.port, writes_drops: self.around.writes_drops }
    }

    /// When a packet that is behind the last link at `at` has crossed its receiver's access link, and whose it is.
    #[inline]
    fn receive(&mut self, packet: Parcel, at: Time) -> (Time, u32) {
        let takes = self.around.access.time_for(u64::from(packet.size()));
        if !packet.is_udp() {
            let source = self.around.segments.connection(packet.place());
            let own = || self.connections.get(source).path.links.receive(1 - packet.side(), takes, at);
            return (self.at.receivers.receive(source, takes, at, own), source);
        }
        let is_probe = packet.is_probe();
        (if is_probe { self.around.probes.crosses(packet.place(), at, takes) } else { at + takes }, 0)
    }

    /// A packet that is behind the delay of a link at `at` goes to the next port of its route.
    #[inline(never)]
    fn send_on(&mut self, packet: Parcel, at: Time) {
        self.around.queue.push(at, Rank::Arrive, self.source(packet), What::packet(packet));
    }

    /// A packet has waited at `step`, on a network of several links.
    #[cold]
    fn waited(&mut self, step: Step, waited: Span) {
        if self.at.meter.is_measuring() {
            self.around.waits[usize::from(step.number())].add(waited);
        }
    }

    /// Whose a packet is: a connection, or a source.
    fn source(&self, packet: Parcel) -> u32 {
        if packet.is_probe() {
            self.around.probes.source(packet.place())
        } else if packet.is_udp() {
            packet.place()
        } else {
            self.around.segments.connection(packet.place())
        }
    }
}

impl Watch<Parcel> for Gate<'_> {
    #[inline]
    fn offered(&mut self, packet: &Parcel, _now: Time) {
        self.at.meter.offered();
        if packet.is_udp() && self.around.routes.is_first(packet.step()) {
            self.at.meter.udp_offered();
        }
    }

    #[inline]
    fn waiting(&mut self, packets: u32, now: Time) {
        self.at.meter.waiting(packets, now);
    }

    #[inline]
    fn delivered(&mut self, delivery: &Delivery<Parcel>, arrives: Time) {
        let (packet, step) = (delivery.packet, delivery.packet.step());
        self.at.meter.delivered(packet.size(), delivery.waited);
        if !self.around.waits.is_empty() {
            self.waited(step, delivery.waited);
        }
        if let Some(next) = self.around.routes.after(step) {
            return self.send_on(packet.at(next), arrives);
        }
        let (received, source) = self.receive(packet, arrives);
        self.around.queue.push(received, Rank::Deliver, source, What::packet(packet));
    }
}

impl Tap<Parcel> for Gate<'_> {
    #[inline]
    fn accepted(&mut self, _packet: &Parcel, _now: Time) {
        self.at.meter.accepted();
    }

    fn dropped(&mut self, packet: Parcel, cause: Cause, now: Time) {
        self.tally().dropped(&packet, packet.is_udp(), cause, now);
        if packet.is_probe() {
            self.around.probes.lost(packet.place(), self.sink);
        } else if !packet.is_udp() {
            let place = self.around.segments.remove(packet.place()).connection;
            self.connections.get(place).in_flight -= 1;
            self.connections.release(place);
        }
    }

    fn marked(&mut self, packet: &Parcel, cause: Cause, now: Time) {
        self.tally().marked(packet, cause, now);
    }
}

impl Headers<Parcel> for Gate<'_> {
    fn hosts(&self, packet: &Parcel) -> Option<(u32, u32)> {
        let hosts = if packet.is_udp() {
            self.around.hosts[self.source(*packet) as usize]
        } else {
            self.connections.path(self.source(*packet)).hosts
        };
        Some((hosts[packet.side()], hosts[1 - packet.side()]))
    }

    fn ack(&self, packet: &Parcel) -> Option<Ack> {
        if packet.is_udp() {
            return None;
        }
        let Segment { flags, ack, sacks, payload, .. } = self.around.segments.segment(packet.place());
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
