//! How much more than the rate lets expect is acknowledged at once, at most, of late: so much more may be out, so that
//! sending goes on while no acknowledgement comes. Source: tcp_bbr.c, bbr_update_ack_aggregation.

use crate::cc::Sample;
use base::{Span, Time};

/// Rounds of each of the two halves of the window in which the greatest counts.
const ROUNDS: u32 = 5;
/// What counts is no more than this of the rate.
const MOST: Span = Span::from_ms(100);
/// An epoch with so much acknowledged is over.
const LONGEST_EPOCH: u64 = 1 << 20;

/// The memory, in segments.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Aggregation {
    epoch_began: Time,
    epoch_acked: u64,
    extra: [u64; 2],
    half: usize,
    rounds: u32,
}

impl Aggregation {
    /// An acknowledgement came; the rate is `rate` segments a second.
    pub(super) fn update(&mut self, sample: &Sample, rate: f64, is_round_start: bool, cwnd: u64) {
        if sample.newly_delivered == 0 || sample.rate.is_none() {
            return;
        }
        if is_round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                (self.rounds, self.half) = (0, 1 - self.half);
                self.extra[self.half] = 0;
            }
        }
        let lasts = sample.delivered_at.since(self.epoch_began);
        let mut expected = (rate * lasts.secs_f64()) as u64;
        if self.epoch_acked <= expected || self.epoch_acked + sample.newly_delivered >= LONGEST_EPOCH {
            self.restart(sample.delivered_at);
            expected = 0;
        }
        self.epoch_acked += sample.newly_delivered;
        let extra = (self.epoch_acked - expected).min(cwnd);
        self.extra[self.half] = self.extra[self.half].max(extra);
    }

    /// An epoch begins.
    pub(super) fn restart(&mut self, now: Time) {
        (self.epoch_began, self.epoch_acked) = (now, 0);
    }

    /// The greatest excess of the last five to ten rounds.
    pub(super) fn extra(&self, rate: f64) -> u64 {
        let most = (rate * MOST.secs_f64()) as u64;
        self.extra[0].max(self.extra[1]).min(most)
    }
}
