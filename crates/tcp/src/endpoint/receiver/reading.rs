//! This file serves an application that stops reading. What is not read takes room, and the window tells how much is
//! left.
//!
//! The right edge of the window never moves back (RFC 9293 §3.8.6). When it moves on, and when that is told, differs:
//!
//! | | RFC 9293 §3.8.6.2.2, BSD (tcp_output) | Linux (__tcp_select_window, __tcp_cleanup_rbuf) |
//! |---|---|---|
//! | the edge moves on | by a segment, or half of the window | if a sixteenth of the window and a segment are free |
//! | reading is told at once | if it opens the window by two segments or by half | if the window has doubled |
//!
//! What a sender does about a window that is closed is in `sender/persist.rs`.
//!
//! # Deviations
//! - What is held out of order takes no room.

use super::Receiver;
use crate::endpoint::Emit;
use crate::endpoint::sender::Sender;
use crate::segment::Segment;
use crate::stack::Config;
use base::Time;

/// What a reader that has stopped before leaves in the buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Reading {
    /// Whether the application has stopped.
    is_stopped: bool,
    /// Bytes in order that it has not read.
    unread: u64,
    /// One past the last byte that the peer may send.
    edge: u64,
}

base::left_whole!(Reading);

impl Receiver {
    /// Notes that the application stops reading: what arrives takes room from now on.
    pub fn hold(&mut self, config: &Config) {
        let edge = self.rcv_nxt + self.offered(config);
        let fresh = || Box::new(Reading { is_stopped: false, unread: 0, edge });
        self.reading.get_or_insert_with(fresh).is_stopped = true;
    }

    /// Lets the application read up to `bytes` of what waits. Returns whether the peer is to be told.
    pub fn read(&mut self, bytes: u64, config: &Config, now: Time) -> bool {
        let before = self.offered(config);
        let Some(reading) = &mut self.reading else { return false };
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
        tells && !self.has_heard_all()
    }

    /// Lets the application read all that waits and arrives from now on. Returns whether the peer is to be told.
    pub fn resume(&mut self, config: &Config, now: Time) -> bool {
        let Some(reading) = &mut self.reading else { return false };
        reading.is_stopped = false;
        self.read(u64::MAX, config, now)
    }

    /// Bytes that arrived in order and wait to be read.
    pub fn unread(&self) -> u64 {
        self.reading.as_ref().map_or(0, |reading| reading.unread)
    }

    /// Whether what arrives is read at once.
    pub(super) fn reads_at_once(&self) -> bool {
        !self.reading.as_ref().is_some_and(|reading| reading.is_stopped)
    }

    /// Notes that `bytes` more arrived in order.
    #[inline]
    pub(super) fn note_unread(&mut self, bytes: u64) {
        if let Some(reading) = &mut self.reading
            && reading.is_stopped
        {
            reading.unread += bytes;
        }
    }

    /// How much the peer may send beyond what arrived in order, as it was last told.
    #[inline]
    pub fn offered(&self, config: &Config) -> u64 {
        match &self.reading {
            Some(reading) => reading.edge.saturating_sub(self.rcv_nxt),
            None => self.offer_and_space(config).0,
        }
    }

    /// Where the right edge may move to: not back, and not for next to nothing.
    fn next_edge(&self, config: &Config) -> u64 {
        let (offer, space) = self.offer_and_space(config);
        let Some(reading) = &self.reading else { return self.rcv_nxt + offer };
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
    pub fn window_to_tell(&mut self, config: &Config) -> u32 {
        if self.reading.is_none() {
            return self.offered(config).min(u64::from(u32::MAX)) as u32;
        }
        let edge = self.next_edge(config);
        if let Some(reading) = &mut self.reading {
            reading.edge = edge;
        }
        edge.saturating_sub(self.rcv_nxt).min(u64::from(u32::MAX)) as u32
    }

    /// Whether the application ever stopped reading.
    #[inline]
    pub fn has_stopped(&self) -> bool {
        self.reading.is_some()
    }

    /// Acknowledges `segment` if it asks for the window: it is empty, and just before what comes next.
    #[cold]
    pub fn answer_probe(
        &mut self,
        segment: &Segment,
        sender: &Sender,
        config: &Config,
        now: Time,
        out: &mut impl Emit,
    ) {
        if segment.seq + 1 == self.rcv_nxt && segment.end() == segment.seq {
            self.acknowledge(sender, config, now, out);
        }
    }
}
