//! A [`Quantity`] is one thing that a model draws. This file states its mean, its quantiles, and which values carry how
//! much of the sum.
//!
//! The mean says little of a heavy tail: most web objects are mice, but most bytes are in elephants. A quantity states
//! both exactly, from the distribution and not from draws.

use crate::session::Sizes;
use crate::{Piecewise, WebModel, feldmann, packmime};
use base::{Distribution, maths};

/// What a quantity is measured in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// A number of things.
    Count,
}

/// One quantity that a model draws.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// Its name in words.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its distribution.
    pub form: Form,
}

/// How a quantity is distributed.
#[derive(Clone, Debug)]
pub enum Form {
    /// In a form that a scenario can state.
    Stated(Distribution),
    /// By quantiles and a tail.
    Pieces(Piecewise),
    /// By a bounded function from probability to value.
    Quantiles(fn(f64) -> f64),
}

impl Form {
    /// The value below which the fraction `u` in (0, 1) lies.
    pub fn quantile(&self, u: f64) -> f64 {
        match self {
            Self::Stated(distribution) => distribution.quantile(u),
            Self::Pieces(pieces) => pieces.quantile(u),
            Self::Quantiles(quantile) => quantile(u),
        }
    }

    /// The mean; infinite for a Pareto of shape 1 or less.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Stated(distribution) => distribution.mean(),
            Self::Pieces(pieces) => pieces.mean(),
            Self::Quantiles(_) => self.mass_above(0.0),
        }
    }

    /// The part of the mean that values above the quantile of `u` in [0, 1) carry.
    pub fn mass_above(&self, u: f64) -> f64 {
        match self {
            Self::Stated(distribution) => distribution.mass_above(u),
            Self::Pieces(pieces) if u > 0.0 => pieces.mean() * (1.0 - pieces.mass_share(pieces.quantile(u))),
            Self::Pieces(pieces) => pieces.mean(),
            Self::Quantiles(quantile) => integral(*quantile, u),
        }
    }

    /// The fraction of values up to `x`.
    pub fn cumulative(&self, x: f64) -> f64 {
        if let Self::Pieces(pieces) = self {
            return pieces.cumulative(x);
        }
        // Quantiles rise: halve until no number lies between.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if middle < 1.0 && self.quantile(middle.max(f64::MIN_POSITIVE)) <= x {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The quantities that the model called `name` draws by default; empty if it draws none, or if there is no such model.
pub fn quantities(name: &str) -> Vec<Quantity> {
    let Some(model) = name.strip_prefix("web/") else { return Vec::new() };
    if let Some(web) = WebModel::named(model) {
        return vec![
            of("response", Unit::Bytes, Form::Pieces(web.top_level)),
            of("request", Unit::Bytes, Form::Pieces(web.request)),
            of("objects of a page, before rounding down", Unit::Count, Form::Pieces(web.objects)),
            of("think time", Unit::Seconds, Form::Pieces(web.think)),
        ];
    }
    if let Some(session) = feldmann::named(model) {
        let size = match session.size {
            Sizes::Stated(distribution) => Form::Stated(distribution),
            Sizes::Unc2001(pieces) => Form::Pieces(pieces),
        };
        return vec![
            of("object", Unit::Bytes, size),
            of("objects of a page, before rounding up", Unit::Count, Form::Stated(session.objects)),
            of("time between pages", Unit::Seconds, Form::Stated(session.inter_page)),
            of("time between objects", Unit::Seconds, Form::Stated(session.inter_object)),
        ];
    }
    if model == "archive2024" {
        let drawn = crate::page::Drawn::archive2024();
        return vec![
            of("object", Unit::Bytes, Form::Stated(drawn.object)),
            of("document", Unit::Bytes, Form::Stated(drawn.document)),
            of("objects of a page, before rounding down", Unit::Count, Form::Stated(drawn.objects)),
            of("servers of a page, before rounding down", Unit::Count, Form::Stated(drawn.servers)),
            of("time between pages", Unit::Seconds, Form::Stated(drawn.think)),
        ];
    }
    if model == "packmime" {
        return vec![
            of("response, download", Unit::Bytes, Form::Quantiles(|p| packmime::response_quantile(true, p))),
            of(
                "response, validation of a cache",
                Unit::Bytes,
                Form::Quantiles(|p| packmime::response_quantile(false, p)),
            ),
            of("request", Unit::Bytes, Form::Quantiles(packmime::request_quantile)),
            of("delay at the server", Unit::Seconds, Form::Quantiles(packmime::server_delay_quantile)),
        ];
    }
    Vec::new()
}

const fn of(name: &'static str, unit: Unit, form: Form) -> Quantity {
    Quantity { name, unit, form }
}

/// The integral of a bounded quantile function from `u` to 1, by the trapezoidal rule in s = -ln(1 - u), in which
/// Pareto tails are smooth. Beyond s = 36 a double has no probabilities left.
fn integral(quantile: fn(f64) -> f64, u: f64) -> f64 {
    const PIECES: u32 = 20_000;
    let from = -maths::ln(1.0 - u);
    let width = (36.0 - from) / f64::from(PIECES);
    let at = |i: u32| {
        let rest = maths::exp(-(from + f64::from(i) * width));
        rest * quantile((1.0 - rest).max(f64::MIN_POSITIVE))
    };
    width * ((1..PIECES).map(at).sum::<f64>() + (at(0) + at(PIECES)) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionModel;
    use base::Stream;

    #[test]
    fn every_web_model_states_what_it_draws() {
        for model in WebModel::NAMES.iter().chain(SessionModel::NAMES).chain(&["packmime"]) {
            let drawn = quantities(&format!("web/{model}"));
            assert!(!drawn.is_empty(), "{model}");
            for quantity in drawn {
                let (form, name) = (&quantity.form, quantity.name);
                let mean = form.mean();
                assert!(mean.is_finite() && (form.mass_above(0.0) - mean).abs() <= 1e-9 * mean, "{model} {name}");
                for u in [0.1, 0.5, 0.9, 0.99] {
                    let x = form.quantile(u);
                    // Where quantiles are whole numbers or a constant, a value has more than one probability.
                    assert!(form.cumulative(x) >= u - 1e-9, "{model} {name}: {x} at {u}");
                    assert!(form.mass_above(u) <= mean * (1.0 + 1e-12), "{model} {name} at {u}");
                }
            }
        }
    }

    /// Against the mean of draws, within four of its standard errors and what the rule leaves.
    #[test]
    fn integrals_are_the_means_of_draws() {
        for quantity in quantities("web/packmime") {
            let mut stream = Stream::named(5, quantity.name);
            let draws: Vec<f64> = (0..200_000).map(|_| quantity.form.quantile(stream.open_unit()).min(1e6)).collect();
            let n = draws.len() as f64;
            let mean = draws.iter().sum::<f64>() / n;
            let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            // Cut at a megabyte: above, the draws are too few to tell.
            let above = quantity.form.cumulative(1e6);
            let expected = quantity.form.mean() - quantity.form.mass_above(above) + (1.0 - above) * 1e6;
            let bound = 4.0 * (variance / n).sqrt() + 1e-4 * mean;
            assert!((mean - expected).abs() < bound, "{}: {mean} against {expected}", quantity.name);
        }
    }
}
