//! Distributions of delays, sizes and times, drawn by inversion: one uniform number a draw, so that a draw never
//! shifts the ones after it.

use crate::maths;
use crate::stream::Stream;

/// A distribution of a non-negative quantity, in whatever unit its owner states.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always this value.
    Constant(f64),
    /// Uniform between the two.
    Uniform(f64, f64),
    /// Uniform over low, low + step, ..., up to high: the studies drew whole milliseconds.
    Steps {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// Distance between neighbours.
        step: f64,
    },
    /// Exponential with this mean.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Pareto from `scale` upwards: P(X > x) = (scale/x)^shape.
    Pareto {
        /// Smallest value.
        scale: f64,
        /// Tail index; the mean is finite above 1.
        shape: f64,
    },
    /// Weibull: P(X > x) = exp(-(x/scale)^shape).
    Weibull {
        /// Scale.
        scale: f64,
        /// Shape.
        shape: f64,
    },
    /// Log-normal with this median and this standard deviation of the natural logarithm.
    LogNormal {
        /// The median.
        median: f64,
        /// Standard deviation of ln X.
        sigma: f64,
    },
    /// An empirical distribution function: (value, cumulative probability), both rising, the last probability 1,
    /// linear in between.
    Table(Vec<(f64, f64)>),
}

impl Distribution {
    /// Draws one value.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Constant(value) => *value,
            _ => self.quantile(stream.open_unit()),
        }
    }

    /// The value below which the fraction `u` in (0, 1) lies.
    pub fn quantile(&self, u: f64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform(low, high) => low + u * (high - low),
            Self::Steps { low, high, step } => {
                let count = ((high - low) / step).round() + 1.0;
                low + step * (u * count).floor().min(count - 1.0)
            }
            Self::Exponential { mean } => -mean * maths::ln(1.0 - u),
            Self::Pareto { scale, shape } => scale * maths::pow(1.0 - u, -1.0 / shape),
            Self::Weibull { scale, shape } => scale * maths::pow(-maths::ln(1.0 - u), 1.0 / shape),
            Self::LogNormal { median, sigma } => median * maths::exp(sigma * maths::normal_quantile(u)),
            Self::Table(points) => interpolate(points, u),
        }
    }

    /// The mean, infinite for a Pareto with shape at most 1.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform(low, high) | Self::Steps { low, high, .. } => (low + high) / 2.0,
            Self::Exponential { mean } => *mean,
            Self::Pareto { scale, shape } if *shape > 1.0 => scale * shape / (shape - 1.0),
            Self::Pareto { .. } => f64::INFINITY,
            Self::Weibull { scale, shape } => scale * libm::tgamma(1.0 + 1.0 / shape),
            Self::LogNormal { median, sigma } => median * maths::exp(sigma * sigma / 2.0),
            Self::Table(points) => {
                let first = points.first().map_or(0.0, |(value, p)| value * p);
                first + points.windows(2).map(|w| (w[0].0 + w[1].0) / 2.0 * (w[1].1 - w[0].1)).sum::<f64>()
            }
        }
    }

    /// The largest value that can be drawn.
    pub fn max(&self) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform(_, high) | Self::Steps { high, .. } => *high,
            Self::Table(points) => points.last().map_or(0.0, |p| p.0),
            Self::Exponential { .. } | Self::Pareto { .. } | Self::Weibull { .. } | Self::LogNormal { .. } => {
                f64::INFINITY
            }
        }
    }
}

/// Linear interpolation in a distribution function; a first point above probability 0 is an atom at its value.
fn interpolate(points: &[(f64, f64)], u: f64) -> f64 {
    let above = points.partition_point(|&(_, p)| p < u);
    match (above.checked_sub(1).and_then(|below| points.get(below)), points.get(above)) {
        (Some(&(x0, p0)), Some(&(x1, p1))) => x0 + (x1 - x0) * (u - p0) / (p1 - p0),
        (None, Some(&(x, _))) | (Some(&(x, _)), None) => x,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_means() {
        let table = Distribution::Table(vec![(0.0, 0.0), (10.0, 0.5), (30.0, 1.0)]);
        assert_eq!(table.quantile(0.25), 5.0);
        assert_eq!(table.quantile(0.75), 20.0);
        assert_eq!(table.mean(), 12.5);
        assert_eq!(Distribution::Steps { low: 10.0, high: 150.0, step: 1.0 }.quantile(0.999_99), 150.0);
        assert_eq!(Distribution::Pareto { scale: 2.0, shape: 2.0 }.mean(), 4.0);
        assert!((Distribution::Weibull { scale: 1.0, shape: 2.0 }.mean() - 0.886_226_925).abs() < 1e-9);
    }

    #[test]
    fn drawn_means_agree_with_the_stated_ones() {
        let mut stream = Stream::named(3, "dist");
        for dist in [
            Distribution::Uniform(1.0, 3.0),
            Distribution::Exponential { mean: 2.0 },
            Distribution::Weibull { scale: 2.0, shape: 0.8 },
            Distribution::LogNormal { median: 2.0, sigma: 0.5 },
            Distribution::Pareto { scale: 1.0, shape: 3.5 },
        ] {
            let n = 200_000;
            let draws: Vec<f64> = (0..n).map(|_| dist.draw(&mut stream)).collect();
            let mean = draws.iter().sum::<f64>() / n as f64;
            let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n as f64;
            let bound = 4.0 * (variance / n as f64).sqrt();
            assert!((mean - dist.mean()).abs() < bound, "{dist:?}: {mean} against {}", dist.mean());
        }
    }
}
