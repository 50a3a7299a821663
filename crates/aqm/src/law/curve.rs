//! The curve of RED and its kin gives the probability of a signal for an average queue (Floyd and Jacobson 1993, §4;
//! the second slope: Floyd, "Recommendation on using the gentle_ variant of RED", 2000).

/// The probability of a signal over the average queue: 0, a slope, and a jump or a second slope to 1.
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    min: f64,
    max: f64,
    /// The average at which the probability is 1: `max` itself unless gentle.
    end: f64,
    max_p: f64,
    slope: f64,
    gentle_slope: f64,
}

impl Curve {
    /// The curve with these corners, `min <= max <= end`.
    pub fn new(min: f64, max: f64, end: f64, max_p: f64) -> Self {
        let mut curve = Self { min, max, end, max_p, slope: 0.0, gentle_slope: 0.0 };
        curve.set_max_p(max_p);
        curve
    }

    /// Below this average nothing is signalled.
    #[inline]
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The average at which the first slope ends.
    pub fn max(&self) -> f64 {
        self.max
    }

    /// From this average on everything is signalled.
    pub fn end(&self) -> f64 {
        self.end
    }

    /// The probability at `max`.
    pub fn max_p(&self) -> f64 {
        self.max_p
    }

    /// Moves the corner at `max`. Both slopes follow: ns-2 keeps the first gentle slope, and its curve then jumps.
    pub fn set_max_p(&mut self, max_p: f64) {
        self.max_p = max_p;
        // A slope over no distance is infinite, and never used.
        self.slope = max_p / (self.max - self.min);
        self.gentle_slope = (1.0 - max_p) / (self.end - self.max);
    }

    /// `p_b` at an average queue of `average`.
    #[inline]
    pub fn probability(&self, average: f64) -> f64 {
        if average < self.min {
            0.0
        } else if average < self.max {
            self.slope * (average - self.min)
        } else if average < self.end {
            self.max_p + self.gentle_slope * (average - self.max)
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_has_its_corners() {
        let gentle = Curve::new(5.0, 15.0, 30.0, 0.1);
        let jump = Curve::new(5.0, 15.0, 15.0, 0.1);
        for (average, p, p_jump) in [
            (4.9, 0.0, 0.0),
            (5.0, 0.0, 0.0),
            (10.0, 0.05, 0.05),
            (12.5, 0.075, 0.075),
            (15.0, 0.1, 1.0),
            (22.5, 0.55, 1.0),
            (30.0, 1.0, 1.0),
        ] {
            // Three roundings of numbers up to 30.
            assert!((gentle.probability(average) - p).abs() < 1e-15, "{average}");
            assert!((jump.probability(average) - p_jump).abs() < 1e-15, "{average}");
        }
        // The corners may fall together: the step of DCTCP.
        let step = Curve::new(20.0, 20.0, 20.0, 0.1);
        assert_eq!([step.probability(19.999), step.probability(20.0)], [0.0, 1.0]);
    }

    #[test]
    fn the_curve_stays_whole_when_its_corner_moves() {
        let mut curve = Curve::new(5.0, 15.0, 30.0, 0.1);
        curve.set_max_p(0.5);
        assert!((curve.probability(15.0 - 1e-9) - 0.5).abs() < 1e-9);
        assert_eq!(curve.probability(15.0), 0.5);
        assert!((curve.probability(30.0 - 1e-9) - 1.0).abs() < 1e-9);
    }
}
