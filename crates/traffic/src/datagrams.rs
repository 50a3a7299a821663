//! Packets of sources that heed nothing, whichever machine they come from.

use crate::{Cbr, OnOff, PacketTrace, PoissonPackets, Probe};
use base::{Span, Stream};

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

/// A source of packets.
#[derive(Clone, Debug)]
pub enum Datagrams {
    /// At a constant rate.
    Cbr {
        /// Its gaps.
        cbr: Cbr,
        /// The wait for the first packet, until that is sent.
        phase: Option<Span>,
    },
    /// At a constant rate, at times.
    OnOff(Box<OnOff>),
    /// At random instants.
    Poisson(PoissonPackets),
    /// As written down.
    Trace(PacketTrace),
    /// At even distances, to be measured.
    Probe(Probe),
}

impl Datagrams {
    /// A constant-rate stream with a random phase.
    pub fn cbr(cbr: Cbr, stream: &mut Stream) -> Self {
        let phase = Some(cbr.first_gap(stream));
        Self::Cbr { cbr, phase }
    }

    /// The next packet; `None` after the last.
    #[inline]
    pub fn next_datagram(&mut self) -> Option<Datagram> {
        match self {
            Self::Cbr { cbr, phase } => {
                let gap = phase.take().unwrap_or_else(|| cbr.gap());
                Some(Datagram { gap, bytes: cbr.packet_bytes() })
            }
            Self::OnOff(source) => source.next_datagram(),
            Self::Poisson(source) => Some(source.next_datagram()),
            Self::Trace(source) => source.next_datagram(),
            Self::Probe(source) => Some(source.next_datagram()),
        }
    }
}
