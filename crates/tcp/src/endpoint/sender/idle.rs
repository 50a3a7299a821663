//! The window does not grow while the application does not use it. After a pause it comes down, since what the path
//! could take before says little of what it can take then.
//!
//! Whether the window limits what is sent is found when something is sent, and holds for a round trip (RFC 7661 in the
//! form that Linux has it): when the end of what was written has gone out, what comes back still lets the window grow.
//!
//! By RFC 5681 §4.1 a pause longer than the retransmission timeout brings the window back to the initial one. Linux
//! halves it for each timeout that went by, down to the initial one, and remembers three quarters of it as the
//! threshold, so that it is soon there again (RFC 2861; tcp_cwnd_restart).
//!
//! # Deviations
//! - RFC 2861's other half, a window that decays while the application uses only part of it
//!   (tcp_cwnd_application_limited), is not there: such a window does not grow (`cwnd_validation`), and stays. In
//!   Linux it decays only where a timeout's time went by without an acknowledgement that lets it grow and without a
//!   pause (`snd_cwnd_stamp`, which tcp_cong_avoid sets with each).

use super::Sender;
use crate::stack::Config;
use base::Time;

/// How much of the window the application used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Use {
    /// What was sent came to the end of the window in this round trip (`is_cwnd_limited`); if not, the most that was
    /// outstanding, bytes (`max_packets_out`).
    is_limited: bool,
    most: u64,
    /// The round trip ends when this is acknowledged (`cwnd_usage_seq`).
    end: u64,
}

impl Sender {
    /// Something new may have been sent, from `before` on (tcp_cwnd_validate, tcp_write_xmit).
    pub(super) fn note_use(&mut self, before: u64, config: &Config) {
        let has_sent = self.snd_nxt > before;
        if !has_sent && self.next_new(config).is_none() {
            return;
        }
        let mut out = self.snd_nxt - self.snd_una;
        let is_limited = (self.outstanding.pipe(out) + u64::from(config.mss)) as f64 > self.window.cwnd;
        if config.whole_segments {
            out = self.outstanding.len() as u64 * u64::from(config.mss);
        }
        let used = &mut self.used;
        let counts = self.snd_una >= used.end || is_limited || !used.is_limited && out > used.most;
        if counts && (has_sent || is_limited) {
            *used = Use { is_limited, most: out, end: self.snd_nxt };
        }
    }

    /// Whether the window, not the application, limits what is sent (tcp_is_cwnd_limited): only then does it grow, but
    /// in slow start to twice what was outstanding in any case.
    pub(super) fn is_window_used(&self) -> bool {
        self.used.is_limited || self.window.in_slow_start() && self.window.cwnd < 2.0 * self.used.most as f64
    }

    /// The application sends after a pause that was longer than the timeout.
    #[cold]
    pub(super) fn restart_after_idle(&mut self, config: &Config, now: Time) {
        let mss = f64::from(config.mss);
        let initial = f64::from(config.initial_window) * mss;
        if !config.idle_halves {
            self.window.cwnd = self.window.cwnd.min(initial);
            return;
        }
        // Nothing is sent, and so nothing ends the pause.
        if self.next_new(config).is_none() {
            return;
        }
        let rto = self.rtt.rto(config);
        let mut pause = now.since(self.last_sent_at).saturating_sub(rto);
        let least = initial.min(self.window.cwnd);
        self.window.ssthresh = self.window_before().ssthresh;
        while pause.ns() > 0 && self.window.cwnd > least {
            pause = pause.saturating_sub(rto);
            self.window.cwnd = (self.window.cwnd / mss / 2.0).floor() * mss;
        }
        self.window.cwnd = self.window.cwnd.max(least);
        // One pause counts once, whatever keeps the window from being used.
        self.last_sent_at = now;
    }
}
