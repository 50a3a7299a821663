//! This file recovers from losses without reports where the window comes down gradually: it is NewReno as in Linux.
//!
//! Each duplicate acknowledgement stands for a segment that arrived, although nobody knows which. It therefore no
//! longer counts as being in the network, so that limited transmit and proportional rate reduction work as with
//! reports.
//!
//! - Three duplicates say that the first segment is lost. It takes more of them once there were more duplicates than
//!   segments that could have caused them, since that is a sign of reordering.
//! - During a recovery each partial acknowledgement says that the next segment is lost.
//! - An acknowledgement of n segments tells of one new arrival, that of the hole; duplicates had counted the others.
//! - A recovery ends when something is acknowledged that was sent after its start. Duplicates that needless repairs
//!   cause thus begin no new one (RFC 6582 §3.2, step 1).
//!
//! Source: Linux 6.12, tcp_input.c: tcp_add_reno_sack, tcp_remove_reno_sacks, tcp_check_reno_reordering,
//! tcp_is_non_sack_preventing_reopen, tcp_fastretrans_alert, tcp_process_loss; tcp_recovery.c: tcp_newreno_mark_lost.
//!
//! | Linux        | here         |
//! |--------------|--------------|
//! | `sacked_out` | `assumed`    |
//! | `reordering` | `reordering` |
//!
//! # Deviations
//! - A recovery, or the time after a timeout, ends at once when it proves needless. Linux waits until something that
//!   was sent after its start is acknowledged.
//! - `reordering` does not come down again after a timeout.

use super::repair::{DUP_THRESH, Repair};
use super::{Outlet, Phase, Sender};
use crate::endpoint::Emit;
use crate::segment::{Flags, Segment};
use crate::stack::Config;
use base::Time;

/// The most that `reordering` rises to: tcp_max_reordering.
const MOST_REORDERING: u32 = 300;

/// What duplicate acknowledgements have told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Counting {
    /// How many segments are thought to have arrived beyond a hole.
    assumed: u32,
    /// How many duplicates make a loss; at first tcp_reordering, which is 3.
    reordering: u32,
    /// The peer's last segment carried data: its next one does not count as a duplicate.
    heard_data: bool,
}

base::packed!(Counting { assumed, reordering, heard_data });

impl Default for Counting {
    fn default() -> Self {
        Self { assumed: 0, reordering: DUP_THRESH, heard_data: false }
    }
}

impl Counting {
    /// Whether `segment` is the peer's first after one with data, and so counts as a window update
    /// (tcp_may_update_window, FLAG_NOT_DUP).
    pub(super) fn is_first_after_data(&mut self, segment: &Segment) -> bool {
        let is_data = segment.payload > 0 || segment.flags.has(Flags::FIN);
        std::mem::replace(&mut self.heard_data, is_data)
    }
}

impl Sender {
    /// What duplicates have told. Call it only where they are counted.
    fn counting(&mut self) -> &mut Counting {
        match &mut self.repair {
            Repair::Counted(counting) => counting,
            _ => unreachable!("duplicates are counted"),
        }
    }

    /// Takes an acknowledgement of this many `segments`. Returns how many bytes it is the first to tell the arrival of.
    #[inline(never)]
    pub(super) fn count_acknowledged(&mut self, ack: u64, segments: u32, config: &Config) -> u64 {
        let mss = u64::from(config.mss);
        let assumed = self.counting().assumed;
        if assumed == 0 {
            return u64::from(segments.max(1)) * mss;
        }
        let goes_on = self.phase == Phase::Recovery && ack < self.recover;
        let left = if goes_on { assumed.saturating_sub(segments.saturating_sub(1)) } else { 0 };
        if goes_on && left > self.most_assumed() {
            self.note_reordering(segments);
        }
        let left = left.min(self.most_assumed());
        self.assume(left, config);
        u64::from(segments.saturating_sub(assumed).max(1)) * mss
    }

    /// Takes a duplicate. Returns how many bytes it says arrived.
    pub(super) fn on_counted_duplicate(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> u64 {
        let is_calm = matches!(self.phase, Phase::Open | Phase::Reducing);
        let says_nothing = self.phase == Phase::Timeout && self.snd_nxt <= self.recover;
        if !is_calm && (self.snd_una >= self.recover || says_nothing) {
            return 0;
        }
        let most = self.most_assumed();
        let assumed = self.counting().assumed;
        if assumed >= most {
            self.note_reordering(0);
        } else {
            self.assume(assumed + 1, config);
        }
        let Counting { assumed: now_assumed, reordering, .. } = *self.counting();
        if is_calm && now_assumed >= reordering {
            self.enter_recovery(config, now, out);
        }
        u64::from(now_assumed.saturating_sub(assumed)) * u64::from(config.mss)
    }

    /// Deems the next hole lost after a partial acknowledgement.
    pub(super) fn lose_next(&mut self) {
        if self.snd_una < self.recover && !self.outstanding.is_front_lost() {
            self.outstanding.lose_front();
        }
    }

    /// Forgets what duplicates have told, since the timer has expired.
    pub(super) fn forget_duplicates(&mut self, config: &Config) {
        if let Repair::Counted(Counting { assumed: 1.., .. }) = self.repair {
            self.assume(0, config);
        }
    }

    fn assume(&mut self, segments: u32, config: &Config) {
        self.counting().assumed = segments;
        self.outstanding.assume(segments, config.mss);
    }

    /// The most segments that can have arrived beyond a hole: all but those deemed lost, or but one
    /// (tcp_limit_reno_sacked).
    fn most_assumed(&self) -> u32 {
        (self.outstanding.len() as u32).saturating_sub(self.outstanding.lost_records().max(1))
    }

    fn note_reordering(&mut self, more: u32) {
        let out = self.outstanding.len() as u32;
        self.counting().reordering = (out + more).min(MOST_REORDERING);
    }
}
