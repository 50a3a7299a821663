//! The window does not grow while the application does not use it, and comes down after a pause. What the path could
//! take before a pause says little of what it can take afterwards.
//!
//! Whether the window limits the sender is found when something is sent, and holds for a round trip (RFC 7661 as in
//! Linux). Thus the window still grows by the last acknowledgements, although there is nothing left to send.
//!
//! By RFC 5681 §4.1 a pause longer than the retransmission timeout brings the window back to the initial one. Linux
//! halves it for each timeout that went by, down to the initial one. It keeps three quarters of the old window as the
//! threshold, so that slow start soon leads back there (RFC 2861; tcp_cwnd_restart).
//!
//! # Deviations
//! - A window of which the application uses only a part does not grow (`cwnd_validation`), but does not decay either.
//!   RFC 2861 lets it decay (tcp_cwnd_application_limited). In Linux it decays only when a timeout's time went by
//!   without a pause and without an acknowledgement that lets it grow (`snd_cwnd_stamp`, which tcp_cong_avoid sets).

use super::Sender;
use crate::cc::Controller;
use crate::stack::Config;
use base::Time;

/// How much of the window the application used.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Use {
    /// The window was full at some time in this round trip (`is_cwnd_limited`).
    is_limited: bool,
    /// If it was not, the most bytes that were outstanding in it (`max_packets_out`).
    most: u64,
    /// The acknowledgement of this ends the round trip (`cwnd_usage_seq`).
    end: u64,
}

base::packed!(Use { is_limited, most, end });

impl Sender {
    /// Notes how much of the window is used after sending; `before` is the former `snd_nxt` (tcp_cwnd_validate,
    /// tcp_write_xmit).
    #[inline(always)]
    pub(super) fn note_use(&mut self, before: u64, config: &Config) {
        let has_sent = self.snd_nxt > before;
        let is_limited = (self.taken(config) + u64::from(config.mss)) as i64 as f64 > self.window.cwnd;
        if !has_sent && (!is_limited || self.next_new(config).is_none()) {
            return;
        }
        let out = self.taken_by_all(config);
        let used = &mut self.used;
        let counts = self.snd_una >= used.end || is_limited || !used.is_limited && out > used.most;
        if counts {
            *used = Use { is_limited, most: out, end: self.snd_nxt };
        }
    }

    /// Whether the window may grow, because it limits the sender and not the application does (tcp_is_cwnd_limited). In
    /// slow start it may always grow to twice what was outstanding.
    pub(super) fn is_window_used(&self) -> bool {
        self.used.is_limited || self.window.in_slow_start() && self.window.cwnd < 2.0 * self.used.most as i64 as f64
    }

    /// Tells the controller how long nothing was sent, while nothing is outstanding (tcp_event_data_sent).
    #[inline(never)]
    pub(super) fn note_pause(&mut self, now: Time) {
        self.controller.algorithm_mut().resumed(now.since(self.last_sent_at), now);
    }

    /// Brings the window down when the application sends again after a pause longer than the timeout.
    #[cold]
    pub(super) fn restart_after_idle(&mut self, config: &Config, now: Time) {
        let mss = f64::from(config.mss);
        let initial = f64::from(config.initial_window) * mss;
        if !config.idle_halves {
            self.window.cwnd = self.window.cwnd.min(initial);
            return;
        }
        // Nothing is to be sent, so that the pause goes on.
        if self.next_new(config).is_none() {
            return;
        }
        let rto = self.rtt.rto(config);
        let mut pause = now.since(self.last_sent_at).saturating_sub(rto);
        let least = initial.min(self.window.cwnd);
        self.window.ssthresh = self.window_before(config).ssthresh;
        while pause.ns() > 0 && self.window.cwnd > least {
            pause = pause.saturating_sub(rto);
            self.window.cwnd = (self.window.cwnd / mss / 2.0).floor() * mss;
        }
        self.window.cwnd = self.window.cwnd.max(least);
        // One pause counts once, whatever keeps the window from being used.
        self.note_pause(now);
        self.last_sent_at = now;
    }
}
