//! The access links of all receivers behind one port, without a look at each connection.
//!
//! Where an access link is no slower than the link, what comes out of that never piles up behind it. Still a
//! small packet may come right after a large one of the same connection, and must wait until that has crossed. Packets
//! that cross at one time are few there, and all among those that came out last: looking through them costs less than
//! fetching the connection. The answers are those of the connections' own links either way.

use base::{Rate, Span, Time};
use std::collections::VecDeque;

/// What crosses the access links of receivers.
#[derive(Debug)]
pub struct Receivers {
    piles_up: bool,
    /// Packets that cross: until when, and of which connection.
    crossing: VecDeque<(Time, u32)>,
    /// Until when the last of them does.
    until: Time,
}

impl Receivers {
    /// Those behind a port from which packets come at `rate` at most, on access links of rate `access`. `is_uneven`
    /// says that several packets may come at one instant, or each connection's after a delay of its own.
    pub fn behind(rate: Rate, is_uneven: bool, access: Rate) -> Self {
        Self { piles_up: access < rate || is_uneven, crossing: VecDeque::with_capacity(64), until: Time::ZERO }
    }

    /// When a packet of `connection` that came at `left_at` has crossed the access link, on which it takes `takes`.
    /// `own` asks the connection's own path, where packets pile up.
    #[inline]
    pub fn receive(&mut self, connection: u32, takes: Span, left_at: Time, own: impl FnOnce() -> Time) -> Time {
        if self.piles_up { own() } else { self.follow(connection, takes, left_at) }
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

    /// When a packet of `connection` begins to cross that came at `left_at`, while others still do.
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
            let mut receivers = Receivers { piles_up: false, crossing: VecDeque::new(), until: Time::ZERO };
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
    fn the_path_itself_is_asked_where_packets_pile_up() {
        let [slow, fast] = [10_000_000, 100_000_000].map(Rate::from_bps);
        for (rate, is_uneven, access, piles_up) in [
            (fast, false, fast, false),
            (slow, false, fast, false),
            (fast, false, slow, true),
            (slow, true, fast, true),
        ] {
            assert_eq!(Receivers::behind(rate, is_uneven, access).piles_up, piles_up);
        }
        let own = Time::from_ns(510);
        assert_eq!(Receivers::behind(fast, false, slow).receive(7, Span::from_ns(10), Time::ZERO, || own), own);
    }
}
