//! What happens to packets between one device and the other: [`net`], with a router's packets. The two TUN devices are
//! the ends of a wire: the time to live is as it was.
//!
//! It is told what time it is and says when something happens next. What is due is done in the order of its own times,
//! however late it is asked, so that a router that comes late bends neither the link nor the law, only the instant at
//! which a packet is handed over.

use crate::capture::Capture;
use crate::flows::Flows;
use crate::frame::Frame;
use crate::gate::Gate;
use crate::kernel_qdisc::{self, Passage, Statistics};
use crate::paths::Announced;
use crate::pool::Pool;
use crate::wire::{self, Malformed};
use aqm::{Backlog, Counts, Delivery, Gauges, Packet};
use base::{Ecn, Rate, Span, Time};
use net::{Bottleneck, Towards, Underway, Watch};
use record::{Edge, Meter, Sink, Tally, Window};
use scenario::{Impairments, Scenario};
use std::borrow::Cow;

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
    /// What the bottleneck took to send it, if it sent it right after another packet; zero if it had been idle.
    pub behind: Span,
    /// Whether it is not there yet, but due at a bottleneck that is the kernel's, [`Network::enter_kernel`].
    pub is_for_kernel: bool,
    frame: Frame,
}

/// Everything between the two devices.
pub struct Network {
    pool: Pool,
    flows: Flows,
    access: Rate,
    /// What the path does to packets before the bottleneck, if anything.
    impairments: Option<Impairments>,
    bottleneck: Bottleneck<Frame>,
    /// Whether a trace stands for the rate of each side.
    is_traced: [bool; 2],
    /// What stands in for the egresses, where the kernel's own disciplines do.
    passages: Option<[Passage; 2]>,
    overhead: u32,
    meters: [Meter; 2],
    window: Window,
    /// Whether losses and marks are written down.
    writes_drops: bool,
    sent: [Sent; 2],
    /// Packets on their way to the bottleneck, and from there to their hosts.
    underway: Underway<Moving>,
    /// What was read, by side; what of it was no packet, and what found no buffer.
    counts: [Ingress; 2],
    /// Packets that have arrived and whose place was not yet given back.
    leaving: usize,
    capture: Option<Capture>,
}

/// What the bottleneck of one direction has sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    /// When the last packet left.
    at: Time,
    /// How long it had waited.
    waited: Span,
    /// IP bytes since the start.
    bytes: u64,
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

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Moving {
    frame: Frame,
    /// Of one that goes to its host: [`Leaving::behind`].
    behind_ns: u32,
}

/// The gate of the bottleneck of a side: of the fields, since the bottleneck itself is called with it.
macro_rules! gate {
    ($network:ident, $side:expr, $sink:expr) => {
        Gate {
            tally: Tally {
                meter: &mut $network.meters[$side],
                sink: $sink,
                direction: $side as u8,
                writes_drops: $network.writes_drops,
            },
            pool: &mut $network.pool,
            capture: &mut $network.capture,
        }
    };
}

impl Network {
    /// The network of `scenario`, idle. Of the scenario all but the traffic counts; the disciplines draw from the
    /// streams that they draw from in the simulator.
    pub fn new(scenario: &Scenario, announced: Announced) -> Self {
        let link = &scenario.link;
        Self {
            pool: Pool::default(),
            flows: Flows::new(scenario.path.rtt.clone(), scenario.seed, announced),
            access: scenario.path.access_rate,
            impairments: Impairments::of(scenario),
            bottleneck: Bottleneck::new([0, 1].map(|side| link.egress(side, scenario.seed))),
            is_traced: [0, 1].map(|side| link.traces[side].is_some()),
            passages: None,
            overhead: link.overhead,
            meters: [Meter::new(), Meter::new()],
            window: Window::new(scenario.edges(), scenario.record.interval),
            writes_drops: scenario.record.drops,
            sent: [Sent::default(); 2],
            underway: Underway::with_capacity(1 << 14),
            counts: [Ingress::default(); 2],
            leaving: 0,
            capture: None,
        }
    }

    /// Lets packets go through the kernel's disciplines instead of ours: as the network says what is due there
    /// ([`Leaving::is_for_kernel`]), as it is told what came out ([`Network::leave_kernel`]) and of the kernel's counts
    /// ([`Network::tell`]).
    pub fn through_kernel(&mut self, passages: [Passage; 2]) {
        self.passages = Some(passages);
    }

    /// Writes down what comes to the queue and what leaves it, from now on.
    pub fn capture(&mut self, capture: Capture) {
        self.capture = Some(capture);
    }

    /// Nothing is captured any more: what [`Network::capture`] was given, for its [`Capture::end`]; `None` without it.
    pub fn take_capture(&mut self) -> Option<Capture> {
        self.capture.take()
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
        let wire::Header { size, ecn, dscp, flow, is_udp, opens, ends, resets } = header;
        let frame = Frame { flow, place, size, dscp, ecn, side: side as u8, is_udp };
        let flow = self.flows.flow(flow, opens, now);
        if ends {
            flow.end(side, resets);
        }
        let impairments = &mut self.impairments;
        let fate = || impairments.as_mut().map_or(Some(Span::ZERO), |impairments| impairments.fate(side));
        let takes = self.access.time_for(u64::from(frame.size()));
        if let Some(at) = flow.path.send(side, takes, now, fate) {
            self.underway.push(at, Towards::Bottleneck(side), Moving { frame, behind_ns: 0 });
        } else {
            self.counts[side].lost += 1;
            self.meters[side].lost_before_link(is_udp);
            self.pool.give_back(place);
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

    /// A packet that left the bottleneck at `left_at` goes to its host.
    fn send_to_host(&mut self, frame: Frame, left_at: Time, behind_ns: u32) {
        let takes = self.access.time_for(u64::from(frame.size()));
        let path = &mut self.flows.flow(frame.flow, false, left_at).path;
        let received = path.receive(1 - usize::from(frame.side), takes, left_at);
        self.underway.push(received, Towards::Host, Moving { frame, behind_ns });
    }

    /// When something happens next.
    #[inline]
    pub fn next_event(&self) -> Time {
        let arrives = self.underway.next().map_or(Time::NEVER, |(at, _)| at);
        arrives.min(self.link_event().0).min(self.window.next())
    }

    /// When the network must be called next so that nothing is handed over later than by `slack`. What else is due
    /// before a hand-over can wait, since it is done in the order of its own times. While the bottleneck sends a
    /// packet, the next one of its direction to be handed over is that one, once it has crossed the access link, or the
    /// smallest that there is right behind it.
    #[inline]
    pub fn due(&self, slack: Span) -> Time {
        if self.passages.is_some() {
            return self.next_event();
        }
        let egress = self.bottleneck.egress();
        let side = |side: usize| match egress[side].sending() {
            Some((frame, until)) => {
                let takes = |size: u32| self.access.time_for(u64::from(size));
                let rate = egress[side].rate();
                // Of a trace several packets may pass at one opportunity.
                let link = if self.is_traced[side] {
                    Span::ZERO
                } else {
                    rate.time_for(u64::from(wire::SMALLEST + self.overhead))
                };
                until + takes(frame.size()).min((link + takes(wire::SMALLEST)).max(slack))
            }
            None => self.underway.first(Towards::Bottleneck(side)).min(egress[side].next_event()),
        };
        self.underway.first(Towards::Host).min(side(0)).min(side(1))
    }

    /// When something happens at the bottleneck of its own accord, and on which side; never, where it is the kernel's.
    #[inline]
    fn link_event(&self) -> (Time, usize) {
        if self.passages.is_some() { (Time::NEVER, 0) } else { self.bottleneck.next_event() }
    }

    /// Does what is due at or before `now` until a packet has arrived, and returns that; call until it returns `None`.
    #[inline]
    pub fn advance(&mut self, now: Time, sink: &mut dyn Sink) -> Option<Leaving> {
        loop {
            let (link, side) = self.link_event();
            let next = self.underway.next();
            let pending = next.map_or(Time::NEVER, |(at, _)| at).min(self.window.next());
            let at = link.min(pending);
            if at > now {
                return None;
            }
            if net::link_goes_first(link, pending) {
                self.advance_egress(side, at, sink);
                continue;
            }
            let Some((_, towards)) = next.filter(|&(arrives, _)| arrives == at) else {
                self.pass_edge(sink);
                continue;
            };
            let Moving { frame, behind_ns } = self.underway.pop(towards).expect("it has the next event");
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

    /// What waits at the bottleneck of `side`, and the state of its law.
    fn look(&self, side: usize) -> (Backlog, Gauges) {
        match &self.passages {
            Some(passages) => (passages[side].backlog(), passages[side].gauges()),
            None => {
                let egress = &self.bottleneck.egress()[side];
                (egress.backlog(), egress.gauges())
            }
        }
    }

    /// The run ends at `now`, earlier than it was to.
    pub fn cut(&mut self, now: Time, sink: &mut dyn Sink) {
        if let Some(edge) = self.window.cut(now) {
            self.record(edge, sink);
        }
    }

    /// The measured window begins or ends, or an interval does.
    #[cold]
    fn pass_edge(&mut self, sink: &mut dyn Sink) {
        let edge = self.window.pass();
        self.record(edge, sink);
    }

    fn record(&mut self, edge: Edge, sink: &mut dyn Sink) {
        let Edge { at, starts, stops, has_row, .. } = edge;
        let seen = [self.look(0), self.look(1)];
        for (direction, (meter, (backlog, gauges))) in self.meters.iter_mut().zip(seen).enumerate() {
            if starts {
                meter.start(at);
            }
            if stops {
                meter.stop(at);
            }
            if has_row {
                sink.queue(&meter.take_interval(at, direction as u8, backlog, gauges));
            }
        }
    }

    fn offer(&mut self, frame: Frame, now: Time, sink: &mut dyn Sink) {
        let side = usize::from(frame.side);
        if let Some(passages) = &mut self.passages {
            passages[side].go_past();
            return self.send_to_host(frame, now, 0);
        }
        let mut gate = gate!(self, side, sink);
        self.bottleneck.offer(side, frame, now, &mut gate);
    }

    fn advance_egress(&mut self, side: usize, now: Time, sink: &mut dyn Sink) {
        let mut gate = gate!(self, side, sink);
        if let Some(delivery) = self.bottleneck.advance(side, now, &mut gate) {
            self.delivered(side, &delivery);
        }
    }

    /// A packet has left the bottleneck of `side`.
    fn delivered(&mut self, side: usize, delivery: &Delivery<Frame>) {
        let behind_ns = self.sends(side, delivery.packet.size(), delivery.at, delivery.waited);
        self.send_to_host(delivery.packet, delivery.at, behind_ns);
    }

    /// Whether a packet that is due at a bottleneck is the kernel's to take. What the kernel would not forward goes
    /// past it: on the link there is nobody else to take it.
    #[inline]
    fn is_for_kernel(&self, frame: &Frame) -> bool {
        self.passages.is_some() && {
            let bytes = &self.pool.buffer(frame.place)[..usize::from(frame.size)];
            kernel_qdisc::is_forwarded(bytes, frame.side)
        }
    }

    /// The bytes of a packet as the kernel is to have it.
    pub fn bytes_for_kernel(&self, leaving: &Leaving) -> Cow<'_, [u8]> {
        kernel_qdisc::with_hops(&self.pool.buffer(leaving.frame.place)[..usize::from(leaving.frame.size)])
    }

    /// A packet that was due at a bottleneck has been handed to the kernel at `now`.
    pub fn enter_kernel(&mut self, leaving: Leaving, now: Time) {
        let frame = leaving.frame;
        let side = usize::from(frame.side);
        self.leaving -= 1;
        self.meters[side].offered(frame.is_udp);
        let bytes = &self.pool.buffer(frame.place)[..usize::from(frame.size)];
        if let Some(capture) = &mut self.capture {
            capture.offered(side, bytes, now);
        }
        let passages = self.passages.as_mut().expect("only with them it is for the kernel");
        passages[side].offer(frame, bytes, now);
        self.meters[side].waiting(passages[side].backlog().packets, now);
    }

    /// The kernel has let go of `packet` of the bottleneck of `side` at `now`. What never went in is dropped.
    pub fn leave_kernel(&mut self, packet: &[u8], side: usize, now: Time, sink: &mut dyn Sink) {
        let Some(passages) = &mut self.passages else { return };
        let mut gate = gate!(self, side, sink);
        let delivery = passages[side].release(packet, now, &mut gate);
        gate.waiting(passages[side].backlog().packets, now);
        if let Some(delivery) = delivery {
            gate.delivered(&delivery);
            self.delivered(side, &delivery);
        }
    }

    /// What the kernel says at `now` of the bottleneck of `side`.
    pub fn tell(&mut self, statistics: Statistics, side: usize, now: Time, sink: &mut dyn Sink) {
        let Some(passages) = &mut self.passages else { return };
        let mut gate = gate!(self, side, sink);
        passages[side].tell(statistics, now, &mut gate);
        gate.waiting(passages[side].backlog().packets, now);
    }

    /// The bottlenecks in the kernel, if they are there.
    pub fn passages(&self) -> Option<&[Passage; 2]> {
        self.passages.as_ref()
    }

    /// The bottleneck of `side` has sent a packet: what that took, ns, if it followed another; 0 if there was a gap.
    #[inline]
    fn sends(&mut self, side: usize, size: u32, at: Time, waited: Span) -> u32 {
        let takes = self.rate(side).time_for(u64::from(size + self.overhead));
        let sent = &mut self.sent[side];
        let since = at.since(sent.at);
        // The serializer carries what rounding leaves over: a nanosecond at most.
        let follows = since <= takes + Span::from_ns(1) && !self.is_traced[side] && self.passages.is_none();
        *sent = Sent { at, waited, bytes: sent.bytes + u64::from(size) };
        if follows { u32::try_from(since.ns()).unwrap_or(0) } else { 0 }
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
        self.passages
            .as_ref()
            .map_or_else(|| self.bottleneck.egress()[side].counts(), |passages| passages[side].counts())
    }

    /// The meter of the egress of `side`: it counts the measured window.
    pub fn meter(&self, side: usize) -> &Meter {
        &self.meters[side]
    }

    /// How much of the measured window is over.
    pub fn measured(&self, now: Time) -> Span {
        self.window.measured(now)
    }

    /// What waits at the egress of `side`.
    pub fn backlog(&self, side: usize) -> Backlog {
        self.look(side).0
    }

    /// IP bytes that left the bottleneck of `side` since the start, and how long the last packet of them had waited.
    pub fn sent(&self, side: usize) -> (u64, Span) {
        (self.sent[side].bytes, self.sent[side].waited)
    }

    /// The size of a packet that has arrived on the bottleneck's wire, bytes.
    pub fn wire_size(&self, leaving: &Leaving) -> u32 {
        leaving.frame.size() + self.overhead
    }

    /// The rate of the egress of `side`.
    pub fn rate(&self, side: usize) -> Rate {
        self.bottleneck.egress()[side].rate()
    }

    /// How many flows were seen; one that comes back after a long silence counts again.
    pub fn flows(&self) -> u64 {
        self.flows.seen()
    }

    /// How many of these no host had announced, so that their delay was drawn.
    pub fn flows_drawn(&self) -> u64 {
        self.flows.drawn()
    }

    /// How many packets of `side` the network holds: on their way to the bottleneck, in it, and after it.
    pub fn held(&self, side: usize) -> Held {
        let Counts { offered, delivered, .. } = *self.counts(side);
        let is_of_side = |moving: &&Moving| usize::from(moving.frame.side) == side;
        Held {
            before: self.underway.each(Towards::Bottleneck(side)).count() as u64,
            within: offered - delivered - self.counts(side).dropped_total(),
            after: self.underway.each(Towards::Host).filter(is_of_side).count() as u64,
        }
    }

    /// Asserts that no packet was lost unaccounted or made up: at the ways in, in the disciplines, and that every
    /// buffer is somebody's.
    pub fn assert_conserved(&self) {
        let mut held = self.leaving as u64;
        for side in 0..2 {
            self.bottleneck.egress()[side].assert_conserved();
            self.passages.iter().for_each(|passages| passages[side].assert_conserved());
            let Ingress { read, malformed, no_room, lost } = self.counts[side];
            let (offered, Held { before, within, after }) = (self.counts(side).offered, self.held(side));
            assert!(
                read == malformed + no_room + lost + before + offered,
                "packets are conserved: read {read} = malformed {malformed} + no room {no_room} + lost {lost} \
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
