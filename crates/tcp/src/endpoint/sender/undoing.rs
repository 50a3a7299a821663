//! This file takes a reduction back when it proves needless: the segments that were sent again had not been lost.
//!
//! Three observations prove that:
//! - Eifel (RFC 3522, RFC 4015): an acknowledgement echoes a timestamp from before the first retransmission, and so
//!   answers the original.
//! - DSACK (RFC 3708, with the reports of RFC 2883): every retransmission is reported to have come twice.
//! - F-RTO (RFC 5682 §3, in the form for selective acknowledgements): after a timeout a segment arrives that was sent
//!   once and was deemed lost. To learn that, the first acknowledgement after the timeout lets new data out instead of
//!   old, and the next one tells.
//!
//! The window and the threshold are then raised to their former values. An echo of a mark rules this out, since the
//! reduction was then needed anyway.
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
//! - Without SACK, the reduction of a timeout is taken back whether or not anything beyond it is acknowledged.
//! - Timestamps have 16 bits here. They do not judge a retransmission that is more than half a minute old.
//! - When a reduction is taken back, retransmissions that are still out no longer count as being in the network.

use super::repair::Repair;
use super::{Expired, Phase, Sender};
use crate::cc::{Controller, Window};
use crate::rack::{COMPARABLE, Rack};
use crate::segment::{Segment, stamp_of};
use crate::stack::Config;
use base::Time;

/// How far F-RTO has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Step {
    /// It does not run, or has come to its answer.
    #[default]
    Off,
    /// The first segment was sent again, or new data after it. The next acknowledgement tells.
    Waiting,
}

/// What is needed to take the last reduction back.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
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

base::left_whole!(Undoing);

impl Sender {
    /// Whether this stack can take a reduction back in any of the three ways.
    fn may_take_back(config: &Config) -> bool {
        (config.undo || config.frto) && Repair::keeps_time(config)
    }

    /// The timestamp that `segment` echoes; `None` for a stack without timestamps.
    #[inline]
    pub(super) fn echo_of(segment: &Segment, config: &Config) -> Option<u16> {
        config.timestamps.then_some(segment.echo)
    }

    /// Notes that the window comes down from `before`. Call it before anything is sent again.
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

    /// The window and the threshold to go back to if the reduction that begins now proves needless
    /// (tcp_current_ssthresh).
    pub(super) fn window_before(&self, config: &Config) -> Window {
        let Window { cwnd, ssthresh } = self.window;
        if self.is_reducing() {
            return Window { cwnd, ssthresh };
        }
        let mss = f64::from(config.mss);
        let most = match config.whole_segments {
            // A half and a quarter, each of whole segments.
            true => ((cwnd / mss / 2.0).floor() + (cwnd / mss / 4.0).floor()) * mss,
            false => 0.75 * cwnd,
        };
        Window { cwnd, ssthresh: ssthresh.max(most) }
    }

    /// Notes that a segment is sent again.
    #[inline]
    pub(super) fn note_resent(&mut self, now: Time) {
        if let Some(undoing) = &mut self.undoing {
            undoing.pending = Some(undoing.pending.unwrap_or(0) + 1);
            undoing.first_resent_at.get_or_insert(now);
        }
    }

    /// Rules out that the reduction is taken back: an echo of a mark says that it was needed.
    #[inline]
    pub(super) fn forbid_undoing(&mut self) {
        if let Some(undoing) = &mut self.undoing {
            undoing.before = None;
        }
    }

    /// Begins F-RTO after the timer expired, unless it expired during a recovery. `is_first` says that the timer
    /// expired for the first time since an acknowledgement of new data.
    pub(super) fn begin_frto(&mut self, was_recovering: bool, is_first: bool, config: &Config) {
        if config.frto && Self::may_take_back(config) {
            let step = if !was_recovering || !is_first { Step::Waiting } else { Step::Off };
            self.undoing.get_or_insert_with(Box::default).step = step;
        }
    }

    /// Whether `segment` answers something that was sent before the first retransmission (tcp_packet_delayed).
    fn is_of_original(&self, segment: &Segment, config: &Config, now: Time) -> bool {
        let Some(first_at) = self.undoing.as_ref().and_then(|undoing| undoing.first_resent_at) else { return true };
        let is_comparable = config.timestamps && now.since(first_at) < COMPARABLE;
        is_comparable && (segment.echo.wrapping_sub(stamp_of(first_at)) as i16) < 0
    }

    /// Whether the reduction has proved needless (tcp_may_undo).
    fn may_undo(&self, segment: &Segment, config: &Config, now: Time) -> bool {
        let Some(undoing) = &self.undoing else { return false };
        undoing.since.is_some() && (undoing.pending == Some(0) || self.is_of_original(segment, config, now))
    }

    /// Takes the reduction back. If `unmarks`, no segment is deemed lost any more.
    fn undo(&mut self, unmarks: bool, config: &Config) {
        let Some(undoing) = &mut self.undoing else { return };
        let before = undoing.before;
        undoing.since = None;
        if unmarks {
            self.outstanding.unlose();
        }
        if let Some(before) = before {
            self.stats.undone += 1;
            self.controller.algorithm_mut().undone(&mut self.window);
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

    /// Judges a recovery when `segment` acknowledges everything that was out at its start, and takes the reduction back
    /// if it was needless. Returns whether it was.
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

    /// Judges a recovery when `segment` acknowledges a part of what was out at its start. Returns whether that part was
    /// only late, so that nothing more is to be sent again for now.
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

    /// Judges a timeout by an acknowledgement after it (tcp_process_loss). Returns whether new data is to go out rather
    /// than old. `advances` says that it acknowledges new data, `has_news` that it reports something new beyond that.
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
        // Without reports, a segment that was sent once may have been waiting at the receiver for one that was sent
        // again (tcp_clean_rtx_queue).
        let is_unclear = self.repair.is_counted() && self.outstanding.has_acked_resent();
        let is_original = !is_unclear && self.outstanding.first_original().is_some_and(|end| end <= self.recover);
        if advances && self.may_undo(segment, config, now) || step == Step::Waiting && is_original {
            self.undo(true, config);
            self.set_step(Step::Off);
            self.phase = Phase::Open;
            self.expired = Expired::default();
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

    /// Whether no acknowledgement in order can prove the last reduction needless, once that reduction has ended.
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

    /// Ends F-RTO without an answer: it was to send new data, and there was no room or none to send.
    pub(super) fn end_frto(&mut self) {
        self.set_step(Step::Off);
    }

    /// Notes the peer's report that `start..end` came twice (tcp_check_dsack). Returns the bytes of it, or 0 if the
    /// network must have duplicated them.
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
            // More came twice than was ever sent twice: the network has duplicated it.
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

    /// Takes the reduction back if everything that was sent again has come twice (tcp_try_undo_dsack). Returns whether
    /// it did.
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
