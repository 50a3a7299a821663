//! All sources of demand of a scenario, and the connection on each of their lanes.

use base::{Time, fetch};
use scenario::{Command, Lanes, Owner, Scenario, Site, Source, Turn, Voice, opens};
use std::collections::BTreeMap;
use traffic::Command as Spoken;

/// The sources, by place; `K` is what the driver calls a connection.
pub struct Sources<'s, K> {
    scenario: &'s Scenario,
    all: Vec<Source<'s>>,
    /// The side whose hosts open connections here; `None` for both.
    side: Option<u8>,
    /// The connections on the lanes of sources that have few, one's after the other's, and where each one's begin.
    lanes: Vec<K>,
    begin: Vec<u32>,
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
        let mut all = Vec::new();
        for (block, traffic) in (0..).zip(&scenario.traffic) {
            traffic.workload.sources(&Site { scenario, block }, &mut all);
        }
        all.retain(|source| opens(side, source.client) || source.lanes == Lanes::Recorded);
        let mut count = 0;
        let begin = all.iter().map(|source| {
            let own = if let Lanes::Few(lanes) = source.lanes { lanes } else { 0 };
            count += own;
            count - own
        });
        let begin = begin.collect();
        let (lanes, spoken) = (vec![none; count as usize], Vec::with_capacity(16));
        Self { scenario, all, side, lanes, begin, many: BTreeMap::new(), none, spoken }
    }

    /// All of them, in their order.
    pub fn all(&self) -> &[Source<'s>] {
        &self.all
    }

    /// The number under which results have the exchanges of `owner`.
    pub fn row(&self, owner: Owner) -> u32 {
        match &self.all[owner.source as usize] {
            Source { lanes: Lanes::Recorded, .. } => owner.lane,
            source => source.number,
        }
    }

    /// The connection of `owner`: what was last kept for it.
    pub fn connection(&self, owner: Owner) -> K {
        let (source, lane) = (owner.source as usize, owner.lane as usize);
        if let Lanes::Few(_) = self.all[source].lanes {
            return self.lanes[self.begin[source] as usize + lane];
        }
        self.many.get(&owner.source).and_then(|own| own.get(lane)).copied().unwrap_or(self.none)
    }

    /// Asks for source `index`, which will have a turn soon.
    #[inline]
    pub fn fetch(&self, index: u32) {
        fetch(&self.all[index as usize]);
    }

    /// Asks for what source `index` speaks from; the source itself is there already.
    #[inline]
    pub fn fetch_voice(&self, index: u32) {
        fetch(&*self.all[index as usize].asks);
    }

    /// A connection was opened for `owner`. Nobody asks again on one that the server closes, except that a recording
    /// says itself what it does.
    pub fn keep(&mut self, owner: Owner, connection: K, is_last: bool) {
        let (source, lane) = (owner.source as usize, owner.lane as usize);
        let lanes = self.all[source].lanes;
        if is_last && lanes != Lanes::Recorded {
            return;
        }
        if let Lanes::Few(_) = lanes {
            self.lanes[self.begin[source] as usize + lane] = connection;
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
        self.speak(index, Turn::Due, at, now, out);
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

    /// Lets a source speak.
    #[inline]
    fn speak(&mut self, index: u32, turn: Turn, at: Time, now: Time, out: &mut Vec<Command>) {
        let source = &mut self.all[index as usize];
        let traffic = &self.scenario.traffic[usize::from(source.block)];
        Voice::lend(index, source, turn, (at, now), (traffic, self.side), (&mut self.spoken, out));
    }
}
