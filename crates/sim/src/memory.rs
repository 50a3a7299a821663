//! This file estimates, from a scenario and before anything is built, the memory that a run will need.
//!
//! An allocation that fails ends the program, so that this should be known before. The estimate counts the state of the
//! disciplines, the sources, the connections expected at a time, hosts that have something of their own, and the
//! packets that connections and unresponsive sources are expected to have under way. Tables do not count, as their rows
//! go to the disk at once. The weights are measured; `tests/memory.rs` compares them with what runs take.

use aqm::param::{Length, Values};
use net::Hosts;
use scenario::{Direction, Expected, Link, Scenario, Traffic};
use session::Source;

/// Bytes of a connection whose two ends have begun to send.
const CONNECTION: f64 = 2500.0;
/// Bytes of a TCP packet under way: the segment, its events, what its sender remembers of it, its place in a queue.
const SEGMENT: f64 = 250.0;
/// Bytes of an unresponsive packet under way: its place in a queue.
const DATAGRAM: f64 = 50.0;
/// Bytes of a web user or a session, with their share of connections: they think most of the time.
const USER: f64 = 1200.0;
/// How long an object of a page is under way, s.
const OBJECT_S: f64 = 0.5;
/// Bytes of a source of unresponsive packets, beside the source itself.
const UDP_SOURCE: f64 = 60.0;
/// A mean packet of data in bits, where an order of magnitude is enough.
const PACKET_BITS: f64 = 8.0 * 1500.0;

/// A part of what a run needs.
#[derive(Clone, PartialEq, Debug)]
pub struct Need {
    /// The key of the scenario that asks for it.
    pub key: String,
    /// Bytes.
    pub bytes: u64,
}

/// The memory that a run of `scenario` needs, by the key that asks for it.
pub fn memory(scenario: &Scenario) -> Vec<Need> {
    let ports = scenario
        .links
        .iter()
        .flat_map(|link| link.qdiscs.iter().zip(["qdisc", "reverse_qdisc"]).map(move |it| (link, it)));
    let states = ports.map(|(link, (qdisc, key))| {
        let bytes = qdisc.entry.state_bytes(&qdisc.values) as u64;
        Need { key: format!("{}.{key} ({})", scenario.key_of(link), qdisc.kind()), bytes }
    });
    let blocks = scenario.traffic.iter().enumerate().map(|(index, block)| {
        let bytes = of_block(scenario, block);
        Need { key: format!("traffic.{index}"), bytes: bytes as u64 }
    });
    states.into_iter().chain(blocks).chain(hosts(scenario)).collect()
}

fn of_block(scenario: &Scenario, block: &Traffic) -> f64 {
    let source = size_of::<Source<'_>>() as f64;
    match block.workload.expected() {
        Expected::Users(users) => f64::from(users) * USER,
        Expected::Sessions { users, is_closed, pages_per_s, objects, apart_s, bytes } => {
            let users = f64::from(users);
            // Of a page, those that begin within the run.
            let objects = objects.min(1.0 + scenario.duration.secs_f64() / apart_s);
            let unfinished = unfinished(scenario, block, pages_per_s * objects, bytes);
            let unfinished = if is_closed { unfinished.min(users * objects) } else { unfinished };
            let of_page = objects.min(1.0 + OBJECT_S / apart_s);
            // What a user is reckoned with has one.
            users * USER + (unfinished.max(of_page) - users).max(0.0) * CONNECTION
        }
        Expected::Transfers(flows) => {
            let flows = f64::from(flows);
            flows * (source + CONNECTION) + segments(scenario, block, flows) * SEGMENT
        }
        Expected::Arrivals { per_s, bytes } => {
            let at_once = unfinished(scenario, block, per_s, bytes);
            at_once * CONNECTION + segments(scenario, block, at_once) * SEGMENT
        }
        Expected::Exchanges { per_s, bytes, waiting } => {
            (unfinished(scenario, block, per_s, bytes) + waiting) * CONNECTION
        }
        Expected::Datagrams { flows, bps, bytes } => {
            f64::from(flows) * (source + UDP_SOURCE) + datagrams(scenario, block, bps, bytes) * DATAGRAM
        }
        Expected::Table { bytes, .. } => bytes,
    }
}

/// What hosts need whose connections share links, or that have a clock, by the block with the most. They are kept in
/// their places by number.
fn hosts(scenario: &Scenario) -> Option<Need> {
    let blocks = scenario.traffic.iter().enumerate().filter(|(_, block)| block.workload.carries().speaks_tcp());
    let kept = blocks.filter(|(_, block)| scenario.path.hosts_share || block.route.tick.is_some());
    let (most, index) = kept.map(|(index, block)| (seen(scenario, block), index)).max()?;
    let bytes = Hosts::bytes(session::host_numbers(scenario, most));
    Some(Need { key: format!("traffic.{index}.hosts"), bytes })
}

/// How many hosts of a block are expected to be seen: clients or, if these are more and share links too, servers.
fn seen(scenario: &Scenario, block: &Traffic) -> u32 {
    let come = match block.workload.expected() {
        Expected::Arrivals { per_s, .. } | Expected::Exchanges { per_s, .. } => per_s * scenario.duration.secs_f64(),
        Expected::Table { connections, .. } => connections,
        _ => f64::from(block.workload.count()),
    };
    let scenario::Hosts { clients, servers } = block.hosts;
    let of = |hosts: Option<u32>| hosts.map_or(come, |hosts| come.min(f64::from(hosts)));
    let most = if scenario.path.hosts_share { of(clients).max(of(servers)) } else { of(clients) };
    most.ceil() as u32
}

/// How many connections are expected at once, where `per_s` begin a second, each for `bytes`. They are those that the
/// link has not served by the end of the run, and those that it is serving.
fn unfinished(scenario: &Scenario, block: &Traffic, per_s: f64, bytes: f64) -> f64 {
    let duration_s = scenario.duration.secs_f64();
    let capacity_bps = directions(scenario, block).map(|(rate, _)| rate).sum::<f64>();
    let served = (capacity_bps / (per_s * bytes.max(1500.0) * 8.0)).min(1.0);
    // A few round trips each.
    let lasts_s = (4.0 * block.rtt.at(0.5).secs_f64()).min(duration_s);
    per_s * (lasts_s * served + duration_s * (1.0 - served))
}

/// How many TCP packets so many connections are expected to have under way. Three bounds hold: their windows, the room
/// of queues and paths, and growth. A connection begins with a few packets, and each one that is delivered adds at most
/// one, since slow start doubles a window in the time that delivers it.
fn segments(scenario: &Scenario, block: &Traffic, connections: f64) -> f64 {
    /// Packets that a connection begins with (RFC 6928).
    const FIRST: f64 = 10.0;
    let windows = connections * (block.tcp.window as f64 / f64::from(block.tcp.mss)).max(1.0);
    let duration_s = scenario.duration.secs_f64();
    let rtt_s = block.rtt.at(0.5).secs_f64().min(duration_s);
    let (mut room, mut delivered) = (0.0, 0.0);
    for (rate, limit) in directions(scenario, block) {
        room += rate * rtt_s / PACKET_BITS + limit;
        delivered += rate * duration_s / PACKET_BITS;
    }
    windows.min(room).min(FIRST * connections + delivered)
}

/// How many unresponsive packets wait at the end: those that came beyond the link's rate, as far as the queue has room.
fn datagrams(scenario: &Scenario, block: &Traffic, bps: f64, bytes: f64) -> f64 {
    directions(scenario, block)
        .map(|(rate, limit)| {
            let beyond = (bps - rate).max(0.0) * scenario.duration.secs_f64() / (8.0 * bytes.max(1.0));
            beyond.min(limit)
        })
        .sum()
}

/// For each direction in which the data of a block flows, the rate of the slowest link on the way, and the limit of all
/// queues there together, both in packets.
fn directions<'a>(scenario: &'a Scenario, block: &'a Traffic) -> impl Iterator<Item = (f64, f64)> + use<'a> {
    let asked = block.direction;
    [(Direction::Forward, 0), (Direction::Reverse, 1)]
        .into_iter()
        .filter(move |(direction, _)| asked == Direction::Both || *direction == asked)
        .map(move |(_, side)| {
            let links = block.route.links[side].iter().map(|&link| &scenario.links[usize::from(link)]);
            let of = |link: &Link| (link.rates[side].bps_f64(), limit(&link.qdiscs[side].values));
            links.map(of).fold((f64::INFINITY, 0.0), |(rate, room), (r, limit)| (rate.min(r), room + limit))
        })
}

fn limit(values: &Values) -> f64 {
    match values.length("limit") {
        Length::Packets(packets) => packets,
        Length::Bytes(bytes) => bytes * 8.0 / PACKET_BITS,
    }
}
