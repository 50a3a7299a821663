//! The threads of a run report to the collector, which writes: they send it rows one by one, and keep sums that it can
//! read at any time.

use base::Time;
use record::rows::{DropRow, ExchangeRow, QueueRow, TcpRow};
use std::sync::atomic::{AtomicU64, Ordering};

/// Something to be written down. Nobody sorts the rows: those of one thread come in the order of time, those of several
/// threads as they come.
#[derive(Clone, Copy, Debug)]
pub enum News {
    /// An exchange was completed within the measured window.
    Exchange(ExchangeRow),
    /// An interval of one direction is over.
    Queue(QueueRow),
    /// A packet was lost or marked.
    Drop(DropRow),
    /// A probe is about to be sent.
    ProbeSent {
        /// Whose it is.
        flow: ProbeFlow,
        /// Its number within the flow, from 0 and without gaps.
        packet: u32,
        /// When.
        at: Time,
    },
    /// A probe arrived.
    ProbeReceived {
        /// Whose it is.
        flow: ProbeFlow,
        /// Its number within the flow.
        packet: u32,
        /// When the receiver had it, by the kernel's time stamp where there is one.
        at: Time,
    },
    /// What the kernel says of one connection.
    Tcp(TcpRow),
}

/// A flow of probes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProbeFlow {
    /// Block of traffic.
    pub block: u16,
    /// Number within the block.
    pub number: u32,
    /// 0 forward, 1 in reverse.
    pub direction: u8,
}

/// Sums since the start of the run, to which every thread adds and which the collector reads at the edges of the
/// measured window.
#[derive(Debug)]
pub struct Tallies {
    /// Bytes that reached applications over TCP, forward and in reverse.
    pub received_bytes: [AtomicU64; 2],
    /// Connections that were opened, by those who open them.
    pub connections_opened: AtomicU64,
    /// Connections that ended after all they were to carry.
    pub connections_completed: AtomicU64,
    /// Connections that were given up: refused, timed out, reset.
    pub connections_failed: AtomicU64,
    /// Requests that were raised to the shortest that HTTP can express.
    pub raised_requests: AtomicU64,
    /// Things that a host did more than a millisecond after they were due.
    pub late_actions: AtomicU64,
    /// Bytes of each everlasting flow that reached its receiver: by block, then by number.
    pub bulk_bytes: Vec<Vec<AtomicU64>>,
}

/// What [`Tallies`] say at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TallySums {
    /// Bytes that reached applications over TCP, forward and in reverse.
    pub received_bytes: [u64; 2],
    /// Connections that were opened.
    pub connections_opened: u64,
    /// Connections that ended after all they were to carry.
    pub connections_completed: u64,
    /// Connections that were given up.
    pub connections_failed: u64,
    /// Requests that were raised.
    pub raised_requests: u64,
    /// Things done late.
    pub late_actions: u64,
    /// Bytes of each everlasting flow, in the order of blocks and numbers.
    pub bulk_bytes: Vec<u64>,
}

impl Tallies {
    /// Nothing yet; `everlasting` says how many everlasting flows each block of traffic has.
    pub fn new(everlasting: &[u32]) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            received_bytes: [zero(), zero()],
            connections_opened: zero(),
            connections_completed: zero(),
            connections_failed: zero(),
            raised_requests: zero(),
            late_actions: zero(),
            bulk_bytes: everlasting.iter().map(|&flows| (0..flows).map(|_| zero()).collect()).collect(),
        }
    }

    /// Bytes that reached an application over TCP: `direction` is 0 forward, 1 in reverse.
    #[inline]
    pub fn received(&self, direction: u8, bytes: u64) {
        add(&self.received_bytes[usize::from(direction)], bytes);
    }

    /// Adds bytes of an everlasting flow that reached its receiver. It does nothing if there is no such flow.
    #[inline]
    pub fn bulk_received(&self, block: u16, number: u32, bytes: u64) {
        if let Some(flow) = self.bulk_bytes.get(usize::from(block)).and_then(|flows| flows.get(number as usize)) {
            add(flow, bytes);
        }
    }

    /// The sums now.
    pub fn sums(&self) -> TallySums {
        TallySums {
            received_bytes: self.received_bytes.each_ref().map(get),
            connections_opened: get(&self.connections_opened),
            connections_completed: get(&self.connections_completed),
            connections_failed: get(&self.connections_failed),
            raised_requests: get(&self.raised_requests),
            late_actions: get(&self.late_actions),
            bulk_bytes: self.bulk_bytes.iter().flatten().map(get).collect(),
        }
    }
}

/// Adds to one of [`Tallies`].
#[inline]
pub fn add(tally: &AtomicU64, amount: u64) {
    // Sums only: nothing else is published by them.
    tally.fetch_add(amount, Ordering::Relaxed);
}

fn get(tally: &AtomicU64) -> u64 {
    tally.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_what_was_told() {
        let tallies = Tallies::new(&[0, 2]);
        tallies.received(1, 100);
        tallies.bulk_received(1, 1, 70);
        tallies.bulk_received(0, 0, 9);
        tallies.bulk_received(1, 2, 9);
        add(&tallies.connections_failed, 3);
        let expected = TallySums {
            received_bytes: [0, 100],
            connections_failed: 3,
            bulk_bytes: vec![0, 70],
            ..TallySums::default()
        };
        assert_eq!(tallies.sums(), expected);
    }
}
