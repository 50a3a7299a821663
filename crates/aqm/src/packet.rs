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
    /// The hosts it comes from and goes to, each by a number of its own. Where they are not known, each flow counts as
    /// one between hosts of its own.
    fn hosts(&self) -> Option<(u32, u32)> {
        None
    }
    /// What it acknowledges, of a TCP segment with the ACK flag and without SYN.
    fn ack(&self) -> Option<Ack> {
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

/// Where a discipline tells what it did. Every loss and every mark comes through here, with its cause.
///
/// It is the driver's side of a call, and so may also know what a packet does not carry with it: few disciplines read
/// addresses or acknowledgements, and a driver whose packets are small looks them up for those that do.
pub trait Tap<P> {
    /// `packet` was accepted into the queue at `now`.
    fn accepted(&mut self, packet: &P, now: Time) {
        let _ = (packet, now);
    }
    /// `packet` was lost at `now`; it is handed over for good.
    fn dropped(&mut self, packet: P, cause: Cause, now: Time);
    /// `packet` was marked at `now`.
    fn marked(&mut self, packet: &P, cause: Cause, now: Time);
    /// The hosts of `packet`, see [`Packet::hosts`].
    fn hosts(&self, packet: &P) -> Option<(u32, u32)>
    where
        P: Packet,
    {
        packet.hosts()
    }
    /// What `packet` acknowledges, see [`Packet::ack`]. Also asked of packets that wait.
    fn ack(&self, packet: &P) -> Option<Ack>
    where
        P: Packet,
    {
        packet.ack()
    }
}
