//! This estimator measures at its head how fast a queue drains. It takes the time in which a fixed number of bytes
//! leave while the queue is long enough to keep the link busy (RFC 8033 §5.3; Linux sch_pie.c, `pie_process_dequeue`).

use super::Departure;
use base::{Span, Time};

/// How many bytes one measurement takes, and how many must wait for it to begin: 16 KiB.
const THRESHOLD: u64 = 16_384;

/// A tick of Linux's packet schedulers in nanoseconds (`PSCHED_SHIFT`). Its rate has 8 bits below a byte a tick
/// (`PIE_SCALE`) and loses what is smaller, at 10 Mb/s up to a twentieth in each sample and more in the average.
const TICK_NS: u64 = 64;
/// How many bits Linux's rate has below a byte a tick ([`TICK_NS`]).
const SCALE: u64 = 256;

/// What a measurement gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// How long the threshold takes, averaged by 1/4. The packet that begins a measurement is not part of it, and what
    /// leaves beyond the threshold does not count (RFC 8033).
    Time,
    /// The rate of all that was counted, averaged by 1/8, in whole 256ths of a byte a tick. The packet that begins the
    /// first of a row of measurements counts (Linux).
    Rate,
}

/// The estimator.
#[derive(Clone, Debug)]
pub struct Drain {
    measure: Measure,
    /// When this measurement began, and how many bytes left since.
    since: Option<(Time, u64)>,
    /// Seconds for the threshold, or 256ths of a byte a tick; 0 before the first measurement, as in both sources.
    average: f64,
}

impl Drain {
    /// An estimator that has measured nothing yet.
    pub fn new(measure: Measure) -> Self {
        Self { measure, since: None, average: 0.0 }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        (self.since, self.average) = (None, 0.0);
    }

    /// Counts a packet that leaves at `now`. Returns how long the measurement took, if it ends one.
    pub fn on_departure(&mut self, departure: &Departure, now: Time) -> Option<Span> {
        let is_long = departure.backlog.bytes >= THRESHOLD;
        if self.measure == Measure::Rate && self.since.is_none() && is_long {
            self.since = Some((now, 0));
        }
        let mut ended = None;
        if let Some((since, bytes)) = &mut self.since {
            *bytes += u64::from(departure.size);
            let (took, bytes) = (now.since(*since), *bytes);
            // Linux goes on counting until time has passed.
            if bytes < THRESHOLD || self.measure == Measure::Rate && ticks(now) == ticks(*since) {
                return None;
            }
            let ran = ticks(now) - ticks(*since);
            self.average = match self.measure {
                Measure::Time if !self.is_measured() => took.secs_f64(),
                Measure::Time => self.average + (took.secs_f64() - self.average) * 0.25,
                Measure::Rate => {
                    let (sample, average) = (bytes * SCALE / ran, self.average as u64);
                    (if average == 0 { sample } else { average - average / 8 + sample / 8 }) as f64
                }
            };
            ended = Some(took);
        }
        self.since = is_long.then_some((now, 0));
        ended
    }

    /// How long `bytes` wait, in seconds; 0 before the first measurement.
    pub fn delay_s(&self, bytes: u64) -> f64 {
        match self.measure {
            _ if !self.is_measured() => 0.0,
            Measure::Time => bytes as f64 * self.average / THRESHOLD as f64,
            // Linux shifts the queue in 32 bits, which end at 16 MiB.
            Measure::Rate => {
                let scaled = u64::from((bytes * SCALE) as u32);
                Span::from_ns(scaled / self.average as u64 * TICK_NS).secs_f64()
            }
        }
    }

    /// Whether there was a measurement.
    pub fn is_measured(&self) -> bool {
        self.average > 0.0
    }
}

fn ticks(at: Time) -> u64 {
    at.ns() / TICK_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_has_32_bits_for_a_queue() {
        // 256/256 of a byte a tick are 125 Mb/s: a byte waits for 64 ns, and those beyond 16 MiB count from 0.
        const MIB_16: u64 = 16 << 20;
        let drain = Drain { average: 256.0, ..Drain::new(Measure::Rate) };
        for (bytes, counted) in [(MIB_16 - 1, MIB_16 - 1), (MIB_16, 0), (MIB_16 + 1000, 1000), (5 * MIB_16 + 7, 7)] {
            assert_eq!(drain.delay_s(bytes), Span::from_ns(counted * 64).secs_f64(), "{bytes}");
        }
        let drain = Drain { average: 1e-3, ..Drain::new(Measure::Time) };
        assert_eq!(drain.delay_s(2 * MIB_16), 2.048, "by RFC 8033 16 KiB take 1 ms");
    }
}
