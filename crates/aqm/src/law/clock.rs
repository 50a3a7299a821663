//! The clock of a periodic law ticks at whole multiples of its period. Nothing is lost to rounding.

use base::{Span, Time};

/// Ticks at 1, 2, 3, ... periods after the start of the run, or after the period was last changed.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Time,
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
        let mut clock = Self { start: Time::ZERO, period_ns, ticks: 0, next: Time::ZERO };
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

    /// Takes so many ticks at once.
    pub fn skip(&mut self, ticks: u64) {
        self.ticks += ticks;
        self.next = self.at(self.ticks);
    }

    fn advance(&mut self) {
        self.skip(1);
    }

    fn at(&self, ticks: u64) -> Time {
        self.start + Span::from_ns((ticks as f64 * self.period_ns + 0.5) as u64)
    }

    /// Puts this clock in the place of `before`. Its first tick comes a period after the last one of `before`, but not
    /// before `now`. With the same period it is `before`.
    #[must_use]
    pub fn instead_of(self, before: Self, now: Time) -> Self {
        if self.period_ns == before.period_ns {
            return before;
        }
        let period = self.next.since(self.start);
        let last = before.at(before.ticks - 1);
        let mut clock = Self { start: last.max(Time::ZERO + now.since(Time::ZERO + period)), ticks: 0, ..self };
        clock.advance();
        clock
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

    #[test]
    fn another_period_counts_from_the_last_tick_and_makes_up_for_none() {
        let ms = |ms: u64| Time::from_ns(ms * 1_000_000);
        let (fast, slow) = (Clock::every(Span::from_ms(10)), Clock::every(Span::from_ms(40)));
        let mut ticked = slow;
        assert!(ticked.take(ms(40)));
        for (clock, before, now, next) in [
            (fast, slow, 0, 10),
            (fast, ticked, 45, 50),
            (fast, ticked, 75, 75),
            (slow, fast, 5, 40),
            (slow, ticked, 45, 80),
        ] {
            let mut clock = clock.instead_of(before, ms(now));
            assert_eq!(clock.next(), ms(next));
            let period = clock.period_ns as u64;
            assert!(clock.take(ms(next)));
            assert_eq!(clock.next().since(ms(next)).ns(), period);
        }
    }
}
