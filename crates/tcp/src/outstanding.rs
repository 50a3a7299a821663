//! [`Outstanding`] keeps a record of each segment that was sent and is not acknowledged yet, in sequence order. It also
//! keeps the sums over these that the sender needs with every acknowledgement.

use crate::delivery::Sampler;
use crate::segment::SackBlocks;
use base::{Span, Time, fetch};
use record::{EVER_RESENT, LOST, RESENT, SACKED};
use scoreboard::{Scoreboard, Sum};
use std::collections::VecDeque;
use timed::Timed;

pub use record::Record;

mod record;
mod scoreboard;
mod timed;

/// Of so many marked segments an accurate acknowledgement can tell.
const MOST_COUNTED: usize = 7;

/// A segment's number among all segments ever sent. It stays valid when records before it are removed.
type Serial = u64;

/// The records of all outstanding segments, and what is known of them.
#[derive(Clone, PartialEq, Debug)]
pub struct Outstanding {
    records: VecDeque<Record>,
    /// Serial of the first record.
    first: Serial,
    /// What reports and losses have told; many connections never have either.
    board: Option<Box<Scoreboard>>,
    /// The times of arrivals and retransmissions, where they are kept.
    timed: Option<Box<Timed>>,
    /// The sampler of the rate of delivery, where there is one.
    pub(crate) sampler: Option<Box<Sampler>>,
}

base::packed!(Outstanding { records, first, board, timed, sampler });

/// Segments that were sent once and arrived in order.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plain {
    /// How many segments these are.
    pub records: u32,
    /// When the first of them was sent.
    pub first_at: Time,
    /// When the last of them was.
    pub last_at: Time,
}

impl Outstanding {
    /// Asks for the first record and the last, and for what losses have told.
    #[inline(always)]
    pub fn fetch(&self) {
        self.board.as_deref().inspect(|board| fetch(*board));
        self.records.front().inspect(|first| fetch(*first));
        self.records.back().inspect(|last| fetch(*last));
    }

    /// An account with nothing outstanding. `keeps_time` says whether it keeps the times of arrivals and
    /// retransmissions.
    pub fn new(keeps_time: bool) -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            board: None,
            timed: keeps_time.then(|| Box::new(Timed::new())),
            sampler: None,
        }
    }

    /// Forgets everything, but keeps the memory for records.
    pub fn clear(&mut self, keeps_time: bool) {
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        let mut timed = if keeps_time { self.timed.take() } else { None };
        if let Some(timed) = &mut timed {
            let mut resent = std::mem::take(&mut timed.resent);
            resent.clear();
            **timed = Timed { resent, ..Timed::new() };
        }
        let mut board = self.board.take();
        if let Some(board) = &mut board {
            **board = Scoreboard::default();
        }
        let fresh = Self::new(keeps_time && timed.is_none());
        *self = Self { records, board, timed: timed.or(fresh.timed), ..Self::new(false) };
    }

    /// Forgets what losses have told. Call it only while nothing is outstanding.
    pub fn rest(&mut self) {
        assert!(self.records.is_empty(), "what is outstanding is kept");
        // The sampler needs the total of all bytes ever deemed lost.
        self.board = self.board.take().filter(|_| self.sampler.is_some());
        if let Some(board) = &mut self.board {
            **board = Scoreboard { ever_lost: board.ever_lost, ..Scoreboard::default() };
        }
        if let Some(timed) = &mut self.timed {
            timed.resent.clear();
        }
    }

    /// Notes that a new segment was sent.
    #[inline]
    pub fn push(&mut self, seq: u64, len: u32, fin: bool, now: Time) {
        self.records.push_back(Record { seq, sent_at: now, len, fin, state: 0 });
        if self.sampler.is_some() {
            let in_flight = self.pipe_segments();
            if let Some(sampler) = &mut self.sampler {
                sampler.sent(in_flight, now);
            }
        }
    }

    /// Notes the round trip of the handshake, which counts for the shortest.
    pub fn note_handshake(&mut self, rtt: Span) {
        self.tell_rack(|rack| rack.note_handshake(rtt));
        if let Some(sampler) = &mut self.sampler {
            sampler.note_handshake(rtt);
        }
    }

    /// Of the `in_flight` bytes that are not acknowledged, those thought to be in the network (RFC 6675 §3, pipe).
    #[inline]
    pub fn pipe(&self, in_flight: u64) -> u64 {
        match &self.board {
            None => in_flight,
            // Short segments are assumed to be full ones.
            Some(board) => (in_flight + board.resent.bytes - board.sacked.bytes - board.lost.bytes)
                .saturating_sub(board.assumed.bytes),
        }
    }

    /// How many segments are thought to be in the network, however short each is (tcp_packets_in_flight).
    #[inline]
    pub fn pipe_segments(&self) -> u32 {
        let out = self.records.len() as u32;
        match &self.board {
            None => out,
            Some(board) => (out + board.resent.records - board.sacked.records - board.lost.records)
                .saturating_sub(board.assumed.records),
        }
    }

    /// Assumes that so many `segments` of `mss` bytes arrived beyond a hole, where the receiver reports nothing.
    pub fn assume(&mut self, segments: u32, mss: u32) {
        let bytes = u64::from(segments) * u64::from(mss);
        self.board.get_or_insert_default().assumed = Sum { bytes, records: segments };
    }

    /// Segments that are deemed lost.
    pub fn lost_records(&self) -> u32 {
        self.board.as_ref().map_or(0, |board| board.lost.records)
    }

    /// Bytes that the receiver reported beyond a hole.
    #[inline]
    pub fn sacked_bytes(&self) -> u64 {
        self.board.as_ref().map_or(0, |board| board.sacked.bytes)
    }

    /// Segments that the receiver reported beyond a hole.
    #[inline]
    pub fn sacked_records(&self) -> u32 {
        self.board.as_ref().map_or(0, |board| board.sacked.records)
    }

    /// Whether an acknowledgement of `ack` covers no more segments than marks of which three bits can count.
    pub fn covers_few(&self, ack: u64) -> bool {
        self.records.get(MOST_COUNTED).is_none_or(|record| record.end() > ack)
    }

    /// Whether the receiver reported data beyond a hole.
    #[inline]
    pub fn has_sacked(&self) -> bool {
        self.sacked_bytes() > 0
    }

    /// Notes that everything before `ack` arrived. Returns when the newest segment of it was sent, if that gives a
    /// round trip. It gives none if any of these segments was sent twice, as the data behind a repaired hole had
    /// arrived long before, nor if the newest was reported or deemed lost already.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64) -> Option<Time> {
        let (mut newest, mut states) = (None, 0);
        while let Some(record) = self.records.front() {
            if record.end() > ack {
                break;
            }
            states |= record.state & EVER_RESENT;
            if let Some(timed) = &mut self.timed {
                timed.hand.acked_resent |= record.is(EVER_RESENT);
                if record.state & (EVER_RESENT | SACKED) == 0 && timed.hand.acked_at.is_none() {
                    timed.hand.acked_at = Some(record.sent_at);
                }
            }
            if let Some(timed) = &mut self.timed
                && !record.is(SACKED)
                && !(record.is(EVER_RESENT) && timed.rack.is_of_first(record.sent_at))
            {
                timed.arrived(record, self.first);
            }
            if let Some(sampler) = &mut self.sampler
                && !record.is(SACKED)
            {
                sampler.arrived(0, record.sent_at, record.end(), record.is(EVER_RESENT));
            }
            newest = if record.state | states == 0 { Some(record.sent_at) } else { None };
            self.forget_front();
        }
        newest
    }

    /// Whether everything outstanding, from `una` on, was sent once and nothing more is known of it. An acknowledgement
    /// in order can then show no loss.
    #[inline]
    pub fn is_plain(&self, una: u64) -> bool {
        self.board.as_ref().is_none_or(|board| board.plain_from <= una)
            && self.timed.as_ref().is_none_or(|timed| timed.resent.is_empty())
            && self.sampler.is_none()
    }

    /// Notes that everything before `ack` arrived, where everything outstanding [is plain](Self::is_plain). It does
    /// what [`Outstanding::begin`] and [`Outstanding::acknowledge`] do together.
    #[inline(always)]
    pub fn acknowledge_plainly(&mut self, ack: u64, now: Time) -> Plain {
        let mut plain = Plain { records: 0, first_at: now, last_at: now };
        let mut end = 0;
        while let Some(record) = self.records.front()
            && record.end() <= ack
        {
            plain.first_at = if plain.records == 0 { record.sent_at } else { plain.first_at };
            (plain.last_at, end) = (record.sent_at, record.end());
            plain.records += 1;
            self.records.pop_front();
        }
        self.first += u64::from(plain.records);
        if let Some(timed) = &mut self.timed
            && plain.records > 0
        {
            timed.rack.arrived_in_order(plain.last_at, end, now);
        }
        plain
    }

    fn forget_front(&mut self) {
        if let Some(record) = self.records.pop_front() {
            self.first += 1;
            if let Some(sampler) = &mut self.sampler {
                sampler.forget_front();
            }
            if record.state != 0
                && let Some(board) = &mut self.board
            {
                board.forget(&record);
            }
        }
    }

    /// Notes the receiver's report that it holds these blocks above `ack`. Returns the bytes that are news.
    pub fn selective(&mut self, blocks: &SackBlocks, ack: u64) -> u64 {
        let board = self.board.get_or_insert_default();
        let (before, known) = (board.sacked.bytes, board.walked);
        let mut walked = [(0, 0); SackBlocks::MOST];
        for (slot, block) in walked.iter_mut().zip(blocks.above(ack)) {
            *slot = block;
            let (mut start, mut end) = block;
            for (known_start, known_end) in known {
                if known_start <= start && start < known_end {
                    start = known_end;
                }
                if known_start < end && end <= known_end {
                    end = known_start;
                }
            }
            self.sack_range(start, end);
        }
        let board = self.board.get_or_insert_default();
        board.walked = walked;
        board.sacked.bytes - before
    }

    fn sack_range(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let board = self.board.get_or_insert_default();
        let from = self.records.partition_point(|r| r.seq < start);
        for (index, record) in self.records.iter_mut().enumerate().skip(from) {
            if record.end() > end {
                break;
            }
            if record.is(SACKED) {
                continue;
            }
            if let Some(timed) = &mut self.timed {
                timed.arrived(record, self.first + index as u64);
                if !record.is(EVER_RESENT) {
                    let first = timed.hand.reported_at.map_or(record.sent_at, |at| at.min(record.sent_at));
                    timed.hand.reported_at = Some(first);
                }
            }
            if let Some(sampler) = &mut self.sampler {
                sampler.arrived(index, record.sent_at, record.end(), record.is(EVER_RESENT));
            }
            board.forget(record);
            board.sacked.add(record);
            record.state = (record.state & EVER_RESENT) | SACKED;
            board.touch(record);
            let mark = self.first + index as u64 + 1;
            let place = board.highest_sacked.iter().position(|&other| other < mark);
            if let Some(place) = place {
                board.highest_sacked[place..].rotate_right(1);
                board.highest_sacked[place] = mark;
            }
        }
    }

    /// Deems each segment lost that has three SACKed segments above it (RFC 6675 §4, IsLost, counted in segments).
    pub fn detect_losses(&mut self) {
        let Some(board) = &mut self.board else { return };
        let below = board.highest_sacked[2].saturating_sub(1);
        let from = board.examined.max(self.first);
        for serial in from..below {
            if let Some(record) = self.records.get_mut((serial - self.first) as usize) {
                board.lose(record, serial, (&mut self.sampler, self.first));
            }
        }
        board.examined = from.max(below);
    }

    /// Whether the first record is deemed lost.
    pub fn is_front_lost(&self) -> bool {
        self.records.front().is_some_and(|r| r.is(LOST))
    }

    /// Deems the first record lost, even one that was sent again, so that it is sent once more.
    pub fn lose_front(&mut self) {
        if let Some(record) = self.records.front_mut() {
            let board = self.board.get_or_insert_default();
            board.unsend(record);
            board.lose(record, self.first, (&mut self.sampler, self.first));
        }
    }

    /// Deems everything lost that was not reported, since the timer has expired.
    pub fn lose_all(&mut self) {
        let board = self.board.get_or_insert_default();
        for (serial, record) in (self.first..).zip(&mut self.records) {
            board.unsend(record);
            board.lose(record, serial, (&mut self.sampler, self.first));
        }
    }

    /// The first segment that is deemed lost and was not sent again since.
    #[inline]
    pub fn next_lost(&mut self) -> Option<Record> {
        let board = self.board.as_mut()?;
        if board.lost.bytes == board.resent.bytes {
            return None;
        }
        board.resend_from = board.resend_from.max(self.first);
        while let Some(record) = self.records.get((board.resend_from - self.first) as usize) {
            if record.is(LOST) && !record.is(RESENT) {
                return Some(*record);
            }
            board.resend_from += 1;
        }
        None
    }

    /// Begins to read an acknowledgement.
    #[inline]
    pub fn begin(&mut self, now: Time, echo: Option<u16>) {
        if let Some(timed) = &mut self.timed {
            timed.rack.begin(now, echo);
            *timed.hand = timed::Hand::new(self.board.as_ref().map_or(0, |board| board.highest_sacked[0]));
        }
        if let Some(sampler) = &mut self.sampler {
            sampler.begin(now);
        }
    }

    /// When the first segment was last sent.
    pub fn front_sent_at(&self) -> Option<Time> {
        self.records.front().map(|record| record.sent_at)
    }

    /// Forgets that anything is deemed lost, and stops counting what was sent again.
    pub fn unlose(&mut self) {
        if let Some(timed) = &mut self.timed {
            // A retransmission that was deemed lost had left the list of those that are out.
            for (index, record) in self.records.iter().enumerate().rev() {
                if record.is(LOST) && record.is(EVER_RESENT) && !record.is(RESENT) {
                    timed.resent.push_front((self.first + index as u64, record.sent_at));
                }
            }
        }
        for record in &mut self.records {
            record.state &= !(LOST | RESENT);
        }
        if let Some(board) = &mut self.board {
            (board.lost, board.resent) = (Sum::default(), Sum::default());
            (board.examined, board.overtaken, board.waits) = (self.first, self.first, self.first);
        }
    }

    /// Whether something that was sent again is thought to be in the network.
    pub fn has_resent_out(&self) -> bool {
        self.board.as_ref().is_some_and(|board| board.resent.bytes > 0)
    }

    /// How many segments that were sent again are thought to be in the network.
    pub fn resent_out(&self) -> u32 {
        if !self.has_resent_out() {
            return 0;
        }
        self.records.iter().filter(|record| record.is(RESENT)).count() as u32
    }

    /// Whether the first segment was sent more than once.
    pub fn is_front_resent(&self) -> bool {
        self.records.front().is_some_and(|record| record.is(EVER_RESENT))
    }

    /// Notes the report that `start..end`, which is not acknowledged yet, came twice. Returns whether all of its
    /// segments were sent more than once.
    pub fn note_twice(&mut self, start: u64, end: u64) -> bool {
        let from = self.index_of(start);
        let mut was_resent = false;
        for record in self.records.iter().skip(from).take_while(|record| record.seq < end) {
            was_resent = record.is(EVER_RESENT);
            if !was_resent {
                break;
            }
            if record.is(SACKED)
                && let Some(timed) = &mut self.timed
            {
                timed.rack.note_reordering();
            }
        }
        was_resent
    }

    /// Whether something is deemed lost.
    #[inline]
    pub fn has_lost(&self) -> bool {
        self.board.as_ref().is_some_and(|board| board.lost.bytes > 0)
    }

    /// Whether the receiver reported data beyond a hole, or something is deemed lost.
    #[inline]
    pub fn has_sacked_or_lost(&self) -> bool {
        self.board.as_ref().is_some_and(|board| board.sacked.bytes > 0 || board.lost.bytes > 0)
    }

    /// Segments ever deemed lost, each as often as it was.
    #[inline]
    pub fn ever_lost(&self) -> u64 {
        self.board.as_ref().map_or(0, |board| board.ever_lost)
    }

    /// Whether three segments or more are reported beyond a hole.
    pub fn has_three_sacked(&self) -> bool {
        self.board.as_ref().is_some_and(|board| board.highest_sacked[2] > self.first)
    }

    /// Notes that the last segment is sent again as a probe, although nothing says that it is lost. Returns it.
    pub fn probe_last(&mut self, now: Time) -> Option<Record> {
        let serial = self.first + self.records.len() as u64 - 1;
        let record = self.records.back_mut()?;
        self.board.get_or_insert_default().touch(record);
        record.state |= EVER_RESENT;
        record.sent_at = now;
        if let Some(timed) = &mut self.timed {
            timed.resent.push_back((serial, now));
        }
        let probe = *record;
        let in_flight = self.pipe_segments();
        if let Some(sampler) = &mut self.sampler {
            sampler.resent((serial - self.first) as usize, in_flight);
        }
        Some(probe)
    }

    /// Notes that the last unreported segment is sent again as a rescue, and returns it. Returns `None` if that segment
    /// has been sent again since it was deemed lost.
    pub fn rescue(&mut self, now: Time) -> Option<Record> {
        let record = self.records.iter_mut().rev().find(|record| record.state & SACKED == 0)?;
        if record.state & RESENT != 0 {
            return None;
        }
        self.board.get_or_insert_default().touch(record);
        record.state |= EVER_RESENT;
        record.sent_at = now;
        Some(*record)
    }

    /// The payload of the segment at `seq`.
    pub fn payload_at(&self, seq: u64) -> u64 {
        let record = self.records.get(self.index_of(seq));
        record.map_or(0, |record| u64::from(record.len - u32::from(record.fin)))
    }

    /// Notes that the segment at `seq`, which is outstanding, is sent again whatever is known of it. Returns it.
    pub fn send_again(&mut self, seq: u64, now: Time) -> Record {
        let index = self.index_of(seq);
        let record = self.records.get_mut(index).expect("what is sent again is outstanding");
        self.board.get_or_insert_default().touch(record);
        record.state |= EVER_RESENT;
        record.sent_at = now;
        *record
    }

    fn index_of(&self, seq: u64) -> usize {
        self.records.partition_point(|record| record.end() <= seq)
    }

    /// How many segments are outstanding.
    #[inline]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Notes that the segment of the last [`Outstanding::next_lost`] was sent again.
    pub fn resent(&mut self, now: Time) {
        let Some(board) = &mut self.board else { return };
        let index = (board.resend_from - self.first) as usize;
        if let Some(record) = self.records.get_mut(index) {
            record.state |= RESENT | EVER_RESENT;
            record.sent_at = now;
            board.resent.add(record);
            if let Some(timed) = &mut self.timed {
                while timed.resent.front().is_some_and(|&(serial, _)| serial < self.first) {
                    timed.resent.pop_front();
                }
                timed.resent.push_back((board.resend_from, now));
            }
            board.resend_from += 1;
            if self.sampler.is_some() {
                let in_flight = self.pipe_segments();
                if let Some(sampler) = &mut self.sampler {
                    sampler.resent(index, in_flight);
                }
            }
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
