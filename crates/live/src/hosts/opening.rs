//! This file opens connections: it chooses hosts and ports, and sets the sockets.
//!
//! The port is chosen here rather than by the kernel, for the router has to know a connection before its first packet.

use super::connections::{Connection, Token};
use super::sockets::{self, Manner};
use super::timers::Due;
use super::{Handover, Hosts};
use crate::news::add;
use crate::settings::BlockSettings;
use crate::wire;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, SocketType};
use scenario::{Carries, Scenario};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// What connections are opened for: each has a port of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Exchanges.
    Web,
    /// Transfers from who opens them.
    Transfer,
    /// Vectors.
    Vector,
}

impl Service {
    /// What serves a block's connections; `None` if it has none.
    pub fn of(carries: Carries) -> Option<Self> {
        match carries {
            Carries::Exchanges => Some(Self::Web),
            Carries::Transfers => Some(Self::Transfer),
            Carries::Vectors => Some(Self::Vector),
            Carries::Datagrams | Carries::Probes | Carries::Media => None,
        }
    }

    /// The port for the sockets of this manner, numbered from 0.
    pub fn port(self, manner: usize) -> u16 {
        let first = match self {
            Self::Web => 80,
            Self::Transfer => 5001,
            Self::Vector => 7007,
        };
        first + 10 * manner as u16
    }
}

/// Ports that connections are opened from; those of services are below.
pub const PORTS: std::ops::RangeInclusive<u16> = 10_000..=60_999;
/// How many of them are tried for one connection.
const TRIES: usize = 1_000;

impl Hosts<'_> {
    /// Opens a connection between the hosts of source or arrival `number` of a block, after telling `before` the
    /// address that it is opened from. What the kernel refuses at once fails as soon as it would have been opened.
    pub(super) fn dial(
        &mut self,
        service: Service,
        connection: impl FnOnce(OwnedFd) -> Connection,
        &session::Opening { block, number, rtt, .. }: &session::Opening,
        before: impl Fn(&Handover, &OwnedFd, SocketAddr) -> io::Result<()>,
    ) -> io::Result<Token> {
        let [here, there] = self.between(block, number);
        let manner = self.manner_of_block[usize::from(block)];
        let there = SocketAddr::new(there, service.port(manner));
        let mut dialled = None;
        for _ in 0..TRIES {
            let (socket, here) = self.bound(here, SocketType::STREAM, manner)?;
            let flow = wire::flow_key(here, there, wire::TCP);
            self.wiring.announcer.connection(flow, block, rtt / 2);
            before(&self.wiring.handover, &socket, here)?;
            let result = net::connect(&socket, &there);
            let is_taken = matches!(result, Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE));
            dialled = Some((socket, here, result));
            if !is_taken {
                break;
            }
            // The kernel still has a connection there that is over for these hosts.
            self.wiring.handover.forget(here);
        }
        let (socket, here, result) = dialled.expect("it was tried");
        add(&self.wiring.tallies.connections_opened, 1);
        let token = self.connections.insert(connection(socket));
        let connection = self.connections.get(token).expect("it was just put there");
        connection.local = Some(here);
        self.taken.insert(here);
        self.without_port += u64::from(matches!(result, Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE)));
        if self.recorder.is_on() {
            connection.recorded = self.opened * 2 + u64::from(self.side);
            self.opened += 1;
        }
        match result {
            Ok(()) | Err(Errno::INPROGRESS) => self.poll.connection(&connection.socket, token.word())?,
            Err(error) if sockets::is_out_of(error) => return Err(sockets::failed("opening a connection", error)),
            Err(_) => self.timers.push(self.now, Due::Broken(token)),
        }
        Ok(token)
    }

    /// A socket of a host at a port that nothing here is open from, and its address. (The kernel, which has it reuse
    /// addresses for the sake of those in TIME-WAIT, would say so only when it connects: the router and the other side
    /// would have been told of it in place of the connection that is there.)
    pub(super) fn bound(&mut self, host: IpAddr, kind: SocketType, manner: usize) -> io::Result<(OwnedFd, SocketAddr)> {
        let socket = sockets::socket(host, kind, &self.manners[manner])?;
        for _ in 0..TRIES {
            let address = SocketAddr::new(host, self.next_port);
            self.next_port = if self.next_port == *PORTS.end() { *PORTS.start() } else { self.next_port + 1 };
            if self.taken.contains(&address) {
                continue;
            }
            match net::bind(&socket, &address) {
                Ok(()) => return Ok((socket, address)),
                Err(Errno::ADDRINUSE) => {}
                Err(error) => return Err(sockets::failed(&format!("binding to {address}"), error)),
            }
        }
        Err(sockets::failed(&format!("binding to a port of {host}: {TRIES} in a row are in use"), Errno::ADDRINUSE))
    }

    /// The hosts of source or arrival `number` of a block whose connections are opened here: this side's, the other's.
    pub(super) fn between(&self, block: u16, number: u32) -> [IpAddr; 2] {
        let hosts = session::hosts_within(&self.scenario.traffic[usize::from(block)], number, self.side);
        let host = |side: u8| self.wiring.addressing.host(side, block, hosts[usize::from(side)]);
        [host(self.side), host(1 - self.side)]
    }
}

/// What the sockets of each block have, without repetition, and which of them is whose.
pub fn manners(scenario: &Scenario, blocks: &[BlockSettings]) -> (Vec<Manner>, Vec<usize>) {
    let usual = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap_or_default();
    let mut manners = Vec::new();
    let of_block = scenario.traffic.iter().enumerate().map(|(block, traffic)| {
        let congestion = blocks.get(block).map(|block| block.congestion.clone());
        let congestion = congestion.filter(|congestion| !congestion.is_empty() && congestion != usual.trim());
        let manner = Manner { congestion, class: traffic.dscp << 2 | traffic.ect as u8 };
        manners.iter().position(|known| *known == manner).unwrap_or_else(|| {
            manners.push(manner);
            manners.len() - 1
        })
    });
    let of_block = of_block.collect();
    (manners, of_block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BLOCKS;

    #[test]
    fn ports_of_services_never_meet() {
        let mut ports = std::collections::BTreeSet::new();
        for service in [Service::Web, Service::Transfer, Service::Vector] {
            for manner in 0..BLOCKS {
                assert!(ports.insert(service.port(manner)) && !PORTS.contains(&service.port(manner)));
            }
        }
    }
}
