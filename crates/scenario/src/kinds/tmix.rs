//! This kind of traffic plays connection vectors again. A block says which files, how many of their connections, and
//! which of their conditions.

use super::keys::REQUIRED;
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::{Asking, RTT, WINDOW};
use crate::demand::{Carries, Demand, Expected, Lanes, Site, Source};
use crate::error::Error;
use crate::kept;
use crate::scenario::{Direction, RttSpec};
use crate::units;
use crate::voice::{Asks, Command, Turn, Voice};
use crate::written::Written;
use base::{Rate, Span, Stream, Time};
use std::sync::Arc;
use traffic::tmix::resampling::{MOST_COPIES, TOLERANCE};
use traffic::tmix::{ACCEPTOR, INITIATOR, Path, Resampling, Start, Unmet, Vectors, reading};

/// The population of connection vectors that was found for a load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reached {
    /// Load asked for, in one direction.
    pub load: Rate,
    /// The estimate of what they offer, bits a second.
    pub offered_bps: f64,
    /// How many connections there are for each that was seen.
    pub scale: f64,
    /// How many of these are left out, because they would exceed the load.
    pub left_out: usize,
}

/// Connection vectors, played again.
#[derive(Clone, Debug)]
pub struct Tmix {
    /// The connections that were seen.
    pub vectors: Arc<Vectors>,
    /// How many there are for each that was seen.
    pub scale: f64,
    /// The connections of that scale that are left out, as copy and vector, in order.
    pub without: Vec<(u32, u32)>,
    /// What was found for a load, where one was asked for.
    pub reached: Option<Reached>,
    /// Whether round-trip times are the vectors' rather than the block's.
    pub rtt: bool,
    /// Whether receive windows are the vectors' too. The hosts' window is then the largest of them.
    pub window: bool,
    /// Whether packets are lost as the vectors say, before the bottleneck.
    pub loss: bool,
}

/// The word of `rtt` and `window` for the vectors' own.
const OWN: &str = "vectors";
const VECTORS: Key = Key {
    name: "vectors",
    takes: Takes::File,
    default: REQUIRED,
    doc: "file of connection vectors, or a list of files",
};
/// The smallest scale, one connection of a million. A smaller one is a mistaken unit.
const LEAST: f64 = 1e-6;
const SCALE: Key = Key {
    name: "scale",
    takes: Takes::Number(LEAST, MOST_COPIES as f64),
    default: "1.0",
    doc: "connections for each that was seen: thinned or duplicated",
};
const LOAD: Key = Key {
    name: "load",
    takes: Takes::Rate,
    default: "",
    doc: "instead of scale: the throughput that the connections offer",
};
const LOSS: Key = Key {
    name: "loss",
    takes: Takes::Flag,
    default: "true",
    doc: "whether packets are lost before the link as the vectors say",
};

impl Kind for Tmix {
    const ROW: Row = Row {
        name: "tmix",
        called: &["vectors"],
        speaks_tcp: true,
        is_recorded: false,
        direction: (Direction::Forward, "which way the data of those flows who did not open the connection"),
        own: Some(OWN),
        applications: &[],
        models: &[Model {
            name: "",
            doc: "Connections as they were seen on a link, played again by what their applications did",
            source: "Weigle, Adurthi, Hernandez-Campos, Jeffay and Smith, CCR 2006",
            keys: &[VECTORS, SCALE, LOAD, LOSS],
            words: &[
                ("", "the connections in {vectors}"),
                ("scale,scale!=1,!load", " ({scale} for each that was seen)"),
            ],
        }],
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let &mut Asking { block, around, index, direction, own, rtt, .. } = asking;
        let expected = "the name of a file of connection vectors, or a list of them";
        let files = block.require(VECTORS.name, expected, |entry| kept::read_all(entry, "connection vectors"))?;
        let mut vectors = Vectors::default();
        for file in &files {
            let read = reading::read(&file.text).map_err(|malformed| file.error(malformed.line, malformed.problem))?;
            vectors = vectors.merged(read);
        }
        let loss = LOSS.flag(block)?;
        let load = block.get(LOAD.name).map(|entry| Ok::<_, Error>((entry.rate()?, entry))).transpose()?;
        if let (Some(_), Some(scale)) = (&load, block.get(SCALE.name)) {
            return Err(scale.expected("either scale or load"));
        }
        let scale = SCALE.number(block)?;

        let mut written = vec![(VECTORS.name, kept::write_all(&files))];
        match load {
            Some((load, _)) => written.push((LOAD.name, Written::Text(units::write_rate(load)))),
            None => written.push((SCALE.name, Written::Number(scale))),
        }
        written.push((LOSS.name, Written::Flag(loss)));
        for (name, is_own) in [(RTT, own.rtt), (WINDOW, own.window)] {
            if is_own {
                written.push((name, Written::Text(OWN.to_owned())));
            }
        }
        let vectors = Arc::new(vectors);
        let (without, reached) = (Vec::new(), None);
        let mut tmix = Tmix { vectors, scale, without, reached, rtt: own.rtt, window: own.window, loss };
        if let Some((load, entry)) = load {
            let window = [Time::ZERO + around.warmup, Time::ZERO + around.duration - around.cooldown];
            let directions = if direction == Direction::Both { 2.0 } else { 1.0 };
            let bits = load.bps_f64() * window[1].since(window[0]).secs_f64() * directions;
            // The acceptor sends in the direction of the block. If the block goes both ways, either end may.
            let mut counts = [direction == Direction::Both; 2];
            counts[ACCEPTOR] = true;
            let path = |copy, vector| {
                let mss = asking.tcp.mss;
                let room = u32::try_from(asking.tcp.window).unwrap_or(u32::MAX).max(mss);
                let windows = tmix.windows(vector, mss).unwrap_or([room; 2]);
                Path { rtt: tmix.rtt_of(rtt, around.seed, index, copy, vector), windows }
            };
            let bps = |bytes: f64| bytes * 8.0 / bits * load.bps_f64();
            let rate = |bytes: f64| match bps(bytes) as u64 {
                0 => "none".to_owned(),
                bps => units::say_rate(bps),
            };
            let seen = tmix.vectors.len();
            let found = tmix.resampling(around.seed, index).population(bits / 8.0, window, counts, path);
            let found = found.map_err(|unmet| match unmet {
                Unmet::Beyond(bytes) if bps(bytes) < 1.0 => {
                    entry.error(format!("the {seen} connections offer nothing from warmup to cooldown, expected data"))
                }
                Unmet::Beyond(bytes) => entry.expected(format!(
                    "at most {}, what {MOST_COPIES} copies of the {seen} connections offer",
                    rate(bytes)
                )),
                Unmet::Between(bytes) => entry.expected(format!(
                    "a load that some of the {seen} connections offer to within {} %: the nearest is {}",
                    TOLERANCE * 100.0,
                    rate(bytes)
                )),
            })?;
            let left_out = found.without.len();
            tmix.reached = Some(Reached { load, offered_bps: bps(found.offered), scale: found.scale, left_out });
            (tmix.scale, tmix.without) = (found.scale, found.without);
        }
        if own.window {
            // Each end offers its own window, so that the hosts' must not limit it further.
            asking.tcp.window = u64::from(tmix.vectors.largest_window()).max(asking.tcp.mss.into());
        }
        Ok(Asked::known(tmix, written))
    }
}

impl Demand for Tmix {
    fn carries(&self) -> Carries {
        Carries::Vectors
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        let end = Time::ZERO + site.scenario.duration;
        let (seed, index) = (site.scenario.seed, usize::from(site.block));
        let starts = self.starts(seed, index, end);
        if let Some(first) = starts.first() {
            let (first, traffic) = (first.at, site.traffic());
            let starts =
                Starts { starts, next: 0, tmix: self, direction: traffic.direction, rtt: &traffic.rtt, seed, index };
            out.push(site.asking(0, first, Lanes::Recorded, starts));
        }
    }

    fn expected(&self) -> Expected {
        let connections = self.vectors.len() as f64 * self.scale.max(1.0);
        Expected::Table { connections, bytes: connections * size_of::<Start>() as f64 }
    }

    fn numbers_arrivals(&self) -> bool {
        true
    }

    fn shortest_rtt(&self) -> Option<Span> {
        self.vectors.iter().map(|vector| vector.rtt()).min().filter(|_| self.rtt)
    }

    fn vectors(&self) -> Option<&Tmix> {
        Some(self)
    }
}

/// The starts of connections, one after the other.
struct Starts<'s> {
    starts: Vec<Start>,
    next: u32,
    tmix: &'s Tmix,
    direction: Direction,
    rtt: &'s RttSpec,
    seed: u64,
    index: usize,
}

impl Asks for Starts<'_> {
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>) {
        if turn != Turn::Due {
            return;
        }
        while let Some(start) = self.starts.get(self.next as usize) {
            if start.at > voice.now {
                voice.wake(start.at);
                return;
            }
            let number = self.next;
            self.next += 1;
            let (vector, copy) = (start.vector, start.copy);
            let client = u8::from(Tmix::is_forward(self.direction, vector));
            if voice.opens(client) {
                let rtt = self.tmix.rtt_of(self.rtt, self.seed, self.index, copy, vector);
                voice.say(Command::Vector { opening: voice.opening_from(client, number, rtt), vector, copy });
            }
        }
    }
}

impl Tmix {
    /// The draws that say which connections a scale keeps and when its copies begin, for the block `index` of a run
    /// seeded with `seed`.
    pub fn resampling(&self, seed: u64, index: usize) -> Resampling<'_> {
        let keep = Stream::named(seed, &format!("traffic/{index}/keep/0"));
        let offset = move |copy| Stream::named(seed, &format!("traffic/{index}/offset/{copy}"));
        Resampling::new(&self.vectors, keep, offset)
    }

    /// The connections of the block `index` of a run seeded with `seed` that begin before `end`, in their order.
    pub fn starts(&self, seed: u64, index: usize, end: Time) -> Vec<Start> {
        let mut starts = self.resampling(seed, index).starts(self.scale, end);
        if !self.without.is_empty() {
            starts.retain(|start| self.without.binary_search(&(start.copy, start.vector)).is_err());
        }
        starts
    }

    /// The largest windows that initiator and acceptor of a vector tell, if they are its own; no less than a segment,
    /// for a sender waits until a whole one fits.
    pub fn windows(&self, vector: u32, mss: u32) -> Option<[u32; 2]> {
        self.window.then(|| self.vectors.get(vector).windows().map(|window| window.max(mss)))
    }

    /// The round-trip time of the connection of this copy and vector: its own, or drawn from the block's, `spec`.
    pub fn rtt_of(&self, spec: &RttSpec, seed: u64, index: usize, copy: u32, vector: u32) -> Span {
        if self.rtt {
            return self.vectors.get(vector).rtt();
        }
        spec.at(Stream::named(seed, &format!("traffic/{index}/rtt/{copy}/{vector}")).open_unit())
    }

    /// Whether the initiator of `vector` is on the right, so that its acceptor's data flows forward.
    pub fn is_forward(direction: Direction, vector: u32) -> bool {
        match direction {
            Direction::Forward => true,
            Direction::Reverse => false,
            Direction::Both => vector.is_multiple_of(2),
        }
    }
}

const _: () = assert!(INITIATOR == 0 && ACCEPTOR == 1, "pairs are of initiator and acceptor");
