//! The loop: the next thing that happens, until the run is over.

use crate::connection::{Application, Connection, Connections};
use crate::datagrams::Kept;
use crate::media;
use crate::network::{Around, Network, Sender};
use crate::packets::{Parcel, What};
use crate::queue::Event;
use crate::run::{Listener, PULSE_EVENTS};
use crate::totals::Totals;
use crate::watching::Watched;
use aqm::Packet;
use base::{Span, Time};
use net::Rank;
use record::{Responses, Sink};
use scenario::{Carries, QdiscSpec, Scenario};
use session::{Command, Completed, Heard, Recorder, Source, Sources};

/// A run under way. [`run`](crate::run()) makes a whole one; who wants to look into it, or to steer it, goes step by
/// step: [`Simulation::run_until`], [`Simulation::observe`], [`Simulation::set`].
///
/// ```
/// use base::{Span, Time};
/// use record::Discard;
/// use sim::Simulation;
///
/// let text = "duration = '10s'\nlink = { rate = '10mbit', qdisc = { kind = 'pie' } }\n\
///             traffic = [{ kind = 'bulk', flows = 4 }]\n";
/// let resolved = scenario::resolve(text, "link.toml", &[], &|_| Err("there are no files".to_owned()))?;
/// let mut simulation = Simulation::new(resolved.scenario()?);
/// let mut waits = Vec::new();
/// for step in 1..=100 {
///     simulation.run_until(Time::ZERO + Span::from_ms(100 * step), &mut Discard, &mut |_| true);
///     let seen = simulation.observe();
///     waits.extend(seen.ports[0].queue_delay_mean_s());
///     if step == 50 {
///         simulation.set("link", 0, "target", "5ms")?;
///     }
/// }
/// let mean = |waits: &[f64]| waits.iter().sum::<f64>() / waits.len() as f64;
/// assert!(mean(&waits[70..]) < mean(&waits[20..50]));
/// # Ok::<(), scenario::Error>(())
/// ```
pub struct Simulation<'s> {
    pub(crate) scenario: &'s Scenario,
    pub(crate) now: Time,
    events: u64,
    /// So many events are handled when the next pulse is shown.
    next_pulse: u64,
    pub(crate) network: Network,
    pub(crate) connections: Connections,
    pub(crate) sources: Sources<'s, u32>,
    /// What is kept of each source.
    pub(crate) kept: Vec<Kept>,
    /// What the sources want done.
    pub(crate) commands: Vec<Command>,
    /// The disciplines at the ports, with the parameters that they have now.
    pub(crate) qdiscs: Vec<QdiscSpec>,
    pub(crate) is_measuring: bool,
    pub(crate) responses: Responses,
    retired: Totals,
    pub(crate) recorder: Recorder,
    pub(crate) watched: Watched,
}

impl<'s> Simulation<'s> {
    /// A run of `scenario`, at its start.
    pub fn new(scenario: &'s Scenario) -> Self {
        let sources = Sources::new(scenario, None, u32::MAX);
        let mut network = Network::new(scenario);
        let media = &mut network.around.media;
        let kept = (0..)
            .zip(sources.all())
            .map(|(index, source)| media::flow_of(media, scenario, index, source, Kept::of(source, scenario)));
        let mut kept: Vec<_> = kept.collect();
        for (index, (source, kept)) in sources.all().iter().zip(&mut kept).enumerate() {
            network.around.queue.push(source.first, Rank::Demand, index as u32, What::SOURCE);
            let carries = scenario.traffic[usize::from(source.block)].workload.carries();
            if let (Kept::Udp { probe, path, .. }, Carries::Probes) = (kept, carries) {
                let &Source { block, number, client, .. } = source;
                let behind = path.behind(client as usize);
                *probe = Some(network.around.probes.add_flow(index as u32, block, number, client, behind));
            }
        }
        let hosts = |source: &Source<'_>| session::hosts(scenario, source.block, source.number, source.client);
        network.around.hosts = sources.all().iter().map(hosts).collect();
        let retired = Totals::new(scenario);
        Self {
            scenario,
            now: Time::ZERO,
            events: 0,
            next_pulse: PULSE_EVENTS,
            network,
            connections: Connections::default(),
            sources,
            kept,
            commands: Vec::with_capacity(16),
            qdiscs: scenario.links.iter().flat_map(|link| link.qdiscs.clone()).collect(),
            is_measuring: false,
            responses: Responses::new(),
            retired,
            recorder: Recorder::new(scenario),
            watched: Watched::new(scenario),
        }
    }

    /// Everything that happens up to and including `until`; whether `progress`, which is told how far it is after so
    /// many events, wants it to go on.
    ///
    /// What happens at links and what happens at hosts take turns, a window of time each. A packet that a host sends
    /// has its propagation delay before it, so that within a window as long as the least of these delays, the
    /// lookahead, nothing that hosts do reaches a link: the links can be served first, each by itself, and then the
    /// hosts, all in one go over data that stay in the cache. What comes of it is the order of events of
    /// `net::order`, as if they had been taken one by one:
    ///
    /// ```text
    ///   time      first                         before = first + lookahead
    ///   ports     │ 1. arrivals, departures, losses  │
    ///             │       ╲ delivered  ╲             ╲│ (later)
    ///   hosts     │ 2. losses, deliveries, timers     │
    ///             │          ╲ sent     ╲             │
    ///             │           ╲          ╲            │
    ///   ports     │            `──────────`───────────│─▶ arrive in windows to come
    /// ```
    ///
    /// Where there is no lookahead, events are taken one by one.
    pub fn run_until(&mut self, until: Time, sink: &mut dyn Sink, progress: Listener<'_>) -> bool {
        let end = until + Span::from_ns(1);
        loop {
            let Around { deliveries, queue, .. } = &self.network.around;
            let first = self.network.bound().min(deliveries.bound()).min(queue.bound());
            if first > until {
                break;
            }
            if self.network.lookahead == Span::ZERO {
                self.step(first, sink);
            } else {
                let before = self.network.window(first, end);
                self.events += self.network.pass(before, &mut self.connections, sink);
                while self.happens_at_host(before, sink) {}
                self.now = before - Span::from_ns(1);
            }
            if self.events >= self.next_pulse {
                self.next_pulse += PULSE_EVENTS;
                if !progress(self) {
                    return false;
                }
            }
        }
        self.now = self.now.max(until);
        true
    }

    /// The next thing that happens at a host before `before`; whether there was one.
    #[inline(always)]
    fn happens_at_host(&mut self, before: Time, sink: &mut dyn Sink) -> bool {
        let Around { deliveries, queue, .. } = &mut self.network.around;
        let due_at = deliveries.first_at(before);
        if queue.bound() <= due_at.unwrap_or(before) && self.happens_otherwise(due_at, before, sink) {
            return true;
        }
        if due_at.is_none() {
            return false;
        }
        let Some(due) = self.network.around.deliveries.take() else { return false };
        self.fetch_for_packets();
        self.reach(due.at);
        self.events += 1;
        self.deliver(due.source, due.packet, sink);
        true
    }

    /// The next thing that happens at a host before `before`, if it comes before the next packet, which is
    /// `delivered_at`; whether there was one.
    #[inline(never)]
    fn happens_otherwise(&mut self, delivered_at: Option<Time>, before: Time, sink: &mut dyn Sink) -> bool {
        let queue = &mut self.network.around.queue;
        queue.next_at();
        // Of what is due with a packet, losses go first.
        let is_next = |at, rank| match delivered_at {
            Some(delivered_at) => at < delivered_at || at == delivered_at && rank < Rank::Deliver,
            None => at < before,
        };
        let Some(event) = queue.pop_if(is_next) else { return false };
        self.fetch_for_events();
        self.reach(event.at);
        self.handle(event, sink);
        true
    }

    /// Time has come to `now`. It does not run backwards, in release builds either.
    #[inline]
    fn reach(&mut self, now: Time) {
        assert!(now >= self.now, "time runs on");
        self.now = now;
    }

    /// The first thing that happens at `now`, at a link or a host, if anything does.
    fn step(&mut self, now: Time, sink: &mut dyn Sink) {
        let after = now + Span::from_ns(1);
        let Network { net, arrivals, .. } = &mut self.network;
        let (link, port) = net.next_event();
        if net::link_goes_first(link, now) {
            self.events += self.network.advance(port, &mut self.connections, now, sink);
        } else if let Some(due) = arrivals[0].first(after) {
            arrivals[0].went(1);
            self.network.arrive(due.packet, &mut self.connections, now, sink);
            self.events += 1;
        } else {
            self.happens_at_host(after, sink);
            return;
        }
        self.reach(now);
    }

    /// The measured window begins.
    pub fn start_measuring(&mut self) {
        self.is_measuring = true;
        self.network.net.ports_mut().for_each(|(egress, at)| at.meter.start(egress.waiting_packet_ns(self.now)));
    }

    /// The measured window is over.
    pub fn stop_measuring(&mut self) {
        self.is_measuring = false;
        self.network.net.ports_mut().for_each(|(egress, at)| at.meter.stop(egress.waiting_packet_ns(self.now)));
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
        self.connections.show_live(|connection| totals.add(connection));
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
            Rank::Lose => return self.lose(event.what.as_packet(), sink),
            Rank::Wake if event.what.is_of_media() => self.wake_media(event.source, event.what.as_end(), sink),
            Rank::Wake => self.wake(event.source, event.what.as_end(), sink),
            Rank::Demand => self.demand(event.source, sink),
            Rank::Arrive | Rank::Deliver => unreachable!("packets on their way are in calendars"),
        }
        self.events += 1;
    }

    /// A packet was lost at a link.
    fn lose(&mut self, packet: Parcel, sink: &mut dyn Sink) {
        if packet.is_probe() {
            return self.network.around.probes.lost(packet.place(), sink);
        }
        if packet.is_media() {
            return self.network.around.media.lost(packet.place(), sink);
        }
        let segments = &mut self.network.around.segments;
        let place = segments.connection(packet.place());
        segments.remove(packet.place());
        self.connections.get(place).in_flight -= 1;
        self.connections.release(place);
    }

    /// A packet reached its host, where `place` is that of its connection if it has one.
    fn deliver(&mut self, place: u32, packet: Parcel, sink: &mut dyn Sink) {
        if packet.is_udp() {
            if packet.is_probe() {
                self.network.around.probes.received(packet.place(), self.now, sink);
            } else if packet.is_media() {
                self.deliver_media(packet, sink);
            }
            return;
        }
        let (connections, mut beside) = self.apart();
        let mut segment = beside.network.around.segments.remove(packet.place());
        segment.ecn = packet.ecn();
        let end = 1 - packet.side();
        let connection = connections.get(place);
        connection.in_flight -= 1;
        if connection.is_over {
            return connections.release(place);
        }
        beside.act(connection, (place, end), |endpoint, config, now, out| {
            endpoint.on_segment(&segment, config, now, out)
        });
        if connection.ends[end].is_quiet(|| connection.heeds(end)) {
            return beside.arm(connection, (place, end));
        }
        self.attend(place, end, sink);
        self.connections.release(place);
    }

    /// An endpoint asked to be woken, perhaps one that used this place before: a spurious call is harmless.
    fn wake(&mut self, place: u32, end: usize, sink: &mut dyn Sink) {
        let now = self.now;
        let (connections, mut beside) = self.apart();
        let connection = connections.get(place);
        connection.wakes[end].fire(now);
        if connection.is_over {
            return;
        }
        let who = connection.who(end);
        let is_due = match &connection.application {
            Application::Exchanges { exchanges, .. } => exchanges.is_due(who, now),
            Application::Transfer(_) => false,
            Application::Vector(playing) => playing.player.is_due(who, now),
        };
        if is_due || connection.ends[end].next_wake() <= now {
            beside.act(connection, (place, end), |endpoint, config, now, out| endpoint.on_wake(config, now, out));
            if !is_due && connection.ends[end].is_quiet(|| connection.heeds(end)) {
                // What departs mostly asks for the next departure.
                if let Some(due) = connection.asks(end) {
                    beside.network.around.queue.push_here(due, Rank::Wake, place, What::end(end));
                }
                return;
            }
            self.attend(place, end, sink);
            self.connections.release(place);
        } else {
            beside.arm(connection, (place, end));
        }
        self.connections.park(place, now);
    }

    /// The connections, and apart from them what is around one of them when an end has its turn.
    #[inline(always)]
    fn apart(&mut self) -> (&mut Connections, Surroundings<'_>) {
        let Self { connections, network, scenario, now, .. } = self;
        (connections, Surroundings { network, scenario, now: *now })
    }

    /// Calls `action` on one end of a connection, with its configuration and its way onto the network.
    #[inline]
    pub(crate) fn with_end<R>(
        &mut self,
        place: u32,
        end: usize,
        action: impl FnOnce(&mut tcp::Endpoint, &tcp::Config, Time, &mut Sender<'_>) -> R,
    ) -> R {
        let (connections, mut beside) = self.apart();
        beside.act(connections.get(place), (place, end), action)
    }

    /// Makes sure an endpoint is woken in time. A pending wake-up that comes earlier serves as well.
    #[inline]
    pub(crate) fn arm(&mut self, place: u32, end: usize) {
        let (connections, mut beside) = self.apart();
        beside.arm(connections.get(place), (place, end));
    }

    /// A connection is over: what still comes of it, nobody heeds.
    fn retire(&mut self, place: u32) {
        let connection = self.connections.get(place);
        connection.is_over = true;
        self.retired.add(connection);
    }

    /// The application's turn at one end, after something happened there.
    pub(crate) fn attend(&mut self, place: u32, end: usize, sink: &mut dyn Sink) {
        let now = self.now;
        let (connections, mut beside) = self.apart();
        let connection = connections.get(place);
        let (who, endpoint) = (connection.who(end), &connection.ends[end]);
        if !endpoint.is_established() {
            let is_aborted = endpoint.is_aborted();
            return self.settle(place, end, is_aborted);
        }
        let heard = Heard { received: endpoint.received(), is_closed: endpoint.peer_closed() };
        let turn = match &mut connection.application {
            Application::Exchanges { exchanges, .. } => exchanges.turn(who, heard, now),
            Application::Transfer(transfer) => transfer.turn(who, heard, now),
            Application::Vector(playing) => {
                let tmix = beside.scenario.traffic[connection.block as usize].workload.vectors();
                playing.player.turn(&tmix.expect("who plays vectors has them").vectors, who, heard, now)
            }
        };
        let endpoint = &mut connection.ends[end];
        let closes = turn.close && !endpoint.is_closing();
        if turn.write > 0 {
            endpoint.write(turn.write);
        }
        if closes {
            beside.act(connection, (place, end), |endpoint, config, now, out| endpoint.finish(config, now, out));
        }
        if let Some(due) = turn.wake_at {
            beside.network.around.queue.push(due, Rank::Wake, place, What::end(end));
        }
        if turn.write > 0 || closes {
            beside.act(connection, (place, end), |endpoint, config, now, out| endpoint.push(config, now, out));
        }
        if turn.is_cut_off {
            self.abort(place, end);
        } else if beside.settle(connection, (place, end)) {
            self.finish(place);
        }
        if let Some(completed) = turn.completed {
            self.complete(place, &completed, sink);
        }
    }

    /// An end that is not open has something to tell: the connection has failed, or wants to be woken.
    fn settle(&mut self, place: u32, end: usize, has_failed: bool) {
        let (connections, mut beside) = self.apart();
        if has_failed {
            self.abort(place, end);
        } else if beside.settle(connections.get(place), (place, end)) {
            self.finish(place);
        }
    }

    /// A connection has ended.
    fn finish(&mut self, place: u32) {
        self.retired.completed += 1;
        self.retire(place);
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
        let given_up = match &connection.application {
            Application::Exchanges { owner: Some(owner), exchanges } => Some((*owner, exchanges.under_way().is_some())),
            _ => None,
        };
        self.retired.failed += 1;
        self.retire(place);
        if let Some((owner, during_exchange)) = given_up {
            self.given_up(owner, during_exchange);
        }
    }

    /// What was asked for is complete.
    fn complete(&mut self, place: u32, completed: &Completed, sink: &mut dyn Sink) {
        let connection = self.connections.get(place);
        if self.is_measuring {
            let known = (connection.block, connection.number, connection.client);
            let row = completed.row(self.scenario, known, self.now);
            self.responses.record(row.response_time);
            sink.exchange(&row);
        }
        if let Application::Exchanges { owner: Some(owner), .. } = connection.application {
            self.completed(owner);
        }
    }
}

/// What is around a connection when one of its ends has a turn.
struct Surroundings<'a> {
    network: &'a mut Network,
    scenario: &'a Scenario,
    now: Time,
}

impl Surroundings<'_> {
    /// Calls `action` on an end of the `connection` at a place, as [`Simulation::with_end`] does.
    #[inline(always)]
    fn act<R>(
        &mut self,
        connection: &mut Connection,
        (place, end): (u32, usize),
        action: impl FnOnce(&mut tcp::Endpoint, &tcp::Config, Time, &mut Sender<'_>) -> R,
    ) -> R {
        let Connection { ends, path, in_flight, block, application, .. } = connection;
        let config = &self.scenario.traffic[*block as usize].tcp;
        let conditions = match application {
            Application::Vector(playing) => Some(&mut playing.conditions),
            _ => None,
        };
        let (side, now) = (end as u8, self.now);
        let mut sender = Sender { network: &mut *self.network, path, in_flight, conditions, place, side, now };
        action(&mut ends[end], config, now, &mut sender)
    }

    /// After something happened at an end: makes sure that it is woken in time. Whether the connection is over.
    #[inline]
    fn settle(&mut self, connection: &mut Connection, at: (u32, usize)) -> bool {
        self.arm(connection, at);
        connection.ends.iter().all(tcp::Endpoint::is_done)
    }

    /// Makes sure that an end is woken in time, as [`Simulation::arm`] does.
    #[inline(always)]
    fn arm(&mut self, connection: &mut Connection, (place, end): (u32, usize)) {
        if let Some(due) = connection.asks(end) {
            self.network.around.queue.push(due, Rank::Wake, place, What::end(end));
        }
    }
}
