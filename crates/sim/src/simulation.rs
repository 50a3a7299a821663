//! The loop: the next thing that happens, until the run is over.

use crate::connection::{Asked, Connection, Connections, Opening, Purpose};
use crate::network::{Network, Sender};
use crate::packets::{Carried, Parcel, What};
use crate::queue::Event;
use crate::replay::Recorder;
use crate::run::{PULSE_EVENTS, Pulse};
use crate::source::{self, Kept};
use crate::tmix::Players;
use crate::totals::Totals;
use crate::watching::Watched;
use aqm::Packet;
use base::{Span, Time};
use net::Rank;
use record::{ExchangeRow, Responses, Sink};
use scenario::sources::{self, Demand, Source, Turn};
use scenario::{Scenario, Workload};
use traffic::{Command, Datagrams, Exchange};

/// More than any run transfers; leaves room to add to.
const ENDLESS: u64 = 1 << 60;

/// A run under way.
pub struct Simulation<'s> {
    pub(crate) scenario: &'s Scenario,
    pub(crate) now: Time,
    events: u64,
    pub(crate) network: Network,
    pub(crate) connections: Connections,
    pub(crate) sources: Vec<Source>,
    /// What is kept of each.
    kept: Vec<Kept>,
    /// The connection on each browser's lane.
    lanes: Vec<u32>,
    commands: Vec<Command>,
    /// What plays connection vectors.
    pub(crate) players: Players,
    pub(crate) is_measuring: bool,
    pub(crate) responses: Responses,
    retired: Totals,
    pub(crate) recorder: Recorder,
    pub(crate) watched: Watched,
}

impl<'s> Simulation<'s> {
    /// A run of `scenario`, at its start.
    pub fn new(scenario: &'s Scenario) -> Self {
        let (sources, lanes) = sources::sources(scenario);
        let mut network = Network::new(scenario);
        let mut kept: Vec<_> = sources.iter().map(|source| Kept::of(source, scenario)).collect();
        for (index, (source, kept)) in sources.iter().zip(&mut kept).enumerate() {
            network.around.queue.push(source.first, Rank::Demand, index as u32, What::SOURCE);
            if let (Kept::Udp { probe, path, .. }, Demand::Udp { datagrams: Datagrams::Probe(_), .. }) =
                (kept, &source.demand)
            {
                let &Source { block, number, client, .. } = source;
                let behind = path.behind(client as usize);
                *probe = Some(network.around.probes.add_flow(index as u32, block, number, client, behind));
            }
        }
        let hosts = |source: &Source| sources::hosts(scenario, source.block, source.number, source.client);
        network.around.hosts = sources.iter().map(hosts).collect();
        let retired = Totals::new(scenario);
        Self {
            scenario,
            now: Time::ZERO,
            events: 0,
            network,
            connections: Connections::default(),
            sources,
            kept,
            lanes: vec![u32::MAX; lanes],
            commands: Vec::with_capacity(16),
            players: Players::default(),
            is_measuring: false,
            responses: Responses::new(),
            retired,
            recorder: Recorder::new(scenario.record.demands),
            watched: Watched::new(scenario),
        }
    }

    /// Everything that happens up to and including `until`; whether `progress`, which is told how far it is after so
    /// many events, wants it to go on.
    pub fn run_until(&mut self, until: Time, sink: &mut dyn Sink, progress: &mut dyn FnMut(Pulse) -> bool) -> bool {
        loop {
            let (link, port) = self.network.net.next_event();
            let next = self.network.around.queue.next_at();
            if net::link_goes_first(link, next) {
                if link > until {
                    break;
                }
                self.now = link;
                self.events += 1;
                self.network.advance(port, &mut self.connections, link, sink);
            } else {
                if next > until {
                    break;
                }
                if let Some(event) = self.network.around.queue.pop() {
                    self.now = event.at;
                    self.events += 1;
                    self.handle(event, sink);
                }
            }
            if self.events.is_multiple_of(PULSE_EVENTS) && !progress(self.pulse()) {
                return false;
            }
        }
        self.now = until;
        true
    }

    /// The measured window begins.
    pub fn start_measuring(&mut self) {
        self.is_measuring = true;
        self.network.net.ports_mut().for_each(|(_, at)| at.meter.start(self.now));
    }

    /// The measured window is over.
    pub fn stop_measuring(&mut self) {
        self.is_measuring = false;
        self.network.net.ports_mut().for_each(|(_, at)| at.meter.stop(self.now));
    }

    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Response times of the measured window.
    pub fn responses(&self) -> &Responses {
        &self.responses
    }

    /// What TCP has done since the start of the run.
    pub fn totals(&self) -> Totals {
        let mut totals = self.retired.clone();
        self.connections.live().for_each(|connection| totals.add(connection));
        totals.seen.clone_from(&self.watched.held_back);
        totals
    }

    /// Asserts that no packet was lost unaccounted or made up.
    pub fn assert_conserved(&self) {
        self.network.net.ports().for_each(|(egress, _)| egress.assert_conserved());
        let of_connections = self.connections.in_flight();
        assert!(
            self.network.around.segments.len() == of_connections,
            "every packet on its way is somewhere: {} segments, {of_connections} of connections",
            self.network.around.segments.len()
        );
    }

    #[inline(always)]
    fn handle(&mut self, event: Event<What>, sink: &mut dyn Sink) {
        match event.rank {
            Rank::Arrive => self.network.arrive(event.what.as_packet(), &mut self.connections, self.now, sink),
            Rank::Deliver => self.deliver(event.what.as_packet(), sink),
            Rank::Wake => self.wake(event.source, event.what.as_end(), sink),
            Rank::Demand => self.demand(event.source, sink),
        }
    }

    /// A packet reached its host.
    fn deliver(&mut self, packet: Parcel, sink: &mut dyn Sink) {
        if packet.is_udp() {
            if packet.is_probe() {
                self.network.around.probes.received(packet.place(), self.now, sink);
            }
            return;
        }
        let Carried { mut segment, connection: place } = self.network.around.segments.remove(packet.place());
        segment.ecn = packet.ecn();
        let end = 1 - packet.side();
        let connection = self.connections.get(place);
        connection.in_flight -= 1;
        if !connection.is_over {
            self.with_end(place, end, |endpoint, config, now, out| endpoint.on_segment(&segment, config, now, out));
            self.attend(place, end, sink);
        }
        self.connections.release(place);
    }

    /// An endpoint asked to be woken, perhaps one that used this place before: a spurious call is harmless.
    fn wake(&mut self, place: u32, end: usize, sink: &mut dyn Sink) {
        let now = self.now;
        let connection = self.connections.get(place);
        if connection.wake_at[end] == now {
            connection.wake_at[end] = Time::NEVER;
        }
        if connection.is_over {
            return;
        }
        let is_answer =
            end != connection.client as usize && connection.asked.is_some_and(|asked| asked.answer_at == now);
        let is_played = matches!(connection.purpose, Purpose::Tmix { player }
            if self.players.is_due(player, connection.who(end), now));
        if is_answer || is_played || connection.ends[end].next_wake() <= now {
            self.with_end(place, end, |endpoint, config, now, out| endpoint.on_wake(config, now, out));
            self.attend(place, end, sink);
            self.connections.release(place);
        } else {
            self.arm(place, end);
        }
    }

    /// Calls `action` on one end of a connection, with its configuration and its way onto the network.
    #[inline]
    pub(crate) fn with_end(
        &mut self,
        place: u32,
        end: usize,
        action: impl FnOnce(&mut tcp::Endpoint, &tcp::Config, Time, &mut Sender<'_>),
    ) {
        let Connection { ends, path, in_flight, block, purpose, .. } = self.connections.get(place);
        let config = &self.scenario.traffic[*block as usize].tcp;
        let conditions = match *purpose {
            Purpose::Tmix { player } => Some(self.players.conditions(player)),
            _ => None,
        };
        let (place, side, now) = (place, end as u8, self.now);
        let mut sender = Sender { network: &mut self.network, path, in_flight, conditions, place, side, now };
        action(&mut ends[end], config, self.now, &mut sender);
    }

    /// Makes sure an endpoint is woken in time. A pending wake-up that comes earlier serves as well.
    #[inline]
    fn arm(&mut self, place: u32, end: usize) {
        let connection = self.connections.get(place);
        let due = connection.ends[end].next_wake();
        if due < connection.wake_at[end] {
            connection.wake_at[end] = due;
            self.network.around.queue.push(due, Rank::Wake, place, What::end(end));
        }
    }

    /// A connection is over: what still comes of it, nobody heeds.
    fn retire(&mut self, place: u32) {
        let connection = self.connections.get(place);
        connection.is_over = true;
        self.retired.add(connection);
        if let Purpose::Tmix { player } = connection.purpose {
            self.players.release(player);
        }
    }

    /// The application's turn at one end, after something happened there.
    fn attend(&mut self, place: u32, end: usize, sink: &mut dyn Sink) {
        let now = self.now;
        let connection = self.connections.get(place);
        if let Purpose::Tmix { player } = connection.purpose {
            return self.attend_vector(place, end, player, sink);
        }
        let is_client = end == connection.client as usize;
        let is_bulk = matches!(connection.purpose, Purpose::Bulk { .. });
        let endpoint = &mut connection.ends[end];
        let mut has_written = false;
        let mut completed = None;
        if let Some(asked) = &mut connection.asked {
            if is_client && !asked.is_sent && endpoint.is_established() {
                asked.is_sent = true;
                asked.open_at = now;
                endpoint.write(if is_bulk { asked.response_bytes } else { u64::from(asked.request_bytes) });
                if is_bulk && asked.response_bytes < ENDLESS {
                    endpoint.close();
                }
                has_written = true;
            }
            let is_asked = !is_client && !asked.is_answered && !is_bulk && endpoint.received() >= asked.request_end;
            if is_asked && asked.server_delay > Span::ZERO {
                asked.answer_at = now + asked.server_delay;
                asked.server_delay = Span::ZERO;
                self.network.around.queue.push(asked.answer_at, Rank::Wake, place, What::end(end));
            }
            if is_asked && asked.answer_at <= now {
                asked.is_answered = true;
                endpoint.write(asked.response_bytes);
                if asked.is_last {
                    endpoint.close();
                }
                has_written = true;
            }
            if is_client != is_bulk && endpoint.received() >= asked.response_end {
                completed = connection.asked.take();
            }
        }
        if endpoint.peer_closed() && !endpoint.is_closing() {
            endpoint.close();
            has_written = true;
        }
        let is_aborted = endpoint.is_aborted();
        if has_written {
            self.with_end(place, end, |endpoint, config, now, out| endpoint.push(config, now, out));
        }
        self.settle(place, end, is_aborted);
        if let Some(asked) = completed {
            self.complete(place, &asked, sink);
        }
    }

    /// After the application's turn at one end: it gave up, or is over, or wants to be woken.
    #[inline]
    pub(crate) fn settle(&mut self, place: u32, end: usize, is_aborted: bool) {
        if is_aborted {
            self.abort(place, end);
        } else {
            let connection = self.connections.get(place);
            if connection.ends[end].is_done() && connection.ends[1 - end].is_done() {
                self.retired.completed += 1;
                self.retire(place);
            }
            self.arm(place, end);
        }
    }

    /// An end gave up.
    fn abort(&mut self, place: u32, end: usize) {
        let connection = self.connections.get(place);
        let config = &self.scenario.traffic[connection.block as usize].tcp;
        // A client that is open and waits for the other to begin would wait for ever: it has no timer, and the
        // acknowledgements that would have opened this end were all lost.
        let client = &connection.ends[connection.client as usize];
        let is_waited_for = client.is_established() && client.next_wake() == Time::NEVER;
        if end != connection.client as usize && !connection.ends[end].was_established() && !is_waited_for {
            // Only the half-open server: the client's next SYN finds a new one.
            self.retired.add_end(end, &connection.ends[end]);
            connection.ends[end].reset(config);
            connection.ends[end].listen(config);
            return;
        }
        let (purpose, asked) = (connection.purpose, connection.asked.take());
        self.retired.failed += 1;
        self.retire(place);
        if let Purpose::Web { source, lane } = purpose {
            self.user(source, if asked.is_some() { Turn::Failed(lane) } else { Turn::Lost(lane) });
        }
    }

    /// An exchange is complete.
    fn complete(&mut self, place: u32, asked: &Asked, sink: &mut dyn Sink) {
        let now = self.now;
        let connection = self.connections.get(place);
        let (purpose, client, block) = (connection.purpose, connection.client, connection.block);
        let (source, direction) = match purpose {
            Purpose::Web { source, lane } => match &self.sources[source as usize] {
                Source { demand: Demand::Replay(_), .. } => (lane, 1 - client),
                source => (source.number, 1 - client),
            },
            Purpose::Single { number } => (number, 1 - client),
            Purpose::Tmix { .. } => unreachable!("players complete their own exchanges"),
            Purpose::Bulk { number } => (number, client),
        };
        if self.is_measuring {
            let response_time = now.since(asked.at);
            self.responses.record(response_time);
            sink.exchange(&ExchangeRow {
                start: asked.at,
                response_time,
                setup: asked.open_at.since(asked.at),
                request_bytes: asked.request_bytes,
                response_bytes: asked.response_bytes,
                traffic: block,
                source,
                direction,
            });
        }
        if let Purpose::Web { source, lane } = purpose {
            self.user(source, Turn::Completed(lane));
        }
    }

    /// A source of demand is due. Seldom beside packets: out of the way of the loop.
    #[inline(never)]
    fn demand(&mut self, index: u32, sink: &mut dyn Sink) {
        let now = self.now;
        let source = &mut self.sources[index as usize];
        let (block, number, client) = (source.block, source.number, source.client);
        match &mut source.demand {
            Demand::Tmix { .. } => self.begin_vectors(index),
            Demand::User { .. } | Demand::Session(_) | Demand::PackMime { .. } | Demand::Replay(_) => {
                self.user(index, Turn::Due);
            }
            Demand::Bulk { bytes, rtt } => {
                let opening = source::opening(self.scenario, Purpose::Bulk { number }, block, number, client, *rtt);
                let response_bytes = bytes.unwrap_or(ENDLESS);
                self.open(
                    &opening,
                    Exchange { request_bytes: 0, response_bytes, top_level: true, server_delay: Span::ZERO },
                    true,
                );
            }
            Demand::Poisson { flows, next, count } => {
                let due = *next;
                *next = flows.next_flow();
                let number = *count;
                *count += 1;
                self.network.around.queue.push(now + next.gap, Rank::Demand, index, What::SOURCE);
                let traffic = &self.scenario.traffic[block as usize];
                let request_bytes = match &traffic.workload {
                    Workload::Poisson(poisson) => poisson.request_bytes,
                    _ => 0,
                };
                let rtt = traffic.rtt.at(due.rtt_unit);
                let purpose = if request_bytes == 0 { Purpose::Bulk { number } } else { Purpose::Single { number } };
                let opening = source::opening(self.scenario, purpose, block, number, client, rtt);
                let response_bytes = due.bytes;
                let ask = Exchange { request_bytes, response_bytes, top_level: true, server_delay: Span::ZERO };
                self.open(&opening, ask, true);
            }
            Demand::Udp { datagrams, bytes, .. } => {
                let Kept::Udp { flow, path, probe } = &mut self.kept[index as usize] else { return };
                let dscp = self.scenario.traffic[block as usize].dscp;
                let step = self.network.around.steps[block as usize][client as usize];
                let place = probe.map(|probe| self.network.around.probes.send(probe, now));
                let takes = self.network.around.access.time_for(u64::from(*bytes));
                let impairments = &mut self.network.around.impairments;
                let fate = || impairments.as_mut().map_or(Some(Span::ZERO), |paths| paths.fate(client as usize));
                if let Some(arrives) = path.send(client as usize, takes, now, fate) {
                    let packet = match place {
                        Some(place) => Parcel::probe(*flow, step, place, *bytes as u16, dscp, client),
                        None => Parcel::udp(*flow, step, index, *bytes as u16, dscp, client),
                    };
                    self.network.around.queue.push(arrives, Rank::Arrive, index, What::packet(packet));
                } else {
                    self.network.lost_before_link(step, true);
                    if let Some(place) = place {
                        self.network.around.probes.lost(place, sink);
                    }
                }
                if let Some(next) = datagrams.next_datagram() {
                    *bytes = next.bytes;
                    self.network.around.queue.push(now + next.gap, Rank::Demand, index, What::SOURCE);
                }
            }
        }
    }

    /// Lets a source of web traffic speak, and does what it says.
    fn user(&mut self, index: u32, turn: Turn) {
        let now = self.now;
        let source = &mut self.sources[index as usize];
        if matches!(source.demand, Demand::Replay(_)) {
            return self.replay(index, turn);
        }
        let mut commands = std::mem::take(&mut self.commands);
        let (block, client) = (source.block, source.client);
        let traffic = &self.scenario.traffic[block as usize];
        let number = source.turn(traffic, turn, now, &mut commands);
        for command in commands.drain(..) {
            match command {
                Command::Open { lane, rtt_unit, ask, last } => {
                    let rtt = traffic.rtt.at(rtt_unit);
                    let purpose = Purpose::Web { source: index, lane };
                    let opening = source::opening(self.scenario, purpose, block, number, client, rtt);
                    let place = self.open(&opening, ask, last);
                    // Nobody asks again on a connection that the server closes.
                    if !last {
                        *self.lane(index, lane) = place;
                    }
                }
                Command::Ask { lane, ask } => {
                    let place = *self.lane(index, lane);
                    self.note_ask(place, &ask, false, None);
                    self.ask(place, ask, false, now);
                }
                Command::Close { lane } => {
                    let place = *self.lane(index, lane);
                    self.note_close(place);
                    self.close(place, index);
                }
                Command::Think { span } => {
                    self.network.around.queue.push(now + span, Rank::Demand, index, What::SOURCE);
                }
            }
        }
        self.commands = commands;
    }

    /// The connection on a lane of a source of web traffic or of a recording.
    pub(crate) fn lane(&mut self, index: u32, lane: u32) -> &mut u32 {
        if let Demand::User { lanes, .. } = self.sources[index as usize].demand {
            return &mut self.lanes[(lanes + lane) as usize];
        }
        let Kept::Lanes(lanes) = &mut self.kept[index as usize] else {
            unreachable!("only these ask again on a connection")
        };
        let lane = lane as usize;
        if lanes.len() <= lane {
            lanes.resize(lane + 1, u32::MAX);
        }
        &mut lanes[lane]
    }

    /// The client of a connection of a source of web traffic closes it.
    pub(crate) fn close(&mut self, place: u32, index: u32) {
        let connection = self.connections.get(place);
        let end = connection.client as usize;
        connection.purpose = Purpose::Web { source: index, lane: Command::NO_LANE };
        connection.ends[end].close();
        self.with_end(place, end, |endpoint, config, now, out| endpoint.push(config, now, out));
        self.arm(place, end);
    }

    /// Opens a connection and asks on it.
    fn open(&mut self, opening: &Opening, ask: Exchange, is_last: bool) -> u32 {
        self.open_since(opening, ask, is_last, self.now)
    }

    /// Opens a connection and asks on it what has been wanted since `since`.
    pub(crate) fn open_since(&mut self, opening: &Opening, ask: Exchange, is_last: bool, since: Time) -> u32 {
        let place = self.open_idle(opening);
        self.note_ask(place, &ask, is_last, Some(opening.rtt));
        self.ask(place, ask, is_last, since);
        place
    }

    /// Opens a connection.
    pub(crate) fn open_idle(&mut self, opening: &Opening) -> u32 {
        let traffic = &self.scenario.traffic[opening.block as usize];
        let config = &traffic.tcp;
        let steps = self.network.around.steps[opening.block as usize];
        let place = self.connections.open(opening, steps, traffic.route.delay_at, config);
        self.watch(place);
        let client = opening.client as usize;
        self.connections.get(place).ends[1 - client].listen(config);
        self.with_end(place, client, |endpoint, config, now, out| endpoint.open(config, now, out));
        place
    }

    /// Asks on a connection what has been wanted since `since`: at once if it is open, otherwise as soon as it is.
    pub(crate) fn ask(&mut self, place: u32, ask: Exchange, is_last: bool, since: Time) {
        let now = self.now;
        let connection = self.connections.get(place);
        let client = connection.client as usize;
        let is_bulk = matches!(connection.purpose, Purpose::Bulk { .. });
        let asked = Asked {
            at: since,
            open_at: now,
            request_bytes: ask.request_bytes,
            response_bytes: ask.response_bytes,
            request_end: connection.ends[1 - client].received() + u64::from(ask.request_bytes),
            response_end: ask.response_bytes + if is_bulk { 0 } else { connection.ends[client].received() },
            is_sent: false,
            is_answered: false,
            server_delay: ask.server_delay,
            answer_at: Time::ZERO,
            is_last,
        };
        connection.asked = Some(asked);
        self.attend(place, client, &mut record::Discard);
    }
}
