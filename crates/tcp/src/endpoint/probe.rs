//! Losses found by time, and the probe that a silent tail gets: RFC 8985 (RACK-TLP) in the form of Linux.
//!
//! # Deviations
//! - Reordering is never found to have happened (no DSACK, no reordering in the networks here), so the reordering
//!   window is a quarter of the shortest round trip while fewer than three segments are reported, and none otherwise.
//! - A probe that turns out to have been needless is known by the duplicate acknowledgement that answers it, not by
//!   DSACK.

use super::{Emit, Endpoint, Phase};
use crate::rack::Rack;
use crate::stack::{Config, Recovery};
use base::{Span, Time};

/// Linux's TCP_TIMEOUT_MIN, two ticks of 1000 Hz.
const LEAST_TIMEOUT: Span = Span::from_ms(2);

impl Endpoint {
    /// Whether a stack finds losses by time.
    pub(super) fn finds_by_time(config: &Config) -> bool {
        config.rack && config.recovery == Recovery::Sack && !config.sack1
    }

    /// Deems lost what the acknowledgement at hand proves so, and asks for a call when more may be.
    #[inline]
    pub(super) fn find_losses(&mut self, now: Time) {
        if !self.finds_by_time {
            self.outstanding.detect_losses();
            return;
        }
        let has_news = self.outstanding.rack().is_some_and(Rack::has_news);
        if has_news && (self.outstanding.has_sacked() || self.outstanding.has_resent()) {
            self.find_losses_by_time(now);
        }
    }

    fn find_losses_by_time(&mut self, now: Time) {
        // RFC 8985 §6.2 step 4
        let is_sure = matches!(self.phase, Phase::Recovery | Phase::Timeout) || self.outstanding.has_three_sacked();
        let quarter = self.outstanding.rack().and_then(Rack::min_rtt).map_or(Span::ZERO, |rtt| rtt / 4);
        let window = if is_sure { Span::ZERO } else { quarter.min(self.rtt.srtt().unwrap_or(quarter)) };
        let due = self.outstanding.lose_overtaken(window, now);
        self.reorder_at = due.map_or(Time::NEVER, |due| due + LEAST_TIMEOUT);
        self.note_seldom();
    }

    /// What might have been reordered has not come.
    pub(super) fn on_reorder_timer(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let before = self.outstanding.ever_lost_bytes();
        self.find_losses_by_time(now);
        if self.outstanding.ever_lost_bytes() == before {
            return;
        }
        if matches!(self.phase, Phase::Open | Phase::Reducing) {
            self.enter_recovery(config, now, out);
            if self.is_gradual {
                self.reduce_by(u64::from(config.mss), false, config);
            }
        }
        self.push(config, now, out);
    }

    /// Sets the time of the next probe (§7.2), or none: at most one is out, and none is sent while something is
    /// reported missing.
    pub(super) fn schedule_probe(&mut self, config: &Config, now: Time) {
        self.probe_at = Time::NEVER;
        let is_quiet = matches!(self.phase, Phase::Open | Phase::Reducing) && !self.outstanding.has_sacked();
        if !is_quiet || self.probe_end.is_some() || self.snd_una == self.snd_nxt {
            return;
        }
        let Some(srtt) = self.rtt.srtt() else { return };
        // A single segment may have to wait for a delayed acknowledgement.
        let more = if self.outstanding.len() == 1 { config.rto_min } else { LEAST_TIMEOUT };
        self.probe_at = (now + srtt * 2 + more).min(self.rto_at);
        self.note_seldom();
    }

    /// Sends the probe: new data if there is any, the last segment again if not (§7.3).
    pub(super) fn on_probe_timer(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        self.probe_at = Time::NEVER;
        if self.snd_una == self.snd_nxt {
            return;
        }
        self.probe_end = Some(Probe { end: self.snd_nxt, is_resent: false });
        if !self.send_one_more(config, now, out) {
            self.resend_last(config, now, out);
        }
        self.probe_end = self.probe_end.map(|probe| Probe { end: self.snd_nxt, ..probe });
        self.probe_at = Time::NEVER;
        self.rto_at = now + self.rtt.rto(config);
    }

    fn resend_last(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let Some(record) = self.outstanding.probe_last(now) else { return };
        self.probe_end = self.probe_end.map(|probe| Probe { is_resent: true, ..probe });
        self.emit_again(&record, config, now, out);
    }

    /// An acknowledgement while a probe is out (§7.4): one beyond what the probe repaired tells of a loss that nobody
    /// has answered for yet.
    pub(super) fn settle_probe(&mut self, ack: u64, is_duplicate: bool, config: &Config, now: Time) {
        let Some(probe) = self.probe_end else { return };
        if ack < probe.end {
            return;
        }
        if !probe.is_resent {
            self.probe_end = None;
        } else if ack > probe.end {
            self.probe_end = None;
            if self.phase == Phase::Open && self.is_gradual {
                self.begin_reduction(crate::cc::Cause::Loss, config, now);
                self.end_reduction();
            }
        } else if is_duplicate {
            self.probe_end = None;
        }
    }
}

/// A probe that is out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// `snd_nxt` when it was sent.
    end: u64,
    /// Whether it was old data.
    is_resent: bool,
}
