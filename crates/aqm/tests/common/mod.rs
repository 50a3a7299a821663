//! What the tests of disciplines share: a packet, a recorder, and values from text.

// Each test binary uses some of it.
#![allow(dead_code)]

use aqm::param::{Kind, Length, Param, Refusal, Selector, Text, Value, Values};
use aqm::registry::{self, Row, Site};
use aqm::{Cause, Headers, Packet, Qdisc, Tap};
use base::{Ecn, FlowKey, Rate, Span, Stream, Time};

/// A packet with a number to know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    pub number: u64,
    pub size: u32,
    pub ecn: Ecn,
    pub flow: u64,
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
        FlowKey(self.flow)
    }
}

/// What a discipline told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Accepted(u64),
    Marked(u64, Cause),
    Dropped(u64, Cause),
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

impl Headers<Parcel> for Recorder {}

/// Hears nothing.
pub struct Deaf;

impl<P> Tap<P> for Deaf {
    fn dropped(&mut self, _packet: P, _cause: Cause, _now: Time) {}
    fn marked(&mut self, _packet: &P, _cause: Cause, _now: Time) {}
}

impl<P> Headers<P> for Deaf {}

/// Builds a discipline from its defaults and what is written; an error says what was wrong with it.
pub fn build<P: Packet + Send + 'static>(
    name: &str,
    written: &[(String, String)],
    rate: Rate,
    stream: Stream,
) -> Result<Box<dyn Qdisc<P> + Send>, String> {
    let values = values(name, written, rate)?;
    Ok(registry::build(name, &values, Site { rate, stream }))
}

/// The resolved values of a discipline.
pub fn values(name: &str, written: &[(String, String)], rate: Rate) -> Result<Values, String> {
    let row = registry::row(name).ok_or(format!("there is no discipline {name}"))?;
    let mut values = Values::default();
    for (key, text) in written {
        let param = row.param(key).ok_or(format!("{name} has no parameter {key}"))?;
        values.fill(param.name.clone(), read(param, text)?);
    }
    completed(row, values, rate).map_err(|refusal| format!("{name}: {refusal}"))
}

/// Values with what is not given: defaults, and what the discipline computes.
pub fn completed(row: &Row<Text>, values: Values, rate: Rate) -> Result<Values, Refusal> {
    told(row, values, Some(rate))
}

/// The same before a link that tells of this rate, or of none.
pub fn told(row: &Row<Text>, mut values: Values, rate: Option<Rate>) -> Result<Values, Refusal> {
    for param in row.params.iter().filter(|param| !param.default.is_empty()) {
        values.fill(
            param.name.clone(),
            read(param, &param.default).expect("every default is of its kind and in its range"),
        );
    }
    row.complete(&mut values, rate)?;
    Ok(values)
}

/// The short form of [`build`] for values known to be good.
pub fn built<P: Packet + Send + 'static>(
    name: &str,
    written: &[(&str, &str)],
    rate: Rate,
    stream: Stream,
) -> Box<dyn Qdisc<P> + Send> {
    let written: Vec<_> = written.iter().map(|(key, text)| (key.to_string(), text.to_string())).collect();
    build(name, &written, rate, stream).expect("the values are good")
}

/// Reads one written value: the units that vectors and defaults use, no more.
pub fn read(param: &Param<Text>, text: &str) -> Result<Value, String> {
    let number = |unit: &str| text.strip_suffix(unit).and_then(|number| number.parse::<f64>().ok());
    let packets = || number("p").map(|x| Value::Length(Length::Packets(x)));
    let bytes = || number("b").map(|x| Value::Length(Length::Bytes(x)));
    let time = || {
        [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]
            .iter()
            .find_map(|(unit, scale)| number(unit).map(|x| Value::Time(Span::from_secs_f64(x * scale))))
    };
    let value = match param.kind {
        Kind::Length => packets().or_else(bytes),
        Kind::LengthOrTime => packets().or_else(bytes).or_else(time),
        Kind::Time => time(),
        Kind::Frequency => number("hz").map(Value::Frequency),
        Kind::Rate => [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)]
            .iter()
            .find_map(|(unit, scale)| number(unit).map(|x| Value::Rate(Rate::from_bps((x * scale) as u64)))),
        Kind::Number => number("").map(Value::Number),
        Kind::Integer => text.parse().ok().map(Value::Integer),
        Kind::Flag => text.parse().ok().map(Value::Flag),
        Kind::Size => number("b").map(|x| Value::Size(x as u32)),
        Kind::Selector => Selector::parse(text).map(Value::Selector),
        Kind::Word(words) => words.iter().find(|word| **word == text).map(|word| Value::Word(word)),
    };
    let value = value.ok_or(format!("{} = {text}: expected {}", param.name, param.expected()))?;
    param.admit(&value).map_err(|expected| format!("{} = {text}: expected {expected}", param.name))?;
    Ok(value)
}

/// Batches of which a mean and its error are reckoned.
const BATCHES: usize = 50;

/// Mean and standard error of consecutive samples.
pub fn estimate(samples: &[f64]) -> (f64, f64) {
    let chunks = samples.chunks_exact(samples.len() / BATCHES);
    let means: Vec<f64> = chunks.map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect();
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    (mean, (means.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0) / n).sqrt())
}
