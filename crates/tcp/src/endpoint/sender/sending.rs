//! This file sends segments: first the lost ones, then new ones, as the windows allow.

use super::repair::{DUP_THRESH, Repair};
use super::{Outlet, Phase, Sender, Timing};
use crate::endpoint::Emit;
use crate::outstanding::Record;
use crate::segment::Flags;
use crate::stack::{Config, RttSampling};
use base::Time;

/// What may be sent next.
pub(super) enum Due {
    /// The next lost segment.
    Again,
    /// New data of this length, and whether the FIN rides on it.
    New(u32, bool),
}

/// How many bytes of the congestion window a segment takes: its payload, or a full segment where the window counts
/// segments. A FIN without payload takes a full segment or nothing, as configured.
#[inline(always)]
pub(super) fn room_of(payload: u32, config: &Config) -> u64 {
    let is_full = if payload == 0 { config.fin_takes_room } else { config.whole_segments };
    u64::from(if is_full { config.mss } else { payload })
}

impl Sender {
    /// Sends everything that may be sent now, in whatever state it is.
    pub(in crate::endpoint) fn push_generally(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.reckon_probe(config);
        self.leave_room(now, out);
        if self.held_until.is_set() {
            self.call_off_departure();
            return;
        }
        let before = self.snd_nxt;
        self.fill_window(config, now, out);
        if config.cwnd_validation {
            self.note_use(before, config);
        }
        if self.only_new {
            self.only_new = false;
            if self.phase == Phase::Timeout && self.snd_nxt <= self.recover {
                self.end_frto();
                self.fill_window(config, now, out);
            }
        }
        self.schedule_wanted_probe(config, now);
    }

    /// Sends everything that may be sent now: the short way, where it comes to the same.
    #[inline]
    pub(in crate::endpoint) fn push(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        if !self.pushes_plainly(config, now, out) {
            self.push_generally(config, now, out);
        }
    }

    /// Leaves room for an AccECN option in what is sent now, where data carries one.
    #[inline(always)]
    pub(super) fn leave_room(&mut self, now: Time, out: &mut Outlet<'_, impl Emit>) {
        if out.receiver.echo.has_option() {
            self.leave_room_for_option(now, out);
        }
    }

    #[inline(never)]
    fn leave_room_for_option(&mut self, now: Time, out: &mut Outlet<'_, impl Emit>) {
        if let Some(bytes) = &mut out.receiver.echo.bytes
            && let Some(linux) = bytes.linux()
        {
            linux.note_rtt(self.rtt.srtt());
            self.room_of_option = linux.room(now);
        }
    }

    /// Sets the time of the next probe, if somebody asked for it.
    #[inline]
    fn schedule_wanted_probe(&mut self, config: &Config, now: Time) {
        if self.repair.wants_probe() {
            self.schedule_probe(config, now);
        }
    }

    /// Brings the window down if sending starts again after a pause.
    #[inline]
    pub(super) fn heed_pause(&mut self, config: &Config, now: Time) {
        if self.snd_una == self.snd_nxt
            && config.idle_restart
            && !config.control.models_path()
            && now.since(self.last_sent_at) > self.rtt.rto(config)
        {
            self.restart_after_idle(config, now);
        }
    }

    /// Sends as much as the windows, the pacer and the way of repair let out.
    fn fill_window(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.heed_pause(config, now);
        if let Repair::Ns2Sack1(sack1) = &self.repair
            && sack1.is_busy
        {
            self.call_off_departure();
            self.fill_window_sack1(config, now, out);
            return;
        }
        if self.pacer.is_some() {
            self.fill_paced(config, now, out);
        } else {
            self.fill(self.most_at_once(), config, now, out);
        }
    }

    /// Sends up to `most` segments, lost ones first. Returns how many it sent.
    pub(super) fn fill(&mut self, most: u64, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> u64 {
        for sent in 0..most {
            match self.due(config) {
                Some(Due::Again) => self.resend_next(config, now, out),
                Some(Due::New(len, has_fin)) => {
                    self.send_of_burst((len, has_fin), most > 1 && sent + 1 == most, config, now, out);
                }
                None => {
                    self.on_nothing_due(config, now, out);
                    return sent;
                }
            }
        }
        most
    }

    /// Sends a new segment: its payload, and whether the FIN rides on it. The last of a burst may say so.
    #[inline(always)]
    pub(super) fn send_of_burst(
        &mut self,
        (len, has_fin): (u32, bool),
        ends_burst: bool,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) {
        if ends_burst {
            self.end_burst(true);
        }
        self.send_new(len, has_fin, config, now, out);
        if ends_burst {
            self.end_burst(false);
        }
    }

    /// Does what is left to do when nothing may be sent: a closed window is asked about, and a recovery rescues its
    /// last segment.
    #[inline(always)]
    fn on_nothing_due(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        if self.snd_una == self.snd_nxt {
            self.ask_for_room(config, now);
        } else if self.phase == Phase::Recovery
            && self.next_new(config).is_none()
            && self.outstanding.next_lost().is_none()
        {
            self.rescue(config, now, out);
        }
    }

    /// The next segment that the windows let out, a lost one first.
    #[inline(always)]
    pub(super) fn due(&mut self, config: &Config) -> Option<Due> {
        // Limited transmit (RFC 3042): one new segment for each of the first two duplicates. With SACK, and where
        // duplicates are counted, each duplicate has already made the pipe smaller.
        let may_be_early = self.phase == Phase::Open || self.phase == Phase::Timeout && self.is_ns2_newreno();
        let is_early = may_be_early && self.duplicate_acks > 0 && self.duplicate_acks < DUP_THRESH;
        let is_told = self.repair.has_reports() || self.repair.is_counted();
        let lets_out = is_early && config.limited_transmit && !is_told;
        let extra = match self.phase {
            Phase::Recovery => self.added_by_duplicates(config),
            _ if lets_out => u64::from(self.duplicate_acks * config.mss),
            _ => 0,
        };
        let cwnd = self.window.bytes() + extra;
        let in_flight = self.snd_nxt - self.snd_una;
        let counts_all = is_early && !config.limited_transmit;
        let taken = if counts_all { self.taken_by_all(config) } else { self.taken(config) };
        if matches!(self.phase, Phase::Recovery | Phase::Timeout)
            && !self.only_new
            && let Some(record) = self.outstanding.next_lost()
        {
            let room = room_of(record.len - u32::from(record.fin), config);
            return (taken + room <= cwnd).then_some(Due::Again);
        }
        let (len, has_fin) = self.next_new(config)?;
        let has_room = taken + room_of(len, config) <= cwnd && in_flight + u64::from(len) <= self.peer_window;
        has_room.then_some(Due::New(len, has_fin))
    }

    /// The next new segment: its payload, and whether the FIN rides on it. `None` if there is nothing to send.
    #[inline(always)]
    pub(super) fn next_new(&self, config: &Config) -> Option<(u32, bool)> {
        let unsent = self.unsent();
        let len = unsent.min(u64::from(config.mss - self.room_of_option));
        let has_fin = self.closing && !self.fin_sent && len == unsent;
        (len > 0 || has_fin).then_some((len as u32, has_fin))
    }

    /// Sends a new segment whatever the congestion window says. Returns whether there was one and the peer takes it.
    pub(super) fn send_one_more(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) -> bool {
        let in_flight = self.snd_nxt - self.snd_una;
        match self.next_new(config) {
            Some((len, has_fin)) if in_flight + u64::from(len) <= self.peer_window => {
                self.send_new(len, has_fin, config, now, out);
                true
            }
            _ => false,
        }
    }

    /// Sends a new segment of `len` bytes, whatever the windows say.
    #[inline(always)]
    pub(super) fn send_new(
        &mut self,
        len: u32,
        has_fin: bool,
        config: &Config,
        now: Time,
        out: &mut Outlet<'_, impl Emit>,
    ) {
        let seq = self.snd_nxt;
        if seq == self.snd_una {
            self.note_pause(now);
        }
        let tells_reduction = len > 0 && self.heard.pay_cwr();
        let flags = Flags::NONE.with_if(Flags::FIN, has_fin).with_if(Flags::CWR, tells_reduction);
        let flags = flags.with_if(Flags::PSH, self.pushes(seq, len, config));
        // RFC 3168 §6.1.4: data is ECN-capable, a FIN alone is a pure ACK.
        let ecn = self.heard.field(len > 0 || out.receiver.acks_are_capable(config));
        let sequence_len = len + u32::from(has_fin);
        self.fin_sent |= has_fin;
        self.snd_nxt += u64::from(sequence_len);
        self.outstanding.push(seq, sequence_len, has_fin, now);
        self.stats.segments += 1;
        if self.timing.end == Timing::NONE.end && config.rtt_sampling == RttSampling::OnePerWindow {
            self.timing = Timing { end: self.snd_nxt, sent_at: now };
        }
        if !self.rto_at.is_set() {
            self.rto_at = config.timer(now, self.rtt.rto(config));
        }
        out.receiver.note_answer(now);
        self.note_sent(len, now);
        self.descent.note_sent(len, config);
        self.repair.want_probe();
        out.send(seq, len, flags, ecn, config, now);
    }

    /// Sends the next lost segment again.
    pub(super) fn resend_next(&mut self, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        let Some(record) = self.outstanding.next_lost() else { return };
        self.outstanding.resent(now);
        self.note_resent(now);
        self.descent.note_sent(record.len, config);
        self.repair.call_off_probe();
        if record.seq == self.snd_una && self.descent.is_gradual() {
            // However often it was sent before (tcp_xmit_retransmit_queue).
            self.rto_at = config.timer(now, self.rtt.rto(config));
        }
        if self.timing.end >= record.end() && !self.is_ns2_newreno() {
            // Karn's rule (RFC 6298 §3): its acknowledgement would be ambiguous.
            self.timing = Timing::NONE;
        }
        self.emit_again(&record, config, now, out);
    }

    /// Sends the segment of `record` once more.
    pub(super) fn emit_again(&mut self, record: &Record, config: &Config, now: Time, out: &mut Outlet<'_, impl Emit>) {
        self.stats.retransmitted += 1;
        self.note_sent(record.len, now);
        let payload = record.len - u32::from(record.fin);
        let ecn = self.heard.field(config.ect_on_retransmit || config.ect_on_all && self.heard.is_accurate());
        let flags = Flags::NONE.with_if(Flags::FIN, record.fin);
        let flags = flags.with_if(Flags::PSH, self.pushes(record.seq, payload, config));
        // RFC 3168 §6.1.2 leaves CWR to new data. ns-2 sets it here too (SetCWRonRetransmit_).
        let tells_reduction = self.repair.is_of_ns2() && payload > 0 && self.heard.pay_cwr();
        let flags = flags.with_if(Flags::CWR, tells_reduction);
        out.send(record.seq, payload, flags, ecn, config, now);
    }

    /// Notes that a segment of so many bytes goes out, new or old.
    #[inline(always)]
    fn note_sent(&mut self, bytes: u32, now: Time) {
        self.last_sent_at = now;
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(u64::from(bytes), now);
        }
    }

    /// Whether a segment of `payload` bytes at `seq` carries PSH: where it ends what the application wrote, and in a
    /// Linux also within that.
    #[inline(always)]
    fn pushes(&self, seq: u64, payload: u32, config: &Config) -> bool {
        let end = seq + u64::from(payload);
        payload > 0 && (end == self.written || config.delayed_ack.adapts && self.pushes_within(seq, end, config))
    }

    /// Whether Linux sets PSH within what the application wrote. Where there are bursts, it does at the end of each
    /// (__tcp_transmit_skb). Where there are none, it does when more than half of the largest window that the peer has
    /// offered went out without one (forced_push); here this is counted from the beginning of the stream, and the
    /// peer's first offer stands for the largest.
    fn pushes_within(&self, seq: u64, end: u64, config: &Config) -> bool {
        if let Some(pacer) = &self.pacer
            && config.pacing_burst > 1
        {
            return pacer.ends_burst;
        }
        let mss = u64::from(config.mss - self.room_of_option);
        let distance = (config.receive_buffer / 4 / mss + 1) * mss;
        config.receive_buffer > 0 && (seq - 1) / distance != (end - 1) / distance
    }
}
