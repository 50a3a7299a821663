//! This file is the network of the simulator: [`net`] with the simulator's packets, and everything that is pending.

use crate::calendar::Calendar;
use crate::connection::{Connections, Path};
use crate::media::Media;
use crate::packets::{Parcel, Segments, What};
use crate::probes::Probes;
use crate::queue::EventQueue;
use crate::row::Row;
use crate::tmix::Conditions;
use aqm::{Ack, Cause, Delivery, Due, Headers, Packet, Tap};
use base::{Ecn, Pace, Rate, Span, Time};
use net::{DelayAt, Hosts, Net, Port, Rank, Receivers, Routes, Step, Watch};
use record::{Meter, Sink, Tally, Waits};
use scenario::{Built, Impairments, Scenario};
use tcp::{Emit, Flags, Segment};

/// An acknowledgement without options: few packets are smaller.
const SMALLEST_BYTES: u64 = 40;

/// Everything between the hosts, and the events that are pending.
pub struct Network {
    /// The links.
    pub net: Net<Parcel, At>,
    /// Everything that lies around the links.
    pub around: Around,
    /// Packets on their way to ports: a calendar for each port, or a single one where there is no lookahead.
    pub arrivals: Vec<Calendar>,
    /// The packets that have left each port within the current window of time.
    left: [Vec<Delivery<Parcel>>; 2],
    /// No packet reaches a link sooner than this after its host sent it, so that each port can be served by itself for
    /// so long. It is zero where ports depend on each other: where packets go on from one link to another, or where
    /// losses of all ports are written down in one order.
    pub lookahead: Span,
    /// Whether anything goes over UDP.
    has_udp: bool,
}

/// The simulator's own data at each port.
pub struct At {
    /// The meter of the port.
    pub meter: Meter,
    /// The access links of receivers behind it.
    receivers: Receivers,
}

/// Everything that lies around the links: routes, packets on their way with what they carry, and pending events.
pub struct Around {
    /// The routes over the links.
    pub routes: Routes,
    /// The first step of each block's packets, by the side that sends.
    pub steps: Vec<[Step; 2]>,
    /// Rate of the access links.
    pub access: Pace,
    /// Whether nothing but its connection's own access link and delay happens to a segment before the links, unless its
    /// connection plays a vector.
    is_plain: bool,
    /// What connections of one host have in common, where they have anything.
    pub shared: Option<Hosts>,
    /// The losses and reordering of the path before the links, if any.
    pub impairments: Option<Impairments>,
    /// Pending events other than packets on their way: timers, demands, losses.
    pub queue: EventQueue<What>,
    /// Packets on their way to hosts.
    pub deliveries: Deliveries,
    /// The segments that packets on their way carry.
    pub segments: Segments,
    /// Probes on their way.
    pub probes: Probes,
    /// Real-time media, and what their packets on their way carry.
    pub media: Media,
    /// The hosts of each source, for sources without connections.
    pub hosts: Vec<[u32; 2]>,
    /// How long packets waited at each step; empty where there is one link.
    pub waits: Vec<Waits>,
    /// Whether losses and marks are written down.
    pub writes_drops: bool,
}

/// Packets on their way to hosts.
pub enum Deliveries {
    /// They leave the links nearly in the order in which they reach their hosts.
    Row(Row),
    /// They meet delays of their own, or queues, behind the links.
    Calendar(Calendar),
}

impl Deliveries {
    /// Adds a packet of `source` that is due at `at`.
    #[inline(always)]
    fn push(&mut self, at: Time, source: u32, packet: Parcel) {
        match self {
            Self::Row(row) => row.push(at, source, packet),
            Self::Calendar(calendar) => calendar.push(at, source, packet),
        }
    }

    /// A time before which nothing is due.
    #[inline]
    pub fn bound(&self) -> Time {
        match self {
            Self::Row(row) => row.first().map_or(Time::NEVER, |due| due.at),
            Self::Calendar(calendar) => calendar.bound(),
        }
    }

    /// When the first packet is due, if that is before `before`.
    #[inline(always)]
    pub fn first_at(&mut self, before: Time) -> Option<Time> {
        let at = match self {
            Self::Row(row) => row.first().map(|due| due.at),
            Self::Calendar(calendar) => calendar.first(before).map(|due| due.at),
        };
        at.filter(|&at| at < before)
    }

    /// The packet that so many others go before, if it is known.
    #[inline(always)]
    pub fn ahead(&self, others: usize) -> Option<&Due<Parcel>> {
        match self {
            Self::Row(row) => row.ahead(others),
            Self::Calendar(calendar) => calendar.ahead(others),
        }
    }

    /// Takes out the first packet, after [`Deliveries::first_at`] has found it.
    #[inline(always)]
    pub fn take(&mut self) -> Option<Due<Parcel>> {
        let due = self.ahead(0).copied();
        match self {
            Self::Row(row) => row.went(),
            Self::Calendar(calendar) => calendar.went(1),
        }
        due
    }
}

impl Network {
    /// The network of `scenario`, idle.
    pub fn new(scenario: &Scenario) -> Self {
        let Built { net, routes, steps } =
            scenario.network(|receivers, framing| At { meter: Meter::new(framing), receivers });
        let [from, to, _] = scenario.edges();
        let fastest = scenario.links.iter().flat_map(|link| link.rates).max().expect("there is a link");
        let around = Around {
            waits: if scenario.has_routes() { vec![Waits::default(); routes.steps()] } else { Vec::new() },
            routes,
            steps,
            access: Pace::new(scenario.path.access_rate),
            is_plain: Impairments::of(scenario).is_none() && !scenario.has_hosts(),
            shared: scenario.has_hosts().then(|| Hosts::new(scenario.seed, scenario.path.hosts_share)),
            impairments: Impairments::of(scenario),
            queue: EventQueue::new(slot_shift(fastest)),
            deliveries: if is_in_order(&net, scenario) {
                Deliveries::Row(Row::default())
            } else {
                Deliveries::Calendar(Calendar::new(day_shift(fastest)))
            },
            segments: Segments::default(),
            probes: Probes::new(from, to),
            media: Media::new(from, to),
            hosts: Vec::new(),
            writes_drops: scenario.record.drops,
        };
        let is_apart = !scenario.has_routes() && !scenario.record.drops;
        // Where a packet takes no time, both links can send in the nanosecond in which both are offered something.
        let takes_time = fastest.time_for(SMALLEST_BYTES) > Span::ZERO;
        let lookahead = if is_apart && takes_time { scenario.shortest_delay() } else { Span::ZERO };
        let calendars = if lookahead > Span::ZERO { net.ports().len() } else { 1 };
        Self {
            net,
            around,
            arrivals: (0..calendars).map(|_| Calendar::new(day_shift(fastest))).collect(),
            left: [Vec::new(), Vec::new()],
            lookahead,
            has_udp: scenario.traffic.iter().any(|traffic| !traffic.workload.carries().speaks_tcp()),
        }
    }

    /// Sends `packet` of `source` on its way, so that it reaches the next port of its route at `at`.
    #[inline]
    pub fn depart(&mut self, at: Time, source: u32, packet: Parcel) {
        let calendar = packet.side() & (self.arrivals.len() - 1);
        self.arrivals[calendar].push(at, source, packet);
    }

    /// A time before which nothing happens at any link, and no packet reaches one.
    #[inline]
    pub fn bound(&self) -> Time {
        self.arrivals.iter().fold(self.net.next_event().0, |first, calendar| first.min(calendar.bound()))
    }

    /// The end of the window of time that begins at `first`, no later than `end`. Packets that hosts send within the
    /// window reach no link before its end. If possible it ends where a day of the calendars does, since adding to an
    /// open day is dear.
    #[inline]
    pub fn window(&self, first: Time, end: Time) -> Time {
        let before = (first + self.lookahead).min(end);
        let day = self.arrivals[0].day_before(before);
        if day > first { day } else { before }
    }

    /// Does everything that happens at the links before `before`, each port by itself. Returns how many events it was.
    pub fn pass(&mut self, before: Time, connections: &mut Connections, sink: &mut dyn Sink) -> u64 {
        let events = [0, 1].map(|index| self.pass_port(Port::at(index), before, connections, sink));
        // Packets go to hosts in the order in which they left, as if the ports had taken turns.
        let Self { net, around, left: [forward, reverse], .. } = self;
        let (mut ahead, mut behind) = (&forward[..], &reverse[..]);
        loop {
            let first = |left: &[Delivery<Parcel>]| left.first().map_or(Time::NEVER, |delivery| delivery.at);
            let is_forward = first(ahead) <= first(behind);
            let from = if is_forward { &mut ahead } else { &mut behind };
            let Some((delivery, rest)) = from.split_first() else { break };
            *from = rest;
            let port = Port::at(usize::from(!is_forward));
            let arrives = net.pass(port, delivery.at);
            around.send_to_host(&mut net.own(port).receivers, delivery.packet, arrives, connections);
        }
        forward.clear();
        reverse.clear();
        events.iter().sum()
    }

    fn pass_port(&mut self, port: Port, before: Time, connections: &mut Connections, sink: &mut dyn Sink) -> u64 {
        let Self { net, around, arrivals, left, has_udp, .. } = self;
        let (calendar, left) = (&mut arrivals[port.index()], &mut left[port.index()]);
        if calendar.bound() >= before && net.egress(port).next_event() >= before {
            return 0;
        }
        let ticks = net.egress(port).ticks();
        let mut events = 0;
        loop {
            let (due, bound) = calendar.due(before);
            let came =
                net.serve(port, due, bound, left, |at| Gate { port, at, around, onward: None, connections, sink });
            let udp = if *has_udp { due[..came].iter().filter(|due| due.packet.is_udp()).count() } else { 0 };
            net.own(port).meter.offered_all(came as u32, udp as u32);
            calendar.went(came);
            events += came as u64;
            if bound >= before {
                break;
            }
        }
        net.own(port).meter.delivered_all(left.iter().map(|delivery| (delivery.packet.size(), delivery.waited)));
        events + left.len() as u64 + (net.egress(port).ticks() - ticks)
    }

    /// Lets a packet reach the next port of its route.
    #[inline]
    pub fn arrive(&mut self, packet: Parcel, connections: &mut Connections, now: Time, sink: &mut dyn Sink) {
        let Self { net, around, .. } = self;
        let port = around.routes.port(packet.step());
        net.offer(port, packet, now, |at| Gate { port, at, around, onward: None, connections, sink });
    }

    /// Lets `port` do what is due at `now`: a tick of its law, a change of its link, or the end of a transmission.
    /// Returns how many events it was, as [`Network::pass`] counts them: ticks, and packets that leave.
    pub fn advance(&mut self, port: Port, connections: &mut Connections, now: Time, sink: &mut dyn Sink) -> u64 {
        let Self { net, around, arrivals, .. } = self;
        let ticks = net.egress(port).ticks();
        let has_left =
            net.advance(port, now, |at| Gate { port, at, around, onward: arrivals.first_mut(), connections, sink });
        u64::from(has_left) + (net.egress(port).ticks() - ticks)
    }

    /// Counts a packet that was lost before the first link of its route, which begins with `step`.
    pub fn lost_before_link(&mut self, step: Step, is_udp: bool) {
        self.net.own(self.around.routes.port(step)).meter.lost_before_link(is_udp);
    }
}

impl Around {
    /// Sends a packet over its receiver's access link. At `at` it is behind the last link of its route and its delay.
    #[inline(always)]
    fn send_to_host(&mut self, receivers: &mut Receivers, packet: Parcel, at: Time, connections: &mut Connections) {
        let takes = self.access.time_for(packet.size());
        let (received, source) = if !packet.is_udp() {
            let source = self.segments.connection(packet.place());
            let shared = self.shared.as_mut();
            let own = || receive_where_packets_pile_up(&mut connections.get(source).path, shared, packet, takes, at);
            (receivers.receive(source, takes, at, own), source)
        } else if packet.is_probe() {
            (self.probes.crosses(packet.place(), at, takes), 0)
        } else if packet.is_media() {
            (self.media.crosses(packet.place(), packet.side(), at, takes), 0)
        } else {
            (at + takes, 0)
        };
        self.deliveries.push(received, source, packet);
    }
}

/// When `packet` has crossed the access link of its receiver: its connection's own, or one that a host's connections
/// share.
#[inline(never)]
fn receive_where_packets_pile_up(
    path: &mut Path,
    shared: Option<&mut Hosts>,
    packet: Parcel,
    takes: Span,
    at: Time,
) -> Time {
    let (side, host) = (1 - packet.side(), path.hosts[1 - packet.side()]);
    match shared {
        None => path.links.receive(side, takes, at),
        Some(hosts) => hosts.receive(host, (&mut path.links, side), takes, at),
    }
}

/// The width of a slot of the event queue, which should hold no more than a few dozen events: about 32 full packets'
/// time on the link, from 1 us to 4 ms, as a power of two of nanoseconds.
fn slot_shift(rate: Rate) -> u32 {
    rate.time_for(32 * 1500).ns().max(1).ilog2().clamp(10, 22)
}

/// The length of a calendar's day, which should hold a packet or two: half a full packet's time on the link, as a power
/// of two of nanoseconds. It is 8 us at least, so that the calendar reaches over most delays.
fn day_shift(rate: Rate) -> u32 {
    rate.time_for(1500).ns().max(1).ilog2().saturating_sub(1).clamp(13, 24)
}

/// Whether packets that leave the links one after the other reach their hosts nearly so: they have no delays of their
/// own there, and do not pile up.
fn is_in_order(net: &Net<Parcel, At>, scenario: &Scenario) -> bool {
    let is_before = |delay_at| matches!(delay_at, DelayAt::Senders | DelayAt::Clients);
    !scenario.has_routes()
        && scenario.links.iter().all(|link| link.delays[0] == link.delays[1])
        && scenario.traffic.iter().all(|block| is_before(block.route.delay_at))
        && !net.ports().any(|(_, at)| at.receivers.piles_up())
}

/// Where an endpoint's segments go: onto its access link.
pub struct Sender<'a> {
    /// The network.
    pub network: &'a mut Network,
    /// The connection's path.
    pub path: &'a mut Path,
    /// The connection's packets on their way.
    pub in_flight: &'a mut u32,
    /// The connection's own conditions, if it plays a connection vector.
    pub conditions: Option<&'a mut Conditions>,
    /// The connection.
    pub place: u32,
    /// Which end sends.
    pub side: u8,
    /// Now.
    pub now: Time,
}

impl Sender<'_> {
    /// When a segment reaches the first link where more happens to it than its connection's own access link and delay;
    /// `None` if it is lost.
    fn send_otherwise(&mut self, segment: &mut Segment, takes: Span) -> Option<Time> {
        let (side, now, around) = (self.side, self.now, &mut self.network.around);
        let (conditions, impairments) = (self.conditions.as_deref_mut(), around.impairments.as_mut());
        let fate = || Self::fate(side, segment, conditions, impairments);
        let (side, host) = (usize::from(side), self.path.hosts[usize::from(side)]);
        match &mut around.shared {
            None => self.path.links.send(side, takes, now, fate),
            Some(hosts) => hosts.send(host, (&mut self.path.links, side), (takes, now), fate),
        }
    }

    /// Sends a segment to which more may happen.
    #[inline(never)]
    fn emit_otherwise(&mut self, segment: &Segment) {
        let mut segment = *segment;
        let takes = self.network.around.access.time_for(u32::from(segment.size));
        match self.send_otherwise(&mut segment, takes) {
            Some(arrives) => {
                let place = self.network.around.segments.insert(segment, self.place);
                self.depart(arrives, place, segment.size, segment.ecn);
            }
            None => self.network.lost_before_link(self.path.steps[usize::from(self.side)], false),
        }
    }

    /// Lets the segment at `place` depart, which reaches the first link at `arrives`.
    #[inline]
    fn depart(&mut self, arrives: Time, place: u32, size: u16, ecn: Ecn) {
        *self.in_flight += 1;
        let Path { flow, dscp, steps, .. } = *self.path;
        let parcel = Parcel::tcp(flow, steps[usize::from(self.side)], place, size, ecn, dscp, self.side);
        self.network.depart(arrives, self.place, parcel);
    }

    /// The fate of a segment before the first link: how much later it arrives, or `None` if it is lost.
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
    /// Sends a segment. This is written where it is called from, so that the segment is made where it is kept: to be
    /// copied whole just after it was written part by part, it would have to wait until all of that was done.
    #[inline(always)]
    fn emit(&mut self, segment: Segment) {
        let around = &mut self.network.around;
        if !around.is_plain || self.conditions.is_some() {
            let copy = segment;
            return self.emit_otherwise(&copy);
        }
        let takes = around.access.time_for(u32::from(segment.size));
        let now = self.now;
        if let Some(arrives) = self.path.links.send(usize::from(self.side), takes, now, || Some(Span::ZERO)) {
            let place = around.segments.insert(segment, self.place);
            self.depart(arrives, place, segment.size, segment.ecn);
        }
    }
}

/// The observer of one port. It counts what happens there, frees the places of packets that are lost, and sends packets
/// on that have left.
struct Gate<'a> {
    port: Port,
    at: &'a mut At,
    around: &'a mut Around,
    /// The calendar of packets that go on to another link.
    onward: Option<&'a mut Calendar>,
    connections: &'a mut Connections,
    sink: &'a mut dyn Sink,
}

impl Gate<'_> {
    fn tally(&mut self) -> Tally<'_> {
        Tally { meter: &mut self.at.meter, sink: self.sink, port: self.port, writes_drops: self.around.writes_drops }
    }

    /// Notes how long a packet has waited at `step`, on a network of several links.
    #[cold]
    fn waited(&mut self, step: Step, waited: Span) {
        if self.at.meter.is_measuring() {
            self.around.waits[usize::from(step.number())].add(waited);
        }
    }

    /// The owner of a packet: a connection, or a source.
    fn source(&self, packet: Parcel) -> u32 {
        if packet.is_probe() {
            self.around.probes.source(packet.place())
        } else if packet.is_media() {
            self.around.media.source(packet.place())
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
    fn delivered(&mut self, delivery: &Delivery<Parcel>, arrives: Time) {
        let (packet, step) = (delivery.packet, delivery.packet.step());
        self.at.meter.delivered(packet.size(), delivery.waited);
        if !self.around.waits.is_empty() {
            self.waited(step, delivery.waited);
        }
        if let Some(next) = self.around.routes.after(step) {
            let source = self.source(packet);
            self.onward.as_mut().expect("packets go on one by one").push(arrives, source, packet.at(next));
        } else {
            self.around.send_to_host(&mut self.at.receivers, packet, arrives, self.connections);
        }
    }
}

impl Tap<Parcel> for Gate<'_> {
    #[inline]
    fn accepted(&mut self, _packet: &Parcel, _now: Time) {
        self.at.meter.accepted();
    }

    fn dropped(&mut self, packet: Parcel, cause: Cause, now: Time) {
        self.tally().dropped(&packet, packet.is_udp(), cause, now);
        // Its owner learns of the loss as an event, in the order of all that happens at hosts.
        if !packet.is_udp() || packet.is_probe() || packet.is_media() {
            self.around.queue.push(now, Rank::Lose, self.port.index() as u32, What::packet(packet));
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
        for (slot, (start, end)) in blocks.iter_mut().zip(sacks.above(ack)) {
            *slot = (start as u32, end as u32);
            count += 1;
        }
        let is_pure = payload == 0 && !flags.has(Flags::FIN);
        let echo = flags.ace() as u8;
        Some(Ack { is_pure, echo, number: ack as u32, blocks, count })
    }
}
