//! All sources of demand of a scenario, and the connection on each of their lanes.

use crate::command::{Command, Opening, Owner};
use crate::source::{self, Demand, Source, Turn};
use base::{Span, Time};
use scenario::{Scenario, Tmix, Traffic, Workload};
use std::collections::BTreeMap;
use traffic::{Command as Spoken, Exchange, replay};

/// The sources, by place; `K` is what the driver calls a connection.
pub struct Sources<'s, K> {
    scenario: &'s Scenario,
    all: Vec<Source>,
    /// The side whose hosts open connections here; `None` for both.
    side: Option<u8>,
    /// The connections on the lanes of web users, one user's after the other's.
    lanes: Vec<K>,
    /// Those of sources that have any number of lanes.
    many: BTreeMap<u32, Vec<K>>,
    /// No connection.
    none: K,
    /// What a source of web traffic says.
    spoken: Vec<Spoken>,
}

impl<'s, K: Copy> Sources<'s, K> {
    /// The sources of a scenario that ask from `side`, or from both; `none` is what the driver calls no connection.
    pub fn new(scenario: &'s Scenario, side: Option<u8>, none: K) -> Self {
        let (mut all, lanes) = source::all(scenario);
        // Of recordings and vectors each connection says which side opens it.
        let says_itself = |source: &Source| matches!(source.demand, Demand::Replay(_) | Demand::Tmix { .. });
        all.retain(|source| opens(side, source.client) || says_itself(source));
        Self {
            scenario,
            all,
            side,
            lanes: vec![none; lanes],
            many: BTreeMap::new(),
            none,
            spoken: Vec::with_capacity(16),
        }
    }

    /// All of them, in their order.
    pub fn all(&self) -> &[Source] {
        &self.all
    }

    /// The number under which results have the exchanges of `owner`.
    pub fn row(&self, owner: Owner) -> u32 {
        match &self.all[owner.source as usize] {
            Source { demand: Demand::Replay(_), .. } => owner.lane,
            source => source.number,
        }
    }

    /// The connection of `owner`: what was last kept for it.
    pub fn connection(&self, owner: Owner) -> K {
        let lane = owner.lane as usize;
        if let Demand::User { lanes, .. } = self.all[owner.source as usize].demand {
            return self.lanes[lanes as usize + lane];
        }
        self.many.get(&owner.source).and_then(|own| own.get(lane)).copied().unwrap_or(self.none)
    }

    /// A connection was opened for `owner`. Nobody asks again on one that the server closes, except that a recording
    /// says itself what it does.
    pub fn keep(&mut self, owner: Owner, connection: K, is_last: bool) {
        let demand = &self.all[owner.source as usize].demand;
        if is_last && !matches!(demand, Demand::Replay(_)) {
            return;
        }
        let lane = owner.lane as usize;
        if let Demand::User { lanes, .. } = *demand {
            self.lanes[lanes as usize + lane] = connection;
            return;
        }
        let own = self.many.entry(owner.source).or_default();
        if own.len() <= lane {
            own.resize(lane + 1, self.none);
        }
        own[lane] = connection;
    }

    /// Source `index` was due at `at`, and it is `now`, later where the driver is late: appends what is to be done.
    pub fn due(&mut self, index: u32, at: Time, now: Time, out: &mut Vec<Command>) {
        let source = &mut self.all[index as usize];
        let traffic = &self.scenario.traffic[usize::from(source.block)];
        let wake = |at: Time| Command::Wake { source: index, at };
        match &mut source.demand {
            Demand::User { .. } | Demand::Session(_) | Demand::PackMime { .. } | Demand::Replay(_) => {
                self.speak(index, Turn::Due, at, now, out);
            }
            &mut Demand::Bulk { bytes, rtt } => {
                let opening = Opening { block: source.block, number: source.number, client: source.client, rtt };
                out.push(Command::Transfer { opening, bytes });
            }
            Demand::Poisson { flows, next, count } => {
                let arrival = *next;
                *next = flows.next_flow();
                out.push(wake(at + next.gap));
                let (number, rtt) = (*count, traffic.rtt.at(arrival.rtt_unit));
                *count += 1;
                let opening = Opening { block: source.block, number, client: source.client, rtt };
                out.push(arrive(traffic, opening, arrival.bytes, now));
            }
            Demand::Udp { datagrams, bytes, .. } => {
                out.push(Command::Datagram { source: index, bytes: *bytes });
                if let Some(next) = datagrams.next_datagram() {
                    *bytes = next.bytes;
                    // From when it was due: a late packet does not delay those after it.
                    out.push(wake(at + next.gap));
                }
            }
            Demand::Tmix { .. } => self.begin_vectors(index, now, out),
        }
    }

    /// The exchange on the connection of `owner` is complete.
    pub fn completed(&mut self, owner: Owner, now: Time, out: &mut Vec<Command>) {
        self.speak(owner.source, Turn::Completed(owner.lane), now, now, out);
    }

    /// The connection of `owner` was given up, during an exchange or between two.
    pub fn given_up(&mut self, owner: Owner, during_exchange: bool, now: Time, out: &mut Vec<Command>) {
        let turn = if during_exchange { Turn::Failed(owner.lane) } else { Turn::Lost(owner.lane) };
        self.speak(owner.source, turn, now, now, out);
    }

    /// Lets a source of web traffic speak.
    fn speak(&mut self, index: u32, turn: Turn, at: Time, now: Time, out: &mut Vec<Command>) {
        let source = &mut self.all[index as usize];
        if matches!(source.demand, Demand::Replay(_)) {
            return self.replay(index, turn, out);
        }
        let (block, client) = (source.block, source.client);
        let traffic = &self.scenario.traffic[usize::from(block)];
        let number = source.turn(traffic, turn, at, &mut self.spoken);
        let owner = |lane: u32| Owner { source: index, lane };
        out.extend(self.spoken.drain(..).map(|spoken| match spoken {
            Spoken::Open { lane, rtt_unit, ask, last } => {
                let opening = Opening { block, number, client, rtt: traffic.rtt.at(rtt_unit) };
                Command::Open { opening, owner: Some(owner(lane)), ask, is_last: last, since: now }
            }
            Spoken::Ask { lane, ask } => Command::Ask { owner: owner(lane), ask, is_last: false, since: now },
            Spoken::Close { lane } => Command::Close { owner: owner(lane) },
            Spoken::Think { span } => Command::Wake { source: index, at: at + span },
        }));
    }

    /// Goes on with a recording, whose connections are its lanes.
    fn replay(&mut self, index: u32, turn: Turn, out: &mut Vec<Command>) {
        let source = &mut self.all[index as usize];
        let block = source.block;
        let traffic = &self.scenario.traffic[usize::from(block)];
        let (step, due) = source.replay(traffic, turn);
        out.extend(due.map(|at| Command::Wake { source: index, at }));
        let Workload::Replay(demands) = &traffic.workload else { return };
        let Some(replay::Step { connection, at, what }) = step else { return };
        let recorded = demands.of(connection);
        let client = 1 - recorded.direction;
        if !opens(self.side, client) {
            return;
        }
        let owner = Owner { source: index, lane: connection };
        out.push(match what {
            replay::What::Open { ask, is_last } => {
                let opening = Opening { block, number: connection, client, rtt: recorded.rtt };
                Command::Open { opening, owner: Some(owner), ask, is_last, since: at }
            }
            replay::What::Ask { ask, is_last } => Command::Ask { owner, ask, is_last, since: at },
            replay::What::Close => Command::Close { owner },
        });
    }

    /// The connections of a source of vectors that are due begin.
    fn begin_vectors(&mut self, index: u32, now: Time, out: &mut Vec<Command>) {
        let source = &mut self.all[index as usize];
        let block = source.block;
        let traffic = &self.scenario.traffic[usize::from(block)];
        let (Demand::Tmix { starts, next }, Workload::Tmix(tmix)) = (&mut source.demand, &traffic.workload) else {
            return;
        };
        while let Some(start) = starts.get(*next as usize) {
            if start.at > now {
                out.push(Command::Wake { source: index, at: start.at });
                return;
            }
            let number = *next;
            *next += 1;
            let (vector, copy) = (start.vector, start.copy);
            let client = u8::from(Tmix::is_forward(traffic.direction, vector));
            if opens(self.side, client) {
                let rtt = tmix.rtt_of(&traffic.rtt, self.scenario.seed, block.into(), copy, vector);
                out.push(Command::Vector { opening: Opening { block, number, client, rtt }, vector, copy });
            }
        }
    }
}

/// Whether connections that `client` opens are opened on `side`, or on both.
fn opens(side: Option<u8>, client: u8) -> bool {
    side.is_none_or(|side| side == client)
}

/// What a random arrival does. One that asks for nothing sends.
fn arrive(traffic: &Traffic, opening: Opening, bytes: u64, now: Time) -> Command {
    match &traffic.workload {
        Workload::Poisson(poisson) if poisson.request_bytes > 0 => {
            let ask = Exchange {
                request_bytes: poisson.request_bytes,
                response_bytes: bytes,
                top_level: true,
                server_delay: Span::ZERO,
            };
            Command::Open { opening, owner: None, ask, is_last: true, since: now }
        }
        _ => Command::Transfer { opening, bytes: Some(bytes) },
    }
}
