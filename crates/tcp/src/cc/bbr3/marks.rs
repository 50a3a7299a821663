//! The answer to marks, where they are counted: what is in the network comes down by a third of their share, as DCTCP's
//! window does by half of it, and a probe that has half of its segments marked has gone too far.
//!
//! Source: Google's tcp_bbr.c of BBR version 3, `bbr_update_ecn_alpha`, `bbr_ecn_lower_bounds`,
//! `bbr_is_inflight_too_high`, `bbr_check_ecn_too_high_in_startup`, `bbr_check_time_to_probe_bw`.
//!
//! | tcp_bbr.c                       | here             |
//! |---------------------------------|------------------|
//! | `ecn_alpha`, `bbr_ecn_alpha_gain` | `alpha`, `GAIN`|
//! | `bbr_ecn_factor`                | `FACTOR`         |
//! | `bbr_ecn_thresh`, `bbr_full_ecn_cnt` | `THRESHOLD`, `STARTUP_ROUNDS` |
//! | `bbr_ecn_reprobe_gain`          | `REPROBE_GAIN`   |
//!
//! Deviations. There marks count only where the shortest round trip is at most 5 ms, and both hosts' routes say so;
//! here wherever they are counted, for the draft wants every mark answered. The congestion window of a mark, after
//! which its answer is over there (TCP_CA_CWR), is what was in the network when it was heard of. Whether a cycle has
//! had marks and losses is told by what an acknowledgement newly reports; there by all that was reported since the
//! newest segment that it acknowledges was sent, so that the round before a probe ends counts once more after it.

use super::{Bbr3, State};
use crate::cc::{Delivered, Sample, Stage};

/// The weight of a round's share of marks.
const GAIN: f64 = 1.0 / 16.0;
/// How much of the share is taken off.
const FACTOR: f64 = 1.0 / 3.0;
/// A greater share is too much.
const THRESHOLD: f64 = 0.5;
/// Rounds of too much that end startup.
const STARTUP_ROUNDS: u32 = 2;
/// What a probe after marks adds in its first round, of the long-term bound.
const REPROBE_GAIN: f64 = 0.5;

/// What is known of marks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Marks {
    /// The moving average of the share.
    alpha: f64,
    /// Segments delivered, and marked, until the last round began.
    at_round: [u64; 2],
    marked: u64,
    is_in_round: bool,
    is_in_cycle: bool,
    startup_rounds: u32,
    /// The answer to a mark goes on until so many segments are delivered.
    answered_at: u64,
    has_echo: bool,
    is_loss_in_cycle: bool,
}

impl Marks {
    pub(super) const fn new() -> Self {
        Self {
            alpha: 1.0,
            at_round: [0; 2],
            marked: 0,
            is_in_round: false,
            is_in_cycle: false,
            startup_rounds: 0,
            answered_at: 0,
            has_echo: false,
            is_loss_in_cycle: false,
        }
    }

    /// An echo came (RFC 3168), or a count rose.
    pub(super) fn hear_echo(&mut self) {
        self.has_echo = true;
    }

    /// Whether there was an echo that no count tells of.
    pub(super) fn takes_echo(&mut self, sample: &Sample) -> bool {
        std::mem::take(&mut self.has_echo) && sample.marked.is_none()
    }

    pub(super) fn is_in_round(&self) -> bool {
        self.is_in_round
    }

    pub(super) fn end_round(&mut self) {
        self.is_in_round = false;
    }

    pub(super) fn begin_cycle(&mut self) {
        (self.is_in_round, self.is_in_cycle, self.is_loss_in_cycle) = (false, false, false);
    }

    /// The share that is left of what is in the network.
    pub(super) fn keeps(&self) -> f64 {
        1.0 - self.alpha * FACTOR
    }

    /// Whether more than half of what was delivered since the newest of it was sent was marked.
    pub(super) fn are_too_many(&self, rate: &Delivered) -> bool {
        rate.marked as f64 > THRESHOLD * rate.segments as f64
    }

    /// Whether it is time to probe, since marks have ceased: by how many rounds of doubling the first step is raised.
    pub(super) fn wants_probe(&self, most_long: f64, sample: &Sample) -> Option<u32> {
        let has_ceased = sample.stage == Stage::Open && sample.delivered >= self.answered_at;
        if !self.is_in_cycle || self.is_loss_in_cycle || !has_ceased {
            return None;
        }
        Some((REPROBE_GAIN * most_long).min(f64::from(u32::MAX / 4)).max(1.0).log2() as u32)
    }
}

impl Bbr3 {
    /// Takes the marks that an acknowledgement tells of.
    pub(super) fn update_marks(&mut self, sample: &Sample) {
        self.marks.is_loss_in_cycle |= sample.newly_lost > 0;
        let Some(newly) = sample.marked else { return };
        self.marks.marked += newly;
        if self.is_round_start {
            let [delivered, marked] = self.marks.at_round;
            self.marks.at_round = [sample.delivered, self.marks.marked];
            if sample.delivered > delivered {
                let share = (self.marks.marked - marked) as f64 / (sample.delivered - delivered) as f64;
                self.update_share(share.min(1.0));
            }
        }
        if newly > 0 {
            (self.marks.is_in_round, self.marks.is_in_cycle) = (true, true);
            if sample.delivered >= self.marks.answered_at {
                self.marks.answered_at = sample.delivered + sample.in_flight;
            }
        }
    }

    fn update_share(&mut self, share: f64) {
        self.marks.alpha += GAIN * (share - self.marks.alpha);
        if self.state != State::Startup || self.is_full {
            return;
        }
        self.marks.startup_rounds = if share >= THRESHOLD { self.marks.startup_rounds + 1 } else { 0 };
        if self.marks.startup_rounds >= STARTUP_ROUNDS {
            self.leave_startup();
        }
    }
}
