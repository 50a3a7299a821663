//! The rules, with hosts over a network that takes the same time for anything.

use base::{Span, Time};
use record::Demanded;
use scenario::{Resolved, Scenario, resolve};
use session::{
    ACCEPTOR, Command, Exchanges, Heard, INITIATOR, Opening, Owner, Player, Recorder, Sources, Transfer, Turn,
};
use std::collections::BTreeMap;
use traffic::Exchange;

const SECONDS: u64 = 20;

fn scenario(blocks: &str) -> Resolved {
    let text = format!("duration = \"{SECONDS}s\"\nwarmup = \"0s\"\n[record]\ndemands = true\n{blocks}");
    let read = |name: &str| match name {
        "v.cvec" => Ok("SEQ 0 1 1 1\nw 1000 1000\nr 100000\nl 0 0\n> 10\nt 0\n< 10\nt 0\n\
                        SEQ 500000 1 1 1\nw 1000 1000\nr 50000\nl 0 0\n> 20\nt 0\n< 30\nt 0\n"
            .to_owned()),
        "d.csv" => Ok("connection,time_s,direction,rtt_s,request_bytes,response_bytes,server_delay_s,last\n\
                       0,0.5,forward,0.05,300,1000,0,0\n1,0.6,reverse,0.02,310,2000,0,1\n0,0.7,,,320,3000,0,1\n"
            .to_owned()),
        _ => Err(format!("{name}: there is no such file")),
    };
    resolve(&text, "rules.toml", &[], &read).expect("it makes sense")
}

/// Who carries out what applications want.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Drivers {
    /// One has both ends of each connection, as the simulator has.
    Whole,
    /// Each side has one of its own, as in a live run: of exchanges each end knows its part alone.
    Apart,
}

/// What happens to data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Arrives,
    /// All but its last byte; then the end that sent it is no more.
    CutOff,
}

enum Event {
    /// A source of this driver has its turn.
    Due(usize, u32),
    /// Something comes to an end of a connection.
    Comes(usize, usize, Heard),
    /// An end of a connection is open, or has waited.
    Turn(usize, usize),
}

/// What the two ends of a connection have.
enum Ends {
    Exchanges([Exchanges; 2]),
    Transfer(Transfer),
    Vector(Player),
}

struct Connection {
    opening: Opening,
    /// The driver of who opened it, its name there, and the number that results have.
    driver: usize,
    owner: Option<Owner>,
    row: u32,
    ends: Ends,
    /// What was asked last, and what the acceptor has when all of it has come.
    asked: Option<(Exchange, bool, u64)>,
    is_open: [bool; 2],
    heard: [Heard; 2],
    has_closed: [bool; 2],
    has_failed: bool,
}

/// Hosts over a network that takes half a round trip for anything and opens connections as TCP does: for the initiator
/// after a round trip, for the acceptor half of one later.
struct World<'s> {
    scenario: &'s Scenario,
    drivers: Drivers,
    fate: Fate,
    half: Span,
    now: Time,
    sources: Vec<Sources<'s, usize>>,
    connections: Vec<Connection>,
    agenda: BTreeMap<(Time, usize), Event>,
    sequence: usize,
    /// What was commanded and what came of it, whatever drivers call their sources and connections.
    said: Vec<String>,
}

impl<'s> World<'s> {
    fn run(resolved: &'s Resolved, drivers: Drivers, half: Span, fate: Fate) -> Self {
        let scenario = resolved.scenario().expect("it has no load to calibrate");
        let sides: &[_] = if drivers == Drivers::Whole { &[None] } else { &[Some(0), Some(1)] };
        let sources = sides.iter().map(|&side| Sources::new(scenario, side, usize::MAX)).collect();
        let (now, agenda, sequence) = (Time::ZERO, BTreeMap::new(), 0);
        let (connections, said) = (Vec::new(), Vec::new());
        let mut world = Self { scenario, drivers, fate, half, now, sources, connections, agenda, sequence, said };
        for driver in 0..sides.len() {
            let firsts: Vec<_> = world.sources[driver].all().iter().map(|source| source.first).collect();
            firsts.into_iter().zip(0..).for_each(|(first, source)| world.at(first, Event::Due(driver, source)));
        }
        while let Some(((now, _), event)) = world.agenda.pop_first() {
            if now > Time::ZERO + Span::from_secs(SECONDS) {
                break;
            }
            world.now = now;
            match event {
                Event::Due(driver, source) => world.tell(driver, |sources, out| sources.due(source, now, now, out)),
                Event::Turn(index, end) => {
                    world.connections[index].is_open[end] = true;
                    world.attend(index, end);
                }
                Event::Comes(index, end, what) => {
                    let heard = &mut world.connections[index].heard[end];
                    heard.received += what.received;
                    heard.is_closed |= what.is_closed;
                    world.attend(index, end);
                }
            }
        }
        world.said.sort();
        world
    }

    fn at(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.agenda.insert((at, self.sequence), event);
    }

    fn tell(&mut self, driver: usize, tell: impl FnOnce(&mut Sources<'s, usize>, &mut Vec<Command>)) {
        let mut out = Vec::new();
        tell(&mut self.sources[driver], &mut out);
        out.into_iter().for_each(|command| self.carry_out(driver, command));
    }

    fn carry_out(&mut self, driver: usize, command: Command) {
        let ns = self.now.ns();
        match command {
            Command::Wake { source, at } => self.at(at, Event::Due(driver, source)),
            Command::Open { opening, owner, ask, is_last, since } => {
                self.said.push(format!("{ns} open {opening:?} {ask:?} {is_last} {since:?}"));
                let row = owner.map_or(opening.number, |owner| self.sources[driver].row(owner));
                let index = self.open(driver, opening, owner, row, Ends::Exchanges(Default::default()));
                self.ask(index, ask, is_last, since);
                if let Some(owner) = owner {
                    self.sources[driver].keep(owner, index, is_last);
                }
            }
            Command::Ask { owner, ask, is_last, since } => {
                let index = self.sources[driver].connection(owner);
                assert_ne!(index, usize::MAX, "whoever asks again has a connection");
                self.said.push(format!("{ns} ask {ask:?} {is_last} {since:?} {}", self.sources[driver].row(owner)));
                self.ask(index, ask, is_last, since);
            }
            Command::Close { owner } => {
                let index = self.sources[driver].connection(owner);
                assert_ne!(index, usize::MAX, "whoever closes has a connection");
                self.said.push(format!("{ns} close {}", self.sources[driver].row(owner)));
                self.does(index, INITIATOR, &Turn { close: true, ..Turn::default() });
            }
            Command::Transfer { opening, bytes } => {
                self.said.push(format!("{ns} transfer {opening:?} {bytes:?}"));
                let transfer = Ends::Transfer(Transfer::new(bytes, self.now));
                self.open(driver, opening, None, opening.number, transfer);
            }
            Command::Vector { opening, vector, copy } => {
                self.said.push(format!("{ns} vector {opening:?} {vector} {copy}"));
                let tmix = self.scenario.traffic[usize::from(opening.block)].workload.vectors().expect("it has them");
                let player = Ends::Vector(Player::new(&tmix.vectors, vector, self.now));
                self.open(driver, opening, None, opening.number, player);
            }
            Command::Media { source } => {
                let source = &self.sources[driver].all()[source as usize];
                self.said.push(format!("{ns} media {} {} {}", source.block, source.number, source.client));
            }
            Command::Datagram { source, bytes } => {
                let source = &self.sources[driver].all()[source as usize];
                let line = format!("{ns} datagram {} {} {} {bytes}", source.block, source.number, source.client);
                self.said.push(line);
            }
        }
    }

    fn open(&mut self, driver: usize, opening: Opening, owner: Option<Owner>, row: u32, ends: Ends) -> usize {
        let (asked, heard) = (None, [Heard::default(); 2]);
        let (is_open, has_closed, has_failed) = ([false; 2], [false; 2], false);
        let connection =
            Connection { opening, driver, owner, row, ends, asked, is_open, heard, has_closed, has_failed };
        self.connections.push(connection);
        let index = self.connections.len() - 1;
        self.at(self.now + self.half * 2, Event::Turn(index, INITIATOR));
        self.at(self.now + self.half * 3, Event::Turn(index, ACCEPTOR));
        index
    }

    fn ask(&mut self, index: usize, ask: Exchange, is_last: bool, since: Time) {
        let connection = &mut self.connections[index];
        let received = connection.heard.map(|heard| heard.received);
        connection.asked = Some((ask, is_last, received[ACCEPTOR] + u64::from(ask.request_bytes)));
        let Ends::Exchanges([exchanges, _]) = &mut connection.ends else { panic!("it has exchanges") };
        // A driver of one side does not know what the other has received.
        let known = if self.drivers == Drivers::Whole { received } else { [received[INITIATOR], 0] };
        exchanges.ask(&ask, is_last, since, known, self.now);
        self.attend(index, INITIATOR);
    }

    /// The turn of an end, and one for nothing after it.
    fn attend(&mut self, index: usize, end: usize) {
        for _ in 0..2 {
            let (scenario, now) = (self.scenario, self.now);
            let connection = &mut self.connections[index];
            if !connection.is_open[end] || connection.has_failed {
                return;
            }
            let heard = connection.heard[end];
            let block = connection.opening.block;
            let turn = match &mut connection.ends {
                Ends::Exchanges([exchanges, _]) if end == INITIATOR || self.drivers == Drivers::Whole => {
                    exchanges.turn(end, heard, now)
                }
                Ends::Exchanges([_, exchanges]) => {
                    // It reads what is asked out of what has come.
                    let is_all = |asked: &mut (_, _, u64)| heard.received >= asked.2;
                    if let Some((ask, is_last, _)) = connection.asked.take_if(is_all) {
                        let ask = Exchange { request_bytes: 0, ..ask };
                        exchanges.ask(&ask, is_last, now, [0, heard.received], now);
                    }
                    exchanges.turn(end, heard, now)
                }
                Ends::Transfer(transfer) => transfer.turn(end, heard, now),
                Ends::Vector(player) => {
                    let tmix = scenario.traffic[usize::from(block)].workload.vectors().expect("it has them");
                    player.turn(&tmix.vectors, end, heard, now)
                }
            };
            self.does(index, end, &turn);
        }
    }

    /// Carries out what an end does in its turn.
    fn does(&mut self, index: usize, end: usize, turn: &Turn) {
        let (now, half) = (self.now, self.half);
        let connection = &mut self.connections[index];
        let &mut Connection { opening, driver, owner, row, .. } = connection;
        let closes = turn.close && !connection.has_closed[end];
        connection.has_closed[end] |= closes;
        connection.has_failed |= turn.is_cut_off;
        let is_data = !matches!(connection.ends, Ends::Exchanges(_)) || end == ACCEPTOR;
        let name = format!("{} {} {row} {} {end}", now.ns(), opening.block, opening.client);
        if turn.write > 0 {
            self.said.push(format!("{name} writes {}", turn.write));
            let is_cut_off = self.fate == Fate::CutOff && is_data;
            let received = turn.write - u64::from(is_cut_off);
            // Of what has no end only a part arrives.
            let received = received.min(1 << 50);
            self.at(now + half, Event::Comes(index, 1 - end, Heard { received, is_closed: is_cut_off }));
        }
        if closes {
            self.said.push(format!("{name} closes"));
            self.at(now + half, Event::Comes(index, 1 - end, Heard { received: 0, is_closed: true }));
        }
        if let Some(at) = turn.wake_at {
            self.at(at, Event::Turn(index, end));
        }
        if let Some(completed) = turn.completed {
            let row = completed.row(self.scenario, (opening.block, row, opening.client), now);
            self.said.push(format!("{name} completes {row:?}"));
            if let Some(owner) = owner {
                self.tell(driver, |sources, out| sources.completed(owner, now, out));
            }
        }
        if turn.is_cut_off {
            self.said.push(format!("{name} fails"));
            if let Some(owner) = owner {
                self.tell(driver, |sources, out| sources.given_up(owner, true, now, out));
            }
        }
    }

    fn count(&self, what: &str) -> usize {
        self.said.iter().filter(|line| line.contains(what)).count()
    }
}

const EVERY_KIND: &str = r#"
[[traffic]]
kind = "web"
users = 12
direction = "both"
think_mean = "2s"
[[traffic]]
kind = "web"
model = "packmime"
arrivals = "5hz"
direction = "both"
[[traffic]]
kind = "web"
model = "feldmann-exp2"
users = 6
direction = "both"
[[traffic]]
kind = "poisson"
arrivals = "4hz"
request = "300b"
size = "2000b"
direction = "both"
[[traffic]]
kind = "poisson"
arrivals = "4hz"
request = "0b"
size = "2000b"
direction = "both"
[[traffic]]
kind = "bulk"
flows = 3
direction = "both"
[[traffic]]
kind = "cbr"
rate = "100kbit"
direction = "both"
flows = 2
[[traffic]]
kind = "probe"
flows = 2
direction = "both"
[[traffic]]
kind = "tmix"
vectors = "v.cvec"
direction = "both"
"#;

/// The live hosts of each side have the sources and the ends of that side, the simulator those of both.
#[test]
fn the_hosts_of_both_sides_ask_together_what_one_driver_of_both_asks() {
    let resolved = scenario(EVERY_KIND);
    for fate in [Fate::Arrives, Fate::CutOff] {
        let half = Span::from_ms(12);
        let [whole, apart] = [Drivers::Whole, Drivers::Apart].map(|drivers| World::run(&resolved, drivers, half, fate));
        for what in ["open", "ask", "close ", "datagram", "transfer", "vector", "writes", "closes"] {
            // Whoever fails has no connection to ask on again, or to close.
            let is_there = fate == Fate::Arrives || !["ask", "close "].contains(&what);
            assert!(!is_there || whole.count(what) > 0, "{what}: the scenario has all there is");
        }
        let different = whole.said.iter().zip(&apart.said).find(|(one, other)| one != other);
        assert_eq!(different, None, "{fate:?}");
        assert_eq!(whole.said.len(), apart.said.len());
    }
}

/// Who has said all closes, and the other end after it: a transfer from its opener, a vector as it says.
#[test]
fn what_comes_to_its_end_is_a_result_and_both_ends_close() {
    let resolved = scenario(EVERY_KIND);
    let world = World::run(&resolved, Drivers::Whole, Span::from_ms(12), Fate::Arrives);
    assert_eq!(world.count("fails"), 0);
    let (mut transfers, mut vectors) = (0, 0);
    for connection in &world.connections {
        let is_over = connection.has_closed[INITIATOR] && connection.has_closed[ACCEPTOR];
        match connection.ends {
            Ends::Transfer(transfer) if transfer.is_complete() => transfers += usize::from(is_over),
            Ends::Vector(_) => vectors += usize::from(is_over),
            _ => {}
        }
    }
    let results = |block: usize| {
        let of_block = format!(" {block} ");
        world
            .said
            .iter()
            .filter(|line| line.contains("completes") && line[line.find(' ').unwrap_or(0)..].starts_with(&of_block))
            .count()
    };
    assert!(transfers > 50, "some eighty in 20 s: {transfers}");
    // Those of the last 12 ms are complete, and have not seen the other end close.
    assert!(results(4) - transfers <= 2);
    // Twice two vectors with an exchange each.
    assert_eq!((vectors, results(8)), (2, 2));
    // Blocks of exchanges, and those without an end.
    assert!([0, 1, 2, 3].iter().all(|&block| results(block) > 0) && results(5) == 0);
}

#[test]
fn what_is_cut_off_is_no_result_and_its_source_goes_on() {
    let resolved = scenario(EVERY_KIND);
    let world = World::run(&resolved, Drivers::Whole, Span::from_ms(12), Fate::CutOff);
    assert_eq!(world.count("completes"), 0);
    let is_failure = |line: &&String, block: &str, after: u64| {
        let mut words = line.split(' ');
        let ns = words.next().and_then(|ns| ns.parse::<u64>().ok());
        line.ends_with("fails") && words.next() == Some(block) && ns > Some(after)
    };
    let failures = |block, after| world.said.iter().filter(|line| is_failure(line, block, after)).count();
    for block in ["0", "1", "2", "3", "4"] {
        assert!(failures(block, 10_000_000_000) > 0, "{block}: who got nothing asks for the next");
    }
    assert_eq!(failures("8", 0), 2, "vectors fail, too");
}

#[test]
fn a_recording_says_itself_what_is_asked_when() {
    let resolved = scenario("[[traffic]]\nkind = \"replay\"\ndemands = \"d.csv\"\n");
    // An exchange takes two round trips where its connection is opened for it.
    let asked = |takes: Span| {
        let mut said = World::run(&resolved, Drivers::Whole, takes / 4, Fate::Arrives).said;
        said.retain(|line| line.contains("open") || line.contains("ask"));
        said
    };
    let quick = asked(Span::from_ms(10));
    assert_eq!(quick.len(), 3, "{quick:?}");
    assert!(quick[0].starts_with("500000000 open") && quick[1].starts_with("600000000 open"), "{quick:?}");
    assert!(quick[2].starts_with("700000000 ask"), "on the connection that is there: {quick:?}");
    // An answer that is late keeps the next request waiting, which counts from its instant all the same.
    let slow = asked(Span::from_ms(300));
    assert!(slow[2].starts_with("800000000 ask") && slow[2].contains("0.7"), "{slow:?}");
}

#[test]
fn what_is_recorded_is_what_was_asked_for_but_for_recordings() {
    let resolved =
        scenario("[[traffic]]\nkind = \"web\"\nusers = 2\n[[traffic]]\nkind = \"replay\"\ndemands = \"d.csv\"\n");
    let mut recorder = Recorder::new(resolved.scenario().expect("it has no load to calibrate"));
    assert!(recorder.is_on());
    let ask = Exchange { request_bytes: 300, response_bytes: 9, top_level: true, server_delay: Span::ZERO };
    let now = Time::ZERO + Span::from_ms(7);
    recorder.asked((0, 5), &ask, false, Some((1, Span::from_ms(20))), now);
    recorder.asked((1, 6), &ask, false, None, now);
    recorder.closed((0, 5), now);
    let rows: Vec<_> = recorder.take().collect();
    assert_eq!(rows.iter().map(|row| (row.traffic, row.connection, row.at)).collect::<Vec<_>>(), [(0, 5, now); 2]);
    // A client on the right has its responses flow forward.
    let opened = Some((0, Span::from_ms(20)));
    let server_delay = Span::ZERO;
    assert_eq!(
        rows[0].demanded,
        Demanded::Exchange { opened, request_bytes: 300, response_bytes: 9, server_delay, is_last: false }
    );
    assert_eq!(rows[1].demanded, Demanded::Close);
    assert_eq!(recorder.take().count(), 0, "each once");
}
