//! Packets of sources that heed nothing, whichever machine they come from.

use base::Span;

/// The smallest UDP packet there is, an IPv4 and a UDP header (RFC 791 §3.1, RFC 768), and the largest IPv4 packet.
pub const PACKET_BYTES: std::ops::RangeInclusive<u32> = 28..=65_535;

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Time since the packet before, or since the start of the source.
    pub gap: Span,
    /// Its size, bytes (IP).
    pub bytes: u32,
}
