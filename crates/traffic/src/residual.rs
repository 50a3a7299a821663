//! A [`Residual`] draws how much is left of a span at a random instant. This first wait makes a renewal process
//! stationary from its first instant on (Feller 1971, vol. II §XI.4).
//!
//! The span under way is drawn in proportion to its length, and the instant uniformly within it. Lengths come from a
//! table of the distribution's mass by probability, which is finer and finer towards the tail, so that any distribution
//! will do. A heavy tail goes on beyond the table: of a Pareto of shape 1.05, a quarter of the mass lies beyond
//! probability 1 - 2^-40. That mass counts as spans of the length at the table's end, which is longer than runs.

use base::{Distribution, Stream};

/// The residual of a distribution.
#[derive(Clone, PartialEq, Debug)]
pub struct Residual {
    distribution: Distribution,
    cells: Vec<Cell>,
    /// All of the mass: that of the table, and of a heavy tail that beyond it.
    mass: f64,
}

/// A range of probabilities that begins where the cell before ends.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Cell {
    /// Where it ends.
    to: f64,
    /// The mass ∫ x dF up to there.
    mass: f64,
}

/// How many cells each halving of the tail has, and how many halvings there are. Within a cell a Pareto of shape 2
/// varies by 1.6 %. Beyond the last, with probability 2^-40, lies a millionth of its mass.
const CELLS: u32 = 32;
const HALVINGS: u32 = 40;
/// A smaller share of the mass beyond the table is ignored, since the table's own rounding is as large.
const BEYOND: f64 = 1e-3;

impl Residual {
    /// The residual of `distribution`.
    pub fn of(distribution: &Distribution) -> Self {
        let mut cells = vec![Cell { to: 0.0, mass: 0.0 }];
        let (mut last, mut tail) = (cells[0], 1.0);
        for _ in 0..HALVINGS {
            for step in 1..=CELLS {
                let to = 1.0 - tail + tail / 2.0 * f64::from(step) / f64::from(CELLS);
                let middle = distribution.quantile(f64::midpoint(last.to, to));
                last = Cell { to, mass: last.mass + (to - last.to) * middle };
                cells.push(last);
            }
            tail /= 2.0;
        }
        let mean = distribution.mean();
        let has_tail = mean.is_finite() && distribution.max().is_infinite();
        let mass = if has_tail && last.mass < (1.0 - BEYOND) * mean { mean } else { last.mass };
        Self { distribution: distribution.clone(), cells, mass }
    }

    /// The mean of the distribution itself.
    pub fn mean(&self) -> f64 {
        self.distribution.mean()
    }

    /// The distribution that it is the residual of.
    pub fn distribution(&self) -> &Distribution {
        &self.distribution
    }

    /// Draws how much of the span is left.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        let (mass, place) = (stream.open_unit() * self.mass, stream.open_unit());
        let above = self.cells.partition_point(|cell| cell.mass < mass).clamp(1, self.cells.len() - 1);
        let (low, high) = (self.cells[above - 1], self.cells[above]);
        let share = if high.mass > low.mass { ((mass - low.mass) / (high.mass - low.mass)).min(1.0) } else { 0.5 };
        // Quantiles are asked for strictly between 0 and 1.
        let u = (low.to + share * (high.to - low.to)).max(f64::MIN_POSITIVE);
        place * self.distribution.quantile(u)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::maths;

    /// Draws and compares the distribution function at ten places, with four standard errors of a share, as far as runs
    /// go: a million seconds.
    fn check(distribution: &Distribution, cumulative: impl Fn(f64) -> f64) {
        let residual = Residual::of(distribution);
        assert!((residual.mean() / distribution.mean() - 1.0).abs() < 1e-3, "{} {distribution:?}", residual.mean());
        let mut stream = Stream::named(3, "residual");
        let n = 200_000;
        let mut draws: Vec<f64> = (0..n).map(|_| residual.draw(&mut stream)).collect();
        draws.sort_by(f64::total_cmp);
        for tenth in 0..10 {
            let place = n * (2 * tenth + 1) / 20;
            if draws[place] > 1e6 {
                break;
            }
            let (found, wanted) = ((place as f64 + 0.5) / n as f64, cumulative(draws[place]));
            let bound = 4.0 * (wanted * (1.0 - wanted) / n as f64).sqrt();
            assert!((found - wanted).abs() < bound, "{distribution:?}: {found} against {wanted}");
        }
    }

    #[test]
    fn it_is_that_of_renewal_theory() {
        // P(residual <= x) is the integral of 1 - F up to x, over the mean.
        check(&Distribution::Constant(10.0), |x| x / 10.0);
        check(&Distribution::Exponential { mean: 10.0 }, |x| 1.0 - maths::exp(-x / 10.0));
        check(&Distribution::Uniform(5.0, 15.0), |x| {
            let over = (x - 5.0).max(0.0);
            (x - over * over / 20.0) / 10.0
        });
        // Scale 25 and shape 2: 1 - F is (25/x)^2 from 25 on.
        check(&Distribution::Pareto { scale: 25.0, shape: 2.0 }, |x| {
            if x < 25.0 { x / 50.0 } else { (25.0 + 625.0 * (1.0 / 25.0 - 1.0 / x)) / 50.0 }
        });
        // Mean 10 and a shape near 1, whose tail no table reaches: P(residual > x) = (scale/x)^0.05/1.05 from scale on.
        let scale = 10.0 * 0.05 / 1.05;
        check(&Distribution::Pareto { scale, shape: 1.05 }, |x| {
            if x < scale { x / 10.0 } else { 1.0 - maths::exp(-0.05 * maths::ln(x / scale)) / 1.05 }
        });
    }
}
