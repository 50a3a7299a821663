//! This file says in which order things happen that happen at one instant:
//!
//! 1. Links come first: a change, a tick of a law, or the end of a transmission ([`link_goes_first`]). Of several links
//!    the first of the scenario goes first, and of one link forward before reverse
//!    ([`Net::next_event`](crate::Net::next_event)).
//! 2. Then come pending events, by their [`Rank`].
//! 3. Observations come last: the end of an interval, an edge of the measured window. What happens at the instant when
//!    an interval ends thus belongs to that interval.
//!
//! Hosts hear of packets lost at several links at one instant in the order of the ports.
//!
//! A packet that arrives at the instant when another one leaves therefore finds the link free. Among events of one
//! instant and rank each driver has an order of its own, which depends on nothing but the run.

use crate::routes::Port;
use base::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Whether a link's event at `link` goes before a pending one at `pending`. At one instant it does.
#[inline]
pub fn link_goes_first(link: Time, pending: Time) -> bool {
    link <= pending
}

/// The kinds of pending events, in the order in which they happen at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Rank {
    /// A packet reaches a link.
    Arrive = 0,
    /// A packet has just been lost at a link: it is no longer on its way.
    Lose = 1,
    /// A packet reaches its host.
    Deliver = 2,
    /// An endpoint wants to be woken.
    Wake = 3,
    /// A source of demand wants to be called.
    Demand = 4,
}

/// Where a packet goes to next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Towards {
    /// This port of a link.
    Link(Port),
    /// A host, on either side.
    Host,
}

impl Towards {
    const fn index(self) -> usize {
        match self {
            Self::Host => 0,
            Self::Link(port) => port.index() + 1,
        }
    }

    const fn of(index: usize) -> Self {
        match index {
            0 => Self::Host,
            port => Self::Link(Port::at(port - 1)),
        }
    }

    const fn rank(self) -> Rank {
        match self {
            Self::Link(_) => Rank::Arrive,
            Self::Host => Rank::Deliver,
        }
    }
}

/// Packets on their way, for a driver that has no other events pending. They come out by time, then by [`Rank`], then
/// in the order in which they were put in.
#[derive(Debug)]
pub struct Underway<T> {
    /// Those towards hosts, then those towards each port.
    heaps: Vec<BinaryHeap<Reverse<Pending<T>>>>,
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
    /// An empty collection for so many `ports`, and hosts. It has room for `capacity` packets towards each before it
    /// allocates more.
    pub fn with_capacity(capacity: usize, ports: usize) -> Self {
        let heaps = std::iter::repeat_with(|| BinaryHeap::with_capacity(capacity)).take(ports + 1);
        Self { heaps: heaps.collect(), sequence: 0 }
    }

    /// Adds a packet that will reach its goal at `at`.
    pub fn push(&mut self, at: Time, towards: Towards, packet: T) {
        self.sequence += 1;
        self.heaps[towards.index()].push(Reverse(Pending { at, sequence: self.sequence, packet }));
    }

    /// When the next packet reaches its goal, and which goal; `None` if no packet is on its way.
    #[inline]
    pub fn next(&self) -> Option<(Time, Towards)> {
        let first = |(index, heap): (usize, &BinaryHeap<Reverse<Pending<T>>>)| {
            let towards = Towards::of(index);
            heap.peek().map(|Reverse(p)| ((p.at, towards.rank(), p.sequence), towards))
        };
        self.heaps.iter().enumerate().filter_map(first).min_by_key(|(key, _)| *key).map(|((at, ..), to)| (at, to))
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
        let mut underway = Underway::with_capacity(4, 2);
        let (early, late) = (Time::from_ns(1), Time::from_ns(2));
        underway.push(late, Towards::Host, "delivered late");
        underway.push(early, Towards::Host, "delivered first");
        underway.push(early, Towards::Host, "delivered second");
        underway.push(early, Towards::Link(Port::at(1)), "arrives first");
        underway.push(early, Towards::Link(Port::at(0)), "arrives second");
        underway.push(early, Towards::Link(Port::at(1)), "arrives third");
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
    fn hosts_come_after_the_links_and_those_who_ask_last() {
        assert!(
            Rank::Arrive < Rank::Lose
                && Rank::Lose < Rank::Deliver
                && Rank::Deliver < Rank::Wake
                && Rank::Wake < Rank::Demand
        );
    }
}
