//! Disciplines: what holds packets and decides their order. One file each.

pub mod cake;
pub mod choke;
pub mod drr;
pub mod dualpi2;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_frame;
pub mod fq_law;
pub mod fq_pie;
pub mod heap;
pub mod pool;
pub mod rota;
pub mod sfq;
pub mod thinned;
pub mod tournament;

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

    /// Takes the next packet for transmission; `None` when there is none, or none before [`Qdisc::next_ready`].
    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Option<Held<P>>;

    /// After a [`Qdisc::take`] that gave nothing: when to ask again even if nothing arrives, later than that call. A
    /// shaper that holds packets back says when it will let one go; all others never need asking.
    fn next_ready(&self) -> Time {
        Time::NEVER
    }

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
