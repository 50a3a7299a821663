//! A discipline from outside this crate does not know the type of a driver's packets. So it is a [`Scheduler`], which
//! orders handles. The packets are held for it here, and counted. If it loses or sends one twice, or says that nothing
//! waits while it holds one, the run ends with its name ([`Fault`]).

use super::{Held, Qdisc, Taken};
use crate::cause::Cause;
use crate::fault::Fault;
use crate::law::Gauges;
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::{Text, Values};
use base::{Ecn, FlowKey, Rate, Time};
use std::collections::VecDeque;

/// A packet that is held for a [`Scheduler`]. It stands for this packet alone, also when the packet is gone. Its order
/// is that of arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle {
    /// Which packet it is, by arrival; the first is 1.
    number: u64,
    place: u32,
}

impl Handle {
    /// Bits of a word that are the place.
    const PLACE_BITS: u32 = 28;

    /// Which packet it is, by arrival; the first is 1.
    pub fn number(self) -> u64 {
        self.number
    }

    /// The handle in one positive number, in the same order, for interfaces that have no more.
    ///
    /// `None` beyond the packets that a number has room for: 2^35 that arrived, 2^28 held at once.
    pub fn word(self) -> Option<i64> {
        let fits = self.number < 1 << (63 - Self::PLACE_BITS) && self.place < 1 << Self::PLACE_BITS;
        fits.then_some((self.number << Self::PLACE_BITS | u64::from(self.place)) as i64)
    }

    /// The handle of a word; if there was never such a packet, nobody holds it.
    pub fn of_word(word: i64) -> Self {
        let word = word as u64;
        Self { number: word >> Self::PLACE_BITS, place: (word & ((1 << Self::PLACE_BITS) - 1)) as u32 }
    }
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
    /// Packets cannot be lost or marked here. `backlog` is what waits.
    fn tick(&mut self, backlog: Backlog, now: Time) {
        let _ = (backlog, now);
    }

    /// What it shows of itself in time series.
    fn gauges(&self) -> Gauges {
        Gauges::default()
    }

    /// Hears what waits, right before [`Scheduler::retune`].
    fn hear_backlog(&mut self, backlog: Backlog) {
        let _ = backlog;
    }

    /// Takes over other parameters and another rate of the link, as [`Qdisc::retune`].
    fn retune(&mut self, values: &Values, rate: Rate, now: Time);
}

/// What a [`Scheduler`] may do to packets that are held for it.
pub trait Signals {
    /// Loses a packet.
    ///
    /// # Errors
    /// The packet is not held. The packets are then as they were.
    fn try_drop(&mut self, handle: Handle, cause: Cause) -> Result<(), Fault>;

    /// Marks a packet, which must be [ECN-capable](Ecn::is_ect).
    ///
    /// # Errors
    /// The packet is not held, or may not be marked. The packets are then as they were.
    fn try_mark(&mut self, handle: Handle, cause: Cause) -> Result<(), Fault>;

    /// What is held now. In [`Scheduler::offer`] the arriving packet is counted, until it is lost.
    fn held(&self) -> Backlog;

    /// Loses a packet. If it is not held, the run ends.
    fn drop(&mut self, handle: Handle, cause: Cause) {
        self.try_drop(handle, cause).unwrap_or_else(|fault| fault.raise());
    }

    /// Marks a packet, which must be [ECN-capable](Ecn::is_ect). If it is not held or may not be marked, the run ends.
    fn mark(&mut self, handle: Handle, cause: Cause) {
        self.try_mark(handle, cause).unwrap_or_else(|fault| fault.raise());
    }
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
        Self { name, scheduler, packets: Packets::default() }
    }
}

/// So many places stay free, so that it is known for a while what became of a packet.
const KEPT_FREE: usize = 64;

/// Packets by their handles.
struct Packets<P> {
    places: Vec<Place<P>>,
    /// Places to be used again, the one that is free longest first.
    free: VecDeque<u32>,
    held: Backlog,
    /// How many arrived.
    arrived: u64,
}

impl<P> Default for Packets<P> {
    fn default() -> Self {
        Self { places: Vec::new(), free: VecDeque::new(), held: Backlog::default(), arrived: 0 }
    }
}

/// A packet, or what became of it.
enum Fate<P> {
    Held(Held<P>),
    Sent,
    Lost,
}

struct Place<P> {
    /// The packet that is or was here last.
    number: u64,
    fate: Fate<P>,
}

impl<P: Packet> Packets<P> {
    fn insert(&mut self, packet: P, now: Time) -> Handle {
        self.held.packets += 1;
        self.held.bytes += u64::from(packet.size());
        self.arrived += 1;
        let number = self.arrived;
        let free = if self.free.len() > KEPT_FREE { self.free.pop_front() } else { None };
        let here = Place { number, fate: Fate::Held(Held { packet, enqueued: now }) };
        let place = match free {
            Some(place) => {
                self.places[place as usize] = here;
                place
            }
            None => {
                self.places.push(here);
                (self.places.len() - 1) as u32
            }
        };
        Handle { number, place }
    }

    /// The packet of a handle, if it is held.
    fn find(&mut self, handle: Handle) -> Option<&mut Held<P>> {
        match self.places.get_mut(handle.place as usize) {
            Some(Place { number, fate: Fate::Held(held) }) if *number == handle.number => Some(held),
            _ => None,
        }
    }

    /// Takes a packet out, which is then `gone`.
    fn remove(&mut self, handle: Handle, gone: Fate<P>) -> Option<Held<P>> {
        self.find(handle)?;
        let Fate::Held(held) = std::mem::replace(&mut self.places[handle.place as usize].fate, gone) else {
            return None;
        };
        self.free.push_back(handle.place);
        self.held.packets -= 1;
        self.held.bytes -= u64::from(held.packet.size());
        Some(held)
    }

    /// The scheduler `name` does `what` to a packet that is not held.
    #[cold]
    fn not_held(&self, name: &str, what: &str, handle: Handle) -> Fault {
        let Handle { number, place } = handle;
        if number == 0 || number > self.arrived {
            return Fault::of_discipline(name, format!("{what} a packet that never arrived"));
        }
        let why = match self.places.get(place as usize) {
            Some(Place { number: last, fate: Fate::Sent }) if *last == number => "was sent before",
            Some(Place { number: last, fate: Fate::Lost }) if *last == number => "was lost before",
            _ => "has left before",
        };
        Fault::of_discipline(name, format!("{what} packet {number}, which it does not hold: it {why}")).about(number)
    }

    /// The packet that is held longest.
    #[cold]
    fn oldest(&self) -> u64 {
        let held = self.places.iter().filter(|place| matches!(place.fate, Fate::Held(_)));
        held.map(|place| place.number).min().expect("one is held")
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
    fn try_drop(&mut self, handle: Handle, cause: Cause) -> Result<(), Fault> {
        let Some(Held { packet, .. }) = self.packets.remove(handle, Fate::Lost) else {
            return Err(self.packets.not_held(self.name, "loses", handle));
        };
        self.tap.dropped(packet, cause, self.now);
        Ok(())
    }

    fn try_mark(&mut self, handle: Handle, cause: Cause) -> Result<(), Fault> {
        let Some(Held { packet, .. }) = self.packets.find(handle) else {
            return Err(self.packets.not_held(self.name, "marks", handle));
        };
        if !packet.ecn().is_ect() {
            let why = if packet.ecn() == Ecn::Ce { "is marked already" } else { "is not ECN-capable" };
            let what = format!("marks packet {}, which {why}", handle.number);
            return Err(Fault::of_discipline(self.name, what).about(handle.number));
        }
        packet.mark();
        self.tap.marked(packet, cause, self.now);
        Ok(())
    }

    fn held(&self) -> Backlog {
        self.packets.held
    }
}

fn in_take(now: Time) -> String {
    format!(" (in take, at {:.6} s)", now.secs_f64())
}

impl<P: Packet, S: Scheduler> Qdisc<P> for Brought<P, S> {
    fn offer(&mut self, packet: P, now: Time, driver: &mut dyn Driver<P>) {
        let Self { name, scheduler, packets } = self;
        let (size, ecn, flow, dscp) = (packet.size(), packet.ecn(), packet.flow(), packet.dscp());
        let (hosts, backlog) = (driver.hosts(&packet), packets.held);
        let handle = packets.insert(packet, now);
        let arriving = Arriving { handle, size, ecn, flow, dscp, hosts, backlog };
        scheduler.offer(&arriving, now, &mut Passing { name, packets, now, tap: driver });
        if let Some(Held { packet, .. }) = packets.find(handle) {
            driver.accepted(packet, now);
        }
    }

    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Taken<P> {
        let Self { name, scheduler, packets } = self;
        match scheduler.take(now, &mut Passing { name, packets, now, tap }) {
            Next::Packet(handle) => match packets.remove(handle, Fate::Sent) {
                Some(held) => Taken::Packet(held),
                None => packets.not_held(name, "sends", handle).during(&in_take(now)).raise(),
            },
            Next::Later(ready) if ready > now => Taken::Later(ready),
            Next::Later(_) => {
                let what = "sends nothing and asks to be asked again at a time that is not later";
                Fault::of_discipline(&**name, what).during(&in_take(now)).raise()
            }
            Next::Empty if packets.held.packets == 0 => Taken::Empty,
            Next::Empty => {
                let (held, oldest) = (packets.held.packets, packets.oldest());
                let those = if held == 1 {
                    format!("packet {oldest}")
                } else {
                    format!("{held} packets, packet {oldest} the longest")
                };
                let what = format!("says that nothing waits, but holds {those}");
                Fault::of_discipline(&**name, what).about(oldest).during(&in_take(now)).raise()
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
        self.scheduler.tick(self.packets.held, now);
    }

    fn gauges(&self) -> Gauges {
        self.scheduler.gauges()
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        self.scheduler.hear_backlog(self.packets.held);
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
    fn tick(&mut self, backlog: Backlog, now: Time) {
        (**self).tick(backlog, now);
    }
    fn gauges(&self) -> Gauges {
        (**self).gauges()
    }
    fn hear_backlog(&mut self, backlog: Backlog) {
        (**self).hear_backlog(backlog);
    }
    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        (**self).retune(values, rate, now);
    }
}
