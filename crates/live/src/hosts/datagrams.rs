//! This file sends packets that respond to nothing: constant-rate streams and probes.
//!
//! Each source has a socket of its own. A datagram is as long as its IP packet is to be. What is no probe goes to the
//! discard port (RFC 863), where nobody reads it; probes go to that of one-way measurement (RFC 8545), and say whose
//! they are and which.

use super::{Hosts, LISTENER, sockets};
use crate::news::{News, ProbeFlow};
use crate::wire;
use base::Span;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SocketType};
use scenario::{Carries, Family, Traffic};
use std::io;
use std::net::SocketAddr;

/// What is reported of the socket that receives probes.
pub const SINK: usize = 1 << 32;
/// Where datagrams go, and probes.
const DISCARD: u16 = 9;
const PROBE: u16 = 861;
/// Bytes of an IPv4 and a UDP header; of an IPv6 and a UDP header.
const HEADERS: [u32; 2] = [28, 48];
/// Largest packet of the hosts' interfaces.
const LARGEST: u32 = 1500;
/// What a probe says: number of the packet, number of the flow, block.
const MARK: usize = 10;
/// Room for probes that are not read yet: a second's worth of tens of thousands.
const SINK_BYTES: u32 = 16 << 20;
/// Most of them that are read at a time.
const MOST_PROBES: usize = 256;
/// What datagrams carry.
static ZEROS: [u8; LARGEST as usize] = [0; LARGEST as usize];

/// All sources of datagrams of a side.
pub struct Flows {
    /// By source; those which have sent.
    flows: Vec<Option<Flow>>,
    /// Receives probes, if any come.
    sink: Option<OwnedFd>,
    /// Open so that what comes is not answered with an error.
    _discard: Option<OwnedFd>,
    /// Datagrams that the kernel did not take.
    pub untaken: u64,
}

struct Flow {
    socket: OwnedFd,
    headers: u32,
    /// How many it has sent, of probes.
    sent: u32,
}

impl Flows {
    /// Those of so many sources, which have sent nothing.
    pub fn new(sources: usize) -> Self {
        Self { flows: (0..sources).map(|_| None).collect(), sink: None, _discard: None, untaken: 0 }
    }

    /// Probes that came and found no room.
    pub fn unread_probes(&self) -> u64 {
        self.sink.as_ref().map_or(0, sockets::dropped)
    }
}

/// Why the packets of a block cannot be sent; `None` if they can.
pub fn unsupported(traffic: &Traffic, family: Family) -> Option<String> {
    if traffic.workload.carries() == Carries::Media {
        return Some(
            "rtp_video: a live run has no real-time video yet; expected other kinds, or a simulated run".into(),
        );
    }
    let least = headers(family == Family::Ipv6);
    let least = least + if traffic.workload.carries() == Carries::Probes { MARK as u32 } else { 0 };
    let is_possible = |size: f64| (f64::from(least)..=f64::from(LARGEST)).contains(&size);
    let size = traffic.workload.packet_sizes().into_iter().find(|&size| !is_possible(size))?;
    let size = size.abs(); // the least of what is drawn may be -0
    Some(format!("packets of {size} bytes: expected {least} to {LARGEST}, as real hosts send over this link"))
}

fn headers(is_v6: bool) -> u32 {
    HEADERS[usize::from(is_v6)]
}

impl Hosts<'_> {
    /// Opens the ports that datagrams go to, where any do.
    pub(super) fn receive_datagrams(&mut self) -> io::Result<()> {
        let any = self.wiring.addressing.own(self.side);
        let is_udp = |traffic: &Traffic| !traffic.workload.carries().speaks_tcp();
        if self.scenario.traffic.iter().any(is_udp) {
            let discard = sockets::receive(any, DISCARD)?;
            // What nobody reads shall not take memory: it is dropped once there is no room.
            sockets::shrink(&discard)?;
            self.datagrams._discard = Some(discard);
        }
        if self.scenario.has_probes() {
            let sink = sockets::receive(any, PROBE)?;
            sockets::enlarge(&sink, SINK_BYTES)?;
            self.poll.readable(&sink, LISTENER | SINK as u64)?;
            self.datagrams.sink = Some(sink);
        }
        Ok(())
    }

    /// A source sends a packet of `size` bytes.
    pub(super) fn send_datagram(&mut self, index: u32, size: u32) -> io::Result<()> {
        let source = &self.sources.all()[index as usize];
        let (block, number) = (source.block, source.number);
        let Some(delay) = source.delay else { return Ok(()) };
        let is_probe = self.scenario.traffic[usize::from(block)].workload.carries() == Carries::Probes;
        if self.datagrams.flows[index as usize].is_none() {
            self.open_flow(index, block, number, if is_probe { PROBE } else { DISCARD }, delay)?;
        }
        let Some(flow) = &mut self.datagrams.flows[index as usize] else { return Ok(()) };
        let payload = size.clamp(flow.headers, LARGEST) - flow.headers;
        let mut marked = [0; LARGEST as usize];
        let datagram = if is_probe {
            let packet = flow.sent;
            flow.sent += 1;
            let flow = ProbeFlow { block, number, direction: self.side };
            // Where nobody hears any more, the run is being broken off.
            let _ = self.wiring.news.send(News::ProbeSent { flow, packet, at: self.now });
            marked[..4].copy_from_slice(&packet.to_be_bytes());
            marked[4..8].copy_from_slice(&number.to_be_bytes());
            marked[8..MARK].copy_from_slice(&block.to_be_bytes());
            &marked
        } else {
            &ZEROS
        };
        let sent = sockets::send(&flow.socket, &datagram[..payload as usize], false);
        self.datagrams.untaken += u64::from(sent != Ok(payload as usize));
        Ok(())
    }

    fn open_flow(&mut self, index: u32, block: u16, number: u32, port: u16, delay: Span) -> io::Result<()> {
        let [here, there] = self.between(block, number);
        let there = SocketAddr::new(there, port);
        let manner = self.manner_of_block[usize::from(block)];
        let (socket, here) = self.bound(here, SocketType::DGRAM, manner)?;
        net::connect(&socket, &there).map_err(|error| sockets::failed(&format!("datagrams to {there}"), error))?;
        self.wiring.announcer.connection(wire::flow_key(here, there, wire::UDP), block, delay);
        let headers = headers(there.is_ipv6());
        self.taken.insert(here);
        self.datagrams.flows[index as usize] = Some(Flow { socket, headers, sent: 0 });
        Ok(())
    }

    /// Probes came.
    pub(super) fn receive_probes(&mut self) -> io::Result<()> {
        for _ in 0..MOST_PROBES {
            if !self.receive_probe()? {
                break;
            }
        }
        Ok(())
    }

    /// Receives a probe; whether there was one.
    fn receive_probe(&mut self) -> io::Result<bool> {
        let Some(sink) = &self.datagrams.sink else { return Ok(false) };
        let mut mark = [0; MARK];
        let read = match net::recv(sink, &mut mark, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Ok((read, _)) => read,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(sockets::failed("receiving probes", error)),
        };
        let [p0, p1, p2, p3, n0, n1, n2, n3, b0, b1] = mark;
        let (packet, number) = (u32::from_be_bytes([p0, p1, p2, p3]), u32::from_be_bytes([n0, n1, n2, n3]));
        let block = u16::from_be_bytes([b0, b1]);
        let block_of = self.scenario.traffic.get(usize::from(block));
        let is_probes = block_of.is_some_and(|traffic| traffic.workload.carries() == Carries::Probes);
        // A stranger's is nobody's.
        if read == MARK && is_probes {
            let flow = ProbeFlow { block, number, direction: 1 - self.side };
            // In virtual time it was read at the instant at which it came.
            let at = if self.wiring.is_virtual {
                self.now
            } else {
                let age = sockets::age(sink).unwrap_or(Span::ZERO);
                // Both clocks are looked at one after the other: what lies between makes a packet later, never earlier.
                self.epoch.now() - age
            };
            let _ = self.wiring.news.send(News::ProbeReceived { flow, packet, at });
        }
        Ok(true)
    }
}
