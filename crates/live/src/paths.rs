//! Before the first packet of a connection leaves, its host tells the router whose it is, and its propagation delay.
//!
//! Each thread of hosts has an [`Announcer`], with a ring into which only it writes and which only the router reads.
//! The router never waits for a host to finish writing, even if it is more urgent than its hosts. It sees an
//! announcement by the time it reads a packet that was sent afterwards.

use base::{FlowKey, Span};
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Tells the router of connections, for one thread.
#[derive(Debug)]
pub struct Announcer {
    ring: Arc<Ring>,
    /// Makes the type unfit for several threads, which would overwrite each other's announcements.
    _is_one_threads: PhantomData<Cell<()>>,
}

/// What was announced and not yet heard.
#[derive(Debug, Default)]
pub struct Announced {
    rings: Vec<Arc<Ring>>,
}

/// How many announcements fit a ring. The router hears them at every SYN, so that there are only those of connections
/// that are opened while it is away.
const ROOM: usize = 1 << 16;

/// The bit at which the block of traffic begins. Delays in nanoseconds have the bits below, which last for three days.
const BLOCK_AT: u32 = 48;

#[derive(Debug)]
struct Ring {
    /// Two words an announcement: the flow; then the one-way delay in ns and, from bit [`BLOCK_AT`] up, the block.
    slots: Box<[[AtomicU64; 2]]>,
    /// How many announcements were written since the start.
    written: AtomicUsize,
    /// How many of these the router has heard.
    read: AtomicUsize,
}

/// Makes as many announcers as there are threads of hosts, and the end that hears them.
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
    /// Announces that the connection `flow` of this block of traffic has the one-way propagation delay `delay`. Call it
    /// before the connection's first packet is sent. It waits only if the router has not heard thousands of earlier
    /// announcements.
    pub fn connection(&self, flow: FlowKey, block: u16, delay: Span) {
        let ring = &*self.ring;
        let written = ring.written.load(Ordering::Relaxed);
        while written.wrapping_sub(ring.read.load(Ordering::Acquire)) >= ROOM {
            // The router has ended, so that nobody hears this.
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
        // This publishes the slot: the router reads the count before the slots.
        ring.written.store(written.wrapping_add(1), Ordering::Release);
    }
}

impl Announced {
    /// An end that never hears anything.
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
