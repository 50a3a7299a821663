//! The bottleneck: an egress each way, and what watches them.

use aqm::{Delivery, Egress, Packet, Tap};
use base::Time;

/// What wants to know what happens at an egress, beside what its discipline tells.
pub trait Watch<P>: Tap<P> {
    /// `packet` has come to the egress; the discipline has not seen it yet.
    fn offered(&mut self, packet: &P, now: Time);
    /// From `now` on so many `packets` wait in the discipline.
    fn waiting(&mut self, packets: u32, now: Time);
    /// A packet has left.
    fn delivered(&mut self, delivery: &Delivery<P>);
}

/// An egress each way: that of side 0 sends forward, that of side 1 in reverse.
pub struct Bottleneck<P> {
    egress: [Egress<P>; 2],
}

impl<P: Packet> Bottleneck<P> {
    /// The bottleneck of these.
    pub const fn new(egress: [Egress<P>; 2]) -> Self {
        Self { egress }
    }

    /// The egress of each side.
    #[inline]
    pub const fn egress(&self) -> &[Egress<P>; 2] {
        &self.egress
    }

    /// When something happens here of its own accord, and on which side: forward first where both are due.
    #[inline]
    pub fn next_event(&self) -> (Time, usize) {
        let [forward, reverse] = [self.egress[0].next_event(), self.egress[1].next_event()];
        (forward.min(reverse), usize::from(reverse < forward))
    }

    /// A packet reaches the egress of `side` at `now`.
    #[inline]
    pub fn offer(&mut self, side: usize, packet: P, now: Time, watch: &mut impl Watch<P>) {
        watch.offered(&packet, now);
        self.egress[side].offer(packet, now, watch);
        watch.waiting(self.egress[side].backlog().packets, now);
    }

    /// Lets the egress of `side` do what is due at `now`: a tick of its law, or the end of a transmission.
    #[inline]
    pub fn advance(&mut self, side: usize, now: Time, watch: &mut impl Watch<P>) -> Option<Delivery<P>> {
        let delivery = self.egress[side].advance(now, watch);
        watch.waiting(self.egress[side].backlog().packets, now);
        if let Some(delivery) = &delivery {
            watch.delivered(delivery);
        }
        delivery
    }
}
