//! What the simulator keeps of sources whose packets heed nothing.

use base::{FlowKey, Time};
use scenario::Scenario;
use session::Source;

/// What is kept of a source.
pub enum Kept {
    /// Nothing: it opens connections.
    Nothing,
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
    pub fn of(source: &Source<'_>, scenario: &Scenario) -> Self {
        match source.delay {
            Some(delay) => Self::Udp {
                // Above every connection's number.
                flow: FlowKey(1 << 63 | u64::from(source.block) << 32 | u64::from(source.number)),
                path: net::Path::new(delay, scenario.traffic[source.block as usize].route.delay_at, Time::ZERO),
                probe: None,
            },
            None => Self::Nothing,
        }
    }
}
