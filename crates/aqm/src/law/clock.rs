//! The clock of a periodic law: ticks at whole multiples of its period, with nothing lost to rounding.

use base::{Span, Time};

/// Ticks at 1, 2, 3, ... periods after the start of the run.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    period_ns: f64,
    ticks: u64,
    next: Time,
}

impl Clock {
    /// A tick every `period`.
    pub fn every(period: Span) -> Self {
        Self::with_period(period.ns() as f64)
    }

    /// `hz` ticks a second. The tick `n` falls on the nanosecond nearest to n / `hz`: 170 Hz stays 170 Hz.
    pub fn at_hz(hz: f64) -> Self {
        Self::with_period(1e9 / hz)
    }

    fn with_period(period_ns: f64) -> Self {
        // Below a nanosecond time would stand still.
        assert!(period_ns >= 1.0, "a period is at least a nanosecond");
        let mut clock = Self { period_ns, ticks: 0, next: Time::ZERO };
        clock.advance();
        clock
    }

    /// When the next tick is due.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Whether a tick is due at `now`; if so, it is taken.
    pub fn take(&mut self, now: Time) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.advance();
        }
        is_due
    }

    fn advance(&mut self) {
        self.ticks += 1;
        self.next = Time::from_ns((self.ticks as f64 * self.period_ns + 0.5) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_that_is_no_whole_nanosecond_does_not_drift() {
        let mut clock = Clock::at_hz(170.0);
        for _ in 1..170 {
            assert!(!clock.take(Time::from_ns(clock.next().ns() - 1)), "an early call is harmless");
            assert!(clock.take(clock.next()));
        }
        assert_eq!(clock.next(), Time::from_ns(1_000_000_000));
    }
}
