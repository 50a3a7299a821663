//! What is asked for, written down; and asked again.

use crate::connection::Purpose;
use crate::packets::What;
use crate::simulation::Simulation;
use crate::source;
use base::Span;
use net::Rank;
use record::{DemandRow, Demanded, Sink};
use scenario::Workload;
use scenario::sources::Turn;
use traffic::{Exchange, replay};

/// What is recorded of the run until somebody wants it, if anything is.
pub struct Recorder {
    rows: Option<Vec<DemandRow>>,
}

impl Recorder {
    /// Records only where `is_wanted`.
    pub fn new(is_wanted: bool) -> Self {
        Self { rows: is_wanted.then(Vec::new) }
    }

    /// Hands over what was recorded since the last time.
    pub fn give(&mut self, sink: &mut dyn Sink) {
        self.rows.iter_mut().flat_map(|rows| rows.drain(..)).for_each(|row| sink.demand(&row));
    }
}

impl Simulation<'_> {
    /// Somebody asks on the connection at `place`, which is `opened` for it with this round-trip delay.
    pub(crate) fn note_ask(&mut self, place: u32, ask: &Exchange, is_last: bool, opened: Option<Span>) {
        let &Exchange { request_bytes, response_bytes, server_delay, .. } = ask;
        let client = self.connections.get(place).client;
        let opened = opened.map(|rtt| (1 - client, rtt));
        self.note(place, Demanded::Exchange { opened, request_bytes, response_bytes, server_delay, is_last });
    }

    /// The client of the connection at `place` closes it.
    pub(crate) fn note_close(&mut self, place: u32) {
        self.note(place, Demanded::Close);
    }

    fn note(&mut self, place: u32, demanded: Demanded) {
        let Some(rows) = &mut self.recorder.rows else { return };
        let connection = self.connections.get(place);
        let (traffic, connection, purpose) = (connection.block, connection.path.flow.0, connection.purpose);
        // Transfers one way and recordings meet every discipline alike as they are.
        let is_recorded = matches!(self.scenario.traffic[usize::from(traffic)].workload, Workload::Replay(_));
        if is_recorded || matches!(purpose, Purpose::Bulk { .. }) {
            return;
        }
        rows.push(DemandRow { traffic, connection, at: self.now, demanded });
    }

    /// Goes on with a recording, whose connections are its lanes.
    pub(crate) fn replay(&mut self, index: u32, turn: Turn) {
        let scenario = self.scenario;
        let source = &mut self.sources[index as usize];
        let block = source.block;
        let traffic = &scenario.traffic[block as usize];
        let (step, due) = source.replay(traffic, turn);
        if let Some(at) = due {
            self.network.around.queue.push(at, Rank::Demand, index, What::SOURCE);
        }
        let Some(replay::Step { connection, at, what }) = step else { return };
        let place = *self.lane(index, connection);
        match what {
            replay::What::Open { ask, is_last } => {
                let Workload::Replay(demands) = &traffic.workload else { return };
                let recorded = demands.of(connection);
                let purpose = Purpose::Web { source: index, lane: connection };
                let client = 1 - recorded.direction;
                let opening = source::opening(scenario, purpose, block, connection, client, recorded.rtt);
                let place = self.open_since(&opening, ask, is_last, at);
                *self.lane(index, connection) = place;
            }
            replay::What::Ask { ask, is_last } => self.ask(place, ask, is_last, at),
            replay::What::Close => self.close(place, index),
        }
    }
}
