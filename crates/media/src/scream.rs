//! SCReAM v2 sets the rate of a source of media by a window that reports of its packets move: Self-Clocked Rate
//! Adaptation for Multimedia.
//!
//! Source: draft-ietf-ccwg-rfc8298bis-screamv2-01 of 6 July 2026, whose sections are named below. It revises RFC 8298.
//!
//! - **Reference window** (§4.2.2): bytes that should be in flight. It grows by a segment a round trip, and
//!   multiplicatively after some time without congestion; slower close to where congestion was met last.
//! - **Congestion** is a loss, a mark, or waiting that grows beyond half of a target of 60 ms. A loss takes three
//!   tenths of the window and a Classic mark two; L4S marks take half of their share (`l4s_alpha`), and so does
//!   waiting, by how far it is from half of the target to all of it. It is answered once in a round trip, or in 25 ms
//!   where a round trip is longer.
//! - **Rate** (§4.4): the window over the round trip, less what packets waiting at the sender and varying frames ask
//!   for.
//! - **Pacing** (§4.3.2): at one and a half times that rate, more where the rate is near its greatest.
//!
//! | draft                                       | here                                    |
//! |---------------------------------------------|-----------------------------------------|
//! | `ref_wnd`, `ref_wnd_i`                      | [`Scream::window`], `inflection`        |
//! | `l4s_alpha`                                 | [`Scream::alpha`]                       |
//! | `qdelay`, `qdelay_avg`                      | [`Heard::waits`], `waits_avg`           |
//! | `s_rtt`                                     | [`Heard::round_trip`]                   |
//! | `bytes_newly_acked`, `bytes_newly_acked_ce` | [`Heard::acked`], [`Heard::acked_ce`]   |
//! | `data_units_acked`, `data_units_acked_ce`   | [`Heard::units`], [`Heard::units_ce`]   |
//! | `target_bitrate`, `pace_bitrate`            | [`Scream::rate`], [`Scream::pace`]      |
//! | `rate_adjust_factor`, `frame_size_dev`      | `queue_factor`, `size_factor`           |
//!
//! # Deviations
//! - What is optional is not done: `REDUCE_JITTER`, so that `ref_wnd_delay_scale` is 1 and bytes in flight may be three
//!   times the window; losses below a rate that is forgiven; detection of policers; undershoot; compensation for
//!   competing flows. Clocks do not drift here.
//! - Times that begin at 0 stand for "long ago", as they are on a clock of the wall.
//! - Before a round trip is known the rate is the least.

use base::{Rate, Span, Time};

/// How marks are answered, which goes by the ECN field of the packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// By their share: packets say ECT(1) (`IS_L4S`).
    L4s,
    /// Each in a round trip by the same: packets say ECT(0), or that they cannot be marked.
    Classic,
}

/// The rates between which it moves, and what rates are of.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// The least, bits a second: `TARGET_BITRATE_MIN`.
    pub least: f64,
    /// The greatest, bits a second: `TARGET_BITRATE_MAX`.
    pub greatest: f64,
    /// The largest packet, bytes: `MSS`.
    pub segment: f64,
    /// From one frame to the next, seconds: `frame_period`.
    pub frame_period: f64,
}

impl Rates {
    /// What a configuration says.
    pub fn new(rates: [Rate; 2], segment: u32, frame_period: Span) -> Self {
        let [least, greatest] = rates.map(Rate::bps_f64);
        Self { least, greatest, segment: f64::from(segment), frame_period: frame_period.secs_f64() }
    }
}

/// What a report said, and what the sender made of it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Heard {
    /// Bytes from the highest sequence number that was reported before to the highest now; lost ones count.
    pub acked: f64,
    /// Bytes of packets that were reported for the first time, and as marked.
    pub acked_ce: f64,
    /// Packets that were reported for the first time, and those of them that were marked.
    pub units: u32,
    /// Those of them that were marked.
    pub units_ce: u32,
    /// Whether a packet was found to be lost.
    pub is_loss: bool,
    /// How long the last packet waited on its way, seconds.
    pub waits: f64,
    /// The smoothed round trip, seconds.
    pub round_trip: f64,
    /// Bytes in flight after it.
    pub in_flight: f64,
}

// §4.2.1, §4.2.2: constants with their recommended values. Times are in seconds, sizes in bytes.
const ALPHA_GAIN_UP: f64 = 1.0 / 8.0;
const ALPHA_GAIN_DOWN: f64 = 1.0 / 128.0;
const ALPHA_UPDATE: f64 = 0.01;
const WAITS_GAIN: f64 = 1.0 / 4.0;
const WAITS_TARGET: f64 = 0.06;
const LEAST_WINDOW: f64 = 3000.0;
const HEAD_ROOM: f64 = 1.5;
const BETA_LOSS: f64 = 0.7;
const BETA_ECN: f64 = 0.8;
const CAUTIOUS_ROUNDS: f64 = 100.0;
const MULTIPLICATIVE: f64 = 0.02;
const VIRTUAL_ROUND_TRIP: f64 = 0.025;
// §4.3
const WINDOW_OVERHEAD: f64 = 3.0;
const LEAST_PACE: f64 = 50_000.0;
const PACE_HEAD_ROOM: f64 = 1.5;
const PACE_RELAXED: f64 = 4.0;
const PACE_RELAXED_FROM: f64 = 0.8;
// §4.4
const PACKET_OVERHEAD: f64 = 20.0;
const QUEUE_GAIN: f64 = 1.0 / 16.0;
const SIZE_GAIN: f64 = 1.0 / 64.0;

/// Since when, on a clock on which nothing has happened yet.
type Since = Option<Time>;

/// The state of SCReAM.
#[derive(Clone, Debug)]
pub struct Scream {
    mode: Mode,
    rates: Rates,
    window: f64,
    inflection: f64,
    may_set_inflection: bool,
    alpha: f64,
    alpha_at: Since,
    units: u32,
    units_ce: u32,
    waits_avg: f64,
    waits_at: Since,
    /// A packet was lost, or marked, since congestion was last answered.
    is_loss: bool,
    is_marked: bool,
    detected_at: Since,
    answered_at: Since,
    acked: f64,
    acked_ce: f64,
    grown_at: Since,
    /// The most bytes in flight in this round trip and in the one before, and when this one began.
    most_in_flight: [f64; 2],
    round_at: Since,
    queue_factor: f64,
    size_factor: f64,
    /// What the window gives, bits a second.
    unbounded: f64,
    /// That, within what the encoder can do.
    rate: f64,
}

impl Scream {
    /// The controller at its start.
    pub fn new(mode: Mode, rates: Rates) -> Self {
        Self {
            mode,
            rates,
            window: LEAST_WINDOW,
            inflection: 1.0,
            may_set_inflection: true,
            alpha: 0.0,
            alpha_at: None,
            units: 0,
            units_ce: 0,
            waits_avg: 0.0,
            waits_at: None,
            is_loss: false,
            is_marked: false,
            detected_at: None,
            answered_at: None,
            acked: 0.0,
            acked_ce: 0.0,
            grown_at: None,
            most_in_flight: [0.0; 2],
            round_at: None,
            queue_factor: 0.0,
            size_factor: 0.0,
            rate: rates.least,
            unbounded: 0.0,
        }
    }

    /// The reference window, bytes.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// The share of packets that are marked, smoothed.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The rate that is asked of the encoder, bits a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether `bytes` may be sent while `in_flight` are on their way (§4.3.1).
    pub fn lets_out(&self, bytes: f64, in_flight: f64) -> bool {
        in_flight + bytes <= self.window * WINDOW_OVERHEAD
    }

    /// The rate at which packets follow each other, bits a second (§4.3.2).
    pub fn pace(&self) -> f64 {
        let share = self.rate / self.rates.greatest;
        let relaxed = ((share - PACE_RELAXED_FROM) / (1.0 - PACE_RELAXED_FROM)).min(1.0);
        let scale = (1.0 - relaxed).clamp(1.0 / PACE_RELAXED, 1.0);
        self.rate.max(LEAST_PACE) * PACE_HEAD_ROOM / scale
    }

    /// The rate at which packets follow each other that the window does not let out, bits a second: the least pace.
    pub const fn least_pace() -> f64 {
        LEAST_PACE
    }

    /// So many bytes are in flight after a packet was sent.
    pub fn on_sent(&mut self, in_flight: f64) {
        self.most_in_flight[0] = self.most_in_flight[0].max(in_flight);
    }

    /// A frame of `bytes` is there while the oldest packet that was not sent has waited for `waited` seconds (§4.4).
    pub fn on_frame(&mut self, bytes: f64, waited: f64) {
        let period = self.rates.frame_period;
        let error = (waited - period / 4.0) / period;
        self.queue_factor = (self.queue_factor + error * QUEUE_GAIN).clamp(0.0, 0.5);
        let mean = self.rate * period / 8.0;
        let deviation = ((bytes - mean) / mean).max(0.0);
        self.size_factor = ((1.0 - SIZE_GAIN) * self.size_factor + SIZE_GAIN * deviation).min(0.2);
    }

    /// A report came.
    pub fn on_report(&mut self, heard: &Heard, now: Time) {
        self.count(heard, now);
        self.follow_marks(heard.round_trip, now);
        self.follow_waits(heard, now);
        let near = self.nearness();
        self.shrink(heard, near, now);
        if is_over(self.grown_at, heard.round_trip, now) {
            self.grow(heard.round_trip, near, now);
        }
        self.set_rate(heard.round_trip);
    }

    /// Adds up what reports say (§4.1.2), and what was in flight in a round trip (§4.1.1).
    fn count(&mut self, heard: &Heard, now: Time) {
        self.acked += heard.acked;
        self.acked_ce += heard.acked_ce;
        self.units += heard.units;
        self.units_ce += heard.units_ce;
        self.is_loss |= heard.is_loss;
        self.is_marked |= heard.units_ce > 0;
        if is_over(self.round_at, heard.round_trip, now) {
            self.most_in_flight = [heard.in_flight, self.most_in_flight[0]];
            self.round_at = Some(now);
        }
        self.on_sent(heard.in_flight);
    }

    /// Brings the share of marks up to date (§4.2.1.3): quickly up, slowly down.
    fn follow_marks(&mut self, round_trip: f64, now: Time) {
        if self.units == 0 || !is_over(self.alpha_at, round_trip.min(ALPHA_UPDATE), now) {
            return;
        }
        let share = f64::from(self.units_ce) / f64::from(self.units);
        self.alpha = if share >= self.alpha {
            ALPHA_GAIN_UP * share + (1.0 - ALPHA_GAIN_UP) * self.alpha
        } else {
            (1.0 - ALPHA_GAIN_DOWN) * self.alpha
        };
        (self.units, self.units_ce, self.alpha_at) = (0, 0, Some(now));
    }

    /// Brings the mean of what packets wait up to date (§4.2.1.4): slowly up, at once down.
    fn follow_waits(&mut self, heard: &Heard, now: Time) {
        if is_over(self.waits_at, heard.round_trip.min(VIRTUAL_ROUND_TRIP), now) {
            self.waits_avg = if heard.waits < self.waits_avg {
                heard.waits
            } else {
                WAITS_GAIN * heard.waits + (1.0 - WAITS_GAIN) * self.waits_avg
            };
            self.waits_at = Some(now);
        }
    }

    /// From 0.1 close to the window at which congestion was met last to 1 far from it: `scl_t`.
    fn nearness(&self) -> f64 {
        let away = (self.window - self.inflection) / self.inflection * 8.0;
        (away * away).clamp(0.1, 1.0)
    }

    /// Answers congestion, where it is time to (§4.2.2.1).
    fn shrink(&mut self, heard: &Heard, near: f64, now: Time) {
        if self.is_loss || self.is_marked {
            self.detected_at = Some(now);
        }
        let round_trip = heard.round_trip;
        if !is_over(self.answered_at, round_trip.min(VIRTUAL_ROUND_TRIP), now) {
            return;
        }
        let is_waiting = self.waits_avg > WAITS_TARGET / 2.0;
        if !(self.is_loss || self.is_marked || is_waiting) {
            return;
        }
        if self.may_set_inflection {
            (self.inflection, self.may_set_inflection) = (self.window, false);
        }
        // An answer may come more often than once in a round trip, and is then smaller.
        let often = (round_trip / VIRTUAL_ROUND_TRIP).max(1.0);
        if self.is_loss {
            self.window *= BETA_LOSS;
        } else if self.is_marked && self.mode == Mode::Classic {
            self.window *= BETA_ECN;
        } else if self.is_marked {
            let mut backoff = self.alpha / 2.0 / often;
            if heard.waits < WAITS_TARGET / 4.0 {
                // `ref_wnd_delay_scale` is 1.
                backoff *= near.max(0.25);
            }
            // For long the rate was bounded by its greatest: the window may be larger than what is in flight.
            let since_long = CAUTIOUS_ROUNDS * round_trip.max(VIRTUAL_ROUND_TRIP);
            if self.answered_at.is_none_or(|at| now.since(at).secs_f64() > since_long) {
                self.window = self.window.min(self.most_in_flight[1]);
            }
            self.window *= 1.0 - backoff;
        } else {
            let share = ((self.waits_avg - WAITS_TARGET / 2.0) / (WAITS_TARGET / 2.0)).clamp(0.0, 1.0);
            self.window *= 1.0 - share / 2.0 / often;
        }
        self.window = self.window.max(LEAST_WINDOW);
        (self.is_loss, self.is_marked, self.answered_at) = (false, false, Some(now));
    }

    /// Lets the window grow by what arrived unmarked (§4.2.2.2).
    fn grow(&mut self, round_trip: f64, near: f64, now: Time) {
        let segment = self.rates.segment;
        let rounds = CAUTIOUS_ROUNDS * round_trip.max(VIRTUAL_ROUND_TRIP);
        let since = |at: Time| (now.since(at).secs_f64() / rounds).clamp(0.0, 1.0);
        let cautious = self.detected_at.map_or(1.0, since);
        let share = (segment / self.window).min(1.0);
        let mut increment = (self.acked - self.acked_ce) * share;
        increment *= (round_trip / VIRTUAL_ROUND_TRIP).min(1.0);
        increment *= near.max(0.25);
        increment *= 1.0 + MULTIPLICATIVE * self.window / segment * cautious * near;
        let most = segment + self.most_in_flight[0].max(self.most_in_flight[1]) * HEAD_ROOM;
        if self.window + increment <= most && self.unbounded < self.rates.greatest {
            self.may_set_inflection |= increment > 0.0;
            self.window += increment;
        }
        (self.acked, self.acked_ce, self.grown_at) = (0.0, 0.0, Some(now));
    }

    /// Works out the rate that the window gives (§4.4).
    fn set_rate(&mut self, round_trip: f64) {
        if round_trip <= 0.0 {
            return;
        }
        let Rates { least, greatest, segment, .. } = self.rates;
        let small = ((segment / self.window).min(1.0) - 0.1).clamp(0.0, 0.2);
        let scale = (1.0 - small) * segment / (segment + PACKET_OVERHEAD);
        let scale = scale / (1.2 + self.queue_factor + self.size_factor);
        self.unbounded = scale * 8.0 * self.window / round_trip;
        self.rate = self.unbounded.clamp(least, greatest);
    }
}

/// Whether `seconds` have passed since an instant, if there was one.
fn is_over(since: Since, seconds: f64, now: Time) -> bool {
    since.is_none_or(|at| now.since(at).secs_f64() >= seconds)
}
