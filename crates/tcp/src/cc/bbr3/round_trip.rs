//! The shortest round trip, and the looks at it with little in the network.
//!
//! Source: draft-ietf-ccwg-bbr, "ProbeRTT" and "BBR.min_rtt".

use super::cycle::AckPhase;
use super::{Bbr3, LEAST_WINDOW, PROBE_RTT_GAIN, State};
use crate::cc::{Sample, Window};
use base::{Span, Time};

/// `MinRTTFilterLen`.
const MIN_RTT_STAYS: Span = Span::from_secs(10);
/// `ProbeRTTInterval`, `ProbeRTTDuration`.
const PROBE_RTT_EVERY: Span = Span::from_secs(5);
const PROBE_RTT: Span = Span::from_ms(200);

impl Bbr3 {
    /// `UpdateMinRTT`.
    pub(super) fn update_min_rtt(&mut self, sample: &Sample) {
        self.is_probe_rtt_due = sample.now > self.probe_min_rtt_at + PROBE_RTT_EVERY;
        if let Some(rtt) = sample.rtt
            && (self.probe_min_rtt.is_none_or(|shortest| rtt < shortest) || self.is_probe_rtt_due)
        {
            (self.probe_min_rtt, self.probe_min_rtt_at) = (Some(rtt), sample.now);
        }
        let is_old = sample.now > self.min_rtt_at + MIN_RTT_STAYS;
        if let Some(probed) = self.probe_min_rtt
            && (self.min_rtt.is_none_or(|shortest| probed < shortest) || is_old)
        {
            (self.min_rtt, self.min_rtt_at) = (Some(probed), self.probe_min_rtt_at);
        }
    }

    /// `CheckProbeRTT`.
    pub(super) fn check_probe_rtt(&mut self, window: &mut Window, sample: &Sample) {
        if self.state != State::ProbeRtt && self.is_probe_rtt_due && !self.is_restarting {
            self.save_window(window.cwnd / sample.mss);
            self.state = State::ProbeRtt;
            self.probe_rtt_ends = None;
            self.ack_phase = AckPhase::Stopping;
            self.start_round(sample.delivered);
        }
        if self.state == State::ProbeRtt {
            if self.probe_rtt_ends.is_some() {
                self.has_probed_a_round |= self.is_round_start;
                if self.has_probed_a_round {
                    self.check_probed(window, sample.delivered, sample.mss, sample.now);
                }
            } else if sample.in_flight as f64 <= self.probe_rtt_window() {
                self.probe_rtt_ends = Some(sample.now + PROBE_RTT);
                self.has_probed_a_round = false;
                self.start_round(sample.delivered);
            }
        }
        self.is_restarting &= sample.newly_delivered == 0;
    }

    /// `CheckProbeRTTDone`, `ExitProbeRTT`.
    pub(super) fn check_probed(&mut self, window: &mut Window, delivered: u64, mss: f64, now: Time) {
        if self.probe_rtt_ends.is_none_or(|end| now <= end) {
            return;
        }
        self.probe_min_rtt_at = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd * mss);
        self.reset_short_term();
        if self.is_full {
            self.begin_down(delivered, now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    pub(super) fn probe_rtt_window(&self) -> f64 {
        self.held_by_path(self.rate, PROBE_RTT_GAIN).max(LEAST_WINDOW)
    }
}
