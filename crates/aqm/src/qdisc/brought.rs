//! A discipline from outside this crate does not know the type of a driver's packets. So it is a [`Scheduler`], which
//! orders handles. The packets are held for it here, and counted. If it loses or sends one twice, the run ends with its
//! name.

use super::{Held, Qdisc, Taken};
use crate::law::Gauges;
use crate::packet::{Backlog, Cause, Driver, Packet, Tap};
use crate::param::{Text, Values};
use base::{Ecn, FlowKey, Rate, Time};

/// A packet that is held for a [`Scheduler`]. It stands for this packet alone, also when the packet is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle {
    place: u32,
    /// How many packets had this place before.
    turn: u64,
}

/// What a [`Scheduler`] learns of a packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arriving {
    /// What the packet is called from now on.
    pub handle: Handle,
    /// Size in bytes (IP packet).
    pub size: u32,
    /// ECN field as it arrived.
    pub ecn: Ecn,
    /// Flow.
    pub flow: FlowKey,
    /// The Differentiated Services codepoint.
    pub dscp: u8,
    /// The hosts it comes from and goes to, see [`Headers::hosts`](crate::Headers::hosts).
    pub hosts: Option<(u32, u32)>,
    /// What waits already; the arriving packet and the one in transmission are not counted.
    pub backlog: Backlog,
}

/// Which packet is to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// This one, now.
    Packet(Handle),
    /// A shaper holds back what waits, until this later instant.
    Later(Time),
    /// Nothing waits.
    Empty,
}

/// A queue discipline that orders handles. A [`Qdisc`] around it holds the packets.
pub trait Scheduler {
    /// A packet arrives and is held, unless it is lost right here.
    fn offer(&mut self, arriving: &Arriving, now: Time, signals: &mut dyn Signals);

    /// Which packet is sent next. It is then no longer held. Others may be lost on the way to it.
    fn take(&mut self, now: Time, signals: &mut dyn Signals) -> Next;

    /// When [`Scheduler::tick`] wants to be called next, as [`Qdisc::next_tick`].
    fn next_tick(&self) -> Time {
        Time::NEVER
    }

    /// Does the periodic work that is due at `now`; an early call is harmless.
    fn tick(&mut self, now: Time) {
        let _ = now;
    }

    /// What it shows of itself in time series.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// Takes over other parameters and another rate of the link, as [`Qdisc::retune`].
    fn retune(&mut self, values: &Values, rate: Rate, now: Time);
}

/// What a [`Scheduler`] may do to packets that are held for it.
pub trait Signals {
    /// Loses a packet.
    fn drop(&mut self, handle: Handle, cause: Cause);
    /// Marks a packet, which must be [ECN-capable](Ecn::is_ect).
    fn mark(&mut self, handle: Handle, cause: Cause);
}

/// The discipline: a scheduler, and the packets that it orders.
pub struct Brought<P, S> {
    name: Text,
    scheduler: S,
    packets: Packets<P>,
}

impl<P: Packet, S: Scheduler> Brought<P, S> {
    /// An empty queue around `scheduler`, which messages call `name`.
    pub fn around(name: Text, scheduler: S) -> Self {
        Self { name, scheduler, packets: Packets { places: Vec::new(), free: Vec::new(), held: Backlog::default() } }
    }
}

/// Packets by their handles.
struct Packets<P> {
    places: Vec<Place<P>>,
    free: Vec<u32>,
    held: Backlog,
}

struct Place<P> {
    turn: u64,
    held: Option<Held<P>>,
}

impl<P: Packet> Packets<P> {
    fn insert(&mut self, packet: P, now: Time) -> Handle {
        self.held.packets += 1;
        self.held.bytes += u64::from(packet.size());
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { turn: 0, held: None });
            (self.places.len() - 1) as u32
        });
        let at = &mut self.places[place as usize];
        at.held = Some(Held { packet, enqueued: now });
        Handle { place, turn: at.turn }
    }

    /// The place of a packet that is held.
    fn find(&mut self, handle: Handle) -> Option<&mut Place<P>> {
        self.places.get_mut(handle.place as usize).filter(|at| at.turn == handle.turn && at.held.is_some())
    }

    fn remove(&mut self, handle: Handle) -> Option<Held<P>> {
        let at = self.find(handle)?;
        let held = at.held.take()?;
        at.turn += 1;
        self.free.push(handle.place);
        self.held.packets -= 1;
        self.held.bytes -= u64::from(held.packet.size());
        Some(held)
    }
}

/// Signals on their way to the tap.
struct Passing<'a, P> {
    name: &'a str,
    packets: &'a mut Packets<P>,
    now: Time,
    tap: &'a mut dyn Tap<P>,
}

impl<P: Packet> Signals for Passing<'_, P> {
    fn drop(&mut self, handle: Handle, cause: Cause) {
        let Some(Held { packet, .. }) = self.packets.remove(handle) else { not_held(self.name, "loses") };
        self.tap.dropped(packet, cause, self.now);
    }

    fn mark(&mut self, handle: Handle, cause: Cause) {
        let Some(Place { held: Some(Held { packet, .. }), .. }) = self.packets.find(handle) else {
            not_held(self.name, "marks")
        };
        assert!(packet.ecn().is_ect(), "the discipline {} marks a packet that is not ECN-capable", self.name);
        packet.mark();
        self.tap.marked(packet, cause, self.now);
    }
}

fn not_held(name: &str, what: &str) -> ! {
    panic!("the discipline {name} {what} a packet that it does not hold: it has left before");
}

impl<P: Packet, S: Scheduler> Qdisc<P> for Brought<P, S> {
    fn offer(&mut self, packet: P, now: Time, driver: &mut dyn Driver<P>) {
        let Self { name, scheduler, packets } = self;
        let (size, ecn, flow, dscp) = (packet.size(), packet.ecn(), packet.flow(), packet.dscp());
        let (hosts, backlog) = (driver.hosts(&packet), packets.held);
        let handle = packets.insert(packet, now);
        let arriving = Arriving { handle, size, ecn, flow, dscp, hosts, backlog };
        scheduler.offer(&arriving, now, &mut Passing { name, packets, now, tap: driver });
        if let Some(Place { held: Some(Held { packet, .. }), .. }) = packets.find(handle) {
            driver.accepted(packet, now);
        }
    }

    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Taken<P> {
        let Self { name, scheduler, packets } = self;
        match scheduler.take(now, &mut Passing { name, packets, now, tap }) {
            Next::Packet(handle) => match packets.remove(handle) {
                Some(held) => Taken::Packet(held),
                None => not_held(name, "sends"),
            },
            Next::Later(ready) => Taken::Later(ready),
            Next::Empty => {
                let held = packets.held.packets;
                assert!(
                    held == 0,
                    "the discipline {name} says that nothing waits, but packets are held for it: {held}"
                );
                Taken::Empty
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.packets.held
    }

    fn next_tick(&self) -> Time {
        self.scheduler.next_tick()
    }

    fn tick(&mut self, now: Time) {
        self.scheduler.tick(now);
    }

    fn gauges(&self) -> Gauges {
        self.scheduler.gauges()
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        self.scheduler.retune(values, rate, now);
    }
}

/// A scheduler whose type is known only while the program runs.
impl Scheduler for Box<dyn Scheduler + Send> {
    fn offer(&mut self, arriving: &Arriving, now: Time, signals: &mut dyn Signals) {
        (**self).offer(arriving, now, signals);
    }
    fn take(&mut self, now: Time, signals: &mut dyn Signals) -> Next {
        (**self).take(now, signals)
    }
    fn next_tick(&self) -> Time {
        (**self).next_tick()
    }
    fn tick(&mut self, now: Time) {
        (**self).tick(now);
    }
    fn gauges(&self) -> Gauges {
        (**self).gauges()
    }
    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        (**self).retune(values, rate, now);
    }
}
