//! What is kept of a segment that was sent, and what became of it.

use base::Time;

/// A segment that was sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Record {
    /// First sequence number.
    pub seq: u64,
    /// When it was last sent.
    pub sent_at: Time,
    /// Sequence space it takes: payload and FIN.
    pub len: u32,
    /// Whether it carries the FIN.
    pub fin: bool,
    pub(super) state: u8,
}

base::packed!(Record { seq, sent_at, len, fin, state });

pub(super) const SACKED: u8 = 1;
pub(super) const LOST: u8 = 2;
/// Sent again since it was deemed lost.
pub(super) const RESENT: u8 = 4;
/// Sent more than once at any time, and so of no use to measure a round trip.
pub(super) const EVER_RESENT: u8 = 8;

impl Record {
    pub(super) const fn is(&self, state: u8) -> bool {
        self.state & state != 0
    }

    /// Whether what was sent at `sent_at`, and not since, is thought to be in the network.
    pub(super) fn is_out(&self, sent_at: Time) -> bool {
        (self.is(RESENT) || !self.is(LOST | SACKED)) && self.sent_at == sent_at
    }

    /// The sequence number after this segment.
    pub const fn end(&self) -> u64 {
        self.seq + self.len as u64
    }
}
