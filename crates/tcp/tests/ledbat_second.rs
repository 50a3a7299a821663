//! LEDBAT once more, as the pseudocode of RFC 6817 §2.4.2 has it, with its names and no thought for speed. Both are
//! told the same stories of delays, losses, marks and timeouts drawn from a seed, and must have the same window after
//! each.
//!
//! Where the RFC leaves something open, this takes what it recommends: FILTER() is the least of the samples, of which
//! none is older than a round trip.

use base::{Span, Stream, Time};
use tcp::LedbatSettings;
use tcp::cc::ledbat::Ledbat;
use tcp::cc::{Acked, Cause, Congestion, Controller, Delivery, Window};

const MSS: f64 = 1_448.0;
const MIN_CWND: f64 = 2.0;
const INF: f64 = f64::INFINITY;

/// The sender of the pseudocode; delays in seconds, sizes in bytes.
struct Rfc {
    target: f64,
    gain: f64,
    allowed_increase: f64,
    current_filter: usize,
    current_delays: Vec<(Time, f64)>,
    base_delays: Vec<f64>,
    last_rollover: f64,
    cwnd: f64,
}

impl Rfc {
    fn new(settings: LedbatSettings, cwnd: f64) -> Self {
        Self {
            target: settings.target.secs_f64(),
            gain: settings.gain,
            allowed_increase: f64::from(settings.allowed_increase),
            current_filter: settings.current_filter as usize,
            current_delays: Vec::new(),
            base_delays: vec![INF; settings.base_history as usize],
            last_rollover: -INF,
            cwnd,
        }
    }

    fn update_base_delay(&mut self, delay: f64, now: f64) {
        let round_to_minute = |time: f64| (time / 60.0).floor();
        let tail = self.base_delays.len() - 1;
        if round_to_minute(now) == round_to_minute(self.last_rollover) {
            self.base_delays[tail] = self.base_delays[tail].min(delay);
        } else {
            self.last_rollover = now;
            self.base_delays.remove(0);
            self.base_delays.push(delay);
        }
    }

    fn update_current_delay(&mut self, delay: f64, now: Time) {
        self.current_delays.push((now, delay));
        if self.current_delays.len() > self.current_filter {
            self.current_delays.remove(0);
        }
    }

    fn acknowledgment(&mut self, delay: f64, newly: f64, flightsize: f64, rtt: Span, now: Time) {
        self.update_base_delay(delay, now.secs_f64());
        self.update_current_delay(delay, now);
        let fresh = self.current_delays.iter().filter(|(at, _)| now.since(*at) <= rtt).map(|(_, delay)| *delay);
        let queuing_delay = fresh.fold(INF, f64::min) - self.base_delays.iter().copied().fold(INF, f64::min);
        let off_target = (self.target - queuing_delay) / self.target;
        self.cwnd += self.gain * off_target * newly * MSS / self.cwnd;
        let max_allowed_cwnd = flightsize + self.allowed_increase * MSS;
        self.cwnd = self.cwnd.min(max_allowed_cwnd);
        self.cwnd = self.cwnd.max(MIN_CWND * MSS);
    }

    fn data_loss(&mut self) {
        self.cwnd = self.cwnd.min((self.cwnd / 2.0).max(MIN_CWND * MSS));
    }
}

fn congestion(cause: Cause, now: Time) -> Congestion {
    Congestion { cause, flight: 0.0, mss: MSS, whole_segments: false, abe: true, now }
}

/// Tells both a story of so many acknowledgements, with losses or without; the extremes of the window, in segments.
fn told(seed: u64, settings: LedbatSettings, whole_segments: bool, has_losses: bool) -> (f64, f64) {
    let mut stream = Stream::named(seed, "ledbat");
    let mut below = move |most: u64| stream.below(most);
    let mut window = Window { cwnd: 2.0 * MSS, ssthresh: INF };
    let (mut one, mut other) = (Ledbat::with(settings), Rfc::new(settings, window.cwnd));
    let (mut now, mut una) = (Time::ZERO, 0);
    let (mut least, mut most) = (INF, 0.0_f64);
    let mut queue = 0;
    for event in 0..20_000 {
        // A minute passes in a few hundred of these: the history rolls over.
        now += Span::from_us(1_000 + below(300_000));
        let rtt = Span::from_ms(20 + below(500));
        let delay = Span::from_ms(7 + queue + below(20));
        // The queue wanders between none and two targets.
        queue = (queue + below(9)).saturating_sub(4).min(2 * settings.target.ns() / 1_000_000);
        let newly = below(4) * 700 + 1;
        let out = (window.bytes() + below(3_000)).max(newly);
        una += newly;
        let nxt = una - newly + out;
        let (rtt_sample, one_way) = (Some(rtt), Some(delay));
        let delivery = Delivery { bytes: newly, marked: 0, una, nxt, rtt: rtt_sample, one_way, mss: MSS, now };
        one.delivered(&mut window, &delivery);
        let acked = Acked { bytes: newly, mss: MSS, byte_counting: false, whole_segments, srtt: Some(rtt), now };
        one.grow(&mut window, &acked);
        other.acknowledgment(delay.secs_f64(), newly as f64, out as f64, rtt, now);
        if has_losses && below(40) == 0 {
            match below(3) {
                0 => {
                    one.timed_out();
                    (window.cwnd, other.cwnd) = (MSS, MSS);
                }
                kind => {
                    let cause = if kind == 1 { Cause::Loss } else { Cause::Mark };
                    window.cwnd = one.reduced(&window, &congestion(cause, now));
                    other.data_loss();
                }
            }
        }
        let expected = if whole_segments { ((other.cwnd / MSS + 1e-9).floor()) * MSS } else { other.cwnd };
        assert!((window.cwnd - expected).abs() < 1e-6 * expected, "event {event} of {seed}: {window:?}, {expected}");
        (least, most) = (least.min(window.cwnd / MSS), most.max(window.cwnd / MSS));
    }
    (least, most)
}

#[test]
fn the_window_is_that_of_the_pseudocode() {
    let with = |target_ms, gain, allowed_increase, base_history, current_filter| LedbatSettings {
        target: Span::from_ms(target_ms),
        gain,
        allowed_increase,
        base_history,
        current_filter,
        slow_start: false,
    };
    let mut extremes = (INF, 0.0_f64);
    for seed in 0..10 {
        let settings =
            [LedbatSettings::DEFAULT, with(25, 1.0, 1, 2, 1), with(5, 10.0, 3, 10, 4), with(60, 0.25, 1, 20, 16)];
        for settings in settings {
            for (whole_segments, has_losses) in [(false, false), (false, true), (true, false)] {
                let (least, most) = told(seed, settings, whole_segments, has_losses);
                extremes = (extremes.0.min(least), extremes.1.max(most));
            }
        }
    }
    // The stories reach from a timeout's window to large ones.
    assert!(extremes.0 <= 1.0 && extremes.1 > 30.0, "{extremes:?}");
}
