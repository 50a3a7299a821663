//! PI2 and DualPI2 share this controller. It has one linear probability `p'`: Classic flows get its square, Scalable
//! flows a multiple of it.
//!
//! A Classic flow's rate is in proportion to 1/sqrt(p), a Scalable flow's to 1/p. The square makes the loop of Classic
//! flows linear in `p'` too. So the gains need no tuning by the probability as in PIE, and both get one window (De
//! Schepper, Bondarenko, Tsang and Briscoe, "PI2: A Linearized AQM for both Classic and Scalable TCP", CoNEXT 2016, §4;
//! RFC 9332 §2).

use crate::param::{Kind, Param, Values};
use base::Ecn;

/// The `coupling_factor`.
pub const FACTOR: Param = Param {
    name: "coupling_factor",
    kind: Kind::Number,
    default: "2",
    range: (1.0, 255.0),
    doc: "How many times p' a Scalable flow's packets are marked (k), where a Classic one's are with the square of p'.",
    source: "RFC 9332 §2.5.2.1, C.2; tc-dualpi2(8)",
};

/// The `drop_on_overload`.
pub const DROP_ON_OVERLOAD: Param = Param {
    name: "drop_on_overload",
    kind: Kind::Flag,
    default: "true",
    range: Param::ANY,
    doc: "Once Scalable packets are marked without exception, drop with the square of p' whatever the ECN field; if \
          false, p' goes no further and the queue grows to its limit.",
    source: "RFC 9332 A.2; tc-dualpi2(8)",
};

/// The controller.
#[derive(Clone, Debug)]
pub struct Coupling {
    target_s: f64,
    alpha: f64,
    beta: f64,
    factor: f64,
    drops_on_overload: bool,
    linear: f64,
    delay_old_s: f64,
}

impl Coupling {
    /// The controller of resolved values: `target`, `alpha`, `beta` and those above.
    pub fn new(values: &Values) -> Self {
        Self {
            target_s: values.time("target").secs_f64(),
            alpha: values.number("alpha"),
            beta: values.number("beta"),
            factor: values.number("coupling_factor"),
            drops_on_overload: values.flag("drop_on_overload"),
            linear: 0.0,
            delay_old_s: 0.0,
        }
    }

    /// Puts this controller in the place of `before`, from whose `p'` it goes on.
    #[must_use]
    pub fn instead_of(self, before: &Self) -> Self {
        Self { linear: before.linear, delay_old_s: before.delay_old_s, ..self }
    }

    /// Takes a step at a waiting time of `delay_s`.
    pub fn step(&mut self, delay_s: f64) {
        let step = self.alpha * (delay_s - self.target_s) + self.beta * (delay_s - self.delay_old_s);
        let largest = if self.drops_on_overload { 1.0 } else { 1.0 / self.factor };
        self.linear = (self.linear + step).clamp(0.0, largest);
        self.delay_old_s = delay_s;
    }

    /// Whether steps without waiting leave `p'` at nothing.
    pub fn is_at_rest(&self) -> bool {
        self.linear == 0.0 && self.delay_old_s == 0.0
    }

    /// `p'`.
    #[inline]
    pub fn linear(&self) -> f64 {
        self.linear
    }

    /// The probability of a Classic signal: `p_C`.
    #[inline]
    pub fn classic(&self) -> f64 {
        self.linear * self.linear
    }

    /// The probability of a Scalable mark: `p_CL`, which may exceed 1.
    #[inline]
    pub fn scalable(&self) -> f64 {
        self.linear * self.factor
    }

    /// Whether `p'` may go beyond the point where all Scalable packets are marked.
    pub fn drops_on_overload(&self) -> bool {
        self.drops_on_overload
    }
}

/// Whether a packet is of a Scalable flow by its ECN field: ECT(1), or CE, which may have been ECT(1) (RFC 9331 §5.1).
#[inline]
pub const fn is_scalable(ecn: Ecn) -> bool {
    matches!(ecn, Ecn::Ect1 | Ecn::Ce)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Value;
    use base::Span;

    fn coupling(drop_on_overload: bool) -> Coupling {
        let mut values = Values::default();
        values.fill("target", Value::Time(Span::from_ms(15)));
        values.fill("alpha", Value::Number(0.16));
        values.fill("beta", Value::Number(3.2));
        values.fill("coupling_factor", Value::Number(2.0));
        values.fill("drop_on_overload", Value::Flag(drop_on_overload));
        Coupling::new(&values)
    }

    #[test]
    fn a_step_is_linear_in_the_waiting_time() {
        let mut coupling = coupling(true);
        coupling.step(0.018);
        let before = coupling.linear();
        // 0.16 * 0.005 + 3.2 * 0.002, sums of some roundings.
        coupling.step(0.020);
        assert!((coupling.linear() - before - 0.0072).abs() < 1e-15);
    }

    #[test]
    fn without_drops_on_overload_marks_stop_at_all() {
        for (drops, largest) in [(true, 1.0), (false, 0.5)] {
            let mut coupling = coupling(drops);
            coupling.step(10.0);
            assert_eq!(coupling.linear(), largest);
            assert_eq!((coupling.classic(), coupling.scalable()), (largest * largest, 2.0 * largest));
        }
    }
}
