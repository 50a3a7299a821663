//! LEDBAT lets background transfers use what others leave: the window follows how far the queueing delay is from a
//! target, so that it shrinks before anybody else's does.
//!
//! Source: RFC 6817 §2.4.2. The values that it leaves to the implementation are [`Settings`].
//!
//! | RFC                                 | here                                        |
//! |-------------------------------------|---------------------------------------------|
//! | `TARGET`, `GAIN`                    | [`Settings::target`], [`Settings::gain`]    |
//! | `ALLOWED_INCREASE`                  | [`Settings::allowed_increase`]              |
//! | `BASE_HISTORY`, `base_delays`       | [`Settings::base_history`], `base`          |
//! | `CURRENT_FILTER`, `current_delays`  | [`Settings::current_filter`], `current`     |
//! | `FILTER()`                          | the least of those no older than a round trip |
//! | `last_rollover`                     | `minute`                                    |
//! | `MIN_CWND`                          | [`LEAST_WINDOW`]                            |
//! | `flightsize`                        | `flight`                                    |
//! | `CTO`                               | the retransmission timeout                  |
//!
//! **The delay** is one way where segments carry timestamps: the other end's clock when it acknowledged, less this
//! end's when it sent, in whole milliseconds. What the clocks differ by is in the base delay too. Without timestamps it
//! is the round trip, as in LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus), and a queue of acknowledgements counts as
//! well. Acknowledgements give a delay where they give a round trip: an echo is old beside data that was sent again or
//! came out of order.
//!
//! # Deviations
//! - The window does not change while losses are repaired, nor, where the stack validates its window, while the
//!   application limits the sender.
//! - The pseudocode has no slow start. One may be asked for; it ends when the queueing delay is three quarters of the
//!   target, as in LEDBAT++.
//! - A mark is answered as a loss is (RFC 3168 §5).

use super::{Acked, Congestion, Controller, Delivery, Window, slow_start};
use crate::stack::Config;
use base::{Span, Time};

/// The smallest window, segments (`MIN_CWND`).
const LEAST_WINDOW: f64 = 2.0;
/// What is left of the window after a loss.
const BETA: f64 = 0.5;
/// Slow start ends at this share of the target.
const START_ENDS: f64 = 0.75;
/// How long each least delay of the history is measured.
const ROLLOVER: Span = Span::from_secs(60);

/// What the RFC leaves to the implementation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    /// The queueing delay that the sender steers to.
    pub target: Span,
    /// Segments by which the window grows in a round trip when there is no queue.
    pub gain: f64,
    /// Segments by which the window may exceed what is outstanding.
    pub allowed_increase: u32,
    /// Minutes of which the least delay is remembered, at most [`Settings::MOST_HISTORY`].
    pub base_history: u32,
    /// The most samples of which the least is the delay of now, at most [`Settings::MOST_FILTER`].
    pub current_filter: u32,
    /// Whether the window doubles every round trip at first.
    pub slow_start: bool,
}

impl Settings {
    /// The longest history, minutes.
    pub const MOST_HISTORY: u32 = 20;
    /// The longest filter, samples.
    pub const MOST_FILTER: u32 = 16;
    /// `TARGET` is the most that the RFC allows, as in the implementations of BitTorrent and of Linux; the others are
    /// as the RFC recommends, and `GAIN` at most 1.
    pub const DEFAULT: Self = Self {
        target: Span::from_ms(100),
        gain: 1.0,
        allowed_increase: 1,
        base_history: 10,
        current_filter: 4,
        slow_start: false,
    };
}

/// The state of LEDBAT.
#[derive(Clone, PartialEq, Debug)]
pub struct Ledbat {
    settings: Settings,
    /// The last delays and when they were heard of, the newest first; as many as there are.
    current: [(Time, Span); Settings::MOST_FILTER as usize],
    samples: usize,
    /// The least delay of each minute, the newest first; as many as there are.
    base: [Span; Settings::MOST_HISTORY as usize],
    minutes: usize,
    /// The minute of the newest of these.
    minute: u64,
    /// Bytes outstanding before the last acknowledgement.
    flight: f64,
    /// What the window is more than whole segments, where it is such.
    rest: f64,
}

base::left_whole!(Ledbat);

impl Ledbat {
    /// One with these settings.
    pub fn with(settings: Settings) -> Self {
        Self {
            settings,
            current: [(Time::ZERO, Span::ZERO); Settings::MOST_FILTER as usize],
            samples: 0,
            base: [Span::ZERO; Settings::MOST_HISTORY as usize],
            minutes: 0,
            minute: 0,
            flight: 0.0,
            rest: 0.0,
        }
    }

    /// Takes a sample of the delay.
    fn sample(&mut self, delay: Span, now: Time) {
        let kept = self.settings.current_filter as usize;
        self.current[..kept].rotate_right(1);
        self.current[0] = (now, delay);
        self.samples = (self.samples + 1).min(kept);
        let minute = now.ns() / ROLLOVER.ns();
        if self.minutes == 0 || minute != self.minute {
            let kept = self.settings.base_history as usize;
            self.base[..kept].rotate_right(1);
            self.base[0] = delay;
            self.minutes = (self.minutes + 1).min(kept);
            self.minute = minute;
        } else {
            self.base[0] = self.base[0].min(delay);
        }
    }

    /// The least delay of the history, once there is a sample.
    pub fn base_delay(&self) -> Option<Span> {
        self.base[..self.minutes].iter().copied().min()
    }

    /// The queueing delay, by samples of the last round trip; the newest counts in any case.
    pub fn queueing_delay(&self, srtt: Option<Span>, now: Time) -> Option<Span> {
        let is_recent = |at: Time| srtt.is_none_or(|srtt| now.since(at) <= srtt);
        let (newest, older) = self.current[..self.samples].split_first()?;
        let least = older.iter().filter(|(at, _)| is_recent(*at)).map(|(_, delay)| *delay).fold(newest.1, Span::min);
        Some(least.saturating_sub(self.base_delay()?))
    }

    /// How far the queueing delay is below the target, as a share of this: 1 without a queue, negative above.
    fn off_target(&self, queueing: Span) -> f64 {
        let target = self.settings.target.secs_f64();
        (target - queueing.secs_f64()) / target
    }

    /// Lets slow start go on. Returns whether it did.
    fn starts(&self, window: &mut Window, off_target: f64, acked: &Acked) -> bool {
        let goes_on = self.settings.slow_start && window.in_slow_start() && 1.0 - off_target < START_ENDS;
        if goes_on {
            slow_start(window, acked);
        } else {
            window.ssthresh = window.ssthresh.min(window.cwnd);
        }
        goes_on
    }
}

impl Controller for Ledbat {
    const STARTS_ITSELF: bool = true;

    fn new(config: &Config) -> Self {
        Self::with(config.ledbat)
    }

    fn watches(&self) -> bool {
        true
    }

    fn heeds_silence(&self) -> bool {
        false
    }

    fn delivered(&mut self, _window: &mut Window, delivery: &Delivery) {
        // Nothing was heard of: the frame may leave such an acknowledgement out.
        if delivery.bytes == 0 {
            return;
        }
        self.flight = (delivery.nxt - delivery.una + delivery.bytes) as f64;
        if let Some(rtt) = delivery.rtt {
            self.sample(delivery.one_way.unwrap_or(rtt), delivery.now);
        }
    }

    fn grow(&mut self, window: &mut Window, acked: &Acked) {
        // Nothing is known yet, as little as before the first sample in the RFC.
        let Some(queueing) = self.queueing_delay(acked.srtt, acked.now) else { return };
        let off_target = self.off_target(queueing);
        if self.starts(window, off_target, acked) {
            return;
        }
        let cwnd = window.cwnd + self.rest;
        let grown = cwnd + self.settings.gain * off_target * acked.bytes as f64 * acked.mss / cwnd;
        let most = self.flight + f64::from(self.settings.allowed_increase) * acked.mss;
        let set = grown.min(most).max(LEAST_WINDOW * acked.mss);
        window.cwnd = if acked.whole_segments { (set / acked.mss).floor() * acked.mss } else { set };
        self.rest = set - window.cwnd;
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        let cwnd = window.cwnd + self.rest;
        self.rest = 0.0;
        congestion.down((cwnd * BETA).max(LEAST_WINDOW * congestion.mss).min(cwnd))
    }

    fn timed_out(&mut self) {
        self.rest = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Cause;

    const MSS: f64 = 1_000.0;

    fn delivery(delay_ms: u64, now: Time) -> Delivery {
        let rtt = Some(Span::from_ms(100 + delay_ms));
        let one_way = Some(Span::from_ms(delay_ms));
        Delivery { bytes: 1_000, marked: 0, una: 1_000, nxt: 100_000, rtt, one_way, mss: MSS, now }
    }

    fn acked(now: Time) -> Acked {
        let srtt = Some(Span::from_ms(200));
        Acked { bytes: 1_000, mss: MSS, byte_counting: true, whole_segments: false, srtt, now }
    }

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// The window after an acknowledgement whose data took `delay_ms`, from 20 segments.
    fn after(ledbat: &mut Ledbat, delay_ms: u64, now: Time) -> f64 {
        let mut window = Window { cwnd: 20.0 * MSS, ssthresh: f64::INFINITY };
        ledbat.delivered(&mut window, &delivery(delay_ms, now));
        ledbat.grow(&mut window, &acked(now));
        window.cwnd / MSS - 20.0
    }

    #[test]
    fn the_window_follows_the_distance_from_the_target() {
        // A twentieth of a segment without a queue, nothing at the target, as much less again at twice the target; a
        // queue of 25 ms leaves three quarters. The filter has one sample.
        let mut ledbat = Ledbat::with(Settings { current_filter: 1, ..Settings::DEFAULT });
        for (k, (delay_ms, grown)) in [(30, 0.05), (130, 0.0), (230, -0.05), (55, 0.0375)].into_iter().enumerate() {
            let found = after(&mut ledbat, delay_ms, at(k as u64));
            assert!((found - grown).abs() < 1e-9, "{delay_ms} ms: {found}");
        }
        assert_eq!(ledbat.base_delay(), Some(Span::from_ms(30)));
    }

    #[test]
    fn the_least_of_the_filter_counts_as_long_as_it_is_of_this_round_trip() {
        let mut ledbat = Ledbat::with(Settings::DEFAULT);
        ledbat.sample(Span::from_ms(10), at(0));
        let srtt = Some(Span::from_ms(200));
        for (ms, delay, queueing) in [(300, 50, 40), (310, 40, 30), (320, 90, 30), (330, 91, 30), (340, 92, 30)] {
            ledbat.sample(Span::from_ms(delay), at(ms));
            assert_eq!(ledbat.queueing_delay(srtt, at(ms)), Some(Span::from_ms(queueing)), "at {ms} ms");
        }
        // 40 ms was the fifth but one.
        ledbat.sample(Span::from_ms(93), at(350));
        assert_eq!(ledbat.queueing_delay(srtt, at(350)), Some(Span::from_ms(80)));
        // All but the newest are older than a round trip.
        ledbat.sample(Span::from_ms(99), at(700));
        assert_eq!(ledbat.queueing_delay(srtt, at(700)), Some(Span::from_ms(89)));
    }

    #[test]
    fn a_base_delay_is_forgotten_after_its_minutes() {
        let mut ledbat = Ledbat::with(Settings { base_history: 3, ..Settings::DEFAULT });
        for (minute, delay, base) in [(0, 10, 10), (1, 30, 10), (2, 40, 10), (3, 50, 30), (4, 20, 20), (9, 60, 20)] {
            ledbat.sample(Span::from_ms(delay), at(minute * 60_000 + 7));
            assert_eq!(ledbat.base_delay(), Some(Span::from_ms(base)), "minute {minute}");
        }
    }

    #[test]
    fn the_window_exceeds_what_is_outstanding_by_what_is_allowed() {
        // 10 of 20 segments are outstanding: one more is allowed. Below two it never comes.
        let mut ledbat = Ledbat::with(Settings::DEFAULT);
        let mut window = Window { cwnd: 20.0 * MSS, ssthresh: f64::INFINITY };
        ledbat.delivered(&mut window, &Delivery { nxt: 10_000, ..delivery(30, at(0)) });
        ledbat.grow(&mut window, &acked(at(0)));
        assert_eq!(window.cwnd, 11.0 * MSS);
        ledbat.delivered(&mut window, &delivery(20_000, at(300)));
        ledbat.grow(&mut window, &acked(at(300)));
        assert_eq!(window.cwnd, 2.0 * MSS);
    }

    #[test]
    fn whole_segments_lose_nothing() {
        // 20 acknowledgements of a twentieth of a segment each, and a little less as the window is larger by what it
        // has gathered.
        let mut ledbat = Ledbat::with(Settings::DEFAULT);
        let mut window = Window { cwnd: 20.0 * MSS, ssthresh: f64::INFINITY };
        let mut exact = 20.0;
        for k in 0..200 {
            ledbat.delivered(&mut window, &delivery(30, at(k)));
            ledbat.grow(&mut window, &Acked { whole_segments: true, ..acked(at(k)) });
            exact += 1.0 / exact;
            assert!((window.cwnd / MSS - f64::floor(exact + 1e-9)).abs() < 1e-9, "{} for {exact}", window.cwnd);
        }
    }

    #[test]
    fn a_loss_halves_but_never_raises_the_window() {
        let mut ledbat = Ledbat::with(Settings::DEFAULT);
        let congestion =
            Congestion { cause: Cause::Loss, flight: 0.0, mss: MSS, whole_segments: false, abe: false, now: at(0) };
        for (cwnd, left) in [(20.0, 10.0), (3.0, 2.0), (1.0, 1.0)] {
            let window = Window { cwnd: cwnd * MSS, ssthresh: f64::INFINITY };
            assert_eq!(ledbat.reduced(&window, &congestion), left * MSS);
        }
    }

    #[test]
    fn slow_start_where_it_is_asked_for_ends_at_three_quarters_of_the_target() {
        let mut ledbat = Ledbat::with(Settings { slow_start: true, current_filter: 1, ..Settings::DEFAULT });
        assert!((after(&mut ledbat, 30, at(0)) - 1.0).abs() < 1e-9);
        assert!((after(&mut ledbat, 104, at(1)) - 1.0).abs() < 1e-9);
        // 75 ms: a quarter of a twentieth.
        assert!((after(&mut ledbat, 105, at(2)) - 0.0125).abs() < 1e-9);
    }
}
