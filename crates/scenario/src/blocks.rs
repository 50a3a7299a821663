//! The blocks of `[[traffic]]`: one function a kind, which reads its keys and writes them back with every default.

use crate::addressing;
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::hosts;
use crate::network;
use crate::replay;
use crate::resolve::LoadRequest;
use crate::scenario::{Bulk, Cbr, Direction, Link, Poisson, Route, RttSpec, Traffic, Workload};
use crate::section::{Entry, Section};
use crate::stacks::Stacks;
use crate::tmix;
use crate::udp;
use crate::units;
use crate::web;
use crate::written::{Fields, Written};
use base::{Distribution, Rate, Span};

/// A block that has been read.
pub(crate) struct Block {
    /// Complete, or waiting for the number of users that offer a load, in which case the error says so.
    pub traffic: Result<Traffic, (LoadRequest, Error)>,
    /// Its way over the links.
    pub route: Route,
    /// Every key with its value.
    pub written: Fields,
}

/// What a block takes from the rest of the scenario.
pub(crate) struct Surroundings<'a, 'b> {
    /// `[stacks]`.
    pub stacks: &'b Stacks<'a>,
    /// `[tcp]`.
    pub tcp: &'b Section<'a>,
    /// `path.rtt`.
    pub rtt: &'b RttSpec,
    /// `[link]` or `[links]`.
    pub links: &'b [Link],
    /// `path.access_rate`.
    pub access_rate: Rate,
    pub duration: Span,
    pub warmup: Span,
    pub cooldown: Span,
    pub seed: u64,
}

/// A kind: its keys besides [`COMMON`] and `[tcp]`, whether its hosts speak TCP, which way it flows unless it says.
struct Kind {
    name: &'static str,
    keys: &'static [&'static [&'static str]],
    speaks_tcp: bool,
    direction: Direction,
}

/// What the keys of a kind say: what to do, or the load whose users are to be found, and the keys with their values.
pub(crate) type Asked = (Result<Workload, (Rate, Error)>, Fields);

const COMMON: &[&str] = &["kind", "direction", "rtt", "dscp", "hosts"];
/// Bulk: the most at which each flow is sent.
const MAX_PACING_RATE: &str = "max_pacing_rate";
const KINDS: [Kind; 10] = [
    Kind {
        name: "web",
        keys: &[web::KEYS, web::POPULATION_KEYS, web::USER_KEYS, web::SESSION_KEYS, web::PACKMIME_KEYS],
        speaks_tcp: true,
        // As in the web studies, which loaded both directions of the link alike.
        direction: Direction::Both,
    },
    Kind {
        name: "bulk",
        keys: &[&["flows", "start", "size", MAX_PACING_RATE]],
        speaks_tcp: true,
        direction: Direction::Forward,
    },
    Kind {
        name: "poisson",
        keys: &[&["arrivals", "size", "request"]],
        speaks_tcp: true,
        direction: Direction::Forward,
    },
    Kind {
        name: "cbr",
        keys: &[&["flows", "rate", "packet", "start"]],
        speaks_tcp: false,
        direction: Direction::Forward,
    },
    Kind { name: "onoff", keys: &[udp::ON_OFF_KEYS], speaks_tcp: false, direction: Direction::Forward },
    Kind { name: "udp-poisson", keys: &[udp::POISSON_KEYS], speaks_tcp: false, direction: Direction::Forward },
    Kind { name: "udp-trace", keys: &[udp::TRACE_KEYS], speaks_tcp: false, direction: Direction::Forward },
    Kind { name: "probe", keys: &[udp::PROBE_KEYS], speaks_tcp: false, direction: Direction::Forward },
    Kind { name: tmix::KIND, keys: &[tmix::KEYS], speaks_tcp: true, direction: Direction::Forward },
    // As recorded.
    Kind { name: "replay", keys: &[replay::KEYS], speaks_tcp: true, direction: Direction::Both },
];
const DIRECTIONS: [(&str, Direction); 3] =
    [("forward", Direction::Forward), ("reverse", Direction::Reverse), ("both", Direction::Both)];
/// The largest request, which is also the largest that is recorded.
pub(crate) const MOST_ASKED: u64 = 1 << 30;
/// More than a simulation can hold.
pub(crate) const MOST: u32 = 100_000_000;

/// Reads one block, which is the `index`-th.
pub(crate) fn read(index: usize, entry: &Entry<'_>, around: &Surroundings<'_, '_>) -> Result<Block, Error> {
    let block = entry.section("a table with a kind")?;
    let names = KINDS.each_ref().map(|kind| (kind.name, kind));
    let expected = format!("one of {}", KINDS.each_ref().map(|kind| kind.name).join(", "));
    let kind = block.require("kind", &expected, |entry| entry.word(&names))?;
    let tcp_keys: &[&str] = if kind.speaks_tcp { hosts::KEYS } else { &[] };
    if kind.speaks_tcp {
        hosts::refuse_former(&block)?;
    }
    block.only(&[&[COMMON, network::ROUTE_KEYS], kind.keys, &[tcp_keys]].concat())?;
    let (route, route_written) = network::read_route(&block, around.links)?;

    let direction = block.read("direction", kind.direction, |entry| entry.word(&DIRECTIONS))?;
    let of_vectors = tmix::Own::of(kind.name, &block);
    let shared_rtt = around.rtt.clone();
    let rtt = if of_vectors.rtt { shared_rtt } else { block.read("rtt", shared_rtt, distribution::read_rtt)? };
    let dscp = block.read("dscp", 0, addressing::read_dscp)?;
    let ends = block.read("hosts", addressing::OWN, addressing::read_hosts)?;
    let defaults = hosts::read(around.stacks, around.tcp, None)?;
    let hosts_of = if of_vectors.window { &block.without("window") } else { &block };
    let mut tcp = hosts::read(around.stacks, around.tcp, kind.speaks_tcp.then_some(hosts_of))?;
    let (asked, own) = match kind.name {
        "web" => web::read(&block)?,
        "bulk" => bulk(&block, around.duration, &mut tcp.config)?,
        "poisson" => poisson(&block)?,
        "cbr" => cbr(&block, around)?,
        "onoff" => udp::on_off(&block, around)?,
        "udp-poisson" => udp::poisson(&block, around)?,
        "udp-trace" => udp::trace(&block, around)?,
        "probe" => udp::probe(&block, around)?,
        tmix::KIND => tmix::read(&block, around, index, direction, of_vectors, &rtt, &tcp.config)?,
        "replay" => replay::read(&block)?,
        _ => unreachable!("every kind is read"),
    };

    let is_answered = match &asked {
        Ok(Workload::Bulk(_)) => false,
        Ok(Workload::Poisson(poisson)) => poisson.request_bytes > 0,
        _ => kind.speaks_tcp,
    };
    if tcp.config.one_way && is_answered {
        let key = block.get("one_way").or_else(|| around.tcp.get("one_way")).or_else(|| block.get("kind"));
        let blamed = key.expect("a block has a kind");
        return Err(blamed.expected(format!(
            "no one-way hosts in traffic.{index}, whose requests are answered: only bulk, and poisson with request = \"0b\""
        )));
    }

    let (direction_name, _) = DIRECTIONS.iter().find(|(_, other)| *other == direction).expect("directions have names");
    let mut written =
        vec![("kind", Written::Text(kind.name.to_owned())), ("direction", Written::Text((*direction_name).to_owned()))];
    written.extend(own);
    written.push(("dscp", addressing::write_dscp(dscp)));
    written.push(("hosts", addressing::write_hosts(ends)));
    written.extend(route_written);
    // What the block shares with the rest of the scenario stays shared, so that it can be changed in one place.
    if rtt != *around.rtt || kind.name == tmix::KIND && !of_vectors.rtt {
        written.push(("rtt", distribution::write_rtt(&rtt)));
    }
    let shared = hosts::write(&defaults);
    written.extend(hosts::write(&tcp).into_iter().filter(|field| match field.0 {
        // Unless given, it is the vectors'.
        "window" if kind.name == tmix::KIND => !of_vectors.window,
        _ => !shared.contains(field),
    }));

    if let Ok(Workload::Tmix(tmix)) = &asked
        && tmix.window
    {
        // Each end's own is told the other; what the hosts have room for is then no limit besides.
        tcp.config.window = u64::from(tmix.vectors.largest_window()).max(tcp.config.mss.into());
    }
    let traffic = match asked {
        Ok(workload) => {
            let route = route.clone();
            Ok(Traffic { route, rtt, tcp: tcp.config, workload, direction, dscp, hosts: ends })
        }
        Err((load, error)) => Err((LoadRequest { traffic: index, load, direction }, error)),
    };
    Ok(Block { traffic, route, written })
}

/// Long-lived or finite transfers, and how fast their hosts send at most.
fn bulk(block: &Section<'_>, duration: Span, tcp: &mut tcp::Config) -> Result<Asked, Error> {
    let flows = block.read("flows", 1, |entry| entry.count(1..=MOST))?;
    let start = start(block, duration)?;
    let size = block.read("size", None, |entry| match entry.text() {
        Ok("endless") => Ok(None),
        _ => at_least_a_byte(entry).map(Some),
    })?;
    let endless = Written::Text("endless".to_owned());
    let written_size = size.as_ref().map_or(endless, |size| distribution::write(size, Quantity::Size));
    let mut written = vec![
        ("flows", Written::Integer(u64::from(flows))),
        ("start", distribution::write(&start, Quantity::Time)),
        ("size", written_size),
    ];
    if let Some(entry) = block.get(MAX_PACING_RATE) {
        let rate = entry.rate()?;
        if tcp.repair == tcp::Repair::Ns2Sack1 {
            return Err(entry.expected("no such key with repair ns2-sack1, which does not pace"));
        }
        tcp.max_pacing_rate = Some(rate);
        // Only where it is given: nobody else is held back.
        written.push((MAX_PACING_RATE, Written::Text(units::write_rate(rate))));
    }
    Ok((Ok(Workload::Bulk(Bulk { flows, start, size })), written))
}

/// A distribution of sizes of transfers.
fn at_least_a_byte(entry: &Entry<'_>) -> Result<Distribution, Error> {
    let size = distribution::read(entry, Quantity::Size)?;
    if size.max() >= 1.0 { Ok(size) } else { Err(entry.expected("sizes of at least 1b")) }
}

/// Transfers that arrive at random.
fn poisson(block: &Section<'_>) -> Result<Asked, Error> {
    /// The median request of PackMime-HTTP (Cao, Cleveland, Gao, Jeffay, Smith and Weigle, INFOCOM 2004).
    const REQUEST: u64 = 420;
    let arrivals_per_s = arrivals(block)?;
    let expected = "a size or a distribution such as { pareto = { mean = \"7000b\", shape = 1.2 } }";
    let size = block.require("size", expected, at_least_a_byte)?;
    let request = block.read("request", REQUEST, |entry| entry.size_within(0..=MOST_ASKED))?;
    let written = vec![
        ("arrivals", Written::Text(units::write_frequency(arrivals_per_s))),
        ("size", distribution::write(&size, Quantity::Size)),
        ("request", Written::Text(units::write_bytes(request as f64))),
    ];
    let request_bytes = u32::try_from(request).expect("the range ends below 2^32");
    Ok((Ok(Workload::Poisson(Poisson { arrivals_per_s, request_bytes, size })), written))
}

/// How many arrive a second.
pub(crate) fn arrivals(block: &Section<'_>) -> Result<f64, Error> {
    const MOST_A_SECOND: f64 = 1e7;
    block.require("arrivals", "a frequency such as 1480hz", |entry| {
        let hertz = entry.quantity(units::frequency)?;
        if hertz > 0.0 && hertz <= MOST_A_SECOND {
            return Ok(hertz);
        }
        Err(entry.expected(format!("a frequency above zero and at most {}", units::write_frequency(MOST_A_SECOND))))
    })
}

/// Unresponsive packets at a constant rate.
fn cbr(block: &Section<'_>, around: &Surroundings<'_, '_>) -> Result<Asked, Error> {
    /// The UDP packets of Brandauer et al., ISCC 2001.
    const PACKET: u32 = 573;
    let flows = block.read("flows", 1, |entry| entry.count(1..=MOST))?;
    let rate = udp::rate(block, around, flows)?;
    let packet = udp::packet(block, PACKET)?;
    let start = start(block, around.duration)?;
    let written = vec![
        ("flows", Written::Integer(u64::from(flows))),
        ("rate", Written::Text(units::write_rate(rate))),
        ("packet", Written::Text(units::write_bytes(f64::from(packet)))),
        ("start", distribution::write(&start, Quantity::Time)),
    ];
    Ok((Ok(Workload::Cbr(Cbr { flows, rate, packet, start })), written))
}

/// When flows start: unless stated, spread over the first ten seconds (Brandauer et al. 2001), or the first twentieth
/// of a run too short for that.
pub(crate) fn start(block: &Section<'_>, duration: Span) -> Result<Distribution, Error> {
    let latest = (duration / 20).min(Span::from_secs(10));
    start_or(block, duration, Distribution::Uniform(0.0, latest.ns() as f64 / 1e9))
}

/// When flows start, within the run.
pub(crate) fn start_or(block: &Section<'_>, duration: Span, default: Distribution) -> Result<Distribution, Error> {
    block.read("start", default, |entry| {
        let start = distribution::read(entry, Quantity::Time)?;
        if distribution::smallest(&start) < duration.secs_f64() {
            return Ok(start);
        }
        Err(entry.expected(format!("a start before the end of the run at {}", units::write_span(duration))))
    })
}
