//! This file reads a document: a [`Section`] knows its keys, and an [`Entry`] says what was expected of its value.

use crate::document::{Data, Files, Node, Place, join, show};
use crate::error::{Error, shortened};
use crate::units;
use aqm::param::Length;
use aqm::registry::Registry;
use base::{Rate, Span};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The things that reading needs besides the tree.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub origin: &'a str,
    pub files: Files<'a>,
    /// The disciplines that may be named.
    pub registry: &'a Registry,
}

/// A table being read; one that is not there reads as empty.
pub(crate) struct Section<'a> {
    context: Context<'a>,
    key: String,
    place: Place,
    table: &'a BTreeMap<String, Node>,
    /// A key that is another reader's.
    hidden: Option<&'static str>,
}

/// A value being read.
pub(crate) struct Entry<'a> {
    pub context: Context<'a>,
    pub key: String,
    node: &'a Node,
}

static EMPTY: BTreeMap<String, Node> = BTreeMap::new();

impl<'a> Section<'a> {
    /// The whole document.
    pub fn root(node: &'a Node, context: Context<'a>) -> Self {
        let table = if let Data::Table(table) = &node.data { table } else { &EMPTY };
        Self { context, key: String::new(), place: node.place, table, hidden: None }
    }

    /// The disciplines that may be named.
    pub fn registry(&self) -> &'a Registry {
        self.context.registry
    }

    /// Refuses any key that is in none of the `known` lists.
    pub fn only(&self, known: &[&[&str]]) -> Result<(), Error> {
        let known = || known.iter().copied().flatten().copied();
        match self.table.iter().find(|(key, _)| !known().any(|name| name == *key)) {
            None => Ok(()),
            Some((key, node)) => {
                let problem = match called_here(key, known()).or_else(|| nearest(key, known())) {
                    Some(near) => format!("unknown key, did you mean {near}?"),
                    None => format!("unknown key, expected one of {}", known().collect::<Vec<_>>().join(", ")),
                };
                Err(self.entry(key, node).error(problem))
            }
        }
    }

    /// The value of `name`, if there is one.
    pub fn get(&self, name: &str) -> Option<Entry<'a>> {
        let node = self.table.get(name).filter(|_| self.hidden != Some(name));
        node.map(|node| self.entry(name, node))
    }

    /// This section, read as if `name` were not given.
    pub fn without(&self, name: &'static str) -> Self {
        Self { key: self.key.clone(), hidden: Some(name), ..*self }
    }

    /// The value of `name` as `read` understands it, or `default`.
    pub fn read<T>(
        &self,
        name: &str,
        default: T,
        read: impl FnOnce(&Entry<'a>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.get(name).map_or(Ok(default), |entry| read(&entry))
    }

    /// The value of `name` as `read` understands it; it has no default.
    pub fn require<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Entry<'a>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.get(name) {
            Some(entry) => read(&entry),
            None => Err(self.missing(name, expected)),
        }
    }

    /// The table called `name`.
    pub fn section(&self, name: &str) -> Result<Self, Error> {
        match self.get(name) {
            Some(entry) => entry.section("a table"),
            None => Ok(Self { key: join(&self.key, name), table: &EMPTY, hidden: None, ..*self }),
        }
    }

    /// The names that are given.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.table.keys().map(String::as_str)
    }

    /// The error that `name` is not there and has no default.
    pub fn missing(&self, name: &str, expected: &str) -> Error {
        Error {
            place: self.place.of(self.context.origin),
            key: join(&self.key, name),
            value: None,
            problem: format!("missing, expected {expected}"),
        }
    }

    /// The error that `name` is not there, and that the `value` it has by default does not fit.
    pub fn unfit(&self, name: &str, value: &str, expected: &str) -> Error {
        Error { value: Some(value.to_owned()), problem: format!("expected {expected}"), ..self.missing(name, expected) }
    }

    fn entry(&self, name: &str, node: &'a Node) -> Entry<'a> {
        Entry { context: self.context, key: join(&self.key, name), node }
    }
}

impl<'a> Entry<'a> {
    /// The error that something is wrong with this value.
    pub fn error(&self, problem: impl Into<String>) -> Error {
        let mut value = String::new();
        show(&self.node.data, &mut value);
        Error {
            place: self.node.place.of(self.context.origin),
            key: self.key.clone(),
            value: Some(shortened(&value)),
            problem: problem.into(),
        }
    }

    /// The error that this table is of no use unless something else is there.
    pub fn unused(&self, expected: &str) -> Error {
        Error { value: None, ..self.error(format!("expected {expected}")) }
    }

    /// The place where this value, or anything in it, is first mentioned. Values that are not in the file come last.
    pub fn first_mention(&self) -> Place {
        fn first(node: &Node) -> Place {
            let inner = if let Data::Table(table) = &node.data { table.values().map(first).min() } else { None };
            inner.map_or(node.place, |inner| inner.min(node.place))
        }
        first(self.node)
    }

    /// The error that this value is not what was `expected`.
    pub fn expected(&self, expected: impl Display) -> Error {
        self.error(format!("expected {expected}"))
    }

    pub fn data(&self) -> &'a Data {
        &self.node.data
    }

    /// A table.
    pub fn section(&self, expected: &str) -> Result<Section<'a>, Error> {
        match &self.node.data {
            Data::Table(table) => {
                let key = self.key.clone();
                Ok(Section { context: self.context, key, place: self.node.place, table, hidden: None })
            }
            _ => Err(self.expected(expected)),
        }
    }

    /// The items of a list.
    pub fn list(&self, expected: &str) -> Result<Vec<Entry<'a>>, Error> {
        match &self.node.data {
            Data::List(list) => Ok(list
                .iter()
                .enumerate()
                .map(|(i, node)| Entry { context: self.context, key: format!("{}.{i}", self.key), node })
                .collect()),
            _ => Err(self.expected(expected)),
        }
    }

    /// Any text.
    pub fn text(&self) -> Result<&'a str, Error> {
        match &self.node.data {
            Data::Text(text) => Ok(text),
            _ => Err(self.expected("text in quotes")),
        }
    }

    /// A quantity as text with its unit; `read` is one of [`units`].
    pub fn quantity<T>(&self, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, Error> {
        // A value that is not text has no unit. Given an empty text, `read` says what was expected.
        let text = if let Data::Text(text) = &self.node.data { text } else { "" };
        read(text).map_err(|expected| self.expected(expected))
    }

    /// A rate.
    pub fn rate(&self) -> Result<Rate, Error> {
        self.quantity(units::rate)
    }

    /// A time.
    pub fn span(&self) -> Result<Span, Error> {
        self.quantity(units::span)
    }

    /// A time from `low` to `high`.
    pub fn span_within(&self, low: Span, high: Span) -> Result<Span, Error> {
        let span = self.span()?;
        if (low..=high).contains(&span) {
            return Ok(span);
        }
        Err(self.expected(format!("a time from {} to {}", units::write_span(low), units::write_span(high))))
    }

    /// A size in whole bytes, in `range`.
    pub fn size_within(&self, range: RangeInclusive<u64>) -> Result<u64, Error> {
        let size = self.quantity(units::size)?;
        if range.contains(&size) {
            return Ok(size);
        }
        let [low, high] = [range.start(), range.end()].map(|&bytes| units::write_bytes(bytes as f64));
        Err(self.expected(format!("a size from {low} to {high}")))
    }

    /// A length of queue.
    pub fn length(&self) -> Result<Length, Error> {
        self.quantity(units::length)
    }

    /// A whole number in `range`.
    pub fn whole(&self, range: RangeInclusive<u64>) -> Result<u64, Error> {
        match self.node.data {
            Data::Integer(n) if u64::try_from(n).is_ok_and(|n| range.contains(&n)) => Ok(n as u64),
            _ => Err(self.expected(format!("a whole number from {} to {}", range.start(), range.end()))),
        }
    }

    /// A whole number in `range`, which 32 bits hold.
    pub fn count(&self, range: RangeInclusive<u32>) -> Result<u32, Error> {
        let n = self.whole(u64::from(*range.start())..=u64::from(*range.end()))?;
        Ok(u32::try_from(n).expect("the range ends below 2^32"))
    }

    /// A finite number, whole or not; `None` if it is none.
    pub fn number(&self) -> Option<f64> {
        match self.node.data {
            Data::Integer(n) => Some(n as f64),
            Data::Number(x) if x.is_finite() => Some(x),
            _ => None,
        }
    }

    /// A number in `range`.
    pub fn number_within(&self, range: RangeInclusive<f64>) -> Result<f64, Error> {
        self.number()
            .filter(|x| range.contains(x))
            .ok_or_else(|| self.expected(format!("a number from {} to {}", range.start(), range.end())))
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Result<bool, Error> {
        match self.node.data {
            Data::Flag(flag) => Ok(flag),
            _ => Err(self.expected("true or false")),
        }
    }

    /// The value that `table` has for this word.
    pub fn word<T: Copy>(&self, table: &[(&'static str, T)]) -> Result<T, Error> {
        let word = if let Data::Text(text) = &self.node.data { text.as_str() } else { "" };
        match table.iter().find(|(name, _)| *name == word) {
            Some((_, value)) => Ok(*value),
            None => {
                let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
                Err(self.unknown_word(word, &names, std::iter::empty()))
            }
        }
    }

    /// The error that this word is none of the `known` ones, nor an alias of one.
    pub fn unknown_word<'b>(&self, word: &str, known: &[&'b str], aliases: impl Iterator<Item = &'b str>) -> Error {
        let list = known.join(", ");
        match nearest(word, known.iter().copied().chain(aliases)) {
            Some(near) => self.expected(format!("one of {list}; did you mean {near}?")),
            None => self.expected(format!("one of {list}")),
        }
    }
}

/// What papers, routers and other simulators call a key, and what it is called here, the likelier one first.
const ELSEWHERE: [(&str, &[&str]); 18] = [
    ("max_p", &["probability", "p_max"]),
    ("maxp", &["probability", "p_max"]),
    ("pmax", &["probability", "p_max"]),
    ("p_max", &["probability"]),
    ("min_th", &["min"]),
    ("minth", &["min"]),
    ("max_th", &["max"]),
    ("maxth", &["max"]),
    ("w_q", &["wq"]),
    ("q_weight", &["wq"]),
    ("weight", &["wq"]),
    ("bandwidth", &["rate"]),
    ("latency", &["delay", "rtt"]),
    ("aqm", &["qdisc"]),
    ("queue", &["qdisc"]),
    ("discipline", &["qdisc"]),
    ("queue_limit", &["limit"]),
    ("buffer_size", &["limit"]),
];

/// The known word for what `word` means elsewhere.
fn called_here<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let (_, names) = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == word)?;
    names.iter().find_map(|name| known.clone().find(|one| one == name))
}

/// The known word that `word` is most likely a misspelling of, with at most a third of its letters wrong.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    known
        .map(|name| (distance(&word, name), name))
        .filter(|(distance, name)| *distance <= name.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// How many letters must be changed, added, taken away or swapped with their neighbour (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().collect());
    let mut before = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let mut least = (row[j] + usize::from(a[i] != b[j])).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                let swapped: &Vec<usize> = &before;
                least = least.min(swapped[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}
