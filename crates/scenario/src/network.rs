//! This file reads links, `[link]` or `[links.NAME]`, and the `route` of each block of traffic over them.
//!
//! ```toml
//! [links.home]
//! rate = "50mbit"
//! delay = "2ms"
//!
//! [links.core]
//! rate = "100mbit"
//!
//! [[traffic]]
//! route = ["home", "core"]
//! ```
//!
//! A route names the links in the order in which a packet that goes forward meets them. The reverse way is the same
//! backwards unless `reverse_route` says otherwise. `[link]` is a single link, called `link`.

use crate::bounds::MOST_LINKS;
use crate::error::Error;
use crate::link::{self, LINK, LINKS};
use crate::scenario::{Link, Route, Scenario, Traffic};
use crate::section::{Entry, Section};
use crate::units;
use crate::written::{Fields, Written};
use aqm::{Framing, Packet};
use base::Span;
use net::{DelayAt, Net, Port, Receivers, Routes, Step};

pub(crate) const ROUTE_KEYS: &[&str] = &["route", "reverse_route", RTT_AT];
const RTT_AT: &str = "rtt_at";
/// The clock of a delay emulator, where hosts speak TCP.
pub(crate) const RTT_TICK: &str = "rtt_tick";

const DELAY_AT: [(&str, DelayAt); 4] =
    [("senders", DelayAt::Senders), ("left", DelayAt::Left), ("right", DelayAt::Right), ("clients", DelayAt::Clients)];
/// Clocks of delay emulators tick at 10 Hz to 1 MHz.
const TICKS: (Span, Span) = (Span::from_us(1), Span::from_ms(100));

/// Reads `[link]` or `[links]`. Returns the links in the order of the file, and their keys with values.
pub(crate) fn read(root: &Section<'_>) -> Result<(Vec<Link>, (&'static str, Written)), Error> {
    let Some(entry) = root.get(LINKS) else {
        let (link, written) = link::read(&root.section(LINK)?, LINK)?;
        return Ok((vec![link], (LINK, Written::Section(written))));
    };
    if let Some(one) = root.get(LINK) {
        return Err(one.expected("no [link] beside [links]: it would be one more of these"));
    }
    let section = entry.section("a table of links by name")?;
    let mut names: Vec<&str> = section.names().collect();
    names.sort_by_key(|name| section.get(name).map(|entry| entry.first_mention()));
    if names.is_empty() {
        return Err(entry.expected("at least one link, such as [links.home]"));
    }
    if names.len() > MOST_LINKS {
        return Err(entry.error(format!("expected at most {MOST_LINKS} links")));
    }
    let mut links = Vec::new();
    let mut written = Vec::new();
    for name in names {
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') || name.is_empty() {
            return Err(section.get(name).expect("it is there").expected("a name of letters, digits, - and _"));
        }
        if name == LINK {
            return Err(section.get(name).expect("it is there").unused("another name: link is what [link] is called"));
        }
        let (link, fields) = link::read(&section.section(name)?, name)?;
        links.push(link);
        written.push((name.to_owned(), fields));
    }
    Ok((links, (LINKS, Written::Named(written))))
}

/// Reads the route of a block over `links`, and writes it where there is a choice.
pub(crate) fn read_route(block: &Section<'_>, links: &[Link]) -> Result<(Route, Fields), Error> {
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
    let of = |entry: &Entry<'_>| read_links(entry, &names);
    let forward = match block.get("route") {
        Some(entry) => of(&entry)?,
        None if links.len() == 1 => vec![0],
        None => {
            return Err(block.missing("route", &format!("the links that its packets cross, of {}", names.join(", "))));
        }
    };
    let back: Vec<u16> = forward.iter().rev().copied().collect();
    let reverse = block.read("reverse_route", back, of)?;
    let delay_at = block.read(RTT_AT, DelayAt::Senders, |entry| entry.word(&DELAY_AT))?;
    let tick = match block.get(RTT_TICK) {
        None => None,
        Some(entry) if delay_at != DelayAt::Clients => {
            return Err(entry.unused("rtt_at = \"clients\": it is the clock of the delay emulator at the clients"));
        }
        Some(entry) => Some(entry.span_within(TICKS.0, TICKS.1)?),
    };
    let mut written = Fields::new();
    if links.len() > 1 {
        let text =
            |route: &[u16]| Written::List(route.iter().map(|&k| Written::Text(names[k as usize].to_owned())).collect());
        written.extend([("route", text(&forward)), ("reverse_route", text(&reverse))]);
    }
    if delay_at != DelayAt::Senders {
        let (word, _) = DELAY_AT.iter().find(|(_, other)| *other == delay_at).expect("each has a word");
        written.push((RTT_AT, Written::Text((*word).to_owned())));
    }
    written.extend(tick.map(|tick| (RTT_TICK, Written::Text(units::write_span(tick)))));
    Ok((Route { links: [forward, reverse], delay_at, tick }, written))
}

fn read_links(entry: &Entry<'_>, names: &[&str]) -> Result<Vec<u16>, Error> {
    let expected = "a list of names of links";
    let list = entry.list(expected)?;
    if list.is_empty() {
        return Err(entry.expected(format!("at least one of {}", names.join(", "))));
    }
    let mut route: Vec<u16> = Vec::with_capacity(list.len());
    for item in list {
        let word = item.text()?;
        let Some(link) = names.iter().position(|name| *name == word) else {
            return Err(item.unknown_word(word, names, std::iter::empty()));
        };
        if route.contains(&(link as u16)) {
            return Err(item.expected(format!("each link once: {word} would be crossed twice")));
        }
        route.push(link as u16);
    }
    Ok(route)
}

impl Route {
    /// The delay one way, half of that of a round trip, of a connection whose round-trip delay shall be `rtt`. A delay
    /// emulator with a clock makes delays of whole ticks.
    pub fn delay(&self, rtt: Span) -> Span {
        let whole = self.tick.map_or(rtt, |tick| Span::from_ns(rtt.ns() / tick.ns() * tick.ns()));
        whole / 2
    }
}

/// Refuses delays that differ between the links and hosts whose connections share access links: these carry packets in
/// the order in which they left the last link of their route, which would not be that in which they come.
pub(crate) fn need_order(block: &Section<'_>, route: &Route, is_one_rtt: bool) -> Result<(), Error> {
    let differs = !is_one_rtt && matches!(route.delay_at, DelayAt::Left | DelayAt::Right);
    let Some(entry) = block.get(RTT_AT).filter(|_| differs) else { return Ok(()) };
    Err(entry.expected(
        "senders or clients, or one rtt for the whole block: with path.access = \"host\" connections share access \
         links, on which near packets would wait for far ones",
    ))
}

/// Refuses a link that no route crosses, and more routes than packets can tell apart.
pub(crate) fn need_use(root: &Section<'_>, links: &[Link], routes: &[Route]) -> Result<(), Error> {
    if routes.iter().flat_map(|route| &route.links).map(Vec::len).sum::<usize>() > Step::MOST {
        let entry = root.get(LINKS).expect("one link is few steps");
        return Err(entry.unused(&format!("at most {} links on the routes of all blocks together", Step::MOST)));
    }
    let is_used =
        |k: usize| routes.iter().any(|route| route.links.iter().flatten().any(|&link| usize::from(link) == k));
    match (0..links.len()).find(|&k| !is_used(k)) {
        None => Ok(()),
        Some(k) => {
            let section = root.section(LINKS)?;
            let entry = section.get(&links[k].name).expect("it was read there");
            Err(entry.unused("a route of some block of traffic over this link"))
        }
    }
}

/// The network of a scenario, idle, as drivers have it.
pub struct Built<P, D> {
    /// The links, with what the driver keeps at each port.
    pub net: Net<P, D>,
    /// The routes over them.
    pub routes: Routes,
    /// The first step of each block's route: forward and in reverse.
    pub steps: Vec<[Step; 2]>,
}

impl Scenario {
    /// Builds the network of this scenario, idle, for both drivers. `own` makes the driver's own data at a port from
    /// the access links of the receivers behind it and the framing of the link.
    pub fn network<P: Packet + Send + 'static, D>(&self, own: impl Fn(Receivers, Framing) -> D) -> Built<P, D> {
        let mut routes = Routes::default();
        let steps = self.traffic.iter().map(|block| {
            [0, 1].map(|direction: u8| {
                let links = &block.route.links[usize::from(direction)];
                routes.add(&links.iter().map(|&link| Port::new(link, direction)).collect::<Vec<_>>())
            })
        });
        let steps = steps.collect();
        let sides = || self.links.iter().flat_map(|link| [0, 1].map(|side| (link, side)));
        let has_own_delays =
            self.traffic.iter().any(|block| matches!(block.route.delay_at, DelayAt::Left | DelayAt::Right));
        let port = |(link, side): (&Link, usize)| {
            let is_uneven = link.traces[side].is_some() || link.changes.is_some() || has_own_delays;
            let (access, are_shared) = (self.path.access_rate, self.path.hosts_share);
            let receivers = Receivers::behind(link.rates[side], is_uneven, access, are_shared);
            (link.egress(side, self.seed), link.delay(side, self.seed), own(receivers, link.framing()))
        };
        Built { net: Net::new(sides().map(port)), routes, steps }
    }

    /// Whether there is more to hosts than their connections: links that these share, or a clock.
    pub fn has_hosts(&self) -> bool {
        self.path.hosts_share || self.traffic.iter().any(|block| block.route.tick.is_some())
    }

    /// The shortest propagation delay of any packet between its host and the first link.
    pub fn shortest_delay(&self) -> Span {
        let shortest = |block: &Traffic| {
            if block.route.delay_at != DelayAt::Senders {
                return Span::ZERO;
            }
            block.workload.shortest_rtt().unwrap_or_else(|| block.rtt.shortest()) / 2
        };
        self.traffic.iter().map(shortest).min().unwrap_or(Span::ZERO)
    }

    /// The mean rate of a link within the measured window, bits a second. A link that does not change has its rate.
    pub fn capacity_bps(&self, link: &Link, side: usize) -> f64 {
        let [from, to, _] = self.edges();
        link.mean_bps(side, self.seed, from, to)
    }

    /// The key under which a link stands.
    pub fn key_of(&self, link: &Link) -> String {
        if link.name == LINK && !self.has_routes() { LINK.to_owned() } else { format!("{LINKS}.{}", link.name) }
    }

    /// Whether there are several links.
    pub fn has_routes(&self) -> bool {
        self.links.len() > 1
    }
}
