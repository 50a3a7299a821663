//! This file recovers as ns-2's `Agent/TCP/Newreno` does, where that differs from RFC 6582, which is in `repair.rs`.
//!
//! Source: ns-2.35, tcp-newreno.cc, tcp-reno.cc, tcp.cc, with its defaults: `newreno_changes1_` and
//! `partial_window_deflation_` on, `newreno_changes_` and `exit_recovery_fix_` off.
//!
//! - The window is half of the former one, whatever was outstanding, also below two segments; the threshold is the
//!   whole segments of it, at least two. The timer does that every time it expires.
//! - The first partial acknowledgement of a recovery restarts the timer, the others do not (`firstpartial_`; the
//!   "impatient" variant of RFC 6582 §4): a window with many losses ends in a timeout.
//! - When the recovery ends the window is what was left of it at the beginning (`cwnd_` without `dupwnd_`), or less if
//!   partial acknowledgements have used up all that duplicates had added; the same acknowledgement opens it.
//! - A retransmission does not end the timing of what was sent after it: the acknowledgement that ends a recovery may
//!   time a segment of it, with all the round trips of the recovery (`rtt_active_`).
//! - While everything is sent again after a timeout, the first two duplicates let a segment out each, as otherwise
//!   (`singledup_`).
//!
//! # Deviations
//! - A duplicate or partial acknowledgement lets out what the window allows; in ns-2 no more than two segments.
//! - After an ECN echo ns-2 repairs a loss in the same window without a further reduction, and so does this, but the
//!   window grows by each duplicate from the third on, not by three at once.

use super::repair::Repair;
use super::{Outlet, Phase, Sender};
use crate::endpoint::Emit;
use crate::segment::Segment;
use crate::stack::Config;
use base::Time;

/// What a recovery keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ns2NewReno {
    /// What the reduction left of the window.
    left: f64,
    /// Whether a partial acknowledgement came since.
    had_partial: bool,
}

impl Sender {
    /// Whether repair is this one.
    #[inline]
    pub(super) fn is_ns2_newreno(&self) -> bool {
        matches!(self.repair, Repair::Ns2NewReno(_))
    }

    fn newreno(&mut self) -> &mut Ns2NewReno {
        match &mut self.repair {
            Repair::Ns2NewReno(newreno) => newreno,
            _ => unreachable!("asked for only where a stack has it"),
        }
    }

    /// A recovery begins: what is left of the window.
    pub(super) fn reduce_newreno(&mut self, config: &Config, now: Time) {
        if self.snd_una >= self.ecn_recover {
            self.window.cwnd = self.slow_down(config, now);
        }
        let left = self.window.cwnd;
        *self.newreno() = Ns2NewReno { left, had_partial: false };
    }

    /// The timer expired, perhaps in a recovery: what duplicates added does not count.
    pub(super) fn slow_down_newreno(&mut self, config: &Config, now: Time) {
        if self.phase == Phase::Recovery {
            self.window.cwnd = self.window.cwnd.min(self.newreno().left);
        }
        self.slow_down(config, now);
    }

    /// `bytes` were acknowledged in a recovery. Returns whether the timer runs on.
    pub(super) fn on_ack_in_ns2_recovery(
        &mut self,
        segment: &Segment,
        bytes: u64,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        if self.snd_una < self.recover {
            self.repair_next_hole(bytes, config, now, out);
            return std::mem::replace(&mut self.newreno().had_partial, true);
        }
        let left = self.newreno().left;
        self.end_recovery(self.window.cwnd.min(left));
        self.grow(segment, bytes, config, now);
        false
    }
}
