//! A [`Gate`] is the observer of a port.

use crate::around::Around;
use crate::frame::Frame;
use crate::pool::Pool;
use crate::wire;
use aqm::{Ack, Cause, Delivery, Headers, Packet, Tap};
use base::Time;
use net::{Port, Watch};
use record::{Meter, Sink, Tally};

/// The observer of one port. It counts and captures what happens there, gives buffers of lost packets back, and sends
/// packets on that have left.
pub struct Gate<'a> {
    /// The port.
    pub port: Port,
    /// The meter of the port.
    pub meter: &'a mut Meter,
    /// Everything that lies around the links.
    pub around: &'a mut Around,
    /// Where rows go.
    pub sink: &'a mut dyn Sink,
}

impl Gate<'_> {
    fn tally(&mut self) -> Tally<'_> {
        Tally { meter: self.meter, sink: self.sink, port: self.port, writes_drops: self.around.writes_drops }
    }
}

impl Watch<Frame> for Gate<'_> {
    #[inline]
    fn offered(&mut self, packet: &Frame, now: Time) {
        let Around { pool, captures, routes, .. } = self.around;
        self.meter.offered();
        if packet.is_udp && routes.is_first(packet.step) {
            self.meter.udp_offered();
        }
        if let Some(capture) = captures.at(self.port) {
            capture.offered(usize::from(packet.side), bytes(pool, packet), packet.ecn, now);
        }
    }

    #[inline]
    fn delivered(&mut self, delivery: &Delivery<Frame>, arrives: Time) {
        let packet = &delivery.packet;
        self.meter.delivered(packet.size(), delivery.waited);
        let Around { pool, captures, waits, .. } = self.around;
        if let Some(waits) = waits.get_mut(usize::from(packet.step.number()))
            && self.meter.is_measuring()
        {
            waits.add(delivery.waited);
        }
        if let Some(capture) = captures.at(self.port) {
            let side = usize::from(packet.side);
            capture.delivered(side, packet.place, bytes(pool, packet), packet.ecn, delivery.at);
        }
        self.around.go_on(delivery, arrives);
    }
}

impl Tap<Frame> for Gate<'_> {
    #[inline]
    fn accepted(&mut self, _packet: &Frame, _now: Time) {
        self.meter.accepted();
    }

    fn dropped(&mut self, packet: Frame, cause: Cause, now: Time) {
        self.tally().dropped(&packet, packet.is_udp, cause, now);
        let Around { pool, captures, .. } = self.around;
        if let Some(capture) = captures.at(self.port) {
            let side = usize::from(packet.side);
            capture.dropped(side, packet.place, bytes(pool, &packet), packet.ecn, cause, now);
        }
        pool.give_back(packet.place);
    }

    fn marked(&mut self, packet: &Frame, cause: Cause, now: Time) {
        self.tally().marked(packet, cause, now);
        if let Some(capture) = self.around.captures.at(self.port) {
            capture.marked(packet.place, cause);
        }
    }
}

impl Headers<Frame> for Gate<'_> {
    fn hosts(&self, packet: &Frame) -> Option<(u32, u32)> {
        wire::hosts(bytes(&self.around.pool, packet))
    }

    fn ack(&self, packet: &Frame) -> Option<Ack> {
        wire::ack(bytes(&self.around.pool, packet))
    }
}

fn bytes<'a>(pool: &'a Pool, packet: &Frame) -> &'a [u8] {
    &pool.buffer(packet.place)[..usize::from(packet.size)]
}
