//! What memory a run will need, reckoned from its scenario before anything is built.
//!
//! An allocation that fails ends the program: it is to be known before. Counted are the state of the disciplines; the
//! sources; the connections that are expected at a time; the packets that they and unresponsive sources are expected to
//! have under way. Tables go to the disk as they come. The weights are measured (`tests/memory.rs` holds them to what
//! runs take).

use aqm::param::{Length, Values};
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
/// Bytes of a source of unresponsive packets, beside the source itself.
const UDP_SOURCE: f64 = 60.0;
/// A mean packet of data in bits, where only an order of magnitude is asked for.
const PACKET_BITS: f64 = 8.0 * 1500.0;

/// A part of what a run needs.
#[derive(Clone, PartialEq, Debug)]
pub struct Need {
    /// The key of the scenario that asks for it.
    pub key: String,
    /// Bytes.
    pub bytes: u64,
}

/// What a run of `scenario` needs, by the key that asks for it.
pub fn memory(scenario: &Scenario) -> Vec<Need> {
    let ports = scenario
        .links
        .iter()
        .flat_map(|link| link.qdiscs.iter().zip(["qdisc", "reverse_qdisc"]).map(move |it| (link, it)));
    let states = ports.map(|(link, (qdisc, key))| {
        let bytes = qdisc.entry.state_bytes(&qdisc.values) as u64;
        Need { key: format!("{}.{key} ({})", scenario.key_of(link), qdisc.kind), bytes }
    });
    let blocks = scenario.traffic.iter().enumerate().map(|(index, block)| {
        let bytes = of_block(scenario, block);
        Need { key: format!("traffic.{index}"), bytes: bytes as u64 }
    });
    states.into_iter().chain(blocks).collect()
}

fn of_block(scenario: &Scenario, block: &Traffic) -> f64 {
    let source = size_of::<Source<'_>>() as f64;
    match block.workload.expected() {
        Expected::Users(users) => f64::from(users) * USER,
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
        Expected::Table(bytes) => bytes,
    }
}

/// Connections that are expected at once where so many begin a second, each for `bytes`: those that the link has not
/// served by the end, and those that are being served.
fn unfinished(scenario: &Scenario, block: &Traffic, per_s: f64, bytes: f64) -> f64 {
    let duration_s = scenario.duration.secs_f64();
    let capacity_bps = directions(scenario, block).map(|(rate, _)| rate).sum::<f64>();
    let served = (capacity_bps / (per_s * bytes.max(1500.0) * 8.0)).min(1.0);
    // A few round trips each.
    let lasts_s = (4.0 * block.rtt.at(0.5).secs_f64()).min(duration_s);
    per_s * (lasts_s * served + duration_s * (1.0 - served))
}

/// TCP packets that so many connections are expected to have under way: what their windows let them send, as far as
/// the queues and the paths have room, and as far as they come: each begins with a few, and what is delivered lets one
/// more follow at most (slow start doubles a window in the time that delivers it).
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

/// Unresponsive packets that wait at the end: what came beyond the link's rate, as far as the queue has room.
fn datagrams(scenario: &Scenario, block: &Traffic, bps: f64, bytes: f64) -> f64 {
    directions(scenario, block)
        .map(|(rate, limit)| {
            let beyond = (bps - rate).max(0.0) * scenario.duration.secs_f64() / (8.0 * bytes.max(1.0));
            beyond.min(limit)
        })
        .sum()
}

/// Rate and limit in packets of the directions in which the data of a block flow: of the slowest link on the way, and
/// of all queues there.
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
