//! Who asks: web users, sessions and single exchanges.

use super::connections::{Asked, Connection, Head, Outgoing, Role, Token};
use super::timers::Due;
use super::{Hosts, Service, http};
use crate::news::add;
use base::{Span, Time};
use record::{DemandRow, Demanded, ExchangeRow};
use scenario::Workload;
use scenario::sources::{Demand, Turn};
use std::io;
use traffic::{Command, Exchange};

impl Hosts<'_> {
    /// Lets a source of web traffic speak, and does what it says.
    pub(super) fn user(&mut self, index: u32, turn: Turn) -> io::Result<()> {
        if matches!(self.sources[index as usize].demand, Demand::Replay(_)) {
            return self.replay(index, turn);
        }
        let mut commands = std::mem::take(&mut self.commands);
        let now = self.now;
        // What is asked for at instants of its own keeps to them, however late this host is.
        let spoken_at = if matches!(turn, Turn::Due) { self.due_at } else { now };
        let source = &mut self.sources[index as usize];
        let (block, row) = (source.block, source.number);
        let traffic = &self.scenario.traffic[usize::from(block)];
        let number = source.turn(traffic, turn, spoken_at, &mut commands);
        for command in commands.drain(..) {
            match command {
                Command::Open { lane, rtt_unit, ask, last } => {
                    let user = Some((index, lane));
                    let token =
                        self.open_client((block, number, traffic.rtt.at(rtt_unit)), row, user, ask, last, now)?;
                    // Nobody asks again on a connection that the server closes.
                    if !last {
                        *self.lane(index, lane) = token;
                    }
                }
                Command::Ask { lane, ask } => {
                    let token = *self.lane(index, lane);
                    self.ask(token, ask, false, now)?;
                }
                Command::Close { lane } => {
                    let token = *self.lane(index, lane);
                    self.close(token);
                }
                Command::Think { span } => self.timers.push(spoken_at + span, Due::Source(index)),
            }
        }
        self.commands = commands;
        Ok(())
    }

    /// The connection on a lane of a source of web traffic.
    pub(super) fn lane(&mut self, index: u32, lane: u32) -> &mut Token {
        if let Demand::User { lanes, .. } = &self.sources[index as usize].demand {
            return &mut self.lanes[(*lanes + lane) as usize];
        }
        let (own, lane) = (&mut self.own_lanes[index as usize], lane as usize);
        if own.len() <= lane {
            own.resize(lane + 1, Token::NONE);
        }
        &mut own[lane]
    }

    /// A random arrival begins.
    pub(super) fn begin_arrival(&mut self, index: u32) -> io::Result<()> {
        let source = &mut self.sources[index as usize];
        let block = source.block;
        let traffic = &self.scenario.traffic[usize::from(block)];
        let (Demand::Poisson { flows, next, count }, Workload::Poisson(poisson)) =
            (&mut source.demand, &traffic.workload)
        else {
            return Ok(());
        };
        let due = *next;
        *next = flows.next_flow();
        let number = *count;
        *count += 1;
        self.timers.push(self.due_at + next.gap, Due::Source(index));
        let path = (block, number, traffic.rtt.at(due.rtt_unit));
        if poisson.request_bytes == 0 {
            return self.open_transfer(path, Some(due.bytes), None);
        }
        let (request_bytes, server_delay) = (poisson.request_bytes, Span::ZERO);
        let ask = Exchange { request_bytes, response_bytes: due.bytes, top_level: true, server_delay };
        self.open_client(path, number, None, ask, true, self.now).map(drop)
    }

    /// Opens a connection between the hosts of `path`, and asks on it what has been wanted since `since`.
    pub(super) fn open_client(
        &mut self,
        path: (u16, u32, Span),
        row: u32,
        user: Option<(u32, u32)>,
        ask: Exchange,
        is_last: bool,
        since: Time,
    ) -> io::Result<Token> {
        let (block, _, rtt) = path;
        let role = Role::Client { user, asked: None };
        let token =
            self.dial(Service::Web, |socket, _| Connection::new(socket, block, row, role), path, |_, _, _| Ok(()))?;
        self.note_ask(token, &ask, is_last, Some(rtt));
        self.begin_asking(token, ask, is_last, since)?;
        Ok(token)
    }

    /// Asks on a connection what has been wanted since `since`: at once if it is open, otherwise as soon as it is.
    pub(super) fn ask(&mut self, token: Token, ask: Exchange, is_last: bool, since: Time) -> io::Result<()> {
        self.note_ask(token, &ask, is_last, None);
        self.begin_asking(token, ask, is_last, since)
    }

    fn begin_asking(&mut self, token: Token, ask: Exchange, is_last: bool, since: Time) -> io::Result<()> {
        let now = self.now;
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Client { asked, .. } = &mut connection.role else { return Ok(()) };
        // HTTP has no way to ask for nothing.
        let response_bytes = ask.response_bytes.max(1);
        *asked = Some(Asked {
            at: since,
            open_at: now,
            request_bytes: ask.request_bytes,
            response_bytes,
            server_delay: ask.server_delay,
            is_last,
            response_end: connection.received + response_bytes,
        });
        if connection.is_open { self.begin_exchange(token) } else { Ok(()) }
    }

    /// Sends the request of an open connection.
    pub(super) fn begin_exchange(&mut self, token: Token) -> io::Result<()> {
        let now = self.now;
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Client { asked: Some(asked), .. } = &mut connection.role else { return Ok(()) };
        asked.open_at = now;
        let &mut Asked { request_bytes, response_bytes, server_delay: delay, is_last, .. } = asked;
        let least = http::shortest_request(response_bytes, delay);
        let total = u64::from(request_bytes).max(least);
        if total > request_bytes.into() {
            add(&self.wiring.tallies.raised_requests, 1);
        }
        connection.outgoing = Outgoing { head: Head::Request { response_bytes, delay, is_last }, total, sent: 0 };
        self.push(token)
    }

    /// After something came: the exchange may be complete, or the connection over.
    pub(super) fn attend_client(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let (block, number, is_closed_there) = (connection.block, connection.number, connection.is_closed_there);
        let Role::Client { asked, user } = &mut connection.role else { return Ok(()) };
        let completed = asked.take_if(|asked| connection.received >= asked.response_end);
        let (is_waiting, user) = (asked.is_some(), *user);
        if is_closed_there {
            if is_waiting {
                return self.give_up(token);
            }
            self.end(token);
        }
        let Some(asked) = completed else { return Ok(()) };
        self.measured(ExchangeRow {
            start: asked.at,
            response_time: self.now.since(asked.at),
            setup: asked.open_at.since(asked.at),
            request_bytes: asked.request_bytes,
            response_bytes: asked.response_bytes,
            traffic: block,
            source: number,
            direction: 1 - self.side,
        });
        match user {
            Some((source, lane)) => self.user(source, Turn::Completed(lane)),
            None => Ok(()),
        }
    }

    /// The client of a connection of a source of web traffic closes it.
    pub(super) fn close(&mut self, token: Token) {
        self.note(token, Demanded::Close);
        self.end(token);
    }

    fn note_ask(&mut self, token: Token, ask: &Exchange, is_last: bool, opened: Option<Span>) {
        let &Exchange { request_bytes, response_bytes, server_delay, .. } = ask;
        let opened = opened.map(|rtt| (1 - self.side, rtt));
        self.note(token, Demanded::Exchange { opened, request_bytes, response_bytes, server_delay, is_last });
    }

    fn note(&mut self, token: Token, demanded: Demanded) {
        let Some(rows) = &mut self.demands else { return };
        let Some(connection) = self.connections.get(token) else { return };
        let (traffic, connection) = (connection.block, connection.recorded);
        // Recordings meet every discipline alike as they are.
        if !matches!(self.scenario.traffic[usize::from(traffic)].workload, Workload::Replay(_)) {
            rows.push(DemandRow { traffic, connection, at: self.now, demanded });
        }
    }
}
