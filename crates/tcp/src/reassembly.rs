//! The receiving side's out-of-order data.

use crate::segment::SackBlocks;

/// Data received beyond the next expected byte, as ranges.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    /// Disjoint, not adjacent, rising.
    ranges: Vec<(u64, u64)>,
    /// A sequence number in each of the most recently changed ranges, newest first (RFC 2018 §4).
    recent: [u64; SackBlocks::MOST],
}

impl Reassembly {
    /// Forgets everything but keeps its memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.recent = [0; SackBlocks::MOST];
    }

    /// Whether nothing is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        total(&self.ranges)
    }

    /// The first sequence number from `from` on that is not held while something beyond it is.
    pub fn first_gap(&self, from: u64) -> Option<u64> {
        let at = self.range_at(from).map_or(from, |range| range.1);
        (at < self.ranges.last()?.0).then_some(at)
    }

    /// Holds `start..end`, which lies beyond the next expected byte.
    pub fn insert(&mut self, start: u64, end: u64) {
        self.merge(start, end);
        let position = self.recent.iter().position(|&seq| self.range_at(seq) == self.range_at(start));
        self.recent[..=position.unwrap_or(SackBlocks::MOST - 1)].rotate_right(1);
        self.recent[0] = start;
    }

    /// The same where it is not to be reported. Returns the bytes that were not held.
    pub fn merge(&mut self, start: u64, end: u64) -> u64 {
        let first = self.ranges.partition_point(|r| r.1 < start);
        let last = self.ranges.partition_point(|r| r.0 <= end);
        let news;
        if first == last {
            self.ranges.insert(first, (start, end));
            news = end - start;
        } else {
            let held = self.ranges[first];
            if held.0 <= start && end <= held.1 {
                return 0;
            }
            let merged = (start.min(held.0), end.max(self.ranges[last - 1].1));
            news = merged.1 - merged.0 - total(&self.ranges[first..last]);
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        }
        news
    }

    /// The next expected byte after `next` arrived: what was held from there on is delivered with it.
    pub fn advance(&mut self, next: u64) -> u64 {
        let passed = self.ranges.partition_point(|r| r.0 <= next);
        let next = self.ranges[..passed].last().map_or(next, |r| next.max(r.1));
        self.ranges.drain(..passed);
        next
    }

    /// What to report beside the acknowledgement of `ack`: the newest block first.
    pub fn blocks(&self, ack: u64) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut reported = [(0, 0); SackBlocks::MOST];
        let mut count = 0;
        for &seq in &self.recent {
            if let Some(range) = self.range_at(seq)
                && !reported[..count].contains(&range)
            {
                reported[count] = range;
                count += 1;
                blocks.push(range.0 - ack, range.1 - ack);
            }
        }
        blocks
    }

    fn range_at(&self, seq: u64) -> Option<(u64, u64)> {
        let index = self.ranges.partition_point(|r| r.1 <= seq);
        self.ranges.get(index).copied().filter(|r| r.0 <= seq)
    }
}

fn total(ranges: &[(u64, u64)]) -> u64 {
    ranges.iter().map(|range| range.1 - range.0).sum()
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
