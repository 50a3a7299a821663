//! The order of ties: what happens first of all that happens at one instant.
//!
//! 1. The bottleneck: a tick of a law, or the end of a transmission ([`link_goes_first`]); forward before reverse
//!    ([`Bottleneck::next_event`](crate::Bottleneck::next_event)).
//! 2. What is pending, by its [`Rank`].
//! 3. What only looks: the end of an interval, an edge of the measured window. What happens at that instant belongs to
//!    what ends with it.
//!
//! A packet that arrives while another one leaves therefore finds the link free. Among events of one instant and rank
//! each driver has an order of its own that depends on nothing but the run.

use base::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Whether the bottleneck's event at `link` goes before one that is pending at `pending`: at the same instant too.
#[inline]
pub fn link_goes_first(link: Time, pending: Time) -> bool {
    link <= pending
}

/// What kind of event is pending, and so which goes first among those of one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Rank {
    /// A packet reaches the bottleneck.
    Arrive = 0,
    /// A packet reaches its host.
    Deliver = 1,
    /// An endpoint wants to be woken.
    Wake = 2,
    /// A source of demand wants to be called.
    Demand = 3,
}

/// Where a packet goes to next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Towards {
    /// The egress of this side.
    Bottleneck(usize),
    /// A host, on either side.
    Host,
}

impl Towards {
    const ALL: [Self; 3] = [Self::Bottleneck(0), Self::Bottleneck(1), Self::Host];

    const fn index(self) -> usize {
        match self {
            Self::Bottleneck(side) => side,
            Self::Host => 2,
        }
    }

    const fn rank(self) -> Rank {
        match self {
            Self::Bottleneck(_) => Rank::Arrive,
            Self::Host => Rank::Deliver,
        }
    }
}

/// Packets on their way, for a driver that has nothing else pending. They come out by time, then by [`Rank`], then as
/// they were put in.
#[derive(Debug)]
pub struct Underway<T> {
    heaps: [BinaryHeap<Reverse<Pending<T>>>; 3],
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending<T> {
    at: Time,
    sequence: u64,
    packet: T,
}

impl<T> Pending<T> {
    fn key(&self) -> (Time, u64) {
        (self.at, self.sequence)
    }
}

impl<T> PartialEq for Pending<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Pending<T> {}

impl<T> PartialOrd for Pending<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Pending<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<T> Underway<T> {
    /// Nothing is on its way; there is room for `capacity` packets towards each goal before anything is allocated.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { heaps: std::array::from_fn(|_| BinaryHeap::with_capacity(capacity)), sequence: 0 }
    }

    /// A packet will be where it goes to at `at`.
    pub fn push(&mut self, at: Time, towards: Towards, packet: T) {
        self.sequence += 1;
        self.heaps[towards.index()].push(Reverse(Pending { at, sequence: self.sequence, packet }));
    }

    /// When the next packet is where it goes to, and where that is; `None` if none is on its way.
    #[inline]
    pub fn next(&self) -> Option<(Time, Towards)> {
        let first = |towards: Towards| {
            self.heaps[towards.index()].peek().map(|Reverse(p)| ((p.at, towards.rank(), p.sequence), towards))
        };
        Towards::ALL.into_iter().filter_map(first).min().map(|((at, ..), towards)| (at, towards))
    }

    /// When the next packet reaches this goal; [`Time::NEVER`] if none is on its way there.
    #[inline]
    pub fn first(&self, towards: Towards) -> Time {
        self.heaps[towards.index()].peek().map_or(Time::NEVER, |Reverse(pending)| pending.at)
    }

    /// Takes out the next packet that goes there.
    #[inline]
    pub fn pop(&mut self, towards: Towards) -> Option<T> {
        self.heaps[towards.index()].pop().map(|Reverse(pending)| pending.packet)
    }

    /// All packets that go there, in no order.
    pub fn each(&self, towards: Towards) -> impl Iterator<Item = &T> {
        self.heaps[towards.index()].iter().map(|Reverse(pending)| &pending.packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_by_rank_and_then_as_they_were_put_in() {
        let mut underway = Underway::with_capacity(4);
        let (early, late) = (Time::from_ns(1), Time::from_ns(2));
        underway.push(late, Towards::Host, "delivered late");
        underway.push(early, Towards::Host, "delivered first");
        underway.push(early, Towards::Host, "delivered second");
        underway.push(early, Towards::Bottleneck(1), "arrives first");
        underway.push(early, Towards::Bottleneck(0), "arrives second");
        underway.push(early, Towards::Bottleneck(1), "arrives third");
        let mut order = Vec::new();
        while let Some((at, towards)) = underway.next() {
            assert_eq!(underway.first(towards), at);
            order.push(underway.pop(towards).expect("it is next"));
        }
        let arrivals = ["arrives first", "arrives second", "arrives third"];
        assert_eq!(order, [&arrivals[..], &["delivered first", "delivered second", "delivered late"]].concat());
        assert_eq!(underway.first(Towards::Host), Time::NEVER);
    }

    #[test]
    fn hosts_come_after_the_bottleneck_and_those_who_ask_last() {
        assert!(Rank::Arrive < Rank::Deliver && Rank::Deliver < Rank::Wake && Rank::Wake < Rank::Demand);
    }
}
