//! RED in any of its dialects: as it is reckoned here, or in ALTQ's whole numbers.

use super::altq::Altq;
use super::{Arrival, Detector, Gauges, Verdict};
use crate::packet::Backlog;
use crate::param::Values;
use base::{Rate, Stream, Time};

/// RED without the stream it draws from, for those who offer all dialects. What each method does stands at
/// [`Detector`].
#[derive(Clone, Debug)]
pub enum Form {
    /// The dialects that differ in a few answers.
    Reckoned(Detector),
    /// The dialect `altq`.
    Altq(Altq),
}

macro_rules! either {
    ($form:expr, $red:ident => $answer:expr) => {
        match $form {
            Form::Reckoned($red) => $answer,
            Form::Altq($red) => $answer,
        }
    };
}

impl Form {
    /// RED from resolved values, before a link of `rate`.
    pub fn new(values: &Values, rate: Rate) -> Self {
        match values.word("dialect") {
            "altq" => Self::Altq(Altq::new(values)),
            _ => Self::Reckoned(Detector::new(values, rate)),
        }
    }

    /// See [`Detector::instead_of`]. The dialect does not change.
    #[must_use]
    pub fn instead_of(self, before: &Self) -> Self {
        match (self, before) {
            (Self::Reckoned(red), Self::Reckoned(before)) => Self::Reckoned(red.instead_of(before)),
            (Self::Altq(red), Self::Altq(before)) => Self::Altq(red.instead_of(before)),
            (form, _) => form,
        }
    }

    /// See [`Detector::observe`].
    #[inline]
    pub fn observe(&mut self, backlog: Backlog, now: Time) {
        either!(self, red => red.observe(backlog, now));
    }

    /// See [`Detector::judge`].
    #[inline]
    pub fn judge(&mut self, arrival: &Arrival, stream: &mut Stream) -> Verdict {
        either!(self, red => red.judge(arrival, stream))
    }

    /// See [`Detector::overflow`].
    pub fn overflow(&mut self, arrival: &Arrival, stream: &mut Stream) {
        match self {
            Self::Reckoned(red) => red.overflow(arrival, stream),
            Self::Altq(red) => red.overflow(arrival),
        }
    }

    /// See [`Detector::idle_from`].
    pub fn idle_from(&mut self, now: Time) {
        either!(self, red => red.idle_from(now));
    }

    /// See [`Detector::gauges`].
    pub fn gauges(&self) -> Gauges {
        either!(self, red => red.gauges())
    }

    /// See [`Detector::average`].
    #[inline]
    pub fn average(&self) -> f64 {
        either!(self, red => red.average())
    }

    /// See [`Detector::average_at`].
    pub fn average_at(&self, now: Time) -> f64 {
        either!(self, red => red.average_at(now))
    }

    /// See [`Detector::max_p`].
    pub fn max_p(&self) -> f64 {
        either!(self, red => red.max_p())
    }

    /// See [`Detector::set_max_p`].
    pub fn set_max_p(&mut self, max_p: f64) {
        either!(self, red => red.set_max_p(max_p));
    }

    /// See [`Detector::band`].
    pub fn band(&self) -> (f64, f64) {
        either!(self, red => red.band())
    }
}
