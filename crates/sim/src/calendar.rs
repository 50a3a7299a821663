//! A [`Calendar`] holds packets on their way to a link or to hosts, and gives them out in their order.
//!
//! The order is `(time, source, order of putting in)`. A day of the calendar is so short that it holds a packet or two.
//! A packet is hung onto its day without a look at the others:
//!
//! ```text
//!   number   opened_until       + 1      + 2      + 3            + DAYS - 1
//!    ┌──────────┐ ┌──────┐   ┌──────┐ ┌──────┐ ┌──────┐    ┌──────┐
//!    │ opened:  │ │ head ─┼─▶ │ head │ │      │ │ head ┼─▶  │      │   later: `far`,
//!    │ ▪ ▪ ▫ ▫ ▫│ └──────┘ ▫  └──┼───┘ └──────┘ └──────┘ ▫  └──────┘   looked through twice a turn
//!    └────▲─────┘                ▼
//!       gone                   ▫ ─▶ ▫
//! ```
//!
//! When packets are asked for until some instant, all days until then are opened, one after the other. Packets of one
//! day are put into their order then; most days have one.

use crate::packets::Parcel;
use aqm::Due;
use base::{Span, Time};

/// A packet in its day.
#[derive(Clone, Copy)]
struct Entry {
    /// Nanoseconds since the start of the day.
    offset: u32,
    source: u32,
    packet: Parcel,
}

/// The number of days. Packets that are due later wait in a list of their own, `far`.
const DAYS: usize = 1 << 14;
/// Words of bits for all of them.
const WORDS: usize = DAYS / 64;
/// So many words are looked through for the next day while packets come.
const NEAR: usize = 1;
const NIL: u32 = u32::MAX;
/// Days with more packets than this are not sorted by insertion.
const INSERTS: usize = 24;

/// A collection of packets by the time when they are due.
pub struct Calendar {
    /// The packet that was put in last of each day.
    heads: Box<[u32; DAYS]>,
    /// A bit for each day that holds something.
    occupied: Box<[u64; WORDS]>,
    entries: Vec<Entry>,
    /// For each entry the one that was put into its day before it, or the next free place. This lies apart from the
    /// entries, so that walking a list does not have to wait for them.
    next: Vec<u32>,
    free: u32,
    /// A day spans 2^shift nanoseconds.
    shift: u32,
    /// The packets of the days that were opened last, in order.
    opened: Vec<Due<Parcel>>,
    /// How many packets of the open days have gone.
    gone: usize,
    /// The number of the first day that is not open.
    opened_until: u64,
    /// Packets that are due on this day or later go into `far`.
    horizon: u64,
    far: Vec<Due<Parcel>>,
    /// The first day on which a packet in `far` is due.
    far_from: u64,
    /// The day on which all of `far` is looked through, in good time before it is needed.
    far_number: u64,
    /// Nothing but packets of open days is due before this.
    next_start: Time,
}

impl Calendar {
    /// An empty calendar whose days span 2^`shift` nanoseconds. It is fastest with about one packet a day.
    pub fn new(shift: u32) -> Self {
        assert!(shift <= u32::BITS, "a time within a day has its bits");
        Self {
            heads: vec![NIL; DAYS].try_into().expect("it is so long"),
            occupied: vec![0; WORDS].try_into().expect("it is so long"),
            entries: Vec::with_capacity(64),
            next: Vec::with_capacity(64),
            free: NIL,
            shift,
            opened: Vec::with_capacity(64),
            gone: 0,
            opened_until: 0,
            horizon: DAYS as u64,
            far: Vec::new(),
            far_from: u64::MAX,
            far_number: u64::MAX,
            next_start: Time::NEVER,
        }
    }

    /// The last start of a day that is not after `at`.
    #[inline]
    pub const fn day_before(&self, at: Time) -> Time {
        Time::from_ns(at.ns() >> self.shift << self.shift)
    }

    /// Adds a packet of `source` that is due at `at`, which is not before what has gone.
    #[inline(always)]
    pub fn push(&mut self, at: Time, source: u32, packet: Parcel) {
        let number = at.ns() >> self.shift;
        let (place, day) = (self.free, number as usize % DAYS);
        let (Some(entry), Some(next)) = (self.entries.get_mut(place as usize), self.next.get_mut(place as usize))
        else {
            return self.push_otherwise(Due { at, source, packet });
        };
        if number < self.opened_until || number >= self.horizon {
            return self.push_otherwise(Due { at, source, packet });
        }
        *entry = Entry { offset: (at.ns() - (number << self.shift)) as u32, source, packet };
        self.free = std::mem::replace(next, std::mem::replace(&mut self.heads[day], place));
        self.occupied[day / 64] |= 1 << (day % 64);
        self.next_start = self.next_start.min(Time::from_ns(number << self.shift));
    }

    /// Adds a packet for which there is no place yet, or whose day is open already, or far.
    #[cold]
    #[inline(never)]
    fn push_otherwise(&mut self, due: Due<Parcel>) {
        let number = due.at.ns() >> self.shift;
        if number < self.opened_until {
            let last = self.opened[..self.gone].last().map_or(Time::ZERO, |gone| gone.at);
            assert!(due.at >= last, "nothing is due before what has gone");
            let key = |due: &Due<Parcel>| (due.at, due.source);
            let place = self.opened[self.gone..].partition_point(|other| key(other) <= key(&due));
            return self.opened.insert(self.gone + place, due);
        }
        if number < self.horizon {
            self.free = self.entries.len() as u32;
            self.entries.push(Entry { offset: 0, source: 0, packet: due.packet });
            self.next.push(NIL);
            return self.push(due.at, due.source, due.packet);
        }
        if self.far.is_empty() {
            self.far_number = self.opened_until + DAYS as u64 / 2;
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
        if self.gone == self.opened.len() && self.next_start < before {
            self.open(before);
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

    /// The packet that so many others go before, if its day is open.
    #[inline]
    pub fn ahead(&self, others: usize) -> Option<&Due<Parcel>> {
        self.opened.get(self.gone + others)
    }

    /// Removes so many of the packets that were due.
    #[inline]
    pub fn went(&mut self, count: usize) {
        self.gone += count;
    }

    /// Opens all days that start before `before`, after all packets of the open days have gone.
    #[inline(never)]
    fn open(&mut self, before: Time) {
        self.opened.clear();
        self.gone = 0;
        let end = ((before.ns() - 1) >> self.shift) + 1;
        while self.next_start < before {
            let number = self.next_start.ns() >> self.shift;
            if number == self.far_number {
                self.opened_until = number;
                self.take_far();
            }
            let (turn, were_open) = (self.opened_until + DAYS as u64, self.opened.len());
            self.open_days(number, end.min(self.far_number).min(turn));
            self.horizon = self.far_from.min(self.opened_until + DAYS as u64);
            // Mostly another packet comes before the end of what is looked through at first.
            let words = if self.opened.len() > were_open { NEAR } else { WORDS };
            let next = self.next_occupied(self.opened_until, words).min(self.far_number);
            self.next_start = if next == u64::MAX { Time::NEVER } else { Time::from_ns(next << self.shift) };
        }
    }

    /// Opens the days from `number` until `until`, which are a turn at most.
    #[inline]
    fn open_days(&mut self, mut number: u64, until: u64) {
        while number < until {
            let (word, first) = (number as usize % DAYS / 64, number % 64);
            let days = (64 - first).min(until - number);
            let mask = u64::MAX >> (64 - days) << first;
            let mut bits = self.occupied[word] & mask;
            self.occupied[word] &= !mask;
            while bits != 0 {
                let day = u64::from(bits.trailing_zeros());
                self.open_day(number - first + day);
                self.opened_until = number - first + day + 1;
                bits &= bits - 1;
            }
            number += days;
        }
    }

    /// Adds the packets of a day, of which there are some, to those that are open.
    #[inline]
    fn open_day(&mut self, number: u64) {
        let start = self.opened.len();
        let day_start = Time::from_ns(number << self.shift);
        let mut place = std::mem::replace(&mut self.heads[number as usize % DAYS], NIL);
        while let (Some(entry), Some(next)) = (self.entries.get(place as usize), self.next.get_mut(place as usize)) {
            let &Entry { offset, source, packet } = entry;
            self.opened.push(Due { at: day_start + Span::from_ns(offset.into()), source, packet });
            let before = std::mem::replace(next, self.free);
            self.free = std::mem::replace(&mut place, before);
        }
        if self.opened.len() > start + 1 {
            sort(&mut self.opened[start..]);
        }
    }

    /// Moves packets out of `far` whose day the calendar now has.
    #[cold]
    fn take_far(&mut self) {
        (self.far_from, self.far_number) = (u64::MAX, u64::MAX);
        self.horizon = self.opened_until + DAYS as u64;
        for due in std::mem::take(&mut self.far) {
            self.push(due.at, due.source, due.packet);
        }
    }

    /// The first day from `number` on that holds something, or one before which no day does: so many words are looked
    /// through after the first. The largest number if these are all, and no day holds anything.
    #[inline]
    fn next_occupied(&self, number: u64, words: usize) -> u64 {
        let (first, mut ahead) = (number as usize % DAYS / 64, number - number % 64);
        let mut bits = self.occupied[first] & (u64::MAX << (number % 64));
        for step in 1..=words {
            if bits != 0 {
                break;
            }
            (bits, ahead) = (self.occupied[(first + step) % WORDS], ahead + 64);
        }
        match bits {
            0 if words == WORDS => u64::MAX,
            0 => ahead + 64,
            _ => ahead + u64::from(bits.trailing_zeros()),
        }
    }
}

/// Brings packets of one day into their order. The one that was put in last comes first.
#[inline(never)]
fn sort(day: &mut [Due<Parcel>]) {
    let key = |due: &Due<Parcel>| (due.at, due.source);
    day.reverse();
    if day.len() > INSERTS {
        // A stable sort keeps the order of putting in.
        return day.sort_by_key(key);
    }
    for from in 1..day.len() {
        let due = day[from];
        let mut place = from;
        while place > 0 && key(&day[place - 1]) > key(&due) {
            day[place] = day[place - 1];
            place -= 1;
        }
        day[place] = due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Ecn, FlowKey, Stream};
    use net::Step;
    use std::collections::BTreeSet;

    /// Against an ordered set, over gaps from nanoseconds to many turns of the calendar, days of one packet and of more
    /// than have numbers.
    #[test]
    fn gives_out_the_total_order() {
        for (shift, most_gap, burst) in
            [(12, 25, 3), (16, 25, 3), (12, 36, 3), (24, 20, 3), (20, 28, 6_000), (18, 38, 40)]
        {
            let mut stream = Stream::named(u64::from(shift), "calendar");
            let mut calendar = Calendar::new(shift);
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
