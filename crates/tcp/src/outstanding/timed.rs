//! This file finds losses by time. It knows when each segment was sent, and the newest transmission that has arrived.

use super::record::{EVER_RESENT, RESENT, Record};
use super::{Outstanding, Serial};
use crate::rack::{AtHand, Rack};
use base::{Span, Time};
use std::collections::VecDeque;

/// The times of arrivals and retransmissions.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Timed {
    /// The newest transmission known to have arrived.
    pub(super) rack: Rack,
    /// Retransmissions and when they were sent, oldest first. An entry may stay after its segment has arrived or was
    /// deemed lost again.
    pub(super) resent: VecDeque<(Serial, Time)>,
    pub(super) hand: AtHand<Hand>,
}

base::packed!(Timed { rack, resent, hand });

/// What the current acknowledgement tells.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Hand {
    /// One past the serial of the highest segment that earlier acknowledgements had reported.
    pub(super) highest_before: Serial,
    /// The lowest end of a segment that arrived, by this acknowledgement, and was sent once.
    pub(super) first_original: u64,
    /// When the first segment that it acknowledges was sent, of those sent once.
    pub(super) acked_at: Option<Time>,
    /// When the first segment that it reports was sent, of those sent once.
    pub(super) reported_at: Option<Time>,
    /// Whether it acknowledges anything that was sent more than once.
    pub(super) acked_resent: bool,
}

impl Hand {
    /// What an acknowledgement tells before it is read.
    pub(super) const fn new(highest_before: Serial) -> Self {
        Self { highest_before, first_original: u64::MAX, acked_at: None, reported_at: None, acked_resent: false }
    }
}

impl Timed {
    pub(super) fn new() -> Self {
        Self { rack: Rack::new(), resent: VecDeque::new(), hand: AtHand(Hand::new(0)) }
    }

    /// Notes that the segment in `record`, with this serial, arrived.
    #[inline]
    pub(super) fn arrived(&mut self, record: &Record, serial: Serial) {
        let was_resent = record.is(EVER_RESENT);
        self.rack.arrived(record.sent_at, record.end(), was_resent);
        if !was_resent {
            self.hand.first_original = self.hand.first_original.min(record.end());
            if serial + 1 < self.hand.highest_before {
                self.rack.note_reordering();
            }
        }
    }
}

impl Outstanding {
    /// Deems segments lost that were sent before one that has arrived, except those that may have been reordered within
    /// `window` (RFC 8985 §6.2 step 5). Returns when the last of the excepted ones is to be deemed lost too.
    pub fn lose_overtaken(&mut self, window: Span, now: Time) -> Option<Time> {
        let timed = self.timed.as_mut()?;
        let board = self.board.get_or_insert_default();
        let patience = timed.rack.patience(window);
        let mut due = None;
        while let Some(&(serial, sent_at)) = timed.resent.front() {
            let index = serial.checked_sub(self.first).map(|index| index as usize);
            let waiting = index.and_then(|index| self.records.get_mut(index)).filter(|record| record.is_out(sent_at));
            if let Some(record) = waiting {
                if !timed.rack.is_overtaken(sent_at, record.end()) {
                    break;
                }
                if sent_at + patience > now {
                    due = Some(sent_at);
                    break;
                }
                if record.is(RESENT) {
                    board.lose_more(record, serial, (&mut self.sampler, self.first));
                }
                board.unsend(record);
                board.lose(record, serial, (&mut self.sampler, self.first));
            }
            timed.resent.pop_front();
        }
        if due.is_some() {
            // Of those behind it, which were sent later, the last that is overtaken.
            let records = &self.records;
            let overtaken = timed.resent.iter().skip(1).filter_map(|&(serial, sent_at)| {
                let record = records.get(serial.checked_sub(self.first)? as usize)?;
                record.is_out(sent_at).then_some(record)
            });
            let overtaken = overtaken.take_while(|record| timed.rack.is_overtaken(record.sent_at, record.end()));
            due = overtaken.last().map_or(due, |record| Some(record.sent_at));
        }
        board.examined = board.examined.max(self.first);
        while let Some(record) = self.records.get_mut((board.examined - self.first) as usize) {
            if record.state == 0 {
                if !timed.rack.is_overtaken(record.sent_at, record.end()) {
                    break;
                }
                if record.sent_at + patience > now {
                    due = due.max(self.last_overtaken());
                    break;
                }
                let serial = board.examined;
                board.lose(record, serial, (&mut self.sampler, self.first));
            }
            board.examined += 1;
        }
        due.map(|sent_at| sent_at + patience)
    }

    /// When the last of the segments that are overtaken and wait was sent; each was sent once. The search goes on where
    /// the last one ended.
    fn last_overtaken(&mut self) -> Option<Time> {
        let (timed, board) = (self.timed.as_ref()?, self.board.as_mut()?);
        let mut at = board.overtaken.max(board.examined);
        while let Some(record) = self.records.get((at - self.first) as usize) {
            if record.state == 0 {
                if !timed.rack.is_overtaken(record.sent_at, record.end()) {
                    break;
                }
                board.waits = at;
            }
            at += 1;
        }
        board.overtaken = at;
        // It may have arrived, or was deemed lost, since it was found.
        let is_waiting = |serial: Serial| self.records[(serial - self.first) as usize].state == 0;
        board.waits = (board.examined..=board.waits.max(board.examined)).rev().find(|&serial| is_waiting(serial))?;
        Some(self.records[(board.waits - self.first) as usize].sent_at)
    }

    /// Deems everything lost that was not reported, as [`Outstanding::lose_all`] does, but spares segments that were
    /// sent so shortly before `now` that they may be on their way. The first segment is lost in any case
    /// (tcp_timeout_mark_lost).
    pub fn lose_old(&mut self, now: Time) {
        let patience = self.rack().map_or(Span::ZERO, |rack| rack.patience(Span::ZERO));
        let board = self.board.get_or_insert_default();
        for (serial, record) in (self.first..).zip(&mut self.records) {
            if serial == self.first || record.sent_at + patience <= now {
                board.unsend(record);
                board.lose(record, serial, (&mut self.sampler, self.first));
            }
        }
    }

    /// When the segment was sent that gives the current acknowledgement's round trip: the first one that it
    /// acknowledges, or else the first one that it reports (tcp_ack_update_rtt). `None` if neither gives one.
    pub fn sampled_at(&self) -> Option<Time> {
        let timed = self.timed.as_ref()?;
        timed.hand.acked_at.filter(|_| !timed.hand.acked_resent).or(timed.hand.reported_at)
    }

    /// The lowest end of a segment that arrived, by the current acknowledgement, and was sent once.
    pub fn first_original(&self) -> Option<u64> {
        self.timed.as_ref().map(|timed| timed.hand.first_original).filter(|&end| end < u64::MAX)
    }

    /// Whether the current acknowledgement acknowledges anything that was sent more than once.
    pub fn has_acked_resent(&self) -> bool {
        self.timed.as_ref().is_some_and(|timed| timed.hand.acked_resent)
    }

    /// Tells the RACK state `something`, where there is one.
    #[inline]
    pub fn tell_rack(&mut self, something: impl FnOnce(&mut Rack)) {
        if let Some(timed) = &mut self.timed {
            something(&mut timed.rack);
        }
    }

    /// The RACK state, where times are kept.
    #[inline]
    pub fn rack(&self) -> Option<&Rack> {
        self.timed.as_ref().map(|timed| &timed.rack)
    }

    /// Whether the list of retransmissions holds any.
    #[inline]
    pub fn has_resent(&self) -> bool {
        self.timed.as_ref().is_some_and(|timed| !timed.resent.is_empty())
    }
}
