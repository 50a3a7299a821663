//! What was sent and is not acknowledged yet: one record a segment, in sequence order, and the sums the sender asks
//! for with every acknowledgement.

use crate::rack::Rack;
use crate::segment::SackBlocks;
use base::{Span, Time};
use std::collections::VecDeque;

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// First sequence number.
    pub seq: u64,
    /// When it was last sent.
    pub sent_at: Time,
    /// Sequence space it takes: payload and FIN.
    pub len: u32,
    /// Whether it carries the FIN.
    pub fin: bool,
    state: u8,
}

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// Sent again since it was deemed lost.
const RESENT: u8 = 4;
/// Sent more than once at any time: no good for round-trip measurement.
const EVER_RESENT: u8 = 8;

impl Record {
    const fn is(&self, state: u8) -> bool {
        self.state & state != 0
    }

    /// The sequence number after it.
    pub const fn end(&self) -> u64 {
        self.seq + self.len as u64
    }
}

/// A place in the sequence of all segments ever sent: stays valid while records before it go.
type Serial = u64;

/// The records, and how much of them was reported received, is deemed lost, and was sent again.
#[derive(Clone, Debug)]
pub struct Outstanding {
    records: VecDeque<Record>,
    /// Serial of the first record.
    first: Serial,
    sacked_bytes: u64,
    lost_bytes: u64,
    resent_bytes: u64,
    /// One past the serials of the three highest SACKed records, highest first; 0 where there are fewer.
    highest_sacked: [Serial; 3],
    /// Records before this one were examined for loss.
    examined: Serial,
    /// Records before this one are not waiting to be sent again.
    resend_from: Serial,
    /// Blocks of the last acknowledgement, not to be walked again.
    walked: [(u64, u64); SackBlocks::MOST],
    /// Bytes ever deemed lost.
    ever_lost_bytes: u64,
    /// Where losses are found by time.
    timed: Option<Box<Timed>>,
}

/// What it takes to find losses by time.
#[derive(Clone, Debug)]
struct Timed {
    /// What was sent last of what arrived.
    rack: Rack,
    /// What was sent again and when, oldest first; what has become of it since is not noted here.
    resent: VecDeque<(Serial, Time)>,
}

impl Outstanding {
    /// Nothing is outstanding; `keeps_time` if losses are to be found by time.
    pub fn new(keeps_time: bool) -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            sacked_bytes: 0,
            lost_bytes: 0,
            resent_bytes: 0,
            highest_sacked: [0; 3],
            examined: 0,
            resend_from: 0,
            walked: Default::default(),
            ever_lost_bytes: 0,
            timed: keeps_time.then(|| Box::new(Timed { rack: Rack::new(), resent: VecDeque::new() })),
        }
    }

    /// Forgets everything but keeps its memory.
    pub fn clear(&mut self, keeps_time: bool) {
        let mut records = std::mem::take(&mut self.records);
        records.clear();
        let mut timed = if keeps_time { self.timed.take() } else { None };
        if let Some(timed) = &mut timed {
            timed.rack = Rack::new();
            timed.resent.clear();
        }
        let fresh = Self::new(keeps_time && timed.is_none());
        *self = Self { records, timed: timed.or(fresh.timed), ..Self::new(false) };
    }

    /// A new segment was sent.
    #[inline]
    pub fn push(&mut self, seq: u64, len: u32, fin: bool, now: Time) {
        self.records.push_back(Record { seq, sent_at: now, len, fin, state: 0 });
    }

    /// Bytes thought to be in the network out of `in_flight` that are not acknowledged (RFC 6675 §3, pipe).
    #[inline]
    pub fn pipe(&self, in_flight: u64) -> u64 {
        in_flight + self.resent_bytes - self.sacked_bytes - self.lost_bytes
    }

    /// Bytes that the receiver reported beyond a hole.
    #[inline]
    pub fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// Whether the receiver reported data beyond a hole.
    #[inline]
    pub fn has_sacked(&self) -> bool {
        self.sacked_bytes > 0
    }

    /// Everything before `ack` arrived. Returns when the newest of it was sent, if that tells a round trip: nothing of
    /// it was sent twice, for what was behind a repaired hole had arrived long before, and the newest was not reported
    /// already.
    #[inline]
    pub fn acknowledge(&mut self, ack: u64) -> Option<Time> {
        let (mut newest, mut states) = (None, 0);
        while let Some(record) = self.records.front() {
            if record.end() > ack {
                break;
            }
            states |= record.state & EVER_RESENT;
            if let Some(timed) = &mut self.timed
                && !record.is(SACKED)
            {
                timed.rack.arrived(record.sent_at, record.end(), record.is(EVER_RESENT));
            }
            newest = if record.state | states == 0 { Some(record.sent_at) } else { None };
            self.forget_front();
        }
        newest
    }

    fn forget_front(&mut self) {
        if let Some(record) = self.records.pop_front() {
            self.first += 1;
            if record.state != 0 {
                let len = record.len as u64;
                self.sacked_bytes -= if record.is(SACKED) { len } else { 0 };
                self.lost_bytes -= if record.is(LOST) { len } else { 0 };
                self.resent_bytes -= if record.is(RESENT) { len } else { 0 };
            }
        }
    }

    /// The receiver holds these blocks above `ack`. Returns the bytes that were not known before.
    pub fn selective(&mut self, blocks: &SackBlocks, ack: u64) -> u64 {
        let before = self.sacked_bytes;
        let mut walked = [(0, 0); SackBlocks::MOST];
        for (slot, block) in walked.iter_mut().zip(blocks.above(ack)) {
            *slot = block;
            let (mut start, mut end) = block;
            for &(known_start, known_end) in &self.walked {
                if known_start <= start && start < known_end {
                    start = known_end;
                }
                if known_start < end && end <= known_end {
                    end = known_start;
                }
            }
            self.sack_range(start, end);
        }
        self.walked = walked;
        self.sacked_bytes - before
    }

    fn sack_range(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let from = self.records.partition_point(|r| r.seq < start);
        for (index, record) in self.records.iter_mut().enumerate().skip(from) {
            if record.end() > end {
                break;
            }
            if record.is(SACKED) {
                continue;
            }
            let len = record.len as u64;
            if let Some(timed) = &mut self.timed {
                timed.rack.arrived(record.sent_at, record.end(), record.is(EVER_RESENT));
            }
            self.sacked_bytes += len;
            self.lost_bytes -= if record.is(LOST) { len } else { 0 };
            self.resent_bytes -= if record.is(RESENT) { len } else { 0 };
            record.state = (record.state & EVER_RESENT) | SACKED;
            let mark = self.first + index as u64 + 1;
            let place = self.highest_sacked.iter().position(|&other| other < mark);
            if let Some(place) = place {
                self.highest_sacked[place..].rotate_right(1);
                self.highest_sacked[place] = mark;
            }
        }
    }

    /// Deems lost what has three SACKed segments above it (RFC 6675 §4, IsLost, counted in segments).
    pub fn detect_losses(&mut self) {
        let below = self.highest_sacked[2].saturating_sub(1);
        let from = self.examined.max(self.first);
        for serial in from..below {
            self.lose((serial - self.first) as usize);
        }
        self.examined = from.max(below);
    }

    /// Whether the first record is deemed lost.
    pub fn is_front_lost(&self) -> bool {
        self.records.front().is_some_and(|r| r.is(LOST))
    }

    /// Deems the first record lost, also when it was sent again: it has to be sent once more.
    pub fn lose_front(&mut self) {
        if let Some(record) = self.records.front_mut()
            && record.is(RESENT)
        {
            record.state &= !RESENT;
            self.resent_bytes -= record.len as u64;
        }
        self.lose(0);
    }

    /// Deems everything lost that was not reported received: the timer expired.
    pub fn lose_all(&mut self) {
        self.resent_bytes = 0;
        for index in 0..self.records.len() {
            self.records[index].state &= !RESENT;
            self.lose(index);
        }
    }

    fn lose(&mut self, index: usize) {
        if let Some(record) = self.records.get_mut(index)
            && !record.is(SACKED)
        {
            if !record.is(LOST) {
                record.state |= LOST;
                self.lost_bytes += record.len as u64;
                self.ever_lost_bytes += record.len as u64;
            }
            if !record.is(RESENT) {
                self.resend_from = self.resend_from.min(self.first + index as u64);
            }
        }
    }

    /// The first segment that is deemed lost and was not sent again since.
    #[inline]
    pub fn next_lost(&mut self) -> Option<Record> {
        if self.lost_bytes == self.resent_bytes {
            return None;
        }
        self.resend_from = self.resend_from.max(self.first);
        while let Some(record) = self.records.get((self.resend_from - self.first) as usize) {
            if record.is(LOST) && !record.is(RESENT) {
                return Some(*record);
            }
            self.resend_from += 1;
        }
        None
    }

    /// Deems lost what was sent before something that arrived, but for what may have been reordered within `window`
    /// (RFC 8985 §6.2 step 5). Returns when the first of that is to be deemed lost too.
    pub fn lose_overtaken(&mut self, window: Span, now: Time) -> Option<Time> {
        let mut timed = self.timed.take()?;
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
                    record.state &= !RESENT;
                    self.resent_bytes -= record.len as u64;
                    self.ever_lost_bytes += record.len as u64;
                }
                self.lose((serial - self.first) as usize);
            }
            timed.resent.pop_front();
        }
        self.examined = self.examined.max(self.first);
        while let Some(record) = self.records.get((self.examined - self.first) as usize) {
            if record.state == 0 {
                if !timed.rack.is_overtaken(record.sent_at, record.end()) {
                    break;
                }
                if record.sent_at + patience > now {
                    let this = record.sent_at + patience;
                    due = Some(due.map_or(this, |other: Time| other.min(this)));
                    break;
                }
                self.lose((self.examined - self.first) as usize);
            }
            self.examined += 1;
        }
        self.timed = Some(timed);
        due
    }

    /// An acknowledgement is about to be read.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        if let Some(timed) = &mut self.timed {
            timed.rack.begin(now);
        }
    }

    /// What was sent last of what arrived, where losses are found by time.
    #[inline]
    pub fn rack(&self) -> Option<&Rack> {
        self.timed.as_ref().map(|timed| &timed.rack)
    }

    /// Whether something is deemed lost.
    #[inline]
    pub fn has_lost(&self) -> bool {
        self.lost_bytes > 0
    }

    /// Bytes ever deemed lost.
    #[inline]
    pub fn ever_lost_bytes(&self) -> u64 {
        self.ever_lost_bytes
    }

    /// Whether three segments or more are reported beyond a hole.
    pub fn has_three_sacked(&self) -> bool {
        self.highest_sacked[2] > self.first
    }

    /// Whether something was sent again and nothing is known of it.
    #[inline]
    pub fn has_resent(&self) -> bool {
        self.timed.as_ref().is_some_and(|timed| !timed.resent.is_empty())
    }

    /// Sends the last segment again although nothing says that it is lost; returns it.
    pub fn probe_last(&mut self, now: Time) -> Option<Record> {
        let serial = self.first + self.records.len() as u64 - 1;
        let record = self.records.back_mut()?;
        record.state |= EVER_RESENT;
        record.sent_at = now;
        if let Some(timed) = &mut self.timed {
            timed.resent.push_back((serial, now));
        }
        Some(*record)
    }

    /// The payload of the segment at `seq`.
    pub fn payload_at(&self, seq: u64) -> u64 {
        let record = self.records.get(self.index_of(seq));
        record.map_or(0, |record| u64::from(record.len - u32::from(record.fin)))
    }

    /// Sends the segment at `seq`, which is outstanding, again whatever is known of it; returns it.
    pub fn send_again(&mut self, seq: u64, now: Time) -> Record {
        let index = self.index_of(seq);
        let record = self.records.get_mut(index).expect("what is sent again is outstanding");
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

    /// The segment of the last [`Outstanding::next_lost`] was sent again.
    pub fn resent(&mut self, now: Time) {
        let index = (self.resend_from - self.first) as usize;
        if let Some(record) = self.records.get_mut(index) {
            record.state |= RESENT | EVER_RESENT;
            record.sent_at = now;
            self.resent_bytes += record.len as u64;
            if let Some(timed) = &mut self.timed {
                timed.resent.push_back((self.resend_from, now));
            }
            self.resend_from += 1;
        }
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    fn ten() -> Outstanding {
        let mut sent = Outstanding::new(false);
        for k in 0..10 {
            sent.push(1 + k * 100, 100, false, Time::from_ns(k));
        }
        sent
    }

    fn blocks(ack: u64, ranges: &[(u64, u64)]) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for &(start, end) in ranges {
            blocks.push(start - ack, end - ack);
        }
        blocks
    }

    #[test]
    fn three_above_make_a_loss() {
        let mut sent = ten();
        assert_eq!(sent.selective(&blocks(1, &[(101, 301)]), 1), 200);
        sent.detect_losses();
        assert_eq!(sent.next_lost().map(|r| r.seq), None);
        assert_eq!(sent.selective(&blocks(1, &[(101, 401)]), 1), 100);
        sent.detect_losses();
        assert_eq!(sent.next_lost().map(|r| r.seq), Some(1));
        assert_eq!(sent.pipe(1000), 600);
        sent.resent(Time::from_ns(99));
        assert_eq!(sent.pipe(1000), 700);
        assert_eq!(sent.next_lost().map(|r| r.seq), None);
        assert_eq!(sent.acknowledge(401), None);
        assert_eq!(sent.pipe(600), 600);
        assert_eq!(sent.acknowledge(501), Some(Time::from_ns(4)));
    }

    #[test]
    fn a_timeout_loses_what_was_not_reported() {
        let mut sent = ten();
        sent.selective(&blocks(1, &[(201, 401)]), 1);
        sent.lose_all();
        assert_eq!(sent.pipe(1000), 0);
        let mut order = vec![];
        while let Some(record) = sent.next_lost() {
            order.push(record.seq);
            sent.resent(Time::ZERO);
        }
        assert_eq!(order, [1, 101, 401, 501, 601, 701, 801, 901]);
        assert_eq!(sent.pipe(1000), 800);
    }

    #[test]
    fn a_late_arrival_is_no_loss() {
        let mut sent = ten();
        sent.selective(&blocks(1, &[(101, 401)]), 1);
        sent.detect_losses();
        // Reordered, not lost: it is reported after all.
        sent.selective(&blocks(1, &[(101, 501)]), 1);
        assert_eq!(sent.acknowledge(501), None);
        assert_eq!(sent.pipe(500), 500);
    }
}
