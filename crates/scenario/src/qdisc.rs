//! This file reads a discipline and its parameters by the registry's tables.

use crate::document::{self, Data, Files, Node, Place};
use crate::error::Error;
use crate::known_as::known_as;
use crate::law;
use crate::scenario::QdiscSpec;
use crate::section::{Context, Entry, Section};
use crate::units;
use crate::written::Written;
use aqm::param::{Kind, Param, Selector, Text, Value, Values};
use aqm::registry::{Entry as Registered, Registry, Row};
use base::Rate;

/// The default discipline of a link: drop-tail, as on most links there are.
const DEFAULT: &str = "pfifo";

/// Disciplines of which tc's words for RED hold.
const REDS: &[&str] = &["red", "ared", "choke"];
/// Disciplines of which tc's words for fair queueing hold.
const FAIR: &[&str] = &["fq_codel", "fq_pie"];
/// Words of tc and of papers, the disciplines of which they would be keys, and what to write instead.
const WORDS: &[(&str, &[&str], &str)] = &[
    ("memlimit", &["cake"], "tc's memlimit is limit here, such as limit = \"4mb\""),
    ("memory_limit", FAIR, "there is no limit on memory; limit may be in bytes of packets"),
    ("avpkt", REDS, "tc's avpkt is mean_packet here"),
    ("burst", REDS, "tc's burst stands for wq, which aqmlab tc --read computes from it"),
    ("bandwidth", REDS, "tc's bandwidth is capacity here; absent, it is the rate of the link"),
    ("adaptative", &["red", "ared"], "tc's adaptative is kind = \"ared\" here"),
    ("adaptive", &["red", "ared"], "tc's adaptive is kind = \"ared\" here"),
    ("harddrop", REDS, "tc's harddrop is mark_until = \"max\" here"),
    ("nodrop", REDS, "tc's nodrop is not here: what cannot be marked is dropped"),
    ("typical_rtt", &["dualpi2"], "tc computes alpha and beta from typical_rtt and max_rtt; max_rtt alone is here"),
    ("l4s_ect", &["dualpi2"], "tc's l4s_ect is not here: ECT(1) and CE are L4S"),
    ("drop_enqueue", &["dualpi2"], "tc's drop_enqueue is drop_early = true here"),
    ("memlimit", &["dualpi2"], "there is no limit on memory; limit may be in bytes of packets"),
    ("th_len", &["step"], "th_len is min_qlen_step here, as in tc"),
];

/// Reads the discipline in `section`, for a link that tells it this rate or none. Errors name the discipline, which may
/// be written elsewhere than the wrong key.
pub(crate) fn read(section: &Section<'_>, told: Option<Rate>) -> Result<QdiscSpec, Error> {
    let (entry, law) = match law::read(section)? {
        Some((entry, law)) => (entry, Some(law)),
        None => (kind(section)?, None),
    };
    let row = entry.row();
    let values = values(section, row, told)
        .map_err(|error| Error { problem: format!("{} ({})", error.problem, row.name), ..error })?;
    Ok(QdiscSpec { entry: entry.clone(), law, values })
}

fn values(section: &Section<'_>, row: &Row<Text>, told: Option<Rate>) -> Result<Values, Error> {
    let names: Vec<&str> = row.params.iter().map(|param| &*param.name).collect();
    let of_tc = |name: &str| WORDS.iter().find(|(word, kinds, _)| *word == name && kinds.contains(&&*row.name));
    if let Some((word, _, here)) = section.names().filter(|name| !names.contains(name)).find_map(of_tc) {
        return Err(section.get(word).expect("it is a name of the section").error(format!("unknown key: {here}")));
    }
    section.only(&[&["kind", law::KEY], &names])?;
    let mut values = Values::default();
    for param in &row.params {
        if let Some(entry) = section.get(&param.name) {
            values.fill(param.name.clone(), value(&entry, param)?);
        } else if !param.default.is_empty() {
            values.fill(param.name.clone(), default(row, param));
        }
    }
    if let Some(entry) = section.get("ecn")
        && !row.marks
        && values.flag("ecn")
    {
        return Err(entry.expected("false: this discipline never marks"));
    }
    let given: Vec<Text> = values.0.keys().cloned().collect();
    row.complete(&mut values, told).map_err(|refusal| {
        match (section.get(&refusal.param), values.0.get(&refusal.param)) {
            (Some(entry), _) => entry.expected(refusal.expected),
            // A given value does not fit a default.
            (None, Some(value)) => {
                let origin = if given.contains(&refusal.param) { "the default" } else { "computed" };
                section.unfit(&refusal.param, &format!("{value} ({origin})"), &refusal.expected)
            }
            (None, None) => section.missing(&refusal.param, &refusal.expected),
        }
    })?;
    // Computed values are checked as written ones are, since they will be read back.
    for param in row.params.iter().filter(|param| !given.contains(&param.name)) {
        if let Some(value) = values.0.get(&param.name) {
            param
                .admit(value)
                .map_err(|expected| section.unfit(&param.name, &format!("{value} (computed)"), &expected))?;
        }
    }
    Ok(values)
}

impl QdiscSpec {
    /// The name of the discipline in the registry.
    pub fn kind(&self) -> &str {
        &self.entry.row().name
    }

    /// Sets parameters, each by its name to what a text says, while a run goes on. The link tells the discipline this
    /// rate, or none. Texts are read as those of overrides are. The other parameters stay as they are, even those that
    /// were computed from these. The discipline takes the values over by [`Egress::retune`](aqm::Egress::retune).
    ///
    /// # Errors
    /// Says what was expected: as in a scenario, or the value before where it cannot change. Nothing is then set.
    pub fn set(&mut self, changes: &[(&str, &str)], told: Option<Rate>) -> Result<(), Error> {
        let row = self.entry.row();
        let table = self
            .values
            .0
            .iter()
            .map(|(name, value)| (name.to_string(), Node { data: data(value), place: Place::Override }));
        let mut node = Node { data: Data::Table(table.collect()), place: Place::Override };
        for (name, text) in changes {
            document::apply_override(&mut node, name, text)?;
        }
        let registry = Registry::builtin();
        let files: Files<'_> = &|_| Err("there are no files".to_owned());
        let section = Section::root(&node, Context { origin: "", files, registry: &registry });
        if let Some(entry) = section.get("kind") {
            return Err(entry.expected(format!("{} as before: it cannot change while a run goes on", row.name)));
        }
        let named = |error: Error| Error { problem: format!("{} ({})", error.problem, row.name), ..error };
        let values = values(&section, row, told).map_err(named)?;
        row.keeps_fixed(&self.values, &values).map_err(|refusal| {
            let entry = section.get(&refusal.param).expect("what differs is there");
            named(entry.expected(refusal.expected))
        })?;
        self.values = values;
        Ok(())
    }
}

/// Writes a discipline with all its values, in the order of its table.
pub(crate) fn write(qdisc: &QdiscSpec) -> Written {
    let row = qdisc.entry.row();
    let mut fields = vec![(Text::from("kind"), Written::Text(row.name.to_string()))];
    fields.extend(qdisc.law.iter().map(|file| (law::KEY.into(), Written::File(file.clone()))));
    for param in &row.params {
        if let Some(value) = qdisc.values.0.get(&param.name) {
            fields.push((param.name.clone(), write_value(value)));
        }
    }
    Written::Discipline(fields)
}

fn kind<'a>(section: &Section<'a>) -> Result<&'a Registered, Error> {
    let registry = section.registry();
    let Some(entry) = section.get("kind") else {
        return match section.names().next() {
            None => Ok(registry.find(DEFAULT).expect("the default has a row")),
            Some(_) => Err(section.missing("kind", "the name of a discipline such as pi")),
        };
    };
    let name = entry.text()?;
    let mut names: Vec<&str> = registry.own().map(|entry| &*entry.row().name).collect();
    names.push("or a law under fair queueing such as fq_red");
    let others = registry.own().flat_map(|entry| &entry.row().aliases).map(AsRef::as_ref);
    let fair = registry.fair().map(|entry| &*entry.row().name);
    registry.find(name).ok_or_else(|| match known_as(name) {
        Some(said) => entry.error(format!("unknown discipline: {said}")),
        None => entry.unknown_word(name, &names, others.chain(fair)),
    })
}

/// The value of `param` as it was written.
fn value(entry: &Entry<'_>, param: &Param<Text>) -> Result<Value, Error> {
    let value = match param.kind {
        Kind::Length => Value::Length(entry.length()?),
        Kind::LengthOrTime => length_or_time(entry)?,
        Kind::Time => Value::Time(entry.span()?),
        Kind::Frequency => Value::Frequency(entry.quantity(units::frequency)?),
        Kind::Rate => Value::Rate(entry.rate()?),
        Kind::Number => Value::Number(entry.number().ok_or_else(|| entry.expected(param.expected()))?),
        Kind::Integer => match entry.data() {
            Data::Integer(n) => Value::Integer(u64::try_from(*n).map_err(|_| entry.expected(param.expected()))?),
            _ => return Err(entry.expected(param.expected())),
        },
        Kind::Flag => Value::Flag(entry.flag()?),
        Kind::Size => {
            Value::Size(u32::try_from(entry.quantity(units::size)?).map_err(|_| entry.expected(param.expected()))?)
        }
        Kind::Word(words) => {
            let table: Vec<(&'static str, &'static str)> = words.iter().map(|&word| (word, word)).collect();
            Value::Word(entry.word(&table)?)
        }
        Kind::Selector => {
            let selector = Selector::parse(entry.text()?).ok_or_else(|| entry.expected(param.expected()))?;
            Value::Selector(selector)
        }
    };
    param.admit(&value).map_err(|expected| entry.expected(expected))?;
    Ok(value)
}

fn length_or_time(entry: &Entry<'_>) -> Result<Value, Error> {
    match (entry.length(), entry.span()) {
        (Ok(length), _) => Ok(Value::Length(length)),
        (_, Ok(span)) => Ok(Value::Time(span)),
        _ => Err(entry.expected("packets such as 24p, bytes such as 12kb or a time such as 5ms")),
    }
}

/// The default of `param`, which its table writes as a scenario would.
fn default(row: &Row<Text>, param: &Param<Text>) -> Value {
    parse(param.kind, &param.default)
        .filter(|value| param.admit(value).is_ok())
        .unwrap_or_else(|| panic!("{} {} has a default of its kind and in its range", row.name, param.name))
}

fn parse(kind: Kind, text: &str) -> Option<Value> {
    Some(match kind {
        Kind::Length => Value::Length(units::length(text).ok()?),
        Kind::LengthOrTime => match units::length(text) {
            Ok(length) => Value::Length(length),
            Err(_) => Value::Time(units::span(text).ok()?),
        },
        Kind::Time => Value::Time(units::span(text).ok()?),
        Kind::Frequency => Value::Frequency(units::frequency(text).ok()?),
        Kind::Rate => Value::Rate(units::rate(text).ok()?),
        Kind::Number => Value::Number(text.parse().ok()?),
        Kind::Integer => Value::Integer(text.parse().ok()?),
        Kind::Flag => Value::Flag(text.parse().ok()?),
        Kind::Size => Value::Size(u32::try_from(units::size(text).ok()?).ok()?),
        Kind::Word(words) => Value::Word(words.iter().copied().find(|word| *word == text)?),
        Kind::Selector => Value::Selector(Selector::parse(text)?),
    })
}

/// A value as if it had been read.
fn data(value: &Value) -> Data {
    match value {
        Value::Number(x) => Data::Number(*x),
        Value::Integer(n) => Data::Integer(i64::try_from(*n).expect("no range goes so far")),
        Value::Flag(flag) => Data::Flag(*flag),
        written => Data::Text(written.to_string()),
    }
}

fn write_value(value: &Value) -> Written {
    match value {
        Value::Number(x) => Written::Number(*x),
        Value::Integer(n) => Written::Integer(*n),
        Value::Flag(flag) => Written::Flag(*flag),
        Value::Length(_)
        | Value::Time(_)
        | Value::Frequency(_)
        | Value::Rate(_)
        | Value::Size(_)
        | Value::Word(_)
        | Value::Selector(_) => Written::Text(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_of_the_registry_is_of_its_kind_and_in_its_range() {
        for row in aqm::registry::rows() {
            for param in row.params.iter().filter(|param| !param.default.is_empty()) {
                default(row, param);
            }
        }
    }
}
