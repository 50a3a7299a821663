//! A [`Tally`] counts losses and marks at one direction of a link and writes them down, for both drivers.

use crate::meter::Meter;
use crate::rows::{DropRow, Sink};
use aqm::{Cause, Packet};
use base::Time;
use net::Port;

/// A direction's [`Meter`], and the rows of packets that are lost or marked there.
pub struct Tally<'a> {
    /// What counts them.
    pub meter: &'a mut Meter,
    /// Where rows go.
    pub sink: &'a mut dyn Sink,
    /// The link and direction.
    pub port: Port,
    /// Whether losses and marks are written as rows.
    pub writes_drops: bool,
}

impl Tally<'_> {
    /// Counts a packet that is lost, and writes its row.
    pub fn dropped(&mut self, packet: &impl Packet, is_udp: bool, cause: Cause, now: Time) {
        self.meter.dropped(cause, is_udp);
        self.write(packet, false, cause, now);
    }

    /// Counts a packet that was marked, and writes its row.
    pub fn marked(&mut self, packet: &impl Packet, cause: Cause, now: Time) {
        self.meter.marked(cause);
        self.write(packet, true, cause, now);
    }

    fn write(&mut self, packet: &impl Packet, is_mark: bool, cause: Cause, now: Time) {
        if self.writes_drops {
            self.sink.drop(&DropRow {
                time: now,
                link: self.port.link(),
                direction: self.port.direction(),
                is_mark,
                cause,
                size_bytes: packet.size(),
                flow: packet.flow().0,
            });
        }
    }
}
