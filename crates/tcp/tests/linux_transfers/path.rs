//! The same path and the same applications as in `benches/peers/linux/transfers_path.py`, between two endpoints.

use crate::record::{Record, Transfer, Word};
use base::{Ecn, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use tcp::{
    ByteCounts, Config, Control, EcnMode, EcnOption, Emit, Endpoint, Flags, Hystart, Order, Repair, SackBlocks, Segment,
};

/// What the answer is counted in, in bytes: a full segment of Linux's.
const MSS: u64 = 1448;
/// Bytes of the request.
const REQUEST: u64 = 300;
/// Longer than any timer that is met here.
const PATIENCE: Span = Span::from_secs(200);

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// One transfer, as aqmlab does it.
pub struct Replay {
    pub completed_us: Option<f64>,
    pub sent: u64,
    pub server: Vec<Word>,
    pub client: Vec<Word>,
    pub again: Vec<Word>,
    pub windows: Vec<(f64, f64)>,
    /// The server's threshold in the end, in segments; none if it never had one.
    pub threshold: Option<f64>,
}

/// The stack of a record's hosts; none where the controller is not there.
pub fn stack(record: &Record) -> Option<Config> {
    let linux = (tcp::profile("linux").expect("a built-in profile").config)();
    let control = match record.cc.as_str() {
        "reno" | "newreno" => Control::Reno,
        "cubic" => Control::Cubic,
        "dctcp" => Control::Dctcp,
        "bbr" => Control::Bbr,
        _ => return None,
    };
    let ecn = record.ecn;
    // HyStart is CUBIC's (tcp_cubic.c).
    let hystart = if control == Control::Cubic { linux.hystart } else { Hystart::Off };
    // Where the kernel's device parted the segments of a burst, it sent bursts; elsewhere gso_max_segs was 1.
    let pacing_burst = if record.sends_bursts { linux.pacing_burst } else { 1 };
    // Linux without SACK is NewReno.
    let repair = if record.cc == "newreno" { Repair::NewReno } else { Repair::Rack };
    // tcp_ca_needs_ecn: every packet of such a controller is ECN-capable.
    let is_capable = control == Control::Dctcp;
    let linux = Config {
        ect_on_control: is_capable,
        ect_on_retransmit: is_capable,
        ecn_option: match record.option {
            0 => EcnOption::Off,
            1 => EcnOption::LinuxMinimum,
            2 => EcnOption::Linux,
            _ => EcnOption::LinuxPersist,
        },
        ..linux
    };
    Some(Config { repair, control, hystart, pacing_burst, ecn, ..linux })
}

/// The stacks of a transfer's hosts, where these are told for themselves (`tcp_ecn`): what a client asks for, and what
/// a server grants.
fn stacks(transfer: &Transfer, config: &Config) -> [Config; 2] {
    let Some([client, server]) = transfer.peers else { return [config.clone(), config.clone()] };
    let asks = match client {
        0 | 2 | 5 => EcnMode::Off,
        1 | 4 => EcnMode::On,
        _ => EcnMode::Accurate,
    };
    let grants = match server {
        0 => EcnMode::Off,
        1 | 2 => EcnMode::On,
        _ => EcnMode::Accurate,
    };
    // tcp_ca_needs_ecn: such a controller asks for ECN and grants it, whatever the hosts do.
    let needs = |ecn| if config.control == Control::Dctcp && ecn == EcnMode::Off { EcnMode::On } else { ecn };
    [asks, grants].map(|ecn| Config { ecn: needs(ecn), ..config.clone() })
}

/// Does a transfer once more.
pub fn replay(record: &Record, transfer: &Transfer, config: &Config) -> Replay {
    let configs = stacks(transfer, config);
    let mut path = Path::new(record, transfer, &configs);
    path.run();
    let threshold = path.ends[SERVER].ssthresh() / MSS as f64;
    path.replay.threshold = threshold.is_finite().then(|| threshold.floor());
    path.replay
}

struct Path<'a> {
    configs: &'a [Config; 2],
    /// Packets are told in bytes.
    in_bytes: bool,
    ends: [Endpoint; 2],
    now: Time,
    rate_bps: u64,
    delay: Span,
    script: Script,
    free_at: [Time; 2],
    due: BTreeMap<(Time, u64), (usize, Segment)>,
    order: u64,
    /// Packets that wait for as many more of their direction.
    held: Vec<(u64, usize, Segment)>,
    bytes: u64,
    /// Bytes of the parts of the answer that are not written yet.
    parts: VecDeque<u64>,
    pause: Span,
    written: u64,
    /// When the server has the next part.
    writes_at: Time,
    has_asked: bool,
    highest: u64,
    replay: Replay,
}

impl<'a> Path<'a> {
    fn new(record: &Record, transfer: &Transfer, configs: &'a [Config; 2]) -> Self {
        let mut ends = [Endpoint::new(&configs[CLIENT]), Endpoint::new(&configs[SERVER])];
        ends[SERVER].listen(&configs[SERVER]);
        Self {
            configs,
            in_bytes: record.option > 0,
            ends,
            now: Time::ZERO,
            rate_bps: record.rate_bps,
            delay: Span::from_us(record.rtt_ms * 500),
            script: Script::new(&transfer.rules),
            free_at: [Time::ZERO; 2],
            due: BTreeMap::new(),
            order: 0,
            held: vec![],
            bytes: transfer.segments * MSS,
            parts: transfer.parts.iter().map(|segments| segments * MSS).collect(),
            pause: Span::from_ms(transfer.pause_ms),
            written: 0,
            writes_at: Time::NEVER,
            has_asked: false,
            highest: 0,
            replay: Replay {
                completed_us: None,
                sent: 0,
                server: vec![],
                client: vec![],
                again: vec![],
                windows: vec![],
                threshold: None,
            },
        }
    }

    fn run(&mut self) {
        self.with(CLIENT, |end, config, now, out| end.open(config, now, out));
        while !(self.due.is_empty() && self.ends.iter().all(Endpoint::is_done)) {
            let arrival = self.due.first_key_value().map_or(Time::NEVER, |(&(at, _), _)| at);
            let wakes = [self.ends[CLIENT].next_wake(), self.ends[SERVER].next_wake()];
            let next = arrival.min(wakes[CLIENT]).min(wakes[SERVER]).min(self.writes_at);
            if next > Time::ZERO + PATIENCE {
                return;
            }
            self.now = next;
            if arrival == next {
                let (_, (to, segment)) = self.due.pop_first().expect("there is a first packet");
                self.with(to, |end, config, now, out| end.on_segment(&segment, config, now, out));
                self.attend(to);
            } else if self.writes_at == next {
                self.write_part();
            } else {
                let who = usize::from(wakes[CLIENT] != next);
                self.with(who, |end, config, now, out| end.on_wake(config, now, out));
            }
        }
    }

    /// The application's turn.
    fn attend(&mut self, who: usize) {
        if !self.ends[who].is_established() {
            return;
        }
        if who == CLIENT {
            if !self.has_asked {
                self.has_asked = true;
                self.write(CLIENT, REQUEST);
            }
            if self.ends[CLIENT].received() == self.bytes && self.replay.completed_us.is_none() {
                self.replay.completed_us = Some(in_us(self.now));
            } else if self.ends[CLIENT].received() == self.written && !self.writes_at.is_set() && self.written > 0 {
                self.writes_at = self.now + self.pause;
            }
            if self.ends[CLIENT].peer_closed() && !self.ends[CLIENT].is_closing() {
                self.close(CLIENT);
            }
        } else if self.ends[SERVER].received() == REQUEST && self.written == 0 {
            self.write_part();
        }
    }

    /// The server writes the next part of its answer, and closes after the last.
    fn write_part(&mut self) {
        self.writes_at = Time::NEVER;
        let Some(bytes) = self.parts.pop_front() else { return };
        self.written += bytes;
        self.write(SERVER, bytes);
        if self.parts.is_empty() {
            self.close(SERVER);
        }
    }

    fn write(&mut self, who: usize, bytes: u64) {
        self.ends[who].write(bytes);
        self.with(who, |end, config, now, out| end.push(config, now, out));
    }

    fn close(&mut self, who: usize) {
        self.ends[who].close();
        self.with(who, |end, config, now, out| end.push(config, now, out));
    }

    fn with(&mut self, who: usize, action: impl FnOnce(&mut Endpoint, &Config, Time, &mut Sent)) {
        let mut sent = Sent(vec![]);
        action(&mut self.ends[who], &self.configs[who], self.now, &mut sent);
        for segment in sent.0 {
            self.send(segment, who);
        }
        self.note_window();
    }

    /// A packet enters the path.
    fn send(&mut self, mut segment: Segment, from: usize) {
        let fate = self.script.fate(&segment, from);
        self.write_down(&segment, from, fate);
        let mut leaves = self.now.max(self.free_at[from]);
        match fate {
            Fate::Lose => return,
            Fate::Stall(by) => leaves += by,
            Fate::Pass | Fate::Change(_) | Fate::Late(_) | Fate::Hold(_) => {}
        }
        let own = if let Fate::Change(change) = fate { Some(change) } else { None };
        for change in own.into_iter().chain(self.script.always[from].iter().copied()) {
            change.make(&mut segment);
        }
        leaves += Span::from_ns(u64::from(segment.size) * 8 * 1_000_000_000 / self.rate_bps);
        self.free_at[from] = leaves;
        if let Fate::Hold(packets) = fate {
            self.held.push((packets, from, segment));
            return;
        }
        let late = if let Fate::Late(by) = fate { by } else { Span::ZERO };
        let arrives = leaves + self.delay + late;
        self.put(arrives, from, segment);
        for entry in self.held.iter_mut().filter(|entry| entry.1 == from) {
            entry.0 -= 1;
        }
        let (through, held) = std::mem::take(&mut self.held).into_iter().partition(|entry| entry.0 == 0);
        self.held = held;
        let through: Vec<(u64, usize, Segment)> = through;
        through.into_iter().for_each(|(_, from, segment)| self.put(arrives, from, segment));
    }

    /// A packet is on its way.
    fn put(&mut self, arrives: Time, from: usize, segment: Segment) {
        self.order += 1;
        self.due.insert((arrives, self.order), (1 - from, segment));
    }

    fn write_down(&mut self, segment: &Segment, from: usize, fate: Fate) {
        let at_us = in_us(self.now);
        let mut tail = String::new();
        let flags = [(Flags::FIN, 'F'), (Flags::ECE, 'E'), (Flags::CWR, 'W'), (Flags::AE, 'A')];
        tail.extend(flags.iter().filter(|(flag, _)| segment.flags.has(*flag)).map(|(_, name)| name));
        tail.push_str(match fate {
            Fate::Pass => "",
            Fate::Lose => "x",
            Fate::Change(_) => "m",
            Fate::Late(_) | Fate::Hold(_) | Fate::Stall(_) => "d",
        });
        if self.in_bytes {
            tail += &exact_tail(segment);
        }
        let is_syn = segment.flags.has(Flags::SYN);
        let acked = segment.ack.saturating_sub(1);
        if from == CLIENT {
            let kind = match (is_syn, segment.payload) {
                (true, _) => "S".to_owned(),
                (false, 0) if self.in_bytes => acked.to_string(),
                (false, 0) => acked.div_ceil(MSS).to_string(),
                (false, _) => "R".to_owned(),
            };
            let twice = segment.sacks.duplicate(segment.ack);
            let blocks = twice.into_iter().chain(segment.sacks.above(segment.ack)).map(|(a, b)| (a - 1, b - 1));
            let blocks: String = match self.in_bytes {
                true => blocks.map(|(a, b)| format!(",{a}-{b}")).collect(),
                false => blocks.map(|(a, b)| format!(",{}-{}", a / MSS + 1, b.div_ceil(MSS))).collect(),
            };
            self.replay.client.push(Word { at_us, what: format!("{kind}{blocks}{tail}") });
            return;
        }
        let kind = match (is_syn, segment.payload, segment.flags.has(Flags::FIN)) {
            (true, _, _) => "S".to_owned(),
            (false, 0, false) if self.in_bytes => format!("A{acked}"),
            (false, 0, false) => "A".to_owned(),
            (false, 0, true) => String::new(),
            (false, len, _) if self.in_bytes => format!("{}+{len}", segment.seq),
            (false, _, _) => ((segment.seq - 1) / MSS + 1).to_string(),
        };
        let word = Word { at_us, what: format!("{kind}{tail}") };
        if segment.payload > 0 {
            self.replay.sent += 1;
            if segment.seq < self.highest {
                self.replay.again.push(word.clone());
            }
            self.highest = self.highest.max(segment.seq + u64::from(segment.payload));
        }
        self.replay.server.push(word);
    }

    fn note_window(&mut self) {
        let window = (self.ends[SERVER].cwnd() / f64::from(self.configs[SERVER].mss)).floor();
        if self.replay.windows.last().is_none_or(|last| last.1 != window) {
            self.replay.windows.push((in_us(self.now), window));
        }
    }
}

/// What an endpoint sends in one call.
struct Sent(Vec<Segment>);

impl Emit for Sent {
    fn emit(&mut self, segment: Segment) {
        self.0.push(segment);
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Pass,
    Lose,
    Change(Change),
    Late(Span),
    /// Waits for so many more.
    Hold(u64),
    /// And what comes after it.
    Stall(Span),
}

/// What the path does to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    /// CE, if it is ECN-capable.
    Mark,
    /// Another ECN field, whatever it was.
    Field(Ecn),
    /// No AccECN option.
    Strip,
    /// An AccECN option whose counters are zero.
    Zero,
}

impl Change {
    const WORDS: [(&str, Self); 7] = [
        ("mark", Self::Mark),
        ("not-ect", Self::Field(Ecn::NotEct)),
        ("ect0", Self::Field(Ecn::Ect0)),
        ("ect1", Self::Field(Ecn::Ect1)),
        ("ce", Self::Field(Ecn::Ce)),
        ("strip", Self::Strip),
        ("zero", Self::Zero),
    ];

    fn of(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|row| row.0 == word).map(|row| row.1)
    }

    fn make(self, segment: &mut Segment) {
        match self {
            Self::Mark if segment.ecn.is_ect() => segment.ecn = Ecn::Ce,
            Self::Mark => {}
            Self::Field(field) => segment.ecn = field,
            Self::Strip => drop(take_option(segment)),
            Self::Zero => {
                if let Some(option) = take_option(segment) {
                    let size = segment.size;
                    segment.carry(&ByteCounts::new(option.order, [0; 3], option.counters().len()));
                    segment.size = size;
                }
            }
        }
    }
}

/// Takes the option off; the packet is as long as before.
fn take_option(segment: &mut Segment) -> Option<ByteCounts> {
    let option = segment.byte_counts()?;
    let mut sacks = SackBlocks::default();
    if let Some((start, end)) = segment.sacks.duplicate(segment.ack) {
        sacks.push_duplicate(start, end, segment.ack);
    }
    segment.sacks.above(segment.ack).for_each(|(start, end)| sacks.push(start - segment.ack, end - segment.ack));
    segment.sacks = sacks;
    Some(option)
}

/// The ECN field and the AccECN option.
fn exact_tail(segment: &Segment) -> String {
    let field = match segment.ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    };
    let option = segment.byte_counts().map(|option| {
        let counters: Vec<String> = option.counters().iter().map(u32::to_string).collect();
        format!("@{}:{}", u8::from(option.order == Order::Ect1First), counters.join("."))
    });
    format!("={field}{}", option.unwrap_or_default())
}

/// What becomes of which packet.
struct Script {
    fates: BTreeMap<(String, u64, u64), Fate>,
    /// What becomes of every packet of an end.
    always: [Vec<Change>; 2],
    seen: BTreeMap<(&'static str, u64), u64>,
}

impl Script {
    fn new(rules: &[String]) -> Self {
        let (mut fates, mut always) = (BTreeMap::new(), [vec![], vec![]]);
        for rule in rules {
            let words: Vec<&str> = rule.split(' ').collect();
            if words[2] == "*" {
                let change = Change::of(words[0]).expect("a change");
                always[usize::from(words[1] == "server")].push(change);
                continue;
            }
            let number = |at: usize, default: u64| {
                words.get(at).map_or(default, |word| word.parse().expect("a rule has whole numbers"))
            };
            let amount = number(4, 0);
            let fate = match words[0] {
                "lose" => Fate::Lose,
                "late" => Fate::Late(Span::from_ms(amount)),
                "hold" => Fate::Hold(amount),
                "stall" => Fate::Stall(Span::from_ms(amount)),
                other => Fate::Change(Change::of(other).unwrap_or_else(|| panic!("{rule}: {other} is no fate"))),
            };
            for which in words[2].split(',') {
                let which = which.parse().expect("a rule has whole numbers");
                fates.insert((words[1].to_owned(), which, number(3, 1)), fate);
            }
        }
        Self { fates, always, seen: BTreeMap::new() }
    }

    /// Counts one more of them.
    fn count(&mut self, what: &'static str, number: u64) -> u64 {
        let seen = self.seen.entry((what, number)).or_insert(0);
        *seen += 1;
        *seen
    }

    fn fate(&mut self, segment: &Segment, from: usize) -> Fate {
        let what = match (segment.flags.has(Flags::SYN), segment.payload, from) {
            (true, _, _) => {
                if segment.flags.has(Flags::ACK) {
                    "synack"
                } else {
                    "syn"
                }
            }
            (false, 0, CLIENT) if segment.flags.has(Flags::FIN) => "client fin",
            (false, 0, CLIENT) => {
                let acked = segment.ack.saturating_sub(1).div_ceil(MSS);
                let keys = [("acked", acked, self.count("acked", acked)), ("ack", self.count("ack", 0), 1)];
                return self.fate_of(keys);
            }
            (false, 0, _) => {
                if segment.flags.has(Flags::FIN) {
                    "fin"
                } else {
                    "server ack"
                }
            }
            (false, _, CLIENT) => "request",
            (false, _, _) => {
                let number = (segment.seq - 1) / MSS + 1;
                let attempt = self.count("data", number);
                let payload = self.count("payload", 0);
                return self.fate_of([("data", number, attempt), ("payload", payload, 1)]);
            }
        };
        let count = self.count(what, 0);
        self.fate_of([(what, count, 1)])
    }

    /// What the first rule says that is of one of these.
    fn fate_of<const N: usize>(&self, keys: [(&str, u64, u64); N]) -> Fate {
        let of = |(what, number, attempt): (&str, u64, u64)| self.fates.get(&(what.to_owned(), number, attempt));
        keys.into_iter().find_map(of).copied().unwrap_or(Fate::Pass)
    }
}

fn in_us(at: Time) -> f64 {
    at.ns() as f64 / 1e3
}
