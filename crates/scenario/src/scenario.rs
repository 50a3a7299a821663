//! A [`Scenario`] has an experiment as checked values.

use crate::demand::Carries;
use crate::impairments::Impairment;
use crate::kept::KeptFile;
use crate::kinds::Workload;
use crate::live::Live;
use crate::units;
use aqm::changes::Pattern;
use aqm::param::Values;
use aqm::qdisc::fifo::Limit;
use aqm::registry::Entry;
use aqm::{Cells, Trace};
use base::{Distribution, Ecn, Rate, Span, Time};
use net::DelayAt;
use std::sync::Arc;

/// One experiment: links, paths, end hosts and what they ask for.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name, for people.
    pub name: String,
    /// Simulated time, warm-up and cool-down included.
    pub duration: Span,
    /// Start of the run that is not measured.
    pub warmup: Span,
    /// End of the run that is not measured.
    pub cooldown: Span,
    /// Seed of every random stream.
    pub seed: u64,
    /// The links between the hosts, at least one, in the order of the file.
    pub links: Vec<Link>,
    /// The access links and delays on both sides of them.
    pub path: Path,
    /// Who sends what, in the order of the file.
    pub traffic: Vec<Traffic>,
    /// What a run writes down.
    pub record: Record,
    /// How a run between real hosts is made.
    pub live: Live,
}

impl Scenario {
    /// The first link: the only one of most scenarios.
    pub fn link(&self) -> &Link {
        &self.links[0]
    }

    /// When the measured window begins, when it ends, and when the run does.
    pub fn edges(&self) -> [Time; 3] {
        let end = Time::ZERO + self.duration;
        [Time::ZERO + self.warmup, end - self.cooldown, end]
    }

    /// Whether any traffic is measured packet by packet.
    pub fn has_probes(&self) -> bool {
        self.traffic.iter().any(|traffic| traffic.workload.carries() == Carries::Probes)
    }

    /// Whether any traffic is real-time video.
    pub fn has_frames(&self) -> bool {
        self.traffic.iter().any(|traffic| traffic.workload.carries() == Carries::Media)
    }

    /// Whether any traffic completes exchanges or transfers.
    pub fn completes_exchanges(&self) -> bool {
        self.traffic.iter().any(|traffic| match traffic.workload.carries() {
            Carries::Exchanges | Carries::Vectors => true,
            Carries::Transfers => traffic.workload.endless() == 0,
            Carries::Datagrams | Carries::Probes | Carries::Media => false,
        })
    }

    /// Whether TCP's packets may be lost before the bottleneck.
    pub fn loses_segments_before_link(&self) -> bool {
        let is_lossy = self.path.is_lossy();
        let loses = |workload: &Workload| is_lossy || workload.vectors().is_some_and(|vectors| vectors.loss);
        self.traffic.iter().any(|t| t.workload.carries().speaks_tcp() && loses(&t.workload))
    }
}

/// A link, with an egress in each direction. Of pairs, the forward direction comes first.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// Its rates: at the start of the run, where they change.
    pub rates: [Rate; 2],
    /// The traces whose means these rates are, where they are no constants.
    pub traces: [Option<Trace>; 2],
    /// The propagation delay behind it: at the start of the run, where it changes.
    pub delays: [Span; 2],
    /// How it changes, if it does.
    pub changes: Option<Arc<Pattern>>,
    /// What disciplines are told of its rate.
    pub told_rate: ToldRate,
    /// The bytes of each packet on the wire beyond its IP size: 38 on Ethernet.
    pub overhead: u32,
    /// The cells that its wire is cut into.
    pub cells: Cells,
    /// The limit of the device queue, which takes packets from the discipline ahead of the wire, in each direction.
    /// `None` where the wire takes a packet from the discipline when it is free.
    pub device_queue: Option<Limit>,
    /// Its disciplines.
    pub qdiscs: [QdiscSpec; 2],
}

/// What the disciplines before a link are told of its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ToldRate {
    /// Nothing.
    Nothing,
    /// The rate at the start of the run, or the mean of its trace.
    Nominal,
    /// The rate at the start, and each that follows.
    Present,
}

/// Which links the packets of a block cross.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Numbers of links in the order in which packets meet them: forward and in reverse.
    pub links: [Vec<u16>; 2],
    /// Where the delay of the connections lies.
    pub delay_at: DelayAt,
    /// The tick of the clock by which it comes, where it lies at the clients.
    pub tick: Option<Span>,
}

/// A discipline with its parameters, every default filled in.
#[derive(Clone, Debug)]
pub struct QdiscSpec {
    /// What the registry knows of it.
    pub entry: Entry,
    /// The file that it comes from, if it is not built in.
    pub law: Option<KeptFile>,
    /// Its parameters.
    pub values: Values,
}

/// Access links and delays.
#[derive(Clone, Debug)]
pub struct Path {
    /// Rate of the access links, both ways.
    pub access_rate: Rate,
    /// Whether all connections of a host share its access links; otherwise each has its own.
    pub hosts_share: bool,
    /// Round-trip propagation delay of a flow, unless its traffic block says otherwise.
    pub rtt: RttSpec,
    /// What becomes of packets before the bottleneck, forward and in reverse.
    pub impairments: [Impairment; 2],
}

/// Round-trip propagation delays, in seconds.
#[derive(Clone, PartialEq, Debug)]
pub enum RttSpec {
    /// Drawn per flow.
    Drawn(Distribution),
    /// Spread evenly: flow k of n gets low + k (high - low)/(n - 1).
    Even {
        /// Smallest, seconds.
        low: f64,
        /// Largest, seconds.
        high: f64,
    },
}

impl RttSpec {
    /// The delay at `quantile` in (0, 1). With an unbounded tail it is no longer than the longest run.
    pub fn at(&self, quantile: f64) -> Span {
        let seconds = match self {
            Self::Drawn(distribution) => distribution.quantile(quantile),
            Self::Even { low, high } => low + quantile * (high - low),
        };
        Span::from_secs_f64(seconds.min(units::MAX_SECONDS))
    }

    /// Whether all delays are the same.
    pub fn is_constant(&self) -> bool {
        match self {
            Self::Drawn(distribution) => distribution.min() >= distribution.max(),
            Self::Even { low, high } => low >= high,
        }
    }

    /// A bound below which no delay lies.
    pub fn shortest(&self) -> Span {
        let seconds = match self {
            Self::Drawn(distribution) => distribution.min(),
            Self::Even { low, high } => low.min(*high),
        };
        // A drawn delay may be rounded downwards.
        Span::from_secs_f64(seconds.min(units::MAX_SECONDS)).saturating_sub(Span::from_ns(1))
    }
}

/// One block of traffic.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Its way over the links.
    pub route: Route,
    /// Its own round-trip delays, beside those of the links.
    pub rtt: RttSpec,
    /// Its end hosts.
    pub tcp: tcp::Config,
    /// What it asks for.
    pub workload: Workload,
    /// Which way its responses or data flow.
    pub direction: Direction,
    /// The Differentiated Services codepoint of its packets, both ways.
    pub dscp: u8,
    /// The ECN field of its datagrams. Segments have the one that `tcp` says.
    pub ect: Ecn,
    /// Between how many hosts its flows are.
    pub hosts: Hosts,
}

impl Traffic {
    /// Whether it has as many hosts as it says, or one for each source; otherwise each arrival brings a new one.
    pub(crate) fn numbers_its_hosts(&self) -> bool {
        let Hosts { clients, servers } = self.hosts;
        clients.is_some() && servers.is_some() || !self.workload.numbers_arrivals()
    }
}

/// How many hosts share the flows of a block, which go to them in turns. `None` says that each flow, user or arrival
/// has a host of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hosts {
    /// Hosts at the end that opens connections, or that sends without one.
    pub clients: Option<u32>,
    /// Hosts at the other end.
    pub servers: Option<u32>,
}

/// A load that was asked for without the number of users that offers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadRequest {
    /// Index of the traffic block, from 0: its users are set by the override `traffic.N.users`.
    pub traffic: usize,
    /// Mean throughput of IP packets that the users shall have in one direction of an uncongested link.
    pub load: Rate,
    /// Which way the responses of the block flow.
    pub direction: Direction,
}

/// Which way responses and data flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Forward.
    Forward,
    /// In reverse.
    Reverse,
    /// One half each way.
    Both,
}

impl Direction {
    /// Its word in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
            Self::Both => "both",
        }
    }
}

/// What a run writes down.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Distance between rows of the queue table.
    pub interval: Span,
    /// Whether every loss and mark is written down.
    pub drops: bool,
    /// Whether every exchange is written down; otherwise only their distribution is.
    pub exchanges: bool,
    /// Whether demands are written down, to be replayed.
    pub demands: bool,
    /// Distance between rows of a sender. Without it, no such rows are written.
    pub flows: Option<Span>,
}
