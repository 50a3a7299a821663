//! The beginning: the rate doubles every round until the pipe is full, and the queue that this made is drained.
//!
//! Source: draft-ietf-ccwg-bbr, "Startup" and "Drain".

use super::{Bbr3, LOSS_THRESHOLD, State};
use crate::cc::{Sample, Stage};

/// `BBRStartupFullLossCnt`: ranges lost in a round of startup.
const STARTUP_RANGES: u32 = 6;
/// The pipe is full when the rate has not grown by a quarter for three rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Rounds after which the queue is deemed drained in any case.
const DRAIN_ROUNDS: u64 = 3;

impl Bbr3 {
    pub(super) fn reset_full(&mut self) {
        (self.full_rate, self.full_rounds, self.is_full_now) = (0.0, 0, false);
    }

    /// `CheckFullBWReached`.
    pub(super) fn check_full(&mut self, measured: f64, sample: &Sample) {
        let is_app_limited = sample.rate.is_some_and(|rate| rate.is_app_limited);
        if self.is_full_now || !self.is_round_start || is_app_limited {
            return;
        }
        if measured >= FULL_GROWTH * self.full_rate {
            self.reset_full();
            self.full_rate = measured;
            return;
        }
        self.full_rounds += 1;
        self.is_full_now = self.full_rounds >= FULL_ROUNDS;
        self.is_full |= self.is_full_now;
    }

    /// `CheckStartupHighLoss`.
    pub(super) fn check_startup_losses(&mut self, sample: &Sample) {
        if self.is_full {
            return;
        }
        let is_much = sample.rate.is_some_and(|rate| rate.lost as f64 > LOSS_THRESHOLD * rate.in_flight as f64);
        let is_repairing = sample.stage == Stage::Recovery && self.prior_stage == Stage::Recovery;
        if self.is_loss_round_start && is_repairing && self.lost_ranges >= STARTUP_RANGES && is_much {
            self.undo.state = Some(State::Startup);
            self.leave_startup();
        }
        if self.is_loss_round_start {
            self.lost_ranges = 0;
        }
    }

    /// Startup has put too much into the network.
    pub(super) fn leave_startup(&mut self) {
        (self.is_full_now, self.is_full) = (true, true);
        self.most_long = self.held_by_path(self.rate, 1.0).max(self.volume_latest).floor();
    }

    /// `CheckStartupDone`, `CheckDrainDone`.
    pub(super) fn check_drained(&mut self, sample: &Sample) {
        if self.state == State::Startup && self.is_full {
            (self.state, self.drain_began) = (State::Drain, self.rounds);
        }
        if self.state == State::Drain
            && (sample.in_flight as f64 <= self.inflight(self.rate, sample.mss)
                || self.rounds > self.drain_began + DRAIN_ROUNDS)
        {
            self.start_down(sample);
        }
    }
}
