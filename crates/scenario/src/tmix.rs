//! Blocks of connection vectors: which files, how many of their connections, and which of their conditions.

use crate::blocks::{Asked, Surroundings};
use crate::error::Error;
use crate::kept;
use crate::scenario::{Direction, Reached, RttSpec, Tmix, Workload};
use crate::section::Section;
use crate::units;
use crate::written::Written;
use base::{Span, Stream, Time};
use std::sync::Arc;
use traffic::tmix::resampling::{MOST_COPIES, TOLERANCE};
use traffic::tmix::{ACCEPTOR, INITIATOR, Path, Resampling, Start, Unmet, Vectors, reading};

/// The keys, besides `rtt` and `window`, which every block has.
pub(crate) const KEYS: &[&str] = &["vectors", "scale", "load", "loss"];
pub(crate) const KIND: &str = "tmix";

/// What `rtt` and `window` say where they are the vectors' own.
const OF_VECTORS: &str = "vectors";

/// Which conditions are the vectors' own rather than the scenario's.
#[derive(Clone, Copy)]
pub(crate) struct Own {
    pub rtt: bool,
    pub window: bool,
}

impl Own {
    /// What the block, of that kind, says.
    pub fn of(kind: &str, block: &Section<'_>) -> Self {
        let is_own = |name| {
            let given = block.get(name);
            kind == KIND && given.is_none_or(|entry| entry.text().is_ok_and(|text| text == OF_VECTORS))
        };
        Self { rtt: is_own("rtt"), window: is_own("window") }
    }
}

/// Reads a block, which is the `index`-th.
pub(crate) fn read(
    block: &Section<'_>,
    around: &Surroundings<'_, '_>,
    index: usize,
    direction: Direction,
    own: Own,
    rtt: &RttSpec,
    tcp: &tcp::Config,
) -> Result<Asked, Error> {
    /// Below, a set is a mistaken unit: one connection of a million.
    const LEAST: f64 = 1e-6;
    let expected = "the name of a file of connection vectors, or a list of them";
    let files = block.require("vectors", expected, |entry| kept::read_all(entry, "connection vectors"))?;
    let mut vectors = Vectors::default();
    for file in &files {
        let read = reading::read(&file.text).map_err(|malformed| file.error(malformed.line, malformed.problem))?;
        vectors = vectors.merged(read);
    }
    let loss = block.read("loss", true, |entry| entry.flag())?;
    let load = block.get("load").map(|entry| Ok::<_, Error>((entry.rate()?, entry))).transpose()?;
    if let (Some(_), Some(scale)) = (&load, block.get("scale")) {
        return Err(scale.expected("either scale or load"));
    }
    let most = f64::from(MOST_COPIES);
    let scale = block.read("scale", 1.0, |entry| entry.number_within(LEAST..=most))?;

    let mut written = vec![("vectors", kept::write_all(&files))];
    match load {
        Some((load, _)) => written.push(("load", Written::Text(units::write_rate(load)))),
        None => written.push(("scale", Written::Number(scale))),
    }
    written.push(("loss", Written::Flag(loss)));
    for (name, is_own) in [("rtt", own.rtt), ("window", own.window)] {
        if is_own {
            written.push((name, Written::Text(OF_VECTORS.to_owned())));
        }
    }
    let vectors = Arc::new(vectors);
    let (without, reached) = (Vec::new(), None);
    let mut tmix = Tmix { vectors, scale, without, reached, rtt: own.rtt, window: own.window, loss };
    if let Some((load, entry)) = load {
        let window = [Time::ZERO + around.warmup, Time::ZERO + around.duration - around.cooldown];
        let directions = if direction == Direction::Both { 2.0 } else { 1.0 };
        let bits = load.bps_f64() * window[1].since(window[0]).secs_f64() * directions;
        // Which of a vector's ends sends the way that is asked about: of one direction the acceptor, of both either.
        let mut counts = [direction == Direction::Both; 2];
        counts[ACCEPTOR] = true;
        let path = |copy, vector| {
            let of_vector = tmix.vectors.get(vector);
            let least = |window: u32| window.max(tcp.mss);
            let room = u32::try_from(tcp.window).unwrap_or(u32::MAX);
            let windows = if own.window { of_vector.windows() } else { [room; 2] };
            Path { rtt: tmix.rtt_of(rtt, around.seed, index, copy, vector), windows: windows.map(least) }
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
    Ok((Ok(Workload::Tmix(tmix)), written))
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
