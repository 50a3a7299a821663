//! BBR, version 1, models the path by two numbers: the greatest rate of delivery of the last ten rounds, and the
//! shortest round trip of the last ten seconds. It sends at that rate, and lets about twice the product of the two be
//! outstanding.
//!
//! Source: Cardwell et al., "BBR: congestion-based congestion control" (2016); net/ipv4/tcp_bbr.c of Linux 6.12, whose
//! rules these are.
//!
//! | tcp_bbr.c                         | here                                      |
//! |-----------------------------------|-------------------------------------------|
//! | `bw`, `bbr_max_bw`                | `delivery_rate`, segments a second        |
//! | `min_rtt_us`, `min_rtt_stamp`     | `min_rtt`, `min_rtt_at`                   |
//! | `rtt_cnt`, `next_rtt_delivered`   | `rounds`, `round_end`                     |
//! | `full_bw`, `full_bw_cnt`          | `full_rate`, `full_rounds`, `is_full`     |
//! | `cycle_idx`, `cycle_mstamp`       | `phase`, `phase_began`                    |
//! | `probe_rtt_done_stamp`            | `probe_ends`                              |
//! | `prior_cwnd`                      | `prior_cwnd`                              |
//! | `packet_conservation`             | `conserves`                               |
//! | `extra_acked`, `ack_epoch_*`      | [`aggregation`]                           |
//! | `lt_*`                            | [`policer`]                               |
//!
//! Losses take no part in the model. In the first round of a recovery the window is held to what is delivered; after
//! the recovery it is what it was before. BBR does not respond to marks.
//!
//! # Deviations
//! - The phase in which the cycle of gains begins is not drawn at random. It is a hash of the time of that
//!   acknowledgement in nanoseconds and of how much was delivered when the round began. Flows over one bottleneck never
//!   have an acknowledgement at the same instant.
//! - Rates are real numbers instead of 2^-24 segments a microsecond, times are nanoseconds instead of microseconds and
//!   ticks of a millisecond.
//! - Data in the network is counted as its bytes in full segments, rounded up, instead of as segments.
//! - Data that is reported to have come twice (DSACK) counts as delivered once; in Linux twice.
//! - At a timeout the policer's memory has the losses until the last acknowledgement, in Linux also those that the
//!   timeout finds. No round is counted then while the policer's rate holds.

mod aggregation;
mod policer;

use super::windowed::WindowedMax;
use super::{BURSTS, Congestion, Controller, MOST_BURST, Sample, Stage, Steer, Window};
use crate::stack::Config;
use aggregation::Aggregation;
use base::{Span, Time, maths};
use policer::{Change, Policer};

/// The gain of startup, 2/ln 2, in 1/256. Its inverse is the gain that drains the queue again.
const HIGH_GAIN: f64 = 739.0 / 256.0;
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// The gain of the window beyond startup.
const CWND_GAIN: f64 = 2.0;
/// The gains of the rate, one for each phase.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The number of phases that may be the first: all but the one that drains.
const FIRST_PHASES: u64 = 7;
/// Rounds of the rate's filter.
const RATE_ROUNDS: u64 = 10;
/// How long a round trip stays the shortest, and how long only four segments are out to find a new one.
const MIN_RTT_STAYS: Span = Span::from_secs(10);
const PROBE_RTT: Span = Span::from_ms(200);
/// The window is four segments at least.
const LEAST_WINDOW: u64 = 4;
/// The pipe is full when the rate has not grown by a quarter for three rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Data is sent at 99 % of the rate at which it was delivered.
const PACING_MARGIN: f64 = 0.99;
/// Below this rate, bytes a second, bursts are single segments: 1.2 Mb/s.
const SINGLE_SEGMENTS: f64 = 150_000.0;
/// TCP_INIT_CWND, and the round trip that is assumed before one is known.
const INITIAL_WINDOW: u64 = 10;
const NOMINAL_RTT: Span = Span::from_ms(1);
/// The most segments of a burst that the window allows for.
const MOST_SEGMENTS: u64 = 127;

/// What the controller does at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// It doubles the rate every round.
    Startup,
    /// It drains the queue that startup made.
    Drain,
    /// It shares the bottleneck: it sends more for a round trip, less for one, then as much as is delivered.
    ProbeBandwidth,
    /// It keeps four segments out, to see the round trip without a queue.
    ProbeRtt,
}

/// The state of BBR. Windows are in segments.
#[derive(Clone, PartialEq, Debug)]
pub struct Bbr {
    mode: Mode,
    delivery_rate: WindowedMax,
    min_rtt: Option<Span>,
    min_rtt_at: Time,
    rounds: u64,
    round_end: u64,
    is_round_start: bool,
    full_rate: f64,
    full_rounds: u32,
    is_full: bool,
    phase: usize,
    phase_began: Time,
    probe_ends: Option<Time>,
    has_probed_a_round: bool,
    prior_cwnd: u64,
    conserves: bool,
    prior_stage: Stage,
    is_restarting: bool,
    aggregation: Aggregation,
    policer: Policer,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// Payload bytes a second.
    pacing_rate: f64,
    has_seen_rtt: bool,
}

base::left_whole!(Bbr);

impl Bbr {
    /// What the controller does at present.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The rate at which the path delivers, segments a second.
    pub fn rate(&self) -> f64 {
        self.policer.rate().unwrap_or(self.delivery_rate.get())
    }

    /// The shortest round trip, once one was measured.
    pub fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    /// The gain of the rate.
    pub fn pacing_gain(&self) -> f64 {
        self.pacing_gain
    }

    /// The rate times `gain`, in bytes a second of what is sent.
    fn bytes_per_second(rate: f64, gain: f64, mss: f64) -> f64 {
        rate * mss * gain * PACING_MARGIN
    }

    /// Sets the rate before any is known: a window in a round trip.
    fn start_rate(&mut self, cwnd: f64, rtt: Span, mss: f64) {
        self.pacing_rate = Self::bytes_per_second(cwnd / mss / rtt.secs_f64(), HIGH_GAIN, mss);
    }

    fn set_pacing_rate(&mut self, window: &Window, gain: f64, srtt: Option<Span>, mss: f64) {
        if !self.has_seen_rtt
            && let Some(srtt) = srtt
        {
            self.has_seen_rtt = true;
            self.start_rate(window.cwnd, srtt.max(Span::from_us(1)), mss);
        }
        let rate = Self::bytes_per_second(self.rate(), gain, mss);
        if self.is_full || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn least_burst(&self) -> u64 {
        if self.pacing_rate < SINGLE_SEGMENTS { 1 } else { 2 }
    }

    /// Segments of a burst (bbr_tso_segs_goal).
    fn burst(&self, mss: f64) -> u64 {
        let bytes = (self.pacing_rate / BURSTS).min(MOST_BURST as f64);
        ((bytes / mss) as u64).clamp(self.least_burst(), MOST_SEGMENTS)
    }

    /// `gain` times what the path holds, which is rate times round trip.
    fn held_by_path(&self, rate: f64, gain: f64) -> u64 {
        match self.min_rtt {
            Some(rtt) => (rate * rtt.secs_f64() * gain).ceil() as u64,
            None => INITIAL_WINDOW,
        }
    }

    /// Adds three bursts, which the ends may hold at a time, and makes the sum even. Where the rate is probed it adds
    /// two segments more, so that small paths are probed too (bbr_quantization_budget).
    fn with_bursts(&self, segments: u64, mss: f64) -> u64 {
        let even = (segments + 3 * self.burst(mss)).next_multiple_of(2);
        even + if self.mode == Mode::ProbeBandwidth && self.phase == 0 { 2 } else { 0 }
    }

    fn target(&self, gain: f64, mss: f64) -> u64 {
        self.with_bursts(self.held_by_path(self.delivery_rate.get(), gain), mss)
    }

    /// What will be in the network when the next burst departs. The burst is included where the gain is above one.
    fn in_network_at_departure(&self, in_flight: u64, sample: &Sample) -> u64 {
        let delivered = self.rate() * sample.departs_at.since(sample.now).secs_f64();
        let burst = if self.pacing_gain > 1.0 { self.burst(sample.mss) } else { 0 };
        (in_flight + burst).saturating_sub(delivered as u64)
    }

    fn save_window(&mut self, cwnd: u64) {
        let is_good = self.prior_stage == Stage::Open && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if is_good { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    // ── the model ──

    fn update_rate(&mut self, sample: &Sample) {
        self.is_round_start = false;
        let Some(rate) = sample.rate else { return };
        if rate.prior >= self.round_end {
            self.round_end = sample.delivered;
            self.rounds += 1;
            (self.is_round_start, self.conserves) = (true, false);
        }
        let is_probing = self.mode == Mode::ProbeBandwidth;
        match self.policer.sampled(sample, rate.is_app_limited, self.is_round_start, is_probing) {
            Change::None => {}
            Change::Found => self.pacing_gain = 1.0,
            Change::Over => self.probe_bandwidth(sample.now),
        }
        let measured = rate.segments as f64 / rate.interval.secs_f64();
        // What the application held back says nothing, unless it is more than was known.
        if !rate.is_app_limited || measured >= self.delivery_rate.get() {
            self.delivery_rate.update(RATE_ROUNDS, self.rounds, measured);
        }
    }

    fn probe_bandwidth(&mut self, now: Time) {
        let drawn = maths::mix64(now.ns() ^ self.round_end.rotate_left(40)) % FIRST_PHASES;
        self.mode = Mode::ProbeBandwidth;
        // The phase is counted back from the first, which follows the last (bbr_reset_probe_bw_mode).
        self.phase = (CYCLE.len() - drawn as usize) % CYCLE.len();
        self.phase_began = now;
    }

    fn update_phase(&mut self, sample: &Sample) {
        if self.mode == Mode::ProbeBandwidth && self.is_phase_over(sample) {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_began = sample.delivered_at;
        }
    }

    fn is_phase_over(&self, sample: &Sample) -> bool {
        let lasted = sample.delivered_at.since(self.phase_began);
        let is_long = self.min_rtt.is_some_and(|rtt| lasted > rtt);
        if self.pacing_gain == 1.0 {
            return is_long;
        }
        let in_flight = self.in_network_at_departure(sample.prior_in_flight, sample);
        if self.pacing_gain > 1.0 {
            // Until the path holds that much more, which it never may if its buffer is short.
            is_long && (sample.newly_lost > 0 || in_flight >= self.target(self.pacing_gain, sample.mss))
        } else {
            is_long || in_flight <= self.target(1.0, sample.mss)
        }
    }

    fn check_full(&mut self, sample: &Sample) {
        let is_app_limited = sample.rate.is_some_and(|rate| rate.is_app_limited);
        if self.is_full || !self.is_round_start || is_app_limited {
            return;
        }
        if self.delivery_rate.get() >= self.full_rate * FULL_GROWTH {
            (self.full_rate, self.full_rounds) = (self.delivery_rate.get(), 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drained(&mut self, window: &mut Window, sample: &Sample) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
            window.ssthresh = self.target(1.0, sample.mss) as f64 * sample.mss;
        }
        let in_flight = self.in_network_at_departure(sample.in_flight, sample);
        if self.mode == Mode::Drain && in_flight <= self.target(1.0, sample.mss) {
            self.probe_bandwidth(sample.now);
        }
    }

    fn update_min_rtt(&mut self, window: &mut Window, sample: &Sample) {
        let is_old = self.min_rtt.is_some() && sample.now.since(self.min_rtt_at) > MIN_RTT_STAYS;
        if let Some(rtt) = sample.rtt
            && (self.min_rtt.is_none_or(|shortest| rtt < shortest) || is_old && !sample.may_be_delayed)
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), sample.now);
        }
        if is_old && !self.is_restarting && self.mode != Mode::ProbeRtt {
            self.save_window((window.cwnd / sample.mss) as u64);
            (self.mode, self.probe_ends) = (Mode::ProbeRtt, None);
        }
        if self.mode == Mode::ProbeRtt {
            if self.probe_ends.is_none() && sample.in_flight <= LEAST_WINDOW {
                self.probe_ends = Some(sample.now + PROBE_RTT);
                self.has_probed_a_round = false;
                self.round_end = sample.delivered;
            } else if self.probe_ends.is_some() {
                self.has_probed_a_round |= self.is_round_start;
                if self.has_probed_a_round {
                    self.check_probed(window, sample.mss, sample.now);
                }
            }
        }
        self.is_restarting &= sample.newly_delivered == 0;
    }

    fn check_probed(&mut self, window: &mut Window, mss: f64, now: Time) {
        if self.probe_ends.is_none_or(|end| now <= end) {
            return;
        }
        self.min_rtt_at = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd as f64 * mss);
        if self.is_full { self.probe_bandwidth(now) } else { self.mode = Mode::Startup }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.rate().is_some() => (1.0, CWND_GAIN),
            Mode::ProbeBandwidth => (CYCLE[self.phase], CWND_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    // ── the window ──

    /// Sets the window of a recovery, or that from before it when it is over. Returns whether the window is held to
    /// what is delivered.
    fn recover(&mut self, cwnd: &mut u64, sample: &Sample) -> bool {
        *cwnd = cwnd.saturating_sub(sample.newly_lost).max(1);
        let conserved = sample.in_flight + sample.newly_delivered;
        if sample.stage == Stage::Recovery && self.prior_stage != Stage::Recovery {
            self.conserves = true;
            self.round_end = sample.delivered;
            *cwnd = conserved;
        } else if sample.stage == Stage::Open && self.prior_stage != Stage::Open {
            *cwnd = (*cwnd).max(self.prior_cwnd);
            self.conserves = false;
        }
        self.prior_stage = sample.stage;
        if self.conserves {
            *cwnd = (*cwnd).max(conserved);
        }
        self.conserves
    }

    fn set_window(&mut self, window: &mut Window, sample: &Sample) {
        let mut cwnd = (window.cwnd / sample.mss) as u64;
        if sample.newly_delivered > 0 && !self.recover(&mut cwnd, sample) {
            let held = self.held_by_path(self.rate(), self.cwnd_gain);
            let extra = if self.is_full { self.aggregation.extra(self.rate()) } else { 0 };
            let target = self.with_bursts(held + extra, sample.mss);
            if self.is_full {
                cwnd = (cwnd + sample.newly_delivered).min(target);
            } else if cwnd < target || sample.delivered < INITIAL_WINDOW {
                cwnd += sample.newly_delivered;
            }
            cwnd = cwnd.max(LEAST_WINDOW);
        }
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(LEAST_WINDOW);
        }
        window.cwnd = cwnd as f64 * sample.mss;
    }
}

impl Controller for Bbr {
    const MODELS_PATH: bool = true;

    fn new(config: &Config) -> Self {
        let mut fresh = Self {
            mode: Mode::Startup,
            delivery_rate: WindowedMax::default(),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            rounds: 0,
            round_end: 0,
            is_round_start: false,
            full_rate: 0.0,
            full_rounds: 0,
            is_full: false,
            phase: 0,
            phase_began: Time::ZERO,
            probe_ends: None,
            has_probed_a_round: false,
            prior_cwnd: 0,
            conserves: false,
            prior_stage: Stage::Open,
            is_restarting: false,
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: 0.0,
            has_seen_rtt: false,
        };
        let mss = f64::from(config.mss);
        fresh.start_rate(f64::from(config.initial_window) * mss, NOMINAL_RTT, mss);
        fresh
    }

    fn opened(&mut self, window: &Window, mss: f64, rtt: Span, now: Time) {
        (self.min_rtt, self.min_rtt_at, self.has_seen_rtt) = (Some(rtt), now, true);
        self.start_rate(window.cwnd, rtt, mss);
    }

    fn reduced(&mut self, window: &Window, congestion: &Congestion) -> f64 {
        self.save_window((window.cwnd / congestion.mss) as u64);
        window.ssthresh
    }

    fn timed_out(&mut self) {
        self.prior_stage = Stage::Timeout;
        self.full_rate = 0.0;
        // As the end of a round.
        self.is_round_start = true;
        if self.policer.timed_out() == Change::Found {
            self.pacing_gain = 1.0;
        }
    }

    fn undone(&mut self, _window: &mut Window) {
        (self.full_rate, self.full_rounds) = (0.0, 0);
        self.policer.reset();
    }

    fn sampled(&mut self, window: &mut Window, sample: &Sample) {
        self.update_rate(sample);
        let cwnd = (window.cwnd / sample.mss) as u64;
        self.aggregation.update(sample, self.rate(), self.is_round_start, cwnd);
        self.update_phase(sample);
        self.check_full(sample);
        self.check_drained(window, sample);
        self.update_min_rtt(window, sample);
        self.update_gains();
        self.set_pacing_rate(window, self.pacing_gain, sample.srtt, sample.mss);
        self.set_window(window, sample);
    }

    fn restarted(&mut self, window: &mut Window, mss: f64, now: Time) {
        self.is_restarting = true;
        self.aggregation.restart(now);
        match self.mode {
            // There is no need for more than the estimate: the network is empty.
            Mode::ProbeBandwidth => self.set_pacing_rate(window, 1.0, None, mss),
            Mode::ProbeRtt => self.check_probed(window, mss, now),
            Mode::Startup | Mode::Drain => {}
        }
    }

    fn steer(&self) -> Option<Steer> {
        Some(Steer {
            bytes_per_second: self.pacing_rate,
            least_burst: self.least_burst(),
            bursts_per_second: None,
            hides_rate: self.mode == Mode::ProbeRtt,
        })
    }
}
