//! Rates, and the serializer that turns bytes into time without drift.

use crate::time::{Span, Time};
use std::fmt;

/// Bits a second, at least one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bps` bits a second. A rate of zero is refused in the scenario; here it is an invariant.
    pub const fn from_bps(bps: u64) -> Self {
        assert!(bps > 0, "a rate is positive");
        Self(bps)
    }

    /// Bits a second.
    pub const fn bps(self) -> u64 {
        self.0
    }

    /// Bits a second as a float.
    pub fn bps_f64(self) -> f64 {
        self.0 as f64
    }

    /// The time `bytes` take on the wire, rounded down to a nanosecond. For a stream of packets use
    /// [`Serializer`], which carries what rounding leaves over.
    pub const fn time_for(self, bytes: u64) -> Span {
        // Packets stay in 64 bits: a wide division costs ten times as much.
        if bytes < 1 << 30 {
            return Span::from_ns(bytes * 8_000_000_000 / self.0);
        }
        Span::from_ns((bytes as u128 * 8_000_000_000 / self.0 as u128) as u64)
    }

    /// The whole bytes that pass in `span`.
    pub const fn bytes_in(self, span: Span) -> u64 {
        (self.0 as u128 * span.ns() as u128 / 8_000_000_000) as u64
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

/// The sending end of a wire: one packet after the other at a fixed rate. What rounding to nanoseconds leaves over
/// is carried into the next packet, so a busy wire never drifts; the remainder is forgotten when the wire idles.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Rate,
    free_at: Time,
    /// What is owed beyond `free_at`, in units of 1/rate nanoseconds; always less than one nanosecond.
    remainder: u64,
}

impl Serializer {
    /// An idle wire of `rate`.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, free_at: Time::ZERO, remainder: 0 }
    }

    /// The rate of this wire.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// What is sent from now on is sent at `rate`.
    pub const fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        // What is owed is less than a nanosecond, and its unit is gone.
        self.remainder = 0;
    }

    /// When the last bit of everything sent so far has left.
    pub const fn free_at(&self) -> Time {
        self.free_at
    }

    /// Puts `bytes` on the wire at `now` or as soon as it is free; returns when their last bit has left.
    #[inline]
    pub fn send(&mut self, bytes: u32, now: Time) -> Time {
        if self.free_at < now {
            self.free_at = now;
            self.remainder = 0;
        }
        // At most 2^32 * 8e9 < 2^65: widen only for packets beyond 2 GB, which do not occur.
        let work = bytes as u64 * 8_000_000_000 + self.remainder;
        self.free_at += Span::from_ns(work / self.rate.bps());
        self.remainder = work % self.rate.bps();
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remainder_is_carried() {
        // 3 Gb/s: 1000 bytes take 2666.67 ns; three of them exactly 8000.
        let mut wire = Serializer::new(Rate::from_bps(3_000_000_000));
        let ends: Vec<u64> = (0..3).map(|_| wire.send(1000, Time::ZERO).ns()).collect();
        assert_eq!(ends, [2666, 5333, 8000]);
    }

    #[test]
    fn an_idle_wire_starts_at_once() {
        let mut wire = Serializer::new(Rate::from_bps(8_000_000));
        assert_eq!(wire.send(1000, Time::ZERO), Time::from_ns(1_000_000));
        assert_eq!(wire.send(1000, Time::from_ns(5_000_000)), Time::from_ns(6_000_000));
    }
}
