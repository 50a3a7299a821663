//! [`Reassembly`] keeps data out of order as ranges. A receiver keeps the data that it holds beyond the next expected
//! byte, a sender the data of which reports have told.
//!
//! Losses are repaired in order, so ranges come and go at either end. In a ring the cost of that does not depend on how
//! many holes a window has. Most connections never hold any data out of order.

use crate::segment::SackBlocks;
use base::fetch;
use std::collections::VecDeque;

/// Data received beyond the next expected byte, as ranges.
#[derive(Clone, Debug, Default)]
pub struct Reassembly(Option<Box<Held>>);

/// Memory that is kept for later holds nothing.
impl PartialEq for Reassembly {
    fn eq(&self, other: &Self) -> bool {
        self.held() == other.held()
    }
}

base::packed!(Reassembly(held));

#[derive(Clone, PartialEq, Debug, Default)]
struct Held {
    /// Disjoint, not adjacent, rising.
    ranges: VecDeque<(u64, u64)>,
    /// A sequence number in each of the most recently changed ranges, newest first (RFC 2018 §4).
    recent: [u64; SackBlocks::MOST],
    /// Bytes in all of them.
    bytes: u64,
}

base::left_whole!(Held);

/// More room for ranges than this is given back when all is forgotten.
const KEPT: usize = 64;

impl Reassembly {
    fn held(&self) -> Option<&Held> {
        self.0.as_deref().filter(|held| **held != Held::default())
    }

    /// Forgets everything but keeps its memory, if that is not much.
    pub fn clear(&mut self) {
        if let Some(held) = &mut self.0 {
            held.ranges.clear();
            held.bytes = 0;
            held.recent = [0; SackBlocks::MOST];
            if held.ranges.capacity() > KEPT {
                self.0 = None;
            }
        }
    }

    /// Asks for what is held.
    #[inline(always)]
    pub fn fetch(&self) {
        self.0.as_deref().inspect(|held| fetch(*held));
    }

    /// Whether nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|held| held.ranges.is_empty())
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |held| held.bytes)
    }

    /// The first sequence number from `from` on that is not held while something beyond it is.
    pub fn first_gap(&self, from: u64) -> Option<u64> {
        let held = self.0.as_ref()?;
        let at = held.range_at(from).map_or(from, |range| range.1);
        (at < held.ranges.back()?.0).then_some(at)
    }

    /// Holds `start..end`, which lies beyond the next expected byte. Returns the bytes that were not held.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        let held = self.0.get_or_insert_default();
        let news = held.merge(start, end);
        let position = held.recent.iter().position(|&seq| held.range_at(seq) == held.range_at(start));
        held.recent[..=position.unwrap_or(SackBlocks::MOST - 1)].rotate_right(1);
        held.recent[0] = start;
        news
    }

    /// Adds a block that is not to be reported. Returns the bytes that were not held.
    pub fn merge(&mut self, start: u64, end: u64) -> u64 {
        self.0.get_or_insert_default().merge(start, end)
    }

    /// Notes that everything before `next` arrived. Returns the next expected byte, after the data that was held there.
    pub fn advance(&mut self, next: u64) -> u64 {
        let Some(held) = &mut self.0 else { return next };
        let mut next = next;
        while let Some(&(start, end)) = held.ranges.front()
            && start <= next
        {
            next = next.max(end);
            held.bytes -= end - start;
            held.ranges.pop_front();
        }
        next
    }

    /// The blocks to report beside the acknowledgement of `ack`, the newest first.
    pub fn blocks(&self, ack: u64) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let Some(held) = &self.0 else { return blocks };
        let mut reported = [(0, 0); SackBlocks::MOST];
        let mut count = 0;
        for &seq in &held.recent {
            if let Some(range) = held.range_at(seq)
                && !reported[..count].contains(&range)
            {
                reported[count] = range;
                count += 1;
                blocks.push(range.0 - ack, range.1 - ack);
            }
        }
        blocks
    }
}

impl Held {
    fn merge(&mut self, start: u64, end: u64) -> u64 {
        let news = self.add(start, end);
        self.bytes += news;
        news
    }

    fn add(&mut self, start: u64, end: u64) -> u64 {
        // Most data arrives in order beyond a hole: the last range grows.
        if let Some(last) = self.ranges.back_mut()
            && last.1 == start
        {
            last.1 = end;
            return end - start;
        }
        let first = self.ranges.partition_point(|r| r.1 < start);
        let last = self.ranges.partition_point(|r| r.0 <= end);
        if first == last {
            self.ranges.insert(first, (start, end));
            return end - start;
        }
        let held = self.ranges[first];
        if held.0 <= start && end <= held.1 {
            return 0;
        }
        let merged = (start.min(held.0), end.max(self.ranges[last - 1].1));
        let news = merged.1 - merged.0 - self.total(first, last);
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
        news
    }

    fn range_at(&self, seq: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|r| r.1 <= seq);
        self.ranges.get(index).copied().filter(|r| r.0 <= seq)
    }

    fn total(&self, first: usize, last: usize) -> u64 {
        self.ranges.range(first..last).map(|range| range.1 - range.0).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_held_is_counted_and_gaps_are_found() {
        let mut held = Reassembly::default();
        assert_eq!(held.first_gap(10), None);
        assert_eq!(held.merge(20, 30), 10);
        assert_eq!(held.merge(20, 30), 0);
        assert_eq!(held.merge(40, 50), 10);
        assert_eq!([held.first_gap(10), held.first_gap(20), held.first_gap(35)], [Some(10), Some(30), Some(35)]);
        assert_eq!(held.first_gap(40), None);
        // 15..20, 30..40 and 50..55.
        assert_eq!(held.merge(15, 55), 20);
        assert_eq!(held.bytes(), 40);
    }

    #[test]
    fn thousands_of_holes_are_filled_from_either_end() {
        // Every other segment of a window was lost and is sent again in order, then some from the end.
        let mut held = Reassembly::default();
        for seq in 0..10_000_u64 {
            held.insert(2 * seq + 1, 2 * seq + 2);
        }
        assert_eq!(held.bytes(), 10_000);
        for seq in 0..9_000_u64 {
            assert_eq!(held.advance(2 * seq + 1), 2 * seq + 2);
        }
        for seq in (9_000..10_000_u64).rev() {
            held.insert(2 * seq, 2 * seq + 1);
        }
        assert_eq!(held.bytes(), 2_000);
        assert_eq!(held.blocks(18_000).above(18_000).collect::<Vec<_>>(), [(18_000, 20_000)]);
        assert_eq!(held.advance(18_000), 20_000);
        held.insert(20_002, 20_003);
        assert_eq!(held.bytes(), 1);
        held.clear();
        assert!(held.is_empty());
        assert_eq!(held.bytes(), 0);
    }

    #[test]
    fn ranges_merge_and_the_newest_is_reported_first() {
        let mut held = Reassembly::default();
        held.insert(20, 30);
        held.insert(40, 50);
        held.insert(60, 70);
        let blocks: Vec<_> = held.blocks(10).above(10).collect();
        assert_eq!(blocks, [(60, 70), (40, 50), (20, 30)]);
        held.insert(30, 40);
        let blocks: Vec<_> = held.blocks(10).above(10).collect();
        assert_eq!(blocks, [(20, 50), (60, 70)]);
        assert_eq!(held.advance(20), 50);
        assert_eq!(held.advance(60), 70);
        assert!(held.is_empty());
    }
}
