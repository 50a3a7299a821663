//! How fast a queue drains, measured at its head: the time that a fixed number of bytes take to leave while the queue
//! is long enough to keep the link busy (RFC 8033 §5.3).

use super::Departure;
use base::Time;

/// Bytes of one measurement, and of a queue long enough for it: 16 KiB.
const THRESHOLD: u64 = 16_384;

/// What is averaged over measurements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Average {
    /// The time that the bytes took, by 1/4 (RFC 8033).
    Time,
    /// The rate at which they left, by 1/8 (Linux).
    Rate,
}

/// The estimator.
#[derive(Clone, Debug)]
pub struct Drain {
    average: Average,
    /// When this measurement began, and the bytes since.
    since: Option<(Time, u64)>,
    /// Seconds a byte, once measured.
    byte_s: Option<f64>,
}

impl Drain {
    /// Nothing measured yet.
    pub fn new(average: Average) -> Self {
        Self { average, since: None, byte_s: None }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        (self.since, self.byte_s) = (None, None);
    }

    /// A packet leaves at `now`.
    pub fn on_departure(&mut self, departure: &Departure, now: Time) {
        let is_long = departure.backlog.bytes >= THRESHOLD;
        if self.since.is_none() && is_long {
            self.since = Some((now, 0));
        }
        let Some((since, bytes)) = &mut self.since else { return };
        *bytes += u64::from(departure.size);
        if *bytes < THRESHOLD || now == *since {
            return;
        }
        let sample = now.since(*since).secs_f64() / *bytes as f64;
        self.byte_s = Some(match (self.byte_s, self.average) {
            (None, _) => sample,
            (Some(byte_s), Average::Time) => 0.75 * byte_s + 0.25 * sample,
            (Some(byte_s), Average::Rate) => 1.0 / (0.875 / byte_s + 0.125 / sample),
        });
        self.since = is_long.then_some((now, 0));
    }

    /// How long `bytes` wait, in seconds: none before the first measurement.
    pub fn delay_s(&self, bytes: u64) -> f64 {
        self.byte_s.map_or(0.0, |byte_s| bytes as f64 * byte_s)
    }

    /// Whether there was a measurement.
    pub fn is_measured(&self) -> bool {
        self.byte_s.is_some()
    }
}
