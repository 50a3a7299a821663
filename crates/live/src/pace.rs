//! This file measures whether the hosts see the rate that the link has.
//!
//! In its own time the bottleneck always keeps its rate. On the clock of the hosts it may not: the router may fall
//! behind, catch up, or hand over a packet that nobody takes. So the rate is measured on that clock, over busy
//! stretches in which the bottleneck sends one packet right behind the other. It is the bytes that the hosts took, of
//! packets that followed another one, over the time from hand-over to hand-over. That time is what the link takes for
//! these bytes, plus the lateness of the last packet less that of the first.
//!
//! The error is relative to the link's rate. Over a whole run it is next to nothing unless packets are refused, since a
//! router that falls behind for ever breaks the budget of lateness first. So the worst [`JUDGED`] of backlog is judged,
//! put together of shorter stretches if need be. A second in which packets become 5 ms later is 0.5 % below the rate.

use base::Span;
use std::cmp::Ordering;

/// The length of backlog over which the rate is judged.
pub const JUDGED: Span = Span::from_secs(1);

/// The measure of one direction.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// The lateness of the last packet, ns.
    late_ns: i64,
    all: Stretch,
    /// The stretch since the last judgement.
    under_way: Stretch,
    worst: Option<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    /// How long the link took for it, ns.
    link_ns: i64,
    /// How long it took by the clock, ns.
    clock_ns: i64,
    /// Bytes that were sent.
    sent: u64,
    /// Bytes of these that hosts took.
    taken: u64,
}

impl Stretch {
    fn add(&mut self, behind_ns: i64, later_ns: i64, size: u32, is_taken: bool) {
        self.link_ns += behind_ns;
        self.clock_ns += behind_ns + later_ns;
        self.sent += u64::from(size);
        self.taken += if is_taken { u64::from(size) } else { 0 };
    }

    /// The relative error of the rate: (taken / clock time) / (sent / link time) - 1.
    fn error(&self) -> Option<f64> {
        (self.clock_ns > 0 && self.sent > 0)
            .then(|| self.taken as f64 / self.sent as f64 * (self.link_ns as f64 / self.clock_ns as f64) - 1.0)
    }
}

impl Pace {
    /// Notes a packet of `size` bytes on the wire that was handed over `late` after it was due. The bottleneck took
    /// `behind` to send it right behind another, or zero if it had been idle.
    #[inline]
    pub fn packet(&mut self, size: u32, behind: Span, late: Span, is_taken: bool) {
        let late_ns = late.ns() as i64;
        let later_ns = late_ns - std::mem::replace(&mut self.late_ns, late_ns);
        if behind == Span::ZERO {
            return;
        }
        self.add(behind.ns() as i64, later_ns, size, is_taken);
    }

    /// Notes a packet of `size` bytes of a link that is not ours and has a clock of its own. It should have sent the
    /// next packet after `takes`, and did so after `took`.
    #[inline]
    pub fn followed(&mut self, size: u32, takes: Span, took: Span) {
        self.add(takes.ns() as i64, took.ns() as i64 - takes.ns() as i64, size, true);
    }

    fn add(&mut self, link_ns: i64, later_ns: i64, size: u32, is_taken: bool) {
        self.all.add(link_ns, later_ns, size, is_taken);
        self.under_way.add(link_ns, later_ns, size, is_taken);
        if self.under_way.link_ns >= JUDGED.ns() as i64 {
            let error = std::mem::take(&mut self.under_way).error();
            self.worst = error.into_iter().chain(self.worst).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        }
    }

    /// How far the rate was off over all of the backlog; `None` if there was none.
    pub fn error(&self) -> Option<f64> {
        self.all.error()
    }

    /// How far the rate was off in the worst second of backlog; `None` if there was less than a second.
    pub fn worst(&self) -> Option<f64> {
        self.worst
    }

    /// The order of links by how far they were off in their worst second of backlog; without such a second, by for how
    /// long packets followed one another.
    pub fn by_how_far_off(&self, other: &Self) -> Ordering {
        let key = |pace: &Self| (pace.worst.map_or(-1.0, f64::abs), pace.all.link_ns);
        let ((worst, link_ns), (of_other, other_ns)) = (key(self), key(other));
        worst.total_cmp(&of_other).then(link_ns.cmp(&other_ns))
    }

    /// For how long packets followed one another.
    pub fn backlogged(&self) -> Span {
        Span::from_ns(self.all.link_ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1 ms, each late by `late` us, and taken or not.
    fn pace(packets: impl Iterator<Item = (u64, bool)>) -> Pace {
        let mut pace = Pace::default();
        packets.for_each(|(late, is_taken)| pace.packet(1500, Span::from_ms(1), Span::from_us(late), is_taken));
        pace
    }

    #[test]
    fn being_late_by_the_same_is_no_error() {
        let mut pace = Pace::default();
        pace.packet(1500, Span::ZERO, Span::from_us(700), true);
        (0..1000).for_each(|_| pace.packet(1500, Span::from_ms(1), Span::from_us(700), true));
        assert_eq!((pace.error(), pace.worst()), (Some(0.0), Some(0.0)));
        assert_eq!(pace.backlogged(), Span::from_secs(1));
    }

    #[test]
    fn a_router_that_falls_behind_is_slow() {
        // Each packet 10 us later than the one before: 1010 us for each 1000.
        let pace = pace((1..=3000).map(|k| (10 * k, true)));
        let expected = 1.0 / 1.01 - 1.0;
        assert!((pace.error().expect("backlog") - expected).abs() < 1e-12);
        assert!((pace.worst().expect("three seconds") - expected).abs() < 1e-12);
    }

    #[test]
    fn a_link_with_a_clock_of_its_own_is_measured_by_that() {
        let mut pace = Pace::default();
        // Now late, now making up for it, and 0.1 % slow in all.
        (0..2000).for_each(|k| pace.followed(1500, Span::from_ms(1), Span::from_us(1001 + 500 * (k % 2) - 250)));
        let expected = 1000.0 / 1001.0 - 1.0;
        assert!((pace.worst().expect("two seconds") - expected).abs() < 1e-9);
    }

    #[test]
    fn what_nobody_takes_is_missing() {
        // Ten packets of the second second: 1 % there, 1/3 % of all.
        let pace = pace((0..3000).map(|k| (0, !(1500..1510).contains(&k))));
        assert!((pace.worst().expect("three seconds") + 0.01).abs() < 1e-12);
        assert!((pace.error().expect("backlog") + 0.01 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_second_that_is_made_up_for_is_seen() {
        let pace = pace((0..3000).map(|k| (if (1000..2000).contains(&k) { 6_000 } else { 0 }, true)));
        assert!(pace.error().expect("backlog").abs() < 1e-9);
        // 6 ms more than a second, then 6 ms less.
        assert!(pace.worst().expect("three seconds").abs() > 0.005);
    }

    #[test]
    fn an_idle_link_has_no_rate() {
        let mut pace = Pace::default();
        (0..5000).for_each(|k| pace.packet(1500, Span::ZERO, Span::from_us(k), true));
        assert_eq!((pace.error(), pace.worst()), (None, None));
    }

    #[test]
    fn of_several_links_the_one_furthest_from_its_rate_is_judged() {
        let idle = Pace::default();
        let short = pace((0..300).map(|_| (0, true)));
        let exact = pace((0..1500).map(|_| (0, true)));
        let off = pace((0..1500).map(|at| (20_000 - 10 * at, true)));
        for (less, more) in [(&idle, &short), (&short, &exact), (&exact, &off)] {
            assert_eq!((less.by_how_far_off(more), more.by_how_far_off(less)), (Ordering::Less, Ordering::Greater));
        }
        // The first thousand take 20 ms more, less 999 times 10 us: 1010.01 ms, 0.99 % below the rate.
        assert!(off.worst().is_some_and(|worst| worst.abs() > 0.009));
    }
}
