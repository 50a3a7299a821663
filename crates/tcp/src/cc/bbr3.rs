//! BBR, version 3, models the path by a rate, a round trip, and by how much may be in the network before too much of it
//! is lost or marked. It probes for more every few seconds, and answers losses in between by a bound that holds until
//! the next probe.
//!
//! Source: Cardwell, Swett and Beshay, "BBR Congestion Control", draft-ietf-ccwg-bbr, as it was after revision 06 (its
//! source of 3 August 2026). The draft leaves the answer to marks open, but wants one. It is here that of Google's
//! tcp_bbr.c (branch v3): [`marks`].
//!
//! | draft                                        | here                                             |
//! |----------------------------------------------|--------------------------------------------------|
//! | `BBR.max_bw`, `bw`, `bw_shortterm`           | `max_rate`, `rate`, `rate_short`, segments a s   |
//! | `BBR.inflight_longterm`, `_shortterm`        | `most_long`, `most_short`, segments              |
//! | `BBR.bw_latest`, `inflight_latest`           | `rate_latest`, `volume_latest`                   |
//! | `BBR.min_rtt`, `probe_rtt_min_delay`         | `min_rtt`, `probe_min_rtt`                       |
//! | `BBR.round_count`, `next_round_delivered`    | `rounds`, `round_end`                            |
//! | `BBR.full_bw`, `_count`, `_now`, `_reached`  | `full_rate`, `full_rounds`, `is_full_now`, `is_full` |
//! | `BBR.ack_phase`, the states of ProbeBW       | [`cycle`]                                        |
//! | `BBR.extra_acked`                            | `extra`                                          |
//! | `C.send_quantum`                             | `quantum`                                        |
//! | Infinity                                     | infinity, or `None` for a round trip             |
//!
//! Deviations.
//! - Volumes are segments, where the draft has bytes.
//! - An acknowledgement that gives no rate (its interval is shorter than the shortest round trip) advances no round.
//! - What was found lost is told with the acknowledgement at hand, after a timeout with the next one.
//! - `C.is_cwnd_limited` is that the window was full before an acknowledgement of this round or the last.
//! - Where marks are not counted (RFC 3168), an echo of one is a loss in the round.
//! - The end of a precautionary probe goes by what was in the network before the acknowledgement, as in Google's
//!   tcp_bbr.c, where the draft takes what is in it now.

mod cycle;
mod marks;
mod round_trip;
mod startup;

use super::windowed::WindowedMax;
use super::{Cause, Congestion, Controller, Lost, Sample, Stage, Steer, Window};
use crate::stack::Config;
use base::{Span, Time, maths};
use cycle::AckPhase;
pub use cycle::State;
use marks::Marks;

/// `StartupPacingGain`, 4 ln 2.
const STARTUP_GAIN: f64 = 2.77;
/// `DrainPacingGain`.
const DRAIN_GAIN: f64 = 0.5;
/// `DefaultCwndGain`.
const WINDOW_GAIN: f64 = 2.0;
/// `PacingMarginPercent`.
const PACING_MARGIN: f64 = 0.99;
/// `LossThresh`.
const LOSS_THRESHOLD: f64 = 0.02;
/// `Beta`.
const BETA: f64 = 0.7;
/// `Headroom`.
const HEADROOM: f64 = 0.15;
/// `MinPipeCwnd`, segments.
const LEAST_WINDOW: f64 = 4.0;
/// `ProbeRTTCwndGain`.
const PROBE_RTT_GAIN: f64 = 0.5;
/// `ExtraAckedFilterLen`, rounds.
const EXTRA_ROUNDS: u64 = 10;
/// The send quantum: what is sent in 1/`BURSTS` of a second, no more than 64 kB and no less than two segments.
const BURSTS: f64 = 1_000.0;
const MOST_BURST: f64 = 65_536.0;
const LEAST_BURST: u64 = 2;
/// The round trip that is assumed before one is known.
const NOMINAL_RTT: Span = Span::from_ms(1);

/// What was saved when losses began, in case they turn out to be none.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Undo {
    state: Option<State>,
    rate_short: f64,
    most_short: f64,
    most_long: f64,
}

/// The state of BBR.
#[derive(Clone, PartialEq, Debug)]
pub struct Bbr3 {
    state: State,
    // ── rounds ──
    rounds: u64,
    round_end: u64,
    is_round_start: bool,
    /// The round in which the window was last seen full.
    limited_round: Option<u64>,
    // ── the long-term model ──
    /// The greatest rate of the cycle before, and of this one.
    max_rates: [f64; 2],
    min_rtt: Option<Span>,
    min_rtt_at: Time,
    most_long: f64,
    // ── the short-term model ──
    rate: f64,
    rate_short: f64,
    most_short: f64,
    rate_latest: f64,
    volume_latest: f64,
    loss_round_end: u64,
    is_loss_round_start: bool,
    is_loss_in_round: bool,
    /// A probe for the tail has repaired a loss that is not noted yet.
    has_probe_repaired: bool,
    // ── startup and drain ──
    full_rate: f64,
    full_rounds: u32,
    is_full_now: bool,
    is_full: bool,
    /// Ranges lost since the round began, and where the last of them ended.
    lost_ranges: u32,
    lost_to: u64,
    drain_began: u64,
    // ── probing for bandwidth ──
    ack_phase: AckPhase,
    is_probe_sample: bool,
    up_acked: f64,
    acked_per_step: f64,
    up_rounds: u32,
    rounds_since_up: u64,
    probe_wait: Span,
    cycle_began: Time,
    was_too_high: bool,
    was_precautionary: bool,
    // ── probing for the round trip ──
    probe_min_rtt: Option<Span>,
    probe_min_rtt_at: Time,
    is_probe_rtt_due: bool,
    probe_rtt_ends: Option<Time>,
    has_probed_a_round: bool,
    // ── aggregation ──
    extra: WindowedMax,
    extra_began: Time,
    extra_delivered: f64,
    // ── recovery ──
    prior_cwnd: f64,
    prior_stage: Stage,
    undo: Undo,
    is_undone: bool,
    is_restarting: bool,
    marks: Marks,
    initial_window: f64,
    /// Payload bytes a second.
    pacing_rate: f64,
}

base::left_whole!(Bbr3);

impl Bbr3 {
    /// What the controller does at present.
    pub fn state(&self) -> State {
        self.state
    }

    /// The greatest rate of delivery of this cycle and the one before, segments a second.
    pub fn max_rate(&self) -> f64 {
        self.max_rates[0].max(self.max_rates[1])
    }

    /// The rate that the model deems right at present, segments a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// The shortest round trip, once one was measured.
    pub fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    /// How many segments may be in the network in the long term; infinite before losses or marks have told.
    pub fn most_long(&self) -> f64 {
        self.most_long
    }

    /// Rate and segments in the network that recent losses and marks allow; infinite where there were none.
    pub fn short_term(&self) -> (f64, f64) {
        (self.rate_short, self.most_short)
    }

    /// Whether the pipe was full once.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// When the next probe for bandwidth comes: the rounds that count as passed already, and how long it waits at most,
    /// seconds. Both were drawn when the cycle began.
    pub fn waits(&self) -> (u64, f64) {
        (self.rounds_since_up, self.probe_wait.secs_f64())
    }

    // ── rounds ──

    fn start_round(&mut self, delivered: u64) {
        self.round_end = delivered;
    }

    /// `UpdateRound`.
    fn update_round(&mut self, prior: Option<u64>, sample: &Sample) {
        self.is_round_start = prior.is_some_and(|prior| prior >= self.round_end);
        if self.is_round_start {
            self.start_round(sample.delivered);
            self.rounds += 1;
            self.rounds_since_up += 1;
        }
    }

    /// `C.is_cwnd_limited`.
    fn is_window_used(&self) -> bool {
        self.limited_round.is_some_and(|round| self.rounds - round <= 1)
    }

    // ── the model ──

    /// `UpdateLatestDeliverySignals`.
    fn update_latest(&mut self, measured: f64, volume: f64, prior: Option<u64>, sample: &Sample) {
        self.rate_latest = self.rate_latest.max(measured);
        self.volume_latest = self.volume_latest.max(volume);
        self.is_loss_round_start = prior.is_some_and(|prior| prior >= self.loss_round_end);
        if self.is_loss_round_start {
            self.loss_round_end = sample.delivered;
        }
    }

    /// `UpdateCongestionSignals`.
    fn update_signals(&mut self, measured: f64, window: &Window, sample: &Sample) {
        let is_app_limited = sample.rate.is_some_and(|rate| rate.is_app_limited);
        // What the application limited counts only where it is more than was known.
        if measured > 0.0 && (measured >= self.max_rate() || !is_app_limited) {
            self.max_rates[1] = self.max_rates[1].max(measured);
        }
        if self.is_loss_round_start {
            self.adapt_lower_bounds(window.cwnd / sample.mss);
            self.is_loss_in_round = false;
            self.marks.end_round();
        }
    }

    /// `AdaptLowerBoundsFromCongestion`, with marks as in bbr_adapt_lower_bounds.
    fn adapt_lower_bounds(&mut self, cwnd: f64) {
        if self.is_probing() {
            return;
        }
        let mut marked = f64::INFINITY;
        if self.marks.is_in_round() {
            self.most_short = self.most_short.min(cwnd.max(self.most_short_or(cwnd)));
            marked = (self.most_short * self.marks.keeps()).floor();
        }
        if self.is_loss_in_round {
            if self.rate_short.is_infinite() {
                self.rate_short = self.max_rate();
            }
            self.most_short = self.most_short_or(cwnd);
            self.rate_short = self.rate_latest.max(BETA * self.rate_short);
            self.most_short = self.volume_latest.max(BETA * self.most_short).floor();
        }
        self.most_short = self.most_short.min(marked);
    }

    /// `InitLowerBounds` for what is in the network.
    fn most_short_or(&self, cwnd: f64) -> f64 {
        if self.most_short.is_infinite() { cwnd } else { self.most_short }
    }

    /// `AdvanceLatestDeliverySignals`.
    fn advance_latest(&mut self, measured: f64, volume: f64) {
        if self.is_loss_round_start {
            (self.rate_latest, self.volume_latest) = (measured, volume);
        }
    }

    fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.rate_latest, self.volume_latest) = (0.0, 0.0);
        self.marks.begin_cycle();
    }

    fn reset_short_term(&mut self) {
        (self.rate_short, self.most_short) = (f64::INFINITY, f64::INFINITY);
    }

    /// `UpdateACKAggregation`.
    fn update_extra(&mut self, cwnd: f64, sample: &Sample) {
        let mut expected = self.rate * sample.now.since(self.extra_began).secs_f64();
        if self.extra_delivered <= expected {
            (self.extra_delivered, self.extra_began, expected) = (0.0, sample.now, 0.0);
        }
        self.extra_delivered += sample.newly_delivered as f64;
        let extra = (self.extra_delivered - expected).min(cwnd);
        let rounds = if self.is_full { EXTRA_ROUNDS } else { 1 };
        self.extra.update(rounds, self.rounds, extra);
    }

    /// `gain` times what the path holds at `rate`.
    fn held_by_path(&self, rate: f64, gain: f64) -> f64 {
        match self.min_rtt {
            Some(rtt) => gain * rate * rtt.secs_f64(),
            None => self.initial_window,
        }
    }

    /// `TargetInflight`.
    fn target(&self, cwnd: f64) -> f64 {
        self.held_by_path(self.rate, 1.0).min(cwnd)
    }

    /// `C.send_quantum`, in segments.
    fn quantum(&self, mss: f64) -> f64 {
        (self.pacing_rate / BURSTS).min(MOST_BURST).max(LEAST_BURST as f64 * mss) / mss
    }

    /// `QuantizationBudget`.
    fn with_bursts(&self, segments: f64, mss: f64) -> f64 {
        let least = segments.max(3.0 * self.quantum(mss)).max(LEAST_WINDOW);
        if self.state == State::Up { least + 2.0 } else { least }
    }

    /// `Inflight` at the rate `rate`.
    fn inflight(&self, rate: f64, mss: f64) -> f64 {
        self.with_bursts(self.held_by_path(rate, 1.0), mss)
    }

    // ── losses ──

    /// `NoteLoss`.
    fn note_loss(&mut self, delivered: u64, cwnd: f64) {
        if !self.is_loss_in_round {
            self.loss_round_end = delivered;
            self.save_state(cwnd);
        }
        self.is_loss_in_round = true;
    }

    /// `SaveStateUponLoss`.
    fn save_state(&mut self, cwnd: f64) {
        self.save_window(cwnd);
        let Self { rate_short, most_short, most_long, .. } = *self;
        self.undo = Undo { state: None, rate_short, most_short, most_long };
    }

    /// `SaveCwnd`.
    fn save_window(&mut self, cwnd: f64) {
        let is_whole = self.prior_stage == Stage::Open && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_whole { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// What `HandleSpuriousLossDetection` does but for the window.
    fn take_back(&mut self, delivered: u64) {
        self.is_loss_in_round = false;
        self.reset_full();
        self.rate_short = self.rate_short.max(self.undo.rate_short);
        self.most_short = self.most_short.max(self.undo.most_short);
        self.most_long = self.most_long.max(self.undo.most_long);
        let is_away = self.state != State::ProbeRtt;
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.is_full = false;
                self.state = if is_away { State::Startup } else { self.state };
            }
            Some(State::Up) if self.state != State::Up && is_away => self.start_refill(0, delivered),
            _ => {}
        }
    }

    // ── what is set ──

    fn gains(&self) -> (f64, f64) {
        match self.state {
            State::Startup => (STARTUP_GAIN, WINDOW_GAIN),
            State::Drain => (DRAIN_GAIN, WINDOW_GAIN),
            State::Down => (cycle::DOWN_GAIN, WINDOW_GAIN),
            State::Cruise | State::Refill => (1.0, WINDOW_GAIN),
            State::Up => (cycle::UP_GAIN, cycle::UP_WINDOW_GAIN),
            State::ProbeRtt => (1.0, PROBE_RTT_GAIN),
        }
    }

    /// `SetPacingRateWithGain`.
    fn set_pacing_rate(&mut self, gain: f64, mss: f64) {
        let rate = gain * self.rate * PACING_MARGIN * mss;
        if self.is_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// `SetCwnd`, `BoundCwndForProbeRTT`, `BoundCwndForModel`.
    fn set_window(&mut self, window: &mut Window, sample: &Sample) {
        let mut cwnd = window.cwnd / sample.mss;
        let newly = sample.newly_delivered as f64;
        if sample.newly_delivered > 0 {
            let held = self.held_by_path(self.rate, self.gains().1) + self.extra.get();
            let most = self.with_bursts(held, sample.mss);
            if self.is_full {
                cwnd = (cwnd + newly).min(most);
            } else if cwnd < most || (sample.delivered as f64) < self.initial_window {
                cwnd += newly;
            }
            cwnd = cwnd.max(LEAST_WINDOW);
        }
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_window());
        }
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.most_long,
            State::Cruise | State::ProbeRtt => self.with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        cwnd = cwnd.min(cap.min(self.most_short).max(LEAST_WINDOW));
        window.cwnd = cwnd.floor() * sample.mss;
    }
}

impl Controller for Bbr3 {
    const MODELS_PATH: bool = true;

    fn new(config: &Config) -> Self {
        let initial_window = f64::from(config.initial_window);
        let rate = initial_window / NOMINAL_RTT.secs_f64();
        Self {
            state: State::Startup,
            rounds: 0,
            round_end: 0,
            is_round_start: false,
            limited_round: None,
            max_rates: [0.0; 2],
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            most_long: f64::INFINITY,
            rate: 0.0,
            rate_short: f64::INFINITY,
            most_short: f64::INFINITY,
            rate_latest: 0.0,
            volume_latest: 0.0,
            loss_round_end: 0,
            is_loss_round_start: false,
            is_loss_in_round: false,
            has_probe_repaired: false,
            full_rate: 0.0,
            full_rounds: 0,
            is_full_now: false,
            is_full: false,
            lost_ranges: 0,
            lost_to: 0,
            drain_began: 0,
            ack_phase: AckPhase::Init,
            is_probe_sample: false,
            up_acked: 0.0,
            acked_per_step: f64::INFINITY,
            up_rounds: 0,
            rounds_since_up: 0,
            probe_wait: Span::ZERO,
            cycle_began: Time::ZERO,
            was_too_high: false,
            was_precautionary: false,
            probe_min_rtt: None,
            probe_min_rtt_at: Time::ZERO,
            is_probe_rtt_due: false,
            probe_rtt_ends: None,
            has_probed_a_round: false,
            extra: WindowedMax::default(),
            extra_began: Time::ZERO,
            extra_delivered: 0.0,
            prior_cwnd: 0.0,
            prior_stage: Stage::Open,
            undo: Undo { state: None, rate_short: 0.0, most_short: 0.0, most_long: 0.0 },
            is_undone: false,
            is_restarting: false,
            marks: Marks::new(),
            initial_window,
            pacing_rate: STARTUP_GAIN * rate * f64::from(config.mss),
        }
    }

    fn opened(&mut self, window: &Window, _mss: f64, rtt: Span, now: Time) {
        (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        (self.probe_min_rtt, self.probe_min_rtt_at) = (Some(rtt), now);
        self.extra_began = now;
        self.pacing_rate = STARTUP_GAIN * window.cwnd / rtt.max(Span::from_us(1)).secs_f64();
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        match congestion.cause {
            Cause::Mark => self.marks.hear_echo(),
            Cause::Loss => self.save_state(window.cwnd / congestion.mss),
            Cause::Probed => {
                self.save_state(window.cwnd / congestion.mss);
                self.has_probe_repaired = true;
            }
        }
        window.ssthresh
    }

    fn timed_out(&mut self) {
        self.prior_stage = Stage::Timeout;
    }

    fn undone(&mut self, _window: &mut Window) {
        self.is_undone = true;
    }

    fn lost(&mut self, window: &Window, lost: &Lost) {
        let cwnd = window.cwnd / lost.mss;
        self.note_loss(lost.delivered, cwnd);
        self.lost_ranges += u32::from(lost.seq != self.lost_to);
        self.lost_to = lost.end;
        self.handle_lost(lost, cwnd);
    }

    fn sampled(&mut self, window: &mut Window, sample: &Sample) {
        let measured = sample.rate.map_or(0.0, |rate| rate.segments as f64 / rate.interval.secs_f64());
        let volume = sample.rate.map_or(0.0, |rate| rate.segments as f64);
        let prior = sample.rate.map(|rate| rate.prior);
        if sample.prior_in_flight as f64 >= (window.cwnd / sample.mss).floor() {
            self.limited_round = Some(self.rounds);
        }
        if std::mem::take(&mut self.is_undone) {
            window.cwnd = window.cwnd.max(self.prior_cwnd * sample.mss);
            self.take_back(sample.delivered);
        }
        if sample.stage == Stage::Open && self.prior_stage != Stage::Open {
            window.cwnd = window.cwnd.max(self.prior_cwnd * sample.mss);
        }
        let cwnd = (window.cwnd / sample.mss).floor();
        if self.marks.takes_echo(sample) | std::mem::take(&mut self.has_probe_repaired) {
            self.note_loss(sample.delivered, cwnd);
        }
        self.update_latest(measured, volume, prior, sample);
        self.update_round(prior, sample);
        self.update_marks(sample);
        self.update_signals(measured, window, sample);
        self.update_extra(cwnd, sample);
        self.check_full(measured, sample);
        self.check_startup_losses(sample);
        self.check_drained(sample);
        self.update_cycle(measured, cwnd, sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(window, sample);
        self.advance_latest(measured, volume);
        self.rate = self.max_rate().min(self.rate_short);
        self.set_pacing_rate(self.gains().0, sample.mss);
        self.set_window(window, sample);
        self.prior_stage = sample.stage;
    }

    fn restarted(&mut self, window: &mut Window, mss: f64, now: Time) {
        self.is_restarting = true;
        self.extra_began = now;
        match self.state {
            // There is no need for more than the estimate: the network is empty.
            State::Down | State::Cruise | State::Refill | State::Up => self.set_pacing_rate(1.0, mss),
            State::ProbeRtt => self.check_probed(window, self.round_end, mss, now),
            State::Startup | State::Drain => {}
        }
    }

    fn steer(&self) -> Option<Steer> {
        Some(Steer {
            bytes_per_second: self.pacing_rate,
            least_burst: LEAST_BURST,
            bursts_per_second: Some(BURSTS),
            hides_rate: self.state == State::ProbeRtt,
        })
    }
}

/// Uniform on [0, 1), from what differs between connections and instants.
fn drawn(now: Time, salt: u64) -> f64 {
    (maths::mix64(now.ns() ^ salt.rotate_left(40)) >> 11) as f64 / (1_u64 << 53) as f64
}
