//! A [`Line`] is all of an egress behind its discipline. [`serve`] runs a line and a discipline over a stretch of time.
//!
//! A discipline behind a pointer costs an indirect call for each event. [`serve`] is compiled for each discipline by
//! itself ([`Qdisc::serve`]), and does everything that happens within a stretch of time in which only known arrivals
//! come from outside.

use crate::egress::{Counting, Counts, Delivery, later, out_of_order};
use crate::packet::{Driver, Packet, Tap};
use crate::qdisc::{Held, Qdisc, Taken};
use base::{Rate, Serializer, Span, Time};

/// A packet that reaches a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due<P> {
    /// When it arrives.
    pub at: Time,
    /// Whose it is. A driver may order by it what happens at one instant.
    pub source: u32,
    /// The packet.
    pub packet: P,
}

/// Sums up over time how many packets wait. The sum of the waits of delivered packets would be too small, as packets
/// that are dropped at the head of a queue waited too (Little's law).
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    packets: u32,
    since: Time,
    packet_ns: u128,
}

impl Standing {
    /// Notes that so many packets wait from `now` on.
    #[inline]
    pub fn set(&mut self, packets: u32, now: Time) {
        if packets != self.packets {
            *self = Self { packets, since: now, packet_ns: self.packet_ns(now) };
        }
    }

    /// Packets times nanoseconds until `now`.
    #[inline]
    pub fn packet_ns(&self, now: Time) -> u128 {
        self.packet_ns + u128::from(self.packets) * u128::from(now.since(self.since).ns())
    }
}

/// An egress without its discipline, and without what may stand between discipline and wire.
pub struct Line<P> {
    pub(crate) wire: Serializer,
    /// Bytes on the wire beyond a packet's own.
    pub(crate) overhead: u32,
    /// The packet in transmission, which is delivered at `done_at`. Without one, `done_at` is when a shaper wants to be
    /// asked again, the next opportunity if a packet waits for one, or when the packet of a device queue has left.
    pub(crate) sending: Option<Held<P>>,
    pub(crate) waited: Span,
    pub(crate) done_at: Time,
    /// The next tick of the law, or change of the link.
    pub(crate) next_tick: Time,
    /// When something last happened here.
    pub(crate) latest: Time,
    pub(crate) ticks: u64,
    pub(crate) counts: Counts,
    pub(crate) standing: Standing,
    /// The last packet that was offered was lost.
    pub(crate) is_losing: bool,
}

impl<P: Packet> Line<P> {
    pub(crate) fn new(rate: Rate, next_tick: Time) -> Self {
        Self {
            wire: Serializer::new(rate),
            overhead: 0,
            sending: None,
            waited: Span::ZERO,
            done_at: Time::NEVER,
            next_tick,
            latest: Time::ZERO,
            ticks: 0,
            counts: Counts::default(),
            standing: Standing::default(),
            is_losing: false,
        }
    }

    /// Begins to send the next packet from the discipline.
    #[inline(always)]
    pub(crate) fn start<Q: Qdisc<P> + ?Sized>(&mut self, qdisc: &mut Q, now: Time, tap: &mut dyn Tap<P>) {
        let mut tap = Counting { counts: &mut self.counts, is_losing: &mut self.is_losing, tells_all: true, tap };
        match qdisc.take(now, &mut tap) {
            Taken::Packet(held) => {
                self.waited = now.since(held.enqueued);
                self.done_at = self.wire.send(held.packet.size() + self.overhead, now);
                self.sending = Some(held);
            }
            Taken::Later(ready) => self.done_at = later(ready, now),
            Taken::Empty => self.done_at = Time::NEVER,
        }
    }

    /// Ends the transmission, and returns what has left, if anything was sent.
    #[inline(always)]
    pub(crate) fn leave(&mut self) -> Option<Delivery<P>> {
        let Held { packet, .. } = self.sending.take()?;
        self.counts.delivered += 1;
        Some(Delivery { packet, at: self.done_at, waited: self.waited })
    }
}

/// Does everything that happens before `before` on a plain link behind `qdisc`, while `arrivals` come in their order.
/// It comes to the same as [`Egress::offer`](crate::Egress::offer) and [`Egress::advance`](crate::Egress::advance) one
/// by one. Packets that leave are put into `out`. Returns how many of the arrivals came.
#[inline(always)]
pub(crate) fn serve<P: Packet + Copy, Q: Qdisc<P> + ?Sized>(
    qdisc: &mut Q,
    line: &mut Line<P>,
    arrivals: &[Due<P>],
    before: Time,
    out: &mut Vec<Delivery<P>>,
    driver: &mut dyn Driver<P>,
) -> usize {
    let mut came = 0;
    loop {
        let due = line.done_at.min(line.next_tick);
        let next = arrivals.get(came);
        let now = due.min(next.map_or(Time::NEVER, |next| next.at));
        if now >= before {
            break;
        }
        if now < line.latest {
            out_of_order(now, line.latest, due);
        }
        line.latest = now;
        if due <= now {
            if line.next_tick <= line.done_at {
                qdisc.tick(now);
                line.ticks += 1;
                line.next_tick = later(qdisc.next_tick(), now);
                continue;
            }
            out.extend(line.leave());
            line.start(qdisc, now, driver);
        } else if let Some(next) = next {
            came += 1;
            let mut told = Counting {
                counts: &mut line.counts,
                is_losing: &mut line.is_losing,
                tells_all: false,
                tap: &mut *driver,
            };
            qdisc.offer(next.packet, now, &mut told);
            if line.sending.is_none() {
                line.start(qdisc, now, driver);
            }
        }
        line.standing.set(qdisc.backlog().packets, now);
    }
    line.counts.offered += came as u64;
    came
}
