//! Recovery as ns-2's `Agent/TCP/Newreno` has it: where it parts from RFC 6582, which is in `sender.rs`.
//!
//! Source: ns-2.35, tcp-newreno.cc, tcp-reno.cc, tcp.cc, with its defaults: `newreno_changes1_` and
//! `partial_window_deflation_` on, `newreno_changes_` and `exit_recovery_fix_` off.
//!
//! - The window is half of the former one, whatever was outstanding, also below two segments; the threshold is the
//!   whole
//!   segments of it, at least two. The timer does that every time it expires.
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

use super::{Endpoint, Phase};
use crate::segment::Segment;
use crate::stack::{Config, Repair};
use base::Time;

impl Endpoint {
    /// Whether a stack recovers so.
    pub(super) fn recovers_as_newreno(config: &Config) -> bool {
        config.repair == Repair::Ns2NewReno
    }

    /// A recovery begins: what is left of the window.
    pub(super) fn reduce_newreno(&mut self, config: &Config, now: Time) {
        if self.snd_una >= self.ecn_recover {
            self.window.cwnd = self.slow_down(config, now);
        }
        let left = self.window.cwnd;
        let sack1 = self.sack1();
        (sack1.left, sack1.had_partial) = (left, false);
    }

    /// The timer expired, perhaps in a recovery: what duplicates added does not count.
    pub(super) fn slow_down_newreno(&mut self, config: &Config, now: Time) {
        if self.phase == Phase::Recovery {
            self.window.cwnd = self.window.cwnd.min(self.sack1().left);
        }
        self.slow_down(config, now);
    }

    /// `bytes` were acknowledged in a recovery. Returns whether the timer runs on.
    pub(super) fn after_newreno_ack(&mut self, segment: &Segment, bytes: u64, config: &Config, now: Time) -> bool {
        if self.phase == Phase::Recovery {
            return std::mem::replace(&mut self.sack1().had_partial, true);
        }
        self.grow(segment, bytes, config, now);
        false
    }
}
