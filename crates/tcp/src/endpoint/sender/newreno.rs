//! This file recovers as ns-2's `Agent/TCP/Newreno` does, where that differs from RFC 6582, which is in `repair.rs`.
//!
//! Source: ns-2.35, tcp-newreno.cc, tcp-reno.cc, tcp.cc, with its defaults: `newreno_changes1_` and
//! `partial_window_deflation_` on, `newreno_changes_` and `exit_recovery_fix_` off.
//!
//! - The window becomes half of the former window, whatever was outstanding, even below two segments. The threshold is
//!   that in whole segments, at least two. The timer sets the threshold so every time it expires.
//! - Only the first partial acknowledgement of a recovery restarts the timer (`firstpartial_`; the "impatient" variant
//!   of RFC 6582 §4). A window with many losses therefore ends in a timeout.
//! - What duplicates add to the window is counted apart from it (`dupwnd_`). A partial acknowledgement takes from that
//!   first, and what is missing from the window. When the recovery ends, the window is what is left of it, and the same
//!   acknowledgement lets it grow.
//! - A retransmission does not end the timing of a segment. The acknowledgement that ends a recovery may thus measure a
//!   round trip as long as the whole recovery (`rtt_active_`).
//! - Limited transmit also works while everything is sent again after a timeout (`singledup_`): the first two
//!   duplicates let out a segment each. They do so too where nothing is outstanding and a mark has left no window.
//! - An acknowledgement in a recovery lets out two segments at most, beside what repairs a hole.
//! - An echo that acknowledges something sent in the recovery ends it (`ns2.rs` has the rest about marks).

use super::ns2::Answered;
use super::repair::{DUP_THRESH, Repair};
use super::{Outlet, Phase, Sender};
use crate::endpoint::Emit;
use crate::segment::Segment;
use crate::stack::Config;
use base::Time;

/// So many segments at most an acknowledgement lets out in a recovery, or after a third duplicate that begins none.
const MOST_AT_ONCE: u64 = 2;

/// The state of a recovery.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Ns2NewReno {
    /// Segments that duplicates have added to the window.
    added: u32,
    /// Whether a partial acknowledgement has come since it began.
    had_partial: bool,
    /// How marks were answered.
    pub(super) answered: Answered,
}

base::packed!(Ns2NewReno { added, had_partial, answered });

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

    /// What duplicates have added to the window, bytes.
    #[inline(always)]
    pub(super) fn added_by_duplicates(&self, config: &Config) -> u64 {
        match &self.repair {
            Repair::Ns2NewReno(newreno) => u64::from(newreno.added * config.mss),
            _ => 0,
        }
    }

    /// Whether duplicates count although nothing is outstanding: those let something out for which a mark has left no
    /// window.
    pub(super) fn counts_idle_duplicates(&self, config: &Config) -> bool {
        self.is_ns2_newreno() && self.window.cwnd < f64::from(config.mss)
    }

    /// How many segments may be sent at once.
    pub(super) fn most_at_once(&self) -> u64 {
        let is_limited = self.phase == Phase::Recovery || self.duplicate_acks >= DUP_THRESH;
        if is_limited && self.is_ns2_newreno() { MOST_AT_ONCE } else { u64::MAX }
    }

    /// Reduces the window as a recovery begins.
    pub(super) fn reduce_newreno(&mut self, config: &Config, now: Time) {
        self.begin_recovery_ns2(config, now);
        (self.newreno().added, self.newreno().had_partial) = (0, false);
    }

    /// Lets more out, since `duplicates` say that as many segments left the network.
    pub(super) fn inflate(&mut self, duplicates: u32, config: &Config) {
        match &mut self.repair {
            Repair::Ns2NewReno(newreno) => newreno.added += duplicates,
            _ => self.window.cwnd += f64::from(duplicates * config.mss),
        }
    }

    /// Sets window and threshold after the timer expired. What duplicates added to the window does not count.
    pub(super) fn time_out_newreno(&mut self, config: &Config, now: Time) {
        self.newreno().added = 0;
        self.time_out_ns2(config, now);
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
        if self.snd_una < self.recover && !self.repair.was_marked() {
            self.deflate(bytes, config);
            self.outstanding.lose_front();
            self.resend_next(config, now, out);
            return std::mem::replace(&mut self.newreno().had_partial, true);
        }
        self.newreno().added = 0;
        self.end_recovery(self.window.cwnd);
        self.grow(segment, bytes, config, now);
        false
    }

    /// Takes `bytes` that a partial acknowledgement covers, less one segment, from what duplicates added, or from the
    /// window.
    fn deflate(&mut self, bytes: u64, config: &Config) {
        let covered = bytes.div_ceil(u64::from(config.mss)) as u32;
        let newreno = self.newreno();
        if newreno.added > covered {
            newreno.added -= covered - 1;
        } else {
            let missing = covered - std::mem::replace(&mut newreno.added, 1);
            let mss = f64::from(config.mss);
            self.window.cwnd = (self.window.cwnd - f64::from(missing) * mss).max(mss);
        }
    }
}
