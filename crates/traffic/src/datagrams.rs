//! A [`Datagram`] is a packet of a source that heeds nothing. All such sources use this type.

use base::Span;

/// The possible sizes of a UDP packet: from an IPv4 and a UDP header alone (RFC 791 §3.1, RFC 768) to the largest IPv4
/// packet.
pub const PACKET_BYTES: std::ops::RangeInclusive<u32> = 28..=65_535;

/// One packet of such a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Time since the packet before, or since the start of the source.
    pub gap: Span,
    /// Its size, bytes (IP).
    pub bytes: u32,
}
