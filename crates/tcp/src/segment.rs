//! A TCP segment, as much of it as matters.

use base::Ecn;

/// Header flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Synchronise.
    pub const SYN: Self = Self(1);
    /// The acknowledgement field is valid.
    pub const ACK: Self = Self(2);
    /// No more data.
    pub const FIN: Self = Self(4);
    /// ECN echo.
    pub const ECE: Self = Self(8);
    /// Congestion window reduced.
    pub const CWR: Self = Self(16);

    /// Whether all of `flags` are set.
    #[inline]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and `flags`.
    #[inline]
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// These, and `flags` if `set`.
    #[inline]
    #[must_use]
    pub const fn with_if(self, flags: Self, set: bool) -> Self {
        if set { self.with(flags) } else { self }
    }
}

/// Up to three blocks of data held beyond the cumulative acknowledgement (RFC 2018), newest first, as distances from
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); Self::MOST],
    count: u8,
}

impl SackBlocks {
    /// As many as fit beside timestamps.
    pub const MOST: usize = 3;

    /// Adds the block from `start` to `end`, as distances from the acknowledgement; ignored when full.
    pub fn push(&mut self, start: u64, end: u64) {
        if let Some(slot) = self.blocks.get_mut(self.count as usize) {
            *slot = (start as u32, end as u32);
            self.count += 1;
        }
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the option: kind, length, eight a block, padded to words.
    #[inline]
    pub const fn option_bytes(&self) -> u32 {
        if self.count == 0 { 0 } else { 4 + 8 * self.count as u32 }
    }

    /// The blocks as absolute sequence numbers above `ack`.
    pub fn above(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.blocks[..self.count as usize].iter().map(move |&(start, end)| (ack + start as u64, ack + end as u64))
    }
}

/// One segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Sequence number of its first byte, or of the SYN or FIN if it carries none.
    pub seq: u64,
    /// The next sequence number expected, if [`Flags::ACK`].
    pub ack: u64,
    /// Data held beyond `ack`.
    pub sacks: SackBlocks,
    /// Receive window, bytes.
    pub window: u32,
    /// Payload bytes.
    pub payload: u16,
    /// Size on the link, bytes: the IP packet.
    pub size: u16,
    /// Flags.
    pub flags: Flags,
    /// ECN field of the IP header.
    pub ecn: Ecn,
}

impl Segment {
    /// The sequence number after this segment: payload, SYN and FIN count.
    #[inline]
    pub const fn end(&self) -> u64 {
        self.seq + self.payload as u64 + self.flags.has(Flags::SYN) as u64 + self.flags.has(Flags::FIN) as u64
    }
}
