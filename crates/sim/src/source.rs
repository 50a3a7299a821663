//! Who asks: the sources of demand of every block of traffic, each with a random stream of its own.

use crate::connection::{Opening, Purpose};
use base::{FlowKey, Rate, Span, Stream, Time};
use scenario::{Direction, RttSpec, Scenario, Workload};
use traffic::{Browser, Cbr, FlowDemand, PackMime, PoissonFlows, Residual, Session};

/// A source of demand.
pub struct Source {
    /// Block of traffic.
    pub block: u16,
    /// Number within the block.
    pub number: u32,
    /// The side its connections are opened from.
    pub client: u8,
    /// When it is first called.
    pub first: Time,
    /// What it asks for.
    pub demand: Demand,
}

/// What a source asks for.
pub enum Demand {
    /// A web user.
    User {
        /// The user.
        browser: Browser,
        /// Where its lanes begin among all lanes.
        lanes: u32,
    },
    /// A web session.
    Session(Session),
    /// Web connections at random instants.
    PackMime {
        /// The connections.
        connections: Box<PackMime>,
        /// How many began already.
        count: u32,
        /// The place of each persistent one.
        lanes: Vec<u32>,
    },
    /// One transfer from the client.
    Bulk {
        /// Bytes; `None` lasts for ever.
        bytes: Option<u64>,
        /// Round-trip delay.
        rtt: Span,
    },
    /// Random arrivals.
    Poisson {
        /// The arrivals.
        flows: PoissonFlows,
        /// The next one.
        next: FlowDemand,
        /// How many came already.
        count: u32,
    },
    /// Unresponsive packets.
    Cbr {
        /// Their gaps.
        cbr: Cbr,
        /// Delay one way.
        delay: Span,
        /// How a router knows it.
        flow: FlowKey,
    },
}

/// The round-trip propagation delay at `quantile` in (0, 1).
pub fn rtt_at(rtt: &RttSpec, quantile: f64) -> Span {
    Span::from_secs_f64(match rtt {
        RttSpec::Drawn(distribution) => distribution.quantile(quantile),
        RttSpec::Even { low, high } => low + quantile * (high - low),
    })
}

/// The round-trip propagation delay of flow `number` of `count`.
fn rtt_of(rtt: &RttSpec, number: u32, count: u32, stream: &mut Stream) -> Span {
    let quantile = match rtt {
        RttSpec::Even { .. } if count > 1 => f64::from(number) / f64::from(count - 1),
        RttSpec::Even { .. } => 0.0,
        RttSpec::Drawn(_) => stream.open_unit(),
    };
    rtt_at(rtt, quantile)
}

/// The side whose hosts open connections for source `number`: web responses and bulk data flow `direction`.
fn client_side(direction: Direction, number: u32, opener_sends: bool) -> u8 {
    let data_from = match direction {
        Direction::Forward => 0,
        Direction::Reverse => 1,
        Direction::Both => (number % 2) as u8,
    };
    if opener_sends { data_from } else { 1 - data_from }
}

/// The hosts between which source or arrival `number` of a block sends: left, right. A host's number is its own,
/// whatever its block and side.
pub fn hosts(scenario: &Scenario, block: u16, number: u32, client: u8) -> [u32; 2] {
    let traffic = &scenario.traffic[block as usize];
    // Of sources that alternate between the sides, each side counts its own.
    let arrives = matches!(traffic.workload, Workload::Poisson(_) | Workload::PackMime(_));
    let alternates = traffic.direction == Direction::Both && !arrives;
    let number = if alternates { number / 2 } else { number };
    let blocks = scenario.traffic.len() as u32;
    let host = |side: u8| {
        let hosts = if side == client { traffic.hosts.clients } else { traffic.hosts.servers };
        let index = hosts.map_or(number, |hosts| number % hosts);
        // Servers of one side's clients are not those of the other's.
        index.wrapping_mul(blocks).wrapping_add(u32::from(block)).wrapping_mul(4)
            | u32::from(side) << 1
            | u32::from(client)
    };
    [host(0), host(1)]
}

/// How a source of a block opens a connection.
pub fn opening(scenario: &Scenario, purpose: Purpose, block: u16, number: u32, client: u8, rtt: Span) -> Opening {
    let dscp = scenario.traffic[block as usize].dscp;
    Opening { purpose, client, block, dscp, hosts: hosts(scenario, block, number, client), rtt }
}

/// Every source of the scenario, and how many lanes they have together.
pub fn sources(scenario: &Scenario) -> (Vec<Source>, usize) {
    let mut sources = Vec::new();
    let mut lanes = 0;
    for (block, traffic) in scenario.traffic.iter().enumerate() {
        let stream =
            |what: &str, number: u32| Stream::named(scenario.seed, &format!("traffic/{block}/{what}/{number}"));
        let block_index = block as u16;
        let mut add = |number, client, first, demand| {
            sources.push(Source { block: block_index, number, client, first, demand });
        };
        match &traffic.workload {
            Workload::Web(web) => {
                for number in 0..web.users {
                    let mut browser = Browser::new(stream("user", number));
                    let first = Time::ZERO + browser.begin(&web.model);
                    let demand = Demand::User { browser, lanes };
                    lanes += u32::from(web.model.parallel.max(web.model.persistent_parallel));
                    add(number, client_side(traffic.direction, number, false), first, demand);
                }
            }
            Workload::Sessions(sessions) => {
                let between = Residual::of(&sessions.model.inter_page);
                for number in 0..sessions.users {
                    let mut session = Session::new(stream("session", number));
                    let first = Time::ZERO + session.begin(&sessions.model, &between);
                    add(number, client_side(traffic.direction, number, false), first, Demand::Session(session));
                }
            }
            Workload::PackMime(model) => {
                let processes = if traffic.direction == Direction::Both { 2 } else { 1 };
                let per_s = model.connections_per_s / f64::from(processes);
                for number in 0..processes {
                    let streams = ["connections", "arrivals", "requests"].map(|what| stream(what, number));
                    let mut connections = Box::new(PackMime::new(per_s, streams));
                    let first = Time::ZERO + connections.begin();
                    let demand = Demand::PackMime { connections, count: 0, lanes: Vec::new() };
                    add(number, client_side(traffic.direction, number, false), first, demand);
                }
            }
            Workload::Bulk(bulk) => {
                for number in 0..bulk.flows {
                    let mut stream = stream("flow", number);
                    let first = Time::from_secs_f64(bulk.start.draw(&mut stream));
                    let rtt = rtt_of(&traffic.rtt, number, bulk.flows, &mut stream);
                    let demand = Demand::Bulk { bytes: bulk.bytes, rtt };
                    add(number, client_side(traffic.direction, number, true), first, demand);
                }
            }
            Workload::Poisson(poisson) => {
                let processes = if traffic.direction == Direction::Both { 2 } else { 1 };
                let gap = Span::from_secs_f64(f64::from(processes) / poisson.arrivals_per_s);
                for number in 0..processes {
                    let mut flows = PoissonFlows::new(stream("arrivals", number), gap, poisson.size.clone());
                    let next = flows.next_flow();
                    let demand = Demand::Poisson { flows, next, count: 0 };
                    add(number, client_side(traffic.direction, number, false), Time::ZERO + next.gap, demand);
                }
            }
            Workload::Cbr(spec) => {
                let rate = Rate::from_bps((spec.rate.bps() / u64::from(spec.flows)).max(1));
                for number in 0..spec.flows {
                    let mut stream = stream("source", number);
                    let cbr = Cbr::new(rate, spec.packet);
                    let start = Span::from_secs_f64(spec.start.draw(&mut stream));
                    let first = Time::ZERO + start + cbr.first_gap(&mut stream);
                    let delay = rtt_of(&traffic.rtt, number, spec.flows, &mut stream) / 2;
                    // Above every connection's number.
                    let flow = FlowKey(1 << 63 | (block as u64) << 32 | u64::from(number));
                    let demand = Demand::Cbr { cbr, delay, flow };
                    add(number, client_side(traffic.direction, number, true), first, demand);
                }
            }
        }
    }
    (sources, lanes as usize)
}
