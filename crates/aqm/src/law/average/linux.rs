//! How the average of Linux's RED and CHOKe comes down while the link is idle: by a table, which `tc` makes and the
//! kernel reads.
//!
//! Source: Linux 6.12, `red_calc_qavg_from_idle_time` (include/net/red.h); iproute2, `tc_red_eval_idle_damping`
//! (tc/tc_red.c).
//!
//! | Linux | here |
//! |---|---|
//! | `Scell_log` | `cell_log` |
//! | `Stab[i]`, i below 255 | the whole part of i times `exponent_per_cell`, at most [`MOST_SHIFT`] |
//! | `Scell_max` | [`LAST_CELL`] cells |
//!
//! The table was meant to hold the paper's decay, (1 - w)^m. What comes of it is another rule, for three reasons:
//! - `tc` writes natural exponents, -m ln(1 - w), and the kernel shifts by them: 2^-x in place of e^-x, whole x alone.
//! - `tc` counts time in ticks of 64 ns and the kernel in microseconds, so that everything comes 15.625 times later.
//! - While the entry is 0 the average falls along a straight line that would reach nothing at the end of the *first*
//!   cell, and stops at half of it.
//!
//! `tc` rounds the time of a packet up to whole ticks since iproute2 6.15; before it was down to whole microseconds.
//!
//! Not copied: the average's fixed point, and that beyond 2^24 us a cell the kernel's 32 bits wrap around. A shift by
//! 31 leaves nothing, as it does of every average that the kernel has.

use base::{Span, maths};

/// A tick of `tc`'s is 64 ns.
const TICKS_PER_S: f64 = 1e9 / 64.0;
/// The largest entry.
const MOST_SHIFT: u64 = 31;
/// The last entry, which is the largest whatever the others are.
const LAST_CELL: u64 = 255;
/// Beyond it the last cell would begin after 2^64 us.
const MOST_CELL_LOG: u32 = 56;

/// The table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// A cell is 2 to this, in microseconds.
    cell_log: u32,
    exponent_per_cell: f64,
}

impl Table {
    /// What `tc` makes of the weight of a sample and the time of a packet.
    pub fn new(weight: f64, slot_s: f64) -> Self {
        // Whole ticks, rounded up; rounding in `slot_s` makes none.
        let slot = (slot_s * TICKS_PER_S * (1.0 - 1e-12)).ceil();
        let exponent_per_tick = -maths::ln(1.0 - weight) / slot;
        let longest = MOST_SHIFT as f64 / exponent_per_tick;
        let cell = |log: u32| (1_u64 << log) as f64;
        let cell_log = (0..MOST_CELL_LOG).find(|&log| longest / cell(log) < 512.0).unwrap_or(MOST_CELL_LOG);
        Self { cell_log, exponent_per_cell: cell(cell_log) * exponent_per_tick }
    }

    /// What is left of an average of 1 after an idle time.
    pub fn left(self, idle: Span) -> f64 {
        let idle_us = (idle.ns() / 1000).min(LAST_CELL << self.cell_log);
        match self.shift(idle_us >> self.cell_log) {
            0 => (1.0 - idle_us as f64 / (1_u64 << self.cell_log) as f64).max(0.5),
            MOST_SHIFT => 0.0,
            shift => 1.0 / (1_u64 << shift) as f64,
        }
    }

    /// An entry.
    fn shift(self, cell: u64) -> u64 {
        match cell {
            0 => 0,
            LAST_CELL => MOST_SHIFT,
            _ => ((cell as f64 * self.exponent_per_cell) as u64).min(MOST_SHIFT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_those_that_tc_shows() {
        // `Scell_log` of six sessions in testdata/tc, with the `ewma`, `avpkt` and `bandwidth` of each.
        for (weight_log, mean_packet, rate_bps, expected) in [
            (9, 1500.0, 10e6, 20),
            (7, 1000.0, 10e6, 17),
            (8, 1000.0, 100e6, 15),
            (10, 1500.0, 10e6, 21),
            (9, 500.0, 10e6, 18),
            (6, 1000.0, 10e6, 16),
        ] {
            let weight = maths::powi(0.5, weight_log);
            assert_eq!(Table::new(weight, 8.0 * mean_packet / rate_bps).cell_log, expected, "{weight_log}");
        }
    }

    #[test]
    fn an_average_of_80_000_bytes_after_a_pause() {
        // `red avpkt 1000 burst 55 bandwidth 10mbit` with a minimum of 30,000: w = 1/32, 12,500 ticks a packet, cells
        // of 2^15 us, a shift by one for 393,702 us (13 cells).
        let table = Table::new(1.0 / 32.0, 8e-4);
        for (idle_us, expected) in [
            (0, 80_000.0),
            (5_000, 67_792.0),
            (16_383, 40_002.0),
            (16_384, 40_000.0),
            (50_000, 40_000.0),
            (300_000, 40_000.0),
            (13 << 15, 40_000.0),
            (1_000_000, 20_000.0),
            (3_000_000, 625.0),
            (60_000_000, 0.0),
        ] {
            let left = 80_000.0 * table.left(Span::from_us(idle_us));
            assert_eq!(left.floor(), expected, "{idle_us} us: {left}");
        }
        assert_eq!(table.left(Span::from_ns(999)), 1.0, "less than a microsecond is nothing");
    }

    #[test]
    fn every_table_begins_with_0_and_rises_to_31() {
        for weight in [1e-12, 1e-6, 0.002, 0.5, 0.999] {
            for slot_s in [1e-9, 1e-5, 1e-3, 1.0] {
                let table = Table::new(weight, slot_s);
                assert_eq!((table.shift(0), table.shift(255)), (0, 31), "{weight} {slot_s}");
                let shifts: Vec<u64> = (0..256).map(|cell| table.shift(cell)).collect();
                assert!(shifts.is_sorted(), "{weight} {slot_s}");
            }
        }
    }

    #[test]
    fn a_weight_of_one_forgets_within_a_microsecond() {
        let table = Table::new(1.0, 1e-3);
        assert_eq!([0, 999, 1000, 1_000_000].map(|ns| table.left(Span::from_ns(ns))), [1.0, 1.0, 0.0, 0.0]);
    }
}
