//! A transfer is data one way, from the end that opens the connection.
//!
//! The receiving end knows when the last byte came, the sending end since when it was wanted: it leaves that for the
//! other before it connects ([`crate::news::Transfers`]).

use super::connections::{Connection, Outgoing, Role, Token};
use super::{Hosts, Service};
use crate::news::Transfer;
use record::ExchangeRow;
use scenario::Carries;
use session::Opening;
use std::io;

/// What serves a block's connections; `None` if it has none.
pub fn service(carries: Carries) -> Option<Service> {
    match carries {
        Carries::Exchanges => Some(Service::Web),
        Carries::Transfers => Some(Service::Transfer),
        Carries::Vectors => Some(Service::Vector),
        Carries::Datagrams | Carries::Probes => None,
    }
}

impl Hosts<'_> {
    /// Opens a connection for a transfer of `bytes`, or of as many as it will carry.
    pub(super) fn open_transfer(&mut self, opening: &Opening, bytes: Option<u64>) -> io::Result<()> {
        let (&Opening { block, number: source, .. }, asked_at) = (opening, self.now);
        let everlasting = bytes.is_none().then_some(source);
        let transfer = Transfer { block, source, asked_at, opened_at: None, bytes, everlasting };
        let total = bytes.unwrap_or(u64::MAX);
        self.dial(
            Service::Transfer,
            |socket, local| Connection::new(socket, block, source, Role::Sender { local, total }),
            opening,
            |wiring, _, local| {
                wiring.transfers.put(local, transfer);
                Ok(())
            },
        )?;
        Ok(())
    }

    /// The connection of a transfer is open.
    pub(super) fn begin_transfer(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Sender { local, total } = connection.role else { return Ok(()) };
        self.wiring.transfers.opened(local, self.now);
        connection.outgoing = Outgoing { total, ..Outgoing::default() };
        self.samples.begin(connection, token);
        self.push(token)
    }

    /// The receiver has closed.
    pub(super) fn attend_sender(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        if connection.is_closed_there && connection.is_closed_here {
            self.end(token);
        } else if connection.is_closed_there {
            // With bytes still to come: nobody takes them.
            return self.give_up(token);
        }
        Ok(())
    }

    /// `bytes` of a transfer came.
    pub(super) fn attend_receiver(&mut self, token: Token, bytes: u64) -> io::Result<()> {
        let now = self.now;
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let is_closed_there = connection.is_closed_there;
        let Role::Receiver { opener, transfer } = &mut connection.role else { return Ok(()) };
        if let Some(Transfer { block, everlasting: Some(number), .. }) = *transfer {
            self.wiring.tallies.bulk_received(block, number, bytes);
        }
        let received = connection.received;
        let is_complete = |transfer: &mut Transfer| transfer.bytes.is_some_and(|bytes| received >= bytes);
        if transfer.take_if(is_complete).is_some()
            && let Some(transfer) = self.wiring.transfers.take(*opener)
        {
            let Transfer { block, source, asked_at, opened_at, bytes, .. } = transfer;
            self.measured(ExchangeRow {
                start: asked_at,
                response_time: now.since(asked_at),
                setup: opened_at.unwrap_or(now).since(asked_at),
                request_bytes: 0,
                response_bytes: bytes.unwrap_or(received),
                traffic: block,
                source,
                direction: 1 - self.side,
            });
        }
        if is_closed_there {
            self.end(token);
        }
        Ok(())
    }
}
