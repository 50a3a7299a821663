//! This file gives applications their turns: it tells a connection's state machine what came, and does on the socket
//! what that then wants.

use super::client::request;
use super::connections::{Connection, Head, Outgoing, Role, Token};
use super::timers::Due;
use super::{Hosts, ZEROS, http, sockets};
use crate::news::{News, add};
use rustix::net;
use scenario::{Scenario, Traffic};
use session::{ACCEPTOR, Completed, Heard, INITIATOR};
use std::io;

/// What a kernel offers by itself, if the application reads in time: its part of tcp_rmem\[2\], the default of the
/// stack `linux`.
const USUAL_WINDOW: u64 = 3_840 << 10;

/// The window at which a connection is held: of its vector, or of its block where that is less than a kernel's own.
fn window_of(connection: &Connection, scenario: &Scenario) -> Option<u32> {
    let of_vector = match &connection.role {
        Role::Joint(joint) => joint.window(),
        Role::Client { .. } | Role::Server { .. } => None,
    };
    of_vector.or_else(|| scenario.traffic.get(usize::from(connection.block)).and_then(window_of_block))
}

/// The window of a block, where it is less than a kernel's own.
fn window_of_block(traffic: &Traffic) -> Option<u32> {
    Some(traffic.tcp.window).filter(|&window| window < USUAL_WINDOW).map(|window| window as u32)
}

/// What cannot be held of the windows of `scenario` as it is to be, in words.
pub fn remarks(scenario: &Scenario) -> Vec<String> {
    remarks_within(scenario, sockets::largest_buffer())
}

fn remarks_within(scenario: &Scenario, largest_buffer: Option<u32>) -> Vec<String> {
    let held = |traffic: &Traffic| match traffic.workload.vectors() {
        Some(tmix) if tmix.window => Some(tmix.vectors.largest_window()),
        _ if traffic.workload.carries().speaks_tcp() => window_of_block(traffic),
        _ => None,
    };
    let Some(most) = largest_buffer else { return Vec::new() };
    let is_beyond = |window| sockets::buffer_for(window) > most;
    if !scenario.traffic.iter().filter_map(held).any(is_beyond) {
        return Vec::new();
    }
    let largest = most / 4;
    vec![format!(
        "windows of more than {largest} bytes grow as a kernel's do, up to their size: others than root of the machine \
         may give no buffer more than net.core.rmem_max = {most}"
    )]
}

impl Hosts<'_> {
    /// Begins at an end that is open.
    pub(super) fn begin(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        connection.is_open = true;
        if connection.role.sends() {
            self.samples.begin(connection, token);
        }
        self.attend(token)
    }

    /// Reads bytes that came, or the end of them.
    pub(super) fn came(&mut self, token: Token, is_closed_there: bool) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        if let Role::Server { .. } = connection.role {
            return self.read_request(token, is_closed_there);
        }
        let Ok(bytes) = sockets::discard(&connection.socket) else { return self.give_up(token) };
        connection.received += bytes;
        connection.is_closed_there |= is_closed_there;
        if bytes > 0 {
            if let Some(window) = window_of(connection, self.scenario)
                && sockets::hold_window(&connection.socket, window).is_err()
            {
                return self.give_up(token);
            }
            // What the right side received came forward.
            self.wiring.tallies.received(1 - self.side, bytes);
            self.wiring.tallies.bulk_received(connection.block, connection.number, bytes);
        }
        self.attend(token)
    }

    /// Gives the application at one end its turn, after something happened there.
    pub(super) fn attend(&mut self, token: Token) -> io::Result<()> {
        let now = self.now;
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        if !connection.is_open {
            return Ok(());
        }
        let heard = Heard { received: connection.received, is_closed: connection.is_closed_there };
        let turn = match &mut connection.role {
            Role::Client { exchanges, .. } => exchanges.turn(INITIATOR, heard, now),
            // What came before the other end closed may be requests still to be read: that is seen where they are.
            Role::Server { exchanges, .. } => exchanges.turn(ACCEPTOR, Heard { is_closed: false, ..heard }, now),
            Role::Joint(joint) => joint.turn(self.scenario, heard, now),
        };
        connection.closes |= turn.close;
        let (mut owner, closes) = (None, connection.closes);
        match &connection.role {
            Role::Client { owner: whose, exchanges } => {
                owner = *whose;
                if let Some(asked) = exchanges.under_way().filter(|_| turn.write > 0) {
                    connection.outgoing = request(asked, turn.write);
                    let is_raised = connection.outgoing.total > turn.write;
                    add(&self.wiring.tallies.raised_requests, is_raised.into());
                }
            }
            Role::Server { .. } if turn.write > 0 => {
                connection.outgoing = Outgoing { head: Head::Response { stays: !closes }, total: turn.write, sent: 0 };
            }
            Role::Server { .. } => {}
            Role::Joint(_) => connection.outgoing.total += turn.write,
        }
        if let Some(due) = turn.wake_at {
            self.timers.push(due, Due::Turn(token));
        }
        let client = if connection.is_opener() { self.side } else { 1 - self.side };
        let known = (connection.block, connection.number, client);
        if turn.is_cut_off {
            self.give_up(token)?
        } else {
            self.push(token)?
        }
        let Some(completed) = turn.completed else { return Ok(()) };
        self.measured(&completed, known);
        owner.map_or(Ok(()), |owner| self.completed(owner))
    }

    /// Sends what is to be sent, as much as the kernel takes; it says when it takes more.
    pub(super) fn push(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let closes = connection.closes;
        let outgoing = &mut connection.outgoing;
        while outgoing.is_pending() {
            let Outgoing { head, total, sent } = *outgoing;
            let mut head_bytes = 0;
            if head != Head::None && sent < http::ROOM as u64 {
                head_bytes = http::write_head(&mut self.outbox, head, total);
            }
            let bytes = if sent < head_bytes as u64 {
                let end = total.min(self.outbox.len() as u64) as usize;
                &self.outbox[sent as usize..end]
            } else {
                &ZEROS[..(total - sent).min(ZEROS.len() as u64) as usize]
            };
            let taken = sockets::send(&connection.socket, bytes, closes);
            let wanted = bytes.len();
            self.outbox[..head_bytes].fill(0);
            match taken {
                Ok(taken) => {
                    outgoing.sent += taken as u64;
                    if taken < wanted {
                        return Ok(());
                    }
                }
                Err(_) => return self.give_up(token),
            }
        }
        if closes { self.shut(token) } else { self.read_on(token) }
    }

    /// Closes this end, whose data the kernel has. It goes on receiving until the other end has closed, too.
    fn shut(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let is_first = !std::mem::replace(&mut connection.is_closed_here, true);
        if connection.is_closed_there {
            self.end(token);
        } else if is_first && net::shutdown(&connection.socket, net::Shutdown::Write).is_err() {
            return self.give_up(token);
        }
        Ok(())
    }

    /// Ends a connection that is over as it should be. The kernel closes what is not closed.
    pub(super) fn end(&mut self, token: Token) {
        let Some(connection) = self.connections.remove(token) else { return };
        self.leave(&connection);
        // The end that opened it counts it.
        if connection.is_opener() {
            add(&self.wiring.tallies.connections_completed, 1);
        }
    }

    /// Gives a connection up, as the other end may have done.
    pub(super) fn give_up(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.remove(token) else { return Ok(()) };
        self.leave(&connection);
        if let Some(local) = connection.local {
            add(&self.wiring.tallies.connections_failed, 1);
            self.wiring.handover.forget(local);
        }
        match connection.role {
            Role::Client { owner: Some(owner), exchanges } => self.given_up(owner, exchanges.under_way().is_some()),
            _ => Ok(()),
        }
    }

    /// Forgets a connection, whose port may be taken again.
    fn leave(&mut self, connection: &Connection) {
        self.samples.forget(connection);
        if let Some(local) = connection.local {
            self.taken.remove(&local);
        }
    }

    /// Writes down what was completed within the measured window.
    fn measured(&self, completed: &Completed, known: (u16, u32, u8)) {
        if (self.window.0..self.window.1).contains(&self.now) {
            // Where nobody hears any more, the run is being broken off.
            let _ = self.wiring.news.send(News::Exchange(completed.row(self.scenario, known, self.now)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_that_no_buffer_holds_are_remarked() {
        let remarks = |block: &str, most: Option<u32>| {
            let vectors = "SEQ 0 1 1 1\nw 1000 2000000\nr 100000\nl 0 0\n> 10\nt 0\n< 10\nt 0\n";
            let text = format!("tcp.stack = 'linux'\n[[traffic]]\n{block}\n");
            let resolved = scenario::resolve(&text, "hosts.toml", &[], &|_| Ok(vectors.to_owned()));
            let resolved = resolved.expect("it makes sense");
            remarks_within(resolved.scenario().expect("no load to calibrate"), most)
        };
        let (usual, rmem_max) = ("kind = 'bulk'\nflows = 1", Some(212_992));
        assert_eq!(remarks(usual, rmem_max), Vec::<String>::new(), "a kernel's own window is not held");
        let limited = format!("{usual}\nwindow = '1mb'");
        assert_eq!(remarks(&limited, None), Vec::<String>::new());
        let said = remarks(&limited, rmem_max);
        assert!(said[0].starts_with("windows of more than 53248 bytes"), "{said:?}");
        assert_eq!(remarks(&format!("{usual}\nwindow = '53248b'"), rmem_max), Vec::<String>::new());
        assert_eq!(remarks("kind = 'tmix'\nvectors = 'v.cvec'\nloss = false", rmem_max), said);
    }
}
