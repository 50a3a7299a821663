//! The sender's part of the plain path (`endpoint/plain.rs`): acknowledgements where nothing is missing.
//!
//! It does what `acks.rs` and `sending.rs` do, without the questions whose answer is known here. Everything outstanding
//! was sent once and is neither reported nor deemed lost. So all of it is in the network, and there is nothing to
//! repair and nothing to take back.
//!
//! A window that comes down after a mark takes the short way under a controller that brings it down itself: then the
//! frame does nothing to it (`reduction.rs`).

use super::sending::room_of;
use super::{Outlet, Phase, Sender};
use crate::endpoint::Emit;
use crate::endpoint::wraps_linux::Arrival;
use crate::segment::{Flags, Segment};
use crate::stack::Config;
use base::Time;

impl Sender {
    /// Whether an acknowledgement in order can change nothing but the windows.
    #[inline(always)]
    fn is_calm(&self) -> bool {
        self.repair.is_idle() && self.persist.is_none() && self.has_judged()
    }

    /// Whether `segment`, which brings data, tells this sender nothing.
    #[inline]
    pub(in crate::endpoint) fn learns_nothing(&self, segment: &Segment) -> bool {
        segment.ack == self.snd_una
            && self.snd_una == self.snd_nxt
            && u64::from(segment.window) == self.peer_window
            && self.phase == Phase::Open
            && self.is_calm()
            && self.outstanding.sampler.is_none()
            && !self.controller.heeds_silence()
    }

    /// Whether the plain path can take `segment`, which brings no data: an acknowledgement of new data, or a new
    /// window.
    #[inline(always)]
    pub(in crate::endpoint) fn expects(&self, segment: &Segment, config: &Config) -> bool {
        let is_new = segment.ack > self.snd_una && segment.ack <= self.snd_nxt;
        let is_window = || {
            let is_other = u64::from(segment.window) != self.peer_window;
            segment.ack == self.snd_una && is_other && self.duplicate_acks == 0 && !self.controller.heeds_silence()
        };
        (is_new || is_window())
            && (!self.heard.is_accurate() || self.outstanding.covers_few(segment.ack))
            && self.is_straight(config)
    }

    /// Whether the plain path can take a `segment` with `flags` that counts more marks than are known.
    #[inline]
    pub(in crate::endpoint) fn expects_count(&self, flags: Flags, segment: &Segment, config: &Config) -> bool {
        self.heard.may_count(flags)
            && segment.payload == 0
            && segment.ack > self.snd_una
            && self.descent.is_gradual()
            && config.control.models_path()
    }

    /// Whether nothing but the windows, what is written and the pacer decide what is sent.
    #[inline(always)]
    fn is_straight(&self, config: &Config) -> bool {
        (self.phase == Phase::Open || self.phase == Phase::Reducing && config.control.models_path())
            && self.is_calm()
            && self.outstanding.is_plain(self.snd_una)
            && !self.held_until.is_set()
            && !self.only_new
    }

    /// Sends what may be sent now, if the plain path can. Returns whether it could.
    #[inline]
    pub(super) fn pushes_plainly(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> bool {
        let can = self.duplicate_acks == 0 && self.is_straight(config);
        if can {
            self.push_straight(config, now, out);
        }
        can
    }

    /// Takes a segment that was [expected](Self::expects), and sends what may be sent now. It `tells_marks` if it
    /// counts more than are known.
    #[inline(always)]
    pub(in crate::endpoint) fn on_plain_ack(
        &mut self,
        segment: &Segment,
        tells_marks: bool,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) {
        self.peer_window = u64::from(segment.window);
        let bytes = segment.ack - self.snd_una;
        if bytes == 0 || segment.ack == self.snd_nxt {
            // Otherwise the next probe gets a new time.
            self.reckon_probe(config);
        }
        if bytes > 0 {
            self.advance(segment, tells_marks, config, now);
        }
        if tells_marks {
            self.on_ecn_echo(config, now);
            self.forbid_undoing();
        }
        if self.pacer.is_some() {
            return self.go_on_paced(bytes, config, now, out);
        }
        self.leave_room(now, out);
        self.push_plainly(config, now, out);
    }

    /// Sets the rate after an acknowledgement of `bytes`, and sends what may be sent now.
    #[inline(never)]
    fn go_on_paced(&mut self, bytes: u64, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.steer_plainly(bytes, config, now);
        self.heard.end();
        self.leave_room(now, out);
        self.push_paced_at::<false>(config, now, out);
    }

    /// Sends new data as the windows allow, and the pacer if there is one.
    #[inline(always)]
    fn push_straight(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.leave_room(now, out);
        if self.pacer.is_some() {
            self.push_paced(config, now, out);
        } else {
            self.push_plainly(config, now, out);
        }
    }

    /// Sends what had to wait for its departure, if the plain path can. Returns whether it could.
    #[inline(always)]
    pub(super) fn departs_straight(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> bool {
        let can = self.duplicate_acks == 0 && self.is_straight(config);
        if can {
            self.leave_room(now, out);
            self.push_paced_at::<true>(config, now, out);
        }
        can
    }

    /// Sends new data as the windows and the pacer allow, when the application has written.
    #[inline(never)]
    fn push_paced(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.push_paced_at::<false>(config, now, out);
    }

    /// Sends new data as the windows and the pacer allow. `DEPARTURE` says that it is called to send what had to wait.
    #[inline(always)]
    fn push_paced_at<const DEPARTURE: bool>(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        let before = self.snd_nxt;
        self.heed_pause(config, now);
        let asks = match DEPARTURE {
            _ if !self.may_depart(now) => true,
            true => self.send_bursts_here::<true>(config, now, out),
            false => self.send_bursts::<true>(config, now, out),
        };
        let waits = asks && self.due_plainly(self.window.bytes(), config).is_some();
        if waits {
            self.wait_for_departure();
        } else if asks && self.snd_una == self.snd_nxt {
            self.ask_for_room(config, now);
        }
        if config.cwnd_validation {
            self.note_use(before, config);
        }
        let is_wanted = self.repair.wants_probe();
        if is_wanted && self.set_probe::<true>(config, now) {
            return;
        }
        if waits {
            self.note_seldom();
        }
        match is_wanted {
            true => self.repair.call_off_probe(),
            false => self.reckon_probe(config),
        }
        if DEPARTURE {
            self.note_seldom();
        }
    }

    /// Takes an acknowledgement of new data: reads the count of marks if it `tells_marks`, measures the round trip,
    /// grows the window and restarts the timer.
    #[inline(always)]
    fn advance(&mut self, segment: &Segment, tells_marks: bool, config: &Config, now: Time) {
        let bytes = segment.ack - self.snd_una;
        let arrived = self.outstanding.acknowledge_plainly(segment.ack, now);
        let has_arrived = arrived.records > 0;
        if tells_marks {
            let arrival = Arrival { packets: arrived.records, bytes, told_bytes: bytes, mss: config.mss };
            self.heard.count(segment, arrival);
        } else {
            self.heard.count_none(arrived.records, bytes);
        }
        if self.counts_deliveries && self.controller.watches() {
            let rtt = has_arrived.then(|| now.since(arrived.last_at));
            self.on_delivery(segment, bytes, rtt, config, now);
        }
        (self.snd_una, self.duplicate_acks) = (segment.ack, 0);
        let sent_at = match has_arrived {
            true if self.repair.is_rack() => Some(arrived.first_at),
            true => Some(arrived.last_at),
            false if self.repair.is_rack() => Self::stamped_at(segment, config, now),
            false => None,
        };
        self.measure(segment.ack, sent_at, config, now);
        if self.phase == Phase::Reducing {
            self.end_descent(segment, config, now);
        }
        let by_segments = self.descent.is_gradual() && config.whole_segments;
        let counted = if by_segments { u64::from(arrived.records * config.mss) } else { bytes };
        if !config.control.models_path() && (!config.cwnd_validation || self.is_window_used()) {
            self.grow(segment, counted, config, now);
        }
        self.restart_timer(config, now);
    }

    /// Sends up to `most` segments of a burst. Returns how many it sent.
    #[inline(always)]
    pub(super) fn fill_plainly(
        &mut self,
        most: u64,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) -> u64 {
        let cwnd = self.window.bytes();
        for sent in 0..most {
            let Some(new) = self.due_plainly(cwnd, config) else {
                if self.snd_una == self.snd_nxt {
                    self.ask_for_room(config, now);
                }
                return sent;
            };
            self.send_of_burst(new, most > 1 && sent + 1 == most, config, now, out);
        }
        most
    }

    /// The next new segment, and whether the FIN rides on it, if the peer's window and one of `cwnd` bytes let it out.
    #[inline(always)]
    pub(super) fn due_plainly(&self, cwnd: u64, config: &Config) -> Option<(u32, bool)> {
        let (len, has_fin) = self.next_new(config)?;
        let in_flight = self.snd_nxt - self.snd_una;
        let has_room =
            self.taken_by_all(config) + room_of(len, config) <= cwnd && in_flight + u64::from(len) <= self.peer_window;
        has_room.then_some((len, has_fin))
    }

    /// Sends new data as the windows allow, where everything outstanding is in the network.
    #[inline]
    pub(super) fn push_plainly(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        let before = self.snd_nxt;
        self.heed_pause(config, now);
        let cwnd = self.window.bytes();
        while let Some((len, has_fin)) = self.due_plainly(cwnd, config) {
            self.send_new(len, has_fin, config, now, out);
        }
        if self.snd_una == self.snd_nxt {
            self.ask_for_room(config, now);
        }
        if config.cwnd_validation {
            self.note_use(before, config);
        }
        if self.repair.wants_probe() && !self.set_probe::<true>(config, now) {
            self.repair.call_off_probe();
        }
    }
}
