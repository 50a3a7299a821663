//! What a discipline sees of a packet, and what it tells of it.

use base::{Ecn, FlowKey, Time};

/// A packet as a router sees it. The simulator's is a few words, the live router's a buffer from the wire.
pub trait Packet {
    /// Size on the link in bytes: the IP packet.
    fn size(&self) -> u32;
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets congestion experienced. Only called where [`Ecn::is_ect`] holds.
    fn mark(&mut self);
    /// The flow it belongs to.
    fn flow(&self) -> FlowKey;
    /// The Differentiated Services codepoint, 0 to 63. Whoever knows none sends everything as best effort.
    fn dscp(&self) -> u8 {
        0
    }
}

/// The headers of packets, for the few disciplines that read more of a packet than it carries with it.
///
/// A driver's packets are a few words, so that queues of them are small. It looks up the rest when it is asked.
pub trait Headers<P> {
    /// The hosts `packet` comes from and goes to, each by a number of its own. Where they are not known, each flow
    /// counts as one between hosts of its own.
    fn hosts(&self, packet: &P) -> Option<(u32, u32)> {
        let _ = packet;
        None
    }
    /// What `packet` acknowledges, of a TCP segment with the ACK flag and without SYN. It may be one that waits.
    fn ack(&self, packet: &P) -> Option<Ack> {
        let _ = packet;
        None
    }
}

/// What a router may read of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ack {
    /// Whether it is nothing else: no data, no flag beside ACK, ECE and CWR, no option but timestamps and SACK.
    pub is_pure: bool,
    /// The ECE and CWR flags, in any fixed way.
    pub echo: u8,
    /// The cumulative acknowledgement, as in the header: it wraps.
    pub number: u32,
    /// The first `count` are the SACK option's blocks, from first to one past the last byte.
    pub blocks: [(u32, u32); 4],
    /// How many blocks there are.
    pub count: u8,
}

/// How much is waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

/// Why a packet was lost or marked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum Cause {
    /// The hard limit of the queue was reached.
    Tail = 0,
    /// The law drew this packet: a random or computed early signal.
    Early = 1,
    /// The law's control variable is past the threshold above which everything is signalled.
    Forced = 2,
    /// The law drops instead of marking although the packet could be marked: congestion is too heavy to mark.
    Overload = 3,
    /// It said nothing that a later packet does not say: an acknowledgement that another one has overtaken.
    Filtered = 4,
}

impl Cause {
    /// Every cause, in the order of its number.
    pub const ALL: [Self; 5] = [Self::Tail, Self::Early, Self::Forced, Self::Overload, Self::Filtered];

    /// The word used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Overload => "overload",
            Self::Filtered => "filtered",
        }
    }
}

/// Where a discipline tells what it did. Every loss and every mark comes through here, with its cause. A tap only
/// observes.
pub trait Tap<P> {
    /// `packet` was accepted into the queue at `now`.
    fn accepted(&mut self, packet: &P, now: Time) {
        let _ = (packet, now);
    }
    /// `packet` was lost at `now`; it is handed over for good.
    fn dropped(&mut self, packet: P, cause: Cause, now: Time);
    /// `packet` was marked at `now`.
    fn marked(&mut self, packet: &P, cause: Cause, now: Time);
}

/// The driver's side of an offer: it observes, and it has the headers of the packets that it offered.
pub trait Driver<P>: Tap<P> + Headers<P> {}

impl<P, D: Tap<P> + Headers<P>> Driver<P> for D {}
