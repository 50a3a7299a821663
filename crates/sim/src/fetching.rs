//! Where there are many connections, what the next packets and events will need is asked for, so that it is in the
//! cache by then. Nothing else depends on it.
//!
//! Each packet that reaches a host belongs to another connection than the one before, whose state was last used some
//! thousand packets ago. Without this a host would wait for the first line of it, then for what that points to.
//!
//! ```text
//!   due   now        + 1                    + 2    + 3
//!         handled    records of its end            its segment, the end it reaches, its path
//! ```

use crate::network::Around;
use crate::simulation::Simulation;
use net::Rank;

/// The packet or event after so many others is what connections, segments and sources are asked for.
const FAR: usize = 3;
/// Later, when these are there, what they point to is asked for.
const NEAR: usize = 1;

impl Simulation<'_> {
    /// Asks for what the packets after this one will need.
    #[inline(always)]
    pub(crate) fn fetch_for_packets(&self) {
        let Around { deliveries, segments, .. } = &self.network.around;
        if !self.connections.are_many() && !segments.are_many() {
            return;
        }
        let ahead = |others| deliveries.ahead(others).filter(|due| !due.packet.is_udp());
        if let Some(due) = ahead(FAR) {
            self.connections.fetch(due.source, 1 - due.packet.side());
            segments.fetch(due.packet.place());
        }
        if let Some(due) = ahead(NEAR) {
            self.connections.fetch_records(due.source, 1 - due.packet.side());
        }
    }

    /// Asks for what the events after this one will need.
    #[inline(always)]
    pub(crate) fn fetch_for_events(&self) {
        if !self.connections.are_many() {
            return;
        }
        let queue = &self.network.around.queue;
        match queue.ahead(FAR).map(|event| (event.rank, event)) {
            Some((Rank::Wake, event)) => self.connections.fetch(event.source, event.what.as_end()),
            Some((Rank::Demand, event)) => self.sources.fetch(event.source),
            _ => {}
        }
        if let Some(event) = queue.ahead(NEAR).filter(|event| event.rank == Rank::Demand) {
            self.sources.fetch_voice(event.source);
        }
    }
}
