//! Between a discipline and those who want to know what it does.

use crate::capture::Capture;
use crate::frame::Frame;
use crate::pool::Pool;
use crate::wire;
use aqm::{Ack, Cause, Packet, Tap};
use base::Time;
use record::{DropRow, Meter, Sink};

/// What the discipline tells goes to the meter; buffers of packets that are lost are given back.
pub struct Gate<'a> {
    /// Where the bytes of packets are.
    pub pool: &'a mut Pool,
    /// What counts.
    pub meter: &'a mut Meter,
    /// What writes packets down, if anything does.
    pub capture: &'a mut Option<Capture>,
    /// Where rows go.
    pub sink: &'a mut dyn Sink,
    /// Whether losses and marks are rows.
    pub writes_drops: bool,
}

impl Tap<Frame> for Gate<'_> {
    #[inline]
    fn accepted(&mut self, _packet: &Frame, _now: Time) {
        self.meter.accepted();
    }

    fn dropped(&mut self, packet: Frame, cause: Cause, now: Time) {
        self.meter.dropped(cause, packet.is_udp);
        self.write(&packet, false, cause, now);
        if let Some(capture) = &mut *self.capture {
            let bytes = &self.pool.buffer(packet.place)[..usize::from(packet.size)];
            capture.dropped(usize::from(packet.side), packet.place, bytes, cause, now);
        }
        self.pool.give_back(packet.place);
    }

    fn marked(&mut self, packet: &Frame, cause: Cause, now: Time) {
        self.meter.marked(cause);
        self.write(packet, true, cause, now);
        if let Some(capture) = &mut *self.capture {
            capture.marked(packet.place, cause);
        }
    }

    fn hosts(&self, packet: &Frame) -> Option<(u32, u32)> {
        wire::hosts(self.bytes(packet))
    }

    fn ack(&self, packet: &Frame) -> Option<Ack> {
        wire::ack(self.bytes(packet))
    }
}

impl Gate<'_> {
    fn write(&mut self, packet: &Frame, is_mark: bool, cause: Cause, now: Time) {
        if self.writes_drops {
            self.sink.drop(&DropRow {
                time_s: now.secs_f64(),
                direction: packet.side,
                is_mark,
                cause,
                size_bytes: packet.size(),
                flow: packet.flow().0,
            });
        }
    }

    fn bytes(&self, packet: &Frame) -> &[u8] {
        &self.pool.buffer(packet.place)[..usize::from(packet.size)]
    }
}
