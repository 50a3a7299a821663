//! Disciplines: what holds packets and decides their order. One file each.

pub mod fifo;

use crate::law::Gauges;
use crate::packet::{Backlog, Tap};
use base::Time;

/// A packet that left a discipline, with the instant at which it had been accepted.
#[derive(Clone, Copy, Debug)]
pub struct Held<P> {
    /// The packet.
    pub packet: P,
    /// When it was accepted into the queue.
    pub enqueued: Time,
}

/// A queueing discipline over packets of type `P`.
///
/// Packets are conserved: each one offered is taken, dropped through the tap, or held.
pub trait Qdisc<P> {
    /// Offers an arriving packet; it is held or dropped.
    fn offer(&mut self, packet: P, now: Time, tap: &mut dyn Tap<P>);

    /// Takes the next packet for transmission; `None` when there is none.
    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Option<Held<P>>;

    /// What is held.
    fn backlog(&self) -> Backlog;

    /// When [`Qdisc::tick`] wants to be called next. Changes only inside `tick`.
    fn next_tick(&self) -> Time {
        Time::NEVER
    }

    /// Does the periodic work that is due at `now`; an early call is harmless.
    fn tick(&mut self, now: Time) {
        let _ = now;
    }

    /// What the discipline shows of itself in time series.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }
}
