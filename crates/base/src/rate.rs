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

/// A rate that remembers how long the sizes asked for last take. Packets have few sizes, and this division would cost
/// more than all other arithmetic on a packet.
#[derive(Clone, Debug)]
pub struct Pace {
    rate: Rate,
    /// The last small size and the last large one.
    known: [Taken; 2],
}

/// The time that a size takes: whole nanoseconds, and the remainder in units of 1/rate nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    bytes: u32,
    whole: Span,
    rest: u64,
}

impl Pace {
    /// A pace of this rate.
    pub fn new(rate: Rate) -> Self {
        Self { rate, known: [Taken::default(); 2] }
    }

    /// The time that `bytes` take on the wire, as [`Rate::time_for`] gives it.
    #[inline]
    pub fn time_for(&mut self, bytes: u32) -> Span {
        self.taken(bytes).whole
    }

    #[inline]
    fn taken(&mut self, bytes: u32) -> Taken {
        let known = &mut self.known[usize::from(bytes >= 128)];
        if known.bytes != bytes {
            // 64 bits are enough for packets below 2 GB, and all are.
            let (work, bps) = (u64::from(bytes) * 8_000_000_000, self.rate.bps());
            *known = Taken { bytes, whole: Span::from_ns(work / bps), rest: work % bps };
        }
        *known
    }
}

/// The sending end of a wire: one packet after the other at a fixed rate. What rounding to nanoseconds leaves over
/// is carried into the next packet, so a busy wire never drifts; the remainder is forgotten when the wire idles.
#[derive(Clone, Debug)]
pub struct Serializer {
    pace: Pace,
    free_at: Time,
    /// The part of a nanosecond by which the wire is busy beyond `free_at`, in units of 1/rate nanoseconds.
    remainder: u64,
}

impl Serializer {
    /// An idle wire of `rate`.
    pub fn new(rate: Rate) -> Self {
        Self { pace: Pace::new(rate), free_at: Time::ZERO, remainder: 0 }
    }

    /// The rate of this wire.
    pub const fn rate(&self) -> Rate {
        self.pace.rate
    }

    /// Changes the rate of everything that is sent from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        self.pace = Pace::new(rate);
        // The remainder is less than a nanosecond, and its unit belongs to the old rate.
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
        let Taken { mut whole, rest, .. } = self.pace.taken(bytes);
        let bps = self.pace.rate.bps();
        // Both parts are less than a nanosecond, and so together carry at most one. Comparing with the difference
        // avoids a sum of rates, which could overflow.
        let is_one_more = self.remainder >= bps - rest;
        self.remainder = if is_one_more { self.remainder - (bps - rest) } else { self.remainder + rest };
        whole = whole + Span::from_ns(u64::from(is_one_more));
        self.free_at += whole;
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

    /// Against divisions of all that was sent: nothing drifts, whatever sizes follow each other.
    #[test]
    fn what_is_remembered_is_what_is_reckoned() {
        for bps in [1, 999, 9_600, 10_000_000, 1_000_000_007, 100_000_000_000] {
            let rate = Rate::from_bps(bps);
            let (mut wire, mut pace, mut bits) = (Serializer::new(rate), Pace::new(rate), 0);
            for bytes in [40, 1500, 40, 40, 52, 0, 1500, 1500, 9000, 40, 127, 128, 64] {
                bits += u128::from(bytes) * 8;
                let left_at = wire.send(bytes, Time::ZERO);
                assert_eq!(u128::from(left_at.ns()), bits * 1_000_000_000 / u128::from(bps), "{bytes} at {bps} bit/s");
                assert_eq!(pace.time_for(bytes), rate.time_for(u64::from(bytes)));
            }
        }
    }
}
