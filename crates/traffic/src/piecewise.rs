//! A distribution given by a few of its quantiles, with a bounded Pareto tail: the shape in which measured web
//! traffic is usually described.
//!
//! Between two quantiles the logarithm of the value is uniform; above the last one follows P(X > x) ∝ x^-shape, cut
//! at a largest value. A draw is one uniform number and one exponential or power. Means and shares of the mass are in
//! closed form, so that a model built from such distributions can state exactly what it offers.

use base::Stream;
use base::maths;

/// A positive distribution: log-linear between quantiles, then a bounded Pareto tail.
#[derive(Clone, Debug, PartialEq)]
pub struct Piecewise {
    pieces: Vec<Piece>,
    mean: f64,
}

/// The values between two cumulative probabilities.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// Cumulative probability at the low and at the high end.
    from: f64,
    to: f64,
    /// Values there.
    low: f64,
    high: f64,
    /// The mass ∫ x dF of all pieces below this one.
    mass_below: f64,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// ln x uniform; the field is ln(high/low), zero for an atom.
    LogUniform(f64),
    /// Pareto of this shape between low and high.
    Pareto(f64),
}

impl Piecewise {
    /// From quantiles (value, cumulative probability), the first at probability 0 and the last at 1. Values are
    /// positive and do not fall, probabilities rise; two equal values are an atom.
    pub fn new(quantiles: &[(f64, f64)]) -> Self {
        Self::from_parts(quantiles, None)
    }

    /// From quantiles as in [`Self::new`], of which the last is below probability 1. Above it follows a Pareto tail of
    /// `shape` (not 1) up to `max`.
    pub fn with_tail(quantiles: &[(f64, f64)], shape: f64, max: f64) -> Self {
        Self::from_parts(quantiles, Some((shape, max)))
    }

    fn from_parts(quantiles: &[(f64, f64)], tail: Option<(f64, f64)>) -> Self {
        let mut distribution = Self { pieces: Vec::with_capacity(quantiles.len()), mean: 0.0 };
        for pair in quantiles.windows(2) {
            let [(low, from), (high, to)] = [pair[0], pair[1]];
            distribution.push(from, to, low, high, Form::LogUniform(maths::ln(high / low)));
        }
        if let Some((shape, max)) = tail {
            let &(low, from) = quantiles.last().expect("a tail starts at a quantile");
            assert!(shape > 0.0 && shape != 1.0, "a Pareto tail has a positive shape other than 1");
            distribution.push(from, 1.0, low, max, Form::Pareto(shape));
        }
        let ends = (distribution.pieces.first().map(|p| p.from), distribution.pieces.last().map(|p| p.to));
        assert!(ends == (Some(0.0), Some(1.0)), "quantiles span the probabilities 0 to 1");
        distribution
    }

    fn push(&mut self, from: f64, to: f64, low: f64, high: f64, form: Form) {
        assert!(from < to && 0.0 < low && low <= high, "quantiles rise");
        let piece = Piece { from, to, low, high, mass_below: self.mean, form };
        self.mean += piece.mass_up_to(high);
        self.pieces.push(piece);
    }

    /// Draws one value.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        self.quantile(stream.open_unit())
    }

    /// The value below which the fraction `u` in (0, 1) lies.
    #[inline]
    pub fn quantile(&self, u: f64) -> f64 {
        let piece = self.pieces.iter().find(|p| u < p.to).unwrap_or(self.last());
        piece.quantile((u - piece.from) / (piece.to - piece.from))
    }

    /// Draws the remainder, at a random instant, of a span of this distribution. This first wait makes a renewal
    /// process stationary (Feller 1971, vol. II §XI.4). The span under way is drawn in proportion to its length, and
    /// the instant uniformly within it.
    pub fn draw_residual(&self, stream: &mut Stream) -> f64 {
        let (mass, place) = (stream.open_unit() * self.mean, stream.open_unit());
        let piece = self.pieces.iter().rfind(|p| p.mass_below <= mass).unwrap_or(&self.pieces[0]);
        place * piece.value_at_mass(mass - piece.mass_below)
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.last().high
    }

    /// The probability of a value of at most `x`.
    pub fn cumulative(&self, x: f64) -> f64 {
        self.pieces.iter().rfind(|p| p.low <= x).map_or(0.0, |p| p.from + (p.to - p.from) * p.fraction(x.min(p.high)))
    }

    /// The share of the mean that values of at most `x` carry.
    pub fn mass_share(&self, x: f64) -> f64 {
        let mass = self.pieces.iter().rfind(|p| p.low <= x).map_or(0.0, |p| p.mass_below + p.mass_up_to(x.min(p.high)));
        mass / self.mean
    }

    /// This distribution with every value multiplied by `factor`.
    pub fn scaled(&self, factor: f64) -> Self {
        assert!(factor > 0.0, "values stay positive");
        let scale =
            |p: &Piece| Piece { low: p.low * factor, high: p.high * factor, mass_below: p.mass_below * factor, ..*p };
        Self { pieces: self.pieces.iter().map(scale).collect(), mean: self.mean * factor }
    }

    fn last(&self) -> &Piece {
        self.pieces.last().expect("a distribution has a piece")
    }
}

impl Piece {
    /// The value below which the fraction `s` of this piece lies.
    #[inline]
    fn quantile(&self, s: f64) -> f64 {
        match self.form {
            Form::LogUniform(log_ratio) => self.low * maths::exp(log_ratio * s),
            Form::Pareto(shape) => self.low * maths::pow(1.0 - s * self.tail_kept(shape), -1.0 / shape),
        }
    }

    /// The fraction of this piece at or below `x`, which lies in it.
    fn fraction(&self, x: f64) -> f64 {
        match self.form {
            Form::LogUniform(log_ratio) if log_ratio > 0.0 => maths::ln(x / self.low) / log_ratio,
            Form::LogUniform(_) => 1.0,
            Form::Pareto(shape) => (1.0 - maths::pow(x / self.low, -shape)) / self.tail_kept(shape),
        }
    }

    /// ∫ x dF over this piece up to `x`.
    fn mass_up_to(&self, x: f64) -> f64 {
        match self.form {
            Form::LogUniform(log_ratio) if log_ratio > 0.0 => (self.to - self.from) * (x - self.low) / log_ratio,
            Form::LogUniform(_) => (self.to - self.from) * self.low,
            Form::Pareto(shape) => self.pareto_mass(shape) * (1.0 - maths::pow(x / self.low, 1.0 - shape)),
        }
    }

    /// The inverse of [`Self::mass_up_to`].
    fn value_at_mass(&self, mass: f64) -> f64 {
        let x = match self.form {
            Form::LogUniform(log_ratio) => self.low + mass * log_ratio / (self.to - self.from),
            Form::Pareto(shape) => self.low * maths::pow(1.0 - mass / self.pareto_mass(shape), 1.0 / (1.0 - shape)),
        };
        x.clamp(self.low, self.high)
    }

    /// How much of an unbounded Pareto tail lies below the upper end.
    fn tail_kept(&self, shape: f64) -> f64 {
        1.0 - maths::pow(self.low / self.high, shape)
    }

    /// The mass of the piece were its upper end at infinity (negative for shapes below 1, where only differences
    /// mean something).
    fn pareto_mass(&self, shape: f64) -> f64 {
        (self.to - self.from) / self.tail_kept(shape) * self.low * shape / (shape - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Piecewise {
        Piecewise::with_tail(&[(1.0, 0.0), (2.0, 0.3), (2.0, 0.4), (10.0, 0.9)], 1.5, 1000.0)
    }

    /// The midpoint rule over the quantile function, an independent road to means and masses.
    fn integral(distribution: &Piecewise, up_to: f64, f: impl Fn(f64) -> f64) -> f64 {
        let n = 400_000;
        (0..n).map(|i| f(distribution.quantile((i as f64 + 0.5) / n as f64 * up_to))).sum::<f64>() * up_to / n as f64
    }

    #[test]
    fn closed_forms_agree_with_the_quantile_function() {
        let d = example();
        // The midpoint rule errs by about the last cell times the slope there: below 1e-4 of the mean here.
        assert!((integral(&d, 1.0, |x| x) / d.mean() - 1.0).abs() < 1e-4);
        for u in [0.1, 0.29, 0.41, 0.7, 0.95, 0.999] {
            let x = d.quantile(u);
            assert!((d.cumulative(x) - u).abs() < 1e-12, "{u}");
            assert!((integral(&d, u, |x| x) / d.mean() - d.mass_share(x)).abs() < 1e-4, "{u}");
        }
        assert_eq!(d.quantile(0.35), 2.0);
        assert!((d.cumulative(2.0) - 0.4).abs() < 1e-12, "the atom counts as at or below itself");
        assert!((d.mass_share(1000.0) - 1.0).abs() < 1e-12);
        assert!((d.scaled(3.0).mean() / d.mean() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_residual_has_the_mean_of_renewal_theory() {
        // E[residual] = E[X^2] / 2 E[X] (Feller 1971); its own second moment is E[X^3] / 3 E[X].
        let d = example();
        let moment = |k: u64| integral(&d, 1.0, |x| maths::powi(x, k));
        let (want, second) = (moment(2) / (2.0 * d.mean()), moment(3) / (3.0 * d.mean()));
        let mut stream = Stream::named(5, "residual");
        let n = 400_000;
        let mean = (0..n).map(|_| d.draw_residual(&mut stream)).sum::<f64>() / n as f64;
        // Four standard errors.
        assert!((mean - want).abs() < 4.0 * (second / n as f64).sqrt(), "{mean} against {want}");
    }
}
