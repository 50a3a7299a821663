//! A bench for two endpoints: virtual time, a fixed delay each way, and a script that says what becomes of each
//! packet. It writes down every packet; the story is printed when a test fails.

// Each test binary uses some of it.
#![allow(dead_code, unused_imports)]

use base::{Ecn, Span, Time};
use packet::spoil_option;
use std::collections::BTreeMap;
use std::fmt::Arguments;
use tcp::{Config, Emit, Endpoint, Flags, Segment};

pub use packet::{Fate, Kind, Packet, policer};
pub use stack::{delayed, plain, stack};

mod packet;
mod stack;

/// The end that opens the connection.
pub const CLIENT: usize = 0;
/// The other one.
pub const SERVER: usize = 1;

/// One way, on every bench: the round trip takes 100 ms.
pub const DELAY: Span = Span::from_ms(50);

/// What an application does.
#[derive(Clone, Copy, Debug)]
enum Action {
    Write(u64),
    Close,
    Finish(u64),
    Hold,
    Read(u64),
    Resume,
}

/// An application that writes when it has received enough.
#[derive(Clone, Copy, Debug)]
struct Answer {
    end: usize,
    after: u64,
    bytes: u64,
    then_close: bool,
}

type Script = Box<dyn FnMut(&Packet) -> Fate>;

/// What an endpoint sent in one call.
#[derive(Default)]
struct Sent(Vec<Segment>);

impl Emit for Sent {
    fn emit(&mut self, segment: Segment) {
        self.0.push(segment);
    }
}

/// Two endpoints and what is between them.
pub struct Bench {
    pub ends: [Endpoint; 2],
    pub configs: [Config; 2],
    pub now: Time,
    /// Everything that was sent.
    pub story: Vec<Packet>,
    /// Whether packets are written down, and taken both ways, the plain and the general: not in long runs.
    pub writes_down: bool,
    /// Time between two packets with data, as a link of finite rate makes it; none by default.
    pub spacing: Span,
    /// How many packets may wait for that link; any number by default.
    pub buffer: Option<u64>,
    /// How long a packet takes one way: [`DELAY`] by default.
    pub delay: Span,
    /// Whether an end closes when it has heard all of the other.
    pub closes_with_peer: [bool; 2],
    on_the_way: BTreeMap<(Time, u64), (usize, Segment)>,
    actions: BTreeMap<(Time, u64), (usize, Action)>,
    at_opening: Vec<(usize, Action)>,
    answers: Vec<Answer>,
    rules: Vec<(usize, Kind, usize, Fate)>,
    script: Option<Script>,
    counts: [[usize; 6]; 2],
    highest: [u64; 2],
    link_free_at: [Time; 2],
    sequence: u64,
    is_open: bool,
    sent: Sent,
}

impl Bench {
    /// Both ends with the same configuration; the client opens at time zero.
    pub fn new(config: &Config) -> Self {
        Self::of(config, config)
    }

    /// A client and a server; the client opens at time zero.
    pub fn of(client: &Config, server: &Config) -> Self {
        let mut ends = [Endpoint::new(client), Endpoint::new(server)];
        ends[SERVER].listen(server);
        Self {
            ends,
            configs: [client.clone(), server.clone()],
            now: Time::ZERO,
            story: vec![],
            writes_down: true,
            spacing: Span::ZERO,
            buffer: None,
            delay: DELAY,
            closes_with_peer: [true; 2],
            on_the_way: BTreeMap::new(),
            actions: BTreeMap::new(),
            at_opening: vec![],
            answers: vec![],
            rules: vec![],
            script: None,
            counts: [[0; 6]; 2],
            highest: [0; 2],
            link_free_at: [Time::ZERO; 2],
            sequence: 0,
            is_open: false,
            sent: Sent::default(),
        }
    }

    /// `end` writes `bytes` as soon as it is open.
    pub fn write(&mut self, end: usize, bytes: u64) -> &mut Self {
        self.at_opening.push((end, Action::Write(bytes)));
        self
    }

    /// `end` closes as soon as it is open, after what it writes then.
    pub fn close(&mut self, end: usize) -> &mut Self {
        self.at_opening.push((end, Action::Close));
        self
    }

    /// `end` writes `bytes` at `ms`.
    pub fn write_at(&mut self, ms: u64, end: usize, bytes: u64) -> &mut Self {
        self.act_at(ms, end, Action::Write(bytes))
    }

    /// `end` closes at `ms`.
    pub fn close_at(&mut self, ms: u64, end: usize) -> &mut Self {
        self.act_at(ms, end, Action::Close)
    }

    /// `end` writes `bytes` at `ms`, and closes by a call of its own.
    pub fn finish_at(&mut self, ms: u64, end: usize, bytes: u64) -> &mut Self {
        self.act_at(ms, end, Action::Finish(bytes))
    }

    /// `end` stops reading at `ms`.
    pub fn hold_at(&mut self, ms: u64, end: usize) -> &mut Self {
        self.act_at(ms, end, Action::Hold)
    }

    /// `end`, which has stopped reading, reads `bytes` at `ms`.
    pub fn read_at(&mut self, ms: u64, end: usize, bytes: u64) -> &mut Self {
        self.act_at(ms, end, Action::Read(bytes))
    }

    /// `end` reads what waits at `ms`, and goes on reading.
    pub fn resume_at(&mut self, ms: u64, end: usize) -> &mut Self {
        self.act_at(ms, end, Action::Resume)
    }

    fn act_at(&mut self, ms: u64, end: usize, action: Action) -> &mut Self {
        self.sequence += 1;
        self.actions.insert((at_ms(ms), self.sequence), (end, action));
        self
    }

    /// `end` writes `bytes` when it has received `after` in all, and closes then if asked to.
    pub fn answer(&mut self, end: usize, after: u64, bytes: u64, then_close: bool) -> &mut Self {
        self.answers.push(Answer { end, after, bytes, then_close });
        self
    }

    /// Loses these packets of a kind from one end, counted from 1.
    pub fn lose(&mut self, from: usize, kind: Kind, numbers: &[usize]) -> &mut Self {
        numbers.iter().for_each(|&number| self.rules.push((from, kind, number, Fate::Lose)));
        self
    }

    /// Marks these packets of a kind from one end.
    pub fn mark(&mut self, from: usize, kind: Kind, numbers: &[usize]) -> &mut Self {
        numbers.iter().for_each(|&number| self.rules.push((from, kind, number, Fate::Mark)));
        self
    }

    /// Makes these packets late.
    pub fn delay(&mut self, from: usize, kind: Kind, numbers: &[usize], by: Span) -> &mut Self {
        numbers.iter().for_each(|&number| self.rules.push((from, kind, number, Fate::Late(by))));
        self
    }

    /// Decides about every packet that no rule names.
    pub fn script(&mut self, script: impl FnMut(&Packet) -> Fate + 'static) -> &mut Self {
        self.script = Some(Box::new(script));
        self
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) -> &mut Self {
        self.run_until(Time::NEVER)
    }

    /// Runs up to and including `ms`.
    pub fn run_to(&mut self, ms: u64) -> &mut Self {
        self.run_until(at_ms(ms))
    }

    fn run_until(&mut self, end: Time) -> &mut Self {
        while self.step(end) {}
        self
    }

    /// The next thing that happens, if it does so by `end`: packets before timers, timers before applications.
    pub fn step(&mut self, end: Time) -> bool {
        if !self.is_open {
            self.is_open = true;
            self.with(CLIENT, |endpoint, config, now, out| endpoint.open(config, now, out));
            self.attend(CLIENT);
            self.attend(SERVER);
        }
        let arrival = self.on_the_way.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        let action = self.actions.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
        let wakes = [self.ends[CLIENT].next_wake(), self.ends[SERVER].next_wake()];
        let wake = wakes[CLIENT].min(wakes[SERVER]);
        let next = arrival.min(wake).min(action);
        if next > end || !next.is_set() {
            return false;
        }
        assert!(next >= self.now, "time went back");
        self.now = next;
        let who = if arrival == next {
            let (_, (to, segment)) = self.on_the_way.pop_first().expect("there is a first packet");
            self.arrive(to, &segment);
            to
        } else if wake == next {
            let who = usize::from(wakes[CLIENT] != next);
            self.both_ways(who, format_args!("after a timer"), Endpoint::on_wake_generally, Endpoint::on_wake);
            assert!(self.ends[who].next_wake() > next, "the timer that fired is still due");
            who
        } else {
            let (_, (who, action)) = self.actions.pop_first().expect("there is a first action");
            self.act(who, action);
            who
        };
        self.attend(who);
        true
    }

    /// A segment arrives at `to`. It goes the general way too, at a copy of the endpoint: that comes to the same state,
    /// and sends the same.
    fn arrive(&mut self, to: usize, segment: &Segment) {
        self.both_ways(
            to,
            format_args!("after {segment:?}"),
            |endpoint, config, now, out| endpoint.on_segment_generally(segment, config, now, out),
            |endpoint, config, now, out| endpoint.on_segment(segment, config, now, out),
        );
    }

    /// An end sends what it may, and at a copy of the endpoint the general way too.
    fn push(&mut self, end: usize) {
        let when = format_args!("after what the application did");
        self.both_ways(end, when, Endpoint::push_generally, Endpoint::push);
    }

    /// Lets an end do something; a copy of it does the same `generally`, and comes to the same.
    fn both_ways(
        &mut self,
        who: usize,
        when: Arguments<'_>,
        generally: impl FnOnce(&mut Endpoint, &Config, Time, &mut Sent),
        shortly: impl FnOnce(&mut Endpoint, &Config, Time, &mut Sent),
    ) {
        let copy = self.writes_down.then(|| {
            let (mut end, mut sent) = (self.ends[who].clone(), Sent::default());
            generally(&mut end, &self.configs[who], self.now, &mut sent);
            (end, sent)
        });
        let mut sent = std::mem::take(&mut self.sent);
        shortly(&mut self.ends[who], &self.configs[who], self.now, &mut sent);
        if let Some((end, sent_generally)) = copy {
            assert_eq!(sent.0, sent_generally.0, "what is sent {when}");
            assert!(self.ends[who] == end, "the state {when}\n  short: {:?}\ngeneral: {end:?}", self.ends[who]);
        }
        for segment in sent.0.drain(..) {
            self.send(who, segment);
        }
        self.sent = sent;
    }

    fn act(&mut self, end: usize, action: Action) {
        match action {
            Action::Write(bytes) => self.ends[end].write(bytes),
            Action::Close => self.ends[end].close(),
            Action::Finish(bytes) => {
                self.ends[end].write(bytes);
                self.with(end, |endpoint, config, now, out| endpoint.finish(config, now, out));
            }
            Action::Hold => self.with(end, |endpoint, config, _, _| endpoint.hold(config)),
            Action::Read(bytes) => self.with(end, |endpoint, config, now, out| endpoint.read(bytes, config, now, out)),
            Action::Resume => self.with(end, |endpoint, config, now, out| endpoint.resume(config, now, out)),
        }
        self.push(end);
    }

    /// The application's turn.
    fn attend(&mut self, end: usize) {
        let mut has_written = false;
        if self.ends[end].is_established() {
            let endpoint = &mut self.ends[end];
            self.at_opening.retain(|&(who, action)| {
                let is_due = who == end;
                if is_due {
                    match action {
                        Action::Write(bytes) => endpoint.write(bytes),
                        Action::Close => endpoint.close(),
                        Action::Finish(_) | Action::Hold | Action::Read(_) | Action::Resume => {}
                    }
                    has_written = true;
                }
                !is_due
            });
            self.answers.retain(|answer| {
                let is_due = answer.end == end && endpoint.received() >= answer.after;
                if is_due {
                    endpoint.write(answer.bytes);
                    if answer.then_close {
                        endpoint.close();
                    }
                    has_written = true;
                }
                !is_due
            });
            if self.closes_with_peer[end] && endpoint.peer_closed() && !endpoint.is_closing() {
                endpoint.close();
                has_written = true;
            }
        }
        if has_written {
            self.push(end);
        }
    }

    fn with(&mut self, end: usize, action: impl FnOnce(&mut Endpoint, &Config, Time, &mut Sent)) {
        let mut sent = std::mem::take(&mut self.sent);
        action(&mut self.ends[end], &self.configs[end], self.now, &mut sent);
        for segment in sent.0.drain(..) {
            self.send(end, segment);
        }
        self.sent = sent;
    }

    fn send(&mut self, from: usize, mut segment: Segment) {
        let kind = self.kind_of(from, &segment);
        self.highest[from] = self.highest[from].max(segment.end());
        let number = &mut self.counts[from][kind as usize];
        *number += 1;
        let mut packet = Packet { at: self.now, from, kind, number: *number, segment, fate: Fate::Pass };
        let rule = self.rules.iter().find(|rule| (rule.0, rule.1, rule.2) == (from, kind, packet.number));
        packet.fate = match (rule, &mut self.script) {
            (Some(rule), _) => rule.3,
            (None, Some(script)) => script(&packet),
            (None, None) => Fate::Pass,
        };
        if self.writes_down {
            self.story.push(packet);
        }
        let mut leaves = self.now;
        if segment.payload > 0 {
            leaves = leaves.max(self.link_free_at[from]);
            let waiting = leaves.since(self.now).ns() / self.spacing.ns().max(1);
            if self.buffer.is_some_and(|most| waiting >= most) {
                return;
            }
            self.link_free_at[from] = leaves + self.spacing;
        }
        let arrives = leaves + self.delay;
        let arrives = match packet.fate {
            Fate::Lose => return,
            Fate::Pass => arrives,
            Fate::Late(by) => arrives + by,
            Fate::Field(field) => {
                segment.ecn = field;
                arrives
            }
            Fate::Bits(bits) => {
                let others = segment.flags.without(Flags::of_ace(7));
                segment.flags = others.with(Flags::of_ace(bits));
                arrives
            }
            Fate::NoOption | Fate::ZeroedOption => {
                spoil_option(&mut segment, packet.fate == Fate::ZeroedOption);
                arrives
            }
            Fate::Mark => {
                segment.ecn = if segment.ecn.is_ect() { Ecn::Ce } else { segment.ecn };
                arrives
            }
        };
        self.sequence += 1;
        self.on_the_way.insert((arrives, self.sequence), (1 - from, segment));
    }

    fn kind_of(&self, from: usize, segment: &Segment) -> Kind {
        let has_fin = segment.flags.has(Flags::FIN);
        match (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK)) {
            (true, false) => Kind::Syn,
            (true, true) => Kind::SynAck,
            _ if segment.payload == 0 && !has_fin => Kind::Ack,
            _ if segment.seq < self.highest[from] => Kind::Resent,
            _ if segment.payload == 0 => Kind::Fin,
            _ => Kind::Data,
        }
    }

    /// When packets of a kind were sent, in ms.
    pub fn times(&self, from: usize, kind: Kind) -> Vec<u64> {
        self.packets(from, kind).map(|packet| in_ms(packet.at)).collect()
    }

    /// The packets of a kind from one end.
    pub fn packets(&self, from: usize, kind: Kind) -> impl Iterator<Item = &Packet> {
        self.story.iter().filter(move |packet| packet.from == from && packet.kind == kind)
    }

    /// The data and FINs of one end, new and again: when (ms), and which segments (counted from 1, in units of
    /// `mss`); those sent at one instant together.
    pub fn flights(&self, from: usize) -> Vec<(u64, Vec<u64>)> {
        let mss = u64::from(self.configs[from].mss);
        let mut flights: Vec<(u64, Vec<u64>)> = vec![];
        let is_data = |kind| matches!(kind, Kind::Data | Kind::Resent | Kind::Fin);
        for packet in self.story.iter().filter(|packet| packet.from == from && is_data(packet.kind)) {
            let (at, segment) = (in_ms(packet.at), (packet.segment.seq - 1) / mss + 1);
            match flights.last_mut() {
                Some(last) if last.0 == at => last.1.push(segment),
                _ => flights.push((at, vec![segment])),
            }
        }
        flights
    }

    /// The pure acknowledgements of one end: when (ms), and how many segments of the other's it has in order.
    pub fn acks(&self, from: usize) -> Vec<(u64, u64)> {
        let mss = u64::from(self.configs[from].mss);
        self.packets(from, Kind::Ack).map(|packet| (in_ms(packet.at), (packet.segment.ack - 1) / mss)).collect()
    }

    /// Asserts that everything that was written arrived and that both ends are through.
    pub fn assert_complete(&self, to_server: u64, to_client: u64) {
        assert_eq!([self.ends[SERVER].received(), self.ends[CLIENT].received()], [to_server, to_client]);
        assert_eq!([self.ends[CLIENT].acknowledged(), self.ends[SERVER].acknowledged()], [to_server, to_client]);
        assert!(self.ends.iter().all(|end| end.is_done() && !end.is_aborted()), "both ends are through");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.story.iter().rev().take(400).rev().for_each(|packet| eprintln!("{packet}"));
            for (end, name) in self.ends.iter().zip(["client", "server"]) {
                eprintln!(
                    "{name}: cwnd {} ssthresh {} next wake {:?} {:?}",
                    end.cwnd(),
                    end.ssthresh(),
                    end.next_wake(),
                    end.stats()
                );
            }
        }
    }
}

/// The instant `ms` milliseconds into the run.
pub fn at_ms(ms: u64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}

/// An instant in milliseconds; it must be a whole number of them.
pub fn in_ms(at: Time) -> u64 {
    assert_eq!(at.ns() % 1_000_000, 0, "{at:?} is not a whole number of milliseconds");
    at.ns() / 1_000_000
}
