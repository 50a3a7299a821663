//! A [`Line`] is all of an egress behind its discipline. [`serve`] runs a line and a discipline over a stretch of time.
//!
//! A discipline behind a pointer costs an indirect call for each event. [`serve`] is compiled for each discipline by
//! itself ([`Qdisc::serve`]), and does everything that happens within a stretch of time in which only known arrivals
//! come from outside. The wire goes first where both are due:
//!
//! ```text
//!   arrivals       a     b c            d   │ e     of the stretch: a to d; e waits for the next one
//!   queue                b c  c             │
//!   wire       ──[ z ][ a ][ b ][ c ]    [ d│ ]──   d leaves in the next stretch
//!   out              z    a    b    c       │
//!                                         before
//! ```

use crate::egress::{Counting, Counts, Delivery, later, out_of_order};
use crate::framing::Framing;
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
    /// The instants at which packets went, less those at which they came. With each packet that waits until some
    /// instant counted as if it went then, that is the sum.
    went_less_came: i128,
}

impl Standing {
    /// Notes that so many packets wait from `now` on.
    #[inline]
    pub fn set(&mut self, packets: u32, now: Time) {
        let went = i64::from(self.packets) - i64::from(packets);
        self.packets = packets;
        self.went_less_came += i128::from(went) * i128::from(now.ns());
    }

    /// Packets times nanoseconds until `now`.
    #[inline]
    pub fn packet_ns(&self, now: Time) -> u128 {
        (self.went_less_came + i128::from(self.packets) * i128::from(now.ns())) as u128
    }
}

/// An egress without its discipline, and without what may stand between discipline and wire.
pub struct Line<P> {
    pub(crate) wire: Serializer,
    /// What packets take of the wire.
    pub(crate) framing: Framing,
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
            framing: Framing::default(),
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
                self.done_at = self.wire.send(self.framing.wire(held.packet.size()), now);
                self.sending = Some(held);
            }
            Taken::Later(ready) => self.done_at = later(ready, now),
            Taken::Empty => self.done_at = Time::NEVER,
        }
    }

    /// Moves time on to `now`.
    #[inline(always)]
    fn reach(&mut self, now: Time) {
        if now < self.latest {
            out_of_order(now, self.latest, self.done_at.min(self.next_tick));
        }
        self.latest = now;
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
        let next = arrivals.get(came);
        let next_at = next.map_or(Time::NEVER, |next| next.at);
        // What the link does comes first, also at the instant of the next arrival.
        loop {
            let now = line.done_at.min(line.next_tick);
            if now > next_at || now >= before {
                break;
            }
            line.reach(now);
            if line.next_tick <= line.done_at {
                qdisc.tick(now);
                line.ticks += 1;
                line.next_tick = later(qdisc.next_tick(), now);
                continue;
            }
            if let Some(delivery) = line.leave() {
                out.push(delivery);
            }
            line.start(qdisc, now, driver);
            line.standing.set(qdisc.backlog().packets, now);
        }
        let Some(&Due { at: now, packet, .. }) = next.filter(|next| next.at < before) else { break };
        came += 1;
        line.reach(now);
        let Line { counts, is_losing, .. } = &mut *line;
        qdisc.offer(packet, now, &mut Counting { counts, is_losing, tells_all: false, tap: &mut *driver });
        if line.sending.is_none() {
            line.start(qdisc, now, driver);
        }
        line.standing.set(qdisc.backlog().packets, now);
    }
    line.counts.offered += came as u64;
    came
}
