//! A first-in-first-out queue stands around any law: `pfifo` and `bfifo` have none, RED, PI, REM and the rest have
//! theirs.
//!
//! The hard limit is checked before the law is asked, and counts the packets that wait, not the one in transmission.

use super::{Held, Qdisc, Taken};
use crate::cause::Cause;
use crate::law::{Arrival, Departure, Gauges, Law, Verdict};
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::{Length, Values};
use base::{Rate, Time};
use std::collections::VecDeque;

/// How much a queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(u64),
}

impl Limit {
    /// The `limit` every discipline has.
    pub fn of(values: &Values) -> Self {
        // A fraction of a packet or byte cannot be held; `as` stops at the largest.
        match values.length("limit") {
            Length::Packets(packets) => Self::Packets(packets as u32),
            Length::Bytes(bytes) => Self::Bytes(bytes as u64),
        }
    }

    /// Whether `backlog` is within the limit.
    #[inline]
    pub const fn holds(self, backlog: Backlog) -> bool {
        match self {
            Self::Packets(limit) => backlog.packets <= limit,
            Self::Bytes(limit) => backlog.bytes <= limit,
        }
    }

    /// Whether a packet of `size` bytes still fits behind `backlog`.
    #[inline]
    pub const fn admits(self, backlog: Backlog, size: u32) -> bool {
        match self {
            Self::Packets(limit) => backlog.packets < limit,
            Self::Bytes(limit) => backlog.bytes + size as u64 <= limit,
        }
    }
}

/// An end of a queue: where a full one loses packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The end at which packets leave: the oldest is lost.
    Head,
    /// The end at which packets arrive: the newest is lost.
    Tail,
}

impl End {
    /// The `drop` of disciplines that have a choice.
    pub fn of(values: &Values) -> Self {
        if values.word("drop") == "head" { Self::Head } else { Self::Tail }
    }
}

/// A queue around a law.
#[derive(Clone, Debug)]
pub struct Fifo<P, L> {
    limit: Limit,
    full: End,
    law: L,
    queue: VecDeque<Held<P>>,
    bytes: u64,
}

impl<P, L> Fifo<P, L> {
    /// An empty queue of at most `limit` around `law`.
    pub fn new(limit: Limit, law: L) -> Self {
        Self::losing_at(End::Tail, limit, law)
    }

    /// An empty queue around `law` that loses packets from the end `full` when it is full.
    pub fn losing_at(full: End, limit: Limit, law: L) -> Self {
        Self { limit, full, law, queue: VecDeque::with_capacity(64), bytes: 0 }
    }

    /// An empty queue around `law`, as large as `values` say.
    pub fn around(law: L, values: &Values) -> Self
    where
        L: Law,
    {
        let (limit, full) = L::room(values);
        Self::losing_at(full, limit, law)
    }

    /// The law inside.
    pub fn law(&self) -> &L {
        &self.law
    }

    fn held(&self) -> Backlog {
        Backlog { packets: self.queue.len() as u32, bytes: self.bytes }
    }
}

impl<P: Packet, L> Fifo<P, L> {
    /// Loses packets at the head until one of `size` bytes fits. A packet that can never fit costs no other.
    fn make_room(&mut self, size: u32, now: Time, tap: &mut dyn Tap<P>) {
        if self.full == End::Tail || !self.limit.admits(Backlog::default(), size) {
            return;
        }
        while !self.limit.admits(self.held(), size) {
            let Held { packet, .. } = self.queue.pop_front().expect("an empty queue has room");
            self.bytes -= u64::from(packet.size());
            tap.dropped(packet, Cause::TAIL, now);
        }
    }
}

impl<P: Packet, L: Law> Qdisc<P> for Fifo<P, L> {
    #[inline(always)]
    fn offer(&mut self, mut packet: P, now: Time, driver: &mut dyn Driver<P>) {
        let size = packet.size();
        if !self.limit.admits(self.held(), size) {
            self.make_room(size, now, driver);
        }
        let arrival = Arrival { size, ecn: packet.ecn(), flow: packet.flow(), backlog: self.held() };
        if !self.limit.admits(arrival.backlog, size) {
            self.law.on_overflow(&arrival, now);
            return driver.dropped(packet, Cause::TAIL, now);
        }
        if self.law.wants_hosts() {
            self.law.hear_hosts(driver.hosts(&packet));
        }
        match self.law.on_arrival(&arrival, now) {
            Verdict::Pass => {}
            Verdict::Mark(cause) => {
                packet.mark();
                driver.marked(&packet, cause, now);
            }
            Verdict::Drop(cause) => return driver.dropped(packet, cause, now),
        }
        driver.accepted(&packet, now);
        self.bytes += size as u64;
        self.queue.push_back(Held { packet, enqueued: now });
    }

    #[inline(always)]
    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Taken<P> {
        while let Some(Held { mut packet, enqueued }) = self.queue.pop_front() {
            let size = packet.size();
            self.bytes -= size as u64;
            let (ecn, dscp, flow) = (packet.ecn(), packet.dscp(), packet.flow());
            let departure = Departure { size, ecn, dscp, flow, enqueued, backlog: self.held() };
            match self.law.on_departure(&departure, now) {
                Verdict::Pass => {}
                Verdict::Mark(cause) => {
                    packet.mark();
                    tap.marked(&packet, cause, now);
                }
                Verdict::Drop(cause) => {
                    tap.dropped(packet, cause, now);
                    continue;
                }
            }
            return Taken::Packet(Held { packet, enqueued });
        }
        self.law.on_idle(now);
        Taken::Empty
    }

    fn backlog(&self) -> Backlog {
        self.held()
    }

    fn next_tick(&self) -> Time {
        self.law.next_tick()
    }

    fn tick(&mut self, now: Time) {
        self.law.tick(self.held(), now);
    }

    fn gauges(&self) -> Gauges {
        self.law.gauges()
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        (self.limit, self.full) = L::room(values);
        self.law.hear_backlog(self.held());
        self.law.retune(values, rate, now);
    }
}
