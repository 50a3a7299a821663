//! Web connections at a rate, after PackMime-HTTP.

use super::Web;
use crate::blocks::MODEL;
use crate::demand::{Carries, Demand, Expected, Lanes, Site, Source};
use crate::error::Error;
use crate::kinds::keys::{ARRIVALS as AT_RANDOM, arrivals};
use crate::kinds::{Asked, Key, Model, Takes};
use crate::scenario::Direction;
use crate::section::Section;
use crate::units;
use crate::voice::{Asks, Turn, Voice};
use crate::written::Written;
use base::Time;
use traffic::{Command, PackMime, PackMimeModel};

const ARRIVALS: Key = Key { doc: "new connections a second, such as 400hz", ..AT_RANDOM };
const PERSISTENT: Key = Key {
    name: "persistent",
    takes: Takes::Number(0.0, 1.0),
    default: "0.09",
    doc: "share of connections that are persistent",
};
const SERVER_DELAY: Key =
    Key { name: "server_delay", takes: Takes::Flag, default: "true", doc: "whether servers take time to answer" };

pub(super) const PACKMIME: Model = Model {
    name: "packmime",
    doc: "Web connections at a stated rate, a few of them persistent, whatever the network does",
    source: "Cao, Cleveland, Gao, Jeffay, Smith and Weigle, INFOCOM 2004, with the values of ns-2.35",
    keys: &[ARRIVALS, PERSISTENT, SERVER_DELAY],
    words: &[("", "new web connections ({model}, {arrivals} a second)")],
};

/// Reads a block of connections.
pub(super) fn read(block: &Section<'_>, name: &str, direction: Direction) -> Result<Asked<Web>, Error> {
    /// The lowest rate of a direction, connections a second. The Weibull's shape falls with the rate: it is 0.59 here
    /// and 0.03 at a thousandth of it, where nearly all gaps are next to nothing and the mean lies in one that never
    /// comes.
    const FEWEST: f64 = 1.0;
    let connections_per_s = arrivals(block)?;
    let fewest = if direction == Direction::Both { 2.0 * FEWEST } else { FEWEST };
    if connections_per_s < fewest
        && let Some(entry) = block.get(ARRIVALS.name)
    {
        let fewest = units::write_frequency(fewest);
        return Err(entry.expected(format!(
            "at least {fewest}: below one a second in a direction, the model's connections come in bursts without end"
        )));
    }
    let persistent = PERSISTENT.number(block)?;
    let server_delay = SERVER_DELAY.flag(block)?;
    let written = vec![
        (MODEL, Written::Text(name.to_owned())),
        (ARRIVALS.name, Written::Text(units::write_frequency(connections_per_s))),
        (PERSISTENT.name, Written::Number(persistent)),
        (SERVER_DELAY.name, Written::Flag(server_delay)),
    ];
    Ok(Asked::known(Web::PackMime(PackMimeModel { connections_per_s, persistent, server_delay }), written))
}

impl Demand for PackMimeModel {
    fn carries(&self) -> Carries {
        Carries::Exchanges
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        let per_s = self.connections_per_s / f64::from(site.processes());
        for number in 0..site.processes() {
            let streams = ["connections", "arrivals", "requests"].map(|what| site.stream(what, number));
            let mut connections = PackMime::new(per_s, streams);
            let first = Time::ZERO + connections.begin();
            out.push(site.asking(number, first, Lanes::Any, Arrivals { connections, count: 0, model: self }));
        }
    }

    fn expected(&self) -> Expected {
        /// The mean response of the model, roughly, and how long persistent connections wait.
        const RESPONSE: f64 = 10_000.0;
        const WAIT_S: f64 = 30.0;
        let per_s = self.connections_per_s;
        Expected::Exchanges { per_s, bytes: RESPONSE, waiting: WAIT_S * per_s * self.persistent }
    }

    fn numbers_arrivals(&self) -> bool {
        true
    }
}

struct Arrivals<'s> {
    connections: PackMime,
    /// How many began already.
    count: u32,
    model: &'s PackMimeModel,
}

impl Asks for Arrivals<'_> {
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>) {
        let at = voice.at;
        let number = if turn == Turn::Due { self.count } else { voice.number() };
        voice.pages(number, |out| match turn {
            Turn::Due => {
                self.connections.wake(at, self.model, out);
                self.count += u32::from(matches!(out.first(), Some(Command::Open { .. })));
            }
            Turn::Completed(lane) => self.connections.completed(lane, at, out),
            Turn::Failed(lane) => self.connections.failed(lane, true),
            Turn::Lost(lane) => self.connections.failed(lane, false),
        });
    }
}
