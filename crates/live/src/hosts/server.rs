//! A server answers at once, or after the time that the request says.

use super::connections::{Connection, Head, Outgoing, Role, Token};
use super::http::{Came, Parser, REFUSAL_BYTES, Request};
use super::timers::Due;
use super::vectors::Vector;
use super::{Hosts, Service, sockets};
use base::{Span, Time};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use scenario::Carries;
use std::io;
use std::net::SocketAddr;

/// The block of who is no host of the scenario's.
const FOREIGN: u16 = u16::MAX;

impl Hosts<'_> {
    /// Somebody opens a connection at a listener.
    pub(super) fn accept(&mut self, index: usize) -> io::Result<()> {
        let (listener, service) = &self.listeners[index];
        let Some((socket, Some(from))) = sockets::accept(listener)? else { return Ok(()) };
        let (block, number) = self.asker(from);
        let role = match service {
            Service::Web => Role::Server {
                parser: Parser::default(),
                rest: Vec::new(),
                is_answering: false,
                is_last: false,
                response_bytes: 0,
                has_unread: false,
            },
            Service::Transfer => Role::Receiver { opener: from, transfer: self.wiring.transfers.get(from) },
            Service::Vector => match Vector::accepted(&self.wiring.players, from) {
                Some(vector) => Role::Vector(vector),
                // Nobody knows what to say to it.
                None => return Ok(()),
            },
        };
        let mut connection = Connection::new(socket, block, number, role);
        if let Role::Receiver { transfer: Some(transfer), .. } = &connection.role {
            connection.number = transfer.source;
        }
        connection.is_open = true;
        let token = self.connections.insert(connection);
        let connection = self.connections.get(token).expect("it was just put there");
        self.poll.connection(&connection.socket, token.word())?;
        match &connection.role {
            Role::Server { .. } => self.samples.begin(connection, token),
            Role::Vector(_) => return self.begin_accepted_vector(token),
            _ => {}
        }
        Ok(())
    }

    /// The block and the number of who has this address: of arrivals modulo as many as have addresses, and of users who
    /// share hosts that of the host.
    fn asker(&self, from: SocketAddr) -> (u16, u32) {
        let place = self.wiring.addressing.place(from.ip().to_canonical());
        let Some((_, block, host)) = place else { return (FOREIGN, 0) };
        let Some(traffic) = self.scenario.traffic.get(usize::from(block)) else { return (FOREIGN, 0) };
        let is_both = traffic.direction == scenario::Direction::Both;
        let is_user = traffic.workload.carries() == Carries::Exchanges && !traffic.workload.numbers_arrivals();
        let number = match host {
            // The users of one side are the odd ones, or the even ones: see [`session::hosts_within`].
            _ if is_both && is_user => host / 2 * 2 + u32::from(self.side),
            _ if is_both => host / 2,
            host => host,
        };
        (block, number)
    }

    /// Reads a request, or the end of them.
    pub(super) fn read_request(&mut self, token: Token, is_closed_there: bool) -> io::Result<()> {
        loop {
            let Some(connection) = self.connections.get(token) else { return Ok(()) };
            connection.is_closed_there |= is_closed_there;
            let is_closed_there = connection.is_closed_there;
            let Role::Server { parser, rest, is_answering, has_unread, .. } = &mut connection.role else {
                return Ok(());
            };
            if *is_answering {
                *has_unread = true;
                return Ok(());
            }
            if connection.is_closed_here {
                // It has answered its last, and throws away whatever else is asked.
                return match sockets::discard(&connection.socket) {
                    Ok(_) => {
                        if is_closed_there {
                            self.end(token);
                        }
                        Ok(())
                    }
                    Err(_) => self.give_up(token),
                };
            }
            let (read, came, is_all);
            if rest.is_empty() {
                let bytes = match net::recv(&connection.socket, &mut self.inbox[..], RecvFlags::DONTWAIT) {
                    Ok((_, bytes)) => bytes,
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    Err(_) => return self.give_up(token),
                };
                self.wiring.tallies.received(1 - self.side, bytes as u64);
                connection.received += bytes as u64;
                is_all = bytes < self.inbox.len();
                *has_unread = !is_all;
                (read, came) = parser.read(&self.inbox[..bytes]);
                rest.extend_from_slice(&self.inbox[read..bytes]);
            } else {
                is_all = false;
                (read, came) = parser.read(rest);
                rest.drain(..read);
            }
            match came {
                Came::Part if is_all => {
                    if is_closed_there {
                        self.end(token);
                    }
                    return Ok(());
                }
                Came::Part => {}
                Came::All(request) => return self.asked(token, request),
                Came::Nonsense => return self.refuse(token),
            }
        }
    }

    /// A request is complete.
    fn asked(&mut self, token: Token, request: Request) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Server { is_answering, is_last, response_bytes, .. } = &mut connection.role else { return Ok(()) };
        (*is_answering, *is_last, *response_bytes) = (true, !request.stays, request.response_bytes);
        if request.delay > Span::ZERO {
            let at: Time = self.now + request.delay;
            self.timers.push(at, Due::Answer(token));
            return Ok(());
        }
        self.answer(token)
    }

    /// It is time to answer.
    pub(super) fn answer(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Server { is_last, response_bytes, .. } = &connection.role else { return Ok(()) };
        let head = Head::Response { stays: !is_last };
        connection.outgoing = Outgoing { head, total: *response_bytes, sent: 0 };
        self.push(token)
    }

    /// What came is no request.
    fn refuse(&mut self, token: Token) -> io::Result<()> {
        self.refused_requests += 1;
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Server { is_answering, is_last, rest, .. } = &mut connection.role else { return Ok(()) };
        (*is_answering, *is_last) = (true, true);
        rest.clear();
        connection.outgoing = Outgoing { head: Head::Refusal, total: REFUSAL_BYTES, sent: 0 };
        self.push(token)
    }

    /// The kernel has all of an answer.
    pub(super) fn answered(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let is_closed_there = connection.is_closed_there;
        let Role::Server { rest, is_answering, is_last, has_unread, .. } = &mut connection.role else { return Ok(()) };
        *is_answering = false;
        if *is_last {
            return self.shut(token);
        }
        // In a turn of its own: a client may have asked for thousands at once.
        if *has_unread || !rest.is_empty() || is_closed_there {
            self.timers.push(self.now, Due::Request(token));
        }
        Ok(())
    }
}
