//! The receiving half: data in order and out of order, delayed and selective acknowledgements.

use super::{Emit, Endpoint};
use crate::segment::{Flags, SackBlocks, Segment};
use crate::stack::Config;
use base::{Ecn, Time};

impl Endpoint {
    /// Data or a FIN arrived.
    pub(super) fn on_data(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        self.on_marks(segment, config, now, out);
        if segment.flags.has(Flags::FIN) {
            self.peer_fin = segment.end() - 1;
        }
        let fills_gap = !self.held.is_empty();
        if segment.seq > self.rcv_nxt {
            // RFC 5681 §4.2: a gap is reported at once.
            self.report_before(segment, config, now, out);
            let news = self.held.insert(segment.seq, segment.end());
            self.note_out_of_order(segment, config, now);
            return if news > 0 { self.report(config, now, out) } else { self.tell_twice(segment, config, now, out) };
        }
        if segment.end() <= self.rcv_nxt {
            // Old data: the acknowledgement was lost, or the retransmission was not needed.
            self.hurry_afresh(config.delayed_ack.quick, config);
            return self.tell_twice(segment, config, now, out);
        }
        let before = self.rcv_nxt;
        self.rcv_nxt = segment.end();
        if fills_gap {
            self.rcv_nxt = self.held.advance(self.rcv_nxt);
        }
        let arrived = u64::from(segment.payload);
        let is_full = u32::from(segment.payload) >= config.mss;
        // A FIN has a sequence number too: what ends a stream is more than one full segment.
        let sequence_len = u32::from(segment.payload) + u32::from(segment.flags.has(Flags::FIN));
        self.unacked += if config.delayed_ack.counts_small { config.mss } else { sequence_len };
        if self.flow.is_some() {
            let fin = u64::from(self.rcv_nxt > self.peer_fin);
            self.note_unread(self.rcv_nxt - before - fin);
        }
        if self.delaying.is_some() {
            let is_read = self.reads_at_once();
            return self.acknowledge_adaptively(segment, fills_gap, is_read, config, now, out);
        }
        let is_quick = self.quick_acks_left > 0;
        self.quick_acks_left -= u32::from(is_quick);
        let at_once = fills_gap
            || is_quick
            || segment.flags.has(Flags::FIN)
            || self.unacked > (config.delayed_ack.every - 1) * config.mss;
        if at_once && config.delayed_ack.window_updates && self.unacked >= 2 * config.mss && is_full {
            // The acknowledgement goes before the application reads, the update after.
            let mut ack = self.segment(self.snd_nxt, 0, Flags::NONE, Ecn::NotEct, config, now);
            ack.window -= 2 * arrived.min(u64::from(ack.window) / 2) as u32;
            out.emit(ack);
            self.send_ack(config, now, out);
        } else if at_once {
            self.send_ack(config, now, out);
        } else if !self.delayed_ack_at.is_set() {
            self.delayed_ack_at = config.timer(now, config.delayed_ack.timeout);
        }
    }

    /// Sends an acknowledgement of a segment all of which was here already, and says so where that is told (RFC 2883).
    fn tell_twice(&mut self, segment: &Segment, config: &Config, now: Time, out: &mut impl Emit) {
        if !config.dsack || !config.repair.has_sack() || segment.payload == 0 {
            return self.send_ack(config, now, out);
        }
        let mut ack = self.segment(self.snd_nxt, 0, Flags::NONE, self.control_ecn(config), config, now);
        let held = std::mem::take(&mut ack.sacks);
        ack.sacks.push_duplicate(segment.seq, segment.end(), ack.ack);
        held.above(ack.ack).for_each(|(start, end)| ack.sacks.push(start - ack.ack, end - ack.ack));
        ack.size = (config.header + ack.sacks.option_bytes()) as u16;
        out.emit(ack);
    }

    /// Sends a pure acknowledgement.
    pub(super) fn send_ack(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let segment = self.segment(self.snd_nxt, 0, Flags::NONE, self.control_ecn(config), config, now);
        out.emit(segment);
    }

    /// The ECN field of packets without data.
    #[inline]
    pub(super) fn control_ecn(&self, config: &Config) -> Ecn {
        self.feedback.field(config.ect_on_control, config)
    }

    /// A segment with the acknowledgement fields filled in; whatever acknowledgement was delayed goes with it.
    #[inline(always)]
    pub(super) fn segment(
        &mut self,
        seq: u64,
        payload: u32,
        flags: Flags,
        ecn: Ecn,
        config: &Config,
        now: Time,
    ) -> Segment {
        if self.delaying.is_some() {
            self.note_ack_sent(config);
        }
        let end = seq + u64::from(payload);
        let is_end = payload > 0 && (end == self.written || config.delayed_ack.adapts && self.pushes(seq, end, config));
        self.unacked = 0;
        self.delayed_ack_at = Time::NEVER;
        let has_sacks = config.repair.has_sack() && !self.held.is_empty();
        let sacks = if has_sacks { self.held.blocks(self.rcv_nxt) } else { SackBlocks::default() };
        Segment {
            seq,
            ack: self.rcv_nxt,
            sacks,
            window: self.window_to_tell(config),
            stamp: Self::stamp_of(now),
            echo: self.peer_stamp,
            payload: payload as u16,
            size: (payload + config.header + sacks.option_bytes()) as u16,
            flags: flags.with(Flags::ACK).with_if(Flags::ECE, self.feedback.echoes()).with_if(Flags::PSH, is_end),
            ecn,
        }
    }

    /// Whether Linux pushes in the midst of what the application wrote: at the end of a burst (__tcp_transmit_skb), or
    /// where there are no bursts when more than half of the largest window that the peer has offered lies before
    /// (forced_push). That is counted from the beginning of the stream, and of the peer's first offer.
    fn pushes(&self, seq: u64, end: u64, config: &Config) -> bool {
        if self.pacer.is_some() && config.pacing_burst > 1 {
            return self.ends_burst;
        }
        let mss = u64::from(config.mss);
        let distance = (config.receive_buffer / 4 / mss + 1) * mss;
        config.receive_buffer > 0 && (seq - 1) / distance != (end - 1) / distance
    }
}
