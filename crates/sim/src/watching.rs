//! This file looks at connections now and then, which costs nothing in between. It finds what holds endless flows back,
//! and writes the rows of `tcp.parquet`.

use crate::connection::{Connection, Connections};
use crate::simulation::Simulation;
use base::FlowKey;
use record::{HeldBack, Sink, TcpRow};
use scenario::Scenario;

/// The most connections of a block that have rows at a time: those that came first, as in a live run.
const MOST: u32 = 64;

/// At an instant so many endless flows are looked at. Where there are more, they have turns: to look at ten thousand
/// flows at the end of each interval would cost more than their packets.
const AT_ONCE: usize = 256;

/// The connections that are looked at.
pub struct Watched {
    /// The endless flows, whose turn is next, and what was seen of those of each block; `None` for a block without.
    endless: Vec<Place>,
    turn: usize,
    pub held_back: Vec<Option<HeldBack>>,
    /// The senders of which rows are written, and how many each block has; empty where no rows are asked for.
    senders: Vec<Sender>,
    counts: Option<Vec<u32>>,
}

/// A connection, by a place that another connection may have later.
#[derive(Clone, Copy)]
struct Place {
    place: u32,
    flow: FlowKey,
}

/// A connection with the number that its block's user or flow has.
#[derive(Clone, Copy)]
struct Sender {
    at: Place,
    block: u16,
    source: u32,
}

impl Place {
    /// The connection, while it lasts.
    fn get(self, connections: &mut Connections) -> Option<&mut Connection> {
        let connection = connections.get(self.place);
        (connection.path.flow == self.flow && !connection.is_over).then_some(connection)
    }
}

impl Watched {
    /// A collection without connections, for the blocks of `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let held_back = scenario.traffic.iter().map(|traffic| (traffic.workload.endless() > 0).then(HeldBack::default));
        let counts = scenario.record.flows.map(|_| vec![0; scenario.traffic.len()]);
        Self { endless: Vec::new(), turn: 0, held_back: held_back.collect(), senders: Vec::new(), counts }
    }
}

impl Simulation<'_> {
    /// Notes that a connection was opened, which may be one to look at.
    pub(crate) fn watch(&mut self, place: u32) {
        let connection = self.connections.get(place);
        let (block, source) = (connection.block as usize, connection.number);
        let at = Place { place, flow: connection.path.flow };
        if self.watched.held_back[block].is_some() {
            self.watched.endless.push(at);
        }
        let Some(count) = self.watched.counts.as_mut().map(|counts| &mut counts[block]) else { return };
        if *count < MOST {
            *count += 1;
            self.watched.senders.push(Sender { at, block: block as u16, source });
        }
    }

    /// Looks at what holds endless flows back at this instant.
    pub(crate) fn look_at_endless_flows(&mut self) {
        let (now, scenario, connections) = (self.now, self.scenario, &mut self.connections);
        let Watched { endless, turn, held_back, .. } = &mut self.watched;
        for _ in 0..endless.len().min(AT_ONCE) {
            *turn = if *turn < endless.len() { *turn } else { 0 };
            let Some(connection) = endless.get(*turn).and_then(|at| at.get(connections)) else {
                if *turn < endless.len() {
                    endless.remove(*turn);
                }
                continue;
            };
            *turn += 1;
            let (block, sender) = (connection.block as usize, connection.client as usize);
            if let Some(seen) = &mut held_back[block] {
                seen.looks += 1;
                if connection.path.links.is_sending(sender, now) {
                    seen.by_access += 1;
                } else if connection.ends[sender].is_held_by_receiver(&scenario.traffic[block].tcp) {
                    seen.by_window += 1;
                }
            }
        }
    }

    /// Writes a row of each sender that is looked at.
    pub(crate) fn look_at_senders(&mut self, sink: &mut dyn Sink) {
        let (now, scenario, connections) = (self.now, self.scenario, &mut self.connections);
        let Watched { senders, counts: Some(counts), .. } = &mut self.watched else { return };
        senders.retain(|sender| {
            let Some(connection) = sender.at.get(connections) else {
                counts[sender.block as usize] -= 1;
                return false;
            };
            let config = &scenario.traffic[sender.block as usize].tcp;
            let side = session::sender(scenario, sender.block, connection.client);
            let end = &connection.ends[side as usize];
            let mss = f64::from(config.mss);
            let ssthresh = end.ssthresh();
            sink.tcp(&TcpRow {
                time: now,
                traffic: sender.block,
                source: sender.source,
                side,
                state: end.is_established().into(),
                congestion_state: end.congestion_state() as u8,
                cwnd_segments: (end.cwnd() / mss) as u32,
                ssthresh_segments: ssthresh.is_finite().then_some(ssthresh / mss),
                in_flight_segments: end.segments_in_flight(),
                srtt: end.srtt(),
                rttvar: end.rttvar(),
                rto: end.rto(config),
                pacing_rate_bps: end.pacing_rate().filter(|rate| rate.is_finite()).map(|rate| rate * 8.0),
                acknowledged_bytes: end.acknowledged(),
                retransmitted_segments: end.stats().retransmitted,
                delivered_segments: (end.acknowledged() as f64 / mss).ceil() as u32,
                delivered_ce_segments: None,
            });
            true
        });
    }
}
