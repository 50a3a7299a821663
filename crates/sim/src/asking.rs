//! This file carries out on connections what the applications of the hosts want done: the commands of
//! [`session::Sources`].

use crate::connection::Application;
use crate::datagrams::Kept;
use crate::packets::{Parcel, What};
use crate::simulation::Simulation;
use base::{Span, Time};
use net::Rank;
use record::Sink;
use session::{Command, Exchanges, Opening, Owner, Sources, Transfer};
use traffic::Exchange;

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
                let row = owner.map_or(opening.number, |owner| self.sources.row(owner));
                let application = Application::Exchanges { owner, exchanges: Exchanges::default() };
                let place = self.open(&opening, row, application);
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
                let transfer = Application::Transfer(Transfer::new(bytes, self.now));
                let place = self.open(&opening, opening.number, transfer);
                self.attend(place, opening.client.into(), sink);
            }
            Command::Vector { opening, vector, copy } => self.begin_vector(&opening, vector, copy),
            Command::Datagram { source, bytes } => self.send_datagram(source, bytes, sink),
            Command::Media { source } => self.begin_media(source, sink),
            Command::Wake { source, at } => {
                self.network.around.queue.push(at, Rank::Demand, source, What::SOURCE);
            }
        }
    }

    /// Opens a connection, which results know by `row`.
    pub(crate) fn open(&mut self, opening: &Opening, row: u32, application: Application) -> u32 {
        let config = &self.scenario.traffic[opening.block as usize].tcp;
        let steps = self.network.around.steps[opening.block as usize];
        let place = self.connections.open(opening, row, application, steps, self.scenario);
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
        let received = [client, 1 - client].map(|side| connection.ends[side].received());
        if let Application::Exchanges { exchanges, .. } = &mut connection.application {
            exchanges.ask(&ask, is_last, since, received, now);
        }
        self.attend(place, client, &mut record::Discard);
    }

    /// Closes the connection of `owner` at its client.
    fn close(&mut self, owner: Owner) {
        let place = self.sources.connection(owner);
        let connection = self.connections.get(place);
        self.recorder.closed((connection.block, connection.path.flow.0), self.now);
        let end = connection.client as usize;
        if let Application::Exchanges { owner: whose, .. } = &mut connection.application {
            *whose = Some(owner.done());
        }
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
        let (ect, dscp) = (self.scenario.traffic[block].ect, self.scenario.traffic[block].dscp);
        let around = &mut self.network.around;
        let step = around.steps[block][client as usize];
        let place = probe.map(|probe| around.probes.send(probe, now));
        let takes = around.access.time_for(bytes);
        let impairments = &mut around.impairments;
        let fate = || impairments.as_mut().map_or(Some(Span::ZERO), |paths| paths.fate(client as usize));
        if let Some(arrives) = path.send(client as usize, takes, now, fate) {
            let packet = match place {
                Some(place) => Parcel::probe(*flow, step, place, bytes as u16, ect, dscp, client),
                None => Parcel::udp(*flow, step, index, bytes as u16, ect, dscp, client),
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
