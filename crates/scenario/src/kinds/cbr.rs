//! Unresponsive packets at a constant rate.

use super::datagrams::{self, Packets, RATE, rate};
use super::keys::{FLOWS, START, start};
use super::{Asked, Key, Kind, Model, Row};
use crate::blocks::Asking;
use crate::demand::{Carries, Demand, Expected, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::units;
use crate::written::Written;
use base::{Distribution, Rate, Span, Time};
use traffic::Datagram;

/// Unresponsive packets at a constant rate.
#[derive(Clone, Debug)]
pub struct Cbr {
    /// How many sources.
    pub flows: u32,
    /// Rate of all together, IP packets.
    pub rate: Rate,
    /// Size of each packet, bytes (IP).
    pub packet: u32,
    /// When each starts, seconds into the run.
    pub start: Distribution,
}

/// The UDP packets of Brandauer et al., ISCC 2001.
const PACKET: Key = Key::packet("573b");

impl Kind for Cbr {
    const ROW: Row = Row {
        name: "cbr",
        called: &["udp", "voip", "voice", "call", "calls"],
        models: &[Model {
            name: "",
            doc: "Unresponsive UDP packets at a constant rate",
            source: "brandauer2001",
            keys: &[FLOWS, RATE, PACKET, START],
            words: &[("", "{flows|UDP source} of a constant rate ({rate}{flows: together})")],
        }],
        ..datagrams::UNRESPONSIVE
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let (block, around) = (asking.block, asking.around);
        let flows = FLOWS.count(block)?;
        let rate = rate(block, around, flows)?;
        let packet = PACKET.size(block)?;
        let start = start(block, around.duration)?;
        let written = vec![
            (FLOWS.name, Written::Integer(u64::from(flows))),
            (RATE.name, Written::Text(units::write_rate(rate))),
            (PACKET.name, Written::Text(units::write_bytes(f64::from(packet)))),
            (START.name, distribution::write(&start, Quantity::Time)),
        ];
        Ok(Asked::known(Self { flows, rate, packet, start }, written))
    }
}

impl Demand for Cbr {
    fn carries(&self) -> Carries {
        Carries::Datagrams
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        for number in 0..self.flows {
            let mut stream = site.stream("source", number);
            let start = Time::from_secs_f64(self.start.draw(&mut stream));
            let pacing = traffic::Cbr::new(datagrams::share(self.rate, number, self.flows), self.packet);
            let phase = Some(pacing.first_gap(&mut stream));
            let delay = site.rtt_of(number, self.flows, &mut stream) / 2;
            out.extend(datagrams::source(site, number, start, delay, Paced { pacing, phase }));
        }
    }

    fn expected(&self) -> Expected {
        Expected::Datagrams { flows: self.flows, bps: self.rate.bps_f64(), bytes: self.packet.into() }
    }

    fn count(&self) -> u32 {
        self.flows
    }

    fn packet_sizes(&self) -> Vec<f64> {
        vec![f64::from(self.packet)]
    }
}

struct Paced {
    pacing: traffic::Cbr,
    /// The wait for the first packet, until that is sent.
    phase: Option<Span>,
}

impl Packets for Paced {
    fn next_datagram(&mut self) -> Option<Datagram> {
        let gap = self.phase.take().unwrap_or_else(|| self.pacing.gap());
        Some(Datagram { gap, bytes: self.pacing.packet_bytes() })
    }
}
