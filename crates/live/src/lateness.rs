//! This file measures how late packets left, and says whether a live run kept its budget.

use crate::pace::Pace;
use crate::urgency::Waited;
use base::Span;
use hdrhistogram::Histogram;
use scenario::Live;

/// How late a live run may be, and how far from its rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    /// The fraction of packets that may be late by [`Budget::usual`] at most.
    pub fraction: f64,
    /// The most lateness of that fraction.
    pub usual: Span,
    /// The most lateness of any packet, and the longest time that any may lie unread.
    pub most: Span,
    /// How far a backlogged link may be from its rate, as a share of it: [`Pace`].
    pub rate_error: f64,
}

impl Budget {
    /// The budget that the scenario states.
    pub fn of(live: &Live) -> Self {
        let Live { lateness_share, lateness, lateness_max, rate_error, .. } = *live;
        Self { fraction: lateness_share, usual: lateness, most: lateness_max, rate_error }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(&Live::default())
    }
}

/// A stretch of this length or longer in which the router neither waited nor worked in time counts as a stall.
pub const STALL: Span = Span::from_ms(1);

/// How late packets were handed over, how long they may have lain unread, and stalls.
///
/// A packet's lateness runs from the instant at which the emulated network lets it arrive to the instant at which it is
/// written to the device.
///
/// The time from a host's sending a packet to the router's reading it is not part of this, since the device does not
/// say when a packet came. Two other figures bound it. The router knows since when it had not looked, and a packet that
/// it then finds has lain there no longer. The kernel says how long the thread waited for a processor, which bounds how
/// late packets woke it; this is judged second by second.
#[derive(Clone, Debug)]
pub struct Lateness {
    late_ns: Histogram<u64>,
    most: Span,
    pace: [Pace; 2],
    unread: Span,
    stalls: u64,
    longest: Span,
    /// How long the router waited for a processor in each second.
    waited: Vec<Waited>,
}

impl Lateness {
    /// A record of nothing.
    pub fn new() -> Self {
        // Up to a minute, at two digits.
        let late_ns = Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("the bounds are in order");
        let [most, unread, longest] = [Span::ZERO; 3];
        Self { late_ns, most, pace: [Pace::default(), Pace::default()], unread, stalls: 0, longest, waited: Vec::new() }
    }

    /// Notes a packet that left `late`.
    #[inline]
    pub fn packet(&mut self, late: Span) {
        self.late_ns.saturating_record(late.ns());
        self.most = self.most.max(late);
    }

    /// The rate of the packets that came from `side`.
    #[inline]
    pub fn pace_mut(&mut self, side: usize) -> &mut Pace {
        &mut self.pace[side]
    }

    /// The rate of the packets that came from `side`.
    pub fn pace(&self, side: usize) -> &Pace {
        &self.pace[side]
    }

    /// Notes that the router was away for `span`, which counts if it is a stall.
    #[inline]
    pub fn away(&mut self, span: Span) {
        self.longest = self.longest.max(span);
        self.stalls += u64::from(span >= STALL);
    }

    /// Notes that a packet was found that may have lain unread for up to `span`.
    #[inline]
    pub fn unread(&mut self, span: Span) {
        self.unread = self.unread.max(span);
    }

    /// Notes how long the router waited for a processor in the second that has passed.
    pub fn waited(&mut self, waited: Waited) {
        self.waited.push(waited);
    }

    /// How long it waited for a processor in the worst second.
    pub fn longest_waited(&self) -> Span {
        Span::from_ns(self.waited.iter().map(|waited| waited.ns).max().unwrap_or(0))
    }

    /// A second whose waits for a processor say that packets lay unread for longer than `budget` allows: a wait took
    /// longer than usual on average, and all together longer than any may.
    fn starved(&self, budget: &Budget) -> Option<&Waited> {
        self.waited.iter().find(|Waited { ns, times }| *ns > budget.most.ns() && *ns > times * budget.usual.ns())
    }

    /// How many packets left.
    pub fn packets(&self) -> u64 {
        self.late_ns.len()
    }

    /// The lateness that the fraction `q` of packets did not exceed.
    pub fn quantile(&self, q: f64) -> Span {
        Span::from_ns(self.late_ns.value_at_quantile(q)).min(self.most)
    }

    /// The lateness of the latest packet.
    pub fn most(&self) -> Span {
        self.most
    }

    /// The fraction of packets that were late by `span` at most.
    pub fn within(&self, span: Span) -> f64 {
        if self.late_ns.is_empty() { 1.0 } else { self.late_ns.percentile_below(span.ns()) * 0.01 }
    }

    /// How many stalls there were.
    pub fn stalls(&self) -> u64 {
        self.stalls
    }

    /// The longest time away, be it a stall or not.
    pub fn longest(&self) -> Span {
        self.longest
    }

    /// The longest that a packet may have lain unread.
    pub fn longest_unread(&self) -> Span {
        self.unread
    }

    /// Why the run is void under `budget`; `None` if it is within.
    pub fn breaks(&self, budget: &Budget) -> Option<String> {
        let ms = |span: Span| span.ns() as f64 * 1e-6;
        let within = self.within(budget.usual);
        if within < budget.fraction {
            let (usual, fraction) = (budget.usual.ns() / 1000, budget.fraction * 100.0);
            return Some(format!("{:.2} % of packets left within {usual} us, expected {fraction} %", within * 100.0));
        }
        if self.most > budget.most {
            let [most, allowed] = [self.most, budget.most].map(ms);
            return Some(format!("a packet left {most:.2} ms late, expected {allowed} ms at most"));
        }
        if self.unread > budget.most {
            let [unread, allowed] = [self.unread, budget.most].map(ms);
            return Some(format!(
                "packets of the hosts may have lain unread for {unread:.2} ms, expected {allowed} ms at most"
            ));
        }
        if let Some(Waited { ns, times }) = self.starved(budget) {
            let waited = ms(Span::from_ns(*ns));
            return Some(format!(
                "in one second the router waited for a processor {times} times, {waited:.2} ms in all, expected {} us each",
                budget.usual.ns() / 1000
            ));
        }
        ["forward", "in reverse"].iter().zip(&self.pace).find_map(|(way, pace)| {
            let [off, allowed] = [pace.worst()?, budget.rate_error].map(|share| share * 100.0);
            (off.abs() > allowed).then(|| {
                format!("in a second of backlog {way} the rate was off by {off:+.2} %, expected {allowed} % at most")
            })
        })
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(packets: &[(usize, u64)]) -> Lateness {
        let mut lateness = Lateness::new();
        for &(count, us) in packets {
            (0..count).for_each(|_| lateness.packet(Span::from_us(us)));
        }
        lateness
    }

    #[test]
    fn the_budget_is_kept_or_not() {
        let budget = Budget::default();
        assert_eq!(Lateness::new().breaks(&budget), None);
        assert_eq!(late(&[(990, 20), (10, 4_900)]).breaks(&budget), None);
        let share = late(&[(989, 20), (11, 4_900)]).breaks(&budget).expect("void");
        assert_eq!(share, "98.90 % of packets left within 200 us, expected 99 %");
        let most = late(&[(9_999, 20), (1, 6_000)]).breaks(&budget).expect("void");
        assert_eq!(most, "a packet left 6.00 ms late, expected 5 ms at most");
    }

    #[test]
    fn packets_that_lie_unread_and_wrong_rates_break_it() {
        let budget = Budget::default();
        let mut unread = late(&[(1000, 20)]);
        unread.unread(Span::from_ms(5));
        assert_eq!(unread.breaks(&budget), None);
        unread.unread(Span::from_us(5_010));
        let reason = unread.breaks(&budget).expect("void");
        assert_eq!(reason, "packets of the hosts may have lain unread for 5.01 ms, expected 5 ms at most");
        let mut slow = late(&[(1000, 20)]);
        // One packet in a hundred is not taken.
        (0..1000).for_each(|k| slow.pace_mut(1).packet(100, Span::from_ms(1), Span::ZERO, k % 100 != 0));
        let reason = slow.breaks(&budget).expect("void");
        assert_eq!(reason, "in a second of backlog in reverse the rate was off by -1.00 %, expected 0.5 % at most");
    }

    #[test]
    fn waiting_for_a_processor_breaks_it() {
        let budget = Budget::default();
        let waited = |ms: u64, times| {
            let mut lateness = late(&[(1000, 20)]);
            lateness.waited(Waited { ns: 1_000_000, times: 5000 });
            lateness.waited(Waited { ns: ms * 1_000_000, times });
            lateness.breaks(&budget)
        };
        assert_eq!(waited(20, 1000), None, "20 us each");
        assert_eq!(waited(5, 1), None, "no packet waited for longer than it may");
        let reason = waited(8, 2).expect("void");
        assert_eq!(
            reason,
            "in one second the router waited for a processor 2 times, 8.00 ms in all, expected 200 us each"
        );
    }

    #[test]
    fn stalls_are_told_from_short_absences() {
        let mut lateness = Lateness::new();
        [10, 999, 1_000, 30_000].into_iter().for_each(|us| lateness.away(Span::from_us(us)));
        assert_eq!((lateness.stalls(), lateness.longest()), (2, Span::from_ms(30)));
    }
}
