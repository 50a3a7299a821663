//! CUBIC makes the window a cubic function of the time since the last reduction, so that growth does not depend on the
//! round-trip time. It never grows slower than Reno.
//!
//! Source: RFC 9438; with ABE, RFC 8511. Linux's dialect is in [`cubic_linux`](super::cubic_linux). The configuration
//! of a host says which of the two it runs ([`CubicDialect`]).
//!
//! | RFC                | here                  |
//! |--------------------|-----------------------|
//! | `W_max`            | `peak`                |
//! | `K`                | `seconds_to_peak`     |
//! | `W_est`            | `reno_estimate`       |
//! | `cwnd_epoch`, `t`  | `epoch`               |
//! | `cwnd_prior`       | `prior`               |
//!
//! # Deviations
//! - The time since the epoch stands still in pauses in which nothing is outstanding, and not while the application
//!   merely leaves a part of the window unused (§4.2, "application-limited").

use super::cubic_linux::CubicLinux;
use super::{Acked, Congestion, Controller, Delivery, Window, slow_start};
use crate::stack::Config;
use base::{Span, Time, maths};

/// Aggressiveness, segments a cubic second (§4.1).
const C: f64 = 0.4;
/// What is left of the window after a reduction (§4.6).
const BETA: f64 = 0.7;
/// What is left of the window after a mark with ABE (RFC 8511 §3.1).
const BETA_ECN: f64 = 0.85;
/// Reno's increase that matches `BETA` (§4.3).
const RENO_INCREASE: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Whose CUBIC it is.
///
/// | | RFC 9438 | Linux |
/// |---|---|---|
/// | the window | a number of bytes | counted in segments: it grows by one when so many were acknowledged |
/// | the clock | exact | of milliseconds |
/// | what Reno would have grows | by 9/17 of a segment a window, by one beyond the last peak | by 8/15 for good |
/// | the curve is looked at | a smoothed round trip ahead | the shortest round trip ahead |
/// | before the first peak is known | as the curve says | by a twentieth a round trip at least |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CubicDialect {
    /// RFC 9438.
    Rfc,
    /// `tcp_cubic.c`.
    Linux,
}

/// CUBIC in either dialect.
#[derive(Clone, PartialEq, Debug)]
pub enum Cubic {
    /// RFC 9438's.
    Rfc(Box<Rfc>),
    /// Linux's.
    Linux(Box<CubicLinux>),
}

base::packed!(Cubic: Rfc(cubic) | Linux(cubic));

impl Controller for Cubic {
    fn new(config: &Config) -> Self {
        match config.cubic {
            CubicDialect::Rfc => Self::Rfc(Controller::new(config)),
            CubicDialect::Linux => Self::Linux(Controller::new(config)),
        }
    }

    fn renew(&mut self, config: &Config) {
        match (&mut *self, config.cubic) {
            (Self::Rfc(cubic), CubicDialect::Rfc) => cubic.renew(config),
            (Self::Linux(cubic), CubicDialect::Linux) => cubic.renew(config),
            _ => *self = Self::new(config),
        }
    }

    #[inline]
    fn watches(&self) -> bool {
        matches!(self, Self::Linux(_))
    }

    /// Linux's dialect looks at round trips alone.
    #[inline]
    fn heeds_silence(&self) -> bool {
        false
    }

    fn delivered(&mut self, window: &mut Window, delivery: &Delivery) {
        if let Self::Linux(cubic) = self {
            cubic.delivered(window, delivery);
        }
    }

    #[inline]
    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        match self {
            Self::Rfc(cubic) => cubic.grow(window, acked),
            Self::Linux(cubic) => cubic.grow(window, acked),
        }
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        match self {
            Self::Rfc(cubic) => cubic.reduced(window, congestion),
            Self::Linux(cubic) => cubic.reduced(window, congestion),
        }
    }

    fn timed_out(&mut self) {
        match self {
            Self::Rfc(cubic) => cubic.timed_out(),
            Self::Linux(cubic) => cubic.timed_out(),
        }
    }

    /// Linux's dialect takes back nothing: window and threshold are the frame's (tcp_reno_undo_cwnd).
    fn undone(&mut self, window: &mut Window) {
        if let Self::Rfc(cubic) = self {
            cubic.undone(window);
        }
    }

    fn resumed(&mut self, pause: Span, now: Time) {
        match self {
            Self::Rfc(cubic) => cubic.resumed(pause, now),
            Self::Linux(cubic) => cubic.resumed(pause, now),
        }
    }
}

/// The epoch after a `pause` that ends `now`, in which the curve is not to go on.
pub(super) fn put_off(epoch: Option<Time>, pause: Span, now: Time) -> Option<Time> {
    epoch.map(|epoch| (epoch + pause).min(now))
}

/// The state of CUBIC as in RFC 9438. Windows are in segments.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Rfc {
    peak: f64,
    prior: f64,
    seconds_to_peak: f64,
    reno_estimate: f64,
    epoch: Option<Time>,
    after_timeout: bool,
    /// What the last reduction found, for the case that it was needless.
    before: Avoidance,
}

base::left_whole!(Rfc);

/// A stage of congestion avoidance.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Avoidance {
    peak: f64,
    prior: f64,
    seconds_to_peak: f64,
    reno_estimate: f64,
    epoch: Option<Time>,
}

impl Controller for Rfc {
    fn new(_config: &Config) -> Self {
        Self::default()
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        if window.in_slow_start() {
            // The epoch is that of the current stage of congestion avoidance (§4.1.2).
            self.epoch = None;
            return slow_start(window, acked);
        }
        let cwnd = window.cwnd / acked.mss;
        let epoch = *self.epoch.get_or_insert_with(|| {
            if self.after_timeout || self.peak < cwnd {
                // §4.8 and §4.10: after a timeout, and out of slow start, growth starts at the plateau.
                self.peak = cwnd;
                self.after_timeout = false;
            }
            self.seconds_to_peak = maths::cbrt((self.peak - cwnd) / C);
            self.reno_estimate = cwnd;
            acked.now
        });
        let elapsed = acked.now.since(epoch).secs_f64() + acked.srtt.map_or(0.0, |srtt| srtt.secs_f64());
        let from_peak = elapsed - self.seconds_to_peak;
        let target = (C * from_peak * from_peak * from_peak + self.peak).clamp(cwnd, 1.5 * cwnd);
        let segments = acked.bytes as f64 / acked.mss;
        // §4.3: once past the prior window, grow like Reno itself.
        let increase = if self.reno_estimate >= self.prior { 1.0 } else { RENO_INCREASE };
        self.reno_estimate += increase * segments / cwnd;
        let grown = cwnd + (target - cwnd) / cwnd * segments;
        window.cwnd = grown.max(self.reno_estimate) * acked.mss;
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        let cwnd = window.cwnd / congestion.mss;
        let Self { peak, prior, seconds_to_peak, reno_estimate, epoch, .. } = *self;
        self.before = Avoidance { peak, prior, seconds_to_peak, reno_estimate, epoch };
        self.prior = cwnd;
        // §4.7 fast convergence
        self.peak = if cwnd < self.peak { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.epoch = None;
        congestion.flight.min(window.cwnd) * congestion.keeps(BETA, BETA_ECN)
    }

    fn timed_out(&mut self) {
        self.after_timeout = true;
    }

    /// §4.9: what congestion avoidance had found is as it was.
    fn undone(&mut self, _window: &mut Window) {
        let Avoidance { peak, prior, seconds_to_peak, reno_estimate, epoch } = self.before;
        *self = Self { peak, prior, seconds_to_peak, reno_estimate, epoch, after_timeout: false, before: self.before };
    }

    /// §4.2: the time since the epoch has no pauses in it.
    fn resumed(&mut self, pause: Span, now: Time) {
        self.epoch = put_off(self.epoch, pause, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Cause;
    use base::Span;

    /// A window after a loss at `segments`, with the memory of it.
    fn after_loss(segments: f64, mss: f64) -> (Rfc, Window) {
        let mut cubic = Rfc::default();
        let mut window = Window { cwnd: segments * mss, ssthresh: 0.0 };
        let congestion = Congestion {
            cause: Cause::Loss,
            flight: window.cwnd,
            mss,
            whole_segments: false,
            abe: false,
            now: Time::ZERO,
        };
        window.cwnd = cubic.reduced(&window, &congestion);
        (cubic, window)
    }

    #[test]
    fn k_is_the_time_back_to_the_peak() {
        // RFC 9438 (2): cbrt(0.3 W_max / 0.4). At W(K) the target is the peak, before it less, beyond more: (1).
        for (peak, k) in [(10.0, 1.957), (100.0, 4.217), (1_000.0, 9.086)] {
            let (mut cubic, window) = after_loss(peak, 1_000.0);
            let of = |seconds: f64| {
                let now = Time::ZERO + Span::from_ns((seconds * 1e9) as u64);
                Acked { bytes: 1_000, mss: 1_000.0, byte_counting: true, whole_segments: false, srtt: None, now }
            };
            cubic.grow(&mut window.clone(), &of(0.0));
            assert!((cubic.seconds_to_peak - k).abs() < 5e-4, "{}", cubic.seconds_to_peak);
            // One acknowledgement goes (W(t) - cwnd) / cwnd of the way, from 70 % of the peak; Reno is far below.
            let cwnd = 0.7 * peak;
            for (seconds, target) in [(cubic.seconds_to_peak, peak), (cubic.seconds_to_peak - 1.0, peak - 0.4)] {
                let mut at = window;
                (cubic.reno_estimate, cubic.prior) = (0.0, f64::INFINITY);
                cubic.grow(&mut at, &of(seconds));
                let moved = at.cwnd / 1_000.0 - cwnd;
                // The clamp of §4.2: half the window more at most; both are below that.
                assert!((moved - (target - cwnd) / cwnd).abs() < 1e-6, "{peak} at {seconds}: {moved}");
            }
        }
    }

    #[test]
    fn the_reno_estimate_grows_by_its_increase_a_window() {
        // §4.3: 3 (1 - 0.7) / (1 + 0.7) = 0.529 of a segment for a window of acknowledgements until it has reached the
        // window before the loss, then a whole one.
        let (mut cubic, mut window) = after_loss(10.0, 1_000.0);
        let acked = Acked {
            bytes: 1_000,
            mss: 1_000.0,
            byte_counting: true,
            whole_segments: false,
            srtt: None,
            now: Time::ZERO,
        };
        cubic.grow(&mut window, &acked);
        assert!((cubic.reno_estimate - (7.0 + 0.529_412 / 7.0)).abs() < 1e-6, "{}", cubic.reno_estimate);
        cubic.reno_estimate = 10.0;
        let cwnd = window.cwnd / 1_000.0;
        cubic.grow(&mut window, &acked);
        assert!((cubic.reno_estimate - (10.0 + 1.0 / cwnd)).abs() < 1e-9, "{}", cubic.reno_estimate);
    }

    #[test]
    fn near_the_peak_when_the_curve_says_so() {
        // RFC 9438 (2): K = cbrt(W_max (1 - beta) / C); for 100 segments 4.217 s.
        let mss = 1000.0;
        let mut cubic = Rfc::default();
        let mut window = Window { cwnd: 100.0 * mss, ssthresh: 0.0 };
        let congestion = Congestion {
            cause: Cause::Loss,
            flight: window.cwnd,
            mss,
            whole_segments: false,
            abe: false,
            now: Time::ZERO,
        };
        window.cwnd = cubic.reduced(&window, &congestion);
        assert!((window.cwnd / mss - 70.0).abs() < 1e-9);
        let rtt = Span::from_ms(100);
        let (mut now, mut at_peak) = (Time::ZERO, None);
        while at_peak.is_none() {
            // A window of acknowledgements, evenly over a round trip.
            let acks = (window.cwnd / mss) as u64;
            for _ in 0..acks {
                now += rtt / acks;
                let acked =
                    Acked { bytes: 1000, mss, byte_counting: true, whole_segments: false, srtt: Some(rtt), now };
                cubic.grow(&mut window, &acked);
            }
            at_peak = (window.cwnd >= 99.9 * mss).then_some(now);
        }
        // 0.1 segments below the peak the curve is cbrt(0.1/C) = 0.630 s before K. The window follows it one round
        // trip late and looks one ahead (t + SRTT): within two round trips.
        let seconds = at_peak.map_or(0.0, Time::secs_f64);
        assert!((seconds - (4.217 - 0.630)).abs() < 0.2, "{seconds}");
    }

    #[test]
    fn slow_start_after_a_pause_begins_a_new_stage() {
        // A loss at 100 segments leaves 70, and congestion avoidance reaches 95. A pause brings the window down to two;
        // the first acknowledgement beyond the threshold adds no more than its part of the curve.
        let (mut cubic, mut window) = after_loss(100.0, 1_000.0);
        let of =
            |now| Acked { bytes: 1_000, mss: 1_000.0, byte_counting: true, whole_segments: false, srtt: None, now };
        window.ssthresh = window.cwnd;
        cubic.grow(&mut window, &of(Time::ZERO));
        cubic.reno_estimate = 95.0;
        (window.cwnd, window.ssthresh) = (69_500.0, 70_000.0);
        let now = Time::ZERO + Span::from_secs(9);
        cubic.grow(&mut window, &of(now));
        assert!(!window.in_slow_start());
        let before = window.cwnd;
        cubic.grow(&mut window, &of(now));
        assert!((window.cwnd - before) < 500.0, "{before}, {}", window.cwnd);
        assert_eq!(cubic.epoch, Some(now));
    }

    #[test]
    fn a_needless_reduction_leaves_nothing_behind() {
        // §4.9: W_max, K, the epoch and W_est are those before it, whatever fast convergence made of them.
        let (mut cubic, mut window) = after_loss(100.0, 1_000.0);
        let of =
            |now| Acked { bytes: 1_000, mss: 1_000.0, byte_counting: true, whole_segments: false, srtt: None, now };
        cubic.grow(&mut window, &of(Time::from_ns(1)));
        let before = cubic;
        let congestion = Congestion {
            cause: Cause::Loss,
            flight: window.cwnd,
            mss: 1_000.0,
            whole_segments: false,
            abe: false,
            now: Time::from_ns(2),
        };
        cubic.reduced(&window, &congestion);
        assert_ne!(cubic.peak, before.peak);
        cubic.undone(&mut window);
        assert_eq!(Rfc { before: before.before, ..cubic }, before);
    }
}
