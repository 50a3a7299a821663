//! What a Linux kernel's disciplines did with timed packets (`testdata/linux`, recorded by
//! `benches/peers/linux/decisions.py`, whose head describes the format), and ours doing the same.

#![allow(dead_code, reason = "not every test uses all of it")]

pub mod htb;

use aqm::registry::Site;
use aqm::{Cause, Headers, Packet, Qdisc, Tap};
use base::{Ecn, FlowKey, Rate, Stream, Time};
use serde_json::Value;
use std::path::PathBuf;

/// A packet that was put into the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it reached the discipline.
    pub at: Time,
    /// Bytes on the IP level.
    pub size: u32,
    /// Its flow.
    pub flow: u64,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its codepoint.
    pub dscp: u8,
}

/// A packet that came out.
#[derive(Clone, Copy, Debug)]
pub struct Exit {
    /// When the link took it.
    pub at: Time,
    /// Its number in the order of arrival, from 0.
    pub number: usize,
    /// Its ECN field then.
    pub ecn: Ecn,
    /// How many packets had arrived.
    pub after: usize,
}

/// One recorded case.
#[derive(Debug)]
pub struct Record {
    /// Its name.
    pub case: String,
    /// The whole object: `tc`, `ours`, `stats` and the rest.
    pub text: Value,
    /// In order of arrival.
    pub arrivals: Vec<Arrival>,
    /// Numbers of those whose sender was told that they are lost.
    pub refused: Vec<usize>,
    /// In order of departure.
    pub exits: Vec<Exit>,
}

/// What became of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It left as it came.
    Sent,
    /// It left marked.
    Marked,
    /// It did not leave.
    Lost,
}

/// What our discipline made of a record.
#[derive(Debug)]
pub struct Replay {
    /// Of each packet in order of arrival.
    pub fates: Vec<Fate>,
    /// What each request for a packet was answered with, next to what the kernel sent.
    pub taken: Vec<Option<usize>>,
    /// Of each lost packet: why, and how many packets had arrived.
    pub losses: Vec<Option<(Cause, usize)>>,
    /// What is left when the kernel has nothing left.
    pub held: u32,
}

/// The records whose names begin so, in the order of their names: those that are kept, or those in the folder that the
/// variable `LINUX_RECORDS` names. A folder in it may stand before the name.
pub fn records(beginning: &str) -> Vec<Record> {
    let kept = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/linux");
    let (within, beginning) = beginning.rsplit_once('/').unwrap_or(("", beginning));
    let folder = std::env::var_os("LINUX_RECORDS").map_or_else(kept, PathBuf::from).join(within);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let is_wanted = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning))
            && path.extension().is_some_and(|extension| extension == "json")
    };
    let mut paths: Vec<_> = paths.filter(is_wanted).collect();
    paths.sort();
    paths.iter().map(|path| Record::read(&std::fs::read_to_string(path).expect("a record can be read"))).collect()
}

impl Record {
    /// Reads a record.
    pub fn read(text: &str) -> Self {
        let text: Value = serde_json::from_str(text).expect("a record is JSON");
        let quantum_ns = text["quantum_ns"].as_i64().expect("quantum_ns");
        let at = sums(numbers(&text, "at"), 0);
        let each = |key: &str| entries(&text, key, at.len());
        let (sizes, flows, ecn, dscp) = (each("bytes"), each("flow"), each("ecn"), each("dscp"));
        let time = |quanta: i64| Time::from_ns((quanta * quantum_ns) as u64);
        let arrivals = (0..at.len()).map(|i| Arrival {
            at: time(at[i]),
            size: sizes[i] as u32,
            flow: flows[i] as u64,
            ecn: field(ecn[i]),
            dscp: dscp[i] as u8,
        });
        let arrivals = arrivals.collect();
        let left_at = sums(numbers(&text, "left_at"), 0);
        let left: Vec<_> = entries(&text, "left", left_at.len()).into_iter().map(|step| step + 1).collect();
        let (left, after) = (sums(left, -1), sums(entries(&text, "left_after", left_at.len()), 0));
        let left_ecn = entries(&text, "left_ecn", left_at.len());
        let exits = (0..left.len()).map(|i| Exit {
            at: time(left_at[i]),
            number: left[i] as usize,
            ecn: field(left_ecn[i]),
            after: after[i] as usize,
        });
        let exits = exits.collect();
        let refused = numbers(&text, "refused").into_iter().map(|number| number as usize).collect();
        Self { case: text["case"].as_str().expect("a name").into(), arrivals, refused, exits, text }
    }

    /// What became of each packet in the kernel.
    pub fn fates(&self) -> Vec<Fate> {
        let mut fates = vec![Fate::Lost; self.arrivals.len()];
        for exit in &self.exits {
            fates[exit.number] = fate(self.arrivals[exit.number].ecn, exit.ecn);
        }
        fates
    }

    /// A counter of `tc -s` of the discipline itself.
    pub fn counted(&self, name: &str) -> Option<u64> {
        self.text["stats"][0][name].as_u64()
    }

    /// Feeds our discipline with the same packets at the same times; it is asked for one whenever the kernel sent one.
    /// Random numbers are those of the stream `linux` of `seed`.
    pub fn replay(&self, seed: u64) -> Replay {
        let (mut qdisc, keys) = self.build(seed);
        let mut told = Told::new(self.arrivals.len());
        let mut taken = Vec::with_capacity(self.exits.len());
        let offer = |qdisc: &mut Discipline, told: &mut Told| {
            let arrival = &self.arrivals[told.arrived];
            tick(qdisc, arrival.at);
            let flow = keys.get(arrival.flow as usize).copied().unwrap_or(FlowKey(arrival.flow));
            let packet = Numbered { number: told.arrived, arrival: *arrival, ecn: arrival.ecn, flow };
            told.arrived += 1;
            qdisc.offer(packet, arrival.at, told);
        };
        for exit in &self.exits {
            while told.arrived < exit.after {
                offer(&mut qdisc, &mut told);
            }
            tick(&mut qdisc, exit.at);
            let held = qdisc.take(exit.at, &mut told).packet();
            taken.push(held.map(|held| {
                told.fates[held.packet.number] = fate(held.packet.arrival.ecn, held.packet.ecn);
                held.packet.number
            }));
        }
        while told.arrived < self.arrivals.len() {
            offer(&mut qdisc, &mut told);
        }
        Replay { fates: told.fates, taken, losses: told.losses, held: qdisc.backlog().packets }
    }

    /// Our discipline as a scenario would have it, and for each flow of the kernel's a flow that finds the queue of the
    /// same number, where queues have numbers.
    fn build(&self, seed: u64) -> (Discipline, Vec<FlowKey>) {
        let ours = self.text["ours"].as_object().expect("ours: an object");
        let mut toml =
            format!("[[traffic]]\nkind = \"bulk\"\nflows = 1\n[link]\nrate = \"{}bit\"\n", self.text["rate_bps"]);
        toml += "[link.qdisc]\n";
        for (name, value) in ours {
            toml += &format!("{name} = {value}\n");
        }
        let resolved = scenario::resolve(&toml, &self.case, &[], &|_| Err("no files here".into()));
        let resolved = resolved.unwrap_or_else(|error| panic!("{error}"));
        let spec = &resolved.scenario().unwrap_or_else(|error| panic!("{error}")).link().qdiscs[0];
        let stream = Stream::named(seed, "linux");
        let queues = ["divisor", "flows"].iter().find(|name| spec.entry.row().param(name).is_some());
        let flows = self.arrivals.iter().map(|arrival| arrival.flow as usize + 1).max().unwrap_or(0);
        let keys = queues.map_or(Vec::new(), |name| keys(stream.clone(), spec.values.integer(name), flows));
        let site = Site { rate: Rate::from_bps(self.text["rate_bps"].as_u64().expect("rate_bps")), stream };
        (spec.entry.build(&spec.values, site), keys)
    }
}

/// For each of the first `flows` queues a flow that is hashed to it with the stream's first number.
fn keys(mut stream: Stream, queues: u64, flows: usize) -> Vec<FlowKey> {
    assert!(flows as u64 <= queues, "{flows} flows for {queues} queues");
    let salt = stream.bits();
    let mut found = vec![None; flows];
    let mut missing = flows;
    for key in (0..).map(FlowKey) {
        if missing == 0 {
            break;
        }
        let queue = ((u128::from(key.hash(salt)) * u128::from(queues)) >> 64) as usize;
        if let Some(place @ None) = found.get_mut(queue) {
            *place = Some(key);
            missing -= 1;
        }
    }
    found.into_iter().map(|key| key.expect("every queue has a flow")).collect()
}

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

type Discipline = Box<dyn Qdisc<Numbered> + Send>;

fn tick(qdisc: &mut Discipline, now: Time) {
    while qdisc.next_tick() <= now {
        let due = qdisc.next_tick();
        qdisc.tick(due);
    }
}

fn fate(before: Ecn, after: Ecn) -> Fate {
    if before == after { Fate::Sent } else { Fate::Marked }
}

fn field(bits: i64) -> Ecn {
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][bits as usize]
}

/// The numbers of an array.
fn numbers(text: &Value, key: &str) -> Vec<i64> {
    let array = text[key].as_array().unwrap_or_else(|| panic!("{key}: an array"));
    array.iter().map(|number| number.as_i64().unwrap_or_else(|| panic!("{key}: {number}"))).collect()
}

/// The same, where an array may be written shorter: one number for `count` equal ones, or a letter a number.
fn entries(text: &Value, key: &str, count: usize) -> Vec<i64> {
    if let Some(one) = text[key].as_i64() {
        return vec![one; count];
    }
    let Some(letters) = text[key]["is"].as_str() else { return numbers(text, key) };
    let of = numbers(&text[key], "of");
    letters.bytes().map(|letter| of[LETTERS.iter().position(|each| *each == letter).expect("a letter")]).collect()
}

/// What is reached with each of these steps from `start`.
fn sums(steps: Vec<i64>, start: i64) -> Vec<i64> {
    let add = |sum: &mut i64, step: i64| {
        *sum += step;
        Some(*sum)
    };
    steps.into_iter().scan(start, add).collect()
}

/// A packet of a record.
pub struct Numbered {
    number: usize,
    arrival: Arrival,
    ecn: Ecn,
    flow: FlowKey,
}

impl Packet for Numbered {
    fn size(&self) -> u32 {
        self.arrival.size
    }

    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }

    fn flow(&self) -> FlowKey {
        self.flow
    }

    fn dscp(&self) -> u8 {
        self.arrival.dscp
    }
}

struct Told {
    arrived: usize,
    fates: Vec<Fate>,
    losses: Vec<Option<(Cause, usize)>>,
}

impl Told {
    fn new(packets: usize) -> Self {
        Self { arrived: 0, fates: vec![Fate::Sent; packets], losses: vec![None; packets] }
    }
}

impl Tap<Numbered> for Told {
    fn dropped(&mut self, packet: Numbered, cause: Cause, _now: Time) {
        self.fates[packet.number] = Fate::Lost;
        self.losses[packet.number] = Some((cause, self.arrived));
    }

    fn marked(&mut self, _packet: &Numbered, _cause: Cause, _now: Time) {}
}

impl Headers<Numbered> for Told {}
