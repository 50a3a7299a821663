//! A discipline holds packets and decides their order. Each has a file.

pub mod brought;
pub mod cake;
pub mod choke;
pub mod curvy_red;
pub mod drr;
pub mod dualpi2;
pub mod fifo;
pub mod fq;
pub mod fq_codel;
pub mod fq_frame;
pub mod fq_law;
pub mod fq_pie;
pub mod heap;
pub mod native;
pub mod pool;
pub mod protection;
pub mod rota;
pub mod sfq;
pub mod thinned;
pub mod tournament;

use crate::egress::Delivery;
use crate::gauge::Gauges;
use crate::line::{Due, Line};
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::Values;
use base::{Rate, Time};

/// A packet that left a discipline, with the instant at which it had been accepted.
#[derive(Clone, Copy, Debug)]
pub struct Held<P> {
    /// The packet.
    pub packet: P,
    /// When it was accepted into the queue.
    pub enqueued: Time,
}

/// What a discipline answers when it is asked for the next packet.
#[derive(Clone, Copy, Debug)]
pub enum Taken<P> {
    /// The packet that is to be sent now.
    Packet(Held<P>),
    /// A shaper holds back what waits. It wants to be asked again at this instant, which is later than the call, even
    /// if nothing arrives.
    Later(Time),
    /// Nothing waits. There is nothing to ask for before the next arrival.
    Empty,
}

impl<P> Taken<P> {
    /// The packet, if there is one now.
    pub fn packet(self) -> Option<Held<P>> {
        match self {
            Self::Packet(held) => Some(held),
            Self::Later(_) | Self::Empty => None,
        }
    }
}

impl<P> From<Option<Held<P>>> for Taken<P> {
    /// The answer of a discipline that shapes nothing: a packet, or nothing waits.
    #[inline]
    fn from(held: Option<Held<P>>) -> Self {
        held.map_or(Self::Empty, Self::Packet)
    }
}

/// A queueing discipline over packets of type `P`.
///
/// Packets are conserved: each one offered is taken, dropped through the tap, or held.
pub trait Qdisc<P> {
    /// Offers an arriving packet; it is held or dropped.
    fn offer(&mut self, packet: P, now: Time, driver: &mut dyn Driver<P>);

    /// Takes the next packet for transmission. It may lose packets on the way to it.
    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Taken<P>;

    /// Does everything that happens on `line` before `before`, while `arrivals` come
    /// ([`Egress::pass`](crate::Egress::pass)). No discipline writes its own: it is here to be compiled for each.
    fn serve(
        &mut self,
        line: &mut Line<P>,
        arrivals: &[Due<P>],
        before: Time,
        out: &mut Vec<Delivery<P>>,
        driver: &mut dyn Driver<P>,
    ) -> usize
    where
        P: Packet + Copy,
    {
        crate::line::serve(self, line, arrivals, before, out, driver)
    }

    /// What is held.
    fn backlog(&self) -> Backlog;

    /// When [`Qdisc::tick`] wants to be called next. It changes only inside `tick` and `retune`.
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

    /// Takes over resolved parameters and the rate of the link from `now` on, and keeps its packets and what its law
    /// has learnt ([`Law::retune`](crate::law::Law::retune)). [`Qdisc::next_tick`] may change.
    ///
    /// Nothing that waits is lost at this moment, so that setting a parameter is not itself congestion. If more waits
    /// than a smaller `limit` holds, the next arrival finds the queue full. It is then lost, or the queue loses what is
    /// too much, as the discipline does at any time. Linux does so in pfifo, bfifo and cake; a change of its codel,
    /// pie, fq_codel, fq_pie, dualpi2 and sfq loses the excess at once, one of its choke what is beyond the next power
    /// of two, and one of its red and sfb all that waits.
    ///
    /// Parameters that [`Row::fixed`](crate::registry::Row::fixed) names are as they were.
    fn retune(&mut self, values: &Values, rate: Rate, now: Time);
}
