//! Demands that were recorded, asked again at their instants.

use super::Hosts;
use super::timers::Due;
use scenario::Workload;
use scenario::sources::Turn;
use std::io;
use traffic::replay;

impl Hosts<'_> {
    /// Goes on with a recording, whose connections are its lanes.
    pub(super) fn replay(&mut self, index: u32, turn: Turn) -> io::Result<()> {
        let scenario = self.scenario;
        let source = &mut self.sources[index as usize];
        let block = source.block;
        let traffic = &scenario.traffic[usize::from(block)];
        let (step, due) = source.replay(traffic, turn);
        if let Some(at) = due {
            self.timers.push(at, Due::Source(index));
        }
        let Some(replay::Step { connection, at, what }) = step else { return Ok(()) };
        let Workload::Replay(demands) = &traffic.workload else { return Ok(()) };
        let recorded = demands.of(connection);
        // The other side's hosts open the others.
        if recorded.direction == self.side {
            return Ok(());
        }
        let token = *self.lane(index, connection);
        match what {
            replay::What::Open { ask, is_last } => {
                let user = Some((index, connection));
                let token = self.open_client((block, connection, recorded.rtt), connection, user, ask, is_last, at)?;
                *self.lane(index, connection) = token;
                Ok(())
            }
            replay::What::Ask { ask, is_last } => self.ask(token, ask, is_last, at),
            replay::What::Close => {
                self.close(token);
                Ok(())
            }
        }
    }
}
