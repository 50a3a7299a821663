//! A [`Segment`] has those parts of a TCP segment that matter here.

use crate::byte_counts::{ByteCounts, Order};
use base::{Ecn, Span, Time};

/// Header flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(u8);

base::packed!(Flags(bits));

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
    /// The last of what the application wrote: nothing more may be coming soon.
    pub const PSH: Self = Self(32);
    /// Accurate ECN (RFC 9768); the nonce sum of old.
    pub const AE: Self = Self(64);

    /// Whether all of `flags` are set.
    #[inline]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These flags without `flags`.
    #[inline]
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// These flags together with `flags`.
    #[inline]
    #[must_use]
    pub const fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// These flags, together with `flags` if `set`.
    #[inline]
    #[must_use]
    pub const fn with_if(self, flags: Self, set: bool) -> Self {
        if set { self.with(flags) } else { self }
    }
}

/// What the first block reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum First {
    /// Data that the receiver holds; so do all other blocks.
    #[default]
    Held,
    /// Data that came twice below the acknowledgement: the distances are downwards.
    TwiceBelow,
    /// Data that came twice beyond the acknowledgement.
    TwiceBeyond,
}

/// Up to three blocks of data that the receiver holds beyond the cumulative acknowledgement (RFC 2018), newest first,
/// as distances from it. The first block may tell of data that came twice instead (RFC 2883). The room of blocks that
/// are not there may hold an AccECN option, which goes with two blocks at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    /// Start and end of each, in the upper and the lower half of a word.
    blocks: [u64; Self::MOST],
    /// How many there are; above that, whether there is an option.
    count: u8,
    first: First,
}

impl SackBlocks {
    /// The most blocks: as many as fit beside timestamps.
    pub const MOST: usize = 3;
    const OPTION: u8 = 4;
    /// There is an option without counters, of the second order.
    const EMPTY: u8 = 8;

    /// Adds the block that says that `start..end` came twice. Call it before any other block is added.
    pub fn push_duplicate(&mut self, start: u64, end: u64, ack: u64) {
        assert!(self.count == 0, "a duplicate is told of first");
        if end <= ack {
            self.push(ack - start, ack - end);
            self.first = First::TwiceBelow;
        } else {
            self.push(start - ack.min(start), end - ack);
            self.first = First::TwiceBeyond;
        }
    }

    /// The range that came twice, if a report beside `ack` says so.
    #[inline]
    pub fn duplicate(&self, ack: u64) -> Option<(u64, u64)> {
        let (start, end) = distances(self.blocks[0]);
        match self.first {
            First::Held => None,
            First::TwiceBelow => Some((ack - start, ack - end)),
            First::TwiceBeyond => Some((ack + start, ack + end)),
        }
    }

    /// Adds the block from `start` to `end`, as distances from the acknowledgement; ignored when full.
    pub fn push(&mut self, start: u64, end: u64) {
        assert!((start | end) >> 32 == 0, "a report reaches no further than a window");
        if let Some(slot) = self.blocks.get_mut(self.count as usize) {
            *slot = start << 32 | end;
            self.count += 1;
        }
    }

    /// How many blocks there are.
    #[inline]
    pub const fn len(&self) -> usize {
        (self.count & (Self::OPTION - 1)) as usize
    }

    /// Whether there is no block.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is neither a block nor an AccECN option.
    #[inline]
    pub const fn is_bare(&self) -> bool {
        self.count == 0
    }

    /// Bytes of the option: kind, length and eight for each block, padded to words.
    #[inline]
    pub const fn option_bytes(&self) -> u32 {
        if self.is_empty() { 0 } else { 4 + 8 * self.len() as u32 }
    }

    /// Keeps the first blocks.
    fn truncate(&mut self, most: usize) {
        assert!(self.count & !(Self::OPTION - 1) == 0, "an option comes last");
        self.count = self.count.min(most as u8);
        self.blocks[most..].fill(0);
    }

    /// Puts an AccECN option beside the blocks. No block is added afterwards.
    fn put_counts(&mut self, option: &ByteCounts) {
        if option.counters().is_empty() {
            self.count |= Self::EMPTY;
            return;
        }
        assert!(self.len() + option.counters().len().div_ceil(2) <= Self::MOST, "there is room for the option");
        let [more, room] = option.packed();
        self.blocks[2] = room;
        if option.counters().len() == ByteCounts::MOST {
            self.blocks[1] = more;
        }
        self.count |= Self::OPTION;
    }

    /// The blocks that are held, as absolute sequence numbers above `ack`.
    pub fn above(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let from = usize::from(self.first != First::Held);
        self.blocks[from..self.len()].iter().map(move |&block| {
            let (start, end) = distances(block);
            (ack + start, ack + end)
        })
    }
}

const fn distances(block: u64) -> (u64, u64) {
    (block >> 32, block & 0xffff_ffff)
}

/// The timestamp of an instant.
#[inline]
pub(crate) fn stamp_of(now: Time) -> u16 {
    (now.ns() / 1_000_000) as u16
}

/// How old a timestamp is, in whole milliseconds and at least one (tcp_rtt_tsopt_us).
pub(crate) fn age_of(stamp: u16, now: Time) -> Span {
    Span::from_ms(u64::from(stamp_of(now).wrapping_sub(stamp).max(1)))
}

/// One segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Sequence number of its first byte, or of the SYN or FIN if it carries none.
    pub seq: u64,
    /// The next sequence number expected, if [`Flags::ACK`].
    pub ack: u64,
    /// Data held beyond `ack`.
    pub sacks: SackBlocks,
    /// Receive window, bytes.
    pub window: u32,
    /// When it was sent: the low bits of its sender's clock of milliseconds (RFC 7323, TSval).
    pub stamp: u16,
    /// The timestamp of the other end's segment that its sender last took as TS.Recent (RFC 7323 §4.3, TSecr).
    pub echo: u16,
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

    /// How long data took to the end that sent this, by the timestamps of both ends.
    #[inline]
    pub(crate) fn one_way(&self) -> Span {
        Span::from_ms(u64::from(self.stamp.wrapping_sub(self.echo)))
    }

    /// The AccECN option (RFC 9768), if it has one.
    #[inline]
    pub fn byte_counts(&self) -> Option<ByteCounts> {
        let has = |option| self.sacks.count & option != 0;
        if has(SackBlocks::EMPTY) {
            return Some(ByteCounts::new(Order::Ect1First, [0; ByteCounts::MOST], 0));
        }
        has(SackBlocks::OPTION).then(|| ByteCounts::unpacked([self.sacks.blocks[1], self.sacks.blocks[2]]))
    }

    /// Keeps its first reports, at most so many, before it gets an option.
    pub(crate) fn keep_reports(&mut self, most: usize) {
        if self.sacks.len() > most {
            let before = self.sacks.option_bytes();
            self.sacks.truncate(most);
            self.size -= (before - self.sacks.option_bytes()) as u16;
        }
    }

    /// Gives it an AccECN option, which makes it larger.
    pub fn carry(&mut self, option: &ByteCounts) {
        // Without counters it takes the place of a report's padding.
        let takes_padding = option.counters().is_empty() && !self.sacks.is_empty();
        self.size += if takes_padding { 0 } else { option.option_bytes() as u16 };
        self.sacks.put_counts(option);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a duplicate is told of first")]
    fn a_duplicate_behind_other_blocks_is_caught() {
        let mut blocks = SackBlocks::default();
        blocks.push(100, 200);
        blocks.push_duplicate(1, 101, 201);
    }
}
