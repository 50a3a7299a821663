//! A reader that stops, and a window that closes: what is not read takes room, the window tells how much is left, and a
//! sender that has no room left asks from time to time whether there is some again.
//!
//! The right edge of the window never moves back (RFC 9293 §3.8.6). It moves on when that is worth a segment, against
//! silly windows (§3.8.6.2.2), or in Linux when there is room for one and for a sixteenth of the window
//! (__tcp_select_window). Reading tells of it at once when the window has doubled (Linux, __tcp_cleanup_rbuf), or when
//! it opens by two segments or by half (BSD, tcp_output).
//!
//! A sender that may send nothing, with nothing outstanding whose acknowledgement would tell, probes for the window
//! after a retransmission timeout, then after twice that, and so on (§3.8.6.1), and goes on as long as it is answered.
//!
//! # Deviations
//! - Probes are empty and old, as Linux's are (tcp_xmit_probe_skb); BSD's and the RFC's carry a byte. One into a window
//!   that holds something, but no segment, carries that much.
//! - What is held out of order takes no room.

use super::{Emit, Endpoint, State};
use crate::segment::{Flags, SackBlocks, Segment};
use crate::stack::Config;
use base::{Ecn, Span, Time};

/// Probes without an answer, after which the connection is given up (Linux, tcp_retries2).
const MOST_PROBES: u8 = 15;
/// TCP_RTO_MIN, which Linux does not let the time between probes fall below.
const SHORTEST: Span = Span::from_ms(200);

/// The receiving side.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Whether the application has stopped.
    is_stopped: bool,
    /// Bytes in order that it has not read.
    unread: u64,
    /// One past the last byte that the peer may send.
    edge: u64,
}

/// The sending side, while it waits for room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Persist {
    /// When it asks next.
    pub(super) at: Time,
    /// Questions asked, and those without an answer.
    asked: u8,
    unanswered: u8,
}

/// Both.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    reading: Option<Reading>,
    pub(super) persist: Option<Persist>,
}

impl Endpoint {
    /// The application stops reading: what arrives takes room from now on.
    pub fn hold(&mut self, config: &Config) {
        let edge = self.rcv_nxt + self.offered(config);
        let flow = self.flow.get_or_insert_with(Box::default);
        flow.reading.get_or_insert(Reading { is_stopped: false, unread: 0, edge }).is_stopped = true;
    }

    /// The application reads up to `bytes` of what waits.
    pub fn read(&mut self, bytes: u64, config: &Config, now: Time, out: &mut impl Emit) {
        let before = self.offered(config);
        let Some(reading) = self.flow.as_mut().and_then(|flow| flow.reading.as_mut()) else { return };
        reading.unread = reading.unread.saturating_sub(bytes);
        self.note_read(self.rcv_nxt, config, now);
        let mss = u64::from(config.mss);
        let after = self.next_edge(config).saturating_sub(self.rcv_nxt);
        let tells = if config.delayed_ack.adapts {
            2 * before <= self.offer_and_space(config).1 && after >= 2 * before && after > 0
        } else {
            let more = after - before.min(after);
            more >= 2 * mss || 2 * more >= config.window
        };
        if tells && self.state == State::Established && !self.peer_closed() {
            self.send_ack(config, now, out);
        }
    }

    /// The application reads all that waits and whatever arrives from now on.
    pub fn resume(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        if let Some(reading) = self.flow.as_mut().and_then(|flow| flow.reading.as_mut()) {
            reading.is_stopped = false;
            self.read(u64::MAX, config, now, out);
        }
    }

    /// Bytes that arrived in order and wait to be read.
    pub fn unread(&self) -> u64 {
        self.reading().map_or(0, |reading| reading.unread)
    }

    fn reading(&self) -> Option<&Reading> {
        self.flow.as_ref().and_then(|flow| flow.reading.as_ref())
    }

    /// Whether what arrives is read at once.
    pub(super) fn reads_at_once(&self) -> bool {
        !self.reading().is_some_and(|reading| reading.is_stopped)
    }

    /// `bytes` more arrived in order.
    #[inline]
    pub(super) fn note_unread(&mut self, bytes: u64) {
        if let Some(reading) = self.flow.as_mut().and_then(|flow| flow.reading.as_mut())
            && reading.is_stopped
        {
            reading.unread += bytes;
        }
    }

    /// How much the peer may send beyond what arrived in order, as it was last told.
    #[inline]
    pub(super) fn offered(&self, config: &Config) -> u64 {
        match self.reading() {
            Some(reading) => reading.edge.saturating_sub(self.rcv_nxt),
            None => self.offer_and_space(config).0,
        }
    }

    /// Where the right edge may move to: not back, and not for next to nothing.
    fn next_edge(&self, config: &Config) -> u64 {
        let (offer, space) = self.offer_and_space(config);
        let Some(reading) = self.reading() else { return self.rcv_nxt + offer };
        let free = space.saturating_sub(reading.unread);
        let edge = self.rcv_nxt + offer.min(free);
        let mss = u64::from(config.mss);
        let is_worth_it = if config.delayed_ack.adapts {
            2 * free >= space || free >= mss.max(space / 16)
        } else {
            edge >= reading.edge + mss.min(config.window / 2)
        };
        if is_worth_it { edge.max(reading.edge) } else { reading.edge }
    }

    /// The window to be told with what goes out now.
    #[inline]
    pub(super) fn window_to_tell(&mut self, config: &Config) -> u32 {
        if self.flow.is_none() {
            return self.offered(config).min(u64::from(u32::MAX)) as u32;
        }
        let edge = self.next_edge(config);
        if let Some(reading) = self.flow.as_mut().and_then(|flow| flow.reading.as_mut()) {
            reading.edge = edge;
        }
        edge.saturating_sub(self.rcv_nxt).min(u64::from(u32::MAX)) as u32
    }

    /// Whether `segment` asks for the window: empty, and just before what comes next.
    #[inline]
    pub(super) fn is_window_probe(&self, segment: &Segment) -> bool {
        self.flow.is_some() && segment.seq + 1 == self.rcv_nxt && segment.end() == segment.seq
    }

    /// If nothing is outstanding, and what comes next does not fit the peer's window: asks for it later.
    pub(super) fn ask_for_room(&mut self, config: &Config, now: Time) {
        let fits = self.next_new(config).is_none_or(|(len, _)| u64::from(len) <= self.peer_window);
        if self.snd_nxt > self.snd_una || fits {
            return;
        }
        let at = config.timer(now, self.rtt.rto(config).max(SHORTEST));
        let flow = self.flow.get_or_insert_with(Box::default);
        if flow.persist.is_none() {
            flow.persist = Some(Persist { at, asked: 0, unanswered: 0 });
            self.note_seldom();
        }
    }

    /// The peer said something: whatever it is, it is there; and there may be room.
    pub(super) fn hear_of_room(&mut self, config: &Config) {
        let unacknowledged = self.snd_nxt - self.snd_una;
        let needed = self.next_new(config).map_or(0, |(len, _)| u64::from(len));
        let has_room = unacknowledged + needed <= self.peer_window;
        if let Some(flow) = &mut self.flow
            && let Some(persist) = &mut flow.persist
        {
            persist.unanswered = 0;
            if has_room || unacknowledged > 0 {
                flow.persist = None;
            }
        }
    }

    /// When the peer is to be asked for its window.
    pub(super) fn persist_at(&self) -> Time {
        self.flow.as_ref().and_then(|flow| flow.persist).map_or(Time::NEVER, |persist| persist.at)
    }

    /// Asks for the window.
    pub(super) fn on_persist_timer(&mut self, config: &Config, now: Time, out: &mut impl Emit) {
        let Some(persist) = self.flow.as_mut().and_then(|flow| flow.persist.take()) else { return };
        let Some((len, _)) = self.next_new(config) else { return };
        if self.snd_una != self.snd_nxt {
            return;
        }
        if persist.unanswered >= MOST_PROBES {
            return self.give_up();
        }
        if self.peer_window > 0 {
            // Silly, but better than nothing for ever (§3.8.6.2.1).
            let part = u64::from(len).min(self.peer_window) as u32;
            return self.send_new(part, false, config, now, out);
        }
        let window = self.window_to_tell(config);
        let stamp = Self::stamp_of(now);
        out.emit(Segment {
            seq: self.snd_una - 1,
            ack: self.rcv_nxt,
            sacks: SackBlocks::default(),
            window,
            stamp,
            echo: self.peer_stamp,
            payload: 0,
            size: config.header as u16,
            flags: Flags::ACK,
            ecn: Ecn::NotEct,
        });
        let asked = persist.asked.saturating_add(1);
        let base = self.rtt.rto(config).max(SHORTEST);
        let wait = Span::from_ns((base.ns() << asked.min(10)).min(config.rto_max.ns()));
        let again = Persist { at: config.timer(now, wait), asked, unanswered: persist.unanswered + 1 };
        self.flow.get_or_insert_with(Box::default).persist = Some(again);
    }
}
