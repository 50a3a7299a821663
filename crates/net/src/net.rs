//! [`Net`] holds the links between hosts, and tells a driver what happens at them.

use crate::delay::Delay;
use crate::routes::Port;
use aqm::param::Values;
use aqm::{Delivery, Driver, Due, Egress, Packet};
use base::{Rate, Time};

/// An observer of a port: it hears of packets that come and leave, beside what the discipline tells.
pub trait Watch<P>: Driver<P> {
    /// Hears that `packet` has come to the port. The discipline has not seen it yet.
    fn offered(&mut self, packet: &P, now: Time);
    /// Hears that a packet has left. At `arrives` it is behind the delay of the link: at the next link, or at the
    /// access link of its host.
    fn delivered(&mut self, delivery: &Delivery<P>, arrives: Time);
}

/// All links, each way. A driver may keep data of its own at each port, such as counts (`D`).
pub struct Net<P, D> {
    ports: Vec<Placed<P, D>>,
    agenda: Agenda,
}

/// A port, the delay behind it, and the driver's own.
struct Placed<P, D> {
    egress: Egress<P>,
    delay: Delay,
    own: D,
}

/// When a port needs a call although no packet comes.
struct Agenda {
    due: Vec<Time>,
    /// The earliest instant, and its port: the first one if several are due then.
    next: (Time, Port),
}

impl<P: Packet, D> Net<P, D> {
    /// A network of these ports, in their order, each with the delay behind it and the driver's own data.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(ports: impl Iterator<Item = (Egress<P>, Delay, D)>) -> Self {
        let ports: Vec<_> = ports.map(|(egress, delay, own)| Placed { egress, delay, own }).collect();
        let due: Vec<Time> = ports.iter().map(|port| port.egress.next_event()).collect();
        let next = earliest(&due);
        Self { ports, agenda: Agenda { due, next } }
    }

    /// The egress of each port and the driver's own data, in the order of ports.
    pub fn ports(&self) -> impl ExactSizeIterator<Item = (&Egress<P>, &D)> {
        self.ports.iter().map(|port| (&port.egress, &port.own))
    }

    /// The egress of each port and the driver's own data, which may be changed.
    pub fn ports_mut(&mut self) -> impl ExactSizeIterator<Item = (&Egress<P>, &mut D)> {
        self.ports.iter_mut().map(|port| (&port.egress, &mut port.own))
    }

    /// Takes out the driver's own data, in the order of ports.
    pub fn into_own(self) -> impl Iterator<Item = D> {
        self.ports.into_iter().map(|port| port.own)
    }

    /// The egress of a port.
    #[inline]
    pub fn egress(&self, port: Port) -> &Egress<P> {
        &self.ports[port.index()].egress
    }

    /// The driver's own data at a port.
    #[inline]
    pub fn own(&mut self, port: Port) -> &mut D {
        &mut self.ports[port.index()].own
    }

    /// When the next port needs a call of [`Net::advance`], and which: the first one if several do at one instant.
    #[inline]
    pub const fn next_event(&self) -> (Time, Port) {
        self.agenda.next
    }

    /// Lets a packet reach `port` at `now`. `watch` makes an observer of the driver's own data there.
    #[inline]
    pub fn offer<'a, W: Watch<P> + 'a>(
        &'a mut self,
        port: Port,
        packet: P,
        now: Time,
        watch: impl FnOnce(&'a mut D) -> W,
    ) {
        let Placed { egress, own, .. } = &mut self.ports[port.index()];
        let mut watch = watch(own);
        watch.offered(&packet, now);
        egress.offer(packet, now, &mut watch);
        self.agenda.set(port, egress.next_event());
    }

    /// Gives the discipline at `port` other parameters, and tells it the link's new rate ([`Egress::retune`]).
    pub fn retune(&mut self, port: Port, values: &Values, rate: Rate, now: Time) {
        let egress = &mut self.ports[port.index()].egress;
        egress.retune(values, rate, now);
        self.agenda.set(port, egress.next_event());
    }

    /// Lets `port` do what is due at `now`: a tick of its law, a change of its link, or the end of a transmission.
    /// Returns whether a packet left.
    #[inline]
    pub fn advance<'a, W: Watch<P> + 'a>(
        &'a mut self,
        port: Port,
        now: Time,
        watch: impl FnOnce(&'a mut D) -> W,
    ) -> bool {
        let Placed { egress, delay, own } = &mut self.ports[port.index()];
        let mut watch = watch(own);
        let delivery = egress.advance(now, &mut watch);
        self.agenda.set(port, egress.next_event());
        if let Some(delivery) = &delivery {
            watch.delivered(delivery, delay.pass(delivery.at));
        }
        delivery.is_some()
    }

    /// Does everything that happens at `port` before `before`, while the packets that are `due` come
    /// ([`Egress::pass`]).
    /// The driver is not told of packets that come and leave. Packets that leave are put into `out`, without the delay
    /// behind the port ([`Net::pass`]). Returns how many of those due came.
    #[inline]
    pub fn serve<'a, T: Driver<P> + 'a>(
        &'a mut self,
        port: Port,
        due: &[Due<P>],
        before: Time,
        out: &mut Vec<Delivery<P>>,
        driver: impl FnOnce(&'a mut D) -> T,
    ) -> usize
    where
        P: Copy,
    {
        let Placed { egress, own, .. } = &mut self.ports[port.index()];
        let came = egress.pass(due, before, out, &mut driver(own));
        self.agenda.set(port, egress.next_event());
        came
    }

    /// When a packet that left `port` at `left_at` is behind the delay of the link; for packets of [`Net::serve`].
    #[inline]
    pub fn pass(&mut self, port: Port, left_at: Time) -> Time {
        self.ports[port.index()].delay.pass(left_at)
    }
}

impl Agenda {
    /// Notes that `port` needs its next call at `at`.
    #[inline]
    fn set(&mut self, port: Port, at: Time) {
        let due = &mut self.due[port.index()];
        if *due != at {
            *due = at;
            self.next = earliest(&self.due);
        }
    }
}

#[inline]
fn earliest(due: &[Time]) -> (Time, Port) {
    // Most networks have one link each way: they need no loop.
    if let &[forward, reverse] = due {
        return (forward.min(reverse), Port::at(usize::from(reverse < forward)));
    }
    let (mut at, mut first) = (due[0], 0);
    for (port, &time) in due.iter().enumerate().skip(1) {
        if time < at {
            (at, first) = (time, port);
        }
    }
    (at, Port::at(first))
}
