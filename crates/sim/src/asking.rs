//! This file carries out on connections what the applications of the hosts want done: the commands of
//! [`session::Sources`].

use crate::connection::{Asked, Purpose};
use crate::datagrams::Kept;
use crate::packets::{Parcel, What};
use crate::simulation::Simulation;
use base::{Span, Time};
use net::Rank;
use record::Sink;
use session::{Command, Opening, Owner, Sources};
use traffic::Exchange;

/// The size of a transfer without end: more than any run transfers, with room for additions.
pub const ENDLESS: u64 = 1 << 60;

impl Simulation<'_> {
    /// Calls a source of demand that is due. This is rare beside packets, and so is kept out of the loop.
    #[inline(never)]
    pub(crate) fn demand(&mut self, index: u32, sink: &mut dyn Sink) {
        let now = self.now;
        self.heed(sink, |sources, out| sources.due(index, now, now, out));
    }

    /// Tells the sources that the exchange on a connection of `owner` is complete.
    pub(crate) fn completed(&mut self, owner: Owner) {
        let now = self.now;
        self.heed(&mut record::Discard, |sources, out| sources.completed(owner, now, out));
    }

    /// Tells the sources that a connection of `owner` was given up.
    pub(crate) fn given_up(&mut self, owner: Owner, during_exchange: bool) {
        let now = self.now;
        self.heed(&mut record::Discard, |sources, out| sources.given_up(owner, during_exchange, now, out));
    }

    /// Tells the sources something, and carries out the commands that follow.
    fn heed(&mut self, sink: &mut dyn Sink, tell: impl FnOnce(&mut Sources<'_, u32>, &mut Vec<Command>)) {
        let mut commands = std::mem::take(&mut self.commands);
        tell(&mut self.sources, &mut commands);
        for command in commands.drain(..) {
            self.carry_out(command, sink);
        }
        self.commands = commands;
    }

    fn carry_out(&mut self, command: Command, sink: &mut dyn Sink) {
        match command {
            Command::Open { opening, owner, ask, is_last, since } => {
                let purpose = owner.map_or(Purpose::Single { number: opening.number }, Purpose::Web);
                let place = self.open(&opening, purpose);
                self.note_ask(place, &ask, is_last, Some(opening.rtt));
                self.ask(place, ask, is_last, since);
                if let Some(owner) = owner {
                    self.sources.keep(owner, place, is_last);
                }
            }
            Command::Ask { owner, ask, is_last, since } => {
                let place = self.sources.connection(owner);
                self.note_ask(place, &ask, is_last, None);
                self.ask(place, ask, is_last, since);
            }
            Command::Close { owner } => self.close(owner),
            Command::Transfer { opening, bytes } => {
                let place = self.open(&opening, Purpose::Bulk { number: opening.number });
                let response_bytes = bytes.unwrap_or(ENDLESS);
                let ask = Exchange { request_bytes: 0, response_bytes, top_level: true, server_delay: Span::ZERO };
                self.ask(place, ask, true, self.now);
            }
            Command::Vector { opening, vector, copy } => self.begin_vector(&opening, vector, copy),
            Command::Datagram { source, bytes } => self.send_datagram(source, bytes, sink),
            Command::Wake { source, at } => {
                self.network.around.queue.push(at, Rank::Demand, source, What::SOURCE);
            }
        }
    }

    /// Opens a connection.
    pub(crate) fn open(&mut self, opening: &Opening, purpose: Purpose) -> u32 {
        let config = &self.scenario.traffic[opening.block as usize].tcp;
        let steps = self.network.around.steps[opening.block as usize];
        let place = self.connections.open(opening, purpose, steps, self.scenario);
        self.watch(place);
        let client = opening.client as usize;
        let tick = self.scenario.traffic[opening.block as usize].route.tick;
        if let (Some(hosts), Some(tick)) = (&mut self.network.around.shared, tick) {
            hosts.put_clock(self.connections.path(place).hosts[client], tick);
        }
        self.connections.get(place).ends[1 - client].listen(config);
        self.with_end(place, client, |endpoint, config, now, out| endpoint.open(config, now, out));
        place
    }

    /// Asks for an exchange, wanted since `since`, on a connection: at once if that is open, or else as soon as it is.
    fn ask(&mut self, place: u32, ask: Exchange, is_last: bool, since: Time) {
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

    /// Closes the connection of `owner` at its client.
    fn close(&mut self, owner: Owner) {
        let place = self.sources.connection(owner);
        let connection = self.connections.get(place);
        self.recorder.closed((connection.block, connection.path.flow.0), self.now);
        let end = connection.client as usize;
        connection.purpose = Purpose::Web(owner.done());
        connection.ends[end].close();
        self.with_end(place, end, |endpoint, config, now, out| endpoint.push(config, now, out));
        self.arm(place, end);
    }

    /// Records a demand on the connection at `place`. If it is `opened` for this demand, that is its round-trip delay.
    fn note_ask(&mut self, place: u32, ask: &Exchange, is_last: bool, opened: Option<Span>) {
        let connection = self.connections.get(place);
        let (known, client) = ((connection.block, connection.path.flow.0), connection.client);
        self.recorder.asked(known, ask, is_last, opened.map(|rtt| (client, rtt)), self.now);
    }

    /// Sends a packet of an unresponsive source.
    fn send_datagram(&mut self, index: u32, bytes: u32, sink: &mut dyn Sink) {
        let Kept::Udp { flow, path, probe } = &mut self.kept[index as usize] else { return };
        let source = &self.sources.all()[index as usize];
        let (block, client, now) = (source.block as usize, source.client, self.now);
        let dscp = self.scenario.traffic[block].dscp;
        let around = &mut self.network.around;
        let step = around.steps[block][client as usize];
        let place = probe.map(|probe| around.probes.send(probe, now));
        let takes = around.access.time_for(bytes);
        let impairments = &mut around.impairments;
        let fate = || impairments.as_mut().map_or(Some(Span::ZERO), |paths| paths.fate(client as usize));
        if let Some(arrives) = path.send(client as usize, takes, now, fate) {
            let packet = match place {
                Some(place) => Parcel::probe(*flow, step, place, bytes as u16, dscp, client),
                None => Parcel::udp(*flow, step, index, bytes as u16, dscp, client),
            };
            self.network.depart(arrives, index, packet);
        } else {
            self.network.lost_before_link(step, true);
            if let Some(place) = place {
                self.network.around.probes.lost(place, sink);
            }
        }
    }
}
