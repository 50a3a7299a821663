//! When the retransmission timer expires, everything that was not reported to have arrived is deemed lost. Where the
//! receiver reports nothing, this is go-back-N. RACK spares what was sent too recently.

use super::repair::Repair;
use super::{Outlet, Phase, Sender, Timing};
use crate::cc::Cause;
use crate::endpoint::Emit;
use crate::stack::Config;
use base::Time;

/// After the timer has retransmitted a segment so often, the connection is given up (RFC 1122 §4.2.3.5, R2; BSD's
/// TCP_MAXRXTSHIFT). Linux tries for 924.6 s, three times more.
const MOST_TIMEOUTS: u32 = 12;

impl Sender {
    /// Deems everything lost and starts again with one segment, since the timer expired. Returns whether it expired too
    /// often, so that the connection is to be given up.
    pub(in crate::endpoint) fn on_timeout(
        &mut self,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        if self.snd_una == self.snd_nxt {
            self.rto_at = Time::NEVER;
            if self.repair.is_of_ns2() {
                self.wake_ns2(config, now, out);
            }
            return false;
        }
        self.stats.timeouts += 1;
        let is_first = self.expired.at != self.snd_una;
        self.expired.at = self.snd_una;
        self.expired.times = if is_first { 1 } else { self.expired.times + 1 };
        if self.expired.times > MOST_TIMEOUTS {
            return true;
        }
        if let Repair::Ns2Sack1(_) = self.repair {
            self.on_timeout_sack1(config, now, out);
            return false;
        }
        let reduces = self.reduces_at_timeout(is_first);
        self.begin_frto(matches!(self.phase, Phase::Recovery | Phase::Timeout), is_first, config);
        if reduces {
            self.begin_undoing(self.window_before(config), config);
        }
        self.reduce_for_timeout(is_first, reduces, config, now);
        self.window.cwnd = f64::from(config.mss);
        self.held_until = Time::NEVER;
        self.repair.call_off();
        self.repair.forget_probe();
        self.rtt.back_off(config);
        self.phase = Phase::Timeout;
        self.recover = self.snd_nxt;
        self.timing = Timing::NONE;
        self.duplicate_acks = 0;
        if self.repair.is_rack() {
            self.outstanding.lose_old(now);
            // Segments that may still be on their way have room beside it (tcp_enter_loss).
            self.window.cwnd += self.taken(config) as f64;
        } else {
            self.forget_duplicates(config);
            self.outstanding.lose_all();
        }
        self.resend_next(config, now, out);
        self.rto_at = config.timer(now, self.rtt.rto(config));
        self.push_generally(config, now, out);
        false
    }

    /// Whether the timeout is reason for a new threshold: `is_first` says that it is the first since an acknowledgement
    /// of new data, or since a timeout was taken back.
    fn reduces_at_timeout(&self, is_first: bool) -> bool {
        if !self.descent.is_gradual() {
            return is_first && !self.is_reducing();
        }
        // A window that is coming down already is not reduced twice, unless all is acknowledged that this is for
        // (tcp_enter_loss).
        match self.phase {
            Phase::Open => true,
            Phase::Timeout => is_first,
            Phase::Recovery => self.has_outlived_reduction(),
            Phase::Reducing => self.snd_una >= self.ecn_recover,
        }
    }

    /// Sets the threshold, and tells the controller. The caller sets the window, which becomes one segment in any case.
    fn reduce_for_timeout(&mut self, is_first: bool, reduces: bool, config: &Config, now: Time) {
        if self.descent.is_gradual() {
            if reduces {
                self.begin_reduction(Cause::Loss, config, now);
            }
            self.heard.owe_cwr();
        } else if let Repair::Ns2NewReno(_) = self.repair {
            return self.time_out_newreno(config, now);
        } else if is_first {
            // RFC 5681 §3.1: the threshold is set when the timer first expires for a segment.
            self.reduce(Cause::Loss, self.flight(config), config, now);
        } else {
            return;
        }
        self.controller.timed_out();
    }
}
