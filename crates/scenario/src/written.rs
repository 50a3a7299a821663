//! This file writes a resolved scenario as text: as TOML, or as whatever a serializer makes of the same tree.
//!
//! No library writes the TOML, because its bytes are hashed and must not change with a library's taste.

use crate::kept::KeptFile;
use aqm::param::Text;
use serde::{Serialize, Serializer};
use std::fmt::Write;

/// Keys and values in the order in which they are written.
pub(crate) type Fields = Vec<(&'static str, Written)>;

/// A value to be written.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Written {
    Text(String),
    Integer(u64),
    Number(f64),
    Flag(bool),
    List(Vec<Written>),
    /// A file that is kept beside the scenario.
    File(KeptFile),
    /// A table on one line.
    Inline(Fields),
    /// A table under a heading of its own.
    Section(Fields),
    /// A table under a heading of its own, whose keys are names of a discipline's parameters.
    Discipline(Vec<(Text, Written)>),
    /// Tables under repeated headings.
    Blocks(Vec<Fields>),
    /// Tables under headings that somebody else named, in TOML's bare keys.
    Named(Vec<(String, Fields)>),
}

/// The fields as a TOML document.
pub(crate) fn toml(fields: &Fields) -> String {
    document(fields, false)
}

/// The fields as a TOML document without the names of files and of the scenario, which is what the digest is of.
pub(crate) fn essence(fields: &Fields) -> String {
    document(fields, true)
}

fn document(fields: &Fields, is_nameless: bool) -> String {
    let mut writer = Writer { text: String::new(), is_nameless };
    writer.section("", fields.iter().filter(|(key, _)| !is_nameless || *key != "name"));
    writer.text
}

struct Writer {
    text: String,
    /// Whether files are written without their names.
    is_nameless: bool,
}

impl Writer {
    /// Writes the plain values first and then whatever has a heading, as TOML wants it.
    fn section<'a, K: AsRef<str> + 'a>(&mut self, path: &str, fields: impl Iterator<Item = &'a (K, Written)> + Clone) {
        for (key, value) in fields.clone() {
            if !matches!(value, Written::Section(_) | Written::Discipline(_) | Written::Blocks(_) | Written::Named(_)) {
                self.text.push_str(key.as_ref());
                self.text.push_str(" = ");
                self.value(value);
                self.text.push('\n');
            }
        }
        for (key, value) in fields {
            let key = key.as_ref();
            match value {
                Written::Section(fields) => self.headed(path, key, ["[", "]"], fields),
                Written::Discipline(fields) => self.headed(path, key, ["[", "]"], fields),
                Written::Blocks(blocks) => {
                    for fields in blocks {
                        self.headed(path, key, ["[[", "]]"], fields);
                    }
                }
                Written::Named(named) => {
                    let path = below(path, key);
                    for (name, fields) in named {
                        self.headed(&path, name, ["[", "]"], fields);
                    }
                }
                _ => {}
            }
        }
    }

    fn headed<K: AsRef<str>>(&mut self, path: &str, key: &str, [open, close]: [&str; 2], fields: &[(K, Written)]) {
        let path = below(path, key);
        let _ = write!(self.text, "\n{open}{path}{close}\n");
        self.section(&path, fields.iter());
    }

    fn value(&mut self, value: &Written) {
        match value {
            Written::Text(content) => write_text(content, &mut self.text),
            Written::Integer(n) => {
                let _ = write!(self.text, "{n}");
            }
            // Debug always shows a fraction or an exponent, so that a float stays a float.
            Written::Number(x) => {
                let _ = write!(self.text, "{x:?}");
            }
            Written::Flag(flag) => self.text.push_str(if *flag { "true" } else { "false" }),
            Written::List(list) => self.list(list, Self::value),
            Written::File(kept) if self.is_nameless => write_text(&kept.sha256, &mut self.text),
            Written::File(kept) => self.inline(&table_of(kept)),
            Written::Inline(fields) | Written::Section(fields) => self.inline(fields),
            Written::Discipline(fields) => self.inline(fields),
            Written::Blocks(blocks) => self.list(blocks, |writer, fields| writer.inline(fields)),
            Written::Named(_) => unreachable!("named tables have headings"),
        }
    }

    fn list<T>(&mut self, items: &[T], write: fn(&mut Self, &T)) {
        self.text.push('[');
        for (i, item) in items.iter().enumerate() {
            self.text.push_str(if i == 0 { "" } else { ", " });
            write(self, item);
        }
        self.text.push(']');
    }

    fn inline<K: AsRef<str>>(&mut self, fields: &[(K, Written)]) {
        self.text.push('{');
        for (i, (key, item)) in fields.iter().enumerate() {
            self.text.push_str(if i == 0 { " " } else { ", " });
            self.text.push_str(key.as_ref());
            self.text.push_str(" = ");
            self.value(item);
        }
        self.text.push_str(" }");
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// What a resolved scenario says, for serializers: the keys and values of its text.
#[derive(Clone, Debug)]
pub struct Document(pub(crate) Fields);

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Table(&self.0).serialize(serializer)
    }
}

struct Table<'a, K>(&'a [(K, Written)]);

impl<K: AsRef<str>> Serialize for Table<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key.as_ref(), value)))
    }
}

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Integer(n) => serializer.serialize_u64(*n),
            Self::Number(x) => serializer.serialize_f64(*x),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::List(list) => serializer.collect_seq(list),
            Self::File(kept) => Table(&table_of(kept)).serialize(serializer),
            Self::Inline(fields) | Self::Section(fields) => Table(fields).serialize(serializer),
            Self::Discipline(fields) => Table(fields).serialize(serializer),
            Self::Blocks(blocks) => serializer.collect_seq(blocks.iter().map(|fields| Table(fields))),
            Self::Named(named) => serializer.collect_map(named.iter().map(|(name, fields)| (name, Table(fields)))),
        }
    }
}

/// A kept file as a table.
fn table_of(kept: &KeptFile) -> Fields {
    vec![("file", Written::Text(kept.file.clone())), ("sha256", Written::Text(kept.sha256.clone()))]
}

impl Written {
    /// Every file in this value.
    pub fn files(&self, found: &mut Vec<KeptFile>) {
        match self {
            Self::File(kept) => found.push(kept.clone()),
            Self::List(list) => list.iter().for_each(|value| value.files(found)),
            Self::Inline(fields) | Self::Section(fields) => fields.iter().for_each(|(_, value)| value.files(found)),
            Self::Discipline(fields) => fields.iter().for_each(|(_, value)| value.files(found)),
            Self::Blocks(blocks) => blocks.iter().flatten().for_each(|(_, value)| value.files(found)),
            Self::Named(named) => {
                named.iter().flat_map(|(_, fields)| fields).for_each(|(_, value)| value.files(found));
            }
            Self::Text(_) | Self::Integer(_) | Self::Number(_) | Self::Flag(_) => {}
        }
    }
}

/// A basic string of TOML 1.0.
pub(crate) fn write_text(content: &str, text: &mut String) {
    text.push('"');
    for c in content.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(text, "\\u{:04X}", c as u32);
            }
            c => text.push(c),
        }
    }
    text.push('"');
}
