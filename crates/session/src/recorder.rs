//! What is asked for, written down to be asked again.

use base::{Span, Time};
use record::{DemandRow, Demanded};
use scenario::Scenario;
use traffic::Exchange;

/// Writes demands down, if anybody wants them.
#[derive(Debug, Default)]
pub struct Recorder {
    rows: Option<Vec<DemandRow>>,
    /// Of each block, whether it is recorded: recordings meet every discipline alike as they are.
    blocks: Vec<bool>,
}

impl Recorder {
    /// Of a scenario that says whether demands are recorded.
    pub fn new(scenario: &Scenario) -> Self {
        Self {
            rows: scenario.record.demands.then(Vec::new),
            blocks: scenario.traffic.iter().map(|traffic| !traffic.workload.is_recording()).collect(),
        }
    }

    /// Whether anything is written down.
    pub fn is_on(&self) -> bool {
        self.rows.is_some()
    }

    /// Somebody of `block` asks at `now` on the connection that is numbered `connection` in the order of opening. If it
    /// is `opened` for that, the side that opens it and its round-trip propagation delay are told.
    pub fn asked(
        &mut self,
        (block, connection): (u16, u64),
        ask: &Exchange,
        is_last: bool,
        opened: Option<(u8, Span)>,
        now: Time,
    ) {
        let &Exchange { request_bytes, response_bytes, server_delay, .. } = ask;
        // Responses flow towards who opened it.
        let opened = opened.map(|(client, rtt)| (1 - client, rtt));
        let demanded = Demanded::Exchange { opened, request_bytes, response_bytes, server_delay, is_last };
        self.note(block, connection, demanded, now);
    }

    /// The client of a connection closes it.
    pub fn closed(&mut self, (block, connection): (u16, u64), now: Time) {
        self.note(block, connection, Demanded::Close, now);
    }

    fn note(&mut self, traffic: u16, connection: u64, demanded: Demanded, at: Time) {
        let Some(rows) = &mut self.rows else { return };
        if self.blocks[usize::from(traffic)] {
            rows.push(DemandRow { traffic, connection, at, demanded });
        }
    }

    /// Hands over what was written down since the last time.
    pub fn take(&mut self) -> impl Iterator<Item = DemandRow> {
        self.rows.iter_mut().flat_map(|rows| rows.drain(..))
    }
}
