//! This file finds losses by time, and probes for the last segments of a flight when nothing is heard of them. It is
//! RACK-TLP (RFC 8985) as in Linux.
//!
//! # Deviations
//! - Once reordering was seen, the rule of three reports is off, as in Linux. How far segments were reordered
//!   (`tp->reordering`) is not measured; in Linux it matters only to how the window grows.
//! - Timestamps have 16 bits: a round trip that only they tell, beyond 65 s, is told modulo that.
//! - After a timeout, two kinds of loss are sent again as the window allows: a retransmission that is found lost, and a
//!   loss that the reordering timer finds. Linux enters fast recovery then (FLAG_LOST_RETRANS, tcp_rack_reo_timeout).

use super::repair::Repair;
use super::{Outlet, Phase, Sender, Timing};
use crate::cc::Cause;
use crate::endpoint::Emit;
use crate::segment::{Segment, age_of};
use crate::stack::{Config, RttSampling};
use base::{Span, Time};

/// Linux's TCP_TIMEOUT_MIN, two ticks of 1000 Hz.
const LEAST_TIMEOUT: Span = Span::from_ms(2);
/// The wait for a probe before a round trip was measured (RFC 8985 §7.2; TCP_TIMEOUT_INIT).
const UNMEASURED: Span = Span::from_secs(1);

/// The timers and the probe of a sender that finds losses by time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Probing {
    /// When a tail loss probe is due; where that is not reckoned yet, an instant before which it is not.
    pub(super) probe_at: Time,
    /// When its time was asked for, if it is not reckoned yet.
    pub(super) asked_at: Time,
    pub(super) probe: Option<Probe>,
    /// Somebody asked for a new time of the next probe.
    pub(super) is_wanted: bool,
    /// When segments that may merely have been reordered are to be deemed lost.
    pub(super) reorder_at: Time,
}

base::packed!(Probing { probe_at, asked_at, probe, is_wanted, reorder_at });

impl Default for Probing {
    fn default() -> Self {
        let never = Time::NEVER;
        Self { probe_at: never, asked_at: never, probe: None, is_wanted: false, reorder_at: never }
    }
}

/// A probe that is out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Probe {
    /// `snd_nxt` when it was sent.
    end: u64,
    /// Whether it was old data.
    is_resent: bool,
}

base::packed!(Probe { end, is_resent });

impl Sender {
    fn probing(&mut self) -> &mut Probing {
        match &mut self.repair {
            Repair::Rack(probing) => probing,
            _ => unreachable!("asked for only where losses are found by time"),
        }
    }

    /// The probe that is out.
    fn probe(&self) -> Option<Probe> {
        if let Repair::Rack(probing) = &self.repair { probing.probe } else { None }
    }

    /// When the first segment that `segment` acknowledges, or else reports, was sent. Segments that were sent once tell
    /// it; if there are none, the timestamp does.
    pub(super) fn sampled_at(&self, segment: &Segment, config: &Config, now: Time) -> Option<Time> {
        self.outstanding.sampled_at().or_else(|| Self::stamped_at(segment, config, now))
    }

    /// When the segment that `segment` answers was sent, by the timestamp that it echoes; `None` without timestamps.
    pub(super) fn stamped_at(segment: &Segment, config: &Config, now: Time) -> Option<Time> {
        let age = age_of(segment.echo, now).ns();
        config.timestamps.then(|| Time::from_ns(now.ns().saturating_sub(age)))
    }

    /// Measures the round trip of a report. If the retransmission of the first segment is younger than that round trip,
    /// the timer starts again (tcp_clean_rtx_queue).
    pub(super) fn measure_report(&mut self, config: &Config, now: Time) {
        if config.rtt_sampling != RttSampling::EveryAck {
            return;
        }
        let Some(sent_at) = self.outstanding.sampled_at() else { return };
        let rtt = now.since(sent_at);
        self.rtt.sample(rtt, self.snd_una, self.snd_nxt, config);
        if self.outstanding.front_sent_at().is_some_and(|front_at| rtt > now.since(front_at)) {
            self.rto_at = config.timer(now, self.rtt.rto(config));
        }
    }

    /// Deems lost the segments that a later one has overtaken by more than the reordering window, and sets the timer
    /// for those within it.
    pub(super) fn find_losses_by_time(&mut self, config: &Config, now: Time) {
        // RFC 8985 §6.2 step 4
        let is_sure = matches!(self.phase, Phase::Recovery | Phase::Timeout) || self.outstanding.has_three_sacked();
        let srtt = self.rtt.srtt();
        let window = self.outstanding.rack().map_or(Span::ZERO, |rack| rack.reordering_window(is_sure, srtt));
        let due = self.outstanding.lose_overtaken(window, now);
        self.probing().reorder_at = due.map_or(Time::NEVER, |due| config.timer(now, due.since(now) + LEAST_TIMEOUT));
        self.note_seldom();
    }

    /// Finds losses when segments that might have been reordered have not come in time.
    pub(super) fn on_reorder_timer(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.probing().reorder_at = Time::NEVER;
        let before = self.outstanding.ever_lost();
        self.find_losses_by_time(config, now);
        if self.outstanding.ever_lost() > before {
            self.repair_overtaken(config, now, out);
        }
        if self.descent.is_gradual()
            && let Some(front_at) = self.outstanding.front_sent_at()
        {
            // This timer had taken the place of the retransmission timer, which now counts from when the first segment
            // was last sent (tcp_rack_reo_timeout, tcp_rearm_rto).
            let left = (front_at + self.rtt.rto(config)).since(now);
            self.rto_at = config.timer(now, left.max(Span::from_us(1)));
        }
    }

    /// Sends again what the timer for reordering has found lost.
    fn repair_overtaken(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        if matches!(self.phase, Phase::Open | Phase::Reducing) {
            self.enter_recovery(config, now, out);
            if self.descent.is_gradual() {
                self.reduce_by(u64::from(config.mss), false, config);
            }
        }
        self.push_generally(config, now, out);
    }

    /// Sets the time of the next probe (RFC 8985 §7.2). It sets none while a probe is out, or while reports say that
    /// something is missing.
    pub(super) fn schedule_probe(&mut self, config: &Config, now: Time) {
        let Repair::Rack(probing) = &mut self.repair else { return };
        let is_quiet = matches!(self.phase, Phase::Open | Phase::Reducing) && !self.outstanding.has_sacked();
        if !is_quiet || probing.probe.is_some() || !self.set_probe::<false>(config, now) {
            self.repair.call_off_probe();
        }
    }

    /// Sets the time of the next probe, if anything is outstanding. Returns whether it did. No probe is out, and
    /// nothing is known to be missing.
    ///
    /// Nobody needs to know the time while a paced departure comes before it: what departs asks for another. The time
    /// is then reckoned by [`Sender::reckon_probe`], if anything else happens first.
    ///
    /// `PLAIN` says that the plain path asks: then no other of the seldom timers runs but the two of the repair.
    #[inline(always)]
    pub(super) fn set_probe<const PLAIN: bool>(&mut self, config: &Config, now: Time) -> bool {
        if self.snd_una == self.snd_nxt {
            return false;
        }
        let srtt = self.rtt.srtt();
        let departs_at = self.departs_at();
        let until = self.timed_until(config, now);
        let soonest = (now + srtt.map_or(UNMEASURED, |srtt| srtt * 2)).min(until).min(self.rto_at);
        let is_put_off = departs_at <= soonest;
        let at = if is_put_off { soonest } else { self.probe_after(srtt, until, config, now) };
        let Repair::Rack(probing) = &mut self.repair else { return false };
        (probing.probe_at, probing.asked_at) = (at, if is_put_off { now } else { Time::NEVER });
        if PLAIN {
            self.seldom_at = probing.reorder_at.min(at).min(departs_at);
        } else {
            self.note_seldom();
        }
        true
    }

    /// Reckons the time of the next probe, if that was put off. Nothing that it depends on has changed since then.
    #[inline]
    pub(in crate::endpoint) fn reckon_probe(&mut self, config: &Config) {
        if let Repair::Rack(probing) = &self.repair
            && probing.asked_at.is_set()
        {
            self.reckon_probe_of(probing.asked_at, config);
        }
    }

    #[inline(never)]
    fn reckon_probe_of(&mut self, asked_at: Time, config: &Config) {
        let at = self.probe_after(self.rtt.srtt(), self.timed_until(config, asked_at), config, asked_at);
        let probing = self.probing();
        debug_assert!(at >= probing.probe_at, "nothing was due before it");
        (probing.probe_at, probing.asked_at) = (at, Time::NEVER);
    }

    /// When the retransmission timer would expire. That timer runs from the oldest segment if something was sent just
    /// now, and otherwise from now (tcp_schedule_loss_probe, advancing_rto).
    #[inline(always)]
    fn timed_until(&self, config: &Config, now: Time) -> Time {
        let timed_from = if self.last_sent_at == now { self.outstanding.front_sent_at().unwrap_or(now) } else { now };
        timed_from + self.rtt.rto(config)
    }

    /// When a probe is due, the time of which is asked for at `now`. It comes no later than the retransmission timer
    /// would, at `until`.
    #[inline(always)]
    fn probe_after(&self, srtt: Option<Span>, until: Time, config: &Config, now: Time) -> Time {
        // A single segment may have to wait for a delayed acknowledgement.
        let more = if self.outstanding.len() == 1 { config.rto_min } else { LEAST_TIMEOUT };
        let wait = srtt.map_or(UNMEASURED, |srtt| srtt * 2 + more);
        let left = until.since(now);
        let wait = if left > Span::ZERO { wait.min(left) } else { wait };
        config.timer(now, wait).min(self.rto_at)
    }

    /// Sends the probe: new data if there is any, the last segment again if not (RFC 8985 §7.3).
    pub(super) fn on_probe_timer(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.probing().probe_at = Time::NEVER;
        if self.snd_una == self.snd_nxt {
            return;
        }
        let is_new = self.send_one_more(config, now, out);
        let is_resent = !is_new && self.resend_last(config, now, out);
        let end = self.snd_nxt;
        self.probing().probe = Some(Probe { end, is_resent });
        self.rto_at = config.timer(now, self.rtt.rto(config));
    }

    /// Sends the last segment again. Returns whether there is one.
    fn resend_last(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> bool {
        let Some(record) = self.outstanding.probe_last(now) else { return false };
        if self.timing.end >= record.end() {
            // Karn's rule
            self.timing = Timing::NONE;
        }
        self.emit_again(&record, config, now, out);
        true
    }

    /// Takes an acknowledgement while a probe is out (RFC 8985 §7.4). If it acknowledges more than the probe, a probe
    /// of old data has repaired a loss, and the window comes down for it.
    pub(super) fn settle_probe(&mut self, probe: Probe, ack: u64, is_duplicate: bool, config: &Config, now: Time) {
        if ack < probe.end {
            return;
        }
        if !probe.is_resent {
            self.repair.forget_probe();
        } else if ack > probe.end {
            self.repair.forget_probe();
            if matches!(self.phase, Phase::Open | Phase::Reducing) && self.descent.is_gradual() {
                self.begin_reduction(Cause::Probed, config, now);
                self.end_reduction(config);
            } else if self.phase == Phase::Open {
                self.reduce(Cause::Loss, self.flight(config), config, now);
            }
        } else if is_duplicate {
            self.repair.forget_probe();
        }
    }

    /// Sends the last unreported segment again, once a recovery, if the window has room and there is nothing else to
    /// send (RFC 6675 §4, NextSeg rule 4). Otherwise its loss would have to wait for the timer. RACK probes instead.
    pub(super) fn rescue(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        let taken = self.taken(config);
        let Repair::Sack { has_rescued } = &mut self.repair else { return };
        if *has_rescued || taken + u64::from(config.mss) > self.window.cwnd as u64 {
            return;
        }
        // If the last segment has been sent again already, so has everything before it.
        *has_rescued = true;
        if let Some(record) = self.outstanding.rescue(now) {
            self.timing = Timing::NONE;
            self.emit_again(&record, config, now, out);
        }
    }

    /// Whether a probe is out that was old data.
    pub(super) fn has_resent_probe(&self) -> bool {
        self.probe().is_some_and(|probe| probe.is_resent)
    }

    /// Whether the segment that ends at `end`, which came twice, is the probe; the probe is then forgotten.
    pub(super) fn probe_came_twice(&mut self, end: u64) -> bool {
        let is_probe = self.probe().is_some_and(|probe| probe.is_resent && probe.end == end);
        if is_probe {
            self.repair.forget_probe();
        }
        is_probe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Endpoint, Flags};

    #[test]
    fn a_time_that_was_put_off_is_the_same_when_it_is_reckoned() {
        let profile = crate::stack::profile("linux").expect("a profile");
        let config = Config { pacing: true, handshake: false, ..(profile.config)() };
        let mut end = Endpoint::new(&config);
        let at = |ms| Time::ZERO + Span::from_ms(ms);
        end.open(&config, at(0), &mut |_| {});
        end.write(1_000_000);
        end.push(&config, at(0), &mut |_| {});
        // The round trip takes 20 ms. What may be sent then does not leave in one burst.
        let ack =
            Segment { ack: 1 + 2 * u64::from(config.mss), window: u32::MAX, flags: Flags::ACK, ..Segment::default() };
        end.on_segment(&ack, &config, at(20), &mut |_| {});
        assert!(end.next_wake() < at(40), "the next departure");
        assert_eq!(end.sender.probing().asked_at, at(20));
        let waiting = end.clone();
        // Something else happens, which changes nothing: 2 x 20 ms, 2 ms more, and the slot in which that ends.
        end.push_generally(&config, at(20), &mut |_| {});
        let Probing { probe_at, asked_at, .. } = *end.sender.probing();
        assert_eq!((probe_at, asked_at), (at(63), Time::NEVER));
        // What departs asks for another time.
        let mut end = waiting;
        let departs_at = end.next_wake();
        end.on_wake(&config, departs_at, &mut |_| {});
        let Probing { probe_at, asked_at, .. } = *end.sender.probing();
        assert!(asked_at == departs_at || probe_at >= departs_at + Span::from_ms(42) && !asked_at.is_set());
    }
}
