//! A [`Network`] carries packets from one device to the other: it is [`net`] with a router's packets. The two TUN
//! devices are the ends of a wire, so the time to live of a packet stays as it is.
//!
//! It is told what time it is and says when something happens next. What is due is done in the order of its own times,
//! however late it is asked, so that a router that comes late bends neither the link nor the law, only the instant at
//! which a packet is handed over.

use crate::around::{Around, Moving, Sent, Wire};
use crate::capture::Captures;
use crate::flows::{Flows, Ways};
use crate::frame::Frame;
use crate::gate::Gate;
use crate::kernel_qdisc::{self, Passage, Statistics};
use crate::paths::Announced;
use crate::pool::Pool;
use crate::wire::{self, Malformed};
use aqm::{Backlog, Counts, Delivery, Gauges, Packet};
use base::{Ecn, Rate, Span, Time};
use net::{Net, Port, Towards, Underway, Watch};
use record::{Crossing, Edge, Meter, Sink, Waits, Window};
use scenario::{Built, Impairments, Link, Scenario};
use std::borrow::Cow;

/// Why something that was read did not enter the network.
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
    /// How long the link took to send it, if it followed right behind another packet. Zero if the link had been idle,
    /// or if there are several links.
    pub behind: Span,
    /// Whether it has not arrived at its host, but is due at a link that is the kernel's ([`Network::enter_kernel`]).
    pub is_for_kernel: bool,
    frame: Frame,
}

/// Everything between the two devices.
pub struct Network {
    net: Net<Frame, Meter>,
    around: Around,
    /// What the path does to packets before the links, if anything.
    impairments: Option<Impairments>,
    /// The kernel's discipline in the place of each port, where these are used.
    passages: Option<Vec<Passage>>,
    /// The mean rate of the first link within the measured window, bits a second.
    capacity_bps: [f64; 2],
    window: Window,
    /// What came in, by side.
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
    /// Lost on the path, as the scenario has it.
    pub lost: u64,
}

impl Network {
    /// The network of `scenario`, idle. It uses everything of the scenario but its traffic. The disciplines draw from
    /// the same random streams as in the simulator.
    pub fn new(scenario: &Scenario, announced: Announced) -> Self {
        let is_even = |link: &Link, side: usize| link.traces[side].is_none() && link.changes.is_none();
        let has_one_link = !scenario.has_routes();
        let sides = scenario.links.iter().flat_map(|link| [(link, 0), (link, 1)]);
        let Built { net, routes, steps } = scenario.network(|_, framing| Meter::new(framing));
        let delays_at = scenario.traffic.iter().map(|block| block.route.delay_at);
        let ways = Ways { rtt: scenario.path.rtt.clone(), blocks: steps.into_iter().zip(delays_at).collect() };
        let around = Around {
            pool: Pool::default(),
            flows: Flows::new(ways, scenario.seed, announced),
            access: scenario.path.access_rate,
            underway: Underway::with_capacity((1 << 15) / net.ports().len(), net.ports().len()),
            waits: if has_one_link { Vec::new() } else { vec![Waits::default(); routes.steps()] },
            routes,
            ports: sides
                .map(|(link, side)| Wire {
                    rate: link.rates[side],
                    framing: link.framing(),
                    is_even: has_one_link && is_even(link, side),
                })
                .collect(),
            sent: [Sent::default(); 2],
            onward: [0; 2],
            writes_drops: scenario.record.drops,
            captures: Captures::default(),
        };
        Self {
            net,
            around,
            impairments: Impairments::of(scenario),
            passages: None,
            capacity_bps: [0, 1].map(|side| scenario.capacity_bps(scenario.link(), side)),
            window: Window::new(scenario.edges(), scenario.record.interval),
            counts: [Ingress::default(); 2],
            leaving: 0,
        }
    }

    /// Lets packets go through the kernel's disciplines instead of ours, one for each port. From then on the network
    /// says which packets the kernel is to have ([`Leaving::is_for_kernel`]). It has to be told of packets that come
    /// out ([`Network::leave_kernel`]) and of the kernel's counts ([`Network::tell`]).
    ///
    /// # Panics
    /// When there are not as many passages as ports.
    pub fn through_kernel(&mut self, passages: Vec<Passage>) {
        assert_eq!(passages.len(), self.around.ports.len(), "a passage for each port");
        self.passages = Some(passages);
        // Only the kernel knows how long its links take.
        self.around.ports.iter_mut().for_each(|wire| wire.is_even = false);
    }

    /// Begins to capture the packets that come to the queues of `captures` and that leave them.
    pub fn capture(&mut self, captures: Captures) {
        self.around.captures = captures;
    }

    /// Ends all capturing and gives back what [`Network::capture`] was given, for its [`Captures::end`].
    pub fn take_captures(&mut self) -> Captures {
        std::mem::take(&mut self.around.captures)
    }

    /// A place for the next packet; `None` when there is no buffer left.
    #[inline]
    pub fn take(&mut self) -> Option<u32> {
        self.around.pool.take()
    }

    /// The buffer of a place that was taken.
    #[inline]
    pub fn buffer(&mut self, place: u32) -> &mut [u8] {
        self.around.pool.buffer_mut(place)
    }

    /// Gives back a place for which there was no packet.
    #[inline]
    pub fn untake(&mut self, place: u32) {
        self.around.pool.give_back(place);
    }

    /// Counts a packet that was read and for which there was no place.
    pub fn no_room(&mut self, side: usize) {
        self.counts[side].read += 1;
        self.counts[side].no_room += 1;
    }

    /// Takes a packet in: the first `size` bytes at `place`, which came from `side` at `now`. Call it with instants
    /// that never go back.
    ///
    /// # Errors
    /// The bytes are no packet. That is counted, and the place given back.
    #[inline]
    pub fn arrive(&mut self, place: u32, size: usize, side: usize, now: Time) -> Result<(), Malformed> {
        self.counts[side].read += 1;
        let header = wire::parse(&self.around.pool.buffer(place)[..size]).inspect_err(|_| {
            self.counts[side].malformed += 1;
            self.around.pool.give_back(place);
        })?;
        let wire::Header { size, ecn, dscp, flow, is_udp, opens, ends, resets } = header;
        let key = flow;
        let flow = self.around.flows.flow(key, opens, now);
        let step = flow.steps[side];
        let frame = Frame { flow: key, step, place, size, dscp, ecn, side: side as u8, is_udp };
        if ends {
            flow.end(side, resets);
        }
        let impairments = &mut self.impairments;
        let fate = || impairments.as_mut().map_or(Some(Span::ZERO), |impairments| impairments.fate(side));
        let takes = self.around.access.time_for(u64::from(frame.size()));
        if let Some(at) = flow.path.send(side, takes, now, fate) {
            let port = self.around.routes.port(step);
            self.around.underway.push(at, Towards::Link(port), Moving { frame, behind_ns: 0 });
        } else {
            self.counts[side].lost += 1;
            self.net.own(self.around.routes.port(step)).lost_before_link(is_udp);
            self.around.pool.give_back(place);
        }
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

    /// When something happens next.
    #[inline]
    pub fn next_event(&self) -> Time {
        let arrives = self.around.underway.next().map_or(Time::NEVER, |(at, _)| at);
        arrives.min(self.link_event().0).min(self.window.next())
    }

    /// When the network must be called next so that no packet is handed over later than by `slack`. Events before the
    /// next hand-over can wait for it, since they are done in the order of their own times. While a link sends a
    /// packet, the earliest hand-over of its direction is that of this packet, or of the smallest possible one right
    /// behind it.
    #[inline]
    pub fn due(&self, slack: Span) -> Time {
        if self.passages.is_some() {
            return self.next_event();
        }
        let of = |index: usize| match self.net.egress(Port::at(index)).sending() {
            Some((frame, until)) => {
                let takes = |size: u32| self.around.access.time_for(u64::from(size));
                // With a trace several packets may pass at one opportunity, and a link that changes may do anything.
                let Wire { rate, framing, is_even } = self.around.ports[index];
                let link = if is_even { rate.time_for(framing.wire(wire::SMALLEST).into()) } else { Span::ZERO };
                until + takes(frame.size()).min((link + takes(wire::SMALLEST)).max(slack))
            }
            None => self
                .around
                .underway
                .first(Towards::Link(Port::at(index)))
                .min(self.net.egress(Port::at(index)).next_event()),
        };
        (0..self.around.ports.len()).map(of).fold(self.around.underway.first(Towards::Host), Time::min)
    }

    /// When a link needs a call although no packet comes, and at which port. Never where the links are the kernel's.
    #[inline]
    fn link_event(&self) -> (Time, Port) {
        if self.passages.is_some() { (Time::NEVER, Port::at(0)) } else { self.net.next_event() }
    }

    /// Does what is due at or before `now` until a packet has arrived, and returns that packet. Call it until it
    /// returns `None`.
    #[inline]
    pub fn advance(&mut self, now: Time, sink: &mut dyn Sink) -> Option<Leaving> {
        loop {
            let (link, port) = self.link_event();
            let next = self.around.underway.next();
            let pending = next.map_or(Time::NEVER, |(at, _)| at).min(self.window.next());
            let at = link.min(pending);
            if at > now {
                return None;
            }
            if net::link_goes_first(link, pending) {
                self.advance_port(port, at, sink);
                continue;
            }
            let Some((_, towards)) = next.filter(|&(arrives, _)| arrives == at) else {
                self.pass_edge(sink);
                continue;
            };
            let Moving { frame, behind_ns } = self.around.underway.pop(towards).expect("it has the next event");
            let is_delivery = towards == Towards::Host;
            let is_for_kernel = !is_delivery && self.is_for_kernel(&frame);
            if is_delivery || is_for_kernel {
                self.leaving += 1;
                let behind = Span::from_ns(u64::from(behind_ns));
                return Some(Leaving { at, side: 1 - usize::from(frame.side), behind, is_for_kernel, frame });
            }
            self.offer(frame, at, sink);
        }
    }

    /// The backlog at the port of this index, and the state of its law.
    fn look(&self, index: usize) -> (Backlog, Gauges) {
        match &self.passages {
            Some(passages) => (passages[index].backlog(), passages[index].gauges()),
            None => {
                let egress = self.net.egress(Port::at(index));
                (egress.backlog(), egress.gauges())
            }
        }
    }

    /// Ends the run at `now`, earlier than planned.
    pub fn cut(&mut self, now: Time, sink: &mut dyn Sink) {
        if let Some(edge) = self.window.cut(now) {
            self.record(edge, sink);
        }
    }

    /// Takes note of an edge: the measured window begins or ends, or an interval ends.
    #[cold]
    fn pass_edge(&mut self, sink: &mut dyn Sink) {
        let edge = self.window.pass();
        self.record(edge, sink);
    }

    fn record(&mut self, edge: Edge, sink: &mut dyn Sink) {
        let Edge { at, starts, stops, has_row, .. } = edge;
        for port in (0..self.around.ports.len()).map(Port::at) {
            let (backlog, gauges) = self.look(port.index());
            let packet_ns = match &self.passages {
                Some(passages) => passages[port.index()].waiting_packet_ns(at),
                None => self.net.egress(port).waiting_packet_ns(at),
            };
            let meter = self.net.own(port);
            if starts {
                meter.start(packet_ns);
            }
            if stops {
                meter.stop(packet_ns);
            }
            if has_row {
                sink.queue(&meter.take_interval(at, port, backlog, gauges));
            }
        }
    }

    fn offer(&mut self, frame: Frame, now: Time, sink: &mut dyn Sink) {
        let Self { net, around, .. } = self;
        let port = around.routes.port(frame.step);
        if let Some(passages) = &mut self.passages {
            passages[port.index()].go_past();
            let arrives = net.pass(port, now);
            return around.go_on(&Delivery { packet: frame, at: now, waited: Span::ZERO }, arrives);
        }
        net.offer(port, frame, now, |meter| Gate { port, meter, around, sink });
    }

    fn advance_port(&mut self, port: Port, now: Time, sink: &mut dyn Sink) {
        let Self { net, around, .. } = self;
        net.advance(port, now, |meter| Gate { port, meter, around, sink });
    }

    /// Whether the kernel is to take a packet that is due at a link. A packet that the kernel would not forward goes
    /// past it.
    #[inline]
    fn is_for_kernel(&self, frame: &Frame) -> bool {
        self.passages.is_some() && {
            let bytes = &self.around.pool.buffer(frame.place)[..usize::from(frame.size)];
            kernel_qdisc::is_forwarded(bytes, frame.side)
        }
    }

    /// The port at which a packet for the kernel is due.
    pub fn port_of(&self, leaving: &Leaving) -> usize {
        self.around.routes.port(leaving.frame.step).index()
    }

    /// The bytes of a packet for the kernel, with the ECN field that the link before it left.
    pub fn bytes_for_kernel(&mut self, leaving: &Leaving) -> Cow<'_, [u8]> {
        kernel_qdisc::with_hops(self.bytes(leaving))
    }

    /// Notes that a packet due at a link has been handed to the kernel at `now`.
    pub fn enter_kernel(&mut self, leaving: Leaving, now: Time) {
        let frame = leaving.frame;
        let port = self.around.routes.port(frame.step);
        self.leaving -= 1;
        let passages = self.passages.as_mut().expect("only with them it is for the kernel");
        let passage = &mut passages[port.index()];
        let meter = self.net.own(port);
        meter.offered();
        if frame.is_udp && self.around.routes.is_first(frame.step) {
            meter.udp_offered();
        }
        let bytes = &self.around.pool.buffer(frame.place)[..usize::from(frame.size)];
        if let Some(capture) = self.around.captures.at(port) {
            capture.offered(usize::from(frame.side), bytes, frame.ecn, now);
        }
        passage.offer(frame, bytes, now);
    }

    /// Takes `packet`, which the kernel has let go of at `now` at the port of index `at`. A packet that never went in
    /// is dropped.
    pub fn leave_kernel(&mut self, packet: &[u8], at: usize, now: Time, sink: &mut dyn Sink) {
        let Some(passages) = &mut self.passages else { return };
        let port = Port::at(at);
        let mut gate = Gate { port, meter: self.net.own(port), around: &mut self.around, sink };
        let delivery = passages[at].release(packet, now, &mut gate);
        if let Some(delivery) = delivery {
            let arrives = self.net.pass(port, delivery.at);
            let mut gate = Gate { port, meter: self.net.own(port), around: &mut self.around, sink };
            gate.delivered(&delivery, arrives);
        }
    }

    /// Takes the counts that the kernel gives at `now` for the port of index `at`.
    pub fn tell(&mut self, statistics: Statistics, at: usize, now: Time, sink: &mut dyn Sink) {
        let Some(passages) = &mut self.passages else { return };
        let port = Port::at(at);
        let mut gate = Gate { port, meter: self.net.own(port), around: &mut self.around, sink };
        passages[at].tell(statistics, now, &mut gate);
    }

    /// The kernel's links in the order of the ports, if they are there.
    pub fn passages(&self) -> Option<&[Passage]> {
        self.passages.as_deref()
    }

    /// The bytes of a packet that has arrived, its ECN field as the discipline left it.
    #[inline]
    pub fn bytes(&mut self, leaving: &Leaving) -> &[u8] {
        let Frame { place, size, ecn, .. } = leaving.frame;
        let packet = &mut self.around.pool.buffer_mut(place)[..usize::from(size)];
        if ecn == Ecn::Ce {
            wire::set_ecn(packet, ecn);
        }
        packet
    }

    /// Gives back the place of a packet that has left.
    #[inline]
    pub fn give_back(&mut self, leaving: Leaving) {
        self.leaving -= 1;
        self.around.pool.give_back(leaving.frame.place);
    }

    /// What came in on `side`.
    pub fn ingress(&self, side: usize) -> Ingress {
        self.counts[side]
    }

    /// What went through the links of direction `side`: offered to the first of a route, delivered by the last, lost or
    /// marked at any.
    pub fn counts(&self, side: usize) -> Counts {
        let mut sum = Counts::default();
        for (index, (egress, _)) in self.net.ports().enumerate().skip(side).step_by(2) {
            sum.add(self.passages.as_ref().map_or(egress.counts(), |passages| passages[index].counts()));
        }
        let onward = self.around.onward[side];
        sum.offered -= onward - self.going_onward(side);
        sum.delivered -= onward;
        sum
    }

    fn towards_links(&self, side: usize) -> impl Iterator<Item = Towards> {
        (side..self.around.ports.len()).step_by(2).map(|index| Towards::Link(Port::at(index)))
    }

    /// Packets of `side` that have left a link and are not yet at the next.
    fn going_onward(&self, side: usize) -> u64 {
        let routes = &self.around.routes;
        let is_going = |moving: &&Moving| !routes.is_first(moving.frame.step);
        self.towards_links(side).map(|port| self.around.underway.each(port).filter(is_going).count() as u64).sum()
    }

    /// The meters of all ports: they count the measured window.
    pub fn meters(&self) -> Vec<Meter> {
        self.net.ports().map(|(_, meter)| meter.clone()).collect()
    }

    /// How long packets of each block waited at each link of their routes; empty where there is one link.
    pub fn crossings(&self) -> Vec<Crossing> {
        Crossing::all(self.around.flows.steps(), &self.around.routes, &self.around.waits)
    }

    /// How much of the measured window is over.
    pub fn measured(&self, now: Time) -> Span {
        self.window.measured(now)
    }

    /// Packets that wait at the links of direction `side`.
    pub fn waiting(&self, side: usize) -> u64 {
        (side..self.around.ports.len()).step_by(2).map(|index| u64::from(self.look(index).0.packets)).sum()
    }

    /// IP bytes that left the last link of their routes in direction `side` since the start, and how long the last of
    /// these packets had waited there.
    pub fn sent(&self, side: usize) -> (u64, Span) {
        let Sent { bytes, waited, .. } = self.around.sent[side];
        (bytes, waited)
    }

    /// The size of a packet that has arrived on the wire of its last link, bytes.
    pub fn wire_size(&self, leaving: &Leaving) -> u32 {
        let port = self.around.routes.port(leaving.frame.step);
        self.around.ports[port.index()].framing.wire(leaving.frame.size())
    }

    /// The mean rate of direction `side` of the first link within the measured window, bits a second.
    pub const fn capacity_bps(&self, side: usize) -> f64 {
        self.capacity_bps[side]
    }

    /// The rate of direction `side` of the first link.
    pub fn rate(&self, side: usize) -> Rate {
        self.net.egress(Port::at(side)).rate()
    }

    /// How many flows were seen; one that comes back after a long silence counts again.
    pub fn flows(&self) -> u64 {
        self.around.flows.seen()
    }

    /// How many of these flows no host had announced, so that their delay was drawn.
    pub fn flows_drawn(&self) -> u64 {
        self.around.flows.drawn()
    }

    /// How many packets of `side` the network holds: on their way to the first link, in the links and between them, and
    /// after the last.
    pub fn held(&self, side: usize) -> Held {
        let counts = self.counts(side);
        let Counts { offered, delivered, .. } = counts;
        let is_of_side = |moving: &&Moving| usize::from(moving.frame.side) == side;
        let on_their_way: u64 =
            self.towards_links(side).map(|port| self.around.underway.each(port).count() as u64).sum();
        Held {
            before: on_their_way - self.going_onward(side),
            within: offered - delivered - counts.dropped_total(),
            after: self.around.underway.each(Towards::Host).filter(is_of_side).count() as u64,
        }
    }

    /// Asserts that no packet was lost unaccounted or made up: at the ways in, in the disciplines, and that every
    /// buffer is somebody's.
    pub fn assert_conserved(&self) {
        let mut held = self.leaving as u64;
        self.net.ports().for_each(|(egress, _)| egress.assert_conserved());
        self.passages.iter().flatten().for_each(Passage::assert_conserved);
        for side in 0..2 {
            let Ingress { read, malformed, no_room, lost } = self.counts[side];
            let (offered, Held { before, within, after }) = (self.counts(side).offered, self.held(side));
            assert!(
                read == malformed + no_room + lost + before + offered,
                "packets are conserved: read {read} = malformed {malformed} + no room {no_room} + lost {lost} \
                 + on their way {before} + offered {offered}"
            );
            held += before + within + after;
        }
        assert!(held == self.around.pool.held() as u64, "{held} packets hold {} buffers", self.around.pool.held());
    }
}

/// Where packets are that the network holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// On their way to the first link.
    pub before: u64,
    /// Waiting at a link, in transmission, or between links.
    pub within: u64,
    /// On their way to a host.
    pub after: u64,
}
