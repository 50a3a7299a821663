//! This file makes exchanges at the end that asks.

use super::connections::{Asked, Connection, Head, Outgoing, Role, Token};
use super::{Hosts, Service, http};
use crate::news::add;
use base::{Span, Time};
use record::ExchangeRow;
use session::{Opening, Owner};
use std::io;
use traffic::Exchange;

impl Hosts<'_> {
    /// Opens a connection for `owner`, and asks on it what has been wanted since `since`. Its exchanges are those of
    /// number `row` of the block.
    pub(super) fn open_client(
        &mut self,
        opening: &Opening,
        row: u32,
        owner: Option<Owner>,
        ask: Exchange,
        is_last: bool,
        since: Time,
    ) -> io::Result<Token> {
        let role = Role::Client { owner, asked: None };
        let connection = |socket, _| Connection::new(socket, opening.block, row, role);
        let token = self.dial(Service::Web, connection, opening, |_, _, _| Ok(()))?;
        self.note_ask(token, &ask, is_last, Some(opening.rtt));
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
        let Role::Client { asked, owner } = &mut connection.role else { return Ok(()) };
        let completed = asked.take_if(|asked| connection.received >= asked.response_end);
        let (is_waiting, owner) = (asked.is_some(), *owner);
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
        owner.map_or(Ok(()), |owner| self.completed(owner))
    }

    /// The client of a connection of a source of web traffic closes it.
    pub(super) fn close(&mut self, token: Token) {
        if let Some(connection) = self.connections.get(token) {
            self.recorder.closed((connection.block, connection.recorded), self.now);
        }
        self.end(token);
    }

    fn note_ask(&mut self, token: Token, ask: &Exchange, is_last: bool, opened: Option<Span>) {
        let Some(connection) = self.connections.get(token) else { return };
        let opened = opened.map(|rtt| (self.side, rtt));
        self.recorder.asked((connection.block, connection.recorded), ask, is_last, opened, self.now);
    }
}
