//! The average queue of RED and its kin is an exponentially weighted mean over arrivals. While the link is idle it
//! decays as if arrivals had found the queue empty (Floyd and Jacobson 1993, §4 and §11); in Linux by
//! [another rule](linux).
//!
//! | paper | here |
//! |---|---|
//! | `w_q` | `weight` |
//! | `avg` | `value` |
//! | `q_time` | `idle_since` |
//! | `s`, transmission time of a small packet | `slot_s` |

pub mod linux;

use base::{Time, maths};
use linux::Table;

/// How the average resumes after the link was idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// `avg <- (1 - w)^m avg` with m = idle time / s, and no sample of the arrival's own (the paper, §11).
    Decay,
    /// m is rounded down and the arrival's sample follows: one decay more (ns-2).
    DecayAndSample,
    /// By Linux's [`Table`], in whole microseconds, and no sample.
    Table,
}

/// What idle time does to an average, with the numbers for it.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Decay {
        /// ln(1 - w) / s: what the logarithm of the average loses each idle second.
        per_s: f64,
    },
    DecayAndSample {
        slot_s: f64,
    },
    Table(Table),
}

/// An exponentially weighted average of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Average {
    value: f64,
    weight: f64,
    rule: Rule,
    /// An average that has decayed below this is 0.
    least: f64,
    /// Idle times shorter than this do not decay the average (ns-2 rounds them down); 0 if all do.
    spell_ns: u64,
    /// Since when the link is idle; [`Time::NEVER`] while it is busy.
    idle_since: Time,
}

impl Average {
    /// An average of zero on an idle link, with `weight` for each sample, decaying once in `slot_s` seconds of idle.
    pub fn new(weight: f64, slot_s: f64, idle: Idle) -> Self {
        Self {
            value: 0.0,
            weight,
            rule: match idle {
                Idle::Decay => Rule::Decay { per_s: maths::ln(1.0 - weight) / slot_s },
                Idle::DecayAndSample => Rule::DecayAndSample { slot_s },
                Idle::Table => Rule::Table(Table::new(weight, slot_s)),
            },
            least: 0.0,
            // A nanosecond less than a slot, lest rounding count; what is between goes through the division.
            spell_ns: if idle == Idle::DecayAndSample { (slot_s * 1e9).floor().max(1.0) as u64 - 1 } else { 0 },
            idle_since: Time::ZERO,
        }
    }

    /// Prepares the average for a law that treats all averages below `threshold` alike. If that is above 0, an average
    /// that has decayed below the least normal number becomes 0, because processors are slow with subnormal numbers.
    #[must_use]
    pub fn compared_with(self, threshold: f64) -> Self {
        Self { least: if threshold > 0.0 { threshold.min(f64::MIN_POSITIVE) } else { 0.0 }, ..self }
    }

    /// Puts this average in the place of `before`, from whose value it goes on.
    #[must_use]
    pub fn instead_of(self, before: Self) -> Self {
        Self { value: before.value, idle_since: before.idle_since, ..self }
    }

    /// Takes the queue that an arrival found into the average; returns the average.
    #[inline]
    pub fn sample(&mut self, queue: f64, now: Time) -> f64 {
        // A short idle time does the same as none: one branch for both, which goes one way while acknowledgements pass.
        if self.idle_since.ns() <= now.ns().saturating_sub(self.spell_ns) {
            self.resume(queue, now);
        } else {
            self.idle_since = Time::NEVER;
            self.weigh(queue);
        }
        self.value
    }

    /// Moves the average towards `queue` by the weight. With a weight of one it is the queue itself, which difference
    /// and sum may miss by a rounding, so that laws would not find the two equal.
    #[inline]
    fn weigh(&mut self, queue: f64) {
        let moved = self.value + self.weight * (queue - self.value);
        self.value = if self.weight < 1.0 { moved } else { queue };
    }

    fn resume(&mut self, queue: f64, now: Time) {
        let value = self.at(now);
        self.value = if value < self.least { 0.0 } else { value };
        self.idle_since = Time::NEVER;
        if let Rule::DecayAndSample { .. } = self.rule {
            self.weigh(queue);
        }
    }

    /// The link is idle from `now` on, if it was not already.
    pub fn idle_from(&mut self, now: Time) {
        self.idle_since = self.idle_since.min(now);
    }

    /// The average after the last sample.
    #[inline]
    pub fn value(&self) -> f64 {
        self.value
    }

    /// The average as an arrival at `now` would find it, before its own sample.
    pub fn at(&self, now: Time) -> f64 {
        let idle = now.since(self.idle_since);
        let idle_s = idle.secs_f64();
        match self.rule {
            // Also keeps w = 1 from multiplying zero time by an infinite decay. What is nothing stays so.
            _ if idle_s <= 0.0 || self.value == 0.0 => self.value,
            Rule::Decay { per_s } => self.value * maths::exp(per_s * idle_s),
            Rule::DecayAndSample { slot_s } => self.value * maths::powi(1.0 - self.weight, whole_slots(idle_s, slot_s)),
            Rule::Table(table) => self.value * table.left(idle),
        }
    }
}

/// How many whole slots fit into an idle time. An idle time of whole slots has them all even if rounding made it a
/// little shorter: such a fraction of a slot is below a nanosecond.
pub fn whole_slots(idle_s: f64, slot_s: f64) -> u64 {
    (idle_s / slot_s * (1.0 + 1e-12)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(weight: f64, value: f64, idle: Idle) -> Average {
        Average { value, idle_since: Time::NEVER, ..Average::new(weight, 1e-3, idle) }
    }

    #[test]
    fn a_hundred_arrivals_at_a_queue_of_one() {
        let mut average = busy(0.002, 0.0, Idle::Decay);
        for _ in 0..100 {
            average.sample(1.0, Time::ZERO);
        }
        // 1 - 0.998^100.
        assert!((average.value() - (1.0 - maths::powi(0.998, 100))).abs() < 1e-14);
        assert!((average.value() - 0.181_433).abs() < 5e-7);
    }

    #[test]
    fn a_quiet_gap_of_a_hundred_slots() {
        for (idle, expected) in [(Idle::Decay, 8.185_668), (Idle::DecayAndSample, 8.185_668 * 0.998)] {
            let mut average = busy(0.002, 10.0, idle);
            average.idle_from(Time::from_ns(1_000_000_000));
            average.idle_from(Time::from_ns(1_050_000_000));
            // Half a slot more is dropped by ns-2 only.
            let extra = if idle == Idle::Decay { 0 } else { 500_000 };
            average.sample(0.0, Time::from_ns(1_100_000_000 + extra));
            assert!((average.value() - expected).abs() < 1e-6, "{idle:?}: {}", average.value());
        }
    }

    #[test]
    fn an_idle_time_below_a_slot_is_none_in_ns2() {
        // A slot of 1 ms: one decay from 1 ms on, none before, and the sample in any case.
        for (idle_ns, decays) in [(1, 0), (999_998, 0), (999_999, 0), (1_000_000, 1), (1_999_999, 1), (2_000_000, 2)] {
            let mut average = busy(0.002, 10.0, Idle::DecayAndSample);
            average.idle_from(Time::from_ns(5));
            let decayed = 10.0 * maths::powi(0.998, decays);
            assert_eq!(average.sample(0.0, Time::from_ns(5 + idle_ns)), decayed + 0.002 * (0.0 - decayed), "{idle_ns}");
            assert_eq!(average.at(Time::from_ns(1_000_000_000)), average.value(), "busy again");
        }
    }

    #[test]
    fn after_an_idle_time_linux_takes_no_sample() {
        // w = 1/32, 800 us a packet: cells of 2^15 us, the first of which takes away 5000/32768.
        let mut average = Average { value: 80.0, ..Average::new(1.0 / 32.0, 8e-4, Idle::Table) };
        assert_eq!(average.at(Time::from_ns(5_000_000)), 80.0 * (1.0 - 5000.0 / 32_768.0));
        assert_eq!(average.sample(7.0, Time::from_ns(1_000_000_000)), 20.0);
        assert_eq!(average.sample(20.0 + 32.0, Time::from_ns(1_000_000_000)), 21.0, "the next arrival's counts");
    }

    #[test]
    fn a_weight_of_one_forgets_at_once() {
        let mut average = busy(1.0, 7.0, Idle::Decay);
        average.idle_from(Time::ZERO);
        assert_eq!(average.sample(3.0, Time::ZERO), 7.0);
        assert_eq!(average.sample(3.0, Time::ZERO), 3.0);
        average.idle_from(Time::ZERO);
        assert_eq!(average.sample(0.0, Time::from_ns(1)), 0.0);
        // 7.314 + (3.188 - 7.314) is another number than 3.188.
        assert_eq!(busy(1.0, 7.314, Idle::Decay).sample(3.188, Time::ZERO), 3.188);
    }

    #[test]
    fn a_burst_raises_it_as_the_paper_says() {
        // Paper, eq. for a burst of L packets from an empty queue: L + 1 + ((1 - w)^(L+1) - 1) / w.
        for (burst, expected) in [(10_u64, 0.109_343), (50, 2.468_662), (100, 9.464_836)] {
            let mut average = busy(0.002, 0.0, Idle::Decay);
            for queue in 1..=burst {
                average.sample(queue as f64, Time::ZERO);
            }
            let closed = burst as f64 + 1.0 + (maths::powi(0.998, burst + 1) - 1.0) / 0.002;
            // The subtraction loses seven digits of sixteen.
            assert!((average.value() - closed).abs() < 1e-9 * burst as f64, "{burst}: {}", average.value());
            assert!((closed - expected).abs() < 5e-7);
        }
    }
}
