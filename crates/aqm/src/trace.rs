//! A trace may stand for the rate of a link. It has the instants at which there was an opportunity to deliver, as on a
//! cellular link whose base station serves one phone after another.
//!
//! An opportunity is an instant at which 1500 bytes pass. A smaller packet leaves the rest to those behind it. A larger
//! packet goes on with the next opportunity, and is delivered with its last byte. Bytes that nobody waits for are lost.
//! At its last opportunity the trace begins again: that instant is time zero of the next round.
//!
//! Sources: Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High Throughput and Low Delay over
//! Cellular Networks" (NSDI 2013), §4.2, whose Cellsim this is; Netravali et al., "Mahimahi: Accurate Record-and-Replay
//! for HTTP" (USENIX ATC 2015), mm-link(1), whose files these are.
//!
//! Deviation: mm-link counts the 4 bytes that a TUN device puts before each packet, and so lets 1504 bytes pass. Here
//! packets are counted as IP packets everywhere.

use base::{Rate, Span, Time};
use std::sync::Arc;

/// How many bytes pass at an opportunity.
const BYTES: u32 = 1_500;

/// The instants of opportunities to deliver, over and over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// Milliseconds into each round, which do not fall; the last is the length of a round.
    at_ms: Arc<[u32]>,
}

impl Trace {
    /// A trace of opportunities at these milliseconds; `None` if they are not in order, or all at 0.
    pub fn new(at_ms: impl Into<Arc<[u32]>>) -> Option<Self> {
        let at_ms = at_ms.into();
        (at_ms.is_sorted() && at_ms.last().is_some_and(|&last| last > 0)).then_some(Self { at_ms })
    }

    /// The mean rate of a round, to the bit a second.
    pub fn rate(&self) -> Rate {
        let bits = self.at_ms.len() as u128 * u128::from(BYTES) * 8;
        let bps = bits * 1_000_000_000 / u128::from(self.round().ns());
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX).max(1))
    }

    /// How long a round lasts.
    pub fn round(&self) -> Span {
        Span::from_ms(u64::from(*self.at_ms.last().expect("a trace has opportunities")))
    }
}

/// The opportunities of a trace that are still to come.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    trace: Trace,
    /// The number in the round of the first opportunity that has bytes left.
    index: usize,
    /// When the round began.
    round: Time,
    /// How many bytes that one has left, at least one.
    left: u32,
}

impl Opportunities {
    pub fn new(trace: Trace) -> Self {
        Self { trace, index: 0, round: Time::ZERO, left: BYTES }
    }

    fn at(&self) -> Time {
        self.round + Span::from_ms(u64::from(self.trace.at_ms[self.index]))
    }

    fn next(&mut self) {
        self.left = BYTES;
        self.index += 1;
        if self.index == self.trace.at_ms.len() {
            self.round += self.trace.round();
            self.index = 0;
        }
    }

    /// The first opportunity at `from` or later; those before are lost.
    pub fn ready(&mut self, from: Time) -> Time {
        if self.at() >= from {
            return self.at();
        }
        // The end of a round is an opportunity of that round, and may be one of the next: the earlier round first.
        let length = self.trace.round().ns();
        let rounds = (from.since(self.round).ns() - 1) / length;
        self.round += Span::from_ns(rounds * length);
        let into = from.since(self.round);
        self.index = self.trace.at_ms.partition_point(|&ms| Span::from_ms(u64::from(ms)) < into);
        self.left = BYTES;
        self.at()
    }

    /// Sends `bytes` from the first opportunity on; returns when the last of them passes.
    pub fn send(&mut self, mut bytes: u32) -> Time {
        while bytes > self.left {
            bytes -= self.left;
            self.next();
        }
        let at = self.at();
        self.left -= bytes;
        if self.left == 0 {
            self.next();
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opportunities(at_ms: &[u32]) -> Opportunities {
        Opportunities::new(Trace::new(at_ms.to_vec()).expect("it is a trace"))
    }

    fn ms(at: u64) -> Time {
        Time::ZERO + Span::from_ms(at)
    }

    #[test]
    fn a_trace_has_opportunities_that_do_not_fall() {
        for (at_ms, is_one) in [(&[][..], false), (&[0], false), (&[5, 4], false), (&[1], true), (&[0, 3, 3], true)] {
            assert_eq!(Trace::new(at_ms.to_vec()).is_some(), is_one, "{at_ms:?}");
        }
    }

    #[test]
    fn the_rate_is_the_mean_of_a_round() {
        let rate = |at_ms: &[u32]| Trace::new(at_ms.to_vec()).map(|trace| trace.rate().bps());
        // 1500 bytes a millisecond: 12 Mb/s; three in 7 ms: 36000 bits in 7 ms, 5142857.1 bit/s.
        assert_eq!(rate(&[1]), Some(12_000_000));
        assert_eq!(rate(&[0, 3, 7]), Some(5_142_857));
    }

    #[test]
    fn rounds_follow_each_other() {
        // The ends of rounds, 4 ms and 8 ms, are the beginnings of the next, and there is an opportunity at both.
        let mut each = opportunities(&[0, 1, 4]);
        let ends: Vec<u64> = (0..8).map(|_| each.send(BYTES).ns() / 1_000_000).collect();
        assert_eq!(ends, [0, 1, 4, 4, 5, 8, 8, 9]);
    }

    #[test]
    fn what_nobody_waited_for_is_lost() {
        for at_ms in [&[0, 1, 4][..], &[2, 2, 4], &[4], &[3, 4, 4]] {
            let all: Vec<u64> =
                (0..20).flat_map(|round| at_ms.iter().map(move |&at| round * 4 + u64::from(at))).collect();
            for from in 0..40 {
                // By the list, in its order: neither of the two at one instant is passed over.
                let mut expected = all.iter().filter(|&&at| at >= from);
                let mut skipped = opportunities(at_ms);
                let mut next = || ms(*expected.next().expect("20 rounds are 80 ms"));
                let first = next();
                assert_eq!(skipped.ready(ms(from)), first, "{from}");
                assert_eq!(skipped.send(BYTES), first, "{from}");
                assert_eq!(skipped.ready(Time::ZERO), next(), "{from}");
            }
        }
    }
}
