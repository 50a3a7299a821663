//! This file says when a timer that was set goes off, and by what clock round trips are measured.
//!
//! An ideal timer goes off when its time is up. Linux keeps TCP's timers in a timer wheel, whose slots grow with the
//! wait. A timer goes off at the end of its slot, and is not moved to a finer slot on the way. A wait of 200 ms takes
//! up to 8 ms longer, one of a second up to 64 ms.
//!
//! Source: Linux 6.12, kernel/time/timer.c (`calc_wheel_index`, `calc_index`) at HZ = 1000; inet_csk_reset_xmit_timer,
//! where a wait becomes a whole number of ticks (usecs_to_jiffies).

use crate::stack::Config;
use base::{Span, Time};

/// Nanoseconds of a tick.
const TICK: u64 = 1_000_000;
/// The ticks at which each level of the wheel ends and the next begins (`LVL_START`), but for the last, and the length
/// of its slots as a power of two (`LVL_SHIFT`).
const LEVELS: [(u64, u32); 4] = [(63, 0), (504, 3), (4032, 6), (32_256, 9)];
/// The length of the last level's slots.
const LAST_SHIFT: u32 = 12;

impl Config {
    /// Returns when a timer goes off that is set at `now` to wait for `wait`.
    #[inline]
    pub(crate) fn timer(&self, now: Time, wait: Span) -> Time {
        if self.timer_wheel { wheel(now, wait) } else { now + wait }
    }

    /// How long it took from `from` to `to` by the clock that measures round trips. That of ns-2 counts the ticks
    /// between the two (rtt_update() of tcp.cc); elsewhere they are rounded later.
    pub(crate) fn clocked(&self, from: Time, to: Time) -> Span {
        if self.repair.is_of_ns2() && !self.is_paced() {
            let tick = self.granularity.ns();
            return Span::from_ns((to.ns() / tick - from.ns() / tick) * tick);
        }
        to.since(from)
    }
}

fn wheel(now: Time, wait: Span) -> Time {
    let wait = wait.ns().div_ceil(TICK);
    let [(near, fine), (far, coarse), ..] = LEVELS;
    let shift = match wait {
        wait if wait < near => fine,
        wait if wait < far => coarse,
        _ => LEVELS.iter().find(|level| wait < level.0).map_or(LAST_SHIFT, |level| level.1),
    };
    let slot = ((now.ns() / TICK + wait) >> shift) + 1;
    Time::from_ns((slot << shift) * TICK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots of 1, 8, 64 and 512 ticks; the one in which a wait ends is always waited out.
    #[test]
    fn a_wait_ends_with_its_slot() {
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        for (now_us, wait_us, due_ms) in [
            (0, 40_000, 41),
            (500, 40_000, 41),
            (500, 39_001, 41),
            (0, 62_000, 63),
            (0, 63_000, 64),
            (0, 200_000, 208),
            (0, 207_000, 208),
            (0, 208_000, 216),
            (7_999, 200_000, 208),
            (0, 503_000, 504),
            (0, 1_000_000, 1024),
            (23_999, 1_000_000, 1024),
            (24_000, 1_000_000, 1088),
            (0, 5_000_000, 5120),
        ] {
            let due = wheel(at(now_us), Span::from_us(wait_us));
            assert_eq!(due, at(due_ms * 1000), "{wait_us} us from {now_us} us on");
        }
    }
}
