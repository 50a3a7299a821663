//! A law measures the queue and weighs a packet in packets or in bytes.
//!
//! Laws compute in packets throughout, as their papers do. If bytes count, `mean_packet` bytes make one packet, so that
//! thresholds, gains and prices keep their meaning (ns-2 `queue_in_bytes_` does the same). There are two independent
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

/// The `weight_packet` of laws whose papers do not say that both sizes are one.
pub const WEIGHT_PACKET: Param = Param {
    name: "weight_packet",
    kind: Kind::Size,
    default: "",
    range: (1.0, 65_535.0),
    doc: "In byte mode, the size of a packet that is signalled with the probability itself, all others by their size \
          over this; absent by default: mean_packet.",
    source: "ns-2 divides by the same mean_pktsize_; Le et al. 2007 do not say by what they divide",
};

/// The link's capacity in mean packets a second.
pub fn capacity(values: &Values, rate: Rate) -> f64 {
    rate.bps_f64() / (8.0 * f64::from(values.size("mean_packet")))
}

/// A measure of queues and packets.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    in_bytes: bool,
    weighs_size: bool,
    mean_packet: u32,
    weight_packet: u32,
}

impl Measure {
    /// The measure for `mode` and `mean_packet`, with lengths written in the unit of `reference`.
    pub fn new(values: &Values, reference: Length) -> Self {
        Self::with(values, reference, values.word("mode") == "byte")
    }

    /// The measure of a law without `mode`, which treats packets of all sizes alike.
    pub fn of_queue(values: &Values, reference: Length) -> Self {
        Self::with(values, reference, false)
    }

    fn with(values: &Values, reference: Length, weighs_size: bool) -> Self {
        let mean_packet = values.size("mean_packet");
        let in_bytes = weighs_size || matches!(reference, Length::Bytes(_));
        let weight_packet = values.find_size(WEIGHT_PACKET.name).unwrap_or(mean_packet);
        Self { in_bytes, weighs_size, mean_packet, weight_packet }
    }

    /// The length in packets of a queue, or of anything else that was counted as a queue is.
    #[inline]
    pub fn queue(&self, backlog: Backlog) -> f64 {
        if self.in_bytes { self.per_mean(backlog.bytes as f64) } else { f64::from(backlog.packets) }
    }

    /// A written length in packets.
    pub fn length(&self, length: Length) -> f64 {
        match length {
            Length::Packets(packets) => packets,
            Length::Bytes(bytes) => self.per_mean(bytes),
        }
    }

    /// How many packets one of `size` bytes counts for.
    #[inline]
    pub fn weight(&self, size: u32) -> f64 {
        if self.weighs_size { f64::from(size) / f64::from(self.weight_packet) } else { 1.0 }
    }

    /// Whether `backlog` is no more than the smallest queue there is: one packet, or one byte.
    #[inline]
    pub fn is_smallest(&self, backlog: Backlog) -> bool {
        if self.in_bytes { backlog.bytes <= 1 } else { backlog.packets <= 1 }
    }

    /// Whether a packet's probability is scaled by its size.
    #[inline]
    pub fn weighs_size(&self) -> bool {
        self.weighs_size
    }

    /// The bytes that count as one packet.
    pub fn mean_packet(&self) -> u32 {
        self.mean_packet
    }

    /// Bytes as packets. This is a quotient, not the product with a reciprocal: 849 / 849 is 1, 849 * (1 / 849) is
    /// less. So what is certain needs no draw, and a queue of a written length has that length.
    #[inline]
    fn per_mean(&self, bytes: f64) -> f64 {
        bytes / f64::from(self.mean_packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_packet_is_one_packet() {
        for mean_packet in 1..=65_535 {
            let measure = Measure { in_bytes: true, weighs_size: true, mean_packet, weight_packet: mean_packet };
            let bytes = 7 * u64::from(mean_packet);
            assert_eq!(measure.weight(mean_packet), 1.0);
            assert_eq!(measure.queue(Backlog { packets: 1, bytes }), 7.0);
            assert_eq!(measure.length(Length::Bytes(bytes as f64)), measure.length(Length::Packets(7.0)));
        }
    }
}
