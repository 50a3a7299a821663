//! Reductions taken back: what was sent again had not been lost.
//!
//! Three things tell. An acknowledgement that echoes a timestamp from before the first retransmission was caused by
//! what was sent first (Eifel, RFC 3522 and 4015). Every retransmission is reported to have come twice (RFC 3708, on
//! RFC 2883's reports). After a timeout, something that was sent once and is taken for lost arrives (F-RTO, RFC 5682
//! §3, with selective acknowledgements: the first acknowledgement after the timeout lets new data out, not old, so that
//! the next one tells). The window is then what it was, and nothing is lost any more. An echo of a mark forbids it: the
//! reduction was due.
//!
//! Source: Linux 6.12, tcp_input.c: tcp_init_undo, tcp_may_undo, tcp_try_undo_recovery, _partial, _dsack and _loss,
//! tcp_process_loss, tcp_undo_cwnd_reduction.
//!
//! | Linux            | here                          |
//! |------------------|-------------------------------|
//! | `undo_marker`    | `since`                       |
//! | `undo_retrans`   | `pending`                     |
//! | `retrans_stamp`  | `first_resent_at`             |
//! | `prior_cwnd`, `prior_ssthresh` | `before`        |
//! | `frto`           | `step`                        |
//!
//! # Deviations
//! - Without SACK, what a timeout took is given back whether or not anything beyond is acknowledged.
//! - Stamps have 16 bits. A retransmission that is half a minute old is not judged by them.
//! - When a reduction is taken back, what was sent again and is still out no longer counts as being in the network.
//! - Segments that were deemed lost in a reduction that was needless stay so until it is found out; Linux forgets
//!   them too only then.

use super::repair::Repair;
use super::{Phase, Sender};
use crate::cc::{Controller, Window};
use crate::rack::{COMPARABLE, Rack};
use crate::segment::{Segment, stamp_of};
use crate::stack::Config;
use base::Time;

/// Where F-RTO stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Step {
    /// It is not asked, or has answered.
    #[default]
    Off,
    /// The first segment was sent again, or new data after it; what is acknowledged next tells.
    Waiting,
}

/// What it takes to take the last reduction back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undoing {
    /// `snd_una` when it began; `None` once it was taken back.
    since: Option<u64>,
    /// The window before it; `None` if the reduction was due.
    before: Option<Window>,
    /// Retransmissions that are not known to have come twice; `None` before the first.
    pending: Option<u32>,
    first_resent_at: Option<Time>,
    /// Segments reported to have come twice, since the connection opened.
    twice: u32,
    step: Step,
}

impl Sender {
    /// Whether a stack has any of it.
    fn may_take_back(config: &Config) -> bool {
        (config.undo || config.frto) && Repair::keeps_time(config)
    }

    /// The stamp that `segment` echoes, where there are timestamps.
    #[inline]
    pub(super) fn echo_of(segment: &Segment, config: &Config) -> Option<u16> {
        config.timestamps.then_some(segment.echo)
    }

    /// The window comes down from `before`, the controller permitting; call it before anything is sent again.
    pub(super) fn begin_undoing(&mut self, before: Window, config: &Config) {
        if !Self::may_take_back(config) {
            return;
        }
        let out = self.outstanding.resent_out() + u32::from(self.has_resent_probe());
        let is_resent = self.outstanding.has_resent_out() || self.outstanding.is_front_resent();
        let undoing = self.undoing.get_or_insert_with(Box::default);
        undoing.since = config.undo.then_some(self.snd_una);
        undoing.before = Some(before);
        undoing.pending = (out > 0).then_some(out);
        if !is_resent {
            undoing.first_resent_at = None;
        }
    }

    /// The window and the threshold as they are to be again if the reduction that begins now is needless
    /// (tcp_current_ssthresh).
    pub(super) fn window_before(&self) -> Window {
        let Window { cwnd, ssthresh } = self.window;
        let ssthresh = if self.is_reducing() { ssthresh } else { ssthresh.max(0.75 * cwnd) };
        Window { cwnd, ssthresh }
    }

    /// Something is sent again.
    #[inline]
    pub(super) fn note_resent(&mut self, now: Time) {
        if let Some(undoing) = &mut self.undoing {
            undoing.pending = Some(undoing.pending.unwrap_or(0) + 1);
            undoing.first_resent_at.get_or_insert(now);
        }
    }

    /// An echo of a mark: the reduction is due.
    #[inline]
    pub(super) fn forbid_undoing(&mut self) {
        if let Some(undoing) = &mut self.undoing {
            undoing.before = None;
        }
    }

    /// The timer expired, for the first time since something arrived if `is_first`: F-RTO, unless it did so during a
    /// recovery.
    pub(super) fn begin_frto(&mut self, was_recovering: bool, is_first: bool, config: &Config) {
        if config.frto && Self::may_take_back(config) {
            let step = if !was_recovering || !is_first { Step::Waiting } else { Step::Off };
            self.undoing.get_or_insert_with(Box::default).step = step;
        }
    }

    /// Whether what `segment` acknowledges was sent before anything was sent again (tcp_packet_delayed).
    fn is_of_original(&self, segment: &Segment, config: &Config, now: Time) -> bool {
        let Some(first_at) = self.undoing.as_ref().and_then(|undoing| undoing.first_resent_at) else { return true };
        let is_comparable = config.timestamps && now.since(first_at) < COMPARABLE;
        is_comparable && (segment.echo.wrapping_sub(stamp_of(first_at)) as i16) < 0
    }

    /// tcp_may_undo.
    fn may_undo(&self, segment: &Segment, config: &Config, now: Time) -> bool {
        let Some(undoing) = &self.undoing else { return false };
        undoing.since.is_some() && (undoing.pending == Some(0) || self.is_of_original(segment, config, now))
    }

    /// Takes the reduction back; what was deemed lost is not, if `unmarks`.
    fn undo(&mut self, unmarks: bool, config: &Config) {
        let Some(undoing) = &mut self.undoing else { return };
        let before = undoing.before;
        undoing.since = None;
        if unmarks {
            self.outstanding.unlose();
        }
        if let Some(before) = before {
            self.stats.undone += 1;
            self.controller.algorithm_mut().undone();
            if !config.control.models_path() {
                self.window.cwnd = self.window.cwnd.max(before.cwnd);
            }
            if before.ssthresh > self.window.ssthresh {
                self.window.ssthresh = before.ssthresh;
                self.heard.forgive_cwr();
            }
        }
        self.outstanding.tell_rack(Rack::look_again);
    }

    /// Everything that was out when the recovery began is acknowledged by `segment`. Returns whether it was needless.
    #[inline(never)]
    pub(super) fn undo_whole(&mut self, segment: &Segment, config: &Config, now: Time) -> bool {
        if !self.may_undo(segment, config, now) {
            self.outstanding.tell_rack(Rack::note_real_recovery);
            return false;
        }
        self.undo(false, config);
        self.phase = Phase::Open;
        true
    }

    /// `segment` acknowledges something during a recovery. Returns whether that was only late, so that nothing more is
    /// to be sent again for now.
    #[inline(never)]
    pub(super) fn undo_partly(&mut self, segment: &Segment, config: &Config, now: Time) -> bool {
        let is_late = self.undoing.as_ref().is_some_and(|undoing| undoing.since.is_some())
            && self.is_of_original(segment, config, now);
        if !is_late {
            return false;
        }
        self.outstanding.tell_rack(Rack::note_reordering);
        if self.outstanding.has_resent_out() {
            return true;
        }
        self.undo(true, config);
        self.phase = Phase::Open;
        false
    }

    /// An acknowledgement after a timeout, of `advances` bytes, which told of something new beyond them if `has_news`
    /// (tcp_process_loss). Returns whether new data is to go out rather than old.
    #[inline(never)]
    pub(super) fn judge_timeout(
        &mut self,
        segment: &Segment,
        advances: bool,
        has_news: bool,
        config: &Config,
        now: Time,
    ) -> bool {
        let Some(step) = self.undoing.as_ref().map(|undoing| undoing.step) else { return false };
        // Without reports, what was sent once may have been waiting for what was sent again (tcp_clean_rtx_queue).
        let is_unclear = self.repair.is_counted() && self.outstanding.has_acked_resent();
        let is_original = !is_unclear && self.outstanding.first_original().is_some_and(|end| end <= self.recover);
        if advances && self.may_undo(segment, config, now) || step == Step::Waiting && is_original {
            self.undo(true, config);
            self.set_step(Step::Off);
            self.phase = Phase::Open;
            return false;
        }
        if step == Step::Off {
            return false;
        }
        if self.snd_nxt > self.recover {
            if has_news {
                // §3.1 step 3.a: the loss was real.
                self.set_step(Step::Off);
            }
        } else if advances && self.snd_una < self.recover {
            // Step 2.b
            if self.has_room_for_new(config) {
                return true;
            }
            self.set_step(Step::Off);
        }
        false
    }

    fn has_room_for_new(&self, config: &Config) -> bool {
        let in_flight = self.snd_nxt - self.snd_una;
        self.next_new(config).is_some_and(|(len, _)| in_flight + u64::from(len) <= self.peer_window)
    }

    /// Whether no acknowledgement in order can tell anything of the last reduction, once it is through.
    #[inline]
    pub(super) fn has_judged(&self) -> bool {
        self.undoing.as_ref().is_none_or(|undoing| {
            let is_known = undoing.since.is_some() && undoing.pending == Some(0);
            !is_known && self.outstanding.rack().is_none_or(Rack::is_settled)
        })
    }

    fn set_step(&mut self, step: Step) {
        if let Some(undoing) = &mut self.undoing {
            undoing.step = step;
        }
    }

    /// F-RTO was to send new data, and there was no room.
    pub(super) fn end_frto(&mut self) {
        self.set_step(Step::Off);
    }

    /// The peer reports that `start..end` came twice (tcp_check_dsack). Returns the bytes that are known to have been
    /// sent twice.
    #[inline(never)]
    pub(super) fn note_twice(&mut self, start: u64, end: u64, config: &Config) -> u64 {
        let segments = (end - start).div_ceil(u64::from(config.mss)).max(1) as u32;
        let is_probe = segments == 1 && self.probe_came_twice(end);
        let resent = self.stats.retransmitted;
        let una = self.snd_una;
        let is_resent = end <= una || self.outstanding.note_twice(start, end);
        let undoing = self.undoing.get_or_insert_with(Box::default);
        undoing.twice += segments;
        if undoing.twice > resent {
            // The network has sent it twice.
            return 0;
        }
        if is_resent
            && let (Some(since), Some(pending)) = (undoing.since, undoing.pending)
            && end > since
        {
            undoing.pending = Some(pending.saturating_sub(segments));
        }
        if !is_probe {
            self.outstanding.tell_rack(Rack::note_needless);
        }
        end - start
    }

    /// Takes the reduction back if all that was sent again is known to have come twice (tcp_try_undo_dsack). Returns
    /// whether it was.
    pub(super) fn undo_twice(&mut self, config: &Config) -> bool {
        let is_known =
            self.undoing.as_ref().is_some_and(|undoing| undoing.since.is_some() && undoing.pending == Some(0));
        let is_due = is_known && matches!(self.phase, Phase::Open | Phase::Recovery);
        if is_due {
            self.outstanding.tell_rack(Rack::note_undone);
            self.undo(false, config);
            self.phase = Phase::Open;
        }
        is_due
    }
}
