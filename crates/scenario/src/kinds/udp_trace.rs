//! This kind of traffic sends unresponsive packets as a file lists them.
//!
//! The file has lines of `time,bytes`: when a packet is sent, from the start of the source, and its size as an IP
//! packet. A time has a unit as everywhere, or is in seconds without one. Times do not fall. A first line of names is
//! skipped, and so are lines that begin with `#`.

use super::datagrams::{self, Packets};
use super::keys::{FLOWS, REQUIRED, START, start_or};
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::Asking;
use crate::demand::{Carries, Demand, Expected, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::kept::{self, ReadFile};
use crate::rows::{lines, other_units, time_of};
use crate::written::Written;
use base::{Distribution, Span};
use std::sync::Arc;
use traffic::Datagram;
use traffic::datagrams::PACKET_BYTES;

/// Unresponsive packets as written down.
#[derive(Clone, Debug)]
pub struct UdpTrace {
    /// How many sources.
    pub flows: u32,
    /// When each starts, seconds into the run.
    pub start: Distribution,
    /// What each sends.
    pub packets: Arc<[Datagram]>,
}

const PACKETS: Key = Key { name: "packets", takes: Takes::File, default: REQUIRED, doc: "file of lines time,bytes" };
/// The start of sources: unless stated, at once, so that packets are sent at the instants of the file.
const AT_ONCE: Key = Key { default: "0s", ..START };

impl Kind for UdpTrace {
    const ROW: Row = Row {
        name: "udp-trace",
        called: &["trace"],
        models: &[Model {
            name: "",
            doc: "Unresponsive UDP packets as they are written down in a file",
            source: "ns-2.35, Application/Traffic/Trace",
            keys: &[FLOWS, PACKETS, AT_ONCE],
            words: &[("", "{flows|UDP source} of the packets in {packets}")],
        }],
        ..datagrams::UNRESPONSIVE
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let block = asking.block;
        let flows = FLOWS.count(block)?;
        let file = block.require(PACKETS.name, "the name of a file of lines time,bytes", |entry| {
            kept::read(entry, "packets, in lines of time,bytes")
        })?;
        let packets = packets(&file)?;
        let start = start_or(block, asking.around.duration, Distribution::Constant(0.0))?;
        let written = vec![
            (FLOWS.name, Written::Integer(u64::from(flows))),
            (PACKETS.name, kept::write(&file)),
            (AT_ONCE.name, distribution::write(&start, Quantity::Time)),
        ];
        Ok(Asked::known(Self { flows, start, packets }, written))
    }
}

impl Demand for UdpTrace {
    fn carries(&self) -> Carries {
        Carries::Datagrams
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        datagrams::sources(site, (self.flows, &self.start), out, |_, _| PacketTrace::new(self.packets.clone()));
    }

    fn expected(&self) -> Expected {
        Expected::Datagrams { flows: self.flows, bps: 0.0, bytes: 1.0 }
    }

    fn count(&self) -> u32 {
        self.flows
    }

    fn packet_sizes(&self) -> Vec<f64> {
        self.packets.iter().map(|packet| f64::from(packet.bytes)).collect()
    }
}

/// The lines of a file of packets.
fn packets(file: &ReadFile) -> Result<Arc<[Datagram]>, Error> {
    let mut packets: Vec<(Span, u32)> = Vec::new();
    if let Some(heading) = other_units(&file.text) {
        return Err(file.error(heading, "expected seconds and bytes, as time_s,bytes".into()));
    }
    for (number, line) in lines(&file.text) {
        let expected = "expected time,bytes, such as 0.25,573";
        let read = |line: &str| -> Option<(Span, f64)> {
            let (time, bytes) = line.split_once(',')?;
            Some((time_of(time.trim())?, bytes.trim().parse().ok()?))
        };
        let (at, bytes) = read(line).ok_or_else(|| file.error(number, expected.into()))?;
        let (least, most) = (f64::from(*PACKET_BYTES.start()), f64::from(*PACKET_BYTES.end()));
        if !(least..=most).contains(&bytes) || bytes.fract() != 0.0 {
            return Err(file.error(number, format!("expected whole bytes from {least} to {most}, headers included")));
        }
        if packets.last().is_some_and(|(before, _)| at < *before) {
            return Err(file.error(number, "expected times that do not fall from one line to the next".into()));
        }
        packets.push((at, bytes as u32));
    }
    if packets.is_empty() {
        return Err(file.error(1, "expected lines of time,bytes, such as 0.25,573".into()));
    }
    Ok(PacketTrace::packets(packets))
}

/// A source that sends what is written down.
#[derive(Clone, Debug)]
struct PacketTrace {
    packets: Arc<[Datagram]>,
    next: usize,
}

impl PacketTrace {
    /// A source of `packets`, which sources share, from the first on.
    fn new(packets: Arc<[Datagram]>) -> Self {
        Self { packets, next: 0 }
    }

    /// The packets that are sent at these times since the start, which do not fall, of these sizes.
    fn packets(lines: impl IntoIterator<Item = (Span, u32)>) -> Arc<[Datagram]> {
        let mut before = Span::ZERO;
        let gap =
            |(at, bytes): (Span, u32)| Datagram { gap: at.saturating_sub(std::mem::replace(&mut before, at)), bytes };
        lines.into_iter().map(gap).collect()
    }
}

impl Packets for PacketTrace {
    fn next_datagram(&mut self) -> Option<Datagram> {
        let packet = self.packets.get(self.next).copied();
        self.next += 1;
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sends_what_is_written_at_the_instants_written() {
        let written = [(5_000, 100), (5_000, 1_500), (12_345, 28)].map(|(ns, bytes)| (Span::from_ns(ns), bytes));
        let mut source = PacketTrace::new(PacketTrace::packets(written));
        let mut at = Span::ZERO;
        for (instant, bytes) in written {
            let packet = source.next_datagram().expect("three packets");
            at = at + packet.gap;
            assert_eq!((at, packet.bytes), (instant, bytes));
        }
        assert_eq!(source.next_datagram(), None);
        assert_eq!(source.next_datagram(), None);
    }
}
