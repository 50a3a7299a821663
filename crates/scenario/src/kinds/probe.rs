//! A probe is a small real-time flow that is measured packet by packet. Its packets have one size and even distances,
//! as speech over IP without silence suppression has (RFC 3432: a periodic stream, for the measurement of delay).
//!
//! The defaults are G.711 in RTP: 160 bytes of speech every 20 ms (RFC 3551 §4.2, §4.5.14), behind 12 bytes of RTP (RFC
//! 3550 §5.1), 8 of UDP and 20 of IPv4.

use super::datagrams::{self, Packets};
use super::keys::{FLOWS, START, start};
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::Asking;
use crate::demand::{Carries, Demand, Expected, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::units;
use crate::written::Written;
use base::{Distribution, Span, Stream};
use traffic::Datagram;

/// Unresponsive packets at even distances, to be measured.
#[derive(Clone, Debug)]
pub struct Probes {
    /// How many sources.
    pub flows: u32,
    /// When each starts, seconds into the run.
    pub start: Distribution,
    /// From one packet to the next.
    pub interval: Span,
    /// Size of each packet, bytes (IP).
    pub packet: u32,
}

/// The shortest distance of packets. Ten thousand packets a second and more are no small flow.
const SHORTEST_NS: u64 = 100_000;
const LONGEST_NS: u64 = 3_600_000_000_000;
const INTERVAL: Key = Key {
    name: "interval",
    takes: Takes::Time(SHORTEST_NS, LONGEST_NS),
    default: "20ms",
    doc: "from one packet to the next",
};
const PACKET: Key = Key::packet("200b");

impl Kind for Probes {
    const ROW: Row = Row {
        name: "probe",
        called: &["ping", "icmp", "irtt"],
        applications: &["calls", "games"],
        models: &[Model {
            name: "",
            doc: "A small real-time flow whose packets are measured one by one: loss, one-way delay, jitter",
            source: "RFC 3432; the defaults are G.711 speech in RTP, RFC 3551",
            keys: &[FLOWS, INTERVAL, PACKET, START],
            words: &[("", "{flows|probe} (a packet of {packet} every {interval})")],
        }],
        ..datagrams::UNRESPONSIVE
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let (block, around) = (asking.block, asking.around);
        let flows = FLOWS.count(block)?;
        let interval = INTERVAL.time(block)?;
        let packet = PACKET.size(block)?;
        let takes = around.access_rate.time_for(u64::from(packet));
        if takes > interval {
            let access = units::write_rate(around.access_rate);
            let error = |key: &Key| {
                block.get(key.name).map(|entry| entry.expected(format!("what access links of {access} carry")))
            };
            return Err(error(&INTERVAL).or_else(|| error(&PACKET)).unwrap_or_else(|| {
                let least = units::write_span(takes);
                block.missing(INTERVAL.name, &format!("at least {least} on access links of {access}"))
            }));
        }
        let start = start(block, around.duration)?;
        let written = vec![
            (FLOWS.name, Written::Integer(u64::from(flows))),
            (INTERVAL.name, Written::Text(units::write_span(interval))),
            (PACKET.name, Written::Text(units::write_bytes(f64::from(packet)))),
            (START.name, distribution::write(&start, Quantity::Time)),
        ];
        Ok(Asked::known(Self { flows, start, interval, packet }, written))
    }
}

impl Demand for Probes {
    fn carries(&self) -> Carries {
        Carries::Probes
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        datagrams::sources(site, (self.flows, &self.start), out, |_, mut stream| {
            Probe::new(self.interval, self.packet, &mut stream)
        });
    }

    fn expected(&self) -> Expected {
        Expected::Datagrams { flows: self.flows, bps: 0.0, bytes: self.packet.into() }
    }

    fn count(&self) -> u32 {
        self.flows
    }

    fn packet_sizes(&self) -> Vec<f64> {
        vec![f64::from(self.packet)]
    }
}

/// A probing source.
#[derive(Clone, Debug)]
struct Probe {
    interval: Span,
    packet_bytes: u32,
    /// The wait for the first packet, until that is sent.
    phase: Option<Span>,
}

impl Probe {
    /// A source of IP packets of `packet_bytes` every `interval`, the first of them a random part of an interval after
    /// the start (RFC 3432 §3.1), so that several do not send in step.
    fn new(interval: Span, packet_bytes: u32, stream: &mut Stream) -> Self {
        let phase = Some(Span::from_ns(stream.below(interval.ns().max(1))));
        Self { interval, packet_bytes, phase }
    }
}

impl Packets for Probe {
    fn next_datagram(&mut self) -> Option<Datagram> {
        Some(Datagram { gap: self.phase.take().unwrap_or(self.interval), bytes: self.packet_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_isochronous_after_a_random_phase() {
        const INTERVAL: Span = Span::from_ms(20);
        let mut stream = Stream::named(1, "traffic/0/source/0");
        let n = 20_000;
        let mut phases = 0.0;
        for _ in 0..n {
            let mut probe = Probe::new(INTERVAL, 200, &mut stream);
            let phase = probe.next_datagram().expect("it goes on").gap;
            assert!(phase < INTERVAL);
            phases += phase.secs_f64();
            assert!((0..3).all(|_| probe.next_datagram() == Some(Datagram { gap: INTERVAL, bytes: 200 })));
        }
        // Four standard errors of the mean of a uniform on 20 ms.
        assert!((phases / f64::from(n) - 0.01).abs() < 4.0 * 0.02 / (12.0 * f64::from(n)).sqrt());
    }
}
