//! Packets at random instants: exponential gaps and independent sizes, whatever becomes of them. With exponential sizes
//! the M/M/1 queue's arrivals, with one size the M/D/1 queue's (Kleinrock 1975, vol. I).

use crate::datagrams::{Datagram, PACKET_BYTES};
use base::{Distribution, Span, Stream};

/// A Poisson process of packets.
#[derive(Clone, Debug)]
pub struct PoissonPackets {
    stream: Stream,
    gap: Distribution,
    size: Distribution,
}

impl PoissonPackets {
    /// Packets every `mean_gap_s` seconds on average, of sizes in bytes (IP) drawn from `size`; what no UDP packet has
    /// is brought to the nearest that one has.
    pub fn new(stream: Stream, mean_gap_s: f64, size: Distribution) -> Self {
        Self { stream, gap: Distribution::Exponential { mean: mean_gap_s }, size }
    }

    /// The next packet.
    pub fn next_datagram(&mut self) -> Datagram {
        let gap = Span::from_secs_f64(self.gap.draw(&mut self.stream));
        let bytes = self.size.draw(&mut self.stream) + 0.5;
        let (least, most) = (*PACKET_BYTES.start(), *PACKET_BYTES.end());
        Datagram { gap, bytes: (bytes as u32).clamp(least, most) }
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
            let packet = packets.next_datagram();
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
            let packet = PoissonPackets::new(Stream::named(1, "a"), 1.0, size).next_datagram();
            assert_eq!(packet.bytes, sent, "{drawn}");
        }
    }
}
