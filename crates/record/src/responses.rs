//! The response times of all exchanges are kept in constant memory.

use crate::seconds::seconds;
use base::Span;
use hdrhistogram::Histogram;

/// The distribution of response times.
#[derive(Clone, Debug)]
pub struct Responses {
    /// In microseconds, three significant digits.
    times: Histogram<u64>,
    within: [u64; Self::BOUNDS.len()],
}

impl Responses {
    /// The times for which it is counted exactly how many exchanges were done within them.
    pub const BOUNDS: [Span; 3] = [Span::from_ms(500), Span::from_ms(1000), Span::from_ms(2000)];

    /// A distribution without response times.
    pub fn new() -> Self {
        // Up to eleven days, far beyond any run.
        let times = Histogram::new_with_bounds(1, 1_000_000_000_000, 3).expect("the bounds are in order");
        Self { times, within: [0; Self::BOUNDS.len()] }
    }

    /// Adds a response time. A time that equals a bound counts as within it, as in a distribution function.
    pub fn record(&mut self, time: Span) {
        self.times.saturating_record(time.ns() / 1000);
        for (count, bound) in self.within.iter_mut().zip(Self::BOUNDS) {
            *count += u64::from(time <= bound);
        }
    }

    /// The number of response times.
    pub fn count(&self) -> u64 {
        self.times.len()
    }

    /// The response time that the fraction `q` did not exceed, seconds, to three digits; `None` if there are none.
    pub fn quantile_s(&self, q: f64) -> Option<f64> {
        (self.count() > 0).then(|| seconds((self.times.value_at_quantile(q) * 1000) as f64))
    }

    /// The share that took at most [`Responses::BOUNDS`]`[index]`.
    pub fn share_within(&self, index: usize) -> Option<f64> {
        (self.count() > 0).then(|| self.within[index] as f64 / self.count() as f64)
    }
}

impl Default for Responses {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A distribution function at x counts what is at most x: of times a nanosecond apart around each bound, the first
    /// two.
    #[test]
    fn what_takes_a_bound_exactly_is_within_it() {
        for (index, bound) in Responses::BOUNDS.into_iter().enumerate() {
            let mut responses = Responses::new();
            for ns in [bound.ns() - 1, bound.ns(), bound.ns() + 1] {
                responses.record(Span::from_ns(ns));
            }
            assert_eq!(responses.share_within(index), Some(2.0 / 3.0), "{bound:?}");
        }
    }
}
