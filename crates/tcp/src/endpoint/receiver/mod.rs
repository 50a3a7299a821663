//! The receiving half takes data in order and out of order. It sends delayed and selective acknowledgements, offers a
//! window, and echoes marks.
//!
//! | what | where |
//! |---|---|
//! | what arrived in order, and what of it is acknowledged | here |
//! | when acknowledgements wait, where that follows the sender's habits | `delaying.rs` |
//! | the window offered: readers that stop | `reading.rs` |
//! | the window offered: a buffer that grows | `growing.rs` |
//! | what is told of marks | `feedback.rs`, beside what the sender hears of them |
//!
//! A receiver reads the sender of its own end for three things: the sequence number that acknowledgements carry, how
//! long a round trip takes, and whether a FIN was sent.

mod delaying;
mod growing;
mod reading;

use super::Emit;
use super::feedback::Echo;
use super::sender::Sender;
use crate::reassembly::Reassembly;
use crate::segment::{Flags, SackBlocks, Segment, stamp_of};
use crate::stack::Config;
use base::{Ecn, Span, Time};

/// The receiving half of an endpoint.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Receiver {
    // ── what arrived ──
    /// The next sequence number expected.
    pub(super) rcv_nxt: u64,
    /// What lies beyond a hole.
    held: Reassembly,
    /// The sequence number of the peer's FIN, once it has come; beyond all others before.
    pub(super) peer_fin: u64,

    // ── what is told of it, and when ──
    /// Bytes in order since the last acknowledgement; a small segment counts as a full one where segments count.
    unacked: u32,
    /// How many of the next segments are acknowledged at once.
    pub(super) quick_acks_left: u32,
    /// When what waits is acknowledged at the latest.
    pub(super) delayed_ack_at: Time,
    /// The sender's habits, where acknowledgements follow them.
    delaying: Option<Box<delaying::Delaying>>,
    /// What is told of marks.
    pub(super) echo: Echo,

    // ── timestamps ──
    /// The newest stamp of the peer, to be echoed (TS.Recent).
    pub(super) peer_stamp: u16,
    /// The stamp that the peer's last segment echoed (rcv_rtt_last_tsecr).
    peer_echo: u16,

    // ── the window offered ──
    /// A reader that stopped: most connections have none.
    reading: Option<Box<reading::Reading>>,
}

base::packed!(Receiver {
    rcv_nxt,
    held,
    peer_fin,
    unacked,
    quick_acks_left,
    delayed_ack_at,
    delaying,
    echo,
    peer_stamp,
    peer_echo,
    reading,
});

impl Receiver {
    /// A new receiver.
    pub fn new(config: &Config) -> Self {
        Self::holding(Reassembly::default(), Self::delaying_of(None, config), config)
    }

    /// A new receiver in the memory of a former one.
    fn holding(held: Reassembly, delaying: Option<Box<delaying::Delaying>>, config: &Config) -> Self {
        Self {
            rcv_nxt: 0,
            held,
            peer_fin: u64::MAX,
            unacked: 0,
            quick_acks_left: if config.delayed_ack.adapts { 0 } else { config.delayed_ack.quick },
            delayed_ack_at: Time::NEVER,
            delaying,
            echo: Echo::OFF,
            peer_stamp: 0,
            peer_echo: 0,
            reading: None,
        }
    }

    /// Becomes a new receiver but keeps its memory.
    pub fn reset(&mut self, config: &Config) {
        let mut held = std::mem::take(&mut self.held);
        held.clear();
        let delaying = Self::delaying_of(self.delaying.take(), config);
        *self = Self::holding(held, delaying, config);
    }

    /// Whether nothing is missing.
    pub fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// Forgets what was held last; not while anything is missing.
    pub fn rest(&mut self) {
        self.held = Reassembly::default();
    }

    /// Asks for what lies beyond a hole.
    #[inline(always)]
    pub fn fetch_held(&self) {
        self.held.fetch();
    }

    /// Bytes that reached the application.
    pub fn received(&self) -> u64 {
        let fin = u64::from(self.rcv_nxt > self.peer_fin);
        self.rcv_nxt.saturating_sub(1) - fin - self.unread()
    }

    /// Whether everything the peer will ever send has arrived and was read, its FIN included.
    pub fn has_heard_all(&self) -> bool {
        self.rcv_nxt > self.peer_fin && self.unread() == 0
    }

    /// Takes the peer's stamp if `segment` is the one that the last acknowledgement asked for, and did not come later
    /// (RFC 7323 §4.3).
    #[inline]
    pub fn note_stamp(&mut self, segment: &Segment, config: &Config) {
        if config.timestamps && segment.seq <= self.rcv_nxt.saturating_sub(u64::from(self.unacked)) {
            self.peer_stamp = segment.stamp;
        }
    }

    /// Whether the peer sent `segment` later than all that came before, as far as stamps say it.
    pub fn is_newer(&self, segment: &Segment, config: &Config) -> bool {
        config.timestamps && (segment.stamp.wrapping_sub(self.peer_stamp) as i16) > 0
    }

    /// Remembers the stamp that `segment` echoes, when all else in it was looked at.
    #[inline]
    pub fn note_echo(&mut self, segment: &Segment) {
        self.peer_echo = segment.echo;
    }

    /// Takes data or a FIN.
    pub fn on_data(&mut self, segment: &Segment, sender: &Sender, config: &Config, now: Time, out: &mut impl Emit) {
        // RFC 9768 §3.2 counts what is acceptable (RFC 9293 §3.10.7.4): nothing that was here already. Linux
        // never looks at the ECN field of that (tcp_data_queue), and at its CWR unless more was acknowledged before.
        if segment.end() > self.rcv_nxt || self.delaying.is_none() && !self.echo.is_accurate() {
            self.on_marks(segment, sender, config, now, out);
        } else if segment.end() >= self.rcv_nxt.saturating_sub(self.unacked.into()) {
            self.on_cwr(segment);
        }
        if segment.flags.has(Flags::FIN) {
            self.peer_fin = segment.end() - 1;
        }
        if segment.seq > self.rcv_nxt {
            return self.on_data_beyond(segment, sender, config, now, out);
        }
        if segment.end() <= self.rcv_nxt {
            // Old data: the acknowledgement was lost, or the retransmission was not needed.
            self.hurry_afresh(config.delayed_ack.quick, config);
            return self.tell_twice(segment, sender, config, now, out);
        }
        let fills_gap = !self.held.is_empty();
        let before = self.rcv_nxt;
        self.rcv_nxt = segment.end();
        if fills_gap {
            self.rcv_nxt = self.held.advance(self.rcv_nxt);
        }
        // A FIN has a sequence number too: what ends a stream is more than one full segment.
        let sequence_len = u32::from(segment.payload) + u32::from(segment.flags.has(Flags::FIN));
        self.unacked += if config.delayed_ack.counts_small { config.mss } else { sequence_len };
        if self.reading.is_some() {
            let fin = u64::from(self.rcv_nxt > self.peer_fin);
            self.note_unread(self.rcv_nxt - before - fin);
        }
        if self.delaying.is_some() {
            self.acknowledge_adaptively(segment, fills_gap, sender, config, now, out);
        } else {
            self.acknowledge_by_count(segment, fills_gap, sender, config, now, out);
        }
    }

    /// Takes data out of order, and reports the gap at once (RFC 5681 §4.2).
    #[inline(never)]
    fn on_data_beyond(&mut self, segment: &Segment, sender: &Sender, config: &Config, now: Time, out: &mut impl Emit) {
        self.report_before(segment, sender, config, now, out);
        let news = self.held.insert(segment.seq, segment.end());
        self.note_out_of_order(segment, config, now);
        if news > 0 {
            self.report(sender, config, now, out);
        } else {
            self.tell_twice(segment, sender, config, now, out);
        }
    }

    /// Takes data in order: acknowledges it at once when enough segments wait, or else when the timer expires.
    fn acknowledge_by_count(
        &mut self,
        segment: &Segment,
        fills_gap: bool,
        sender: &Sender,
        config: &Config,
        now: Time,
        out: &mut impl Emit,
    ) {
        let is_quick = self.quick_acks_left > 0;
        self.quick_acks_left -= u32::from(is_quick);
        let at_once = fills_gap
            || is_quick
            || segment.flags.has(Flags::FIN)
            || self.unacked > (config.delayed_ack.every - 1) * config.mss;
        if !at_once {
            if !self.delayed_ack_at.is_set() {
                self.delayed_ack_at = config.timer(now, config.delayed_ack.timeout);
            }
            return;
        }
        if config.delayed_ack.window_updates
            && self.unacked >= 2 * config.mss
            && u32::from(segment.payload) >= config.mss
        {
            // The acknowledgement goes before the application reads, the update after.
            let mut ack = self.segment(sender.snd_nxt, 0, Flags::NONE, Ecn::NotEct, config, now);
            ack.window -= 2 * u64::from(segment.payload).min(u64::from(ack.window) / 2) as u32;
            out.emit(ack);
        }
        self.acknowledge(sender, config, now, out);
    }

    /// Acknowledges a segment all of which was here already, and says so where that is told (RFC 2883).
    #[inline(never)]
    fn tell_twice(&mut self, segment: &Segment, sender: &Sender, config: &Config, now: Time, out: &mut impl Emit) {
        if !config.dsack || !config.repair.has_sack() || segment.payload == 0 {
            return self.acknowledge(sender, config, now, out);
        }
        let mut ack =
            self.segment(sender.snd_nxt, 0, Flags::NONE, self.echo.field(self.acks_are_capable(config)), config, now);
        if let Some(linux) = self.echo.linux() {
            linux.note_twice(segment.seq);
        }
        let held = std::mem::take(&mut ack.sacks);
        ack.sacks.push_duplicate(segment.seq, segment.end(), ack.ack);
        held.above(ack.ack).for_each(|(start, end)| ack.sacks.push(start - ack.ack, end - ack.ack));
        ack.size = (config.header + ack.sacks.option_bytes()) as u16;
        self.add_option(&mut ack, sender.rtt.srtt(), now);
        out.emit(ack);
    }

    /// Sends a delayed acknowledgement, when its timer has expired.
    pub fn on_delay_timer(&mut self, sender: &Sender, config: &Config, now: Time, out: &mut impl Emit) {
        self.note_delay_was_vain(sender, config);
        self.acknowledge(sender, config, now, out);
    }

    /// Whether pure acknowledgements are ECN-capable, where anything is.
    #[inline]
    pub fn acks_are_capable(&self, config: &Config) -> bool {
        config.ect_on_control || config.ect_on_all && self.echo.is_accurate()
    }

    /// Sends a pure acknowledgement.
    pub fn acknowledge(&mut self, sender: &Sender, config: &Config, now: Time, out: &mut impl Emit) {
        let ecn = self.echo.field(self.acks_are_capable(config));
        let segment = self.segment(sender.snd_nxt, 0, Flags::NONE, ecn, config, now);
        if self.echo.has_option() {
            let copy = segment;
            return self.emit_with_option(&copy, sender.rtt.srtt(), now, out);
        }
        out.emit(segment);
    }

    /// Sends an acknowledgement with an AccECN option, where one is due. The plain way takes no address of a segment,
    /// so that the segment is made where it is kept.
    #[inline(never)]
    pub fn emit_with_option(&mut self, ack: &Segment, rtt: Option<Span>, now: Time, out: &mut impl Emit) {
        let mut ack = *ack;
        self.add_option(&mut ack, rtt, now);
        out.emit(ack);
    }

    /// A segment with the acknowledgement fields filled in; whatever acknowledgement was delayed goes with it.
    #[inline(always)]
    pub fn segment(&mut self, seq: u64, payload: u32, flags: Flags, ecn: Ecn, config: &Config, now: Time) -> Segment {
        if self.delaying.is_some() {
            self.note_ack_sent(config);
        }
        self.unacked = 0;
        self.echo.pending = 0;
        self.delayed_ack_at = Time::NEVER;
        let has_sacks = config.repair.has_sack() && !self.held.is_empty();
        let sacks = if has_sacks { self.held.blocks(self.rcv_nxt) } else { SackBlocks::default() };
        Segment {
            seq,
            ack: self.rcv_nxt,
            sacks,
            window: self.window_to_tell(config),
            stamp: stamp_of(now),
            echo: self.peer_stamp,
            payload: payload as u16,
            size: (payload + config.header + sacks.option_bytes()) as u16,
            flags: flags.with(self.echo.told),
            ecn,
        }
    }

    /// A segment of a handshake or an old, empty one: it carries no reports, and what waits to be acknowledged waits
    /// on.
    pub fn bare_segment(&self, seq: u64, window: u32, size: u32, flags: Flags, ecn: Ecn, now: Time) -> Segment {
        Segment {
            seq,
            ack: self.rcv_nxt,
            sacks: SackBlocks::default(),
            window,
            stamp: stamp_of(now),
            echo: self.peer_stamp,
            payload: 0,
            size: size as u16,
            flags,
            ecn,
        }
    }
}
