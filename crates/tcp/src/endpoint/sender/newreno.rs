//! This file recovers as ns-2's `Agent/TCP/Newreno` does, where that differs from RFC 6582, which is in `repair.rs`.
//!
//! Source: ns-2.35, tcp-newreno.cc, tcp-reno.cc, tcp.cc, with its defaults: `newreno_changes1_` and
//! `partial_window_deflation_` on, `newreno_changes_` and `exit_recovery_fix_` off.
//!
//! - The window becomes half of the former window, whatever was outstanding, even below two segments. The threshold is
//!   that in whole segments, at least two. The timer sets the threshold so every time it expires.
//! - Only the first partial acknowledgement of a recovery restarts the timer (`firstpartial_`; the "impatient" variant
//!   of RFC 6582 §4). A window with many losses therefore ends in a timeout.
//! - When the recovery ends, the window is what the reduction had left (`cwnd_` without `dupwnd_`), or less if partial
//!   acknowledgements have used up all that duplicates had added. The same acknowledgement lets it grow.
//! - A retransmission does not end the timing of a segment. The acknowledgement that ends a recovery may thus measure a
//!   round trip as long as the whole recovery (`rtt_active_`).
//! - Limited transmit also works while everything is sent again after a timeout (`singledup_`): the first two
//!   duplicates let out a segment each.
//!
//! # Deviations
//! - A duplicate or partial acknowledgement lets out what the window allows. In ns-2 it lets out two segments at most.
//! - A loss in a window that an ECN echo has already reduced causes no further reduction, as in ns-2. Here the window
//!   then grows by one segment for each duplicate from the third on; in ns-2 it grows by three at once.

use super::repair::Repair;
use super::{Outlet, Phase, Sender};
use crate::endpoint::Emit;
use crate::segment::Segment;
use crate::stack::Config;
use base::Time;

/// The state of a recovery.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Ns2NewReno {
    /// What the reduction left of the window.
    left: f64,
    /// Whether a partial acknowledgement has come since then.
    had_partial: bool,
}

base::packed!(Ns2NewReno { left, had_partial });

impl Sender {
    /// Whether this sender repairs losses as ns-2's NewReno does.
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

    /// Reduces the window as a recovery begins, and keeps what is left of it.
    pub(super) fn reduce_newreno(&mut self, config: &Config, now: Time) {
        if self.snd_una >= self.ecn_recover {
            self.window.cwnd = self.slow_down(config, now);
        }
        let left = self.window.cwnd;
        *self.newreno() = Ns2NewReno { left, had_partial: false };
    }

    /// Sets the threshold after the timer expired. During a recovery, what duplicates added to the window does not
    /// count.
    pub(super) fn slow_down_newreno(&mut self, config: &Config, now: Time) {
        if self.phase == Phase::Recovery {
            self.window.cwnd = self.window.cwnd.min(self.newreno().left);
        }
        self.slow_down(config, now);
    }

    /// Takes an acknowledgement of `bytes` during a recovery. Returns whether the timer runs on as it is.
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
