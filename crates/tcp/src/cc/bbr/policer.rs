//! Whether somebody lets no more through than a fixed rate: two intervals in a row, each from a loss to a loss, in
//! which more than a fifth was lost and about the same rate was delivered. Their mean is the rate for 48 rounds then.
//! Source: tcp_bbr.c, bbr_lt_bw_sampling; Flach et al., "An Internet-wide analysis of traffic policing" (2016).

use crate::cc::Sample;
use base::{Span, Time};

/// Rounds of an interval, at least; four times that at most.
const LEAST_ROUNDS: u32 = 4;
/// What is lost to what is delivered, at least.
const LOSS_RATIO: f64 = 50.0 / 256.0;
/// Two rates are about the same with an eighth between them, or with 4 kbit/s.
const SAME_RATIO: f64 = 1.0 / 8.0;
const SAME_BYTES_PER_SECOND: f64 = 500.0;
/// For so many rounds the rate holds.
const HOLDS_ROUNDS: u32 = 48;
const LEAST_TIME: Span = Span::from_ms(1);

/// What becomes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// A policer was found.
    Found,
    /// The rate does not hold any longer.
    Over,
}

/// The memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Policer {
    /// Of the last interval, or of two that are the same, segments a second; zero if there is none.
    rate: f64,
    holds: bool,
    is_sampling: bool,
    rounds: u32,
    began: Totals,
    last: Totals,
    mss: f64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Totals {
    at: Time,
    delivered: u64,
    lost: u64,
}

impl Default for Policer {
    fn default() -> Self {
        let nothing = Totals { at: Time::ZERO, delivered: 0, lost: 0 };
        Self { rate: 0.0, holds: false, is_sampling: false, rounds: 0, began: nothing, last: nothing, mss: 0.0 }
    }
}

impl Policer {
    /// The policer's rate, segments a second, while it holds.
    #[inline]
    pub(super) fn rate(&self) -> Option<f64> {
        self.holds.then_some(self.rate)
    }

    /// An acknowledgement came that tells a rate.
    pub(super) fn sampled(
        &mut self,
        sample: &Sample,
        is_app_limited: bool,
        is_round_start: bool,
        is_probing: bool,
    ) -> Change {
        self.last = Totals { at: sample.delivered_at, delivered: sample.delivered, lost: sample.lost };
        self.mss = sample.mss;
        if self.holds {
            if is_probing && is_round_start {
                self.rounds += 1;
                if self.rounds >= HOLDS_ROUNDS {
                    self.reset();
                    return Change::Over;
                }
            }
            return Change::None;
        }
        self.look(sample.newly_lost > 0, is_app_limited, is_round_start)
    }

    /// The retransmission timer expired: a loss, and the end of a round.
    pub(super) fn timed_out(&mut self) -> Change {
        if self.holds { Change::None } else { self.look(true, false, true) }
    }

    fn look(&mut self, has_lost: bool, is_app_limited: bool, is_round_start: bool) -> Change {
        if !self.is_sampling {
            if !has_lost {
                return Change::None;
            }
            self.begin();
            self.is_sampling = true;
        }
        if is_app_limited {
            self.reset();
            return Change::None;
        }
        self.rounds += u32::from(is_round_start);
        if self.rounds > 4 * LEAST_ROUNDS {
            self.reset();
            return Change::None;
        }
        if self.rounds < LEAST_ROUNDS || !has_lost {
            return Change::None;
        }
        let delivered = self.last.delivered - self.began.delivered;
        let lost = self.last.lost - self.began.lost;
        let lasted = self.last.at.since(self.began.at);
        if delivered == 0 || (lost as f64) < LOSS_RATIO * delivered as f64 || lasted < LEAST_TIME {
            return Change::None;
        }
        self.end(delivered as f64 / lasted.secs_f64())
    }

    /// An interval is over in which `rate` was delivered.
    fn end(&mut self, rate: f64) -> Change {
        let difference = (rate - self.rate).abs();
        let is_same = difference <= SAME_RATIO * self.rate || difference * self.mss <= SAME_BYTES_PER_SECOND;
        if self.rate > 0.0 && is_same {
            (self.rate, self.holds, self.rounds) = ((rate + self.rate) / 2.0, true, 0);
            return Change::Found;
        }
        self.rate = rate;
        self.begin();
        Change::None
    }

    fn begin(&mut self) {
        (self.began, self.rounds) = (self.last, 0);
    }

    /// Forgets what it has seen.
    pub(super) fn reset(&mut self) {
        (self.rate, self.holds, self.is_sampling) = (0.0, false, false);
        self.begin();
    }
}
