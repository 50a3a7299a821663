//! Long-lived or finite transfers, and how fast their hosts send at most.

use super::keys::{FLOWS, OF_DATA, START, at_least_a_byte, start};
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::Asking;
use crate::demand::{Carries, Demand, Expected, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::scenario::Direction;
use crate::units;
use crate::voice::{Asks, Command, Turn, Voice};
use crate::written::Written;
use base::{Distribution, Span, Time};
use traffic::MOST_BYTES;

/// Bulk transfers.
#[derive(Clone, Debug)]
pub struct Bulk {
    /// How many in all.
    pub flows: u32,
    /// When each starts, seconds into the run.
    pub start: Distribution,
    /// Bytes of each; `None` lasts for ever.
    pub size: Option<Distribution>,
}

const MANY: Key = Key { doc: "how many", ..FLOWS };
const SIZE: Key = Key {
    name: "size",
    takes: Takes::Drawn("size or distribution"),
    default: "endless",
    doc: "bytes of each, a size or a distribution",
};
const MAX_PACING_RATE: Key = Key {
    name: "max_pacing_rate",
    takes: Takes::Rate,
    default: "",
    doc: "the most at which each is sent, IP packets: what Linux calls SO_MAX_PACING_RATE",
};

impl Kind for Bulk {
    const ROW: Row = Row {
        name: "bulk",
        called: &["tcp", "ftp", "iperf", "iperf3", "greedy", "download", "downloads", "upload", "elephant"],
        speaks_tcp: true,
        is_recorded: false,
        direction: (Direction::Forward, OF_DATA),
        own: None,
        applications: &["downloads", "backups"],
        models: &[Model {
            name: "",
            doc: "Long-lived or finite transfers",
            source: "brandauer2001",
            keys: &[MANY, START, SIZE, MAX_PACING_RATE],
            words: &[
                ("size=endless", "{flows|endless transfer}"),
                ("size!=endless", "{flows|transfer}"),
                ("size!=endless,!max_pacing_rate", " ({size})"),
                ("size!=endless,max_pacing_rate", " ({size}, held to {max_pacing_rate}{flows: each})"),
                ("size=endless,max_pacing_rate", " (held to {max_pacing_rate}{flows: each})"),
            ],
        }],
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let block = asking.block;
        let flows = MANY.count(block)?;
        let start = start(block, asking.around.duration)?;
        let size = block.read(SIZE.name, None, |entry| match entry.text() {
            Ok(text) if text == SIZE.default => Ok(None),
            _ => at_least_a_byte(entry).map(Some),
        })?;
        let endless = Written::Text(SIZE.default.to_owned());
        let written_size = size.as_ref().map_or(endless, |size| distribution::write(size, Quantity::Size));
        let mut written = vec![
            (MANY.name, Written::Integer(u64::from(flows))),
            (START.name, distribution::write(&start, Quantity::Time)),
            (SIZE.name, written_size),
        ];
        if let Some(entry) = block.get(MAX_PACING_RATE.name) {
            let rate = entry.rate()?;
            if asking.tcp.repair == tcp::Repair::Ns2Sack1 {
                return Err(entry.expected("no such key with repair ns2-sack1, which does not pace"));
            }
            asking.tcp.max_pacing_rate = Some(rate);
            // It is written only where it is given, since other hosts are not held back.
            written.push((MAX_PACING_RATE.name, Written::Text(units::write_rate(rate))));
        }
        Ok(Asked::known(Self { flows, start, size }, written))
    }
}

impl Demand for Bulk {
    fn carries(&self) -> Carries {
        Carries::Transfers
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        for number in 0..self.flows {
            let mut stream = site.stream("flow", number);
            let first = Time::from_secs_f64(self.start.draw(&mut stream));
            let rtt = site.rtt_of(number, self.flows, &mut stream);
            let bytes = self.size.as_ref().map(|size| (size.draw(&mut stream) as u64).clamp(1, MOST_BYTES));
            out.push(site.sending(number, first, Transfer { bytes, rtt }));
        }
    }

    fn expected(&self) -> Expected {
        Expected::Transfers(self.flows)
    }

    fn count(&self) -> u32 {
        self.flows
    }

    fn endless(&self) -> u32 {
        if self.size.is_none() { self.flows } else { 0 }
    }
}

/// One transfer.
struct Transfer {
    bytes: Option<u64>,
    rtt: Span,
}

impl Asks for Transfer {
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>) {
        if turn == Turn::Due {
            let opening = voice.opening(voice.number(), self.rtt);
            voice.say(Command::Transfer { opening, bytes: self.bytes });
        }
    }
}
