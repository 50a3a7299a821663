//! The operation model: a discipline is offered packets, asked for packets, ticked early, and left alone for any time;
//! after each of these it must have kept its books. Whoever calls chooses the operations: chance (`tests/model.rs`), or
//! a fuzzer that looks for paths it has not seen (`fuzz/fuzz_targets/operations.rs`).

// Each test binary uses some of it.
#![allow(dead_code)]

use super::common::{self, Told};
use aqm::gauge::Column;
use aqm::param::{Kind, Length, Param, Selector, Text, Value, Values};
use aqm::registry::{self, Row, Site};
use aqm::{Ack, Cause, Gauges, Headers, Packet, Qdisc, Taken, Tap};
use base::{Ecn, FlowKey, Rate, Span, Stream, Time, maths};
use std::collections::BTreeMap;

/// The slowest and the fastest link.
const RATES: (f64, f64) = (64e3, 100e9);
/// Most ticks that one [`Op::Pass`] gives: a driver that slept longer jumps over the rest.
pub const MOST_TICKS: usize = 2000;

/// One thing that happens to a discipline.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// A packet arrives.
    Offer {
        /// Bytes.
        size: u32,
        /// ECN field.
        ecn: Ecn,
        /// Flow.
        flow: u8,
    },
    /// The link asks for a packet.
    Take,
    /// An early call of `tick`, which must be harmless.
    EarlyTick,
    /// Nothing happens for so long.
    Pass(Span),
}

impl Op {
    /// A time of `part` of 2^`bits` nanoseconds, from nothing to more than an hour, every order of magnitude alike.
    pub fn pass(bits: u8, part: u8) -> Self {
        let whole = (1_u64 << (bits % 43)) as f64;
        Self::Pass(Span::from_ns((whole * (f64::from(part) + 1.0) / 256.0) as u64))
    }
}

/// Operations of every kind, bursts and silences among them, from a seed.
pub fn drawn(seed: u64) -> Vec<Op> {
    let mut stream = Stream::named(seed, "operations");
    let mut ops = Vec::new();
    for _ in 0..40 {
        let op = match stream.below(13) {
            0..6 => {
                let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][stream.below(4) as usize];
                let size = [1, 40, 500, 1500, 65_535][stream.below(5) as usize];
                Op::Offer { size, ecn, flow: stream.below(5) as u8 }
            }
            6..9 => Op::Take,
            9 => Op::EarlyTick,
            _ => Op::pass(stream.below(43) as u8, stream.below(256) as u8),
        };
        ops.extend(std::iter::repeat_n(op, 1 + stream.below(40) as usize));
    }
    ops
}

/// A discipline's surroundings and parameters, as numbers that any choice makes sound.
#[derive(Clone, Debug)]
pub struct Setup {
    /// From 64 kbit/s at 0 to 100 Gb/s at the largest, every order of magnitude alike.
    pub rate: u16,
    /// The hard limit, in packets or bytes.
    pub limit: Length,
    /// Whether it may mark.
    pub ecn: bool,
    /// One choice a parameter, in turn: see [`chosen`].
    pub choices: Vec<u32>,
    /// Of its random stream.
    pub seed: u64,
}

impl Setup {
    /// The rate of the link.
    pub fn rate(&self) -> Rate {
        let x = f64::from(self.rate) / f64::from(u16::MAX);
        Rate::from_bps((RATES.0 * maths::pow(RATES.1 / RATES.0, x)) as u64)
    }

    /// The parameters of a discipline that are chosen, but for its limit and whether it may mark.
    pub fn given(&self, row: &Row<Text>) -> Values {
        let mut given = Values::default();
        let others = row.params.iter().filter(|param| !["limit", "ecn"].contains(&&*param.name));
        for (param, choice) in others.zip(self.choices.iter().cycle()) {
            if let Some(value) = chosen(param, *choice) {
                assert_eq!(param.admit(&value), Ok(()), "{} {} = {value}", row.name, param.name);
                given.fill(param.name.clone(), value);
            }
        }
        given
    }

    /// All parameters of a discipline. Values that are refused because they do not fit together become the default, the
    /// one at fault first.
    pub fn completed(&self, row: &Row<Text>, mut given: Values) -> Values {
        loop {
            let mut values = given.clone();
            values.fill("limit", Value::Length(self.limit));
            values.fill("ecn", Value::Flag(self.ecn));
            match common::completed(row, values, self.rate()) {
                Ok(values) => return values,
                Err(refusal) if given.0.remove(&refusal.param).is_some() => {}
                Err(refusal) => {
                    let (name, _) = given.0.pop_last().unwrap_or_else(|| panic!("{}: {refusal}", row.name));
                    assert_ne!(name, refusal.param);
                }
            }
        }
    }
}

/// The value of a parameter that goes with a choice; `None` is the default. Of four choices one is an end of the range,
/// one is somewhere in it, small values as often as large ones, and two are the default. Words and flags take any.
pub fn chosen(param: &Param<Text>, choice: u32) -> Option<Value> {
    let (low, high) = (param.range.0.max(-1e6), param.range.1.min(1e15));
    // Twenty bits: where in the range. Four: what it is.
    let part = f64::from(choice >> 12) / f64::from((1_u32 << 20) - 1);
    let x = match choice & 15 {
        0 | 1 => low,
        2 | 3 => high,
        // The smallest step from an end that is zero: as far below the other end as floats of the field's sizes go.
        4..=7 => {
            let from = if low > 0.0 { low } else { (high * 1e-12).max(f64::MIN_POSITIVE) };
            (from * maths::pow(high / from, part)).clamp(low, high)
        }
        _ if matches!(param.kind, Kind::Word(_) | Kind::Flag | Kind::Selector) => part,
        _ => return None,
    };
    let other_unit = choice & 16 != 0;
    Some(match param.kind {
        Kind::LengthOrTime if choice & 32 != 0 => Value::Time(Span::from_secs_f64(x)),
        Kind::Length | Kind::LengthOrTime if other_unit => Value::Length(Length::Bytes(x)),
        Kind::Length | Kind::LengthOrTime => Value::Length(Length::Packets(x)),
        Kind::Time => Value::Time(Span::from_secs_f64(x)),
        Kind::Frequency => Value::Frequency(x),
        Kind::Rate => Value::Rate(Rate::from_bps(x as u64)),
        Kind::Number => Value::Number(x),
        Kind::Integer => Value::Integer(x.ceil() as u64),
        Kind::Size => Value::Size(x.ceil() as u32),
        Kind::Flag => Value::Flag(choice & 64 != 0),
        Kind::Word(words) => Value::Word(words[(choice >> 6) as usize % words.len()]),
        Kind::Selector => {
            let mask = (choice >> 16) as u8;
            Value::Selector(Selector { value: (choice >> 8) as u8 & mask, mask })
        }
    })
}

/// A packet of the model: what a router may know of it follows from its flow and number.
#[derive(Clone, Copy, Debug)]
pub struct Parcel {
    /// Which one it is.
    pub number: u64,
    size: u32,
    ecn: Ecn,
    flow: u8,
}

impl Parcel {
    /// A packet that was offered as the `number`th.
    pub fn new(number: u64, size: u32, ecn: Ecn, flow: u8) -> Self {
        Self { number, size, ecn, flow }
    }
}

impl Packet for Parcel {
    fn size(&self) -> u32 {
        self.size
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        assert!(self.ecn.is_ect(), "only ECN-capable packets are marked: {self:?}");
        self.ecn = Ecn::Ce;
    }
    fn flow(&self) -> FlowKey {
        FlowKey(u64::from(self.flow))
    }
    fn dscp(&self) -> u8 {
        // One codepoint a flow: every class of every scheme has flows of the 256.
        self.flow.wrapping_mul(5) % 64
    }
}

/// Writes down what a discipline tells.
#[derive(Default)]
pub struct Recorder(pub Vec<Told>);

impl Tap<Parcel> for Recorder {
    fn accepted(&mut self, packet: &Parcel, _now: Time) {
        self.0.push(Told::Accepted(packet.number));
    }
    fn dropped(&mut self, packet: Parcel, cause: Cause, _now: Time) {
        self.0.push(Told::Dropped(packet.number, cause));
    }
    fn marked(&mut self, packet: &Parcel, cause: Cause, _now: Time) {
        self.0.push(Told::Marked(packet.number, cause));
    }
}

impl Headers<Parcel> for Recorder {
    fn hosts(&self, packet: &Parcel) -> Option<(u32, u32)> {
        // Some flows are between hosts nobody knows.
        (packet.flow % 5 != 4).then_some((u32::from(packet.flow % 3), u32::from(packet.flow % 2)))
    }
    fn ack(&self, packet: &Parcel) -> Option<Ack> {
        // A third of the flows are acknowledgements, some of them with more to say than others.
        let echo = u8::from(packet.number.is_multiple_of(7));
        let block = (packet.number as u32, packet.number as u32 + 10);
        let (blocks, count) = ([block; 4], u8::from(packet.number.is_multiple_of(5)));
        let is_pure = !packet.number.is_multiple_of(11);
        (packet.flow % 3 == 1).then_some(Ack { is_pure, echo, number: packet.number as u32 / 2, blocks, count })
    }
}

/// A discipline under test, and what the model knows of it.
pub struct Model {
    qdisc: Box<dyn Qdisc<Parcel> + Send>,
    row: &'static Row<Text>,
    rate: Rate,
    values: Values,
    limit: Length,
    marks: bool,
    /// Whether packets may be held back though the link is idle.
    shapes: bool,
    /// When a shaper wants to be asked again, if it said so when it was asked last.
    ready: Option<Time>,
    /// Whether the order within a flow is promised: a hash that changes puts a flow into another queue, and so does
    /// queue protection with a packet.
    keeps_order: bool,
    /// Whether ECT(0) asks for the service of L4S too.
    any_ect: bool,
    now: Time,
    offered: u64,
    bytes_held: u64,
    /// What is held, by number; every packet in here is accounted for.
    held: BTreeMap<u64, Parcel>,
    /// The last packet sent of each flow and service: the L4S bit of the ECN field asks for another one (RFC 9331), and
    /// no flow that keeps to one field is ever reordered.
    last_sent: BTreeMap<(u8, bool), u64>,
    recorder: Recorder,
}

/// Whether a discipline has this flag, and it is set.
fn is_set(values: &Values, name: &str) -> bool {
    matches!(values.0.get(name), Some(Value::Flag(true)))
}

impl Model {
    /// A discipline with the parameters of `setup`.
    pub fn new(row: &'static Row<Text>, setup: &Setup) -> Self {
        Self::given(row, setup, setup.given(row))
    }

    /// A discipline with these parameters, those that are refused left out.
    pub fn given(row: &'static Row<Text>, setup: &Setup, given: Values) -> Self {
        let rate = setup.rate();
        let values = setup.completed(row, given);
        let site = Site { rate, stream: Stream::named(setup.seed, "model") };
        Self {
            qdisc: registry::build(&row.name, &values, site),
            row,
            rate,
            limit: limit(row, &values),
            // CoDel's second threshold marks whatever `ecn` says, as in Linux.
            marks: values.flag("ecn") && row.marks || values.find_time("ce_threshold").is_some(),
            shapes: values.find_rate("bandwidth").is_some(),
            ready: None,
            keeps_order: values.find_time("perturb").is_none_or(|perturb| perturb == Span::ZERO)
                && !is_set(&values, "queue_protection"),
            any_ect: is_set(&values, "any_ect"),
            now: Time::ZERO,
            offered: 0,
            bytes_held: 0,
            held: BTreeMap::new(),
            last_sent: BTreeMap::new(),
            values,
            recorder: Recorder::default(),
        }
    }

    /// Does one thing, and looks at the books.
    pub fn apply(&mut self, op: Op) {
        match op {
            Op::Offer { size, ecn, flow } => self.offer(size, ecn, flow),
            Op::Take => self.take(),
            Op::EarlyTick => self.tick_early(),
            Op::Pass(span) => self.pass(span),
        }
        self.hear();
        self.check();
    }

    /// Takes until nothing is left, and asserts that everything comes back.
    pub fn drain(&mut self) {
        while !self.held.is_empty() {
            let before = self.held.len();
            self.ready = None;
            self.apply(Op::Take);
            if self.held.len() == before {
                let ready = self.ready.unwrap_or_else(|| panic!("{}: {before} are not given back", self.row.name));
                self.apply(Op::Pass(ready.since(self.now)));
            }
        }
    }

    fn offer(&mut self, size: u32, ecn: Ecn, flow: u8) {
        self.offered += 1;
        let parcel = Parcel::new(self.offered, size, ecn, flow);
        self.held.insert(parcel.number, parcel);
        self.bytes_held += u64::from(size);
        self.qdisc.offer(parcel, self.now, &mut self.recorder);
    }

    fn take(&mut self) {
        let before = self.held.len();
        let taken = self.qdisc.take(self.now, &mut self.recorder);
        let dropped = self.recorder.0.iter().filter(|told| matches!(told, Told::Dropped(..))).count();
        let held = match taken {
            Taken::Packet(held) => held,
            Taken::Later(ready) => {
                assert!(self.shapes, "a work-conserving discipline gives what it has: {before}, {dropped} dropped");
                assert!(dropped < before, "what is held back is there");
                assert!(ready > self.now && ready.is_set(), "a shaper gives later what it does not give now");
                self.ready = Some(ready);
                return;
            }
            // Only what the law dropped on the way out may have been there.
            Taken::Empty => return assert_eq!(dropped, before, "a discipline gives what it has"),
        };
        let number = held.packet.number;
        let offered = self.remove(number);
        assert!(held.enqueued <= self.now, "accepted before it is sent");
        assert_eq!((held.packet.size, held.packet.flow), (offered.size, offered.flow));
        let is_as_offered = held.packet.ecn == offered.ecn;
        assert!(is_as_offered || held.packet.ecn == Ecn::Ce && offered.ecn.is_ect(), "ECT becomes CE, nothing else");
        assert!(is_as_offered || self.marks, "marks only with ecn");
        let is_l4s = matches!(offered.ecn, Ecn::Ect1 | Ecn::Ce) || self.any_ect && offered.ecn.is_ect();
        let last = self.last_sent.insert((offered.flow, is_l4s), number);
        let is_in_order = last.is_none_or(|last| last < number);
        assert!(is_in_order || !self.keeps_order, "flow {} in order: {last:?}, {number}", offered.flow);
    }

    fn tick_early(&mut self) {
        let seen = |qdisc: &dyn Qdisc<Parcel>| (qdisc.backlog(), qdisc.next_tick(), qdisc.gauges());
        if self.qdisc.next_tick() > self.now {
            let before = seen(&*self.qdisc);
            self.qdisc.tick(self.now);
            assert_eq!(before, seen(&*self.qdisc), "an early call is harmless");
        }
    }

    /// Lets time pass as an egress does: ticks at their own times.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        for _ in 0..MOST_TICKS {
            let due = self.qdisc.next_tick();
            if due > until {
                break;
            }
            self.qdisc.tick(due.max(self.now));
            assert!(self.qdisc.next_tick() > due, "a tick moves on");
        }
        self.now = until;
    }

    /// Takes what was told into the books.
    fn hear(&mut self) {
        for told in std::mem::take(&mut self.recorder.0) {
            match told {
                Told::Dropped(number, cause) => {
                    self.remove(number);
                    assert!(self.row.marks || cause == Cause::TAIL, "drop-tail drops at its limit only");
                }
                Told::Marked(number, _) => {
                    assert!(self.marks, "marks only with ecn");
                    assert!(number <= self.offered);
                }
                Told::Accepted(number) => assert_eq!(number, self.offered, "only the packet in hand is accepted"),
            }
        }
    }

    fn remove(&mut self, number: u64) -> Parcel {
        let parcel = self.held.remove(&number).expect("what leaves was held");
        self.bytes_held -= u64::from(parcel.size);
        parcel
    }

    fn check(&self) {
        let backlog = self.qdisc.backlog();
        assert_eq!(u64::from(backlog.packets), self.held.len() as u64, "packets are conserved");
        assert_eq!(backlog.bytes, self.bytes_held, "bytes are conserved");
        let is_kept = match self.limit {
            Length::Packets(limit) => f64::from(backlog.packets) <= limit,
            Length::Bytes(limit) => backlog.bytes as f64 <= limit,
        };
        assert!(is_kept, "the limit is kept: {backlog:?}, {}", self.limit);
        let gauges = self.qdisc.gauges();
        for column in Column::ALL {
            let named = self.row.gauges.iter().filter(|gauge| gauge.column == column);
            let shown = usize::from(column.of(&gauges).is_some());
            assert_eq!(named.count(), shown, "the row names what is shown: {}", column.name());
        }
        let Gauges { probability, control, tracked_flows } = gauges;
        assert!(probability.is_none_or(|p| (0.0..=1.0).contains(&p)), "probability {probability:?}");
        assert!(control.is_none_or(f64::is_finite), "control {control:?}");
        assert!(tracked_flows.is_none_or(|flows| u64::from(flows) <= self.offered), "flows {tracked_flows:?}");
    }
}

/// How much may wait in all.
fn limit(row: &Row<Text>, values: &Values) -> Length {
    let limit = values.length("limit");
    if row.name != "drr" || values.word("dialect") != "linux" {
        return limit;
    }
    // Each queue has it for itself.
    let flows = values.integer("flows") as f64;
    match limit {
        Length::Packets(packets) => Length::Packets(packets * flows),
        Length::Bytes(bytes) => Length::Bytes(bytes * flows),
    }
}

/// Says which discipline broke a promise.
impl Drop for Model {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let values: Vec<_> = self.values.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
            eprintln!("{} before {} bit/s: {}", self.row.name, self.rate.bps(), values.join(" "));
        }
    }
}
