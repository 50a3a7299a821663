//! This file answers marks as ns-2's agents do, and says what their timer does afterwards. `sack1.rs` and `newreno.rs`
//! repair losses as they do.
//!
//! Source: ns-2.35, tcp.cc: ecn(), slowdown(), timeout(), newack(), newtimer(), recv_newack_helper().
//!
//! | ns-2                | here                                                          |
//! |---------------------|---------------------------------------------------------------|
//! | `recover_`          | `recover`, which marks and losses share                       |
//! | `last_cwnd_action_` | [`Last`]                                                      |
//! | `ecn_backoff_`      | `backs_off`                                                   |
//! | `t_backoff_`        | the doublings of [`RttEstimator`](crate::rtt::RttEstimator)   |
//!
//! - An echo reduces the window if it acknowledges something that was sent since the last reduction, for a mark or a
//!   loss. So does the first echo after a timeout, whatever it acknowledges. It does so before the acknowledgement
//!   itself is read, in a recovery too.
//! - A mark leaves half of the window, whatever that is. With less than one segment nothing is sent until an
//!   acknowledgement without an echo lets the window grow, or until the timer expires: it runs even if nothing is
//!   outstanding, and then does no more than to raise the window to one segment.
//! - Where echoes follow each other at a window of one segment or less, each but the first doubles the timeout, and
//!   acknowledgements that carry them do not end this back-off.
//! - A timeout after a reduction for a mark leaves the threshold as it is. A loss after one, in the same window, is
//!   repaired without another reduction.

use super::repair::Repair;
use super::{Outlet, Phase, Sender};
use crate::cc::{Cause, Congestion};
use crate::endpoint::Emit;
use crate::segment::Segment;
use crate::stack::Config;
use base::Time;

/// What an acknowledgement has that acknowledges the opening alone.
const OPEN: u64 = 1;

/// What brought the window down last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Last {
    /// A loss that duplicates told, or nothing yet.
    #[default]
    Loss,
    /// An echo of a mark.
    Echo,
    /// The retransmission timer.
    Timeout,
}

base::packed!(Last: Loss | Echo | Timeout);

/// How a sender has answered marks.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Answered {
    last: Last,
    /// The next echo doubles the timeout, unless an acknowledgement without one comes before it.
    pub backs_off: bool,
}

base::packed!(Answered { last, backs_off });

impl Repair {
    fn answered(&self) -> Option<&Answered> {
        match self {
            Self::Ns2NewReno(newreno) => Some(&newreno.answered),
            Self::Ns2Sack1(sack1) => Some(&sack1.answered),
            _ => None,
        }
    }

    /// Whether it was a mark that brought the window down last. Duplicates then begin a recovery although the window
    /// that they are from was reduced.
    pub fn was_marked(&self) -> bool {
        self.answered().is_some_and(|answered| answered.last == Last::Echo)
    }

    /// Whether the timeout doubles with the next echo, unless an acknowledgement without one comes before it.
    pub fn backs_off(&self) -> bool {
        self.answered().is_some_and(|answered| answered.backs_off)
    }
}

impl Sender {
    fn answered(&mut self) -> &mut Answered {
        match &mut self.repair {
            Repair::Ns2NewReno(newreno) => &mut newreno.answered,
            Repair::Ns2Sack1(sack1) => &mut sack1.answered,
            _ => unreachable!("asked for only where a stack repairs losses as ns-2 does"),
        }
    }

    /// Takes an acknowledgement that carries an echo, or that follows one at a window of one segment. Returns whether
    /// something may be sent now.
    #[inline(never)]
    pub(super) fn on_ack_after_marks(
        &mut self,
        segment: &Segment,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        let is_new = segment.ack > self.snd_una;
        let has_echo = self.heard.hears(segment);
        if has_echo {
            self.answer_echo(segment.ack, config, now);
        }
        let doublings = self.rtt.doublings();
        let may_send = self.read_ack(segment, config, now, out);
        if is_new && !has_echo {
            self.answered().backs_off = false;
        } else if is_new && self.phase != Phase::Recovery {
            if self.answered().backs_off {
                self.rtt.keep_doublings(doublings);
            }
            self.restart_timer_ns2(config, now);
        }
        if !self.rto_at.is_set() {
            self.restart_timer_ns2(config, now);
        }
        may_send
    }

    /// Restarts the timer, which runs without anything outstanding, too, where the window is less than one segment.
    pub(super) fn restart_timer_ns2(&mut self, config: &Config, now: Time) {
        let has_room = self.window.cwnd >= f64::from(config.mss);
        let is_idle = self.snd_una == self.snd_nxt && (has_room || self.fin_sent);
        self.rto_at = if is_idle { Time::NEVER } else { now + self.rtt.rto(config) };
    }

    /// Reduces the window for an echo in an acknowledgement of everything before `ack`.
    fn answer_echo(&mut self, ack: u64, config: &Config, now: Time) {
        // What echoes the mark of a SYN/ACK acknowledges no more than that, and was answered when it opened this end.
        if ack <= self.recover.max(OPEN) && self.answered().last != Last::Timeout {
            return;
        }
        self.stats.ecn_reductions += 1;
        (self.recover, self.ecn_recover) = (self.snd_nxt, self.snd_nxt);
        let mss = f64::from(config.mss);
        let is_low = self.window.cwnd <= mss;
        if is_low && self.answered().backs_off {
            self.rtt.back_off(config);
        }
        *self.answered() = Answered { last: Last::Echo, backs_off: is_low };
        let left = self.slow_down(Cause::Mark, config, now);
        // No agent of ns-2.35 is one that answers each mark; those that came later keep one segment.
        let least = if config.control.echoes_each_mark() { 1 } else { config.ecn_floor };
        self.window.cwnd = left.max(f64::from(least) * mss);
    }

    /// Sets the threshold to what the controller leaves of the window, in whole segments, and returns what it leaves.
    pub(super) fn slow_down(&mut self, cause: Cause, config: &Config, now: Time) -> f64 {
        let mss = f64::from(config.mss);
        let congestion = Congestion {
            cause,
            flight: (self.window.cwnd + self.added_by_duplicates(config) as f64).min(config.window as f64),
            mss,
            whole_segments: config.whole_segments,
            abe: config.abe,
            now,
        };
        let left = self.controller.reduced(&self.window, &congestion);
        self.window.ssthresh = (left / mss).floor().max(2.0) * mss;
        self.heard.owe_cwr();
        left
    }

    /// Begins a recovery: reduces the window unless an echo has done so, and notes what it is to repair.
    pub(super) fn begin_recovery_ns2(&mut self, config: &Config, now: Time) {
        let is_new = self.snd_una > self.recover;
        if is_new {
            self.recover = self.snd_nxt;
        }
        // An echo may have taken next to nothing where each mark is answered (RFC 8257 §3.5).
        if is_new || config.control.echoes_each_mark() {
            self.window.cwnd = self.slow_down(Cause::Loss, config, now);
        }
        self.answered().last = Last::Loss;
    }

    /// Sets the threshold since the timer expired: with the window as it is, each time, but not after an echo. The
    /// window becomes one segment.
    pub(super) fn time_out_ns2(&mut self, config: &Config, now: Time) {
        let mss = f64::from(config.mss);
        self.window.cwnd = self.window.cwnd.max(mss);
        if self.repair.was_marked() {
            self.heard.owe_cwr();
        } else {
            self.slow_down(Cause::Loss, config, now);
        }
        self.answered().last = Last::Timeout;
        self.controller.timed_out();
        self.window.cwnd = mss;
    }

    /// Goes on with one segment, since the timer has expired that ran for want of a window.
    pub(super) fn wake_ns2(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.recover = self.snd_nxt;
        self.answered().last = Last::Timeout;
        self.heard.owe_cwr();
        self.window.cwnd = f64::from(config.mss);
        self.push_generally(config, now, out);
    }
}
