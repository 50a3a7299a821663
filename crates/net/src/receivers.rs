//! [`Receivers`] stands for the access links of all receivers behind one port, so that a packet's arrival need not
//! fetch its connection.
//!
//! Where the access links are no slower than the link, packets never pile up at them. Still a small packet may follow
//! right behind a large one of its connection, and has to wait until that has crossed. Few packets cross at one time,
//! all of them among those that left the link last. To look through these costs less than to fetch the connection.
//! Either way the answers are those of the connections' own links. Where connections of a host share a link, that link
//! is asked.

use base::{Rate, Span, Time};
use std::collections::VecDeque;

/// The packets that are crossing the access links of receivers.
#[derive(Debug)]
pub struct Receivers {
    piles_up: bool,
    /// Whether the path is asked: packets pile up, or connections share its links.
    asks_path: bool,
    /// For each packet that is crossing: until when, and its connection.
    crossing: VecDeque<(Time, u32)>,
    /// When the last of them has crossed.
    until: Time,
}

impl Receivers {
    /// The receivers behind a port from which packets come at `rate` at most, with access links of rate `access`.
    /// `is_uneven` says that packets may come closer together than that: several at one instant, or each connection's
    /// after a delay of its own. `are_shared` says that connections share the access links of their host.
    pub fn behind(rate: Rate, is_uneven: bool, access: Rate, are_shared: bool) -> Self {
        let piles_up = access < rate || is_uneven;
        let asks_path = piles_up || are_shared;
        Self { piles_up, asks_path, crossing: VecDeque::with_capacity(64), until: Time::ZERO }
    }

    /// Whether packets may pile up there. Otherwise none waits for longer than another one takes to cross.
    pub const fn piles_up(&self) -> bool {
        self.piles_up
    }

    /// When a packet of `connection` that came at `left_at` has crossed the access link, which takes `takes`. Where
    /// packets may pile up or connections share links, `own` asks the connection's path instead.
    #[inline]
    pub fn receive(&mut self, connection: u32, takes: Span, left_at: Time, own: impl FnOnce() -> Time) -> Time {
        if self.asks_path { own() } else { self.follow(connection, takes, left_at) }
    }

    #[inline]
    fn follow(&mut self, connection: u32, takes: Span, left_at: Time) -> Time {
        let mut received = left_at + takes;
        if self.until <= left_at {
            self.crossing.clear();
        } else {
            received = self.start_behind(connection, left_at) + takes;
        }
        self.until = self.until.max(received);
        self.crossing.push_back((received, connection));
        received
    }

    /// When a packet of `connection` that came at `left_at` begins to cross, while others are crossing.
    #[inline(never)]
    fn start_behind(&mut self, connection: u32, left_at: Time) -> Time {
        while self.crossing.front().is_some_and(|&(until, _)| until <= left_at) {
            self.crossing.pop_front();
        }
        let before = self.crossing.iter().rev().find(|&&(_, other)| other == connection);
        before.map_or(left_at, |&(until, _)| until.max(left_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::AccessLink;
    use proptest::prelude::*;

    const SIZES: [u64; 3] = [40, 576, 1500];

    proptest! {
        /// Whatever comes out of the egress, and when: also where access links are slower, for which it is not meant.
        #[test]
        fn receivers_answer_as_the_links_of_their_connections(
            packets in prop::collection::vec((0_u32..4, 0_u64..40_000, 0_usize..3), 1..200),
            access in prop::sample::select(vec![1_000_000_u64, 100_000_000, 1_000_000_000]),
        ) {
            let access = Rate::from_bps(access);
            let mut links = [AccessLink::new(Time::ZERO); 4];
            let mut receivers = Receivers { piles_up: false, asks_path: false, crossing: VecDeque::new(), until: Time::ZERO };
            let mut left_at = Time::ZERO;
            for (connection, gap, size) in packets {
                left_at += Span::from_ns(gap);
                let takes = access.time_for(SIZES[size]);
                let own = || unreachable!("nothing piles up");
                let received = receivers.receive(connection, takes, left_at, own);
                prop_assert_eq!(received, links[connection as usize].carry(takes, left_at));
            }
        }
    }

    #[test]
    fn the_path_itself_is_asked_where_packets_pile_up_or_links_are_shared() {
        let [slow, fast] = [10_000_000, 100_000_000].map(Rate::from_bps);
        let (own, takes) = (Time::from_ns(510), Span::from_ns(10));
        for (rate, is_uneven, access, piles_up) in [
            (fast, false, fast, false),
            (slow, false, fast, false),
            (fast, false, slow, true),
            (slow, true, fast, true),
        ] {
            for are_shared in [false, true] {
                let mut receivers = Receivers::behind(rate, is_uneven, access, are_shared);
                assert_eq!(receivers.piles_up(), piles_up);
                let received = receivers.receive(7, takes, Time::ZERO, || own);
                assert_eq!(received, if piles_up || are_shared { own } else { Time::ZERO + takes });
            }
        }
    }
}
