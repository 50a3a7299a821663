//! This file has what the simulator keeps of sources that do not speak TCP.

use base::{FlowKey, Time};
use scenario::Scenario;
use session::Source;

/// The simulator's own data of a source.
pub enum Kept {
    /// The source opens connections, which have the data.
    Nothing,
    /// The source sends unresponsive packets.
    Udp {
        /// The flow that routers see.
        flow: FlowKey,
        /// Its delay and its access links.
        path: net::Path,
        /// Its flow of probes, if it sends these.
        probe: Option<u32>,
    },
    /// The source sends media: its flow of these.
    Media(u32),
}

impl Kept {
    /// The data of a source that has not begun.
    pub fn of(source: &Source<'_>, scenario: &Scenario) -> Self {
        let delay_at = scenario.traffic[source.block as usize].route.delay_at;
        match source.delay {
            Some(delay) => Self::Udp {
                // Above every connection's number.
                flow: FlowKey(1 << 63 | u64::from(source.block) << 32 | u64::from(source.number)),
                path: net::Path::new(delay, delay_at, source.client as usize, Time::ZERO),
                probe: None,
            },
            None => Self::Nothing,
        }
    }
}
