//! [`Outstanding`] against a plain list of segments, each with what is known of it, under whatever order of events.

use super::Outstanding;
use crate::segment::SackBlocks;
use base::Time;
use proptest::prelude::*;

/// All that is known of a segment.
#[derive(Clone, Copy, Debug)]
struct Known {
    seq: u64,
    len: u64,
    is_sacked: bool,
    is_lost: bool,
    is_resent: bool,
    was_resent: bool,
}

/// What happens, in terms of the segments outstanding then.
#[derive(Clone, Copy, Debug)]
enum Event {
    Send(u32),
    /// Everything before this segment is acknowledged.
    Acknowledge(prop::sample::Index),
    /// Up to three runs of segments, by first and length, are reported.
    Report([(prop::sample::Index, usize); 3]),
    DetectLosses,
    LoseFront,
    LoseAll,
    Resend,
}

fn event() -> impl Strategy<Value = Event> {
    let run = (any::<prop::sample::Index>(), 0..5_usize);
    prop_oneof![
        6 => (1..1_500_u32).prop_map(Event::Send),
        2 => any::<prop::sample::Index>().prop_map(Event::Acknowledge),
        4 => [run.clone(), run.clone(), run].prop_map(Event::Report),
        3 => Just(Event::DetectLosses),
        1 => Just(Event::LoseFront),
        1 => Just(Event::LoseAll),
        4 => Just(Event::Resend),
    ]
}

/// The list, and beside it the records under test.
struct Both {
    list: Vec<Known>,
    sent: Outstanding,
    una: u64,
    nxt: u64,
    now: u64,
}

impl Both {
    fn happen(&mut self, event: Event) {
        self.now += 1;
        match event {
            Event::Send(len) => {
                self.sent.push(self.nxt, len, false, Time::from_ns(self.now));
                let fresh = Known {
                    seq: self.nxt,
                    len: len.into(),
                    is_sacked: false,
                    is_lost: false,
                    is_resent: false,
                    was_resent: false,
                };
                self.list.push(fresh);
                self.nxt += u64::from(len);
            }
            Event::Acknowledge(index) if !self.list.is_empty() => {
                let gone = index.index(self.list.len() + 1);
                let ack = self.list.get(gone).map_or(self.nxt, |known| known.seq);
                let is_measurable = gone > 0
                    && self.list[..gone].iter().all(|known| !known.was_resent)
                    && !self.list[gone - 1].is_sacked
                    && !self.list[gone - 1].is_lost;
                assert_eq!(self.sent.acknowledge(ack).is_some(), is_measurable);
                self.list.drain(..gone);
                self.una = ack;
            }
            // A receiver never reports the segment that it waits for.
            Event::Report(runs) if self.list.len() > 1 => {
                let mut blocks = SackBlocks::default();
                let mut news = 0;
                for (first, length) in runs {
                    let first = 1 + first.index(self.list.len() - 1);
                    let last = (first + length).min(self.list.len() - 1);
                    blocks.push(self.list[first].seq - self.una, self.list[last].seq + self.list[last].len - self.una);
                    for known in &mut self.list[first..=last] {
                        news += if known.is_sacked { 0 } else { known.len };
                        (known.is_sacked, known.is_lost, known.is_resent) = (true, false, false);
                    }
                }
                assert_eq!(self.sent.selective(&blocks, self.una), news);
            }
            Event::DetectLosses => {
                let mut above = 0;
                for known in self.list.iter_mut().rev() {
                    known.is_lost |= !known.is_sacked && above >= 3;
                    above += u32::from(known.is_sacked);
                }
                self.sent.detect_losses();
            }
            Event::LoseFront => {
                // The sender only does so to the segment that the receiver waits for.
                if let Some(known) = self.list.first_mut().filter(|known| !known.is_sacked) {
                    (known.is_lost, known.is_resent) = (true, false);
                    self.sent.lose_front();
                }
            }
            Event::LoseAll => {
                for known in self.list.iter_mut().filter(|known| !known.is_sacked) {
                    (known.is_lost, known.is_resent) = (true, false);
                }
                self.sent.lose_all();
            }
            Event::Resend => {
                if let Some(known) = self.list.iter_mut().find(|known| known.is_lost && !known.is_resent) {
                    assert_eq!(self.sent.next_lost().map(|record| record.seq), Some(known.seq));
                    (known.is_resent, known.was_resent) = (true, true);
                    self.sent.resent(Time::from_ns(self.now));
                }
            }
            Event::Acknowledge(_) | Event::Report(_) => {}
        }
    }

    fn agree(&mut self) {
        let sum =
            |of: fn(&Known) -> bool| self.list.iter().filter(|known| of(known)).map(|known| known.len).sum::<u64>();
        // RFC 6675 §4: in the network is what is neither reported nor lost, and what was sent again.
        let pipe = sum(|known| !known.is_sacked && !known.is_lost) + sum(|known| known.is_resent);
        let in_flight = self.nxt - self.una;
        assert_eq!(self.sent.pipe(in_flight), pipe);
        let count = |of: fn(&Known) -> bool| self.list.iter().filter(|known| of(known)).count();
        let segments = count(|known| !known.is_sacked && !known.is_lost) + count(|known| known.is_resent);
        assert_eq!(self.sent.pipe_segments() as usize, segments);
        assert!(pipe <= in_flight + sum(|known| known.is_resent));
        assert_eq!(self.sent.has_sacked(), self.list.iter().any(|known| known.is_sacked));
        assert_eq!(self.sent.is_front_lost(), self.list.first().is_some_and(|known| known.is_lost));
        let next = self.list.iter().find(|known| known.is_lost && !known.is_resent).map(|known| known.seq);
        assert_eq!(self.sent.next_lost().map(|record| record.seq), next);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_records_agree_with_a_list(events in prop::collection::vec(event(), 1..150)) {
        let mut both = Both { list: vec![], sent: Outstanding::new(false), una: 1, nxt: 1, now: 0 };
        for event in events {
            both.happen(event);
            both.agree();
        }
    }
}
