//! This file has transfers and connection vectors: what both ends of a connection do jointly.
//!
//! Its state machine knows both ends, which here are two threads': both hold it, and each end takes its own turns. Who
//! opens the connection leaves it for the other side before it connects ([`Handover`]).
//!
//! A vector's receive windows bound what each end offers (TCP_WINDOW_CLAMP, no less than Linux lets: 1152 bytes); the
//! acceptor's first offer, in its SYN/ACK, is still that of all. Its losses are not to be had: hosts lose nothing.

use super::connections::{Connection, Role};
use super::{Hosts, Service, sockets};
use base::Time;
use rustix::fd::OwnedFd;
use scenario::{Scenario, Traffic};
use session::{ACCEPTOR, Heard, INITIATOR, Opening, Player, Transfer, Turn};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What openers leave for the other side, by their address.
#[derive(Default)]
pub struct Handover {
    left: Mutex<BTreeMap<SocketAddr, Joint>>,
}

/// One end of what both do.
#[derive(Clone)]
pub struct Joint {
    application: Arc<Mutex<Application>>,
    end: usize,
    /// Block of traffic.
    pub block: u16,
    /// Which flow or arrival of the block it is.
    pub number: u32,
    /// The largest window of each end, if it has one.
    windows: Option<[u32; 2]>,
}

enum Application {
    Transfer(Transfer),
    Vector(Player),
}

/// Each change leaves what it guards whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Handover {
    /// Takes back what `opener` left.
    pub fn forget(&self, opener: SocketAddr) {
        lock(&self.left).remove(&opener);
    }

    /// Takes out what `opener` left, as the other end of it.
    pub fn accept(&self, opener: SocketAddr) -> Option<Joint> {
        let joint = lock(&self.left).remove(&opener)?;
        Some(Joint { end: ACCEPTOR, ..joint })
    }
}

impl Joint {
    fn begin(application: Application, &Opening { block, number, .. }: &Opening) -> Self {
        Self { application: Arc::new(Mutex::new(application)), end: INITIATOR, block, number, windows: None }
    }

    /// The receiver of a connection that no host of the scenario opened: it takes whatever comes until the other end
    /// closes.
    pub fn from_stranger(block: u16, now: Time) -> Self {
        let opening = Opening { block, number: 0, client: 0, rtt: base::Span::ZERO };
        Self { end: ACCEPTOR, ..Self::begin(Application::Transfer(Transfer::new(None, now)), &opening) }
    }

    /// Whether this end has data to send.
    pub fn sends(&self) -> bool {
        self.end == INITIATOR || matches!(*lock(&self.application), Application::Vector(_))
    }

    /// Gives this end its turn.
    pub fn turn(&self, scenario: &Scenario, heard: Heard, now: Time) -> Turn {
        match &mut *lock(&self.application) {
            Application::Transfer(transfer) => transfer.turn(self.end, heard, now),
            Application::Vector(player) => {
                let tmix = scenario.traffic[usize::from(self.block)].workload.vectors();
                player.turn(&tmix.expect("who plays vectors has them").vectors, self.end, heard, now)
            }
        }
    }

    /// The window of this end, if it has one.
    pub fn window(&self) -> Option<u32> {
        self.windows.map(|windows| windows[self.end])
    }

    /// Bounds the window that this end offers.
    pub fn clamp_window(&self, socket: &OwnedFd) -> io::Result<()> {
        self.window().map_or(Ok(()), |window| sockets::clamp_window(socket, window))
    }
}

/// Why vectors cannot be played as a block says; `None` if they can.
pub fn unsupported(traffic: &Traffic) -> Option<String> {
    let tmix = traffic.workload.vectors()?;
    let is_lossy = tmix.loss && tmix.vectors.iter().any(|vector| vector.loss() != [0.0; 2]);
    is_lossy.then(|| "vectors with losses of their own, which real hosts have not: expected loss = false".to_owned())
}

impl Hosts<'_> {
    /// Opens a connection for a transfer of `bytes`, or of as many as it will carry.
    pub(super) fn open_transfer(&mut self, opening: &Opening, bytes: Option<u64>) -> io::Result<()> {
        let transfer = Application::Transfer(Transfer::new(bytes, self.now));
        self.open_joint(Service::Transfer, opening, &Joint::begin(transfer, opening))
    }

    /// Opens a connection that plays a vector.
    pub(super) fn open_vector(&mut self, opening: &Opening, vector: u32) -> io::Result<()> {
        let traffic = &self.scenario.traffic[usize::from(opening.block)];
        let tmix = traffic.workload.vectors().expect("who plays vectors has them");
        let player = Application::Vector(Player::new(&tmix.vectors, vector, self.now));
        let windows = tmix.windows(vector, traffic.tcp.mss);
        self.open_joint(Service::Vector, opening, &Joint { windows, ..Joint::begin(player, opening) })
    }

    fn open_joint(&mut self, service: Service, opening: &Opening, joint: &Joint) -> io::Result<()> {
        let connection = |socket| Connection::new(socket, joint.block, joint.number, Role::Joint(joint.clone()));
        let before = |handover: &Handover, socket: &OwnedFd, opener| {
            lock(&handover.left).insert(opener, joint.clone());
            joint.clamp_window(socket)
        };
        self.dial(service, connection, opening, before).map(drop)
    }
}
