//! The window coming down, for losses and for marks: at once, or over a round trip by proportional rate reduction.
//!
//! Source of the latter: RFC 6937 in the form of Linux (tcp_cwnd_reduction): the slow-start reduction bound while the
//! repair goes well, the conservative one otherwise, and at least the first retransmission at once.
//!
//! | RFC              | here                    |
//! |------------------|-------------------------|
//! | `prr_delivered`  | `delivered`             |
//! | `prr_out`        | `sent`                  |
//! | `RecoverFS`      | `from`: the window, as in Linux |

use super::{Endpoint, Phase};
use crate::cc::{Cause, Congestion};
use crate::stack::{Config, Reduction, Repair};
use base::Time;

/// What happened since the reduction began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// The window then.
    from: f64,
    /// Bytes that arrived.
    delivered: u64,
    /// Bytes that were sent, again or for the first time.
    pub(super) sent: u64,
}

impl Endpoint {
    /// Whether a stack brings its window down so.
    pub(super) fn reduces_gradually(config: &Config) -> bool {
        // A controller that models the path brings the window down itself, in this frame.
        let is_gradual = config.reduction == Reduction::Proportional || config.control.models_path();
        is_gradual && matches!(config.repair, Repair::Sack | Repair::Rack) || Self::counts_duplicates(config)
    }

    /// Whether the window is coming down.
    #[inline]
    pub(super) fn is_reducing(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Reducing)
    }

    /// Sets the threshold to which the window is to come down.
    pub(super) fn begin_reduction(&mut self, cause: Cause, config: &Config, now: Time) {
        self.progress = Progress { from: self.window.cwnd, delivered: 0, sent: 0 };
        self.set_threshold(cause, config, now);
        self.feedback.owe_cwr();
    }

    /// The threshold that the controller leaves of the window.
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
        self.window.ssthresh = left.max(2.0 * mss);
    }

    /// Fast recovery begins, and the window comes down gradually; what is lost is sent by [`Endpoint::push`].
    pub(super) fn enter_recovery_gradually(&mut self, config: &Config, now: Time) {
        self.begin_undoing(self.window_before(), config);
        if self.phase == Phase::Reducing {
            // The reduction for the echo goes on, and so does the window that it is for.
            self.recover = self.ecn_recover;
            self.forbid_undoing();
            if config.control.echoes_each_mark() {
                self.set_threshold(Cause::Loss, config, now);
            }
        } else {
            self.begin_reduction(Cause::Loss, config, now);
            self.recover = self.snd_nxt;
        }
        self.phase = Phase::Recovery;
        self.probe_end = None;
        if !self.finds_by_time {
            self.outstanding.lose_front();
        }
        self.rto_at = config.timer(now, self.rtt.rto(config));
    }

    /// `delivered` bytes arrived during the reduction: how much may be out now.
    pub(super) fn reduce_by(&mut self, delivered: u64, goes_well: bool, config: &Config) {
        if delivered == 0 || self.is_modelled {
            return;
        }
        let mss = f64::from(config.mss);
        let pipe = self.outstanding.pipe(self.snd_nxt - self.snd_una) as f64;
        let progress = &mut self.progress;
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

    /// What is outstanding, without what limited transmit sent beyond the window (RFC 5681 §3.2).
    pub(super) fn flight(&self) -> f64 {
        ((self.snd_nxt - self.snd_una) as f64).min(self.window.cwnd)
    }

    /// Congestion met `flight` bytes: reduces the window. Returns what the controller leaves of them; the threshold,
    /// and the window with it, stays at two segments at least (RFC 5681 (4)).
    pub(super) fn reduce(&mut self, cause: Cause, flight: f64, config: &Config, now: Time) -> f64 {
        let mss = f64::from(config.mss);
        let congestion = Congestion { cause, flight, mss, whole_segments: false, abe: config.abe, now };
        let left = self.controller.reduced(&self.window, &congestion);
        self.window.ssthresh = left.max(2.0 * mss);
        self.window.cwnd = self.window.ssthresh;
        self.feedback.owe_cwr();
        left
    }

    pub(super) fn on_ecn_echo(&mut self, config: &Config, now: Time) {
        // RFC 3168 §6.1.2: once a window, and not for a window that a loss has reduced already.
        // An acknowledgement of exactly that window may have been sent before the CWR arrived.
        let is_known = self.snd_una <= self.ecn_recover || self.snd_una <= self.recover;
        if self.phase != Phase::Open || is_known && !self.is_gradual {
            return;
        }
        self.stats.ecn_reductions += 1;
        let mss = f64::from(config.mss);
        if self.is_gradual {
            self.begin_reduction(Cause::Mark, config, now);
            self.phase = Phase::Reducing;
            self.probe_end = None;
            self.ecn_recover = self.snd_nxt;
            return;
        }
        let floor = f64::from(config.ecn_floor) * mss;
        if self.window.cwnd <= mss && config.ecn_floor == 1 {
            self.held_until = now + self.rtt.rto(config);
            self.note_seldom();
        }
        // Half the window itself, not of what is outstanding: the echo may have acknowledged all of that.
        self.window.cwnd = self.reduce(Cause::Mark, self.window.cwnd, config, now).max(floor);
        self.ecn_recover = self.snd_nxt;
    }

    /// The reduction is through.
    pub(super) fn end_reduction(&mut self) {
        self.phase = Phase::Open;
        if !self.is_modelled {
            self.window.cwnd = self.window.ssthresh;
        }
    }
}
