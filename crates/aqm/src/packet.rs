//! This file says what a discipline sees of a packet, and what it tells about it.

use crate::cause::Cause;
use base::{Ecn, FlowKey, Time};

/// A packet as a router sees it. The simulator's packet is a few words, the live router's is a few words and a buffer.
pub trait Packet {
    /// Size on the link in bytes: the IP packet.
    fn size(&self) -> u32;
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets congestion experienced. It is called only if [`Ecn::is_ect`] holds.
    fn mark(&mut self);
    /// The flow it belongs to.
    fn flow(&self) -> FlowKey;
    /// The Differentiated Services codepoint, 0 to 63. A driver that knows none sends everything as best effort.
    fn dscp(&self) -> u8 {
        0
    }
}

/// The headers of packets, for the few disciplines that read more of a packet than it carries with it.
///
/// A driver's packets are a few words, so that queues of them are small. It looks up the rest when it is asked.
pub trait Headers<P> {
    /// The hosts that `packet` comes from and goes to, each by a number of its own. If they are not known, each flow
    /// counts as a flow between hosts of its own.
    fn hosts(&self, packet: &P) -> Option<(u32, u32)> {
        let _ = packet;
        None
    }
    /// What `packet` acknowledges, if it is a TCP segment with the ACK flag and without SYN. The packet may be waiting.
    fn ack(&self, packet: &P) -> Option<Ack> {
        let _ = packet;
        None
    }
}

/// What a router may read of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ack {
    /// Whether it only acknowledges: it has no data, no flag but ACK, ECE and CWR, and no option but timestamps and
    /// SACK.
    pub is_pure: bool,
    /// The ECE and CWR flags. How they are coded is the driver's affair, but two equal codes are equal flags.
    pub echo: u8,
    /// The cumulative acknowledgement. It wraps, as in the header.
    pub number: u32,
    /// The blocks of the SACK option, each from its first byte to one past its last. The first `count` are valid.
    pub blocks: [(u32, u32); 4],
    /// How many blocks there are.
    pub count: u8,
}

/// How much waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

/// Hears what a discipline did. Every loss and every mark comes through here, with its cause. A tap only observes.
pub trait Tap<P> {
    /// Hears that `packet` was accepted into the queue at `now`.
    fn accepted(&mut self, packet: &P, now: Time) {
        let _ = (packet, now);
    }
    /// Gets the `packet` that was lost at `now`, for good.
    fn dropped(&mut self, packet: P, cause: Cause, now: Time);
    /// Hears that `packet` was marked at `now`.
    fn marked(&mut self, packet: &P, cause: Cause, now: Time);
}

/// The driver's side of an offer. It observes what becomes of packets, and has the headers of those that it offered.
pub trait Driver<P>: Tap<P> + Headers<P> {}

impl<P, D: Tap<P> + Headers<P>> Driver<P> for D {}
