//! CAKE against a Linux kernel's: the packets of `testdata/linux/cake-*.json` go through ours at the times at which
//! they came to the kernel's, which `benches/peers/linux/decisions.py` wrote down, and what leaves must be the same
//! packet with the same ECN field each time; where CAKE shapes, at the same time too.

use aqm::registry::Site;
use aqm::{Ack, Cause, Headers, Packet, Qdisc, Taken, Tap};
use base::{Ecn, FlowKey, Rate, Stream, Time};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Time 0 of a record, far enough from the start of our clock for all to be at rest, as in the kernel.
const EPOCH_NS: u64 = 1 << 30;
/// The kernel's timer ends within a step of its clock after it is due, and the clock is read a step later at most.
const STEPS: u64 = 2;

/// What stands for numbers in a record, in this order.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// A packet of a record.
#[derive(Clone, Debug)]
struct Recorded {
    number: usize,
    at: Time,
    size: u32,
    ecn: Ecn,
    flow: u64,
    dscp: u8,
    hosts: (u32, u32),
    ack: Option<Ack>,
}

impl Packet for Recorded {
    fn size(&self) -> u32 {
        self.size
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn flow(&self) -> FlowKey {
        FlowKey(self.flow)
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
}

/// Which packets were lost.
#[derive(Default)]
struct Lost(Vec<usize>);

impl Tap<Recorded> for Lost {
    fn dropped(&mut self, packet: Recorded, _cause: Cause, _now: Time) {
        self.0.push(packet.number);
    }
    fn marked(&mut self, _packet: &Recorded, _cause: Cause, _now: Time) {}
}

impl Headers<Recorded> for Lost {
    fn hosts(&self, packet: &Recorded) -> Option<(u32, u32)> {
        Some(packet.hosts)
    }
    fn ack(&self, packet: &Recorded) -> Option<Ack> {
        packet.ack
    }
}

/// A record of the kernel.
struct Record {
    packets: Vec<Recorded>,
    /// When, which, with which field, after how many arrivals.
    departures: Vec<(Time, usize, Ecn, usize)>,
    ours: String,
    is_shaped: bool,
    rate: Rate,
    quantum_ns: u64,
}

fn ecn(bits: i64) -> Ecn {
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][bits as usize]
}

/// An array of numbers, letters for the numbers they stand for, or one number for all.
fn column(record: &Value, name: &str, length: usize) -> Vec<i64> {
    match &record[name] {
        Value::Array(list) => list.iter().map(|value| value.as_i64().expect("numbers")).collect(),
        Value::Object(_) => {
            let of = column(&record[name], "of", 0);
            let letters = record[name]["is"].as_str().expect("letters");
            letters.chars().map(|letter| of[LETTERS.find(letter).expect("a letter or digit")]).collect()
        }
        value => vec![value.as_i64().unwrap_or_else(|| panic!("the record has {name}")); length],
    }
}

/// Sums of `column`, each with `more` to the one before, from `before` on.
fn summed(column: &[i64], more: i64, before: i64) -> Vec<i64> {
    let sum = |sum: &mut i64, step: &i64| {
        *sum += step + more;
        Some(*sum)
    };
    column.iter().scan(before, sum).collect()
}

/// Hosts by number: an address is a host, whoever has it.
fn hosts(header: &Value, flow: i64, known: &mut BTreeMap<String, u32>) -> (u32, u32) {
    let mut host = |name: &str, default: String| {
        let address = header[name].as_str().map_or(default, str::to_owned);
        let next = known.len() as u32;
        *known.entry(address).or_insert(next)
    };
    (host("src", format!("10.1.{}.{}", flow >> 8, flow & 255)), host("dst", "10.2.0.1".to_owned()))
}

/// What `acknowledgement` in `benches/peers/linux/packets.py` makes of a packet's number.
fn ack(header: &Value, number: usize, size: u32) -> Option<Ack> {
    let rule: Vec<u64> = header["acks"].as_array()?.iter().map(|value| value.as_u64().expect("numbers")).collect();
    let [first, step, repeat, echo, sack] = rule[..] else { panic!("five numbers: {rule:?}") };
    let number = number as u64;
    let acked = (first + number / repeat * step) as u32;
    let has_block = sack > 0 && number % sack == sack - 1;
    let mut blocks = [(0, 0); 4];
    blocks[0] = (acked.wrapping_add(1000), acked.wrapping_add(2000));
    Some(Ack {
        is_pure: size == if has_block { 52 } else { 40 },
        echo: u8::from(echo > 0 && number / echo.max(1) % 2 == 1),
        number: acked,
        blocks,
        count: u8::from(has_block),
    })
}

fn read(path: &Path) -> Record {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let record: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let quantum_ns = record["quantum_ns"].as_u64().expect("the record has a quantum");
    let time = |steps: i64| Time::from_ns(EPOCH_NS + steps as u64 * quantum_ns);
    let at = summed(&column(&record, "at", 0), 0, 0);
    let count = at.len();
    let [bytes, flow, field, dscp] = ["bytes", "flow", "ecn", "dscp"].map(|name| column(&record, name, count));
    let mut known = BTreeMap::new();
    let packets = (0..count).map(|n| {
        let header = &record["headers"][flow[n].to_string()];
        Recorded {
            number: n,
            at: time(at[n]),
            size: bytes[n] as u32,
            ecn: ecn(field[n]),
            flow: flow[n] as u64,
            dscp: dscp[n] as u8,
            hosts: hosts(header, flow[n], &mut known),
            ack: ack(header, n, bytes[n] as u32),
        }
    });
    let packets = packets.collect();
    let left_at = summed(&column(&record, "left_at", 0), 0, 0);
    let left = summed(&column(&record, "left", 0), 1, -1);
    let left_ecn = column(&record, "left_ecn", left.len());
    let after = summed(&column(&record, "left_after", 0), 0, 0);
    let departure = |n: usize| (time(left_at[n]), left[n] as usize, ecn(left_ecn[n]), after[n] as usize);
    let departures = (0..left.len()).map(departure).collect();
    let ours = record["ours"].as_object().expect("the record has our discipline");
    let ours: Vec<String> = ours.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let rate = Rate::from_bps(record["rate_bps"].as_u64().expect("the record has a rate"));
    let is_shaped = record["ours"].get("bandwidth").is_some();
    Record { is_shaped, packets, departures, ours: format!("{{ {} }}", ours.join(", ")), rate, quantum_ns }
}

/// Our discipline, as a scenario has it.
fn build(record: &Record) -> Box<dyn Qdisc<Recorded> + Send> {
    let text = format!("[link]\nqdisc = {}\n[[traffic]]\nkind = 'bulk'\n", record.ours);
    let no_files = |name: &str| Err(format!("no {name}"));
    let resolved = scenario::resolve(&text, "record", &[], &no_files).unwrap_or_else(|error| panic!("{error}"));
    let qdisc = &resolved.scenario().expect("nothing is left to find").link().qdiscs[0];
    qdisc.entry.build(&qdisc.values, Site { rate: record.rate, stream: Stream::named(1, "record") })
}

/// What was compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Compared {
    records: usize,
    departures: usize,
    lost: usize,
    marked: usize,
}

/// Runs a record; an error says where the two part.
fn replay(path: &Path, compared: &mut Compared) -> Result<(), String> {
    let record = read(path);
    let mut qdisc = build(&record);
    let mut tap = Lost::default();
    let mut offered = 0;
    let mut before = Time::ZERO;
    for (n, &(at, number, field, after)) in record.departures.iter().enumerate() {
        while offered < after {
            let packet = record.packets[offered].clone();
            let now = packet.at;
            qdisc.offer(packet, now, &mut tap);
            offered += 1;
        }
        let said = |what: String| format!("departure {n} at {at:?}, packet {number}: {what}");
        // A shaper is asked when it says so; it may lose packets and then have none to give yet.
        let mut due = before;
        while record.is_shaped && at.since(due).ns() > STEPS * record.quantum_ns {
            match qdisc.take(due, &mut tap) {
                Taken::Packet(held) => return Err(said(format!("ours sends {} at {due:?}", held.packet.number))),
                Taken::Later(ready) => due = ready,
                Taken::Empty => break,
            }
        }
        let held = match qdisc.take(at, &mut tap) {
            Taken::Packet(held) => held,
            Taken::Later(ready) => return Err(said(format!("ours is held back until {ready:?}"))),
            Taken::Empty => return Err(said("ours sends nothing".into())),
        };
        if held.packet.number != number || held.packet.ecn != field {
            return Err(said(format!("expected with {field:?}, got {:?}", held.packet)));
        }
        compared.marked += usize::from(field == Ecn::Ce && record.packets[number].ecn != Ecn::Ce);
        before = at;
    }
    let (lost, held) = (tap.0.len(), qdisc.backlog().packets);
    if held > 0 || offered != record.departures.len() + lost || offered != record.packets.len() {
        return Err(format!("{offered} came, {lost} were lost, {held} are held"));
    }
    compared.records += 1;
    compared.departures += record.departures.len();
    compared.lost += lost;
    Ok(())
}

#[test]
fn the_kernel_decides_the_same_packet_by_packet() {
    // What docs/disciplines/cake.md says of them.
    agree("", &Compared { records: 19, departures: 24_482, lost: 6_209, marked: 1_214 });
}

#[test]
fn linux_7_3_does_too() {
    agree("7.3", &Compared { records: 6, departures: 7_276, lost: 2_777, marked: 274 });
}

/// Replays the records in a folder of those that are kept.
fn agree(within: &str, expected: &Compared) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/linux").join(within);
    let paths = fs::read_dir(&folder).expect("the records are there").map(|entry| entry.expect("a file").path());
    let name = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let mut paths: Vec<_> = paths.filter(|path| name(path).is_some_and(|name| name.starts_with("cake-"))).collect();
    paths.sort();
    let mut compared = Compared::default();
    let failure = |path: &PathBuf| replay(path, &mut compared).err().map(|why| format!("{}: {why}", path.display()));
    let failures: Vec<String> = paths.iter().filter_map(failure).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(compared, *expected);
}
