//! This file finds losses by time: it knows when each segment was sent, and which arrived that was sent last.

use super::{EVER_RESENT, LOST, Outstanding, RESENT, Record, SACKED, Serial};
use crate::rack::{AtHand, Rack};
use base::{Span, Time};
use std::collections::VecDeque;

/// What finding losses by time needs.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    /// What was sent last among all that arrived.
    pub(super) rack: Rack,
    /// What was sent again and when, oldest first; what has become of it since is not noted here.
    pub(super) resent: VecDeque<(Serial, Time)>,
    pub(super) hand: AtHand<Hand>,
}

/// What the acknowledgement at hand tells.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hand {
    /// One past the serial of the highest that was reported before the acknowledgement at hand.
    pub(super) highest_before: Serial,
    /// The lowest end of a segment that it reports and that was sent once.
    pub(super) first_original: u64,
    /// When the first of what it acknowledges, and of what it reports, was sent, of what was sent once; and whether it
    /// acknowledges anything that was sent again.
    pub(super) acked_at: Option<Time>,
    pub(super) reported_at: Option<Time>,
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
    /// Deems lost what was sent before something that arrived, except what may have been reordered within `window`
    /// (RFC 8985 §6.2 step 5). Returns when the first of the excepted is to be deemed lost too.
    pub fn lose_overtaken(&mut self, window: Span, now: Time) -> Option<Time> {
        let timed = self.timed.as_mut()?;
        let board = self.board.get_or_insert_default();
        let patience = timed.rack.patience(window);
        let mut due = None;
        while let Some(&(serial, sent_at)) = timed.resent.front() {
            let index = serial.checked_sub(self.first).map(|index| index as usize);
            let waiting = index.and_then(|index| self.records.get_mut(index)).filter(|record| {
                let is_out = record.is(RESENT) || !record.is(LOST | SACKED);
                is_out && record.sent_at == sent_at
            });
            if let Some(record) = waiting {
                if !timed.rack.is_overtaken(sent_at, record.end()) {
                    break;
                }
                if sent_at + patience > now {
                    due = Some(sent_at + patience);
                    break;
                }
                if record.is(RESENT) {
                    board.ever_lost_bytes += u64::from(record.len);
                }
                board.unsend(record);
                board.lose(record, serial);
            }
            timed.resent.pop_front();
        }
        board.examined = board.examined.max(self.first);
        while let Some(record) = self.records.get_mut((board.examined - self.first) as usize) {
            if record.state == 0 {
                if !timed.rack.is_overtaken(record.sent_at, record.end()) {
                    break;
                }
                if record.sent_at + patience > now {
                    let this = record.sent_at + patience;
                    due = Some(due.map_or(this, |other: Time| other.min(this)));
                    break;
                }
                board.lose(record, board.examined);
            }
            board.examined += 1;
        }
        due
    }

    /// Deems everything lost that was not reported received, as [`Outstanding::lose_all`] does, but for what was sent
    /// so shortly before `now` that it may be on its way, the first segment excepted (tcp_timeout_mark_lost).
    pub fn lose_old(&mut self, now: Time) {
        let patience = self.rack().map_or(Span::ZERO, |rack| rack.patience(Span::ZERO));
        let board = self.board.get_or_insert_default();
        for (serial, record) in (self.first..).zip(&mut self.records) {
            if serial == self.first || record.sent_at + patience <= now {
                board.unsend(record);
                board.lose(record, serial);
            }
        }
    }

    /// When the first of what the acknowledgement at hand acknowledges was sent, or else the first of what it reports,
    /// if that tells a round trip (tcp_ack_update_rtt).
    pub fn sampled_at(&self) -> Option<Time> {
        let timed = self.timed.as_ref()?;
        timed.hand.acked_at.filter(|_| !timed.hand.acked_resent).or(timed.hand.reported_at)
    }

    /// The lowest end of a segment that the acknowledgement at hand reports and that was sent once.
    pub fn first_original(&self) -> Option<u64> {
        self.timed.as_ref().map(|timed| timed.hand.first_original).filter(|&end| end < u64::MAX)
    }

    /// Whether the acknowledgement at hand acknowledges anything that was sent again.
    pub fn has_acked_resent(&self) -> bool {
        self.timed.as_ref().is_some_and(|timed| timed.hand.acked_resent)
    }

    /// Notes what an arrival says about reordering.
    #[inline]
    pub fn tell_rack(&mut self, something: impl FnOnce(&mut Rack)) {
        if let Some(timed) = &mut self.timed {
            something(&mut timed.rack);
        }
    }

    /// What was sent last among all that arrived, where losses are found by time.
    #[inline]
    pub fn rack(&self) -> Option<&Rack> {
        self.timed.as_ref().map(|timed| &timed.rack)
    }

    /// Whether something was sent again and nothing is known of it.
    #[inline]
    pub fn has_resent(&self) -> bool {
        self.timed.as_ref().is_some_and(|timed| !timed.resent.is_empty())
    }
}
