//! How fast a queue drains, measured at its head: the time that a fixed number of bytes take to leave while the queue
//! is long enough to keep the link busy (RFC 8033 §5.3; Linux sch_pie.c, `pie_process_dequeue`).

use super::Departure;
use base::{Span, Time};

/// Bytes of one measurement, and of a queue long enough for it to begin: 16 KiB.
const THRESHOLD: u64 = 16_384;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// How long the threshold takes, averaged by 1/4. The packet that begins a measurement is not part of it, and what
    /// leaves beyond the threshold does not count (RFC 8033).
    Time,
    /// The rate of all that was counted, averaged by 1/8. The packet that begins the first of a row of measurements
    /// counts (Linux).
    Rate,
}

/// The estimator.
#[derive(Clone, Debug)]
pub struct Drain {
    measure: Measure,
    /// When this measurement began, and the bytes since.
    since: Option<(Time, u64)>,
    /// Seconds for the threshold, or bytes a second; 0 is not measured, as in both sources.
    average: f64,
}

impl Drain {
    /// Nothing measured yet.
    pub fn new(measure: Measure) -> Self {
        Self { measure, since: None, average: 0.0 }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        (self.since, self.average) = (None, 0.0);
    }

    /// A packet leaves at `now`. How long the measurement took, if it ends one.
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
            if bytes < THRESHOLD || self.measure == Measure::Rate && took == Span::ZERO {
                return None;
            }
            let (sample, weight) = match self.measure {
                Measure::Time => (took.secs_f64(), 0.25),
                Measure::Rate => (bytes as f64 / took.secs_f64(), 0.125),
            };
            self.average = if self.is_measured() { self.average + (sample - self.average) * weight } else { sample };
            ended = Some(took);
        }
        self.since = is_long.then_some((now, 0));
        ended
    }

    /// How long `bytes` wait, in seconds: none before the first measurement.
    pub fn delay_s(&self, bytes: u64) -> f64 {
        match self.measure {
            _ if !self.is_measured() => 0.0,
            Measure::Time => bytes as f64 * self.average / THRESHOLD as f64,
            Measure::Rate => bytes as f64 / self.average,
        }
    }

    /// Whether there was a measurement.
    pub fn is_measured(&self) -> bool {
        self.average > 0.0
    }
}
