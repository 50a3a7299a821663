//! How late packets left, and whether that is within what a live run may be.

use base::Span;
use hdrhistogram::Histogram;

/// What a live run may be late by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    /// The fraction of packets that is within [`Budget::usual`].
    pub fraction: f64,
    /// What that fraction is late by at most.
    pub usual: Span,
    /// What no packet is later than.
    pub most: Span,
}

impl Default for Budget {
    /// 99 % within 200 us, about two full packets' time at 100 Mb/s, and none later than 5 ms, the target of CoDel
    /// (RFC 8289 §4.4): a packet later than that is a queue of its own.
    fn default() -> Self {
        Self { fraction: 0.99, usual: Span::from_us(200), most: Span::from_ms(5) }
    }
}

/// A stretch in which the router neither waited nor worked in time, from which on it is counted as a stall.
pub const STALL: Span = Span::from_ms(1);

/// How late packets were handed over, and stalls.
///
/// A packet's lateness is from the instant that the emulated network gives for its arrival to that at which it is
/// written to the device. What passes between a host's sending a packet and the router's reading it is not in it: the
/// device does not tell when a packet came. It shows as a stall where it is long.
#[derive(Clone, Debug)]
pub struct Lateness {
    late_ns: Histogram<u64>,
    stalls: u64,
    longest: Span,
}

impl Lateness {
    /// Nothing seen.
    pub fn new() -> Self {
        // Up to a minute, at three digits.
        let late_ns = Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are in order");
        Self { late_ns, stalls: 0, longest: Span::ZERO }
    }

    /// A packet left `late`.
    #[inline]
    pub fn packet(&mut self, late: Span) {
        self.late_ns.saturating_record(late.ns());
    }

    /// The router was away for `span`; counted if that is a stall.
    #[inline]
    pub fn away(&mut self, span: Span) {
        self.longest = self.longest.max(span);
        self.stalls += u64::from(span >= STALL);
    }

    /// How many packets left.
    pub fn packets(&self) -> u64 {
        self.late_ns.len()
    }

    /// What the fraction `q` of packets was late by at most.
    pub fn quantile(&self, q: f64) -> Span {
        Span::from_ns(self.late_ns.value_at_quantile(q))
    }

    /// What the latest packet was late by.
    pub fn most(&self) -> Span {
        Span::from_ns(self.late_ns.max())
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

    /// Why the run is void under `budget`; `None` if it is within.
    pub fn breaks(&self, budget: &Budget) -> Option<String> {
        let within = self.within(budget.usual);
        if within < budget.fraction {
            let (usual, fraction) = (budget.usual.ns() / 1000, budget.fraction * 100.0);
            return Some(format!("{:.2} % of packets left within {usual} us, expected {fraction} %", within * 100.0));
        }
        let most = self.most();
        (most > budget.most).then(|| {
            let [most, allowed] = [most, budget.most].map(|span| span.ns() as f64 * 1e-6);
            format!("a packet left {most:.2} ms late, expected {allowed} ms at most")
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
        assert!(most.starts_with("a packet left 6.0") && most.ends_with("expected 5 ms at most"), "{most}");
    }

    #[test]
    fn stalls_are_told_from_short_absences() {
        let mut lateness = Lateness::new();
        [10, 999, 1_000, 30_000].into_iter().for_each(|us| lateness.away(Span::from_us(us)));
        assert_eq!((lateness.stalls(), lateness.longest()), (2, Span::from_ms(30)));
    }
}
