//! Response times of all exchanges, in constant memory.

use hdrhistogram::Histogram;

/// The distribution of response times.
#[derive(Clone, Debug)]
pub struct Responses {
    /// In microseconds, three significant digits.
    times: Histogram<u64>,
    within: [u64; Self::BOUNDS_S.len()],
}

impl Responses {
    /// The bounds whose shares are counted exactly, seconds.
    pub const BOUNDS_S: [f64; 3] = [0.5, 1.0, 2.0];

    /// None yet.
    pub fn new() -> Self {
        // Up to eleven days, far beyond any run.
        let times = Histogram::new_with_bounds(1, 1_000_000_000_000, 3).expect("the bounds are in order");
        Self { times, within: [0; Self::BOUNDS_S.len()] }
    }

    /// One more.
    pub fn record(&mut self, seconds: f64) {
        self.times.saturating_record((seconds * 1e6) as u64);
        for (count, bound) in self.within.iter_mut().zip(Self::BOUNDS_S) {
            *count += u64::from(seconds < bound);
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.times.len()
    }

    /// The response time that the fraction `q` did not exceed, seconds, to three digits; `None` if there are none.
    pub fn quantile_s(&self, q: f64) -> Option<f64> {
        (self.count() > 0).then(|| self.times.value_at_quantile(q) as f64 * 1e-6)
    }

    /// The share below [`Responses::BOUNDS_S`]`[index]`.
    pub fn share_within(&self, index: usize) -> Option<f64> {
        (self.count() > 0).then(|| self.within[index] as f64 / self.count() as f64)
    }
}

impl Default for Responses {
    fn default() -> Self {
        Self::new()
    }
}
