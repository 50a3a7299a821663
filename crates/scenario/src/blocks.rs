//! This file reads what all blocks of `[[traffic]]` have in common. The kind of each reads the rest ([`mod@kinds`]).

use crate::addressing;
use crate::demand::Carries;
use crate::distribution;
use crate::error::Error;
use crate::homes::HOMES;
use crate::hosts;
use crate::kinds;
use crate::network;
use crate::scenario::{Direction, Link, LoadRequest, Route, RttSpec, Traffic};
use crate::section::{Entry, Section};
use crate::stacks::Stacks;
use crate::written::{Fields, Written};
use base::{Ecn, Rate, Span};

/// A block that has been read.
pub(crate) struct Block {
    /// The block. If the number of users that offer a load is still to be found, the load, with an error that says so.
    pub traffic: Result<Traffic, (LoadRequest, Error)>,
    /// Its way over the links.
    pub route: Route,
    /// Every key with its value.
    pub written: Fields,
}

/// The parts of a scenario that a block takes values from.
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
    /// Whether the connections of a host share its access links.
    pub hosts_share: bool,
    pub duration: Span,
    pub warmup: Span,
    pub cooldown: Span,
    pub seed: u64,
}

/// A block that its kind is reading.
pub(crate) struct Asking<'a, 'b> {
    pub block: &'b Section<'a>,
    pub around: &'b Surroundings<'a, 'b>,
    /// Its place among all blocks.
    pub index: usize,
    pub direction: Direction,
    /// Which conditions its connections have of their own.
    pub own: Own,
    pub rtt: &'b RttSpec,
    /// Its end hosts, to which the kind may add.
    pub tcp: &'b mut tcp::Config,
}

/// Whether conditions are the connections' own rather than the scenario's.
#[derive(Clone, Copy)]
pub(crate) struct Own {
    pub rtt: bool,
    pub window: bool,
}

impl Own {
    /// Reads this from a block whose kind has a `word` for the connections' own; without a word, nothing is their own.
    /// A key that is not given means the connections' own.
    fn of(block: &Section<'_>, word: Option<&str>) -> Self {
        let is_own = |name| {
            let given = block.get(name);
            word.is_some_and(|word| given.is_none_or(|entry| entry.text().is_ok_and(|text| text == word)))
        };
        Self { rtt: is_own(RTT), window: is_own(WINDOW) }
    }
}

pub(crate) const RTT: &str = "rtt";
pub(crate) const WINDOW: &str = "window";
/// The key that names the model of a block's kind.
pub(crate) const MODEL: &str = "model";
const COMMON: &[&str] = &["kind", "direction", RTT, "dscp", "hosts", APPLICATION];
/// The key that says what a block is to people, who judge it by that.
pub(crate) const APPLICATION: &str = "application";
/// The key with the ECN field of packets: here of datagrams, in `[tcp]` of a connection's.
pub(crate) const ECT: &str = "ect";
const DIRECTIONS: [Direction; 3] = [Direction::Forward, Direction::Reverse, Direction::Both];
/// What `direction` may say.
pub(crate) const DIRECTION_NAMES: [&str; 3] = [DIRECTIONS[0].name(), DIRECTIONS[1].name(), DIRECTIONS[2].name()];
/// Reads one block, which is the `index`-th.
pub(crate) fn read(index: usize, entry: &Entry<'_>, around: &Surroundings<'_, '_>) -> Result<Block, Error> {
    let block = entry.section("a table with a kind")?;
    // Blocks of homes have become others before; here the word is for those who misspell it.
    let names = kinds::rows().iter().map(|row| row.name).chain([HOMES]).enumerate();
    let names: Vec<_> = names.map(|(place, name)| (name, place)).collect();
    let expected = format!("one of {}", names.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "));
    let place = block.require("kind", &expected, |entry| {
        let meant = |word: &str| kinds::rows().iter().find(|row| row.called.contains(&word)).map(|row| row.name);
        match entry.text().ok().and_then(meant) {
            Some(meant) => Err(entry.expected(format!("{expected}; did you mean {meant}?"))),
            None => entry.word(&names),
        }
    })?;
    let kind = &kinds::rows()[place];
    if kind.speaks_tcp {
        hosts::refuse_former(&block)?;
    }
    let host_keys: &[&str] = if kind.speaks_tcp { hosts::KEYS } else { &[ECT] };
    let tick: &[&str] = if kind.speaks_tcp { &[network::RTT_TICK] } else { &[] };
    if let Some(entry) = block.get(network::RTT_TICK).filter(|_| !kind.speaks_tcp) {
        return Err(entry.expected(format!("no such key with kind {}: it is of connections over TCP", kind.name)));
    }
    block.only(&[COMMON, network::ROUTE_KEYS, tick, &kind.keys(), host_keys])?;
    let (route, route_written) = network::read_route(&block, around.links)?;
    let application = block.get(APPLICATION).map(|entry| read_application(&entry, kind)).transpose()?;

    let direction =
        block.read("direction", kind.direction.0, |entry| entry.word(&DIRECTIONS.map(|it| (it.name(), it))))?;
    let own = Own::of(&block, kind.own);
    let shared_rtt = around.rtt.clone();
    let rtt = if own.rtt { shared_rtt } else { block.read(RTT, shared_rtt, distribution::read_rtt)? };
    let dscp = block.read("dscp", 0, addressing::read_dscp)?;
    let ect = if kind.speaks_tcp { Ecn::NotEct } else { block.read(ECT, Ecn::NotEct, addressing::read_ect)? };
    let ends = block.read("hosts", addressing::OWN, addressing::read_hosts)?;
    let defaults = hosts::read(around.stacks, around.tcp, None)?;
    let hosts_of = if own.window { &block.without(WINDOW) } else { &block };
    let mut tcp = hosts::read(around.stacks, around.tcp, kind.speaks_tcp.then_some(hosts_of))?;
    let asking = &mut Asking { block: &block, around, index, direction, own, rtt: &rtt, tcp: &mut tcp.config };
    let asked = kinds::read(place, asking)?;

    if around.hosts_share && kind.speaks_tcp {
        let has_own = own.rtt || asked.workload.as_ref().is_ok_and(|workload| workload.shortest_rtt().is_some());
        network::need_order(&block, &route, rtt.is_constant() && !has_own)?;
    }
    let is_answered = asked
        .workload
        .as_ref()
        .map_or(kind.speaks_tcp, |workload| !matches!(workload.carries(), Carries::Transfers) && kind.speaks_tcp);
    if tcp.config.one_way && is_answered {
        let key = block.get("one_way").or_else(|| around.tcp.get("one_way")).or_else(|| block.get("kind"));
        let blamed = key.expect("a block has a kind");
        return Err(blamed.expected(format!(
            "no one-way hosts in traffic.{index}, whose requests are answered: only bulk, and poisson with request = \"0b\""
        )));
    }

    let mut written =
        vec![("kind", Written::Text(kind.name.to_owned())), ("direction", Written::Text(direction.name().to_owned()))];
    written.extend(asked.written);
    written.push(("dscp", addressing::write_dscp(dscp)));
    written.push(("hosts", addressing::write_hosts(ends)));
    if !kind.speaks_tcp {
        written.push((ECT, addressing::write_ect(ect)));
    }
    written.extend(route_written);
    // It is written only where it is given, so that scenarios without it keep their text and digest.
    written.extend(application.map(|word| (APPLICATION, Written::Text(word.to_owned()))));
    // A value that the block shares with the rest of the scenario is not written, so that it can be changed in one
    // place.
    if rtt != *around.rtt || kind.own.is_some() && !own.rtt {
        written.push((RTT, distribution::write_rtt(&rtt)));
    }
    let shared = hosts::write(&defaults);
    written.extend(hosts::write(&tcp).into_iter().filter(|field| match field.0 {
        // It is written unless it is the connections' own.
        WINDOW if kind.own.is_some() => !own.window,
        _ => !shared.contains(field),
    }));

    let traffic = match asked.workload {
        Ok(workload) => {
            let route = route.clone();
            Ok(Traffic { route, rtt, tcp: tcp.config, workload, direction, dscp, ect, hosts: ends })
        }
        Err((load, error)) => Err((LoadRequest { traffic: index, load, direction }, error)),
    };
    Ok(Block { traffic, route, written })
}

/// What a block of this kind is to people.
fn read_application(entry: &Entry<'_>, kind: &kinds::Row) -> Result<&'static str, Error> {
    let mut words: Vec<(&'static str, &'static str)> = Vec::new();
    for word in kinds::rows().iter().flat_map(|row| row.applications).copied() {
        if !words.contains(&(word, word)) {
            words.push((word, word));
        }
    }
    let word = entry.word(&words)?;
    if kind.applications.contains(&word) {
        return Ok(word);
    }
    let able = kinds::rows().iter().filter(|row| row.applications.contains(&word)).map(|row| row.name);
    let able = able.collect::<Vec<_>>().join(" or ");
    Err(entry.expected(format!("a block of kind {able} for {word}, not {}", kind.name)))
}
