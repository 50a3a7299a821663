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
}

impl Cause {
    /// Every cause, in the order of its number.
    pub const ALL: [Self; 4] = [Self::Tail, Self::Early, Self::Forced, Self::Overload];

    /// The word used in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Overload => "overload",
        }
    }
}

/// Where a discipline tells what it did. Every loss and every mark comes through here, with its cause.
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
