//! A [`Monitor`] shows figures of a router while it runs. Any thread may read them, and the router never waits for it.

use base::{Span, Time};
use std::sync::atomic::{AtomicU64, Ordering};

/// The figures that the router wrote last. Those read together may be from instants some milliseconds apart.
#[derive(Debug, Default)]
pub struct Monitor {
    /// Rows of losses and marks that the collector has taken.
    taken: AtomicU64,
    at_ns: AtomicU64,
    ways: [Way; 2],
    flows: AtomicU64,
    packets: AtomicU64,
    late_p99_ns: AtomicU64,
    late_most_ns: AtomicU64,
    stalls: AtomicU64,
    longest_ns: AtomicU64,
}

#[derive(Debug, Default)]
struct Way {
    delivered: AtomicU64,
    delivered_bytes: AtomicU64,
    dropped: AtomicU64,
    marked: AtomicU64,
    queue_packets: AtomicU64,
    queue_delay_ns: AtomicU64,
}

/// What can be seen of a router.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Seen {
    /// When it was written, since the start of the run.
    pub at: Time,
    /// Left to right, and right to left.
    pub ways: [SeenWay; 2],
    /// Flows that were seen.
    pub flows: u64,
    /// Packets that were handed over.
    pub packets: u64,
    /// What 99 % of them were late by at most.
    pub late_p99: Span,
    /// What the latest was late by.
    pub late_most: Span,
    /// Stalls.
    pub stalls: u64,
    /// The longest time away.
    pub longest: Span,
}

/// One direction, since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SeenWay {
    /// Packets that left the bottleneck.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets lost there.
    pub dropped: u64,
    /// Packets marked there.
    pub marked: u64,
    /// Packets that wait now.
    pub queue_packets: u64,
    /// How long the last one that left had waited.
    pub queue_delay: Span,
}

impl Monitor {
    /// Notes that the collector has taken `rows` more losses and marks.
    pub fn took(&self, rows: u64) {
        self.taken.fetch_add(rows, Ordering::Relaxed);
    }

    /// How many losses and marks the collector has taken.
    #[inline]
    pub fn taken(&self) -> u64 {
        get(&self.taken)
    }

    /// A monitor to which nothing was written.
    pub fn new() -> Self {
        Self::default()
    }

    /// The figures that were written last.
    pub fn look(&self) -> Seen {
        let span = |of: &AtomicU64| Span::from_ns(get(of));
        Seen {
            at: Time::from_ns(get(&self.at_ns)),
            ways: self.ways.each_ref().map(|way| SeenWay {
                delivered: get(&way.delivered),
                delivered_bytes: get(&way.delivered_bytes),
                dropped: get(&way.dropped),
                marked: get(&way.marked),
                queue_packets: get(&way.queue_packets),
                queue_delay: span(&way.queue_delay_ns),
            }),
            flows: get(&self.flows),
            packets: get(&self.packets),
            late_p99: span(&self.late_p99_ns),
            late_most: span(&self.late_most_ns),
            stalls: get(&self.stalls),
            longest: span(&self.longest_ns),
        }
    }

    /// Writes `seen`.
    pub fn write(&self, seen: &Seen) {
        for (way, seen) in self.ways.iter().zip(&seen.ways) {
            set(&way.delivered, seen.delivered);
            set(&way.delivered_bytes, seen.delivered_bytes);
            set(&way.dropped, seen.dropped);
            set(&way.marked, seen.marked);
            set(&way.queue_packets, seen.queue_packets);
            set(&way.queue_delay_ns, seen.queue_delay.ns());
        }
        set(&self.flows, seen.flows);
        set(&self.packets, seen.packets);
        set(&self.late_p99_ns, seen.late_p99.ns());
        set(&self.late_most_ns, seen.late_most.ns());
        set(&self.stalls, seen.stalls);
        set(&self.longest_ns, seen.longest.ns());
        set(&self.at_ns, seen.at.ns());
    }
}

// Figures only: nothing else is published by them.
fn get(figure: &AtomicU64) -> u64 {
    figure.load(Ordering::Relaxed)
}

fn set(figure: &AtomicU64, to: u64) {
    figure.store(to, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_seen() {
        let monitor = Monitor::new();
        let way = |n| SeenWay {
            delivered: n,
            delivered_bytes: n + 1,
            dropped: n + 2,
            marked: n + 3,
            queue_packets: n + 4,
            queue_delay: Span::from_ns(n + 5),
        };
        let seen = Seen {
            at: Time::from_ns(1),
            ways: [way(10), way(20)],
            flows: 2,
            packets: 3,
            late_p99: Span::from_ns(4),
            late_most: Span::from_ns(5),
            stalls: 6,
            longest: Span::from_ns(7),
        };
        monitor.write(&seen);
        assert_eq!(monitor.look(), seen);
    }
}
