//! A [`Calendar`] holds packets on their way to a link or to hosts, and gives them out in their order.
//!
//! The order is `(time, source, order of putting in)`. Each day of the calendar is an unsorted list, to which a packet
//! is added without a look at the others. A day is sorted once, when it comes and is opened:
//!
//! ```text
//!   number  opened        + 1      + 2      + 3                  + DAYS - 1
//!          ┌──────────┐ ┌──────┐ ┌──────┐ ┌──────┐    ┌──────┐
//!          │ sorted:  │ │ as   │ │ they │ │ came │    │      │   later: `far`,
//!          │ ▪ ▪ ▫ ▫ ▫│ │ ▫▫▫▫ │ │ ▫    │ │      │ .. │ ▫▫▫  │   looked through twice a turn
//!          └────▲─────┘ └──────┘ └──────┘ └──────┘    └──────┘
//!               gone
//! ```

use crate::packets::Parcel;
use aqm::Due;
use base::Time;

/// A packet in its day.
#[derive(Clone, Copy)]
struct Entry {
    /// Nanoseconds since the start of the day.
    offset: u32,
    source: u32,
    packet: Parcel,
}

/// The number of days. Packets that are due later wait in a list of their own, `far`.
const DAYS: usize = 1 << 12;
/// Bits of a time within its day. Together with those of a source and of a place in the day's list they make one number
/// to sort by.
const OFFSET_BITS: u32 = 24;
const SOURCE_BITS: u32 = 28;
const PLACE_BITS: u32 = 12;

/// A collection of packets by the time when they are due.
pub struct Calendar {
    days: Vec<Vec<Entry>>,
    /// A bit for each day that holds something.
    occupied: Vec<u64>,
    /// Lists that no day has at present.
    spare: Vec<Vec<Entry>>,
    /// A day spans 2^shift nanoseconds.
    shift: u32,
    /// The packets of the day that was opened last, in order.
    opened: Vec<Due<Parcel>>,
    /// How many packets of the open day have gone.
    gone: usize,
    /// The number of the open day, counted from the start of the run.
    number: u64,
    keys: Vec<u64>,
    /// Days with at most so many packets are sorted by insertion.
    inserts: usize,
    /// Packets that are due on this day or later go into `far`.
    horizon: u64,
    far: Vec<Due<Parcel>>,
    /// The first day on which a packet in `far` is due.
    far_from: u64,
    /// The day on which all of `far` is looked through, in good time before it is needed.
    far_number: u64,
    /// Nothing but packets of the open day is due before this.
    next_start: Time,
}

impl Calendar {
    /// An empty calendar whose days span 2^`shift` nanoseconds. It is fastest with about a dozen packets a day.
    pub fn new(shift: u32) -> Self {
        assert!(shift <= OFFSET_BITS, "a time within a day has its bits");
        Self {
            days: vec![Vec::new(); DAYS],
            occupied: vec![0; DAYS / 64],
            spare: Vec::new(),
            shift,
            opened: Vec::with_capacity(64),
            gone: 0,
            number: 0,
            keys: Vec::with_capacity(64),
            inserts: 1,
            horizon: DAYS as u64,
            far: Vec::new(),
            far_from: u64::MAX,
            far_number: u64::MAX,
            next_start: Time::NEVER,
        }
    }

    /// An empty calendar for packets that are mostly put in in the order in which they are due.
    pub fn of_rows(shift: u32) -> Self {
        Self { inserts: 32, ..Self::new(shift) }
    }

    /// The last start of a day that is not after `at`.
    #[inline]
    pub const fn day_before(&self, at: Time) -> Time {
        Time::from_ns(at.ns() >> self.shift << self.shift)
    }

    /// Adds a packet of `source` that is due at `at`, which is not before the open day.
    #[inline(always)]
    pub fn push(&mut self, at: Time, source: u32, packet: Parcel) {
        let number = at.ns() >> self.shift;
        let offset = (at.ns() - (number << self.shift)) as u32;
        let day = &mut self.days[number as usize % DAYS];
        if number <= self.number || number >= self.horizon || day.len() == day.capacity() {
            return self.push_otherwise(Due { at, source, packet });
        }
        day.push(Entry { offset, source, packet });
    }

    /// Adds a packet whose day has no room yet, is open already, or is far.
    #[cold]
    #[inline(never)]
    fn push_otherwise(&mut self, due: Due<Parcel>) {
        let number = due.at.ns() >> self.shift;
        if number == self.number {
            let last = self.opened[..self.gone].last().map_or(Time::ZERO, |gone| gone.at);
            assert!(due.at >= last, "nothing is due before what has gone");
            let key = |due: &Due<Parcel>| (due.at, due.source);
            let place = self.opened[self.gone..].partition_point(|other| key(other) <= key(&due));
            return self.opened.insert(self.gone + place, due);
        }
        assert!(number > self.number, "nothing is due on a day that is over");
        if number < self.horizon {
            let index = number as usize % DAYS;
            let day = &mut self.days[index];
            if day.is_empty() {
                self.occupied[index / 64] |= 1 << (index % 64);
                self.next_start = self.next_start.min(Time::from_ns(number << self.shift));
                *day = self.spare.pop().unwrap_or_default();
            }
            let offset = (due.at.ns() - (number << self.shift)) as u32;
            return day.push(Entry { offset, source: due.source, packet: due.packet });
        }
        if self.far.is_empty() {
            self.far_number = self.number + DAYS as u64 / 2;
        }
        self.far_from = self.far_from.min(number);
        // All packets from this day on are far, so that those of one instant stay in their order.
        self.horizon = self.horizon.min(number);
        self.next_start = self.next_start.min(Time::from_ns(self.far_number << self.shift));
        self.far.push(due);
    }

    /// A time before which nothing is due.
    #[inline]
    pub fn bound(&self) -> Time {
        self.opened.get(self.gone).map_or(self.next_start, |due| due.at)
    }

    /// The packets that are due next, in order, and a time before which no others are due: `before`, or the start of a
    /// day.
    #[inline]
    pub fn due(&mut self, before: Time) -> (&[Due<Parcel>], Time) {
        while self.gone == self.opened.len() && self.next_start < before {
            self.open_next();
        }
        (&self.opened[self.gone..], before.min(self.next_start))
    }

    /// Takes out the first packet if it is due before `before`.
    #[inline]
    pub fn first(&mut self, before: Time) -> Option<Due<Parcel>> {
        if self.gone == self.opened.len() {
            self.due(before);
        }
        self.opened.get(self.gone).copied().filter(|due| due.at < before)
    }

    /// Removes so many of the packets that were due.
    #[inline]
    pub fn went(&mut self, count: usize) {
        self.gone += count;
    }

    /// Opens the day at `next_start`, after all packets of the open day have gone.
    #[inline(never)]
    fn open_next(&mut self) {
        self.opened.clear();
        self.gone = 0;
        self.number = self.next_start.ns() >> self.shift;
        if self.number == self.far_number {
            self.take_far();
        }
        self.horizon = self.far_from.min(self.number + DAYS as u64);
        let index = self.number as usize % DAYS;
        if self.occupied[index / 64] >> (index % 64) & 1 != 0 {
            self.occupied[index / 64] &= !(1 << (index % 64));
            let mut day = std::mem::take(&mut self.days[index]);
            self.sort(&mut day);
            day.clear();
            self.spare.push(day);
        }
        let next = self.next_occupied(index).map_or(u64::MAX, |days| self.number + days);
        let next = next.min(self.far_number);
        self.next_start = if next == u64::MAX { Time::NEVER } else { Time::from_ns(next << self.shift) };
    }

    /// Puts the packets of `day` into `opened`, in their order.
    fn sort(&mut self, day: &mut [Entry]) {
        let start = self.number << self.shift;
        let due = |&Entry { offset, source, packet }: &Entry| Due {
            at: Time::from_ns(start + u64::from(offset)),
            source,
            packet,
        };
        if day.len() <= self.inserts {
            // Most of them are in order already.
            for entry in &*day {
                let due = due(entry);
                let mut place = self.opened.len();
                self.opened.push(due);
                while place > 0 && (self.opened[place - 1].at, self.opened[place - 1].source) > (due.at, due.source) {
                    self.opened[place] = self.opened[place - 1];
                    place -= 1;
                }
                self.opened[place] = due;
            }
            return;
        }
        if day.len() > 1 << PLACE_BITS {
            // There are more packets than a place has numbers. A stable sort keeps the order of putting in.
            day.sort_by_key(|entry| (entry.offset, entry.source));
            self.opened.extend(day.iter().map(due));
            return;
        }
        self.keys.clear();
        let key = |(place, entry): (u64, &Entry)| {
            u64::from(entry.offset) << (64 - OFFSET_BITS) | u64::from(entry.source) << PLACE_BITS | place
        };
        self.keys.extend((0..).zip(day.iter()).map(key));
        self.keys.sort_unstable();
        let place = |key: u64| (key & ((1 << PLACE_BITS) - 1)) as usize;
        self.opened.extend(self.keys.iter().map(|&key| due(&day[place(key)])));
    }

    /// Moves packets out of `far` whose day the calendar now has.
    #[cold]
    fn take_far(&mut self) {
        (self.far_from, self.far_number) = (u64::MAX, u64::MAX);
        self.horizon = self.number + DAYS as u64;
        for due in std::mem::take(&mut self.far) {
            self.push(due.at, due.source, due.packet);
        }
    }

    /// After how many days from the one at `index` the next is that holds something.
    fn next_occupied(&self, index: usize) -> Option<u64> {
        let from = (index + 1) % DAYS;
        let words = self.occupied.len();
        let mut bits = self.occupied[from / 64] & (u64::MAX << (from % 64));
        for step in 0..=words {
            let word = (from / 64 + step) % words;
            if step > 0 {
                bits = self.occupied[word];
            }
            if bits != 0 {
                let found = word * 64 + bits.trailing_zeros() as usize;
                return Some(((found + DAYS - from) % DAYS + 1) as u64);
            }
        }
        None
    }
}

const _: () = assert!(OFFSET_BITS + SOURCE_BITS + PLACE_BITS == 64 && OFFSET_BITS <= 32);

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Ecn, FlowKey, Span, Stream};
    use net::Step;
    use std::collections::BTreeSet;

    /// Against an ordered set, over gaps from nanoseconds to many turns of the calendar, days of one packet and of more
    /// than have numbers.
    #[test]
    fn gives_out_the_total_order() {
        for (shift, most_gap, burst, in_rows) in [
            (14, 25, 3, false),
            (14, 25, 3, true),
            (14, 34, 3, false),
            (24, 20, 3, true),
            (20, 28, 6_000, false),
            (20, 38, 40, true),
        ] {
            let mut stream = Stream::named(u64::from(shift), "calendar");
            let mut calendar = if in_rows { Calendar::of_rows(shift) } else { Calendar::new(shift) };
            let mut reference = BTreeSet::<(u64, u32, u32)>::new();
            let (mut now, mut number) = (0, 0);
            for step in 0..60_000_u64 {
                let pushes = if step % 10_000 == 0 { burst } else { u64::from(step % 100 < 60) * 2 };
                for _ in 0..pushes {
                    let at = now + (stream.bits() >> (64 - most_gap + stream.below(most_gap)));
                    // Often at an instant at which something is due already.
                    let at = reference.range((at, 0, 0)..).next().map_or(at, |&(other, ..)| other);
                    let source = stream.below(3) as u32;
                    number += 1;
                    let packet = Parcel::tcp(FlowKey(1), Step::default(), number, 40, Ecn::NotEct, 0, 0);
                    calendar.push(Time::from_ns(at), source, packet);
                    reference.insert((at, source, number));
                }
                let wanted = reference.pop_first();
                let at = wanted.map_or(Time::NEVER, |(at, ..)| Time::from_ns(at));
                assert!(calendar.bound() <= at);
                assert!(calendar.first(at).is_none(), "nothing is due before");
                let found = calendar.first(at + Span::from_ns(1));
                calendar.went(usize::from(found.is_some()));
                assert_eq!(found.map(|due| (due.at.ns(), due.source, due.packet.place())), wanted);
                now = wanted.map_or(now, |(at, ..)| at);
            }
        }
    }
}
