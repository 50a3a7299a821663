//! Losses found by time, and the probe that a silent tail gets: RFC 8985 (RACK-TLP) in the form of Linux.
//!
//! # Deviations
//! - That reordering was seen switches the rule of three reports off, as in Linux; how far it went is not measured
//!   (`tp->reordering`), which matters there only to how the window grows.
//! - After a timeout, a retransmission that is found lost, or a loss that the timer of what may be reordered finds, is
//!   sent again as the window allows. Linux enters fast recovery then (FLAG_LOST_RETRANS, tcp_rack_reo_timeout).

use super::{Emit, Endpoint, Phase, Timing};
use crate::cc::Cause;
use crate::rack::Rack;
use crate::segment::Segment;
use crate::stack::{Config, Repair, RttSampling};
use base::{Span, Time};

/// Linux's TCP_TIMEOUT_MIN, two ticks of 1000 Hz.
const LEAST_TIMEOUT: Span = Span::from_ms(2);

impl Endpoint {
    /// Whether a stack finds losses by time.
    pub(super) fn finds_by_time(config: &Config) -> bool {
        config.repair == Repair::Rack
    }

    /// Whether it is kept what arrived last and what was sent again: where losses are found by it, or round trips are
    /// measured as where they are.
    pub(super) fn keeps_time(config: &Config) -> bool {
        Self::finds_by_time(config) || Self::counts_duplicates(config)
    }

    /// Deems lost what the acknowledgement at hand proves so, and asks for a call when more may be.
    #[inline]
    pub(super) fn find_losses(&mut self, config: &Config, now: Time) {
        if !self.finds_by_time {
            self.outstanding.detect_losses();
            return;
        }
        let has_news = self.outstanding.rack().is_some_and(Rack::has_news);
        if has_news && (self.outstanding.has_sacked() || self.outstanding.has_resent()) {
            self.find_losses_by_time(config, now);
        }
    }

    /// When what `segment` acknowledges, or else reports, was first sent, where every acknowledgement is measured: by
    /// what was sent once, and if all was sent again by the timestamp.
    pub(super) fn sampled_at(&self, segment: &Segment, config: &Config, now: Time) -> Option<Time> {
        let by_stamp = || {
            let age = Self::age_of(segment.echo, now).ns();
            config.timestamps.then(|| Time::from_ns(now.ns().saturating_sub(age)))
        };
        self.outstanding.sampled_at().or_else(by_stamp)
    }

    /// A report is measured too. If what it tells of was sent after the first segment was, the timer starts again
    /// (tcp_clean_rtx_queue): that one may have been overtaken only.
    pub(super) fn measure_report(&mut self, config: &Config, now: Time) {
        if !self.finds_by_time || config.rtt_sampling != RttSampling::EveryAck {
            return;
        }
        let Some(sent_at) = self.outstanding.sampled_at() else { return };
        let rtt = now.since(sent_at);
        self.rtt.sample(rtt, self.snd_una, self.snd_nxt, config);
        if self.outstanding.front_sent_at().is_some_and(|front_at| rtt > now.since(front_at)) {
            self.rto_at = config.timer(now, self.rtt.rto(config));
        }
    }

    fn find_losses_by_time(&mut self, config: &Config, now: Time) {
        // RFC 8985 §6.2 step 4
        let is_sure = matches!(self.phase, Phase::Recovery | Phase::Timeout) || self.outstanding.has_three_sacked();
        let srtt = self.rtt.srtt();
        let window = self.outstanding.rack().map_or(Span::ZERO, |rack| rack.reordering_window(is_sure, srtt));
        let due = self.outstanding.lose_overtaken(window, now);
        self.reorder_at = due.map_or(Time::NEVER, |due| config.timer(now, due.since(now) + LEAST_TIMEOUT));
        self.note_seldom();
    }

    /// What might have been reordered has not come.
    pub(super) fn on_reorder_timer(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let before = self.outstanding.ever_lost_bytes();
        self.find_losses_by_time(config, now);
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
        // No later than the retransmission timer: that of the oldest segment, or, where nothing was sent, as set anew
        // (tcp_schedule_loss_probe, advancing_rto).
        let rto = self.rtt.rto(config);
        let timed_from = if self.last_sent_at == now { self.outstanding.front_sent_at().unwrap_or(now) } else { now };
        let left = (timed_from + rto).since(now);
        let wait = srtt * 2 + more;
        let wait = if left > Span::ZERO { wait.min(left) } else { wait };
        self.probe_at = config.timer(now, wait).min(self.rto_at);
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
        self.rto_at = config.timer(now, self.rtt.rto(config));
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
                self.begin_reduction(Cause::Loss, config, now);
                self.end_reduction();
            } else if self.phase == Phase::Open {
                self.reduce(Cause::Loss, self.flight(), config, now);
            }
        } else if is_duplicate {
            self.probe_end = None;
        }
    }

    /// Sends the last segment that was not reported again, once a recovery, if the window has room and nothing else to
    /// send: its loss would otherwise take the timer (RFC 6675 §4, NextSeg rule 4). RACK probes for it instead.
    pub(super) fn rescue(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let pipe = self.outstanding.pipe(self.snd_nxt - self.snd_una);
        let may = self.phase == Phase::Recovery && config.repair.has_sack() && !self.finds_by_time;
        if self.has_rescued || !may || pipe + u64::from(config.mss) > self.window.cwnd as u64 {
            return;
        }
        // If the last has been sent again already, so has everything before it: there is nothing left to look for.
        self.has_rescued = true;
        if let Some(record) = self.outstanding.rescue(now) {
            self.timing = Timing::NONE;
            self.emit_again(&record, config, now, out);
        }
    }
}

impl Endpoint {
    /// Whether a probe is out that was old data.
    pub(super) fn has_resent_probe(&self) -> bool {
        self.probe_end.is_some_and(|probe| probe.is_resent)
    }

    /// A segment that ends at `end` is reported to have come twice: whether it is the probe, which was needless then.
    pub(super) fn probe_came_twice(&mut self, end: u64) -> bool {
        let is_probe = self.probe_end.is_some_and(|probe| probe.is_resent && probe.end == end);
        if is_probe {
            self.probe_end = None;
        }
        is_probe
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
