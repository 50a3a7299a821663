//! Between a discipline and those who want to know what it does.

use crate::capture::Capture;
use crate::frame::Frame;
use crate::pool::Pool;
use crate::wire;
use aqm::{Ack, Cause, Delivery, Packet, Tap};
use base::Time;
use net::Watch;
use record::Tally;

/// What happens at one bottleneck is counted and captured; buffers of packets that are lost are given back.
pub struct Gate<'a> {
    /// What counts, and writes rows.
    pub tally: Tally<'a>,
    /// Where the bytes of packets are.
    pub pool: &'a mut Pool,
    /// What writes packets down, if anything does.
    pub capture: &'a mut Option<Capture>,
}

impl Watch<Frame> for Gate<'_> {
    #[inline]
    fn offered(&mut self, packet: &Frame, now: Time) {
        self.tally.meter.offered(packet.is_udp);
        if let Some(capture) = &mut *self.capture {
            capture.offered(usize::from(packet.side), bytes(self.pool, packet), now);
        }
    }

    #[inline]
    fn waiting(&mut self, packets: u32, now: Time) {
        self.tally.meter.waiting(packets, now);
    }

    #[inline]
    fn delivered(&mut self, delivery: &Delivery<Frame>) {
        let packet = &delivery.packet;
        self.tally.meter.delivered(packet.size(), delivery.waited);
        if let Some(capture) = &mut *self.capture {
            let side = usize::from(packet.side);
            capture.delivered(side, packet.place, bytes(self.pool, packet), packet.ecn, delivery.at);
        }
    }
}

impl Tap<Frame> for Gate<'_> {
    #[inline]
    fn accepted(&mut self, _packet: &Frame, _now: Time) {
        self.tally.meter.accepted();
    }

    fn dropped(&mut self, packet: Frame, cause: Cause, now: Time) {
        self.tally.dropped(&packet, packet.is_udp, cause, now);
        if let Some(capture) = &mut *self.capture {
            capture.dropped(usize::from(packet.side), packet.place, bytes(self.pool, &packet), cause, now);
        }
        self.pool.give_back(packet.place);
    }

    fn marked(&mut self, packet: &Frame, cause: Cause, now: Time) {
        self.tally.marked(packet, cause, now);
        if let Some(capture) = &mut *self.capture {
            capture.marked(packet.place, cause);
        }
    }

    fn hosts(&self, packet: &Frame) -> Option<(u32, u32)> {
        wire::hosts(bytes(self.pool, packet))
    }

    fn ack(&self, packet: &Frame) -> Option<Ack> {
        wire::ack(bytes(self.pool, packet))
    }
}

fn bytes<'a>(pool: &'a Pool, packet: &Frame) -> &'a [u8] {
    &pool.buffer(packet.place)[..usize::from(packet.size)]
}
