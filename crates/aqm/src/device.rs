//! The queue of a network interface is its ring of transmit descriptors, which a driver fills from the discipline.
//!
//! A driver that nothing paces takes packets from the discipline for as long as its ring has room, and the interface
//! sends them first in, first out. The discipline holds only what does not fit into the ring. So its target is a queue
//! beyond the ring's, and its sojourn times end where the ring's begin. The link does not fall idle because the
//! discipline's queue is empty for a moment. This is so on routers whose discipline stands right before the driver:
//! FreeBSD with ALTQ unless its token bucket regulator paces the driver (Cho, "Managing Traffic with ALTQ", USENIX ATC
//! 1999), with a ring that is counted in packets, and Linux, whose byte queue limits count bytes
//! (`include/linux/dynamic_queue_limits.h`).
//!
//! The packet in transmission is one of the ring's: its descriptor is freed when it has left. So a ring of one packet
//! adds no queue. Deviations: descriptors are freed one by one as packets leave, where drivers free several in an
//! interrupt; the limit in bytes is constant, where Linux finds one, and counts IP packets, as everywhere here.

use crate::packet::{Backlog, Packet};
use crate::qdisc::Held;
use crate::qdisc::fifo::Limit;
use base::{Span, Time};
use std::collections::VecDeque;

/// The packets that a driver has taken out of the discipline, the packet in transmission first.
pub(crate) struct DeviceQueue<P> {
    limit: Limit,
    held: VecDeque<Held<P>>,
    bytes: u64,
    /// How long the first had waited when its transmission started.
    waited: Span,
    /// When its last bit will have left; never while nothing is in transmission.
    done_at: Time,
}

impl<P: Packet> DeviceQueue<P> {
    /// An empty queue of at most `limit`.
    pub fn new(limit: Limit) -> Self {
        let capacity = match limit {
            Limit::Packets(packets) => packets.min(1 << 10) as usize,
            Limit::Bytes(_) => 64,
        };
        let held = VecDeque::with_capacity(capacity);
        Self { limit, held, bytes: 0, waited: Span::ZERO, done_at: Time::NEVER }
    }

    /// Whether the driver takes another packet. One packet may exceed a limit in bytes: Linux stops a queue when what
    /// is left of its limit is below zero (`netdev_tx_sent_queue`).
    pub fn has_room(&self) -> bool {
        match self.limit {
            Limit::Packets(limit) => (self.held.len() as u64) < u64::from(limit),
            Limit::Bytes(limit) => self.bytes <= limit,
        }
    }

    /// Takes a packet that left the discipline.
    pub fn push(&mut self, held: Held<P>) {
        self.bytes += u64::from(held.packet.size());
        self.held.push_back(held);
    }

    /// Whether a packet waits while none is in transmission.
    pub fn waits(&self) -> bool {
        !self.done_at.is_set() && !self.held.is_empty()
    }

    /// Starts to transmit the first packet at `now`, if one waits. `send` is told its size, and says when its last bit
    /// will have left.
    pub fn transmit(&mut self, now: Time, send: impl FnOnce(u32) -> Time) {
        if let Some(first) = self.held.front() {
            self.waited = now.since(first.enqueued);
            self.done_at = send(first.packet.size());
        }
    }

    /// The packet whose last bit leaves by `now`, and how long it had waited for its transmission.
    pub fn leaves(&mut self, now: Time) -> Option<(P, Span)> {
        if self.done_at > now {
            return None;
        }
        let Held { packet, .. } = self.held.pop_front().expect("what is in transmission is held");
        self.bytes -= u64::from(packet.size());
        self.done_at = Time::NEVER;
        Some((packet, self.waited))
    }

    /// The packet in transmission, if any.
    pub fn sending(&self) -> Option<&P> {
        self.held.front().filter(|_| self.done_at < Time::NEVER).map(|held| &held.packet)
    }

    /// When the packet in transmission will have left; never if there is none.
    pub fn done_at(&self) -> Time {
        self.done_at
    }

    /// What it holds, with the packet in transmission.
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.held.len() as u32, bytes: self.bytes }
    }
}
