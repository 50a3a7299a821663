//! This file replays a recording of demands: everything is asked for again at the recorded instants, whatever becomes
//! of earlier answers. So every discipline meets the same demands. Kuzmanovic (SIGCOMM 2005, §5) did this with the
//! requests of a closed loop that he recorded on an uncongested link.
//!
//! - An exchange is asked for at its recorded instant on its recorded connection. The first exchange opens the
//!   connection.
//! - If an earlier exchange is under way on it, the exchange waits for that one, as in HTTP/1.1 without pipelining. Its
//!   response time counts from the recorded instant all the same.
//! - If the connection was given up, the exchange under way is lost, and the next one opens it anew.
//! - Its server closes a connection after the response that says so; or its client closes it at the recorded instant,
//!   but no earlier than the last response.

use crate::Exchange;
use base::{Span, Time};

/// A recording.
#[derive(Clone, Debug, Default)]
pub struct Demands {
    connections: Vec<Recorded>,
    events: Vec<Event>,
}

/// A recorded connection.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Which way its responses flow: 0 forward, 1 in reverse.
    pub direction: u8,
    /// Its round-trip propagation delay.
    pub rtt: Span,
    first: u32,
    last: u32,
    is_closed: bool,
}

/// What happens at a recorded instant.
#[derive(Clone, Copy, Debug)]
struct Event {
    at: Time,
    connection: u32,
    /// The next one of the same connection.
    following: u32,
    action: Action,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Ask {
        request_bytes: u32,
        response_bytes: u64,
        server_delay: Span,
        /// Whether the server closes after the response.
        is_last: bool,
    },
    Close,
}

const NONE: u32 = u32::MAX;

impl Demands {
    /// Adds a connection. Returns its number.
    pub fn connection(&mut self, direction: u8, rtt: Span) -> u32 {
        self.connections.push(Recorded { direction, rtt, first: NONE, last: NONE, is_closed: false });
        self.connections.len() as u32 - 1
    }

    /// Adds an exchange at `at` on `connection`, which is not closed. Instants never go back from one call to the next.
    pub fn ask(&mut self, connection: u32, at: Time, ask: &Exchange, is_last: bool) {
        let &Exchange { request_bytes, response_bytes, server_delay, .. } = ask;
        self.add(connection, at, Action::Ask { request_bytes, response_bytes, server_delay, is_last });
        self.connections[connection as usize].is_closed = is_last;
    }

    /// Adds that the client of `connection`, which is not closed, closes it at `at`.
    pub fn close(&mut self, connection: u32, at: Time) {
        self.add(connection, at, Action::Close);
        self.connections[connection as usize].is_closed = true;
    }

    fn add(&mut self, connection: u32, at: Time, action: Action) {
        let event = self.events.len() as u32;
        let recorded = &mut self.connections[connection as usize];
        assert!(!recorded.is_closed, "nothing is asked on a connection that is closed");
        assert!(self.events.last().is_none_or(|last| last.at <= at), "a recording is in the order of time");
        match self.events.get_mut(recorded.last as usize) {
            Some(before) => before.following = event,
            None => recorded.first = event,
        }
        recorded.last = event;
        self.events.push(Event { at, connection, following: NONE, action });
    }

    /// The connection of this number.
    pub fn of(&self, connection: u32) -> &Recorded {
        &self.connections[connection as usize]
    }

    /// Whether nothing more may happen on a connection.
    pub fn is_closed(&self, connection: u32) -> bool {
        self.connections[connection as usize].is_closed
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// How many exchanges there are.
    pub fn exchanges(&self) -> usize {
        self.events.iter().filter(|event| matches!(event.action, Action::Ask { .. })).count()
    }

    /// The instant of what was added last.
    pub fn end(&self) -> Time {
        self.events.last().map_or(Time::ZERO, |event| event.at)
    }
}

/// Something to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The connection.
    pub connection: u32,
    /// The recorded instant, which has come or is over.
    pub at: Time,
    /// The thing to do.
    pub what: What,
}

/// The thing to do in a [`Step`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Open the connection and ask.
    Open {
        /// What to ask.
        ask: Exchange,
        /// Whether the server closes after the response.
        is_last: bool,
    },
    /// Ask on the open connection, which is idle.
    Ask {
        /// What to ask.
        ask: Exchange,
        /// Whether the server closes after the response.
        is_last: bool,
    },
    /// The client closes the connection, which is idle.
    Close,
}

/// A recording being replayed.
#[derive(Clone, Debug)]
pub struct Replay {
    lines: Vec<Line>,
    next: usize,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// The next event on it.
    event: u32,
    /// How many events from there on are due.
    due: u32,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Not opened, closed or given up.
    Absent,
    Idle,
    Busy,
    /// Busy with an exchange after which the server closes.
    Ending,
}

impl Replay {
    /// The start of `demands`.
    pub fn new(demands: &Demands) -> Self {
        let line = |recorded: &Recorded| Line { event: recorded.first, due: 0, phase: Phase::Absent };
        Self { lines: demands.connections.iter().map(line).collect(), next: 0 }
    }

    /// When [`Replay::wake`] wants to be called next; `None` after the end.
    pub fn next_wake(&self, demands: &Demands) -> Option<Time> {
        demands.events.get(self.next).map(|event| event.at)
    }

    /// Takes the recorded instant that has come. Returns what is to be done, if anything.
    pub fn wake(&mut self, demands: &Demands) -> Option<Step> {
        let event = demands.events.get(self.next)?;
        self.next += 1;
        self.lines[event.connection as usize].due += 1;
        self.advance(event.connection, demands)
    }

    /// Notes that the exchange under way on `connection` is complete. Returns what is to be done next there, if
    /// anything.
    pub fn completed(&mut self, connection: u32, demands: &Demands) -> Option<Step> {
        let line = &mut self.lines[connection as usize];
        line.phase = if line.phase == Phase::Ending { Phase::Absent } else { Phase::Idle };
        self.advance(connection, demands)
    }

    /// Notes that `connection` was given up. Returns what is to be done next there, if anything.
    pub fn failed(&mut self, connection: u32, demands: &Demands) -> Option<Step> {
        self.lines[connection as usize].phase = Phase::Absent;
        self.advance(connection, demands)
    }

    /// The next thing that is due on a connection and can be done. There is never more than one: an exchange makes the
    /// connection busy, and nothing follows its close.
    fn advance(&mut self, connection: u32, demands: &Demands) -> Option<Step> {
        let line = &mut self.lines[connection as usize];
        if line.due == 0 || matches!(line.phase, Phase::Busy | Phase::Ending) {
            return None;
        }
        let event = demands.events[line.event as usize];
        line.event = event.following;
        line.due -= 1;
        let is_open = line.phase == Phase::Idle;
        let what = match event.action {
            Action::Ask { request_bytes, response_bytes, server_delay, is_last } => {
                line.phase = if is_last { Phase::Ending } else { Phase::Busy };
                let ask = Exchange { request_bytes, response_bytes, top_level: false, server_delay };
                if is_open { What::Ask { ask, is_last } } else { What::Open { ask, is_last } }
            }
            Action::Close if is_open => {
                line.phase = Phase::Absent;
                What::Close
            }
            Action::Close => return None,
        };
        Some(Step { connection, at: event.at, what })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(response_bytes: u64) -> Exchange {
        Exchange { request_bytes: 300, response_bytes, top_level: false, server_delay: Span::from_ms(1) }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// Two exchanges on a persistent connection, then its close; one on another between them.
    fn recording() -> Demands {
        let mut demands = Demands::default();
        let persistent = demands.connection(0, Span::from_ms(40));
        demands.ask(persistent, at(10), &exchange(1), false);
        let single = demands.connection(1, Span::from_ms(80));
        demands.ask(single, at(15), &exchange(2), true);
        demands.ask(persistent, at(20), &exchange(3), false);
        demands.close(persistent, at(30));
        demands
    }

    /// Wakes it to the end; `completes` says after which of the wake-ups connection 0 has an answer.
    fn play(demands: &Demands, completes: &[usize]) -> Vec<Step> {
        let mut replay = Replay::new(demands);
        let mut steps = Vec::new();
        for turn in 0.. {
            if replay.next_wake(demands).is_none() {
                return steps;
            }
            steps.extend(replay.wake(demands));
            if completes.contains(&turn) {
                steps.extend(replay.completed(0, demands));
            }
        }
        steps
    }

    #[test]
    fn on_a_fast_network_everything_is_asked_at_its_instant() {
        let demands = recording();
        assert_eq!((demands.connections(), demands.exchanges(), demands.end()), (2, 3, at(30)));
        let step = |connection, ms, what| Step { connection, at: at(ms), what };
        let expected = [
            step(0, 10, What::Open { ask: exchange(1), is_last: false }),
            step(1, 15, What::Open { ask: exchange(2), is_last: true }),
            step(0, 20, What::Ask { ask: exchange(3), is_last: false }),
            step(0, 30, What::Close),
        ];
        assert_eq!(play(&demands, &[0, 2]), expected);
    }

    #[test]
    fn on_a_slow_one_a_connection_is_waited_for_and_nothing_else() {
        let demands = recording();
        let mut replay = Replay::new(&demands);
        let mut asked = Vec::new();
        while replay.next_wake(&demands).is_some() {
            asked.extend(replay.wake(&demands));
        }
        assert_eq!(asked.iter().map(|step| step.connection).collect::<Vec<_>>(), [0, 1]);
        // The second exchange comes with the first answer, and still is of its recorded instant; the close with the
        // next.
        let second = replay.completed(0, &demands).expect("it waits");
        assert_eq!((second.at, second.what), (at(20), What::Ask { ask: exchange(3), is_last: false }));
        assert_eq!(replay.completed(0, &demands).map(|step| step.what), Some(What::Close));
        assert_eq!(replay.completed(1, &demands), None);
    }

    #[test]
    fn after_a_connection_is_given_up_the_next_exchange_opens_another() {
        let demands = recording();
        let mut replay = Replay::new(&demands);
        replay.wake(&demands);
        assert_eq!(replay.failed(0, &demands), None);
        replay.wake(&demands);
        let again = replay.wake(&demands).expect("the second exchange");
        assert_eq!((again.at, again.what), (at(20), What::Open { ask: exchange(3), is_last: false }));
        // Given up between two exchanges: nothing to close.
        assert_eq!(replay.completed(0, &demands), None);
        assert_eq!(replay.failed(0, &demands), None);
        assert_eq!(replay.wake(&demands), None);
        assert_eq!(replay.next_wake(&demands), None);
    }
}
