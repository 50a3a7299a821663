//! Readers of web pages of today.
//!
//! A [`Reader`] reads, asks for a page, and reads again. A page is a document and many objects at several servers. The
//! document names the objects of the first wave; these name those of the next wave, which are asked for when all of
//! the wave before are there. The page is loaded when its last object is.
//!
//! Servers speak one of two protocols:
//!
//! - [`Protocol::Multiplexed`], as HTTP/2 (RFC 9113): a connection to each server carries all objects of a wave at the
//!   same time. For the time at which the last of them is there it does not matter how they are interleaved, so that
//!   they are one exchange: one request as long as all theirs, one response.
//! - [`Protocol::OneAtATime`], as HTTP/1.1 in browsers: several connections to each server, with one object on each at
//!   a time.
//!
//! Before the first request, a connection may have a handshake of one round trip, as TLS 1.3 (RFC 8446) does. It is an
//! exchange, too.
//!
//! **What a reader asks for never depends on the network**: a page with all of its sizes, servers and distances is
//! drawn when it begins, from a stream of the reader's own.
//!
//! Objects and servers of a page are those of the HTTP Archive. The Web Almanac 2024, chapter Page Weight (D. Smart and
//! J. Indigo, crawl of October 2024), has requests of desktop pages: 24, 42, 71, 115 and 176 at 10, 25, 50, 75 and
//! 90 %; a median of 18 kB of HTML; and 2,652 kB of a page in the median, which are 37 kB a request. The Web Almanac
//! 2022, chapter HTTP (V. Ruamviboonsuk), has connections of pages over HTTP/2: 4, 7, 12, 20 and 32 at the same
//! percentages. Ends of both tables were chosen. Sizes of objects spread as those of JPEG images did in the HTTP
//! Archive of April 2018, whose mean is 3.0 times their median.
//!
//! Times between pages: dwell times have a Weibull distribution of a shape below 1 (C. Liu, R. W. White and S. Dumais,
//! SIGIR 2010), of just under a minute in the mean (J. Nielsen, "How Long Do Users Stay on Web Pages?", 2011). The
//! shape was chosen so that half of them end within 13 s.

use crate::web::{Command, Exchange};
use crate::{MOST_BYTES, Residual};
use base::{Distribution, Span, Stream};

/// The population that readers are drawn from.
#[derive(Clone, Debug)]
pub struct PageModel {
    /// From the end of a page to the next one, s.
    pub think: Residual,
    /// Objects of a page, the document included; what is drawn is rounded down. They and the servers have the same
    /// quantile: pages of many objects are of many servers.
    pub objects: Distribution,
    /// Servers of a page; what is drawn is rounded down.
    pub servers: Distribution,
    /// The share of objects that come from the document's own server; the others come from any of the other servers.
    pub own_share: f64,
    /// Bytes of the document.
    pub document: Distribution,
    /// Bytes of each other object.
    pub object: Distribution,
    /// Waves of objects after the document, at least one. Objects are in any of them alike.
    pub waves: u32,
    /// How objects are asked for.
    pub protocol: Protocol,
    /// Whether connections begin with a handshake of a round trip.
    pub handshake: bool,
}

/// The distributions that pages are drawn from.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Objects of a page, the document included.
    pub objects: Distribution,
    /// Servers of a page.
    pub servers: Distribution,
    /// Bytes of the document.
    pub document: Distribution,
    /// Bytes of each other object.
    pub object: Distribution,
    /// From the end of a page to the next one, s.
    pub think: Distribution,
}

impl Drawn {
    /// Those of the model `archive2024`.
    pub fn archive2024() -> Self {
        let table = |points: &[(f64, f64)]| Distribution::Table(points.to_vec());
        Self {
            objects: table(&[
                (5.0, 0.0),
                (24.0, 0.1),
                (42.0, 0.25),
                (71.0, 0.5),
                (115.0, 0.75),
                (176.0, 0.9),
                (300.0, 1.0),
            ]),
            servers: table(&[(1.0, 0.0), (4.0, 0.1), (7.0, 0.25), (12.0, 0.5), (20.0, 0.75), (32.0, 0.9), (48.0, 1.0)]),
            document: Distribution::LogNormal { median: 18_000.0, sigma: 1.0 },
            object: Distribution::LogNormal { median: 12_500.0, sigma: 1.48 },
            think: Distribution::Weibull { scale: 27.0, shape: 0.5 },
        }
    }
}

/// How objects of one server are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// All of a wave at the same time, over one connection.
    Multiplexed,
    /// One at a time over each of so many connections.
    OneAtATime(u32),
}

impl Protocol {
    /// Connections that a page has with one server, at most.
    pub const fn parallel(self) -> u32 {
        match self {
            Self::Multiplexed => 1,
            Self::OneAtATime(parallel) => parallel,
        }
    }
}

/// Servers that a page has, at most.
pub const MOST_SERVERS: u32 = 64;
/// Objects that a page has, at most.
pub const MOST_OBJECTS: u32 = 10_000;
/// Bytes of a request: the median of PackMime-HTTP (Cao, Cleveland, Gao, Jeffay, Smith and Weigle, INFOCOM 2004).
const REQUEST_BYTES: u32 = 420;
/// Bytes of each further request of a wave over the same connection, whose fields were said before (HPACK, RFC 7541).
/// Chosen.
const FURTHER_BYTES: u32 = 80;
/// A greeting, and what the server answers with its certificates. Chosen: they depend on who signs them.
const HANDSHAKE: Exchange =
    Exchange { request_bytes: 517, response_bytes: 3_500, top_level: false, server_delay: Span::ZERO };

/// An object of the page under way.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Object {
    /// 0 of the document.
    wave: u32,
    server: u32,
    bytes: u64,
}

/// A connection of the page under way.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum Lane {
    /// There is none.
    #[default]
    Closed,
    /// It greets, and then asks this.
    Greeting(Exchange),
    /// An exchange is under way.
    Busy,
    /// Nothing is under way.
    Idle,
}

/// One who reads pages.
#[derive(Clone, Debug)]
pub struct Reader {
    stream: Stream,
    /// From the end of the page under way to the next.
    think: Span,
    /// Objects of the page that were not asked for, the next one last.
    left: Vec<Object>,
    /// How far each server is, as a quantile of round-trip times.
    rtt_units: Vec<f64>,
    lanes: Vec<Lane>,
    wave: u32,
    /// Connections on which something is under way.
    busy: u32,
}

impl Reader {
    /// A reader with a random stream of its own.
    pub fn new(stream: Stream) -> Self {
        Self { stream, think: Span::ZERO, left: Vec::new(), rtt_units: Vec::new(), lanes: Vec::new(), wave: 0, busy: 0 }
    }

    /// How long after the start of the run the first page begins. A reader is found reading, with what is left of that.
    pub fn begin(&mut self, model: &PageModel) -> Span {
        Span::from_secs_f64(model.think.draw(&mut self.stream))
    }

    /// Begins the next page.
    pub fn think_over(&mut self, model: &PageModel, out: &mut Vec<Command>) {
        debug_assert!(self.busy == 0 && self.left.is_empty(), "a reader has one page at a time");
        self.draw(model);
        self.wave = 0;
        self.ask(model, out);
    }

    /// Goes on after what was under way on `lane` is there.
    pub fn completed(&mut self, lane: u32, model: &PageModel, out: &mut Vec<Command>) {
        match self.lanes[lane as usize] {
            Lane::Greeting(ask) => {
                self.lanes[lane as usize] = Lane::Busy;
                out.push(Command::Ask { lane, ask });
            }
            _ => self.over(lane, Lane::Idle, model, out),
        }
    }

    /// Goes on after the connection of `lane` was given up. What was under way on it is lost, and with the document the
    /// rest of the page, which it would have named.
    pub fn failed(&mut self, lane: u32, model: &PageModel, out: &mut Vec<Command>) {
        if self.wave == 0 {
            self.left.clear();
        }
        self.over(lane, Lane::Closed, model, out);
    }

    /// The connection of `lane` was given up with nothing under way.
    pub fn lost(&mut self, lane: u32) {
        // The last page's connections may still be closing.
        if let Some(lane) = self.lanes.get_mut(lane as usize).filter(|lane| **lane == Lane::Idle) {
            *lane = Lane::Closed;
        }
    }

    /// Draws a page: the same draws whatever becomes of it.
    fn draw(&mut self, model: &PageModel) {
        let stream = &mut self.stream;
        self.think = Span::from_secs_f64(model.think.distribution().draw(stream));
        let unit = stream.open_unit();
        let whole = |distribution: &Distribution, most: u32| (distribution.quantile(unit) as u32).clamp(1, most);
        let servers = whole(&model.servers, MOST_SERVERS);
        let others = whole(&model.objects, MOST_OBJECTS) - 1;
        let bytes = |size: &Distribution, stream: &mut Stream| (size.draw(stream) as u64).clamp(1, MOST_BYTES);
        self.rtt_units.clear();
        self.rtt_units.extend((0..servers).map(|_| stream.open_unit()));
        let document = Object { wave: 0, server: 0, bytes: bytes(&model.document, stream) };
        self.left.extend((0..others).map(|_| {
            let (is_own, other) = (stream.chance(model.own_share), stream.below(u64::from(servers.max(2) - 1)) as u32);
            let server = if is_own || servers == 1 { 0 } else { 1 + other };
            let wave = 1 + stream.below(u64::from(model.waves)) as u32;
            Object { wave, server, bytes: bytes(&model.object, stream) }
        }));
        self.left.push(document);
        // The order in which they were drawn stays within a wave.
        self.left[..others as usize].reverse();
        self.left.sort_by_key(|object| std::cmp::Reverse(object.wave));
        self.lanes.clear();
        self.lanes.resize((servers * model.protocol.parallel()) as usize, Lane::Closed);
    }

    /// What was under way on `lane` is over, and the connection is now as it is said.
    fn over(&mut self, lane: u32, now: Lane, model: &PageModel, out: &mut Vec<Command>) {
        self.busy -= 1;
        self.lanes[lane as usize] = now;
        if let Protocol::OneAtATime(parallel) = model.protocol {
            self.ask_one(lane / parallel, parallel, model, out);
        }
        if self.busy == 0 {
            if let Some(next) = self.left.last() {
                self.wave = next.wave;
                self.ask(model, out);
            } else {
                self.end(out);
            }
        }
    }

    /// Asks for the objects of a wave, as far as there are connections.
    fn ask(&mut self, model: &PageModel, out: &mut Vec<Command>) {
        for server in 0..self.rtt_units.len() as u32 {
            match model.protocol {
                Protocol::Multiplexed => self.ask_all(server, model, out),
                Protocol::OneAtATime(parallel) => while self.ask_one(server, parallel, model, out) {},
            }
        }
    }

    /// Asks one server for all of its objects of the wave.
    fn ask_all(&mut self, server: u32, model: &PageModel, out: &mut Vec<Command>) {
        let (mut count, mut bytes) = (0, 0_u64);
        let wave = self.wave;
        self.left.retain(|object| {
            let is_asked = object.wave == wave && object.server == server;
            if is_asked {
                count += 1;
                bytes = (bytes + object.bytes).min(MOST_BYTES);
            }
            !is_asked
        });
        if count > 0 {
            self.ask_on(server, server, count, bytes, model, out);
        }
    }

    /// Asks one server for the next of its objects of the wave, if there is one and a connection is free for it.
    fn ask_one(&mut self, server: u32, parallel: u32, model: &PageModel, out: &mut Vec<Command>) -> bool {
        let own = self.left.iter().rposition(|object| object.wave == self.wave && object.server == server);
        let Some(place) = own else { return false };
        let mut lanes = server * parallel..(server + 1) * parallel;
        let is = |lanes: &[Lane], lane: u32, what: Lane| lanes[lane as usize] == what;
        let free = lanes.clone().find(|&lane| is(&self.lanes, lane, Lane::Idle));
        let Some(lane) = free.or_else(|| lanes.find(|&lane| is(&self.lanes, lane, Lane::Closed))) else {
            return false;
        };
        let bytes = self.left.remove(place).bytes;
        self.ask_on(lane, server, 1, bytes, model, out);
        true
    }

    fn ask_on(&mut self, lane: u32, server: u32, count: u32, bytes: u64, model: &PageModel, out: &mut Vec<Command>) {
        let ask = Exchange {
            request_bytes: REQUEST_BYTES + FURTHER_BYTES * (count - 1),
            response_bytes: bytes,
            top_level: self.wave == 0,
            server_delay: Span::ZERO,
        };
        self.busy += 1;
        let is_open = self.lanes[lane as usize] == Lane::Idle;
        let greets = !is_open && model.handshake;
        self.lanes[lane as usize] = if greets { Lane::Greeting(ask) } else { Lane::Busy };
        let first = if greets { HANDSHAKE } else { ask };
        out.push(if is_open {
            Command::Ask { lane, ask }
        } else {
            Command::Open { lane, rtt_unit: self.rtt_units[server as usize], ask: first, last: false }
        });
    }

    /// The page is loaded: its connections are closed.
    fn end(&mut self, out: &mut Vec<Command>) {
        for (lane, state) in self.lanes.iter_mut().enumerate().filter(|(_, state)| **state == Lane::Idle) {
            *state = Lane::Closed;
            out.push(Command::Close { lane: lane as u32 });
        }
        out.push(Command::Think { span: self.think });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of `objects` at `servers`, all of constant sizes.
    fn model(objects: f64, servers: f64, waves: u32, protocol: Protocol, handshake: bool) -> PageModel {
        PageModel {
            think: Residual::of(&Distribution::Constant(30.0)),
            objects: Distribution::Constant(objects),
            servers: Distribution::Constant(servers),
            own_share: 0.5,
            document: Distribution::Constant(18_000.0),
            object: Distribution::Constant(2_000.0),
            waves,
            protocol,
            handshake,
        }
    }

    /// Objects that a request asks for.
    fn asked_for(ask: Exchange) -> u32 {
        1 + (ask.request_bytes - REQUEST_BYTES) / FURTHER_BYTES
    }

    /// Commands in short: o opens and asks, g opens and greets, a asks (each with the objects asked for), c closes, t
    /// thinks.
    fn in_short(out: &mut Vec<Command>) -> String {
        let count = |ask: Exchange| format!("{}x{}", asked_for(ask), ask.response_bytes);
        let words = out.drain(..).map(|command| match command {
            Command::Open { lane, ask, last, .. } => {
                assert!(!last, "connections stay open");
                if ask == HANDSHAKE { format!("g{lane}") } else { format!("o{lane}:{}", count(ask)) }
            }
            Command::Ask { lane, ask } => format!("a{lane}:{}", count(ask)),
            Command::Close { lane } => format!("c{lane}"),
            Command::Think { span } => {
                assert_eq!(span, Span::from_secs(30));
                "t".to_owned()
            }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Begins a page, then lets what is under way on `lanes` end in turn, as failures where negative (-1 is lane 0).
    fn page(model: &PageModel, lanes: &[i8]) -> Vec<String> {
        let mut reader = Reader::new(Stream::named(1, "reader"));
        let mut out = Vec::new();
        reader.think_over(model, &mut out);
        let mut steps = vec![in_short(&mut out)];
        for &lane in lanes {
            match u32::try_from(lane) {
                Ok(lane) => reader.completed(lane, model, &mut out),
                Err(_) => reader.failed((-1 - lane) as u32, model, &mut out),
            }
            steps.push(in_short(&mut out));
        }
        steps
    }

    #[test]
    fn one_connection_carries_all_objects_of_a_wave() {
        let h2 = Protocol::Multiplexed;
        assert_eq!(page(&model(1.0, 1.0, 1, h2, false), &[0]), ["o0:1x18000", "c0 t"]);
        assert_eq!(page(&model(6.9, 1.0, 1, h2, false), &[0, 0]), ["o0:1x18000", "a0:5x10000", "c0 t"]);
        // With a handshake before the document alone.
        let steps = page(&model(6.0, 1.0, 1, h2, true), &[0, 0, 0]);
        assert_eq!(steps, ["g0", "a0:1x18000", "a0:5x10000", "c0 t"]);
    }

    #[test]
    fn browsers_of_one_at_a_time_open_as_many_connections_as_they_may() {
        let h1 = Protocol::OneAtATime(3);
        let steps = page(&model(6.0, 1.0, 1, h1, false), &[0, 2, 0, 1, 0, 2]);
        // Five objects: one on the connection that is there, two on new ones, two on the first that are free.
        let object = "1x2000";
        let all = format!("a0:{object} o1:{object} o2:{object}");
        let [second, first] = [2, 0].map(|lane| format!("a{lane}:{object}"));
        assert_eq!(steps, ["o0:1x18000", &all, &second, &first, "", "", "c0 c1 c2 t"]);
        // Two objects leave the third connection closed.
        assert_eq!(
            page(&model(3.0, 1.0, 1, h1, true), &[0, 0, 1, 0, 1])[1..],
            ["a0:1x18000", &format!("a0:{object} g1"), &format!("a1:{object}"), "", "c0 c1 t"]
        );
    }

    #[test]
    fn a_wave_waits_for_the_one_before() {
        let mut reader = Reader::new(Stream::named(3, "reader"));
        let model = model(200.0, 5.0, 3, Protocol::Multiplexed, false);
        let mut out = Vec::new();
        reader.think_over(&model, &mut out);
        let (mut objects, mut rounds) = (0, 0);
        let mut servers = std::collections::BTreeSet::new();
        while !matches!(out.last(), Some(Command::Think { .. })) {
            let mut under_way = Vec::new();
            for command in out.drain(..) {
                let (Command::Open { lane, ask, .. } | Command::Ask { lane, ask }) = command else { panic!("it asks") };
                objects += asked_for(ask);
                under_way.push(lane);
                servers.insert(lane);
            }
            rounds += 1;
            let (last, others) = under_way.split_last().expect("something is under way");
            for &lane in others {
                reader.completed(lane, &model, &mut out);
                assert!(out.is_empty(), "something of the wave is under way");
            }
            reader.completed(*last, &model, &mut out);
        }
        assert_eq!((objects, rounds, servers.len()), (200, 4, 5));
    }

    #[test]
    fn a_lost_connection_loses_what_was_under_way_and_what_the_document_would_have_named() {
        let h2 = Protocol::Multiplexed;
        // With the document, or the handshake before it, the page is over: nobody has named its objects.
        assert_eq!(page(&model(6.0, 1.0, 1, h2, false), &[-1]), ["o0:1x18000", "t"]);
        assert_eq!(page(&model(6.0, 1.0, 1, h2, true), &[-1]), ["g0", "t"]);
        // A wave is lost: the next is asked for on a new connection.
        let steps = page(&model(60.0, 1.0, 2, h2, false), &[0, -1, 0]);
        assert!(steps[2].starts_with("o0:") && steps[3] == "c0 t", "{steps:?}");
        let mut reader = Reader::new(Stream::named(1, "reader"));
        let (mut out, model) = (Vec::new(), model(6.0, 1.0, 1, Protocol::OneAtATime(2), false));
        reader.think_over(&model, &mut out);
        reader.completed(0, &model, &mut out);
        reader.completed(1, &model, &mut out);
        out.clear();
        reader.failed(1, &model, &mut out);
        assert_eq!(in_short(&mut out), "o1:1x2000");
        reader.completed(0, &model, &mut out);
        assert_eq!(in_short(&mut out), "a0:1x2000");
        reader.completed(0, &model, &mut out);
        assert_eq!(in_short(&mut out), "");
        reader.lost(0);
        reader.completed(1, &model, &mut out);
        assert_eq!(in_short(&mut out), "c1 t");
    }

    #[test]
    fn the_network_does_not_change_the_demands() {
        let own = PageModel {
            objects: Distribution::Uniform(2.0, 80.0),
            servers: Distribution::Uniform(1.0, 12.0),
            object: Distribution::LogNormal { median: 12_000.0, sigma: 1.4 },
            think: Residual::of(&Distribution::Exponential { mean: 10.0 }),
            ..model(1.0, 1.0, 2, Protocol::OneAtATime(6), true)
        };
        // The sizes asked for in each page, whatever ends first.
        let demands = |takes_last: bool| {
            let mut reader = Reader::new(Stream::named(4, "traffic/0/user/7"));
            let (mut out, mut under_way, mut pages) = (Vec::new(), Vec::new(), Vec::new());
            while pages.len() < 200 {
                if under_way.is_empty() {
                    reader.think_over(&own, &mut out);
                    pages.push((Vec::new(), Span::ZERO));
                } else {
                    let place = if takes_last { under_way.len() - 1 } else { 0 };
                    reader.completed(under_way.remove(place), &own, &mut out);
                }
                let page = pages.last_mut().expect("a page was begun");
                for command in out.drain(..) {
                    match command {
                        Command::Open { lane, ask, .. } | Command::Ask { lane, ask } => {
                            under_way.push(lane);
                            page.0.extend((ask != HANDSHAKE).then_some(ask.response_bytes));
                        }
                        Command::Close { .. } => {}
                        Command::Think { span } => page.1 = span,
                    }
                }
            }
            pages.iter_mut().for_each(|page| page.0.sort_unstable());
            pages.pop();
            pages
        };
        assert_eq!(demands(true), demands(false));
    }
}
