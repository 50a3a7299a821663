//! Probing for bandwidth: the cycle of four states, and the long-term bound on what is in the network, which a probe
//! raises or lowers.
//!
//! Source: draft-ietf-ccwg-bbr, "ProbeBW" and "Updating the Model Upon Packet Loss".
//!
//! | draft                                      | here                             |
//! |--------------------------------------------|----------------------------------|
//! | `BBR.probe_up_acked_per_inc`               | `acked_per_step`                 |
//! | `BBR.bw_probe_up_acked`, `_rounds`         | `up_acked`, `up_rounds`          |
//! | `BBR.bw_probe_wait`, `cycle_stamp`         | `probe_wait`, `cycle_began`      |
//! | `BBR.prev_probe_too_high`, `_precautionary`| `was_too_high`, `was_precautionary` |

use super::{BETA, Bbr3, HEADROOM, LEAST_WINDOW, LOSS_THRESHOLD, drawn};
use crate::cc::{Lost, Sample};
use base::{Span, Time};

/// The gains of the rate while the queue drains and while more is sought, and that of the window then.
pub(super) const DOWN_GAIN: f64 = 0.9;
pub(super) const UP_GAIN: f64 = 1.25;
pub(super) const UP_WINDOW_GAIN: f64 = 2.25;
/// The next probe comes after so long, and up to a second more, or after so many rounds.
const WAIT: Span = Span::from_secs(2);
const WAIT_SPREAD_NS: f64 = 1e9;
const MOST_ROUNDS: f64 = 63.0;
const MOST_UP_ROUNDS: u32 = 30;

/// What the controller does at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It doubles the rate every round.
    Startup,
    /// It drains the queue that startup made.
    Drain,
    /// ProbeBW_DOWN: it sends less than is delivered, until there is room for others.
    Down,
    /// ProbeBW_CRUISE: it sends as much as is delivered.
    Cruise,
    /// ProbeBW_REFILL: it fills the pipe again for a round.
    Refill,
    /// ProbeBW_UP: it sends more than is delivered.
    Up,
    /// It keeps little in the network, to see the round trip without a queue.
    ProbeRtt,
}

/// What acknowledgements tell of: data that was sent while more was sought, or not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

impl Bbr3 {
    /// `IsProbingBW`.
    pub(super) fn is_probing(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    fn is_in_cycle(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, sample: &Sample) {
        self.begin_down(sample.delivered, sample.now);
    }

    pub(super) fn begin_down(&mut self, delivered: u64, now: Time) {
        self.reset_signals();
        self.acked_per_step = f64::INFINITY;
        // PickProbeWait
        self.rounds_since_up = u64::from(drawn(now, !self.rounds) >= 0.5);
        self.probe_wait = WAIT + Span::from_ns((drawn(now, self.rounds) * WAIT_SPREAD_NS) as u64);
        self.cycle_began = now;
        self.ack_phase = AckPhase::Stopping;
        self.start_round(delivered);
        self.state = State::Down;
    }

    /// `StartProbeBW_REFILL`. The first round of raising the bound then adds 2^`up_rounds` segments.
    pub(super) fn start_refill(&mut self, up_rounds: u32, delivered: u64) {
        self.reset_short_term();
        (self.up_rounds, self.up_acked) = (up_rounds, 0.0);
        self.was_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round(delivered);
        self.state = State::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, measured: f64, cwnd: f64, sample: &Sample) {
        self.ack_phase = AckPhase::Starting;
        self.start_round(sample.delivered);
        self.reset_full();
        self.full_rate = measured;
        self.state = State::Up;
        self.raise_slope(cwnd);
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, measured: f64, cwnd: f64, sample: &Sample) {
        if !self.is_full || self.adapt_long_term(cwnd, sample) {
            return;
        }
        match self.state {
            State::Down => {
                if !self.probes(cwnd, sample) && self.may_cruise(sample) {
                    self.state = State::Cruise;
                }
            }
            State::Cruise => {
                self.probes(cwnd, sample);
            }
            State::Refill => {
                if self.is_round_start {
                    self.is_probe_sample = true;
                    self.start_up(measured, cwnd, sample);
                }
            }
            State::Up => {
                if self.is_up_over(measured, cwnd, sample) {
                    self.was_too_high = false;
                    self.start_down(sample);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// `IsTimeToProbeBW`: begins to probe if it is time to. Marks that have ceased bring the time forward.
    fn probes(&mut self, cwnd: f64, sample: &Sample) -> bool {
        if let Some(up_rounds) = self.marks.wants_probe(self.most_long, sample) {
            self.start_refill(up_rounds, sample.delivered);
            return true;
        }
        let rounds = self.target(cwnd).min(MOST_ROUNDS);
        let is_time = sample.now > self.cycle_began + self.probe_wait || self.rounds_since_up as f64 >= rounds;
        if is_time {
            self.start_refill(0, sample.delivered);
        }
        is_time
    }

    /// `IsTimeToCruise`.
    fn may_cruise(&self, sample: &Sample) -> bool {
        let in_flight = sample.in_flight as f64;
        in_flight <= self.with_headroom() && in_flight <= self.inflight(self.max_rate(), sample.mss)
    }

    /// `IsTimeToGoDown`.
    fn is_up_over(&mut self, measured: f64, cwnd: f64, sample: &Sample) -> bool {
        // What is in the network with the segments in hand: without them it is less than the window that bounds it.
        if self.was_too_high && sample.prior_in_flight as f64 >= self.most_long {
            self.was_precautionary = true;
            return true;
        }
        if self.is_window_used() && cwnd >= self.most_long {
            // The bound holds the rate down, which then says nothing.
            self.reset_full();
            self.full_rate = measured;
            return false;
        }
        self.is_full_now
    }

    /// `InflightWithHeadroom`.
    pub(super) fn with_headroom(&self) -> f64 {
        if self.most_long.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (HEADROOM * self.most_long).max(1.0);
        (self.most_long - headroom).max(LEAST_WINDOW)
    }

    /// `RaiseInflightLongtermSlope`.
    fn raise_slope(&mut self, cwnd: f64) {
        let growth = (1_u64 << self.up_rounds) as f64;
        self.up_rounds = (self.up_rounds + 1).min(MOST_UP_ROUNDS);
        self.acked_per_step = (cwnd / growth).max(1.0);
    }

    /// `ProbeInflightLongtermUpward`.
    fn raise_bound(&mut self, cwnd: f64, sample: &Sample) {
        if !self.is_window_used() || cwnd < self.most_long {
            return;
        }
        self.up_acked += sample.newly_delivered as f64;
        if self.up_acked >= self.acked_per_step {
            let steps = (self.up_acked / self.acked_per_step).floor();
            self.up_acked -= steps * self.acked_per_step;
            self.most_long += steps;
        }
        if self.is_round_start {
            self.raise_slope(cwnd);
        }
    }

    /// `AdaptLongTermModel`. Returns whether the state has changed for good.
    fn adapt_long_term(&mut self, cwnd: f64, sample: &Sample) -> bool {
        let is_app_limited = sample.rate.is_some_and(|rate| rate.is_app_limited);
        if self.ack_phase == AckPhase::Starting && self.is_round_start {
            self.ack_phase = AckPhase::Feedback;
        }
        if self.ack_phase == AckPhase::Stopping && self.is_round_start {
            self.is_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.is_in_cycle() && !is_app_limited && self.max_rates[1] > 0.0 {
                // AdvanceMaxBwFilter
                self.max_rates = [self.max_rates[1], 0.0];
            }
            if self.is_in_cycle() && self.was_precautionary && !self.was_too_high {
                self.start_refill(0, sample.delivered);
                return true;
            }
        }
        let Some(rate) = sample.rate else { return false };
        let in_flight = rate.in_flight as f64;
        if self.marks.are_too_many(&rate) {
            if self.is_probe_sample {
                self.handle_too_high(in_flight, is_app_limited, cwnd, sample.delivered, sample.now);
            }
            return false;
        }
        if rate.lost as f64 > LOSS_THRESHOLD * in_flight || self.most_long.is_infinite() {
            return false;
        }
        self.most_long = self.most_long.max(in_flight);
        if self.state == State::Up {
            self.raise_bound(cwnd, sample);
        }
        false
    }

    /// `HandleLostPacket`, but for `NoteLoss`.
    pub(super) fn handle_lost(&mut self, lost: &Lost, cwnd: f64) {
        let (in_flight, much) = (lost.in_flight as f64, lost.lost as f64);
        if !self.is_probe_sample || much <= LOSS_THRESHOLD * in_flight {
            return;
        }
        // InflightAtLoss: of this segment and those before it, as many as would not have been too many losses.
        let (before, lost_before) = (in_flight - 1.0, much - 1.0);
        let prefix = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
        let most = before + prefix.max(0.0);
        self.handle_too_high(most, lost.is_app_limited, cwnd, lost.delivered, lost.now);
    }

    /// `HandleInflightTooHigh`.
    fn handle_too_high(&mut self, in_flight: f64, is_app_limited: bool, cwnd: f64, delivered: u64, now: Time) {
        self.was_too_high = true;
        self.is_probe_sample = false;
        if !is_app_limited {
            self.most_long = in_flight.max(BETA * self.target(cwnd)).floor();
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.begin_down(delivered, now);
        }
    }
}
