//! This file reads the text of a scenario into a tree that remembers where each value stands, and applies overrides.

use crate::bounds::{DEEPEST, MOST_TEXT};
use crate::error::{Error, shortened};
use crate::nesting::too_deep;
use crate::written;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Gives the text of a file that a scenario names, or says why it cannot be read. The name is as written in the
/// scenario; whoever implements this decides what it is relative to.
pub type Files<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub data: Data,
    pub place: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Data {
    Text(String),
    Integer(i64),
    Number(f64),
    Flag(bool),
    /// A value that no key takes: a date, or a number beyond 64 bits.
    Other(String),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

/// Where a value was written. Places compare in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Place {
    /// A line of the file, from 1, and which of its bytes that is in the whole file.
    Line(usize, usize),
    /// Nowhere in particular: the file as a whole.
    File,
    /// Not in the file.
    Override,
}

impl Place {
    pub fn of(self, origin: &str) -> String {
        match self {
            Self::Line(line, _) => format!("{origin}:{line}"),
            Self::File => origin.to_owned(),
            Self::Override => "override".to_owned(),
        }
    }
}

/// Checks that `text` is TOML of a size and depth that are read. `origin` is what the file is called in errors.
///
/// # Errors
/// Where it is not, in one line.
pub fn check_toml(text: &str, origin: &str) -> Result<(), Error> {
    parse(text, origin).map(drop)
}

/// Reads a document. `origin` is what the file is called in errors.
pub(crate) fn parse(text: &str, origin: &str) -> Result<Node, Error> {
    let refuse =
        |place: Place, problem: String| Error { place: place.of(origin), key: String::new(), value: None, problem };
    if text.len() > MOST_TEXT {
        let problem = format!("{} bytes long, expected at most {MOST_TEXT}", text.len());
        return Err(refuse(Place::File, problem));
    }
    let lines = Lines::of(text);
    let deep =
        |place| Err(refuse(place, format!("not valid TOML: nested too deep, expected at most {DEEPEST} levels")));
    if let Some(at) = too_deep(text) {
        return deep(lines.place(at));
    }
    match DeTable::parse(text) {
        Ok(table) => {
            let root = Node { data: table_data(table.into_inner(), &|at| lines.place(at)), place: Place::File };
            beyond(&root, DEEPEST).map_or(Ok(root), deep)
        }
        Err(error) => {
            let at = error.span().map_or(text.len(), |span| span.start).min(text.len());
            let (line, content) = lines.last_written(at, text);
            Err(Error {
                place: Place::Line(line, 0).of(origin),
                key: String::new(),
                value: (!content.is_empty()).then(|| shortened(content)),
                problem: format!("not valid TOML: {}", error.message()),
            })
        }
    }
}

/// Sets the dotted `key` of `root` to the TOML value in `text`. Text that is not a TOML value and does not begin like
/// a quoted one, a list or a table is taken as a string, so that a command line needs no quotes within quotes.
pub(crate) fn apply_override(root: &mut Node, key: &str, text: &str) -> Result<(), Error> {
    let refuse = |problem: String| Error {
        place: Place::Override.of(""),
        key: key.to_owned(),
        value: Some(shortened(text.trim())),
        problem,
    };
    if key.split('.').count() > DEEPEST {
        return Err(refuse(format!("expected a key of at most {DEEPEST} parts")));
    }
    if too_deep(text).is_some() {
        return Err(refuse(format!("nested too deep, expected at most {DEEPEST} levels")));
    }
    let data = match DeValue::parse(text.trim()) {
        // `0b`, no bytes, is not the binary number without digits that the parser lets through.
        Ok(value) if value.get_ref().as_integer().is_some_and(|n| n.as_str().is_empty()) => {
            Data::Text(text.trim().to_owned())
        }
        Ok(value) => value_data(value.into_inner(), &|_| Place::Override),
        Err(error) if text.trim().starts_with(['"', '\'', '[', '{']) => {
            return Err(refuse(format!("not a TOML value: {}", error.message())));
        }
        Err(_) => Data::Text(text.trim().to_owned()),
    };
    let value = Node { data, place: Place::Override };
    let mut node = root;
    let mut path = String::new();
    for part in key.split('.') {
        if part.is_empty() {
            return Err(refuse("expected a key such as link.rate".into()));
        }
        node = match &mut node.data {
            Data::Table(table) => table
                .entry(part.to_owned())
                .or_insert_with(|| Node { data: Data::Table(BTreeMap::new()), place: Place::Override }),
            Data::List(list) => {
                let count = list.len();
                match part.parse::<usize>().ok().and_then(|index| list.get_mut(index)) {
                    Some(item) => item,
                    None => return Err(refuse(format!("{path} has {count} items, counted from 0, and no {part}"))),
                }
            }
            _ => return Err(refuse(format!("{path} is a single value and has no {part}"))),
        };
        path = join(&path, part);
    }
    *node = value;
    Ok(())
}

/// Expands short forms: `qdisc = "codel"` of a link becomes a table with that `kind`.
pub(crate) fn write_out(root: &mut Node) {
    let Data::Table(document) = &mut root.data else { return };
    if let Some(link) = document.get_mut("link") {
        write_out_link(link);
    }
    if let Some(Data::Table(links)) = document.get_mut("links").map(|node| &mut node.data) {
        links.values_mut().for_each(write_out_link);
    }
}

fn write_out_link(node: &mut Node) {
    let Data::Table(link) = &mut node.data else { return };
    for name in ["qdisc", "reverse_qdisc"] {
        if let Some(node) = link.get_mut(name)
            && matches!(node.data, Data::Text(_))
        {
            let place = node.place;
            let kind = std::mem::replace(node, Node { data: Data::Table(BTreeMap::new()), place });
            node.data = Data::Table(BTreeMap::from([("kind".to_owned(), kind)]));
        }
    }
}

/// The place of something that lies more than `levels` below `node`, if there is any.
fn beyond(node: &Node, levels: usize) -> Option<Place> {
    let Some(left) = levels.checked_sub(1) else { return Some(node.place) };
    match &node.data {
        Data::List(list) => list.iter().find_map(|node| beyond(node, left)),
        Data::Table(table) => table.values().find_map(|node| beyond(node, left)),
        _ => None,
    }
}

pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Writes a value as TOML would, on one line.
pub(crate) fn show(data: &Data, text: &mut String) {
    match data {
        Data::Text(content) => written::write_text(content, text),
        Data::Integer(n) => *text += &n.to_string(),
        Data::Number(x) => *text += &format!("{x:?}"),
        Data::Flag(flag) => *text += &flag.to_string(),
        Data::Other(raw) => *text += raw,
        Data::List(list) => {
            text.push('[');
            for (i, node) in list.iter().enumerate() {
                *text += if i == 0 { "" } else { ", " };
                show(&node.data, text);
            }
            text.push(']');
        }
        Data::Table(table) => {
            text.push('{');
            for (i, (key, node)) in table.iter().enumerate() {
                *text += if i == 0 { " " } else { ", " };
                *text += key;
                *text += " = ";
                show(&node.data, text);
            }
            text.push_str(" }");
        }
    }
}

fn table_data(table: DeTable<'_>, place: &dyn Fn(usize) -> Place) -> Data {
    Data::Table(table.into_iter().map(|(key, value)| (key.into_inner().into_owned(), node(value, place))).collect())
}

fn node(value: Spanned<DeValue<'_>>, place: &dyn Fn(usize) -> Place) -> Node {
    let place_of_value = place(value.span().start);
    Node { data: value_data(value.into_inner(), place), place: place_of_value }
}

fn value_data(value: DeValue<'_>, place: &dyn Fn(usize) -> Place) -> Data {
    match value {
        DeValue::String(text) => Data::Text(text.into_owned()),
        DeValue::Integer(n) => {
            i64::from_str_radix(n.as_str(), n.radix()).map_or_else(|_| Data::Other(n.to_string()), Data::Integer)
        }
        DeValue::Float(x) => x.as_str().parse().map_or_else(|_| Data::Other(x.as_str().to_owned()), Data::Number),
        DeValue::Boolean(flag) => Data::Flag(flag),
        DeValue::Datetime(date) => Data::Other(date.to_string()),
        DeValue::Array(list) => Data::List(list.into_iter().map(|value| node(value, place)).collect()),
        DeValue::Table(table) => table_data(table, place),
    }
}

/// Where the lines of a text begin.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn place(&self, at: usize) -> Place {
        Place::Line(self.0.partition_point(|&start| start <= at), at)
    }

    /// The last line that is not blank up to the one that contains the byte `at`, and its number.
    fn last_written<'t>(&self, at: usize, text: &'t str) -> (usize, &'t str) {
        let line = self.0.partition_point(|&start| start <= at);
        text.lines()
            .enumerate()
            .take(line)
            .map(|(i, content)| (i + 1, content.trim()))
            .filter(|(_, content)| !content.is_empty())
            .last()
            .unwrap_or((1, ""))
    }
}
