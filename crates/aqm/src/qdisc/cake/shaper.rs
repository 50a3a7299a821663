//! CAKE's shaper is a clock. Each packet moves it on by the time that the packet takes, framing included. It allows no
//! bursts.
//!
//! Linux loses a part of a nanosecond with each packet, so that its clock runs up to a nanosecond a packet too fast.

use crate::Cells;
use crate::law::cobalt::Precision;
use crate::param::Values;
use base::{Rate, Span, Time};

/// How packets are framed on the link behind: how much of it they take beyond their own size.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    overhead: u32,
    mpu: u32,
    cells: Cells,
}

impl Framing {
    /// The framing of `overhead`, `mpu` and `framing`.
    pub fn new(values: &Values) -> Self {
        let word = values.word("framing");
        let found = Cells::WORDS.into_iter().find(|(name, _)| *name == word);
        let (_, cells) = found.expect("the parameter has these words");
        Self { overhead: values.integer("overhead") as u32, mpu: values.integer("mpu") as u32, cells }
    }

    /// Bytes on the wire for a packet of `size`.
    #[inline]
    pub fn wire(&self, size: u32) -> u32 {
        self.cells.wire((size + self.overhead).max(self.mpu))
    }
}

/// The time that bytes take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// The time is exact, and rounded down to a nanosecond.
    Exact(Rate),
    /// Linux: `ns` of 2^-`shift` nanoseconds a byte.
    Scaled {
        /// Below 2^34.
        ns: u64,
        /// At most 34.
        shift: u32,
    },
}

impl Pace {
    /// The pace of `rate`.
    pub fn new(rate: Rate, precision: Precision) -> Self {
        if precision == Precision::Exact {
            return Self::Exact(rate);
        }
        // cake_set_rate()
        let (mut ns, mut shift) = ((1_000_000_000 << 34) / (rate.bps() / 8).max(64), 34);
        while ns >> 34 != 0 {
            (ns, shift) = (ns >> 1, shift - 1);
        }
        Self::Scaled { ns, shift }
    }

    /// The time of a packet.
    #[inline]
    pub fn time(self, bytes: u32) -> Span {
        match self {
            Self::Exact(rate) => rate.time_for(u64::from(bytes)),
            Self::Scaled { ns, shift } => Span::from_ns((u64::from(bytes) * ns) >> shift),
        }
    }
}

/// A clock that runs on by the bytes it is charged.
#[derive(Clone, Copy, Debug)]
struct Clock {
    next: Time,
    /// The part of a nanosecond that rounding left over, in units of 1/rate nanoseconds.
    remainder: u64,
}

impl Clock {
    /// Charges bytes at `bps`, and carries over what is left of a nanosecond.
    fn charge(&mut self, bytes: u64, bps: u64) {
        let work = bytes * 8_000_000_000 + self.remainder;
        self.next += Span::from_ns(work / bps);
        self.remainder = work % bps;
    }

    fn restart(&mut self, now: Time) {
        (self.next, self.remainder) = (now, 0);
    }
}

/// The shaper of the whole link.
#[derive(Clone, Copy, Debug)]
pub struct Shaper {
    pace: Pace,
    clock: Clock,
    /// A clock of packets that are really sent, at two thirds of the rate. So some are sent even if drops are charged
    /// too.
    failsafe: Clock,
}

impl Shaper {
    /// An idle shaper of `pace`, which begins at `now`.
    pub fn new(pace: Pace, now: Time) -> Self {
        let clock = Clock { next: now, remainder: 0 };
        Self { pace, clock, failsafe: clock }
    }

    /// Lets the shaper go on at `pace` from its next packet on. What is charged stays; a part of a nanosecond is lost.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        if pace != self.pace {
            self.pace = pace;
            (self.clock.remainder, self.failsafe.remainder) = (0, 0);
        }
        self
    }

    /// When the next packet may go.
    #[inline]
    pub fn next(&self) -> Time {
        self.clock.next.min(self.failsafe.next)
    }

    /// Hears that a packet arrives at an empty queue. Time that nothing used is not saved up.
    pub fn wake(&mut self, now: Time) {
        if self.clock.next < now {
            self.clock.restart(now);
            self.failsafe.restart(now);
        }
    }

    /// Charges `wire` bytes that were sent or lost.
    #[inline]
    pub fn charge(&mut self, wire: u32, is_sent: bool) {
        match self.pace {
            Pace::Exact(rate) => {
                self.clock.charge(u64::from(wire), rate.bps());
                if is_sent {
                    // One and a half times the time: three times the bytes at twice the rate.
                    self.failsafe.charge(3 * u64::from(wire), 2 * rate.bps());
                }
            }
            Pace::Scaled { .. } => {
                let time = self.pace.time(wire);
                self.clock.next += time;
                if is_sent {
                    self.failsafe.next += time + time / 2;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_is_counted() {
        let framing = |overhead, mpu, cells| Framing { overhead, mpu, cells };
        // 40 bytes fill one cell of 48, 49 two, 1500 thirty-two.
        for (size, wire) in [(40, 53), (48, 53), (49, 106), (1500, 1696)] {
            assert_eq!(framing(0, 0, Cells::Atm).wire(size), wire);
        }
        assert_eq!(framing(8, 0, Cells::Atm).wire(40), 53);
        assert_eq!(framing(9, 0, Cells::Atm).wire(40), 106);
        assert_eq!(framing(0, 0, Cells::Ptm).wire(64), 65);
        assert_eq!(framing(0, 0, Cells::Ptm).wire(65), 67);
        assert_eq!(framing(18, 64, Cells::None).wire(40), 64);
        assert_eq!(framing(18, 64, Cells::None).wire(100), 118);
    }

    #[test]
    fn lost_packets_delay_others_by_half_at_most() {
        // 1 byte a microsecond; ten packets of 1000 bytes lost, then one sent.
        let mut shaper = Shaper::new(Pace::new(Rate::from_bps(8_000_000), Precision::Exact), Time::ZERO);
        (0..10).for_each(|_| shaper.charge(1000, false));
        assert_eq!(shaper.next(), Time::ZERO);
        shaper.charge(1000, true);
        assert_eq!(shaper.next(), Time::from_ns(1_500_000));
    }

    #[test]
    fn what_rounding_leaves_over_is_lost_in_linux_alone() {
        // 3 Mb/s: 1000 bytes take 2,666,666 and two thirds of a nanosecond.
        for (precision, next) in [(Precision::Exact, 8_000_000), (Precision::Integer, 7_999_998)] {
            let mut shaper = Shaper::new(Pace::new(Rate::from_bps(3_000_000), precision), Time::ZERO);
            (0..3).for_each(|_| shaper.charge(1000, true));
            assert_eq!(shaper.next(), Time::from_ns(next));
        }
    }
}
