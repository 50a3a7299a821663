//! The timers say what is due, and when.

use super::connections::Token;
use base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a time was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// The source of this index has its turn.
    Source(u32),
    /// The application of an end has waited.
    Turn(Token),
    /// A server has more to read.
    Request(Token),
    /// A connection could not be opened at all.
    Broken(Token),
    /// Connections are to be looked at.
    Sample,
}

/// Times that were asked for. At one instant, first asked, first served.
#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    sequence: u64,
}

struct Entry {
    at: Time,
    sequence: u64,
    due: Due,
}

impl Entry {
    fn key(&self) -> (Time, u64) {
        (self.at, self.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Timers {
    /// `due` at `at`.
    pub fn push(&mut self, at: Time, due: Due) {
        self.sequence += 1;
        self.heap.push(Reverse(Entry { at, sequence: self.sequence, due }));
    }

    /// When the next one is due; [`Time::NEVER`] if there is none.
    pub fn next_at(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |Reverse(entry)| entry.at)
    }

    /// The next one that is due at `now`, and since when.
    pub fn pop(&mut self, now: Time) -> Option<(Time, Due)> {
        if self.next_at() > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_order_of_time_then_of_asking() {
        let mut timers = Timers::default();
        for (at, source) in [(5, 0), (3, 1), (5, 2), (9, 3)] {
            timers.push(Time::from_ns(at), Due::Source(source));
        }
        let mut order = Vec::new();
        while let Some((at, Due::Source(source))) = timers.pop(Time::from_ns(5)) {
            order.push((at.ns(), source));
        }
        assert_eq!(order, [(3, 1), (5, 0), (5, 2)]);
        assert_eq!(timers.next_at(), Time::from_ns(9));
    }
}
