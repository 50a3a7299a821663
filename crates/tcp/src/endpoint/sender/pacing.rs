//! Pacing spreads what may be sent over the round trip, in bursts of what the rate sends in a millisecond.
//!
//! Source: the internal pacing of Linux's TCP (tcp_pacing_check, tcp_update_skb_after_send, tcp_tso_autosize,
//! tcp_update_pacing_rate). After a burst the next one may depart when the payload of the first has gone by at the
//! rate. A connection that sends later than it might is forgiven its lateness, up to half of that time.
//!
//! A controller that models the path sets the rate itself. Under the others it is a multiple of the window over the
//! round-trip time: twice that below half of the threshold, 1.2 times that from there on. No rate is above
//! `max_pacing_rate`, as with SO_MAX_PACING_RATE.
//!
//! # Deviations
//! - A burst is not put off until the window has room for all of it (tcp_tso_should_defer), and nothing limits what
//!   waits in the host's own queue (TSQ).

use super::{Outlet, Phase, Sender};
use crate::cc::{Algorithm, BURSTS, Controller, Lost, MOST_BURST, Sample, Stage, Told, Window};
use crate::delivery::Sampler;
use crate::endpoint::Emit;
use crate::memory::renewed;
use crate::outstanding::Outstanding;
use crate::rack::Rack;
use crate::stack::Config;
use base::{Span, Time};

/// So many segments go out at once before pacing begins.
const UNPACED: u64 = 10;
/// The fewest segments of a burst: tcp_min_tso_segs.
const LEAST_BURST: u64 = 2;
/// The rate over window and round-trip time: tcp_pacing_ss_ratio, and tcp_pacing_ca_ratio below.
const SLOW_START_RATIO: f64 = 2.0;
const AVOIDANCE_RATIO: f64 = 1.2;

/// When the next burst may depart, and how large it is.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pacer {
    /// Payload bytes a second; infinite before it is known.
    rate: f64,
    least_burst: u64,
    /// Bursts a second, where the controller says how many.
    bursts: Option<f64>,
    /// When the next burst may depart: `tcp_wstamp_ns`.
    departs_at: Time,
    /// Bytes sent at `sent_at`, which `departs_at` does not yet account for.
    unsettled: u64,
    sent_at: Time,
    /// Segments ever sent; counted up to `UNPACED`.
    segments: u64,
    /// When to send what waits for its departure; never if nothing waits.
    wakes_at: Time,
    /// The next segment is the last of its burst.
    pub(super) ends_burst: bool,
}

base::left_whole!(Pacer);

impl Pacer {
    fn new() -> Self {
        Self {
            rate: f64::INFINITY,
            least_burst: LEAST_BURST,
            bursts: None,
            departs_at: Time::ZERO,
            unsettled: 0,
            sent_at: Time::ZERO,
            segments: 0,
            wakes_at: Time::NEVER,
            ends_burst: false,
        }
    }

    /// Notes that a segment was sent.
    #[inline]
    pub(super) fn sent(&mut self, bytes: u64, now: Time) {
        if self.sent_at != now {
            self.settle();
        }
        self.sent_at = now;
        self.unsettled += bytes;
        self.segments = (self.segments + 1).min(UNPACED);
    }

    /// Moves the next departure by the time that the bytes sent last take.
    #[inline(always)]
    fn settle(&mut self) {
        if self.unsettled > 0 {
            self.settle_up();
        }
    }

    #[inline]
    fn settle_up(&mut self) {
        let bytes = std::mem::take(&mut self.unsettled);
        let late = self.sent_at.since(self.departs_at);
        self.departs_at = self.departs_at.max(self.sent_at);
        if self.rate < f64::INFINITY && self.segments >= UNPACED {
            // A conversion from or to a signed number takes less.
            let takes = Span::from_ns((bytes as i64 as f64 * 1e9 / self.rate) as i64 as u64);
            self.departs_at += takes.saturating_sub(late.min(takes / 2));
        }
    }

    /// When the next burst may depart.
    #[inline(always)]
    pub(super) fn departs_at(&mut self) -> Time {
        self.settle();
        self.departs_at
    }

    /// Payload bytes a second.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// How many segments a burst has.
    #[inline(always)]
    fn burst(&self, min_rtt: impl FnOnce() -> Option<Span>, mss: u64, most: u32) -> u64 {
        let bytes = if let Some(bursts) = self.bursts {
            ((self.rate / bursts) as i64 as u64).min(MOST_BURST)
        } else {
            let bytes = ((self.rate / BURSTS) as i64 as u64).min(MOST_BURST);
            // tcp_tso_rtt_log: near peers get larger bursts. The addition halves with every 2^9 us of round-trip time.
            let shift = min_rtt().map_or(u64::MAX, |rtt| (rtt.ns() / 1_000) >> 9);
            (bytes + if shift < 32 { MOST_BURST >> shift } else { 0 }).min(MOST_BURST)
        };
        // Most bursts are as small as may be, which no division has to tell.
        let is_small = bytes < (self.least_burst + 1) * mss;
        let segments = if is_small { self.least_burst } else { (bytes / mss).max(self.least_burst) };
        segments.min(u64::from(most))
    }
}

impl Sender {
    /// The pacer, where a stack has one; in the memory of a former one.
    pub(super) fn pacer_of(former: Option<Box<Pacer>>, config: &Config) -> Option<Box<Pacer>> {
        config.is_paced().then(|| renewed(former, Pacer::new()))
    }

    /// `outstanding`, with the rate of delivery sampled where the controller asks for it.
    pub(super) fn sampled(mut outstanding: Outstanding, config: &Config) -> Outstanding {
        outstanding.sampler = config.control.samples_rate().then(|| Box::new(Sampler::new(config.mss)));
        outstanding
    }

    /// Payload bytes a second at which data is sent; infinite before that is known, none without pacing.
    pub(in crate::endpoint) fn pacing_rate(&self) -> Option<f64> {
        self.pacer.as_ref().map(|pacer| pacer.rate())
    }

    /// The congestion controller.
    pub(in crate::endpoint) fn algorithm(&self) -> &Algorithm {
        self.controller.algorithm()
    }

    /// Sends what may be sent, burst by burst, and asks for a call when the next one may depart.
    pub(super) fn fill_paced(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        if self.outstanding.sampler.is_some() {
            self.note_restart(config, now);
        }
        if self.may_depart(now) && !self.send_bursts::<false>(config, now, out) {
            return;
        }
        if self.due(config).is_some() {
            self.wait_for_departure();
            self.note_seldom();
        } else {
            self.ask_for_room(config, now);
        }
    }

    /// Asks for a call when the next burst may depart.
    #[inline(always)]
    pub(super) fn wait_for_departure(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.wakes_at = pacer.departs_at();
        }
    }

    /// When to send what waits for its departure; never if nothing waits.
    #[inline(always)]
    pub(super) fn departs_at(&self) -> Time {
        self.pacer.as_ref().map_or(Time::NEVER, |pacer| pacer.wakes_at)
    }

    /// Whether the next burst may depart. Nothing waits for its departure then.
    #[inline(always)]
    pub(super) fn may_depart(&mut self, now: Time) -> bool {
        let Some(pacer) = &mut self.pacer else { return false };
        pacer.wakes_at = Time::NEVER;
        pacer.departs_at() <= now
    }

    /// [`Sender::send_bursts_here`], as a function of its own.
    #[inline(never)]
    pub(super) fn send_bursts<const PLAIN: bool>(
        &mut self,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        self.send_bursts_here::<PLAIN>(config, now, out)
    }

    /// Sends the burst that may depart, and those that may follow it at once. Returns whether it was the pacer that
    /// ended it. `PLAIN` says that the plain path asks.
    #[inline(always)]
    pub(super) fn send_bursts_here<const PLAIN: bool>(
        &mut self,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> bool {
        let mss = u64::from(config.mss);
        loop {
            let Some(pacer) = &self.pacer else { return false };
            let burst = pacer.burst(|| self.shortest_rtt(), mss, config.pacing_burst);
            let sent = match PLAIN {
                true => self.fill_plainly(burst, config, now, out),
                false => self.fill(burst, config, now, out),
            };
            if sent < burst {
                return false;
            }
            if !self.may_depart(now) {
                return true;
            }
        }
    }

    /// Calls off the next departure.
    #[inline]
    pub(in crate::endpoint) fn call_off_departure(&mut self) {
        if let Some(pacer) = &mut self.pacer {
            pacer.wakes_at = Time::NEVER;
        }
    }

    /// Says whether the next segment is the last of its burst.
    pub(super) fn end_burst(&mut self, ends: bool) {
        if let Some(pacer) = &mut self.pacer {
            pacer.ends_burst = ends;
        }
    }

    fn shortest_rtt(&self) -> Option<Span> {
        let sampled = self.outstanding.sampler.as_ref().and_then(|sampler| sampler.min_rtt());
        sampled.or_else(|| self.outstanding.rack().and_then(Rack::min_rtt)).or_else(|| self.rtt.srtt())
    }

    /// Sets the first rate by the round trip of the handshake. A controller that models the path starts from it too.
    pub(in crate::endpoint) fn open_pacing(&mut self, config: &Config, now: Time) {
        if self.pacer.is_none() {
            return;
        }
        if let Some(rtt) = self.rtt.exact_srtt()
            && config.control.models_path()
        {
            self.controller.algorithm_mut().opened(&self.window, f64::from(config.mss), rtt, now);
        }
        self.set_pacing_rate(config);
    }

    /// Sets the rate: the controller's, if it has one, or else by window and round-trip time.
    #[inline(always)]
    fn set_pacing_rate(&mut self, config: &Config) {
        let Some(pacer) = &mut self.pacer else { return };
        // Bytes that were sent take their time at the rate at which they were sent.
        pacer.settle();
        if let Some(steer) = self.controller.algorithm().steer() {
            (pacer.rate, pacer.least_burst) = (steer.bytes_per_second, steer.least_burst);
            pacer.bursts = steer.bursts_per_second;
        } else if let Some(srtt) = self.rtt.exact_srtt() {
            let Window { cwnd, ssthresh } = self.window;
            let ratio = if cwnd < ssthresh / 2.0 { SLOW_START_RATIO } else { AVOIDANCE_RATIO };
            let outstanding = (self.outstanding.len() as u64 * u64::from(config.mss)) as i64 as f64;
            // A mark may leave less than a segment (`ns2.rs`).
            let window = cwnd.max(outstanding).max(f64::from(config.mss));
            pacer.rate = window * ratio / srtt.secs_f64();
        }
        if let Some(most) = config.max_pacing_rate {
            // The limit is one of IP packets. They count as full ones, since a sender that is held back has enough to
            // send.
            let payload = f64::from(config.mss) / f64::from(config.mss + config.header);
            pacer.rate = pacer.rate.min(most.bps_f64() / 8.0 * payload);
        }
    }

    /// Brings the rate up to date after an acknowledgement of `bytes`; `before` is the state before it.
    #[inline(never)]
    pub(super) fn steer(&mut self, before: &Before, [bytes, delivered]: [u64; 2], config: &Config, now: Time) {
        if config.control.samples_rate() {
            self.sample(before, bytes, config, now);
        } else if config.control.models_path() {
            self.tell(delivered, self.taken(config), config, now);
        }
        self.set_pacing_rate(config);
    }

    /// Brings the rate up to date after an acknowledgement of `bytes` of new data on the plain path.
    #[inline(always)]
    pub(super) fn steer_plainly(&mut self, bytes: u64, config: &Config, now: Time) {
        if config.control.models_path() {
            self.tell(bytes, self.taken(config), config, now);
        }
        self.set_pacing_rate(config);
    }

    /// Tells the controller that `delivered` more bytes arrived, and how many of them were marked, with `in_flight`
    /// still in the network.
    #[inline(always)]
    fn tell(&mut self, delivered: u64, in_flight: u64, config: &Config, now: Time) {
        let told = Told {
            bytes: delivered,
            marked: self.counted_bytes(config),
            una: self.snd_una,
            nxt: self.snd_nxt,
            in_flight,
            srtt: self.rtt.exact_srtt(),
            is_window_used: !config.cwnd_validation || self.is_window_used(),
            stage: self.stage(),
            mss: f64::from(config.mss),
            now,
        };
        self.controller.algorithm_mut().told(&mut self.window, &told);
    }

    /// Loss recovery, as a controller sees it.
    fn stage(&self) -> Stage {
        match self.phase {
            Phase::Open | Phase::Reducing => Stage::Open,
            Phase::Recovery => Stage::Recovery,
            Phase::Timeout => Stage::Timeout,
        }
    }

    #[inline(never)]
    fn sample(&mut self, before: &Before, bytes: u64, config: &Config, now: Time) {
        let mss = u64::from(config.mss);
        let in_flight = u64::from(self.outstanding.pipe_segments());
        let lost = self.outstanding.ever_lost();
        let stage = self.stage();
        let departs_at = self.pacer.as_mut().map_or(now, |pacer| pacer.departs_at());
        let marked = self.counted_bytes(config).map(|bytes| bytes.div_ceil(mss));
        let Some(sampler) = &mut self.outstanding.sampler else { return };
        sampler.mark(marked.unwrap_or(0));
        let rate = sampler.sample();
        let losses = sampler.losses();
        for lost in &losses {
            let lost = Lost { delivered: sampler.delivered(), now, ..*lost };
            self.controller.algorithm_mut().lost(&self.window, &lost);
        }
        sampler.keep(losses);
        let newly_delivered = sampler.newly_delivered();
        let sample = Sample {
            newly_delivered,
            newly_lost: lost - before.ever_lost,
            marked,
            delivered: sampler.delivered(),
            lost,
            delivered_at: sampler.delivered_at(),
            prior_in_flight: before.in_flight.into(),
            in_flight,
            rate,
            rtt: sampler.rtt(),
            // Linux's FLAG_ACK_MAYBE_DELAYED: one small segment, and nothing else was delivered since it was sent.
            may_be_delayed: newly_delivered == 1
                && bytes < mss
                && rate.is_none_or(|rate| rate.prior + 1 == sampler.delivered()),
            srtt: self.rtt.srtt(),
            departs_at,
            stage,
            mss: f64::from(config.mss),
            now,
        };
        self.controller.algorithm_mut().sampled(&mut self.window, &sample);
        let hides_rate = self.controller.algorithm().steer().is_some_and(|steer| steer.hides_rate);
        if hides_rate && let Some(sampler) = &mut self.outstanding.sampler {
            sampler.limit(in_flight);
        }
    }

    /// Notes, before the application writes, whether the network had been waiting for it (tcp_rate_check_app_limited).
    pub(super) fn note_app_limit(&mut self) {
        let unsent = self.unsent();
        let in_flight = u64::from(self.outstanding.pipe_segments());
        let has_lost = self.outstanding.next_lost().is_some();
        let Some(sampler) = &mut self.outstanding.sampler else { return };
        let mss = sampler.mss();
        let has_room = (in_flight + 1) * mss <= self.window.cwnd as u64;
        if unsent < mss && has_room && !has_lost {
            sampler.limit(in_flight);
        }
    }

    /// Tells the controller if sending starts again after the application had nothing to send and the network emptied.
    fn note_restart(&mut self, config: &Config, now: Time) {
        let is_idle = self.snd_una == self.snd_nxt && self.next_new(config).is_some();
        if is_idle && self.outstanding.sampler.as_ref().is_some_and(|sampler| sampler.is_limited()) {
            self.controller.algorithm_mut().restarted(&mut self.window, f64::from(config.mss), now);
            self.set_pacing_rate(config);
        }
    }
}

/// The state before an acknowledgement was read.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Before {
    /// Segments in the network.
    pub(super) in_flight: u32,
    /// Segments ever deemed lost.
    pub(super) ever_lost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Endpoint;

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    /// A pacer beyond its first ten segments that may send now.
    fn pacer(rate: f64) -> Pacer {
        Pacer { rate, segments: UNPACED, ..Pacer::new() }
    }

    /// An endpoint that paces and is open, and its configuration.
    fn end() -> (Endpoint, Config) {
        let profile = crate::stack::profile("linux").expect("a profile");
        let config = Config { pacing: true, handshake: false, ..(profile.config)() };
        let mut end = Endpoint::new(&config);
        end.open(&config, at(0), &mut |_| {});
        (end, config)
    }

    #[test]
    fn a_departure_is_called_off_while_nothing_may_be_sent() {
        let (mut end, config) = end();
        let waits = |end: &mut Endpoint| {
            end.sender.pacer.as_mut().expect("it paces").wakes_at = at(5);
            end.sender.note_seldom();
            assert_eq!(end.next_wake(), at(5));
        };
        // An echo that met a window of one segment.
        waits(&mut end);
        end.sender.held_until = at(10);
        end.on_wake(&config, at(5), &mut |_| {});
        assert_eq!(end.next_wake(), at(10));
        end.on_wake(&config, at(10), &mut |_| {});
        // A connection that was given up.
        waits(&mut end);
        end.give_up();
        assert!(!end.next_wake().is_set());
        end.push(&config, at(10), &mut |_| {});
        assert!(!end.next_wake().is_set());
    }

    #[test]
    fn a_closed_window_is_asked_for_before_the_next_departure_too() {
        let (mut end, config) = end();
        end.sender.peer_window = 0;
        end.write(10_000);
        end.sender.pacer.as_mut().expect("it paces").departs_at = at(5);
        end.push(&config, at(0), &mut |_| {});
        assert_eq!(end.next_wake(), end.sender.persist_at());
        assert!(end.next_wake().is_set());
    }

    #[test]
    fn a_burst_takes_what_its_bytes_take() {
        // 1 MB/s: 3000 bytes in 3 ms, sent as they may be.
        let mut pacer = pacer(1e6);
        for k in 0..10 {
            let now = at(3_000_000 * k);
            assert_eq!(pacer.departs_at(), now);
            (0..3).for_each(|_| pacer.sent(1_000, now));
        }
    }

    #[test]
    fn half_of_it_is_forgiven_to_a_late_one() {
        let mut pacer = pacer(1e6);
        pacer.sent(3_000, at(0));
        // 1 ms late: that much less to wait. 5 ms late: half of 3 ms.
        pacer.sent(3_000, at(4_000_000));
        assert_eq!(pacer.departs_at(), at(6_000_000));
        pacer.sent(3_000, at(11_000_000));
        assert_eq!(pacer.departs_at(), at(12_500_000));
    }

    #[test]
    fn the_first_ten_segments_are_not_paced() {
        let mut pacer = Pacer { rate: 1e6, ..Pacer::new() };
        (0..9).for_each(|_| pacer.sent(1_000, at(0)));
        assert_eq!(pacer.departs_at(), at(0));
        // The burst that has the tenth is the first to count.
        (0..2).for_each(|_| pacer.sent(1_000, at(0)));
        assert_eq!(pacer.departs_at(), at(2_000_000));
    }

    #[test]
    fn bursts_are_a_millisecond_but_two_segments_and_64_kilobytes_at_most() {
        let far = Some(Span::from_ms(40));
        for (rate, segments) in [(1e5, 2), (1.024e6 * 5.5, 5), (1e9, 65)] {
            assert_eq!(pacer(rate).burst(|| far, 1_000, 100), segments, "{rate}");
        }
        // Near by: 65215 >> 4 more with 2.1 ms (2100 us >> 9 = 4).
        assert_eq!(pacer(1e5).burst(|| Some(Span::from_us(2_100)), 1_000, 100), (97 + 4_075) / 1_000);
        assert_eq!(pacer(f64::INFINITY).burst(|| far, 1_000, 100), 65);
        // So also where a controller says how many there are a second (SetSendQuantum of BBR).
        let quick = Pacer { bursts: Some(1_000.0), ..pacer(1e9) };
        assert_eq!(quick.burst(|| far, 1_000, 100), 65);
        // Or as many as are allowed.
        assert_eq!(pacer(1e5).burst(|| far, 1_000, 1), 1);
    }
}
