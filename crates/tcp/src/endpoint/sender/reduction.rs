//! This file brings the window down for losses and marks, at once or over a round trip by proportional rate reduction.
//!
//! Source of the latter: RFC 6937 in the form of Linux (tcp_cwnd_reduction). The slow-start reduction bound holds while
//! the repair goes well, the conservative one otherwise. The first retransmission may always go out at once. What is
//! sent and what arrives is measured as the window is: in bytes, or in segments of which each is a full one.
//!
//! | RFC              | here                    |
//! |------------------|-------------------------|
//! | `prr_delivered`  | `delivered`             |
//! | `prr_out`        | `sent`                  |
//! | `RecoverFS`      | `from`: the window, as in Linux |

use super::repair::Repair;
use super::{Phase, Sender};
use crate::cc::{Cause, Congestion, Controller};
use crate::segment::Segment;
use crate::stack::{Config, Reduction};
use base::Time;

/// How far a gradual reduction has come.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Progress {
    /// The window when it began.
    from: f64,
    /// How much arrived since.
    delivered: u64,
    /// How much was sent since, again or for the first time.
    sent: u64,
}

base::packed!(Progress { from, delivered, sent });

/// How the window comes down.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Descent {
    /// It comes down at once.
    AtOnce,
    /// It comes down over a round trip; the value belongs to the last reduction.
    Gradual(Progress),
}

base::packed!(Descent: AtOnce | Gradual(progress));

impl Descent {
    /// How it comes down with this way of repair.
    pub fn new(repair: &Repair, config: &Config) -> Self {
        // A controller that models the path brings the window down itself, in this frame.
        let wants = config.reduction == Reduction::Proportional || config.control.models_path();
        let is_gradual = match repair {
            Repair::Counted(_) => true,
            Repair::Sack { .. } | Repair::Rack(_) => wants,
            Repair::Reno | Repair::NewReno | Repair::Ns2NewReno(_) | Repair::Ns2Sack1(_) => false,
        };
        if is_gradual { Self::Gradual(Progress::default()) } else { Self::AtOnce }
    }

    /// Whether it comes down over a round trip.
    #[inline]
    pub fn is_gradual(&self) -> bool {
        matches!(self, Self::Gradual(_))
    }

    /// Notes that a segment of so many bytes was sent, again or for the first time.
    #[inline]
    pub fn note_sent(&mut self, bytes: u32, config: &Config) {
        if let Self::Gradual(progress) = self {
            progress.sent += u64::from(if config.whole_segments { config.mss } else { bytes });
        }
    }
}

impl Sender {
    /// Whether the window is coming down.
    #[inline]
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Reducing)
    }

    /// Sets the threshold to which the window is to come down.
    pub(super) fn begin_reduction(&mut self, cause: Cause, config: &Config, now: Time) {
        self.descent = Descent::Gradual(Progress { from: self.window.cwnd, delivered: 0, sent: 0 });
        self.set_threshold(cause, config, now);
        self.heard.owe_cwr();
    }

    /// Sets the threshold to what the controller leaves of the window.
    pub(super) fn set_threshold(&mut self, cause: Cause, config: &Config, now: Time) {
        let mss = f64::from(config.mss);
        if config.whole_segments {
            self.window.cwnd = (self.window.cwnd / mss).floor() * mss;
        }
        let congestion = Congestion {
            cause,
            flight: self.window.cwnd,
            mss,
            whole_segments: config.whole_segments,
            abe: config.abe,
            now,
        };
        let left = self.controller.reduced(&self.window, &congestion);
        let least = match cause {
            Cause::Mark => self.floor_of_marks(config),
            Cause::Loss | Cause::Probed => 2.0 * mss,
        };
        self.window.ssthresh = left.max(least);
    }

    /// The smallest window that a mark leaves: no larger than that which it met.
    fn floor_of_marks(&self, config: &Config) -> f64 {
        let mss = f64::from(config.mss);
        (f64::from(config.ecn_floor.max(1)) * mss).min(self.window.cwnd.max(2.0 * mss))
    }

    /// Begins fast recovery where the window comes down gradually. [`Sender::push`] then sends what is lost, and starts
    /// the timer again with the first segment.
    pub(super) fn enter_recovery_gradually(&mut self, config: &Config, now: Time) {
        self.begin_undoing(self.window_before(config), config);
        if self.phase == Phase::Reducing {
            // The reduction for the echo goes on, and so does the window that it is for.
            self.recover = self.ecn_recover;
            self.forbid_undoing();
            if config.control.echoes_each_mark() || config.control.needs_counts() {
                self.set_threshold(Cause::Loss, config, now);
            }
        } else {
            self.begin_reduction(Cause::Loss, config, now);
            self.recover = self.snd_nxt;
        }
        self.phase = Phase::Recovery;
        self.repair.forget_probe();
        if !self.repair.is_rack() {
            self.outstanding.lose_front();
        }
    }

    /// Whether a recovery goes on in a reduction for an echo whose window was acknowledged before the recovery began:
    /// nothing was sent between the two.
    #[inline]
    pub(super) fn has_outlived_reduction(&self) -> bool {
        self.phase == Phase::Recovery && self.descent.is_gradual() && self.snd_una >= self.repaired_at()
    }

    /// Leaves such a recovery at the first report after it began. What is lost is not of the window that the reduction
    /// was for, and begins a recovery with a reduction of its own (tcp_fastretrans_alert, step D).
    #[cold]
    pub(super) fn leave_outlived(&mut self, segment: &Segment, config: &Config, now: Time) {
        // As the report has the timestamp of what came in order, the window stays as it has come down so far.
        if !self.undo_whole(segment, config, now) {
            self.end_reduction(config);
        }
    }

    /// Sets the window after `delivered` of it arrived during the reduction.
    #[inline(never)]
    pub(super) fn reduce_by(&mut self, delivered: u64, goes_well: bool, config: &Config) {
        if delivered == 0 || config.control.models_path() {
            return;
        }
        let mss = f64::from(config.mss);
        let pipe = self.taken(config) as f64;
        let Descent::Gradual(progress) = &mut self.descent else { return };
        progress.delivered += delivered;
        let (arrived, sent) = (progress.delivered as f64, progress.sent as f64);
        let more = if pipe > self.window.ssthresh {
            let segments = (self.window.ssthresh * arrived / progress.from / mss).ceil();
            segments * mss - sent
        } else {
            let bound = (arrived - sent).max(delivered as f64) + if goes_well { mss } else { 0.0 };
            bound.min(self.window.ssthresh - pipe)
        };
        let least = if progress.sent == 0 { mss } else { 0.0 };
        self.window.cwnd = (pipe + more.max(least)).max(mss);
    }

    /// FlightSize: what the bytes outstanding take of the window, without those that limited transmit sent beyond it
    /// (RFC 5681 §3.2). Where the threshold goes by the window, the window stands for it.
    pub(super) fn flight(&self, config: &Config) -> f64 {
        if config.threshold_of_window {
            // tcp_input.c of FreeBSD 4: the smaller of both windows, of which half are so many whole segments.
            let pair = 2.0 * f64::from(config.mss);
            return (self.window.cwnd.min(self.peer_window as f64) / pair).floor() * pair;
        }
        (self.taken_by_all(config) as f64).min(self.window.cwnd)
    }

    /// Reduces the window, since congestion met `flight` bytes. Returns what the controller leaves of them. The
    /// threshold, and the window with it, is at least two segments (RFC 5681 equation 4).
    pub(super) fn reduce(&mut self, cause: Cause, flight: f64, config: &Config, now: Time) -> f64 {
        let mss = f64::from(config.mss);
        let congestion = Congestion { cause, flight, mss, whole_segments: false, abe: config.abe, now };
        let left = self.controller.reduced(&self.window, &congestion);
        self.window.ssthresh = left.max(2.0 * mss);
        self.window.cwnd = self.window.ssthresh;
        self.heard.owe_cwr();
        left
    }

    #[inline(never)]
    pub(super) fn on_ecn_echo(&mut self, config: &Config, now: Time) {
        // RFC 3168 §6.1.2: marks reduce the window at most once a window, and not if a loss has done so already. The
        // comparison is `<=`, because an acknowledgement of exactly that window may have been sent before the CWR
        // arrived.
        let is_known = self.snd_una <= self.ecn_recover || self.snd_una <= self.recover;
        if self.phase != Phase::Open || is_known && !self.descent.is_gradual() {
            return;
        }
        if self.controller.algorithm().passes_over_marks(now) {
            return;
        }
        self.stats.ecn_reductions += 1;
        let mss = f64::from(config.mss);
        if self.descent.is_gradual() {
            self.begin_reduction(Cause::Mark, config, now);
            self.phase = Phase::Reducing;
            self.repair.forget_probe();
            self.ecn_recover = self.snd_nxt;
            return;
        }
        let floor = self.floor_of_marks(config);
        if self.window.cwnd <= mss && config.ecn_floor <= 1 {
            self.held_until = now + self.rtt.rto(config);
            self.note_seldom();
        }
        // The window counts here, not what is outstanding: the echo may have acknowledged all of that.
        self.window.cwnd = self.reduce(Cause::Mark, self.window.cwnd, config, now).max(floor);
        self.ecn_recover = self.snd_nxt;
    }

    /// Ends the reduction if the acknowledgement of new data in `segment` says so.
    ///
    /// Linux ends a recovery when everything is acknowledged that was outstanding at its start. It ends a reduction for
    /// an echo when something is acknowledged that was sent since. Either acknowledgement lets the window grow again.
    #[inline(never)]
    pub(super) fn end_descent(&mut self, segment: &Segment, config: &Config, now: Time) {
        let is_over = match self.phase {
            Phase::Recovery => segment.ack >= self.repaired_at() && !self.undo_whole(segment, config, now),
            Phase::Reducing => segment.ack > self.ecn_recover,
            Phase::Open | Phase::Timeout => false,
        };
        if is_over {
            self.end_reduction(config);
        }
    }

    /// Ends the reduction: the window is at the threshold.
    pub(super) fn end_reduction(&mut self, config: &Config) {
        self.phase = Phase::Open;
        if !config.control.models_path() {
            self.window.cwnd = self.window.ssthresh;
        }
    }
}
