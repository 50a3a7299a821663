//! [`Demand`] is what every block of traffic tells of itself, whatever its kind, with the sources that it has.

use crate::kinds::{RtpVideo, Tmix};
use crate::scenario::{Direction, RttSpec, Scenario, Traffic};
use crate::voice::Asks;
use base::{Span, Stream, Time};

/// What a block of traffic asks for. Each kind implements this, so that nobody has to ask of which kind a block is.
pub trait Demand {
    /// What the block sends between hosts.
    fn carries(&self) -> Carries;

    /// Adds its sources, in their order.
    fn sources<'s>(&'s self, site: &Site<'s>, out: &mut Vec<Source<'s>>);

    /// What the block is expected to hold in memory.
    fn expected(&self) -> Expected;

    /// How many sources have hosts of their own from the start.
    fn count(&self) -> u32 {
        1
    }

    /// Whether hosts are numbered by connections that arrive, rather than by sources.
    fn numbers_arrivals(&self) -> bool {
        false
    }

    /// How many transfers last for ever.
    fn endless(&self) -> u32 {
        0
    }

    /// Sizes of its unresponsive packets, bytes (IP): all of them if they are known, the extremes if they are drawn.
    fn packet_sizes(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Whether it replays a recording, which is not recorded again.
    fn is_recording(&self) -> bool {
        false
    }

    /// The shortest round-trip delay of its connections, where these have their own.
    fn shortest_rtt(&self) -> Option<Span> {
        None
    }

    /// The connection vectors that it plays.
    fn vectors(&self) -> Option<&Tmix> {
        None
    }

    /// The real-time media that it sends.
    fn media(&self) -> Option<&RtpVideo> {
        None
    }
}

/// What a block sends between hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carries {
    /// Requests and responses.
    Exchanges,
    /// Data from the end that opens the connection.
    Transfers,
    /// Connection vectors.
    Vectors,
    /// Packets that heed nothing.
    Datagrams,
    /// Packets that heed nothing and are measured one by one.
    Probes,
    /// Media whose rate follows reports.
    Media,
}

impl Carries {
    /// Whether its hosts speak TCP.
    pub const fn speaks_tcp(self) -> bool {
        !matches!(self, Self::Datagrams | Self::Probes | Self::Media)
    }
}

/// What a block is expected to hold in memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Expected {
    /// So many users or sessions, who think most of the time.
    Users(u32),
    /// So many users whose objects have a connection each.
    Sessions {
        /// How many users.
        users: u32,
        /// Whether a page begins only when the one before is there.
        is_closed: bool,
        /// Pages that begin in a second, of all together.
        pages_per_s: f64,
        /// Connections of a page in the mean.
        objects: f64,
        /// How far apart they begin, s.
        apart_s: f64,
        /// Bytes of each in the mean.
        bytes: f64,
    },
    /// So many transfers, which may all go on at once.
    Transfers(u32),
    /// Connections that begin at random, each with any amount of data.
    Arrivals {
        /// Connections that begin in a second.
        per_s: f64,
        /// Bytes of each in the mean.
        bytes: f64,
    },
    /// Connections that begin at random, each with exchanges that are soon over.
    Exchanges {
        /// Connections that begin in a second.
        per_s: f64,
        /// Bytes of each in the mean.
        bytes: f64,
        /// Those that wait between exchanges.
        waiting: f64,
    },
    /// Packets of UDP.
    Datagrams {
        /// Sources.
        flows: u32,
        /// What all send together in the mean, bits a second.
        bps: f64,
        /// Bytes of a packet in the mean.
        bytes: f64,
    },
    /// Connections that a table has.
    Table {
        /// How many.
        connections: f64,
        /// Bytes of the table.
        bytes: f64,
    },
}

/// A source of demand.
pub struct Source<'s> {
    /// Block of traffic, as it stands in [`Scenario::traffic`].
    pub block: u16,
    /// Number within the block.
    pub number: u32,
    /// The side its connections are opened from, or its packets sent.
    pub client: u8,
    /// When it is first called.
    pub first: Time,
    /// Delay one way of its packets; `None` if it opens connections.
    pub delay: Option<Span>,
    /// The connections that it keeps.
    pub lanes: Lanes,
    /// What it asks for.
    pub asks: Box<dyn Asks + 's>,
}

/// The connections that a source keeps, to ask on them again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lanes {
    /// At most so many at a time.
    Few(u32),
    /// Any number of them.
    Any,
    /// The connections of a recording. Each says itself which side opens it, and has a number of its own in results.
    Recorded,
}

/// The place of a block in its scenario, from which its sources get their streams, delays and hosts.
pub struct Site<'s> {
    /// The scenario.
    pub scenario: &'s Scenario,
    /// The block's place in it.
    pub block: u16,
}

impl<'s> Site<'s> {
    /// The block.
    pub fn traffic(&self) -> &'s Traffic {
        &self.scenario.traffic[usize::from(self.block)]
    }

    /// The random stream of source `number` for `what`.
    pub fn stream(&self, what: &str, number: u32) -> Stream {
        Stream::named(self.scenario.seed, &format!("traffic/{}/{what}/{number}", self.block))
    }

    /// How many processes of arrivals there are: one each way.
    pub fn processes(&self) -> u32 {
        if self.traffic().direction == Direction::Both { 2 } else { 1 }
    }

    /// The round-trip propagation delay of flow `number` of `count`.
    pub fn rtt_of(&self, number: u32, count: u32, stream: &mut Stream) -> Span {
        let rtt = &self.traffic().rtt;
        let quantile = match rtt {
            RttSpec::Even { .. } if count > 1 => f64::from(number) / f64::from(count - 1),
            RttSpec::Even { .. } => 0.0,
            RttSpec::Drawn(_) => stream.open_unit(),
        };
        rtt.at(quantile)
    }

    /// A source whose responses flow in the block's direction.
    pub fn asking(&self, number: u32, first: Time, lanes: Lanes, asks: impl Asks + 's) -> Source<'s> {
        let client = 1 - self.data_from(number);
        Source { block: self.block, number, client, first, delay: None, lanes, asks: Box::new(asks) }
    }

    /// A source whose own data flow in the block's direction.
    pub fn sending(&self, number: u32, first: Time, asks: impl Asks + 's) -> Source<'s> {
        let client = self.data_from(number);
        Source { block: self.block, number, client, first, delay: None, lanes: Lanes::Any, asks: Box::new(asks) }
    }

    /// The side that the data of source `number` come from.
    fn data_from(&self, number: u32) -> u8 {
        match self.traffic().direction {
            Direction::Forward => 0,
            Direction::Reverse => 1,
            Direction::Both => (number % 2) as u8,
        }
    }
}
