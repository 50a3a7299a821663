//! A filter keeps the greatest value of the last rounds in constant memory. It has the best value of the whole window,
//! and the best two of those that came after it. Each takes over when the one before it is too old.
//!
//! Source: K. Nichols's windowed minimum and maximum, lib/win_minmax.c of Linux. The greatest value is exact as long as
//! it is in the window. The value that takes over may be less than the greatest one that is left, but misses no more
//! than the values of a quarter of the window.

/// A value and its round.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct At {
    round: u64,
    value: f64,
}

/// The filter.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct WindowedMax {
    best: [At; 3],
}

impl WindowedMax {
    /// The greatest value of the window; zero before the first.
    #[inline]
    pub fn get(&self) -> f64 {
        self.best[0].value
    }

    /// Takes `value` in `round`; what is more than `window` rounds old is forgotten.
    pub fn update(&mut self, window: u64, round: u64, value: f64) {
        let at = At { round, value };
        let [first, second, third] = &mut self.best;
        if value >= first.value || round - third.round > window {
            self.best = [at; 3];
            return;
        }
        if value >= second.value {
            (*second, *third) = (at, at);
        } else if value >= third.value {
            *third = at;
        }
        if round - first.round > window {
            (*first, *second, *third) = (*second, *third, at);
            if round - first.round > window {
                (*first, *second, *third) = (*second, *third, at);
            }
        } else if second.round == first.round && round - first.round > window / 4 {
            (*second, *third) = (at, at);
        } else if third.round == second.round && round - first.round > window / 2 {
            *third = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_stays_for_the_window() {
        // 9 in round 5 is forgotten when round 16 comes, more than ten later; of 1, 2, ..., that fall from 8 on by one
        // a round, those of the last three quarters are 8 - k at least.
        let mut filter = WindowedMax::default();
        filter.update(10, 5, 9.0);
        for round in 6..=15 {
            filter.update(10, round, 14.0 - round as f64);
            assert_eq!(filter.get(), 9.0, "round {round}");
        }
        filter.update(10, 16, 0.0);
        // The first value looked at beyond a quarter of the window is that of round 8.
        assert_eq!(filter.get(), 6.0);
    }

    #[test]
    fn a_rising_value_is_taken_at_once() {
        let mut filter = WindowedMax::default();
        for round in 0..100 {
            filter.update(10, round, round as f64);
            assert_eq!(filter.get(), round as f64);
        }
    }

    #[test]
    fn a_gap_longer_than_the_window_leaves_nothing() {
        let mut filter = WindowedMax::default();
        filter.update(10, 0, 9.0);
        filter.update(10, 11, 1.0);
        assert_eq!(filter.get(), 1.0);
    }
}
