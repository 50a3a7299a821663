//! This kind of traffic asks for a recording again. Its file says who asks for how much, and when:
//!
//! ```text
//! connection,at_s,direction,rtt_s,request_bytes,response_bytes,server_delay_s,last
//! 0,0.5,forward,0.08,350,12000,0,0
//! 1,0.75,reverse,0.031,412,820,0.02,1
//! 0,1.25,,,298,4100,0,0
//! 0,2.5,,,,,,
//! ```
//!
//! Each exchange has a line, in the order of time:
//! - The first line of a connection opens it. It says which way responses flow, and the round-trip propagation time; on
//!   later lines of the connection these are empty.
//! - `server_delay_s` may be empty for none.
//! - `last` is 1 where the server closes the connection after the response, and else 0.
//! - A line with nothing but connection and instant says that the client closes the connection. Nothing follows on it.
//! - Connections may have any numbers. A heading and lines that begin with `#` are skipped.

use super::keys::{MOST_ASKED, REQUIRED};
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::Asking;
use crate::demand::{Carries, Demand, Expected, Lanes, Site, Source};
use crate::error::Error;
use crate::kept::{self, ReadFile};
use crate::rows::{lines, other_units, time_of};
use crate::scenario::Direction;
use crate::voice::{Asks, Command, Turn, Voice};
use base::{Span, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use traffic::replay::{Step, What};
use traffic::{Demands, Exchange, MOST_BYTES};

/// A recording.
pub type Replay = Arc<Demands>;

const DEMANDS: Key =
    Key { name: "demands", takes: Takes::File, default: REQUIRED, doc: "a file that aqmlab record wrote" };

const LINE: &str = "expected connection,at_s,direction,rtt_s,request_bytes,response_bytes,server_delay_s,last";

impl Kind for Replay {
    const ROW: Row = Row {
        name: "replay",
        called: &["recorded"],
        speaks_tcp: true,
        is_recorded: false,
        // As recorded.
        direction: (Direction::Both, ""),
        own: None,
        applications: &[],
        models: &[Model {
            name: "",
            doc: "Recorded exchanges, asked again at the same instants whatever becomes of earlier answers",
            source: "Kuzmanovic, SIGCOMM 2005",
            keys: &[DEMANDS],
            words: &[("", "the exchanges recorded in {demands}, in the directions recorded")],
        }],
    };

    /// Reads a block, which leaves direction and round-trip times to the file.
    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let block = asking.block;
        if let Some(entry) = block.get("rtt") {
            return Err(
                entry.error("does not go with kind = \"replay\": each connection has the one it was recorded with")
            );
        }
        if let Some(entry) = block.get("direction").filter(|entry| entry.text().is_ok_and(|text| text != "both")) {
            return Err(entry.expected("both: each connection has the direction it was recorded with"));
        }
        let file = block.require(DEMANDS.name, "the name of a file that aqmlab record wrote", |entry| {
            kept::read(entry, "recorded demands")
        })?;
        let demands = Arc::new(demands(&file)?);
        Ok(Asked::known(demands, vec![(DEMANDS.name, kept::write(&file))]))
    }
}

impl Demand for Replay {
    fn carries(&self) -> Carries {
        Carries::Exchanges
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        let replay = traffic::Replay::new(self);
        let first = replay.next_wake(self).unwrap_or(Time::NEVER);
        out.push(site.asking(0, first, Lanes::Recorded, Replaying { replay, demands: self }));
    }

    fn expected(&self) -> Expected {
        let connections = self.connections() as f64;
        Expected::Table { connections, bytes: connections * size_of::<u32>() as f64 }
    }

    fn numbers_arrivals(&self) -> bool {
        true
    }

    fn shortest_rtt(&self) -> Option<Span> {
        (0..self.connections() as u32).map(|connection| self.of(connection).rtt).min()
    }

    fn is_recording(&self) -> bool {
        true
    }
}

/// A recording that is being replayed. Its connections are its lanes.
struct Replaying<'s> {
    replay: traffic::Replay,
    demands: &'s Demands,
}

impl Asks for Replaying<'_> {
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>) {
        let step = match turn {
            Turn::Due => {
                let step = self.replay.wake(self.demands);
                if let Some(at) = self.replay.next_wake(self.demands) {
                    voice.wake(at);
                }
                step
            }
            Turn::Completed(connection) => self.replay.completed(connection, self.demands),
            // The connection had been closed when it was given up.
            Turn::Failed(traffic::Command::NO_LANE) | Turn::Lost(traffic::Command::NO_LANE) => None,
            Turn::Failed(connection) | Turn::Lost(connection) => self.replay.failed(connection, self.demands),
        };
        let Some(Step { connection, at, what }) = step else { return };
        let recorded = self.demands.of(connection);
        let client = 1 - recorded.direction;
        if !voice.opens(client) {
            return;
        }
        let owner = voice.owner(connection);
        voice.say(match what {
            What::Open { ask, is_last } => {
                let opening = voice.opening_from(client, connection, recorded.rtt);
                Command::Open { opening, owner: Some(owner), ask, is_last, since: at }
            }
            What::Ask { ask, is_last } => Command::Ask { owner, ask, is_last, since: at },
            What::Close => Command::Close { owner },
        });
    }
}

fn demands(file: &ReadFile) -> Result<Demands, Error> {
    let mut demands = Demands::default();
    let mut numbers = BTreeMap::new();
    if let Some(heading) = other_units(&file.text) {
        return Err(file.error(heading, "expected times in seconds and sizes in bytes".into()));
    }
    for (number, line) in lines(&file.text) {
        add(&mut demands, &mut numbers, line).map_err(|problem| file.error(number, problem))?;
    }
    if demands.exchanges() == 0 {
        return Err(file.error(1, LINE.into()));
    }
    Ok(demands)
}

/// One line.
fn add(demands: &mut Demands, numbers: &mut BTreeMap<u64, u32>, line: &str) -> Result<(), String> {
    let mut fields = line.split(',').map(str::trim);
    let mut field = || fields.next().ok_or(LINE);
    let (connection, at, direction, rtt) = (field()?, field()?, field()?, field()?);
    let (request, response, delay, last) = (field()?, field()?, field()?, field()?);
    if fields.next().is_some() {
        return Err(LINE.into());
    }
    let number: u64 = connection.parse().map_err(|_| "expected a whole number as connection")?;
    let at = Time::ZERO + time_of(at).ok_or("expected an instant from 0 to 1000000 s as at_s")?;
    if at < demands.end() {
        return Err("expected instants that do not fall from one line to the next".into());
    }
    let is_close = [direction, rtt, request, response, delay, last].iter().all(|field| field.is_empty());
    let known = numbers.get(&number).copied();
    if known.is_some_and(|connection| demands.is_closed(connection)) {
        return Err(format!("connection {number} is closed already"));
    }
    if is_close {
        let connection = known.ok_or_else(|| format!("connection {number} is closed before it is opened"))?;
        demands.close(connection, at);
        return Ok(());
    }
    let request_bytes = whole(request, MOST_ASKED).ok_or("expected bytes as request_bytes")? as u32;
    let response_bytes = whole(response, MOST_BYTES).ok_or("expected at least one byte as response_bytes")?;
    let server_delay = match delay {
        "" => Span::ZERO,
        delay => time_of(delay).ok_or("expected a time as server_delay_s")?,
    };
    let is_last = match last {
        "0" => false,
        "1" => true,
        _ => return Err("expected 0 or 1 as last".into()),
    };
    let connection = match known {
        Some(connection) if direction.is_empty() && rtt.is_empty() => connection,
        Some(_) => return Err(format!("connection {number} is open already: expected no direction and no rtt_s")),
        None => {
            let direction = match direction {
                "forward" => 0,
                "reverse" => 1,
                _ => return Err("expected forward or reverse as direction".into()),
            };
            // Draws from an unbounded tail may be as long as this.
            let rtt = time_of(rtt).ok_or("expected a time from 0 to 1000000 s as rtt_s")?;
            let connection = demands.connection(direction, rtt);
            numbers.insert(number, connection);
            connection
        }
    };
    let ask = Exchange { request_bytes, response_bytes, top_level: false, server_delay };
    demands.ask(connection, at, &ask, is_last);
    Ok(())
}

/// A whole number from 1 to `most`.
fn whole(text: &str, most: u64) -> Option<u64> {
    text.parse().ok().filter(|n| (1..=most).contains(n))
}
