//! What the application at one end of a connection is told, and what it does.
//!
//! A connection has two ends, [`INITIATOR`] and [`ACCEPTOR`]. What their applications do is one state machine for both:
//! [`Exchanges`](crate::Exchanges), a [`Transfer`](crate::Transfer) or a [`Player`](crate::Player) of a connection
//! vector. A driver gives an end its turn whenever something happened there: it is open, bytes came, a time is over. A
//! turn too many is harmless. Ends that are not open have no turns.

use base::Time;
use record::ExchangeRow;
use scenario::{Carries, Scenario};

pub use traffic::tmix::{ACCEPTOR, INITIATOR};

/// What an end has heard of the other so far.
///
/// An endpoint counts bytes that arrived in order, a socket those that were read from it. To applications they are the
/// same: neither counts a byte before all that were written before it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Heard {
    /// Bytes that came.
    pub received: u64,
    /// Whether the other end has closed, and all that it wrote has come.
    pub is_closed: bool,
}

/// What an end does in its turn.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Turn {
    /// Bytes it writes.
    pub write: u64,
    /// Whether it then closes, if it has not yet: all that it wrote is still sent.
    pub close: bool,
    /// Whether the other end has closed although more was to come from it: the connection has failed.
    pub is_cut_off: bool,
    /// When it wants its next turn for a time that it waits; said once.
    pub wake_at: Option<Time>,
    /// What is complete by what has come.
    pub completed: Option<Completed>,
}

/// What was asked for, and is complete: its last byte has reached whom it was for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completed {
    /// Since when it has been wanted.
    pub since: Time,
    /// When the connection was open; where it was already, when it was asked.
    pub open_at: Time,
    /// Bytes of the initiator; of a transfer 0.
    pub request_bytes: u64,
    /// Bytes of the acceptor; of a transfer the initiator's.
    pub response_bytes: u64,
}

impl Completed {
    /// The row that results have of it, if it was complete `now` on a connection that `client` opened for number
    /// `source` of `block`.
    pub fn row(&self, scenario: &Scenario, (block, source, client): (u16, u32, u8), now: Time) -> ExchangeRow {
        ExchangeRow {
            start: self.since,
            response_time: now.since(self.since),
            setup: self.open_at.since(self.since),
            request_bytes: u32::try_from(self.request_bytes).unwrap_or(u32::MAX),
            response_bytes: self.response_bytes,
            traffic: block,
            source,
            direction: sender(scenario, block, client),
        }
    }
}

/// The side that sends the data of a connection that `client` opens for `block`: of transfers the client itself, of all
/// others who is asked. It is the direction of the data, too.
pub fn sender(scenario: &Scenario, block: u16, client: u8) -> u8 {
    let is_transfer = scenario.traffic[usize::from(block)].workload.carries() == Carries::Transfers;
    if is_transfer { client } else { 1 - client }
}
