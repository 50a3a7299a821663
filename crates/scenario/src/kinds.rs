//! This file has the table of all kinds of traffic. A kind is one file and one row of the table; nothing else names it.

mod bulk;
mod cbr;
mod datagrams;
mod keys;
mod onoff;
mod poisson;
mod probe;
mod replay;
mod rtp_video;
mod tmix;
mod udp_poisson;
mod udp_trace;
mod video;
mod web;

pub use bulk::Bulk;
pub use cbr::Cbr;
pub use onoff::OnOff;
pub use poisson::Poisson;
pub use probe::Probes;
pub use replay::Replay;
pub use rtp_video::RtpVideo;
pub use tmix::{Reached, Tmix};
pub use udp_poisson::UdpPoisson;
pub use udp_trace::UdpTrace;
pub use video::Video;
pub use web::{Readers, Sessions, Users, Web};

use crate::blocks::{self, Asking, MODEL, RTT, WINDOW};
use crate::demand::Demand;
use crate::error::Error;
use crate::scenario::Direction;
use crate::written::Fields;
use base::Rate;
use std::ops::Deref;

/// Writes the table and what a block may ask for from one list.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident),* $(,)?) => {
        /// What a block of traffic asks for.
        #[derive(Clone, Debug)]
        pub enum Workload {
            $($(#[$doc])* $kind($kind)),*
        }

        static ROWS: &[Row] = &[$(<$kind as Kind>::ROW),*];

        /// Reads a block of the kind in this place of the table.
        pub(crate) fn read(place: usize, asking: &mut Asking<'_, '_>) -> Result<Asked<Workload>, Error> {
            let read: &[fn(&mut Asking<'_, '_>) -> Result<Asked<Workload>, Error>] =
                &[$(|asking| Ok(<$kind as Kind>::read(asking)?.map(Workload::$kind))),*];
            read[place](asking)
        }

        impl Deref for Workload {
            type Target = dyn Demand;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Self::$kind(workload) => workload),*
                }
            }
        }
    };
}

kinds! {
    /// Web users, sessions or connections.
    Web,
    /// Long-lived or finite transfers.
    Bulk,
    /// Exchanges or transfers that arrive at random.
    Poisson,
    /// Unresponsive packets at a constant rate.
    Cbr,
    /// Unresponsive packets at a constant rate, at times.
    OnOff,
    /// Unresponsive packets at random instants.
    UdpPoisson,
    /// Unresponsive packets as written down.
    UdpTrace,
    /// Unresponsive packets at even distances, to be measured.
    Probes,
    /// Connection vectors, played again.
    Tmix,
    /// A recording of exchanges, asked again.
    Replay,
    /// Viewers of video, whose players choose bitrates.
    Video,
    /// Sources of real-time video, whose rate follows the path.
    RtpVideo,
}

const DSCP: Key = Key {
    name: "dscp",
    takes: Takes::Drawn("name or number"),
    default: "CS0",
    doc: "Differentiated Services codepoint of the packets, both ways: a name or a number",
};
const ECT: Key = Key {
    name: blocks::ECT,
    takes: Takes::Word(&["not-ect", "ect0", "ect1"]),
    default: "not-ect",
    doc: "ECN field of the packets; what does not respond and says ect1 abuses it",
};
const HOSTS: Key = Key {
    name: "hosts",
    takes: Takes::Drawn("number or pair"),
    default: "own",
    doc: "hosts that flows take turns at, at each end, or [clients, servers]",
};

/// Every kind, in the order in which they are shown.
pub fn rows() -> &'static [Row] {
    ROWS
}

/// What the file of a kind provides: its row, the reader of its blocks, and what they ask for.
pub(crate) trait Kind: Demand + Sized {
    /// Its row.
    const ROW: Row;

    /// Reads a block.
    fn read(asking: &mut Asking<'_, '_>) -> Result<Asked<Self>, Error>;
}

/// A block that was read by its kind.
pub(crate) struct Asked<W> {
    /// What the block asks for. If its users are still to be found for a load, this is the load, with an error that
    /// says so.
    pub workload: Result<W, (Rate, Error)>,
    /// The keys with their values.
    pub written: Fields,
}

impl<W> Asked<W> {
    /// A block that needs no calibration.
    pub fn known(workload: W, written: Fields) -> Self {
        Self { workload: Ok(workload), written }
    }

    /// This with a workload of another type.
    pub fn map<V>(self, make: impl FnOnce(W) -> V) -> Asked<V> {
        Asked { workload: self.workload.map(make), written: self.written }
    }
}

/// One row: what a person reads about a kind of traffic, and its keys.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its `kind` in a block.
    pub name: &'static str,
    /// What others call it, where that is none of the names here.
    pub called: &'static [&'static str],
    /// Whether its hosts speak TCP.
    pub speaks_tcp: bool,
    /// Whether all its blocks ask for what `aqmlab record` can write down.
    pub is_recorded: bool,
    /// The default of `direction`, and what `direction` means. With an empty meaning, a block has no such key.
    pub direction: (Direction, &'static str),
    /// The word of `rtt` and `window` for the connections' own, which is their default, where connections have their
    /// own.
    pub own: Option<&'static str>,
    /// What its blocks may be to people, who judge them by that.
    pub applications: &'static [&'static str],
    /// Its models. A kind without models has a single one without a name.
    pub models: &'static [Model],
}

impl Row {
    /// The keys that every block has, with the defaults of this kind.
    pub fn shared_keys(&self) -> Vec<Key> {
        let (direction, doc) = self.direction;
        let (name, takes) = ("direction", Takes::Word(&blocks::DIRECTION_NAMES));
        let direction = Key { name, takes, default: direction.name(), doc };
        let own = |name, doc| {
            self.own.map(|own| Key { name, takes: Takes::Drawn("time or distribution"), default: own, doc })
        };
        let window = own(WINDOW, "receive windows: the connections' own, or a size");
        let window = window.map(|key| Key { takes: Takes::Drawn("size"), ..key });
        let keys = [own(RTT, "round-trip times: the connections' own, or a distribution"), window];
        let direction = (!doc.is_empty()).then_some(direction);
        let ect = (!self.speaks_tcp).then_some(ECT);
        keys.into_iter().flatten().chain(direction).chain([DSCP, HOSTS]).chain(ect).collect()
    }

    /// The names of its keys, besides those that every block has.
    pub(crate) fn keys(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        if self.models.iter().any(|model| !model.name.is_empty()) {
            names.push(MODEL);
        }
        for key in self.models.iter().flat_map(|model| model.keys) {
            if !names.contains(&key.name) {
                names.push(key.name);
            }
        }
        names
    }
}

/// A model of a kind of traffic.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Its `model` in a block; empty for a kind that has one alone.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub doc: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its keys, besides those that every block has.
    pub keys: &'static [Key],
    /// The parts of the sentence that describes a block: how much of what.
    pub words: &'static [Words],
}

/// A part of the sentence that describes a block: a condition, and a text that is said if it holds.
///
/// The condition is a list with commas: `key=value`, `key!=value`, `key` for a key that is given, `!key` for one that
/// is not. The text has keys in braces: `{key}` becomes the value for people to read, `{key|noun}` so many of these,
/// and `{key: text}` a text that is said if the value is more than one.
pub type Words = (&'static str, &'static str);

/// A key of a block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What is written there.
    pub takes: Takes,
    /// The default as it is written, or in words where it is worked out; empty for none.
    pub default: &'static str,
    /// What it means.
    pub doc: &'static str,
}

/// What is written for a key, and from where to where.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Takes {
    /// A whole number.
    Count(u32, u32),
    /// A number.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// A rate.
    Rate,
    /// A frequency above the first.
    Frequency(f64, f64),
    /// Whole bytes.
    Size(u64, u64),
    /// A time, nanoseconds.
    Time(u64, u64),
    /// A value with rules of its own: mostly a distribution, of times, sizes or counts.
    Drawn(&'static str),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A file.
    File,
}

impl Takes {
    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count(..) => "integer",
            Self::Number(..) => "number",
            Self::Flag => "flag",
            Self::Rate => "rate",
            Self::Frequency(..) => "frequency",
            Self::Size(..) => "size",
            Self::Time(..) => "time",
            Self::Drawn(_) => "quantity",
            Self::Word(_) => "word",
            Self::File => "file",
        }
    }

    /// The unit of [`Self::range`], or what is read.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Count(..) | Self::Number(..) | Self::Flag | Self::Word(_) => "",
            Self::Rate => "bit/s",
            Self::Frequency(..) => "hz",
            Self::Size(..) => "bytes",
            Self::Time(..) => "s",
            Self::Drawn(what) => what,
            Self::File => "file",
        }
    }

    /// The smallest and the largest value, in that unit.
    pub fn range(self) -> (Option<f64>, Option<f64>) {
        let (low, high) = match self {
            Self::Count(low, high) => (low.into(), high.into()),
            Self::Number(low, high) | Self::Frequency(low, high) => (low, high),
            Self::Size(low, high) => (low as f64, high as f64),
            Self::Time(low, high) => (low as f64 / 1e9, high as f64 / 1e9),
            Self::Flag | Self::Rate | Self::Drawn(_) | Self::Word(_) | Self::File => return (None, None),
        };
        (Some(low), Some(high))
    }
}
