//! This file makes exchanges at the end that asks.

use super::connections::{Connection, Head, Outgoing, Role, Token};
use super::{Hosts, Service, http};
use base::{Span, Time};
use session::{Asked, Exchanges, Opening, Owner};
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
        let connection = |socket| {
            Connection::new(socket, opening.block, row, Role::Client { owner, exchanges: Exchanges::default() })
        };
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

    fn begin_asking(&mut self, token: Token, mut ask: Exchange, is_last: bool, since: Time) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Client { exchanges, .. } = &mut connection.role else { return Ok(()) };
        // HTTP has no way to ask for nothing.
        ask.response_bytes = ask.response_bytes.max(1);
        // What the server has received is the server's business.
        exchanges.ask(&ask, is_last, since, [connection.received, 0], self.now);
        self.attend(token)
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

/// A request of so many bytes, or of as many as HTTP needs.
pub fn request(asked: &Asked, bytes: u64) -> Outgoing {
    let &Asked { response_bytes, server_delay: delay, is_last, .. } = asked;
    let total = bytes.max(http::shortest_request(response_bytes, delay));
    Outgoing { head: Head::Request { response_bytes, delay, is_last }, total, sent: 0 }
}
