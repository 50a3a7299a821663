//! Connections that play connection vectors: the applications' turns at both ends.
//!
//! What plays a vector knows both ends, which here are two threads': each end holds the same player and takes its turn
//! alone. The initiator leaves it for the acceptor before it connects.
//!
//! A vector's receive windows bound what each end offers (TCP_WINDOW_CLAMP, no less than Linux lets: 1152 bytes); the
//! acceptor's first offer, in its SYN/ACK, is still that of all. Its losses are not to be had: hosts lose nothing.

use super::connections::{Connection, Role, Token};
use super::timers::Due;
use super::{Hosts, Service, sockets};
use record::ExchangeRow;
use rustix::fd::OwnedFd;
use scenario::Traffic;
use session::Opening;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use traffic::tmix::{Finished, Player};

/// Vectors that are played, by the address of their initiator.
#[derive(Default)]
pub struct Players {
    playing: Mutex<BTreeMap<SocketAddr, Vector>>,
}

/// One end of a connection that plays a vector.
#[derive(Clone)]
pub struct Vector {
    player: Arc<Mutex<Player>>,
    /// 0 for the initiator, 1 for the acceptor.
    end: usize,
    block: u16,
    number: u32,
    initiator: SocketAddr,
    /// The largest window of each end, if it has one.
    windows: Option<[u32; 2]>,
    /// It closes once all is sent.
    pub closes: bool,
}

/// Each change leaves what it guards whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Players {
    /// Nothing is played.
    pub fn new() -> Self {
        Self::default()
    }

    /// What `initiator` was to play is not played.
    pub fn forget(&self, initiator: SocketAddr) {
        lock(&self.playing).remove(&initiator);
    }
}

impl Vector {
    /// The acceptor's end of what `initiator` plays.
    pub fn accepted(players: &Players, initiator: SocketAddr) -> Option<Self> {
        let vector = lock(&players.playing).remove(&initiator)?;
        Some(Self { end: 1, ..vector })
    }

    /// Whether this end did not open the connection.
    pub fn is_acceptor(&self) -> bool {
        self.end == 1
    }

    fn clamp_window(&self, socket: &OwnedFd) -> io::Result<()> {
        self.windows.map_or(Ok(()), |windows| sockets::clamp_window(socket, windows[self.end]))
    }

    /// It is over before the acceptor heard of it.
    pub fn end(&self, players: &Players) {
        players.forget(self.initiator);
    }
}

/// Why vectors cannot be played as a block says; `None` if they can.
pub fn unsupported(traffic: &Traffic) -> Option<String> {
    let tmix = traffic.workload.vectors()?;
    let is_lossy = tmix.loss && tmix.vectors.iter().any(|vector| vector.loss() != [0.0; 2]);
    is_lossy.then(|| "vectors with losses of their own, which real hosts have not: expected loss = false".to_owned())
}

impl Hosts<'_> {
    /// A connection begins that plays a vector.
    pub(super) fn begin_vector(&mut self, opening: &Opening, vector: u32) -> io::Result<()> {
        let &Opening { block, number, .. } = opening;
        let traffic = &self.scenario.traffic[usize::from(block)];
        let Some(tmix) = traffic.workload.vectors() else { return Ok(()) };
        let windows = tmix.window.then(|| tmix.vectors.get(vector).windows().map(|it| it.max(traffic.tcp.mss)));
        let player = Arc::new(Mutex::new(Player::new(&tmix.vectors, vector, self.now)));
        let of =
            |initiator| Vector { player: player.clone(), end: 0, block, number, initiator, windows, closes: false };
        self.dial(
            Service::Vector,
            |socket, initiator| Connection::new(socket, block, number, Role::Vector(of(initiator))),
            opening,
            |wiring, socket, initiator| {
                lock(&wiring.players.playing).insert(initiator, of(initiator));
                of(initiator).clamp_window(socket)
            },
        )
        .map(drop)
    }

    /// The other end's connection was accepted.
    pub(super) fn begin_accepted_vector(&mut self, token: Token) -> io::Result<()> {
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let Role::Vector(vector) = &connection.role else { return Ok(()) };
        (connection.block, connection.number) = (vector.block, vector.number);
        vector.clamp_window(&connection.socket)?;
        self.begin_vector_end(token)
    }

    /// An end is open.
    pub(super) fn begin_vector_end(&mut self, token: Token) -> io::Result<()> {
        if let Some(connection) = self.connections.get(token) {
            self.samples.begin(connection, token);
        }
        self.attend_vector(token)
    }

    /// The turn of the application at one end.
    pub(super) fn attend_vector(&mut self, token: Token) -> io::Result<()> {
        let now = self.now;
        let Some(connection) = self.connections.get(token) else { return Ok(()) };
        let block = connection.block;
        let Some(tmix) = self.scenario.traffic[usize::from(block)].workload.vectors() else { return Ok(()) };
        let Role::Vector(vector) = &mut connection.role else { return Ok(()) };
        if !connection.is_open {
            return Ok(());
        }
        let (received, is_closed) = (connection.received, connection.is_closed_there);
        let turn = lock(&vector.player).turn(&tmix.vectors, vector.end, received, is_closed, now);
        connection.outgoing.total += turn.write;
        vector.closes |= turn.close;
        if let Some(due) = turn.wake_at {
            self.timers.push(due, Due::Vector(token));
        }
        let direction = if vector.is_acceptor() { self.side } else { 1 - self.side };
        let (number, has_more) = (connection.number, connection.outgoing.is_pending());
        let shuts = vector.closes && !has_more && !connection.is_closed_here;
        let is_over = connection.is_closed_here && is_closed;
        if let Some(finished) = turn.finished {
            self.finished(&finished, block, number, direction);
        }
        if has_more {
            self.push(token)
        } else if shuts {
            self.shut(token)
        } else {
            if is_over {
                self.end(token);
            }
            Ok(())
        }
    }

    fn finished(&mut self, finished: &Finished, traffic: u16, source: u32, direction: u8) {
        self.measured(ExchangeRow {
            start: finished.since,
            response_time: self.now.since(finished.since),
            setup: finished.open_at.since(finished.since),
            request_bytes: u32::try_from(finished.request_bytes).unwrap_or(u32::MAX),
            response_bytes: finished.response_bytes,
            traffic,
            source,
            direction,
        });
    }
}
