//! Video over HTTP: viewers whose players choose the bitrate of each segment of a film ([`traffic::video`]).
//!
//! Buffer, reservoir and cushion are those of Huang et al. (SIGCOMM 2014, §4.1): a player in the browser holds 240 s,
//! 90 s are the reservoir, and the highest bitrate is reached at nine tenths. The ladder is the one that Netflix had
//! for all films until 2015 (A. Aaron et al., "Per-Title Encode Optimization", December 2015), and holds the range that
//! the paper states.

use super::keys::{MOST, OF_RESPONSES, START, start_or};
use super::{Asked, Key, Kind, Model, Row, Takes};
use crate::blocks::Asking;
use crate::demand::{Carries, Demand, Expected, Lanes, Site, Source};
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::scenario::Direction;
use crate::section::Section;
use crate::units;
use crate::voice::{Asks, Command, Turn, Voice};
use crate::written::Written;
use base::{Distribution, Rate, Span, Time};
use traffic::{Exchange, Rule, Step, VideoModel, Viewer};

/// Viewers of video.
#[derive(Clone, Debug)]
pub struct Video {
    /// How many.
    pub viewers: u32,
    /// When each begins, seconds into the run.
    pub start: Distribution,
    /// What they watch, and how their players choose.
    pub model: VideoModel,
}

const VIEWERS: Key = Key { name: "viewers", takes: Takes::Count(1, MOST), default: "1", doc: "how many" };
const RULE: Key = Key {
    name: "rule",
    takes: Takes::Word(&["bba0", "throughput"]),
    default: "bba0",
    doc: "how the bitrate is chosen: by what is buffered, or by how fast segments came",
};
const LADDER: Key = Key {
    name: "ladder",
    takes: Takes::Drawn("list of rates"),
    default: "ten from 235kbit to 5800kbit",
    doc: "bitrates of a film, ascending",
};
const SEGMENT: Key = Key {
    name: "segment",
    takes: Takes::Time(100_000_000, 60_000_000_000),
    default: "4s",
    doc: "what a segment has of a film",
};
const BUFFER: Key = Key {
    name: "buffer",
    takes: Takes::Time(200_000_000, 3_600_000_000_000),
    default: "240s",
    doc: "what a player holds, two segments at least",
};
const STARTUP: Key = Key {
    name: "startup",
    takes: Takes::Time(0, 3_600_000_000_000),
    default: "4s",
    doc: "what is buffered when playing begins, or goes on after a stall",
};
const RESERVOIR: Key = Key {
    name: "reservoir",
    takes: Takes::Time(0, 3_600_000_000_000),
    default: "three eighths of the buffer",
    doc: "bba0: up to this the lowest bitrate is asked for",
};
const CUSHION: Key = Key {
    name: "cushion",
    takes: Takes::Time(1, 3_600_000_000_000),
    default: "from the reservoir to nine tenths of the buffer",
    doc: "bba0: over this the bitrate rises to the highest",
};
const FILM: Key = Key {
    name: "film",
    takes: Takes::Drawn("time or distribution"),
    default: "600s",
    doc: "how long a film is; the next one follows",
};

const LADDER_KBIT: [u64; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];
/// More bitrates than anybody offers.
const MOST_BITRATES: usize = 64;
/// The median request of PackMime-HTTP (Cao, Cleveland, Gao, Jeffay, Smith and Weigle, INFOCOM 2004), as of `poisson`.
const REQUEST_BYTES: u32 = 420;

impl Kind for Video {
    const ROW: Row = Row {
        name: "video",
        called: &["hls", "dash", "abr", "streaming", "vod"],
        speaks_tcp: true,
        is_recorded: false,
        direction: (Direction::Forward, OF_RESPONSES),
        own: None,
        applications: &["video"],
        models: &[Model {
            name: "",
            doc: "Viewers of video over HTTP, whose players choose the bitrate of each segment",
            source: "Huang, Johari, McKeown, Trunnell and Watson, SIGCOMM 2014",
            keys: &[VIEWERS, RULE, LADDER, SEGMENT, BUFFER, STARTUP, RESERVOIR, CUSHION, FILM, START],
            words: &[("", "{viewers|viewer} of video ({rule}, segments of {segment}, {buffer} buffered at most)")],
        }],
    };

    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error> {
        let (block, around) = (asking.block, asking.around);
        let viewers = VIEWERS.count(block)?;
        let ladder = ladder(block)?;
        let segment = SEGMENT.time(block)?;
        let buffer = BUFFER.time(block)?;
        // What is there while one more segment has room.
        let room = buffer.saturating_sub(segment);
        if room < segment {
            let expected = format!("two segments of {} at least", units::write_span(segment));
            return Err(refused(block, BUFFER, buffer, &expected));
        }
        let startup = within(block, STARTUP, STARTUP.time(block)?, room, "a segment less than the buffer at most")?;
        let rule = rule(block, buffer, room)?;
        let film = block.read(FILM.name, Distribution::Constant(600.0), |entry| {
            let film = distribution::read(entry, Quantity::Time)?;
            if film.max() > 0.0 { Ok(film) } else { Err(entry.expected("a time above zero")) }
        })?;
        // From the beginning of the measured window on, so that what is measured of films has their beginnings.
        let soon = (around.duration / 20).min(Span::from_secs(10));
        let ends = [around.warmup, around.warmup + soon].map(|span| span.ns() as f64 / 1e9);
        let start = start_or(block, around.duration, Distribution::Uniform(ends[0], ends[1]))?;

        let mut written = vec![(VIEWERS.name, Written::Integer(u64::from(viewers)))];
        let (word, own) = match rule {
            Rule::Bba0 { reservoir, cushion } => ("bba0", Some((reservoir, cushion))),
            Rule::Throughput => ("throughput", None),
        };
        let rates = ladder.iter().map(|&rate| Written::Text(units::write_rate(rate))).collect();
        written.extend([(RULE.name, Written::Text(word.to_owned())), (LADDER.name, Written::List(rates))]);
        for (key, span) in [(SEGMENT, segment), (BUFFER, buffer), (STARTUP, startup)] {
            written.push((key.name, Written::Text(units::write_span(span))));
        }
        if let Some((reservoir, cushion)) = own {
            for (key, span) in [(RESERVOIR, reservoir), (CUSHION, cushion)] {
                written.push((key.name, Written::Text(units::write_span(span))));
            }
        }
        written.push((FILM.name, distribution::write(&film, Quantity::Time)));
        written.push((START.name, distribution::write(&start, Quantity::Time)));
        let model = VideoModel { ladder, segment, buffer, startup, rule, film };
        Ok(Asked::known(Self { viewers, start, model }, written))
    }
}

/// The bitrates, each above the one before.
fn ladder(block: &Section<'_>) -> Result<Vec<Rate>, Error> {
    let default = LADDER_KBIT.map(|kbit| Rate::from_bps(kbit * 1000)).to_vec();
    block.read(LADDER.name, default, |entry| {
        let expected = "a list of ascending rates such as [\"375kbit\", \"1050kbit\", \"3mbit\"]";
        let rungs = entry.list(expected)?;
        let rates = rungs.iter().map(|rung| rung.rate()).collect::<Result<Vec<_>, _>>()?;
        let ascends = rates.windows(2).all(|pair| pair[0] < pair[1]);
        if rates.is_empty() || !ascends || rates.len() > MOST_BITRATES {
            return Err(entry.expected(format!("{expected}, up to {MOST_BITRATES}")));
        }
        Ok(rates)
    })
}

/// The rule, with its parts of the buffer. `room` is the most that is buffered when a bitrate is chosen.
fn rule(block: &Section<'_>, buffer: Span, room: Span) -> Result<Rule, Error> {
    let is_bba0 = block.read(RULE.name, true, |entry| entry.word(&[("bba0", true), ("throughput", false)]))?;
    if !is_bba0 {
        for key in [RESERVOIR, CUSHION] {
            if let Some(entry) = block.get(key.name) {
                return Err(entry.error("does not go with rule = \"throughput\""));
            }
        }
        return Ok(Rule::Throughput);
    }
    let reservoir = time_or(block, RESERVOIR, buffer * 3 / 8)?;
    let most = "with the cushion a segment less than the buffer at most";
    let reservoir = within(block, RESERVOIR, reservoir, room, most)?;
    let up_to = (buffer * 9 / 10).min(room).saturating_sub(reservoir).max(Span::from_ns(1));
    let cushion = time_or(block, CUSHION, up_to)?;
    let left = room.saturating_sub(reservoir);
    let cushion = within(block, CUSHION, cushion, left, "with the reservoir a segment less than the buffer at most")?;
    Ok(Rule::Bba0 { reservoir, cushion })
}

/// A time whose default follows from others.
fn time_or(block: &Section<'_>, key: Key, default: Span) -> Result<Span, Error> {
    let Takes::Time(low, high) = key.takes else { unreachable!("{} is no time", key.name) };
    block.read(key.name, default, |entry| entry.span_within(Span::from_ns(low), Span::from_ns(high)))
}

fn within(block: &Section<'_>, key: Key, span: Span, most: Span, expected: &str) -> Result<Span, Error> {
    let expected = format!("{expected}, {}", units::write_span(most));
    if span <= most { Ok(span) } else { Err(refused(block, key, span, &expected)) }
}

/// What was written, or what a key is without it, does not fit.
fn refused(block: &Section<'_>, key: Key, span: Span, expected: &str) -> Error {
    match block.get(key.name) {
        Some(entry) => entry.expected(expected),
        None => block.unfit(key.name, &units::write_span(span), expected),
    }
}

impl Demand for Video {
    fn carries(&self) -> Carries {
        Carries::Exchanges
    }

    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>) {
        for number in 0..self.viewers {
            let first = Time::from_secs_f64(self.start.draw(&mut site.stream("start", number)));
            let viewer = Viewer::new(site.stream("viewer", number));
            out.push(site.asking(number, first, Lanes::Few(1), Watching { viewer, model: &self.model }));
        }
    }

    fn expected(&self) -> Expected {
        Expected::Users(self.viewers)
    }

    fn count(&self) -> u32 {
        self.viewers
    }
}

struct Watching<'s> {
    viewer: Viewer,
    model: &'s VideoModel,
}

/// The only connection of a viewer.
const LANE: u32 = 0;

impl Asks for Watching<'_> {
    fn turn(&mut self, turn: Turn, voice: &mut Voice<'_>) {
        let (now, owner) = (voice.now, voice.owner(LANE));
        let step = match turn {
            Turn::Due => self.viewer.due(self.model, now),
            Turn::Completed(_) => self.viewer.completed(self.model, now),
            Turn::Failed(_) => self.viewer.failed(self.model),
            Turn::Lost(LANE) => return self.viewer.lost(),
            // The last film's connection was closing.
            Turn::Lost(_) => return,
        };
        match step {
            Step::Open { rtt_unit, bytes, since } => {
                let opening = voice.opening(voice.number(), voice.rtt(rtt_unit));
                voice.say(Command::Open { opening, owner: Some(owner), ask: segment(bytes), is_last: false, since });
            }
            Step::Ask { bytes } => {
                voice.say(Command::Ask { owner, ask: segment(bytes), is_last: false, since: now });
            }
            Step::Wait(until) => voice.wake(until),
            Step::Over(until) => {
                voice.say(Command::Close { owner });
                voice.wake(until);
            }
        }
    }
}

fn segment(bytes: u64) -> Exchange {
    Exchange { request_bytes: REQUEST_BYTES, response_bytes: bytes, top_level: true, server_delay: Span::ZERO }
}
