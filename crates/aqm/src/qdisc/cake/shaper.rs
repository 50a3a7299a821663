//! CAKE's shaper: a clock that each packet moves on by the time it takes, framing included, without bursts.

use crate::param::Values;
use base::{Rate, Span, Time};

/// How packets are framed on the link behind: what they take of it beyond their own size.
#[derive(Clone, Copy, Debug)]
pub struct Framing {
    overhead: u32,
    mpu: u32,
    cells: Cells,
}

#[derive(Clone, Copy, Debug)]
enum Cells {
    None,
    Atm,
    Ptm,
}

impl Framing {
    /// From `overhead`, `mpu` and `framing`.
    pub fn new(values: &Values) -> Self {
        let cells = match values.word("framing") {
            "atm" => Cells::Atm,
            "ptm" => Cells::Ptm,
            _ => Cells::None,
        };
        Self { overhead: values.integer("overhead") as u32, mpu: values.integer("mpu") as u32, cells }
    }

    /// Bytes on the wire for a packet of `size`.
    #[inline]
    pub fn wire(&self, size: u32) -> u32 {
        let bytes = (size + self.overhead).max(self.mpu);
        match self.cells {
            Cells::None => bytes,
            // Whole cells of 48 bytes, 53 on the wire.
            Cells::Atm => bytes.div_ceil(48) * 53,
            // A byte for each 64 or part of them.
            Cells::Ptm => bytes + bytes.div_ceil(64),
        }
    }
}

/// A clock that runs on by the bytes it is charged.
#[derive(Clone, Copy, Debug)]
struct Clock {
    rate: Rate,
    next: Time,
    /// What rounding left over, in units of 1/rate nanoseconds.
    remainder: u64,
}

impl Clock {
    fn charge(&mut self, bytes: u64) {
        let work = bytes * 8_000_000_000 + self.remainder;
        self.next += Span::from_ns(work / self.rate.bps());
        self.remainder = work % self.rate.bps();
    }

    fn restart(&mut self, now: Time) {
        (self.next, self.remainder) = (now, 0);
    }
}

/// The shaper of the whole link.
#[derive(Clone, Copy, Debug)]
pub struct Shaper {
    clock: Clock,
    /// Runs at two thirds of the rate for what is really sent: when drops are charged too, something is sent still.
    failsafe: Clock,
}

impl Shaper {
    /// An idle shaper of `rate`.
    pub fn new(rate: Rate) -> Self {
        let clock = |rate: Rate| Clock { rate, next: Time::ZERO, remainder: 0 };
        // One and a half times the time: three times the bytes at twice the rate.
        Self { clock: clock(rate), failsafe: clock(Rate::from_bps(rate.bps() * 2)) }
    }

    /// When the next packet may go.
    #[inline]
    pub fn next(&self) -> Time {
        self.clock.next.min(self.failsafe.next)
    }

    /// A packet arrives at an empty queue: time that nothing used is not saved up.
    pub fn wake(&mut self, now: Time) {
        if self.clock.next < now {
            self.clock.restart(now);
            self.failsafe.restart(now);
        }
    }

    /// Charges `wire` bytes, sent or lost.
    #[inline]
    pub fn charge(&mut self, wire: u32, is_sent: bool) {
        self.clock.charge(u64::from(wire));
        if is_sent {
            self.failsafe.charge(3 * u64::from(wire));
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
        let mut shaper = Shaper::new(Rate::from_bps(8_000_000));
        (0..10).for_each(|_| shaper.charge(1000, false));
        assert_eq!(shaper.next(), Time::ZERO);
        shaper.charge(1000, true);
        assert_eq!(shaper.next(), Time::from_ns(1_500_000));
    }
}
