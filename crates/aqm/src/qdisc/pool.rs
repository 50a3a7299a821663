//! A pool is one store for the packets of many queues. A queue is two numbers into it. Nothing is allocated once the
//! pool has been as full as it gets.

use super::Held;
use crate::packet::{Backlog, Packet};

/// "No place".
const NONE: u32 = u32::MAX;

/// The store.
#[derive(Clone, Debug)]
pub struct Pool<P> {
    places: Vec<Place<P>>,
    /// The first of the free places, linked by `next`.
    free: u32,
}

#[derive(Clone, Debug)]
struct Place<P> {
    held: Option<Held<P>>,
    before: u32,
    next: u32,
}

/// A first-in-first-out queue in a [`Pool`], which is always the same one.
#[derive(Clone, Debug)]
pub struct Queue {
    head: u32,
    tail: u32,
    backlog: Backlog,
}

impl Default for Queue {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, backlog: Backlog::default() }
    }
}

impl Queue {
    /// How much is in it.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Whether nothing is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

impl<P> Default for Pool<P> {
    fn default() -> Self {
        Self { places: Vec::with_capacity(64), free: NONE }
    }
}

impl<P: Packet> Pool<P> {
    /// Puts a packet at the end of `queue`.
    #[inline]
    pub fn push(&mut self, queue: &mut Queue, held: Held<P>) {
        queue.backlog.packets += 1;
        queue.backlog.bytes += u64::from(held.packet.size());
        let place = Place { held: Some(held), before: queue.tail, next: NONE };
        let at = if self.free == NONE {
            self.places.push(place);
            self.places.len() as u32 - 1
        } else {
            let at = self.free;
            self.free = std::mem::replace(&mut self.places[at as usize], place).next;
            at
        };
        match queue.tail {
            NONE => queue.head = at,
            tail => self.places[tail as usize].next = at,
        }
        queue.tail = at;
    }

    /// Takes the packet at the head of `queue`.
    #[inline]
    pub fn pop(&mut self, queue: &mut Queue) -> Option<Held<P>> {
        self.remove_after(queue, NONE)
    }

    /// Takes the packet at the end of `queue`.
    pub fn pop_tail(&mut self, queue: &mut Queue) -> Option<Held<P>> {
        let before = self.places.get(queue.tail as usize)?.before;
        self.remove_after(queue, before)
    }

    /// The packet at the head of `queue`.
    #[inline]
    pub fn head(&self, queue: &Queue) -> Option<&Held<P>> {
        self.places.get(queue.head as usize).and_then(|place| place.held.as_ref())
    }

    /// The packets of `queue` from its head on, each with the place of the one before it, as [`Pool::remove_after`]
    /// wants it.
    pub fn iter<'a>(&'a self, queue: &Queue) -> impl Iterator<Item = (u32, &'a Held<P>)> + use<'a, P> {
        let (mut before, mut at) = (NONE, queue.head);
        std::iter::from_fn(move || {
            let place = self.places.get(at as usize)?;
            let item = (before, place.held.as_ref().expect("a linked place holds a packet"));
            (before, at) = (at, place.next);
            Some(item)
        })
    }

    /// Takes the packet behind the place `before` out of `queue`.
    pub fn remove_after(&mut self, queue: &mut Queue, before: u32) -> Option<Held<P>> {
        let at = match before {
            NONE => queue.head,
            before => self.places[before as usize].next,
        };
        let place = self.places.get_mut(at as usize)?;
        let held = place.held.take().expect("a linked place holds a packet");
        let next = std::mem::replace(&mut place.next, self.free);
        self.free = at;
        match before {
            NONE => queue.head = next,
            before => self.places[before as usize].next = next,
        }
        match next {
            NONE => queue.tail = before,
            next => self.places[next as usize].before = before,
        }
        queue.backlog.packets -= 1;
        queue.backlog.bytes -= u64::from(held.packet.size());
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Ecn, FlowKey, Stream};
    use std::collections::VecDeque;

    #[derive(Clone, Copy)]
    struct Sized(u32);

    impl Packet for Sized {
        fn size(&self) -> u32 {
            self.0
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }
        fn mark(&mut self) {}
        fn flow(&self) -> FlowKey {
            FlowKey(0)
        }
    }

    #[test]
    fn queues_in_one_store_do_what_queues_of_their_own_do() {
        let mut stream = Stream::named(1, "pool");
        let mut pool = Pool::default();
        let mut queues: [Queue; 3] = Default::default();
        let mut plain: [VecDeque<u32>; 3] = Default::default();
        for size in 1..50_000 {
            let which = stream.below(3) as usize;
            let (queue, plain) = (&mut queues[which], &mut plain[which]);
            let (got, expected) = match stream.below(8) {
                0..4 => {
                    pool.push(queue, Held { packet: Sized(size), enqueued: base::Time::ZERO });
                    plain.push_back(size);
                    (None, None)
                }
                4 | 5 => (pool.pop(queue), plain.pop_front()),
                6 => (pool.pop_tail(queue), plain.pop_back()),
                _ => {
                    let at = stream.below(plain.len() as u64 + 1) as usize;
                    let before = pool.iter(queue).nth(at).map(|(before, _)| before);
                    (before.and_then(|before| pool.remove_after(queue, before)), plain.remove(at))
                }
            };
            assert_eq!(got.map(|held| held.packet.0), expected);
            assert_eq!(queue.backlog().packets as usize, plain.len());
            assert_eq!(queue.backlog().bytes, plain.iter().map(|size| u64::from(*size)).sum::<u64>());
            assert_eq!(pool.head(queue).map(|held| held.packet.0), plain.front().copied());
        }
        assert!(pool.places.len() < 50_000 / 2, "places are used again");
    }
}
