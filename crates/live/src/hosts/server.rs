//! A server answers at once, or after the time that the request says.

use super::connections::{Connection, Head, Outgoing, Role, Token};
use super::http::{Came, REFUSAL_BYTES, Request};
use super::joint::Joint;
use super::timers::Due;
use super::{Hosts, Service, sockets};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags};
use scenario::Carries;
use session::Exchanges;
use std::io;
use std::net::SocketAddr;
use traffic::Exchange;

/// The block of who is no host of the scenario's.
const FOREIGN: u16 = u16::MAX;

impl Hosts<'_> {
    /// Somebody opens a connection at a listener.
    pub(super) fn accept(&mut self, index: usize) -> io::Result<()> {
        let &(ref listener, service) = &self.listeners[index];
        let Some((socket, Some(from))) = sockets::accept(listener)? else { return Ok(()) };
        let (block, number) = self.asker(from);
        let mut connection = Connection::new(socket, block, number, Role::server());
        if service != Service::Web {
            let joint = match self.wiring.handover.accept(from) {
                Some(joint) => joint,
                None if service == Service::Transfer => Joint::from_stranger(FOREIGN, self.now),
                // Nobody knows what to say to it.
                None => return Ok(()),
            };
            joint.clamp_window(&connection.socket)?;
            (connection.block, connection.number) = (joint.block, joint.number);
            connection.role = Role::Joint(joint);
        }
        let token = self.connections.insert(connection);
        let connection = self.connections.get(token).expect("it was just put there");
        self.poll.connection(&connection.socket, token.word())?;
        self.begin(token)
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
            let Role::Server { parser, rest, exchanges, has_unread } = &mut connection.role else { return Ok(()) };
            if exchanges.under_way().is_some() || connection.outgoing.is_pending() {
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

    /// A request is complete: all of it has come.
    fn asked(&mut self, token: Token, request: Request) -> io::Result<()> {
        let now = self.now;
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Server { exchanges, .. } = &mut connection.role else { return Ok(()) };
        let Request { response_bytes, delay: server_delay, stays } = request;
        let ask = Exchange { request_bytes: 0, response_bytes, top_level: true, server_delay };
        exchanges.ask(&ask, !stays, now, [0, connection.received], now);
        self.attend(token)
    }

    /// What came is no request.
    fn refuse(&mut self, token: Token) -> io::Result<()> {
        self.refused_requests += 1;
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Server { rest, .. } = &mut connection.role else { return Ok(()) };
        rest.clear();
        connection.closes = true;
        connection.outgoing = Outgoing { head: Head::Refusal, total: REFUSAL_BYTES, sent: 0 };
        self.push(token)
    }

    /// The kernel has all that was to be sent: of an answer, and it is the next request's turn.
    pub(super) fn read_on(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let is_closed_there = connection.is_closed_there;
        let Role::Server { rest, exchanges, has_unread, .. } = &mut connection.role else { return Ok(()) };
        if exchanges.is_answered() {
            *exchanges = Exchanges::default();
            // In a turn of its own: a client may have asked for thousands at once.
            if *has_unread || !rest.is_empty() || is_closed_there {
                self.timers.push(self.now, Due::Request(token));
            }
        }
        Ok(())
    }
}
