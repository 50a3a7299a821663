//! Linux's CUBIC has the curve of RFC 9438, on a window of whole segments and a clock of milliseconds. Its HyStart is
//! in [`hystart`](super::hystart).
//!
//! Source: net/ipv4/tcp_cubic.c of Linux 6.12; Ha, Rhee, Xu, "CUBIC" (2008); with ABE, RFC 8511.
//!
//! | tcp_cubic.c         | here                 |
//! |---------------------|----------------------|
//! | `last_max_cwnd`     | `last_peak`          |
//! | `bic_origin_point`  | `origin`             |
//! | `bic_K`             | `seconds_to_origin`  |
//! | `tcp_cwnd`          | `reno_estimate`      |
//! | `ack_cnt`           | `reno_counted`       |
//! | `cnt`               | `per_segment`        |
//! | `delay_min`         | `shortest`           |
//!
//! [`CubicDialect`](super::cubic::CubicDialect) has a table of the differences from RFC 9438.
//!
//! # Deviations
//! - Cube roots and the curve are computed in floating point, not to a thousandth of a second.

use super::cubic::put_off;
use super::{Acked, Congestion, Controller, Delivery, Window, increase, slow_start_whole};
use crate::stack::Config;
use base::{Span, Time, maths};

/// Aggressiveness, segments a cubic second: `bic_scale` 41 of 1024 times 10.
const C: f64 = 410.0 / 1024.0;
/// What is left of the window after a reduction.
const BETA: f64 = 717.0 / 1024.0;
/// What is left of the window after a mark with ABE, which Linux does not have (RFC 8511 §3.1).
const BETA_ECN: f64 = 0.85;
/// Acknowledged windows for one segment of Reno's: `beta_scale` / 8.
const RENO_WINDOWS: f64 = 15.0 / 8.0;
/// The curve is looked at again after so long while the window stands still (HZ / 32).
const UNCHANGED: Span = Span::from_ms(31);

/// The state of CUBIC as in Linux.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CubicLinux {
    counted: f64,
    per_segment: f64,
    last_peak: f64,
    last_window: f64,
    looked_at: Time,
    epoch: Option<Time>,
    origin: f64,
    seconds_to_origin: f64,
    reno_estimate: f64,
    reno_counted: f64,
    shortest: Span,
}

base::packed!(CubicLinux {
    counted,
    per_segment,
    last_peak,
    last_window,
    looked_at,
    epoch,
    origin,
    seconds_to_origin,
    reno_estimate,
    reno_counted,
    shortest,
});

impl Default for CubicLinux {
    fn default() -> Self {
        Self {
            counted: 0.0,
            per_segment: 0.0,
            last_peak: 0.0,
            last_window: 0.0,
            looked_at: Time::ZERO,
            epoch: None,
            origin: 0.0,
            seconds_to_origin: 0.0,
            reno_estimate: 0.0,
            reno_counted: 0.0,
            shortest: Span::ZERO,
        }
    }
}

impl CubicLinux {
    /// Works out how many acknowledged segments let the window grow by one (bictcp_update).
    fn look(&mut self, cwnd: f64, segments: f64, now: Time) {
        self.reno_counted += segments;
        if self.last_window == cwnd && now.since(self.looked_at) <= UNCHANGED {
            return;
        }
        let tick = |at: Time| at.ns() / 1_000_000;
        if self.epoch.is_none() || tick(now) != tick(self.looked_at) {
            (self.last_window, self.looked_at) = (cwnd, now);
            self.follow_curve(cwnd, segments, now);
        }
        let a_segment = (cwnd * RENO_WINDOWS).floor();
        while self.reno_counted > a_segment {
            self.reno_counted -= a_segment;
            self.reno_estimate += 1.0;
        }
        if self.reno_estimate > cwnd {
            self.per_segment = self.per_segment.min((cwnd / (self.reno_estimate - cwnd)).floor());
        }
        self.per_segment = self.per_segment.max(2.0);
    }

    fn follow_curve(&mut self, cwnd: f64, segments: f64, now: Time) {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                self.epoch = Some(now);
                self.reno_counted = segments;
                self.reno_estimate = cwnd;
                self.origin = self.last_peak.max(cwnd);
                self.seconds_to_origin = maths::cbrt((self.origin - cwnd) / C);
                now
            }
        };
        let from_origin = now.since(epoch).secs_f64() + self.shortest.secs_f64() - self.seconds_to_origin;
        let target = self.origin + (C * from_origin * from_origin * from_origin).trunc();
        self.per_segment = if target > cwnd { (cwnd / (target - cwnd)).floor() } else { 100.0 * cwnd };
        if self.last_peak == 0.0 {
            self.per_segment = self.per_segment.min(20.0);
        }
    }
}

impl Controller for CubicLinux {
    fn new(_config: &Config) -> Self {
        Self::default()
    }

    fn watches(&self) -> bool {
        true
    }

    fn delivered(&mut self, _window: &mut Window, delivery: &Delivery) {
        let Some(rtt) = delivery.rtt else { return };
        // No sample is taken right after a recovery: it would measure the queue of that.
        if self.epoch.is_some_and(|epoch| delivery.now.since(epoch) < Span::from_secs(1)) {
            return;
        }
        if self.shortest == Span::ZERO || rtt < self.shortest {
            self.shortest = rtt;
        }
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        let left = slow_start_whole(window, acked);
        if left > 0.0 {
            self.look(window.cwnd / acked.mss, left, acked.now);
            increase(window, &mut self.counted, self.per_segment, left, acked.mss);
        }
    }

    fn reduced(&mut self, _window: &Window, congestion: &Congestion) -> f64 {
        let cwnd = congestion.flight / congestion.mss;
        // Fast convergence
        self.last_peak = if cwnd < self.last_peak { (cwnd * (1.0 + BETA) / 2.0).floor() } else { cwnd };
        self.epoch = None;
        self.counted = 0.0;
        congestion.down(congestion.flight * congestion.keeps(BETA, BETA_ECN))
    }

    fn timed_out(&mut self) {
        // bictcp_reset
        *self = Self::default();
    }

    /// The curve does not go on in a pause (cubictcp_cwnd_event, CA_EVENT_TX_START).
    fn resumed(&mut self, pause: Span, now: Time) {
        self.epoch = put_off(self.epoch, pause, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Cause;

    const MSS: f64 = 1_000.0;

    fn acked(now: Time) -> Acked {
        Acked { bytes: 1_000, mss: MSS, byte_counting: true, whole_segments: true, srtt: None, now }
    }

    /// Grows for so many seconds, a window of acknowledgements evenly over each round trip.
    fn grow(cubic: &mut CubicLinux, window: &mut Window, rtt: Span, seconds: f64) -> f64 {
        let mut now = Time::from_ns(5_000_000_000);
        let end = now + Span::from_ns((seconds * 1e9) as u64);
        while now < end {
            let acks = (window.cwnd / MSS) as u64;
            for _ in 0..acks {
                now += rtt / acks;
                cubic.grow(window, &acked(now));
            }
        }
        window.cwnd / MSS
    }

    #[test]
    fn the_curve_comes_back_to_the_peak() {
        // K = cbrt(W_max (1 - beta) / C): 100 segments to 70 and back in cbrt(30 / 0.4004) = 4.215 s. The window
        // follows the curve less its last whole segment, and is there within two round trips.
        let mut cubic = CubicLinux { shortest: Span::from_ms(100), ..CubicLinux::default() };
        let mut window = Window { cwnd: 100.0 * MSS, ssthresh: 0.0 };
        let congestion = Congestion {
            cause: Cause::Loss,
            flight: window.cwnd,
            mss: MSS,
            whole_segments: true,
            abe: false,
            now: Time::ZERO,
        };
        window.cwnd = cubic.reduced(&window, &congestion);
        assert_eq!(window.cwnd, 70.0 * MSS);
        let grown = grow(&mut cubic, &mut window, Span::from_ms(100), 4.2);
        assert!((98.0..=100.0).contains(&grown), "{grown}");
    }

    #[test]
    fn short_round_trips_grow_like_reno() {
        // With 10 ms the curve is slower than 8/15 of a segment a round trip: 50 round trips.
        let mut cubic = CubicLinux { shortest: Span::from_ms(10), ..CubicLinux::default() };
        let mut window = Window { cwnd: 20.0 * MSS, ssthresh: 0.0 };
        let congestion = Congestion {
            cause: Cause::Loss,
            flight: window.cwnd,
            mss: MSS,
            whole_segments: true,
            abe: false,
            now: Time::ZERO,
        };
        window.cwnd = cubic.reduced(&window, &congestion);
        assert_eq!(window.cwnd, 14.0 * MSS);
        // Whole numbers on the way, of the window and of what counts for a segment, make it a little more or less: two.
        let grown = grow(&mut cubic, &mut window, Span::from_ms(10), 0.5);
        assert!((grown - (14.0 + 50.0 * 8.0 / 15.0)).abs() <= 2.0, "{grown}");
    }

    #[test]
    fn fast_convergence_gives_way() {
        let mut cubic = CubicLinux::default();
        let window = Window { cwnd: 0.0, ssthresh: 0.0 };
        let of = |flight| Congestion {
            cause: Cause::Loss,
            flight,
            mss: MSS,
            whole_segments: true,
            abe: false,
            now: Time::ZERO,
        };
        cubic.reduced(&window, &of(100.0 * MSS));
        assert_eq!(cubic.last_peak, 100.0);
        cubic.reduced(&window, &of(80.0 * MSS));
        // 80 (1024 + 717) / 2048 = 68.008
        assert_eq!(cubic.last_peak, 68.0);
    }

    #[test]
    fn the_curve_stands_still_in_a_pause() {
        // K is 4.215 s (above). After two seconds nothing is sent for three: two more bring it up to the same.
        let congestion = Congestion {
            cause: Cause::Loss,
            flight: 100.0 * MSS,
            mss: MSS,
            whole_segments: true,
            abe: false,
            now: Time::ZERO,
        };
        let grown_after = |pause: Span| {
            let mut cubic = CubicLinux { shortest: Span::from_ms(100), ..CubicLinux::default() };
            let mut window = Window { cwnd: 100.0 * MSS, ssthresh: 0.0 };
            window.cwnd = cubic.reduced(&window, &congestion);
            let mut now = Time::from_ns(5_000_000_000);
            for k in 0..40 {
                if k == 20 {
                    now += pause;
                    cubic.resumed(pause, now);
                }
                for _ in 0..(window.cwnd / MSS) as u64 {
                    cubic.grow(&mut window, &acked(now));
                }
                now += Span::from_ms(100);
            }
            window.cwnd / MSS
        };
        assert_eq!(grown_after(Span::from_secs(3)), grown_after(Span::ZERO));
        assert!((97.0..=100.0).contains(&grown_after(Span::from_secs(3))));
        // An epoch never lies ahead.
        let mut cubic = CubicLinux { epoch: Some(Time::from_ns(5)), ..CubicLinux::default() };
        cubic.resumed(Span::from_secs(1), Time::from_ns(9));
        assert_eq!(cubic.epoch, Some(Time::from_ns(9)));
    }
}
