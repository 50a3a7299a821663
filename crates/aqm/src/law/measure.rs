//! How a law measures the queue and weighs a packet: in packets, or in bytes.
//!
//! Laws reckon in packets throughout, as their papers do. Where bytes count, `mean_packet` bytes make one packet, so
//! that thresholds, gains and prices keep their meaning (ns-2 `queue_in_bytes_` does the same). Two independent
//! questions (Floyd 1997, "RED: Discussions of Byte and Packet Modes"; RFC 7141): is the queue measured in bytes, and
//! are small packets signalled more rarely? Byte mode answers yes to both. Packet mode answers no to the second, and
//! the unit in which thresholds are written answers the first.

use crate::packet::Backlog;
use crate::param::{Kind, Length, Param, Values};
use base::Rate;

/// The `mean_packet` of laws that turn bytes into packets.
pub const MEAN_PACKET: Param = Param {
    name: "mean_packet",
    kind: Kind::Size,
    default: "500b",
    range: (1.0, 65_535.0),
    doc: "The bytes that count as one packet: where bytes are measured, and in the link's packets a second.",
    source: "ns-2 mean_pktsize_ = 500; Le et al. 2007 saw a mean a little over 500 bytes",
};

/// The `mode` of laws that count packets or bytes.
pub const fn mode(default: &'static str, source: &'static str) -> Param {
    Param {
        name: "mode",
        kind: Kind::Word(&["packet", "byte"]),
        default,
        range: Param::ANY,
        doc: "byte: the queue is measured in bytes and a packet signalled with probability scaled by size / \
              mean_packet. packet: every packet is signalled alike, and the queue is measured in the unit in which \
              its lengths are written.",
        source,
    }
}

/// The link's capacity in mean packets a second.
pub fn capacity(values: &Values, rate: Rate) -> f64 {
    rate.bps_f64() / (8.0 * f64::from(values.size("mean_packet")))
}

/// A measure of queues and packets.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    // The queue is packets * per_packet + bytes * per_byte, one of the two zero: no branch per packet.
    per_packet: f64,
    per_byte: f64,
    weighs_size: bool,
    mean_packet: u32,
}

impl Measure {
    /// The measure for `mode` and `mean_packet`, with lengths written in the unit of `reference`.
    pub fn new(values: &Values, reference: Length) -> Self {
        let mean_packet = values.size("mean_packet");
        let weighs_size = values.word("mode") == "byte";
        let in_bytes = weighs_size || matches!(reference, Length::Bytes(_));
        let (per_packet, per_byte) = if in_bytes { (0.0, 1.0 / f64::from(mean_packet)) } else { (1.0, 0.0) };
        Self { per_packet, per_byte, weighs_size, mean_packet }
    }

    /// The length of a queue in packets, or of whatever else was counted like one.
    #[inline]
    pub fn queue(&self, backlog: Backlog) -> f64 {
        f64::from(backlog.packets) * self.per_packet + backlog.bytes as f64 * self.per_byte
    }

    /// A written length in packets. Bytes go through the same product as in [`Measure::queue`], so that a queue of
    /// exactly the written length compares equal.
    pub fn length(&self, length: Length) -> f64 {
        match length {
            Length::Packets(packets) => packets,
            Length::Bytes(bytes) => bytes * (1.0 / f64::from(self.mean_packet)),
        }
    }

    /// How many packets one of `size` bytes counts for.
    #[inline]
    pub fn weight(&self, size: u32) -> f64 {
        if self.weighs_size { f64::from(size) * self.per_byte } else { 1.0 }
    }

    /// The smallest queue there is, one packet or one byte, in packets.
    pub fn smallest(&self) -> f64 {
        self.per_packet + self.per_byte
    }

    /// Whether a packet's probability is scaled by its size.
    pub fn weighs_size(&self) -> bool {
        self.weighs_size
    }

    /// The bytes that count as one packet.
    pub fn mean_packet(&self) -> u32 {
        self.mean_packet
    }
}
