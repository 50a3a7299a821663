//! Before the first packet of a connection leaves, its host tells the router whose it is, and its propagation delay.
//!
//! A thread of hosts has an [`Announcer`], a ring of its own into which it writes and which only the router reads.
//! Neither ever waits for the other: what an announcer has published is seen by the time a packet that was sent
//! afterwards is read, and a router that is more urgent than its hosts never waits for one of them to finish writing.

use base::{FlowKey, Span};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Tells the router of connections. One thread's.
#[derive(Debug)]
pub struct Announcer {
    ring: Arc<Ring>,
    /// Two threads that write would overwrite each other's announcements.
    _is_one_threads: PhantomData<Cell<()>>,
}

/// What was announced and not yet heard.
#[derive(Debug, Default)]
pub struct Announced {
    rings: Vec<Arc<Ring>>,
}

/// Announcements that fit a ring. The router hears them at every SYN, so that there are as many as connections are
/// opened while it is away.
const ROOM: usize = 1 << 16;

/// Delays are below it: three days.
const BLOCK_AT: u32 = 48;

#[derive(Debug)]
struct Ring {
    /// Flow; one-way delay in ns, and above it, from bit [`BLOCK_AT`] up, the block of traffic.
    slots: Box<[[AtomicU64; 2]]>,
    /// How many were written, how many read: since the start.
    written: AtomicUsize,
    read: AtomicUsize,
}

/// As many announcers as threads of hosts, and what hears them.
pub fn announcers<const N: usize>() -> ([Announcer; N], Announced) {
    let announcers = std::array::from_fn(|_| {
        let slots = (0..ROOM).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect();
        let ring = Ring { slots, written: AtomicUsize::new(0), read: AtomicUsize::new(0) };
        Announcer { ring: Arc::new(ring), _is_one_threads: PhantomData }
    });
    let rings = announcers.each_ref().map(|announcer: &Announcer| Arc::clone(&announcer.ring)).into();
    (announcers, Announced { rings })
}

impl Announcer {
    /// The connection `flow` of this block of traffic, which is about to send its first packet, has the one-way
    /// propagation delay `delay`. Waits where the router has not heard thousands of earlier ones.
    pub fn connection(&self, flow: FlowKey, block: u16, delay: Span) {
        let ring = &*self.ring;
        let written = ring.written.load(Ordering::Relaxed);
        while written.wrapping_sub(ring.read.load(Ordering::Acquire)) >= ROOM {
            // Nobody hears: it has ended, or is about to be away for longer than a run is good for.
            if Arc::strong_count(&self.ring) == 1 {
                return;
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "only a thread of hosts announces, and it is ahead of the router"
            )]
            std::thread::sleep(Duration::from_millis(1));
        }
        let [key, way] = &ring.slots[written % ROOM];
        assert!(delay.ns() < 1 << BLOCK_AT, "a delay of {delay:?} fits beside its block");
        key.store(flow.0, Ordering::Relaxed);
        way.store(delay.ns() | u64::from(block) << BLOCK_AT, Ordering::Relaxed);
        // Published with this: the router reads the count before the slots.
        ring.written.store(written.wrapping_add(1), Ordering::Release);
    }
}

impl Announced {
    /// Nobody announces anything.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Hears what was announced since the last time: flow, block of traffic, delay.
    #[inline]
    pub fn hear(&mut self, mut each: impl FnMut(FlowKey, u16, Span)) {
        for ring in &self.rings {
            let (mut read, written) = (ring.read.load(Ordering::Relaxed), ring.written.load(Ordering::Acquire));
            while read != written {
                let [key, way] = ring.slots[read % ROOM].each_ref().map(|word| word.load(Ordering::Relaxed));
                each(FlowKey(key), (way >> BLOCK_AT) as u16, Span::from_ns(way & ((1 << BLOCK_AT) - 1)));
                read = read.wrapping_add(1);
            }
            ring.read.store(read, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_heard_once_and_in_order() {
        let ([left, right], mut announced) = announcers();
        // More than fits, so that the announcers wait for who hears.
        let each = 3 * ROOM as u64;
        let announcing = [left, right].map(|announcer| {
            std::thread::spawn(move || {
                (0..each)
                    .for_each(|number| announcer.connection(FlowKey(number), number as u16, Span::from_ns(number + 1)));
            })
        });
        let mut heard = Vec::new();
        while !announcing.iter().all(std::thread::JoinHandle::is_finished) {
            announced.hear(|flow, block, delay| heard.push((flow.0, block, delay.ns())));
        }
        announced.hear(|flow, block, delay| heard.push((flow.0, block, delay.ns())));
        let belong = |&(flow, block, delay): &(u64, u16, u64)| flow + 1 == delay && block == flow as u16;
        assert!(heard.iter().all(belong), "flow, block and delay are of one announcement");
        heard.sort_unstable();
        let twice = (0..each).flat_map(|number| [(number, number as u16, number + 1); 2]);
        assert!(heard.into_iter().eq(twice));
    }

    #[test]
    #[should_panic(expected = "a delay of 281474.976710656s fits beside its block")]
    fn a_delay_that_does_not_fit_is_caught() {
        let ([announcer], _announced) = announcers();
        announcer.connection(FlowKey(1), 0, Span::from_ns(1 << BLOCK_AT));
    }

    #[test]
    fn nobody_waits_for_a_router_that_has_ended() {
        let ([announcer], announced) = announcers();
        drop(announced);
        (0..=ROOM as u64).for_each(|number| announcer.connection(FlowKey(number), 0, Span::ZERO));
    }
}
