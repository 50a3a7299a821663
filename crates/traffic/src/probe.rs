//! A small real-time flow that is measured packet by packet: one size at even distances, as speech over IP without
//! silence suppression (an isochronous stream, RFC 3432: the periodic stream of delay measurement).
//!
//! The defaults are G.711 in RTP: 160 bytes of speech every 20 ms (RFC 3551 §4.2, §4.5.14), behind 12 bytes of RTP (RFC
//! 3550 §5.1), 8 of UDP and 20 of IPv4.

use crate::datagrams::Datagram;
use base::{Span, Stream};

/// A probing source.
#[derive(Clone, Debug)]
pub struct Probe {
    interval: Span,
    packet_bytes: u32,
    /// The wait for the first packet, until that is sent.
    phase: Option<Span>,
}

impl Probe {
    /// Bytes of an IP packet of G.711 speech.
    pub const PACKET_BYTES: u32 = 200;
    /// From one to the next.
    pub const INTERVAL: Span = Span::from_ms(20);

    /// A source of IP packets of `packet_bytes` every `interval`, the first of them a random part of an interval after
    /// the start (RFC 3432 §3.1), so that several do not send in step.
    pub fn new(interval: Span, packet_bytes: u32, stream: &mut Stream) -> Self {
        let phase = Some(Span::from_ns(stream.below(interval.ns().max(1))));
        Self { interval, packet_bytes, phase }
    }

    /// The next packet.
    pub fn next_datagram(&mut self) -> Datagram {
        Datagram { gap: self.phase.take().unwrap_or(self.interval), bytes: self.packet_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_isochronous_after_a_random_phase() {
        let mut stream = Stream::named(1, "traffic/0/source/0");
        let n = 20_000;
        let mut phases = 0.0;
        for _ in 0..n {
            let mut probe = Probe::new(Probe::INTERVAL, Probe::PACKET_BYTES, &mut stream);
            let phase = probe.next_datagram().gap;
            assert!(phase < Probe::INTERVAL);
            phases += phase.secs_f64();
            assert!((0..3).all(|_| probe.next_datagram() == Datagram { gap: Probe::INTERVAL, bytes: 200 }));
        }
        // Four standard errors of the mean of a uniform on 20 ms.
        assert!((phases / f64::from(n) - 0.01).abs() < 4.0 * 0.02 / (12.0 * f64::from(n)).sqrt());
    }
}
