//! HyStart ends slow start before anything is lost, as in Linux's CUBIC. It does so at either of two signs:
//!
//! - The acknowledgements of a round come in a train as long as half the shortest round trip; the whole of it where
//!   data is paced.
//! - The shortest round trip of a round has grown by an eighth.
//!
//! Source: Ha, Rhee, "Taming the elephants: new TCP slow start" (2011); net/ipv4/tcp_cubic.c of Linux 6.12,
//! hystart_update, with its default parameters.
//!
//! | tcp_cubic.c    | here             |
//! |----------------|------------------|
//! | `delay_min`    | `shortest`       |
//! | `curr_rtt`     | `round_shortest` |
//! | `sample_cnt`   | `samples`        |
//! | `round_start`  | `round_began`    |
//! | `end_seq`      | `round_end`      |
//! | `found`        | `is_over`        |
//!
//! # Deviations
//! - Round trips within a second of the start of one of CUBIC's epochs count too. In Linux they do not. A slow start is
//!   then under way only after an idle time.
//! - What hosts may add to a train is 1 ms. In Linux it is no more than four of the largest bursts take at the pacing
//!   rate, which is less than 1 ms beyond 2 Gb/s: its slow start ends sooner there.

use super::{Delivery, Window};
use base::{Span, Time};

/// The window from which it looks for the end, segments.
const LOW_WINDOW: f64 = 16.0;
/// Samples of a round before its delay is judged.
const ROUND_SAMPLES: u32 = 8;
/// The least growth of the round trip that ends slow start, and the most that is asked for.
const LEAST_DELAY: Span = Span::from_ms(4);
const MOST_DELAY: Span = Span::from_ms(16);
/// The longest gap within a train of acknowledgements.
const TRAIN_GAP: Span = Span::from_ms(2);
/// What the end hosts may add to a train without pacing.
const TRAIN_ALLOWANCE: Span = Span::from_ms(1);

/// The state of HyStart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Start {
    is_paced: bool,
    is_over: bool,
    shortest: Span,
    round: Round,
}

base::packed!(Start { is_paced, is_over, shortest, round });

#[derive(Clone, Copy, PartialEq, Debug)]
struct Round {
    round_began: Time,
    round_end: u64,
    round_shortest: Span,
    samples: u32,
    last_ack: Time,
}

base::packed!(Round { round_began, round_end, round_shortest, samples, last_ack });

impl Start {
    /// The state at the beginning of slow start.
    pub const fn new(is_paced: bool) -> Self {
        Self { is_paced, is_over: false, shortest: Span::ZERO, round: Round::new(Time::ZERO, 0) }
    }

    /// Looks for the end of slow start again, after a timeout.
    pub fn restart(&mut self) {
        *self = Self::new(self.is_paced);
    }

    /// Takes an acknowledgement, and sets the threshold if slow start is over.
    pub fn delivered(&mut self, window: &mut Window, delivery: &Delivery) {
        if self.is_over {
            return;
        }
        let Some(rtt) = delivery.rtt else { return };
        if self.shortest == Span::ZERO || rtt < self.shortest {
            self.shortest = rtt;
        }
        if window.in_slow_start() && self.ends(rtt, window.cwnd / delivery.mss, delivery) {
            window.ssthresh = window.cwnd;
        }
    }

    fn ends(&mut self, rtt: Span, window: f64, delivery: &Delivery) -> bool {
        if delivery.una > self.round.round_end {
            self.round = Round::new(delivery.now, delivery.nxt);
        }
        if window < LOW_WINDOW {
            return false;
        }
        let round = &mut self.round;
        if delivery.now.since(round.last_ack) <= TRAIN_GAP {
            round.last_ack = delivery.now;
            // Pacing alone may make a train half a round trip long.
            let longest = (self.shortest + TRAIN_ALLOWANCE) / if self.is_paced { 1 } else { 2 };
            self.is_over |= delivery.now.since(round.round_began) > longest;
        }
        round.round_shortest = round.round_shortest.min(rtt);
        if round.samples < ROUND_SAMPLES {
            round.samples += 1;
        } else {
            let delay = (self.shortest / 8).clamp(LEAST_DELAY, MOST_DELAY);
            self.is_over |= round.round_shortest > self.shortest + delay;
        }
        self.is_over
    }
}

impl Round {
    const fn new(now: Time, end: u64) -> Self {
        Self { round_began: now, round_end: end, round_shortest: Span::from_ns(u64::MAX), samples: 0, last_ack: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{Acked, Controller, reno::Reno};

    const MSS: f64 = 1_000.0;

    fn acked(now: Time) -> Acked {
        Acked { bytes: 1_000, mss: MSS, byte_counting: true, whole_segments: true, srtt: None, now }
    }

    /// Slow start with one acknowledgement every `gap`, of the given round-trip time: the window when it ends, or 200.
    fn start(gap: Span, rtt: impl Fn(u64) -> Span) -> f64 {
        start_of(Start::new(false), gap, rtt)
    }

    fn start_of(mut hystart: Start, gap: Span, rtt: impl Fn(u64) -> Span) -> f64 {
        let mut reno = Reno::default();
        let mut window = Window { cwnd: 10.0 * MSS, ssthresh: f64::INFINITY };
        let (mut now, mut una, mut nxt) = (Time::from_ns(1_000_000_000), 0, 10_000);
        for k in 0..190 {
            (now, una, nxt) = (now + gap, una + 1_000, nxt + 2_000);
            let delivery =
                Delivery { bytes: 1_000, marked: 0, una, nxt, rtt: Some(rtt(k)), one_way: None, mss: MSS, now };
            hystart.delivered(&mut window, &delivery);
            reno.grow(&mut window, &acked(now));
            if !window.in_slow_start() {
                break;
            }
        }
        window.cwnd / MSS
    }

    #[test]
    fn a_longer_round_trip_ends_slow_start() {
        // Acknowledgements too far apart for a train. 80 ms, and an eighth more is 10 ms: a queue of 9 ms does not end
        // slow start, one of 11 ms does, in the round in which all of the samples have it.
        let gap = Span::from_ms(3);
        assert_eq!(start(gap, |k| Span::from_ms(if k < 40 { 80 } else { 89 })), 200.0);
        let ended = start(gap, |k| Span::from_ms(if k < 40 { 80 } else { 91 }));
        // The window is 50 at the 40th; that round, of less than a window, has shorter ones in it still.
        assert!((50.0..150.0).contains(&ended), "{ended}");
    }

    #[test]
    fn a_long_train_ends_slow_start() {
        // One acknowledgement a millisecond: the first round from sixteen segments on that has lasted half of 40 ms and
        // the allowance. The train counts from the start of the round.
        let ended = start(Span::from_ms(1), |_| Span::from_ms(40));
        assert!((16.0..60.0).contains(&ended), "{ended}");
        assert_eq!(start(Span::from_ms(1), |_| Span::from_ms(2_000)), 200.0);
    }

    #[test]
    fn a_paced_train_may_be_as_long_as_the_round_trip() {
        // The same, one acknowledgement a millisecond. A round is as many as the window has segments when it begins:
        // the first of 42 or more, and then fewer than 84, takes more than 41 ms, and ends slow start at its 42nd.
        let ended = start_of(Start::new(true), Span::from_ms(1), |_| Span::from_ms(40));
        assert!(ended > start(Span::from_ms(1), |_| Span::from_ms(40)), "{ended}");
        assert!((84.0..127.0).contains(&ended), "{ended}");
    }
}
