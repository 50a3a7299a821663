//! Readers of pages of today: many objects of many servers, over the connections of HTTP/2 or HTTP/1.1.
//!
//! What is drawn by default is in [`traffic::page`].

use super::{LOAD, USERS, Web, population};
use crate::demand::{Carries, Demand, Expected, Lanes, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::kinds::keys::at_least_a_byte;
use crate::kinds::{Asked, Key, Model, Takes};
use crate::section::{Entry, Section};
use crate::voice::{Asks, Turn, Voice};
use crate::written::Written;
use base::{Distribution, Time};
use traffic::page::{self, Drawn};
use traffic::{PageModel, Protocol, Reader, Residual};

/// Readers of pages.
#[derive(Clone, Debug)]
pub struct Readers {
    /// The model, with its parameters filled in.
    pub model: PageModel,
    /// How many in all; half of them each way where the direction is both.
    pub users: u32,
}

const PROTOCOL: Key = Key {
    name: "protocol",
    takes: Takes::Word(&["h2", "h1"]),
    default: "h2",
    doc: "h2: a connection to each server carries many objects at a time; h1: several connections, an object on each",
};
const PARALLEL: Key = Key {
    name: "parallel",
    takes: Takes::Count(1, 32),
    default: "6",
    doc: "h1: connections to each server, as browsers have them",
};
const TLS: Key = Key {
    name: "tls",
    takes: Takes::Flag,
    default: "true",
    doc: "whether connections begin with a handshake of a round trip, as TLS 1.3's",
};
const OBJECTS: Key = Key {
    name: "objects",
    takes: Takes::Drawn("number or distribution"),
    default: "as in the archive",
    doc: "objects of a page, the document included, rounded down",
};
const SERVERS: Key = Key {
    name: "servers",
    takes: Takes::Drawn("number or distribution"),
    default: "as in the archive",
    doc: "servers of a page, rounded down",
};
const OWN_SHARE: Key = Key {
    name: "own_share",
    takes: Takes::Number(0.0, 1.0),
    default: "0.5",
    doc: "share of objects from the document's own server",
};
const DOCUMENT: Key = Key {
    name: "document",
    takes: Takes::Drawn("size or distribution"),
    default: "lognormal, median 18000b, sigma 1",
    doc: "size of the document",
};
const SIZE: Key = Key {
    name: "size",
    takes: Takes::Drawn("size or distribution"),
    default: "lognormal, median 12500b, sigma 1.48",
    doc: "size of each other object",
};
const WAVES: Key = Key {
    name: "waves",
    takes: Takes::Count(1, 16),
    default: "2",
    doc: "waves of objects after the document: each names those of the next",
};
const THINK: Key = Key {
    name: "think",
    takes: Takes::Drawn("time or distribution"),
    default: "weibull, scale 27s, shape 0.5",
    doc: "from the end of a page to the next",
};

pub(super) const ARCHIVE2024: Model = Model {
    name: "archive2024",
    doc: "Readers of pages of today: 71 objects of 12 servers and 2.6 MB in the median",
    source: "HTTP Archive, Web Almanac 2024 (Page Weight) and 2022 (HTTP); Liu, White and Dumais, SIGIR 2010",
    keys: &[USERS, LOAD, PROTOCOL, PARALLEL, TLS, OBJECTS, SERVERS, OWN_SHARE, DOCUMENT, SIZE, WAVES, THINK],
    words: &[("", "{users|reader} of web pages ({model}, {protocol})")],
};

/// Reads a block of readers.
pub(super) fn read(block: &Section<'_>, name: &str) -> Result<Asked<Web>, Error> {
    let is_h2 = block.read(PROTOCOL.name, true, |entry| entry.word(&[("h2", true), ("h1", false)]))?;
    let parallel = PARALLEL.count(block)?;
    if is_h2 && let Some(entry) = block.get(PARALLEL.name) {
        return Err(entry.error("goes with protocol = \"h1\" alone"));
    }
    let protocol = if is_h2 { Protocol::Multiplexed } else { Protocol::OneAtATime(parallel) };
    let handshake = TLS.flag(block)?;
    let archive = Drawn::archive2024();
    let objects = some(block, OBJECTS, archive.objects, page::MOST_OBJECTS)?;
    let servers = some(block, SERVERS, archive.servers, page::MOST_SERVERS)?;
    let own_share = OWN_SHARE.number(block)?;
    let document = block.read(DOCUMENT.name, archive.document, at_least_a_byte)?;
    let object = block.read(SIZE.name, archive.object, at_least_a_byte)?;
    let waves = WAVES.count(block)?;
    let think = block.read(THINK.name, archive.think, |entry| {
        let think = distribution::read(entry, Quantity::Time)?;
        // Below this somebody mistook a unit, and a run would never end.
        if think.mean() >= 1e-3 { Ok(think) } else { Err(entry.expected("at least 1ms in the mean")) }
    })?;

    let mut own = vec![(PROTOCOL.name, Written::Text(if is_h2 { "h2" } else { "h1" }.to_owned()))];
    if !is_h2 {
        own.push((PARALLEL.name, Written::Integer(u64::from(parallel))));
    }
    own.extend([
        (TLS.name, Written::Flag(handshake)),
        (OBJECTS.name, distribution::write(&objects, Quantity::Count)),
        (SERVERS.name, distribution::write(&servers, Quantity::Count)),
        (OWN_SHARE.name, Written::Number(own_share)),
        (DOCUMENT.name, distribution::write(&document, Quantity::Size)),
        (SIZE.name, distribution::write(&object, Quantity::Size)),
        (WAVES.name, Written::Integer(u64::from(waves))),
        (THINK.name, distribution::write(&think, Quantity::Time)),
    ]);
    let think = Residual::of(&think);
    let model = PageModel { think, objects, servers, own_share, document, object, waves, protocol, handshake };
    population(block, name, own, |users| Web::Readers(Readers { model, users }))
}

/// A number of things of which a page has one at least and so many at most.
fn some(block: &Section<'_>, key: Key, default: Distribution, most: u32) -> Result<Distribution, Error> {
    block.read(key.name, default, |entry: &Entry<'_>| {
        let found = distribution::read(entry, Quantity::Count)?;
        let fits = found.max() >= 1.0 && found.quantile(0.5) <= f64::from(most);
        if fits { Ok(found) } else { Err(entry.expected(format!("a number from 1 to {most}, or a distribution"))) }
    })
}

impl Demand for Readers {
    fn carries(&self) -> Carries {
        Carries::Exchanges
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        let servers = (self.model.servers.max() as u32).clamp(1, page::MOST_SERVERS);
        let lanes = Lanes::Few(servers * self.model.protocol.parallel());
        for number in 0..self.users {
            let mut reader = Reader::new(site.stream("user", number));
            let first = Time::ZERO + reader.begin(&self.model);
            out.push(site.asking(number, first, lanes, Reading { reader, model: &self.model }));
        }
    }

    fn expected(&self) -> Expected {
        Expected::Users(self.users)
    }

    fn count(&self) -> u32 {
        self.users
    }
}

struct Reading<'s> {
    reader: Reader,
    model: &'s PageModel,
}

impl Asks for Reading<'_> {
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>) {
        voice.pages(voice.number(), |out| match turn {
            Turn::Due => self.reader.think_over(self.model, out),
            Turn::Completed(lane) => self.reader.completed(lane, self.model, out),
            Turn::Failed(lane) => self.reader.failed(lane, self.model, out),
            Turn::Lost(lane) => self.reader.lost(lane),
        });
    }
}
