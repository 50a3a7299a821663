//! This file has packets on their way, in two parts. A [`Parcel`] is what a router sees; it moves with events and
//! through links. The segment that it carries waits in a slab ([`Segments`]) for the host that it reaches.

use aqm::Packet;
use base::{Ecn, FlowKey, fetch};
use net::Step;
use tcp::{Flags, SackBlocks, Segment};

/// A packet as its events and the bottleneck hold it: two words, which move in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parcel {
    /// The flow that routers see; above it, from bit [`STEP_AT`] up, the packet's step on its route.
    flow: u64,
    /// From the least significant bit up: [`Parcel::place`], size, ECN field, whether it is a probe, side, whether it
    /// is a packet of UDP, codepoint; whether it is of media.
    bits: u64,
}

/// The bit at which the step begins. Connections have numbers below it; flows of unresponsive sources also have the
/// topmost bit.
const STEP_AT: u32 = 48;
const STEPS: u64 = ((1 << Step::BITS) - 1) << STEP_AT;
const SIZE_AT: u32 = 32;
const ECN_AT: u32 = 48;
const PROBE_AT: u32 = 50;
const MEDIA_AT: u32 = 51;
const SIDE_AT: u32 = 56;
const UDP_AT: u32 = 57;
const DSCP_AT: u32 = 58;

impl Parcel {
    /// A connection's packet sent by `side`, 0 forward and 1 in reverse, before the first `step` of its route.
    #[inline]
    pub fn tcp(flow: FlowKey, step: Step, place: u32, size: u16, ecn: Ecn, dscp: u8, side: u8) -> Self {
        let bits = u64::from(place) | u64::from(size) << SIZE_AT | (ecn as u64) << ECN_AT | u64::from(side) << SIDE_AT;
        Self { flow: flow.0 | u64::from(step.number()) << STEP_AT, bits: bits | u64::from(dscp) << DSCP_AT }
    }

    /// The packet's step on its route.
    #[inline]
    pub const fn step(self) -> Step {
        Step::from_number(((self.flow & STEPS) >> STEP_AT) as u16)
    }

    /// This packet at another step.
    #[inline]
    #[must_use]
    pub const fn at(self, step: Step) -> Self {
        Self { flow: self.flow & !STEPS | (step.number() as u64) << STEP_AT, ..self }
    }

    /// A packet of the unresponsive source `source` on `side`.
    pub fn udp(flow: FlowKey, step: Step, source: u32, size: u16, ecn: Ecn, dscp: u8, side: u8) -> Self {
        let tcp = Self::tcp(flow, step, source, size, ecn, dscp, side);
        Self { bits: tcp.bits | 1 << UDP_AT, ..tcp }
    }

    /// A packet of a source of probes; `place` is its place among the probes.
    pub fn probe(flow: FlowKey, step: Step, place: u32, size: u16, ecn: Ecn, dscp: u8, side: u8) -> Self {
        let udp = Self::udp(flow, step, place, size, ecn, dscp, side);
        Self { bits: udp.bits | 1 << PROBE_AT, ..udp }
    }

    /// A packet of media, or a report of them; `place` is its place among these.
    pub fn media(flow: FlowKey, step: Step, place: u32, size: u16, ecn: Ecn, dscp: u8, side: u8) -> Self {
        let udp = Self::udp(flow, step, place, size, ecn, dscp, side);
        Self { bits: udp.bits | 1 << MEDIA_AT, ..udp }
    }

    /// The place of its segment. For an unresponsive packet this is its source, for a probe or media its place among
    /// these.
    #[inline]
    pub const fn place(self) -> u32 {
        self.bits as u32
    }

    /// The side that sent it, which is also its direction.
    #[inline]
    pub const fn side(self) -> usize {
        (self.bits >> SIDE_AT & 1) as usize
    }

    /// Whether it is a packet of UDP: of an unresponsive source, or of media.
    #[inline]
    pub const fn is_udp(self) -> bool {
        self.bits >> UDP_AT & 1 != 0
    }

    /// Whether it is of media, which go over UDP.
    #[inline]
    pub const fn is_media(self) -> bool {
        self.bits >> MEDIA_AT & 1 != 0
    }

    /// Whether it is a probe, which also comes from an unresponsive source.
    #[inline]
    pub const fn is_probe(self) -> bool {
        self.bits >> PROBE_AT & 1 != 0
    }
}

impl Packet for Parcel {
    #[inline]
    fn size(&self) -> u32 {
        u32::from((self.bits >> SIZE_AT) as u16)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        match self.bits >> ECN_AT & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
    #[inline]
    fn mark(&mut self) {
        self.bits |= (Ecn::Ce as u64) << ECN_AT;
    }
    #[inline]
    fn flow(&self) -> FlowKey {
        FlowKey(self.flow & !STEPS)
    }
    #[inline]
    fn dscp(&self) -> u8 {
        (self.bits >> DSCP_AT) as u8
    }
}

/// The content of an event, beside its source. Every kind of event has two words, as many as a packet takes, and the
/// event's rank says how to read them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct What(u64, u64);

impl What {
    /// Nothing but the event's source.
    pub const SOURCE: Self = Self(0, 0);

    /// A packet that was lost.
    #[inline]
    pub const fn packet(packet: Parcel) -> Self {
        Self(packet.flow, packet.bits)
    }

    /// An end of the connection that is the event's source, for wake-ups.
    #[inline]
    pub const fn end(end: usize) -> Self {
        Self(end as u64, 0)
    }

    /// An end of the flow of media that is the event's source, for wake-ups.
    #[inline]
    pub const fn end_of_media(end: usize) -> Self {
        Self(end as u64, 1)
    }

    /// Whether [`What::end_of_media`] made it.
    #[inline]
    pub const fn is_of_media(self) -> bool {
        self.1 != 0
    }

    /// The packet that [`What::packet`] put in.
    #[inline]
    pub const fn as_packet(self) -> Parcel {
        Parcel { flow: self.0, bits: self.1 }
    }

    /// The end that [`What::end`] or [`What::end_of_media`] put in.
    #[inline]
    pub const fn as_end(self) -> usize {
        self.0 as usize
    }
}

/// A segment on its way, without its reports. It takes half a cache line, as it is written when it is sent and read
/// when it arrives, with many other packets in between.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Bare {
    seq: u64,
    ack: u64,
    window: u32,
    stamp: u16,
    echo: u16,
    payload: u16,
    size: u16,
    flags: Flags,
    ecn: Ecn,
    /// Whether it has reports, which lie by themselves: few segments have any.
    has_reports: bool,
}

const _: () = assert!(size_of::<Bare>() == 32, "a segment without reports takes half a line");

/// So many segments take a quarter of a second-level cache of 1 MB, and half of it with reports.
const MANY: usize = 8192;

/// The segments on their way, each at a place of its own.
#[derive(Default)]
pub struct Segments {
    bare: Vec<Bare>,
    /// The reports of each that has any; what lies at other places is not read.
    reports: Vec<SackBlocks>,
    /// The connection of each. Links ask for it, which do not touch the segment.
    connections: Vec<u32>,
    free: Vec<u32>,
}

impl Segments {
    /// Keeps a segment of a connection; returns its place.
    #[inline(always)]
    pub fn insert(&mut self, segment: Segment, connection: u32) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| self.grow());
        let Segment { seq, ack, sacks, window, stamp, echo, payload, size, flags, ecn } = segment;
        let has_reports = !sacks.is_bare();
        if has_reports {
            self.reports[place as usize] = sacks;
        }
        self.bare[place as usize] = Bare { seq, ack, window, stamp, echo, payload, size, flags, ecn, has_reports };
        self.connections[place as usize] = connection;
        place
    }

    /// Makes a place, since none is free.
    #[cold]
    fn grow(&mut self) -> u32 {
        self.bare.push(Bare::default());
        self.reports.push(SackBlocks::default());
        self.connections.push(0);
        // Reserved now, so that giving places back never allocates.
        self.free.reserve(self.bare.len());
        self.bare.len() as u32 - 1
    }

    /// The connection of the segment at `place`.
    #[inline]
    pub fn connection(&self, place: u32) -> u32 {
        self.connections[place as usize]
    }

    /// Whether there were more of them at some time than a cache holds beside all else.
    #[inline]
    pub fn are_many(&self) -> bool {
        self.bare.len() >= MANY
    }

    /// Asks for the segment at `place`.
    #[inline(always)]
    pub fn fetch(&self, place: u32) {
        fetch(&self.bare[place as usize]);
    }

    /// The segment at `place`.
    #[inline(always)]
    pub fn segment(&self, place: u32) -> Segment {
        let Bare { seq, ack, window, stamp, echo, payload, size, flags, ecn, has_reports } = self.bare[place as usize];
        let sacks = if has_reports { self.reports[place as usize] } else { SackBlocks::default() };
        Segment { seq, ack, sacks, window, stamp, echo, payload, size, flags, ecn }
    }

    /// Takes out the segment at `place`, and frees the place.
    #[inline]
    pub fn remove(&mut self, place: u32) -> Segment {
        self.free.push(place);
        self.segment(place)
    }

    /// How many are on their way.
    pub fn len(&self) -> usize {
        self.bare.len() - self.free.len()
    }
}
