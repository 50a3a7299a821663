//! What the simulator keeps of each source of demand, beside the source itself.

use crate::connection::{Opening, Purpose};
use base::{FlowKey, Span, Time};
use scenario::sources::{self, Demand, Source};
use scenario::{Scenario, Workload};

/// What is kept of a source.
pub enum Kept {
    /// Nothing: a web user's lanes are with those of all others.
    Nothing,
    /// The connection on each of its lanes.
    Lanes(Vec<u32>),
    /// Of a source of unresponsive packets.
    Udp {
        /// How a router knows it.
        flow: FlowKey,
        /// Its delay and its access links.
        path: net::Path,
        /// Which of the probe flows it is, if it is one.
        probe: Option<u32>,
    },
}

impl Kept {
    /// Of a source that has not begun.
    pub fn of(source: &Source, scenario: &Scenario) -> Self {
        match (&source.demand, &scenario.traffic[source.block as usize].workload) {
            (Demand::PackMime { .. }, _) => Self::Lanes(Vec::new()),
            (_, Workload::Replay(demands)) => Self::Lanes(vec![u32::MAX; demands.connections()]),
            (&Demand::Udp { delay, .. }, _) => Self::Udp {
                // Above every connection's number.
                flow: FlowKey(1 << 63 | u64::from(source.block) << 32 | u64::from(source.number)),
                path: net::Path::new(delay, scenario.traffic[source.block as usize].route.delay_at, Time::ZERO),
                probe: None,
            },
            _ => Self::Nothing,
        }
    }
}

/// How a source of a block opens a connection.
pub fn opening(scenario: &Scenario, purpose: Purpose, block: u16, number: u32, client: u8, rtt: Span) -> Opening {
    let dscp = scenario.traffic[block as usize].dscp;
    Opening { purpose, client, block, dscp, hosts: sources::hosts(scenario, block, number, client), rtt }
}
