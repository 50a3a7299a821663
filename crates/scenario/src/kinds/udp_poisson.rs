//! This kind of traffic sends packets at random instants, with exponential gaps and independent sizes, whatever becomes
//! of them. With exponential sizes these are the arrivals of the M/M/1 queue, with a single size those of the M/D/1
//! queue (Kleinrock 1975, vol. I).

use super::datagrams::{self, Packets};
use super::keys::{ARRIVALS, FLOWS, START, arrivals, start};
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::Asking;
use crate::demand::{Carries, Demand, Expected, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::units;
use crate::written::Written;
use base::{Distribution, Span, Stream};
use traffic::Datagram;
use traffic::datagrams::PACKET_BYTES;

/// Unresponsive packets at random instants.
#[derive(Clone, Debug)]
pub struct UdpPoisson {
    /// How many sources.
    pub flows: u32,
    /// When each starts, seconds into the run.
    pub start: Distribution,
    /// Packets a second of all together.
    pub packets_per_s: f64,
    /// Size of each, bytes (IP).
    pub size: Distribution,
}

const PACKETS: Key = Key { doc: "packets a second of all together, such as 1000hz", ..ARRIVALS };
/// The default size, bytes (IP): that of `cbr`.
const PACKET_SIZE: f64 = 573.0;
const PACKET: Key = Key {
    name: "packet",
    takes: Takes::Drawn("size or distribution"),
    default: "573b",
    doc: "size of a packet, IP, a size or a distribution",
};

impl Kind for UdpPoisson {
    const ROW: Row = Row {
        name: "udp-poisson",
        called: &[],
        models: &[Model {
            name: "",
            doc: "Unresponsive UDP packets at random instants: the arrivals of M/M/1 and M/D/1",
            source: "Kleinrock, Queueing Systems, vol. I, 1975",
            keys: &[FLOWS, PACKETS, PACKET, START],
            words: &[("", "{flows|UDP source} of packets at random times ({arrivals} a second{flows: together})")],
        }],
        ..datagrams::UNRESPONSIVE
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let block = asking.block;
        let flows = FLOWS.count(block)?;
        let packets_per_s = arrivals(block)?;
        let size = block.read(PACKET.name, Distribution::Constant(PACKET_SIZE), |entry| {
            let size = distribution::read(entry, Quantity::Size)?;
            let (least, most) = (f64::from(*PACKET_BYTES.start()), f64::from(*PACKET_BYTES.end()));
            if size.max() >= least && distribution::smallest(&size) <= most {
                return Ok(size);
            }
            let [least, most] = [least, most].map(units::write_bytes);
            Err(entry.expected(format!("sizes from {least} to {most}")))
        })?;
        let start = start(block, asking.around.duration)?;
        let written = vec![
            (FLOWS.name, Written::Integer(u64::from(flows))),
            (PACKETS.name, Written::Text(units::write_frequency(packets_per_s))),
            (PACKET.name, distribution::write(&size, Quantity::Size)),
            (START.name, distribution::write(&start, Quantity::Time)),
        ];
        Ok(Asked::known(Self { flows, start, packets_per_s, size }, written))
    }
}

impl Demand for UdpPoisson {
    fn carries(&self) -> Carries {
        Carries::Datagrams
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        let mean_gap_s = f64::from(self.flows) / self.packets_per_s;
        datagrams::sources(site, (self.flows, &self.start), out, |_, stream| {
            PoissonPackets::new(stream, mean_gap_s, self.size.clone())
        });
    }

    fn expected(&self) -> Expected {
        let bytes = self.size.mean();
        Expected::Datagrams { flows: self.flows, bps: self.packets_per_s * bytes * 8.0, bytes }
    }

    fn count(&self) -> u32 {
        self.flows
    }

    fn packet_sizes(&self) -> Vec<f64> {
        // No size is drawn below its quantile at zero.
        vec![self.size.quantile(0.0), self.size.max()]
    }
}

/// A Poisson process of packets.
#[derive(Clone, Debug)]
struct PoissonPackets {
    stream: Stream,
    gap: Distribution,
    size: Distribution,
}

impl PoissonPackets {
    /// Packets every `mean_gap_s` seconds on average, with sizes in bytes (IP) drawn from `size`. A size that no UDP
    /// packet can have becomes the nearest one that it can.
    fn new(stream: Stream, mean_gap_s: f64, size: Distribution) -> Self {
        Self { stream, gap: Distribution::Exponential { mean: mean_gap_s }, size }
    }
}

impl Packets for PoissonPackets {
    fn next_datagram(&mut self) -> Option<Datagram> {
        let gap = Span::from_secs_f64(self.gap.draw(&mut self.stream));
        let bytes = self.size.draw(&mut self.stream) + 0.5;
        let (least, most) = (*PACKET_BYTES.start(), *PACKET_BYTES.end());
        Some(Datagram { gap, bytes: (bytes as u32).clamp(least, most) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_sizes_have_their_means_and_spreads() {
        let size = Distribution::Uniform(100.0, 1_500.0);
        let mut packets = PoissonPackets::new(Stream::named(1, "traffic/0/source/0"), 0.001, size);
        let n = 200_000;
        let (mut gaps, mut squares, mut bytes) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let packet = packets.next_datagram().expect("there is always another");
            gaps += packet.gap.secs_f64();
            squares += packet.gap.secs_f64() * packet.gap.secs_f64();
            bytes += f64::from(packet.bytes);
        }
        // An exponential has sd = mean, its square the mean 2 m² and the sd sqrt(20) m²; a uniform of width w has the
        // sd w/sqrt(12): four standard errors.
        let (n, bound) = (f64::from(n), 4.0 / f64::from(n).sqrt());
        assert!((gaps / n / 1e-3 - 1.0).abs() < bound);
        assert!((squares / n / 1e-6 - 2.0).abs() < 20.0_f64.sqrt() * bound);
        assert!((bytes / n - 800.0).abs() < 1_400.0 / 12.0_f64.sqrt() * bound);
    }

    #[test]
    fn sizes_are_those_of_udp_packets() {
        for (drawn, sent) in [(0.0, 28), (27.9, 28), (572.6, 573), (1e6, 65_535)] {
            let size = Distribution::Constant(drawn);
            let packet =
                PoissonPackets::new(Stream::named(1, "a"), 1.0, size).next_datagram().expect("there is always another");
            assert_eq!(packet.bytes, sent, "{drawn}");
        }
    }
}
