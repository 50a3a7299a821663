//! The event queue is a hierarchical timing wheel that gives events out in a total order.
//!
//! The order is `(time, rank, source, sequence)`: events of one instant are ordered by their kind ([`Rank`]), then by
//! their source, then by when they were asked for. Nothing depends on how the wheel stores them.
//!
//! The wheel has three levels of slots. An event sits in the finest level if that reaches it from now. Otherwise it
//! sits in the finest coarser level whose current turn includes it, and moves down when its slot comes. A slot is
//! sorted when it is opened. Events are linked nodes of one slab, so that nothing is allocated once the slab has grown
//! to the largest number of pending events.
//!
//! ```text
//!   coarse  │      │      │  ●   │      │   a slot is a whole turn of the finer level
//!           ╰──┬───╯ its events move down when it comes
//!   finer   │ ││ │●│ ││●│ │
//!           ╰──┬──╯
//!   finest  │││││●││││●●│││
//!                ╰─ open: sorted, and given out one by one
//! ```

use base::{Time, fetch};
use net::Rank;

/// An event that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event<W> {
    /// When.
    pub at: Time,
    /// What kind.
    pub rank: Rank,
    /// Whose.
    pub source: u32,
    /// What it is about.
    pub what: W,
}

/// The number of slots of the finest level, and of each coarser one, as powers of two.
const FINE_BITS: u32 = 14;
const COARSE_BITS: u32 = 11;
const LEVELS: usize = 3;
const NIL: u32 = u32::MAX;
/// The largest source of an event.
const SOURCES: u32 = (1 << 28) - 1;

/// A pending event. With two words of `what` it takes half a cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Node<W> {
    at: u64,
    /// Rank, source, sequence, from the most significant bit down.
    order: u64,
    what: W,
}

impl<W> Node<W> {
    #[inline]
    fn event(self) -> Event<W> {
        let (rank, source) = (self.rank(), (self.order >> 32) as u32 & SOURCES);
        Event { at: Time::from_ns(self.at), rank, source, what: self.what }
    }

    #[inline]
    fn key(&self) -> (u64, u64) {
        (self.at, self.order)
    }

    #[inline]
    const fn rank(&self) -> Rank {
        match self.order >> 60 {
            0 => Rank::Arrive,
            1 => Rank::Lose,
            2 => Rank::Deliver,
            3 => Rank::Wake,
            _ => Rank::Demand,
        }
    }
}

struct Level {
    heads: Vec<u32>,
    occupied: Vec<u64>,
    /// A slot spans 2^shift nanoseconds.
    shift: u32,
}

impl Level {
    fn new(bits: u32, shift: u32) -> Self {
        Self { heads: vec![NIL; 1 << bits], occupied: vec![0; (1 << bits) / 64], shift }
    }

    #[inline]
    fn slot_of(&self, at: u64) -> usize {
        (at >> self.shift) as usize & (self.heads.len() - 1)
    }

    /// The first occupied slot from `slot` on, within this turn.
    fn next_occupied(&self, slot: usize) -> Option<usize> {
        let mut word = slot / 64;
        let mut bits = self.occupied.get(word)? & (u64::MAX << (slot % 64));
        loop {
            if bits != 0 {
                return Some(word * 64 + bits.trailing_zeros() as usize);
            }
            word += 1;
            bits = *self.occupied.get(word)?;
        }
    }
}

/// Pending events.
pub struct EventQueue<W> {
    levels: [Level; LEVELS],
    nodes: Vec<Node<W>>,
    /// The node after each node, in its slot or among the free ones. This lies apart from the nodes, so that walking a
    /// list does not have to load them.
    next: Vec<u32>,
    free: u32,
    /// The open slot's events, the next one last.
    open: Vec<Node<W>>,
    /// All events before this instant are in `open`.
    opened_until: u64,
    sequence: u32,
    /// How many events are in slots that are not open.
    waiting: usize,
    /// A time before which nothing is due.
    bound: Time,
}

impl<W: Copy> EventQueue<W> {
    /// An empty queue whose finest slots span 2^`shift` nanoseconds. It is fastest with a few events in each.
    pub fn new(shift: u32) -> Self {
        let coarse = |level: u32| Level::new(COARSE_BITS, shift + FINE_BITS + level * COARSE_BITS);
        Self {
            levels: [Level::new(FINE_BITS, shift), coarse(0), coarse(1)],
            nodes: Vec::with_capacity(1 << 12),
            next: Vec::with_capacity(1 << 12),
            free: NIL,
            open: Vec::with_capacity(64),
            opened_until: 1 << shift,
            sequence: 0,
            waiting: 0,
            bound: Time::NEVER,
        }
    }

    /// Asks for an event at `at`; `source` is below 2^28 and orders events of one instant and rank.
    #[inline(never)]
    pub fn push(&mut self, at: Time, rank: Rank, source: u32, what: W) {
        self.push_here(at, rank, source, what);
    }

    /// [`EventQueue::push`], written where it is called from.
    #[inline(always)]
    pub fn push_here(&mut self, at: Time, rank: Rank, source: u32, what: W) {
        if self.sequence == u32::MAX {
            self.number_anew();
        }
        self.sequence += 1;
        let order = (rank as u64) << 60 | u64::from(source & SOURCES) << 32 | u64::from(self.sequence);
        let node = Node { at: at.ns(), order, what };
        self.bound = self.bound.min(at);
        if node.at < self.opened_until {
            return self.insert_open(node);
        }
        self.waiting += 1;
        let index = self.free;
        if let Some(slot) = self.nodes.get_mut(index as usize) {
            *slot = node;
            self.free = self.next[index as usize];
            self.link(index, node.at);
        } else {
            self.nodes.push(node);
            self.next.push(NIL);
            self.link(self.nodes.len() as u32 - 1, node.at);
        }
    }

    /// Numbers the pending events anew from zero, in their order, since there are no sequence numbers left after four
    /// billion events.
    #[cold]
    fn number_anew(&mut self) {
        // Nodes that hold nothing are numbered, too, which does no harm.
        let mut nodes: Vec<&mut Node<W>> = self.open.iter_mut().chain(&mut self.nodes).collect();
        nodes.sort_unstable_by_key(|node| node.order as u32);
        self.sequence = 0;
        for node in nodes {
            self.sequence += 1;
            node.order = node.order >> 32 << 32 | u64::from(self.sequence);
        }
    }

    /// A time before which nothing is due: what [`EventQueue::next_at`] said last, or an event that was added since.
    #[inline]
    pub const fn bound(&self) -> Time {
        self.bound
    }

    /// When the next event is due; [`Time::NEVER`] if there is none.
    #[inline(always)]
    pub fn next_at(&mut self) -> Time {
        if self.open.is_empty() {
            self.open_next();
        }
        self.bound = self.open.last().map_or(Time::NEVER, |node| Time::from_ns(node.at));
        self.bound
    }

    /// The next event, after [`EventQueue::next_at`] has found it, if it `is` one of these.
    #[inline(always)]
    pub fn pop_if(&mut self, is: impl FnOnce(Time, Rank) -> bool) -> Option<Event<W>> {
        let event = self.open.pop_if(|node| is(Time::from_ns(node.at), node.rank()))?.event();
        // What comes later in the open slot comes first.
        self.bound = self.open.last().map_or(event.at, |node| Time::from_ns(node.at));
        Some(event)
    }

    /// The event that so many others go before, if its slot is open.
    #[inline]
    pub fn ahead(&self, others: usize) -> Option<Event<W>> {
        self.open.len().checked_sub(others + 1).map(|place| self.open[place].event())
    }

    #[inline]
    fn insert_open(&mut self, node: Node<W>) {
        // Mostly the new event comes late in the open slot, and late events stand first here.
        let place = self.open.partition_point(|other| other.key() > node.key());
        let last = self.open.len();
        self.open.push(node);
        if place < last {
            self.open.copy_within(place..last, place + 1);
            self.open[place] = node;
        }
    }

    #[inline]
    fn link(&mut self, index: u32, at: u64) {
        let fine = &self.levels[0];
        let ahead = (at >> fine.shift) - (self.opened_until >> fine.shift);
        let mut level = 0;
        if ahead >= fine.heads.len() as u64 {
            // The finest level whose current turn includes `at`: the bits above its slot's agree with the present.
            let differs = at ^ self.opened_until;
            level = 1;
            while level + 1 < LEVELS && differs >> self.levels[level + 1].shift != 0 {
                level += 1;
            }
        }
        let level = &mut self.levels[level];
        let slot = level.slot_of(at);
        self.next[index as usize] = level.heads[slot];
        level.heads[slot] = index;
        level.occupied[slot / 64] |= 1 << (slot % 64);
    }

    #[inline]
    fn unlink_all(&mut self, level: usize, slot: usize) -> u32 {
        let level = &mut self.levels[level];
        level.occupied[slot / 64] &= !(1 << (slot % 64));
        std::mem::replace(&mut level.heads[slot], NIL)
    }

    /// Opens the next slot that holds something, if there is one.
    #[inline(never)]
    fn open_next(&mut self) {
        if self.waiting == 0 {
            return;
        }
        loop {
            let fine = &self.levels[0];
            if let Some(slot) = fine.next_occupied(fine.slot_of(self.opened_until)) {
                let turn = self.opened_until >> self.levels[1].shift << self.levels[1].shift;
                self.opened_until = turn + ((slot as u64 + 1) << self.levels[0].shift);
                let mut index = self.unlink_all(0, slot);
                while let Some(next) = self.next.get_mut(index as usize) {
                    self.open.push(self.nodes[index as usize]);
                    let following = std::mem::replace(next, self.free);
                    self.free = std::mem::replace(&mut index, following);
                }
                self.waiting -= self.open.len();
                if self.open.len() > 1 {
                    self.open.sort_unstable_by_key(|node| std::cmp::Reverse(node.key()));
                }
                if self.opened_until >> self.levels[1].shift != turn >> self.levels[1].shift {
                    self.enter_turn();
                }
                return self.fetch_slot();
            }
            self.next_turn();
        }
    }

    /// Asks for the events of the slot that is opened next, if it is the one after this.
    fn fetch_slot(&self) {
        let fine = &self.levels[0];
        let mut index = fine.heads[fine.slot_of(self.opened_until)];
        while let Some(&next) = self.next.get(index as usize) {
            fetch(&self.nodes[index as usize]);
            index = next;
        }
    }

    /// Goes to the next turn that holds something, since nothing is left in this turn of the finest level.
    fn next_turn(&mut self) {
        // The finest level reaches into the next turn.
        if self.levels[0].next_occupied(0).is_some() {
            let shift = self.levels[1].shift;
            self.opened_until = ((self.opened_until >> shift) + 1) << shift;
            return self.enter_turn();
        }
        for level in 1..LEVELS {
            let Level { heads, shift, .. } = &self.levels[level];
            let (mask, shift) = (heads.len() as u64 - 1, *shift);
            let next = (self.opened_until >> shift) + 1;
            let is_coarsest = level + 1 == LEVELS;
            if next & mask == 0 && !is_coarsest {
                // This level's own turn is over as well.
                continue;
            }
            if let Some(slot) = self.levels[level].next_occupied((next & mask) as usize) {
                self.opened_until = (next & !mask | slot as u64) << shift;
                return self.enter_turn();
            }
            if is_coarsest {
                // The coarsest level has no turn above it, and starts again from its first slot.
                self.opened_until = ((next | mask) + 1) << shift;
                return self.enter_turn();
            }
        }
    }

    /// Moves events down from the coarser levels, since a turn has just begun at `opened_until`.
    fn enter_turn(&mut self) {
        for level in (1..LEVELS).rev() {
            let slot = self.levels[level].slot_of(self.opened_until);
            let mut index = self.unlink_all(level, slot);
            while let Some(&next) = self.next.get(index as usize) {
                self.link(index, self.nodes[index as usize].at);
                index = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Stream;
    use std::collections::BTreeSet;

    /// Against an ordered set, over gaps from nanoseconds to hours, and over the end of the numbers.
    #[test]
    fn gives_out_the_total_order() {
        for (shift, sequence) in [(4, 0), (10, u32::MAX - 100_000), (15, 0)] {
            let mut stream = Stream::named(u64::from(shift), "queue");
            let mut queue = EventQueue { sequence, ..EventQueue::new(shift) };
            let mut reference = BTreeSet::new();
            let (mut now, mut sequence) = (0, 0_u32);
            for step in 0..200_000 {
                let pushes = if step % 1000 < 500 { 2 } else { 0 };
                for _ in 0..pushes {
                    let gap = stream.bits() >> (20 + stream.below(44));
                    let (rank, source) = (stream.below(5) as u8, stream.below(3) as u32);
                    sequence += 1;
                    let kind = [Rank::Arrive, Rank::Lose, Rank::Deliver, Rank::Wake, Rank::Demand][rank as usize];
                    queue.push(Time::from_ns(now + gap), kind, source, sequence);
                    reference.insert((now + gap, rank, source, sequence));
                }
                let wanted = reference.pop_first();
                assert_eq!(queue.next_at(), wanted.map_or(Time::NEVER, |(at, ..)| Time::from_ns(at)));
                let found = queue.pop_if(|_, _| true);
                assert_eq!(found.map(|e| (e.at.ns(), e.rank as u8, e.what)), wanted.map(|(at, r, _, q)| (at, r, q)));
                now = wanted.map_or(now, |(at, ..)| at);
            }
            while let Some((at, rank, _, q)) = reference.pop_first() {
                assert_eq!(queue.next_at(), Time::from_ns(at));
                assert_eq!(queue.pop_if(|_, _| true).map(|e| (e.at.ns(), e.rank as u8, e.what)), Some((at, rank, q)));
            }
            assert_eq!((queue.next_at(), queue.pop_if(|_, _| true)), (Time::NEVER, None));
        }
    }
}
