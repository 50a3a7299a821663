//! A [`Sampler`] measures how fast the network delivers. Each acknowledgement gives one sample: what was delivered
//! between the sending of a segment and its acknowledgement.
//!
//! Source: draft-cheng-iccrg-delivery-rate-estimation; net/ipv4/tcp_rate.c of Linux. A note
//! for every segment keeps what had been delivered when it was sent. When the segment is acknowledged, the rate is what
//! was delivered since, over an interval. The interval is the longer of two times: that of sending this data and that
//! of hearing of it. So acknowledgements that come in a bunch do not make the rate larger than that at which data was
//! sent. No sample is taken over less than the shortest round trip.
//!
//! | draft                    | tcp_rate.c         | here                  |
//! |--------------------------|--------------------|-----------------------|
//! | `C.delivered`            | `delivered`        | `delivered`, segments |
//! | `C.delivered_time`       | `delivered_mstamp` | `delivered_at`        |
//! | `C.first_sent_time`      | `first_tx_mstamp`  | `first_sent_at`       |
//! | `C.app_limited`          | `app_limited`      | `limited_until`       |
//! | `P.delivered`, ...       | `tx`               | [`Note`]              |
//! | `P.tx_in_flight`, `P.lost`, `C.lost` of draft-ietf-ccwg-bbr | | `in_flight`, `lost` |
//! | `rs`                     | `rate_sample`      | `newest`              |

use crate::cc::{Delivered, Lost};
use base::{Span, Time};
use std::collections::VecDeque;

/// The state that is kept with each outstanding segment: what had been delivered when it was sent.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Note {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    is_limited: bool,
    in_flight: u32,
    lost: u32,
    marked: u32,
}

/// The segment that was sent last among those that this acknowledgement reports.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Newest {
    note: Note,
    sent_at: Time,
    end: u64,
    was_resent: bool,
}

/// Estimates the rate of delivery, for connections whose controller models the path.
#[derive(Clone, PartialEq, Debug)]
pub struct Sampler {
    mss: u64,
    /// A note for each outstanding segment, in their order.
    notes: VecDeque<Note>,
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Until so many segments are delivered, samples show the pace of the application; 0 if none do.
    limited_until: u64,
    min_rtt: Span,
    now: Time,
    newly_delivered: u64,
    newest: Option<Newest>,
    /// Segments deemed lost in all, and told to be marked.
    lost: u32,
    marked: u32,
    /// What was deemed lost and the controller was not told of.
    losses: Vec<Lost>,
}

base::left_whole!(Sampler);

impl Sampler {
    /// An estimator before anything is sent. A full segment has `mss` bytes.
    pub fn new(mss: u32) -> Self {
        Self {
            mss: u64::from(mss),
            notes: VecDeque::new(),
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent_at: Time::ZERO,
            limited_until: 0,
            min_rtt: Span::from_ns(u64::MAX),
            now: Time::ZERO,
            newly_delivered: 0,
            newest: None,
            lost: 0,
            marked: 0,
            losses: Vec::new(),
        }
    }

    /// Notes that a new segment was sent, and that `in_flight` segments are then in the network.
    #[inline]
    pub fn sent(&mut self, in_flight: u32, now: Time) {
        if self.notes.is_empty() {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        self.notes.push_back(self.note(in_flight));
    }

    /// Notes that the outstanding segment at `index` was sent again, and that `in_flight` segments are then in the
    /// network.
    pub fn resent(&mut self, index: usize, in_flight: u32) {
        self.notes[index] = self.note(in_flight);
    }

    fn note(&self, in_flight: u32) -> Note {
        Note {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            is_limited: self.is_limited(),
            in_flight,
            lost: self.lost,
            marked: self.marked,
        }
    }

    /// Notes that the outstanding segment at `index`, from `seq` to before `end`, was deemed lost.
    pub fn lose(&mut self, index: usize, seq: u64, end: u64) {
        let note = self.notes[index];
        self.lost += 1;
        self.losses.push(Lost {
            seq,
            end,
            in_flight: u64::from(note.in_flight),
            lost: u64::from(self.lost - note.lost),
            is_app_limited: note.is_limited,
            delivered: self.delivered,
            mss: self.mss as f64,
            now: self.now,
        });
    }

    /// Takes what was deemed lost since this was last asked.
    pub fn losses(&mut self) -> Vec<Lost> {
        std::mem::take(&mut self.losses)
    }

    /// Gives the memory of [`Sampler::losses`] back.
    pub fn keep(&mut self, mut losses: Vec<Lost>) {
        losses.clear();
        self.losses = losses;
    }

    /// Notes that the acknowledgement at hand tells of so many marked segments.
    pub fn mark(&mut self, segments: u64) {
        self.marked += segments as u32;
    }

    /// Notes the round trip of the handshake.
    pub fn note_handshake(&mut self, rtt: Span) {
        self.min_rtt = self.min_rtt.min(rtt);
    }

    /// Begins to read an acknowledgement.
    #[inline]
    pub fn begin(&mut self, now: Time) {
        (self.now, self.newly_delivered, self.newest) = (now, 0, None);
    }

    /// Notes that the segment at `index`, which was last sent at `sent_at`, arrived by the current acknowledgement.
    pub fn arrived(&mut self, index: usize, sent_at: Time, end: u64, was_resent: bool) {
        self.newly_delivered += 1;
        if !was_resent {
            self.min_rtt = self.min_rtt.min(self.now.since(sent_at));
        }
        let is_newer = self
            .newest
            .is_none_or(|newest| sent_at > self.first_sent_at || sent_at == self.first_sent_at && end > newest.end);
        if is_newer {
            self.newest = Some(Newest { note: self.notes[index], sent_at, end, was_resent });
            self.first_sent_at = sent_at;
        }
    }

    /// Forgets the first segment, which is no longer outstanding.
    #[inline]
    pub fn forget_front(&mut self) {
        self.notes.pop_front();
    }

    /// Ends the reading of an acknowledgement; returns the rate, if it gives one.
    pub fn sample(&mut self) -> Option<Delivered> {
        self.delivered += self.newly_delivered;
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        if self.newly_delivered > 0 {
            self.delivered_at = self.now;
        }
        let newest = self.newest?;
        let sending = newest.sent_at.since(newest.note.first_sent_at);
        let hearing = self.now.since(newest.note.delivered_at);
        let interval = sending.max(hearing);
        // An interval below the shortest round trip comes from a needless retransmission, of which the acknowledgement
        // belongs to the original. Before the first round trip no sample can be judged.
        (self.min_rtt.ns() < u64::MAX && interval >= self.min_rtt && interval > Span::ZERO).then_some(Delivered {
            segments: self.delivered - newest.note.delivered,
            interval,
            prior: newest.note.delivered,
            is_app_limited: newest.note.is_limited,
            in_flight: u64::from(newest.note.in_flight),
            lost: u64::from(self.lost - newest.note.lost),
            marked: u64::from(self.marked - newest.note.marked),
        })
    }

    /// Notes that the sender, not the network, sets the pace until the segments now in the network are delivered.
    pub fn limit(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// Payload of a full segment.
    pub fn mss(&self) -> u64 {
        self.mss
    }

    /// Whether the application, or the controller by itself, sets the pace.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.limited_until > 0
    }

    /// Segments delivered in all.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Segments delivered by the acknowledgement at hand.
    pub fn newly_delivered(&self) -> u64 {
        self.newly_delivered
    }

    /// When something was last delivered.
    pub fn delivered_at(&self) -> Time {
        self.delivered_at
    }

    /// The round trip of the newest segment that the acknowledgement at hand reports, if it was sent once.
    pub fn rtt(&self) -> Option<Span> {
        self.newest.filter(|newest| !newest.was_resent).map(|newest| self.now.since(newest.sent_at))
    }

    /// The shortest round trip seen; none before the first.
    pub fn min_rtt(&self) -> Option<Span> {
        (self.min_rtt.ns() < u64::MAX).then_some(self.min_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// Says that the oldest segment, sent at `sent`, arrived at `ms`.
    fn acknowledge(sampler: &mut Sampler, sent: u64, ms: u64) -> Option<Delivered> {
        sampler.begin(at(ms));
        sampler.arrived(0, at(sent), 1, false);
        sampler.forget_front();
        sampler.sample()
    }

    #[test]
    fn a_window_over_a_round_trip() {
        // Ten segments at 0, 10, ..., 90 ms; each is acknowledged after 100 ms. The first tells of one in 100 ms, and
        // what is sent on its acknowledgement of ten in 100 ms.
        let mut sampler = Sampler::new(1_000);
        (0..10).for_each(|k| sampler.sent(1, at(10 * k)));
        for k in 0..10 {
            let rate = acknowledge(&mut sampler, 10 * k, 100 + 10 * k).expect("it took a round trip");
            // The interval began with the first segment: all of them were sent before anything was delivered.
            assert_eq!((rate.segments, rate.interval), (k + 1, Span::from_ms(100 + 10 * k)));
            sampler.sent(1, at(100 + 10 * k));
        }
        for k in 0..10 {
            let rate = acknowledge(&mut sampler, 100 + 10 * k, 200 + 10 * k).expect("it took a round trip");
            assert_eq!((rate.segments, rate.interval, rate.prior), (10, Span::from_ms(100), k + 1));
        }
    }

    #[test]
    fn a_bunch_of_acknowledgements_does_not_raise_the_rate() {
        // Sent one in 10 ms, all told of at once 100 ms after the last: ten segments took 90 ms to send and 100 ms and
        // 90 ms to be heard of.
        let mut sampler = Sampler::new(1_000);
        (0..10).for_each(|k| sampler.sent(1, at(10 * k)));
        sampler.begin(at(190));
        (0..10).for_each(|k| sampler.arrived(k, at(10 * k as u64), k as u64, false));
        (0..10).for_each(|_| sampler.forget_front());
        let rate = sampler.sample().expect("it took a round trip");
        assert_eq!((rate.segments, rate.interval), (10, Span::from_ms(190)));
    }

    #[test]
    fn what_the_application_limited_is_marked_until_it_is_delivered() {
        let mut sampler = Sampler::new(1_000);
        sampler.sent(1, at(0));
        // The application had nothing to send while one segment was out; then it wrote three.
        sampler.limit(1);
        (1..4).for_each(|k| sampler.sent(1, at(10 * k)));
        let limited: Vec<bool> = (0..4)
            .map(|k| acknowledge(&mut sampler, 10 * k, 100 + 10 * k).expect("it took a round trip").is_app_limited)
            .collect();
        assert_eq!(limited, [false, true, true, true]);
        assert!(!sampler.is_limited(), "the gap was delivered");
        sampler.sent(1, at(140));
        assert!(!acknowledge(&mut sampler, 140, 240).expect("it took a round trip").is_app_limited);
    }

    #[test]
    fn no_sample_over_less_than_a_round_trip() {
        let mut sampler = Sampler::new(1_000);
        sampler.sent(1, at(0));
        assert!(acknowledge(&mut sampler, 0, 100).is_some());
        // Sent again at 290 ms, and told of by the acknowledgement of the first transmission at 300 ms.
        sampler.sent(1, at(200));
        sampler.sent(1, at(205));
        sampler.delivered_at = at(285);
        sampler.first_sent_at = at(285);
        sampler.resent(0, 1);
        sampler.begin(at(300));
        sampler.arrived(0, at(290), 1, true);
        assert_eq!((sampler.sample(), sampler.rtt()), (None, None));
    }
}
