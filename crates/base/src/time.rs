//! Instants and spans in integer nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// An instant, in nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than any instant of a run: "no such event".
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds into the run.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// The instant `seconds` into the run, rounded to a nanosecond. Negative values give the start.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self(Span::from_secs_f64(seconds).ns())
    }

    /// Nanoseconds since the start of the run.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the run.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The time since `earlier`; zero if `earlier` is later. This never hides a packet's wait at a link, since links
    /// refuse packets that are offered out of order.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Whether this is a real instant rather than [`Time::NEVER`].
    pub const fn is_set(self) -> bool {
        self.0 != u64::MAX
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }

    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }

    /// A span of `seconds`, rounded to a nanosecond; negative or non-finite values give zero or the longest span.
    pub fn from_secs_f64(seconds: f64) -> Self {
        // `as` saturates, which is what is wanted at both ends.
        Self((seconds * 1e9 + 0.5) as u64)
    }

    /// Nanoseconds.
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// Seconds.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// The difference, zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The distance between two spans.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Span> for Time {
    type Output = Self;
    /// Stops at the start of the run.
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_set() { write!(f, "{:.9}s", self.secs_f64()) } else { write!(f, "never") }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.9}s", self.secs_f64())
    }
}
