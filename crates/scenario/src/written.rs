//! A resolved scenario on its way to text: TOML and JSON from one tree.
//!
//! The TOML is written here rather than by a library because its bytes are hashed: they must not change with a
//! library's taste.

use crate::kept::KeptFile;
use serde_json::{Map, Number};
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
    /// Tables under repeated headings.
    Blocks(Vec<Fields>),
    /// Tables under headings that somebody else named, in TOML's bare keys.
    Named(Vec<(String, Fields)>),
}

/// The fields as a TOML document.
pub(crate) fn toml(fields: &Fields) -> String {
    let mut text = String::new();
    write_section("", fields, &mut text);
    text
}

/// The fields as a JSON object.
pub(crate) fn json(fields: &Fields) -> serde_json::Value {
    serde_json::Value::Object(
        fields.iter().map(|(key, value)| ((*key).to_owned(), json_value(value))).collect::<Map<_, _>>(),
    )
}

fn json_value(value: &Written) -> serde_json::Value {
    match value {
        Written::Text(text) => text.as_str().into(),
        Written::Integer(n) => (*n).into(),
        Written::Number(x) => Number::from_f64(*x).map_or(serde_json::Value::Null, serde_json::Value::Number),
        Written::Flag(flag) => (*flag).into(),
        Written::List(list) => list.iter().map(json_value).collect(),
        Written::File(kept) => json(&table_of(kept)),
        Written::Inline(fields) | Written::Section(fields) => json(fields),
        Written::Blocks(blocks) => blocks.iter().map(json).collect(),
        Written::Named(named) => named.iter().map(|(name, fields)| (name.clone(), json(fields))).collect(),
    }
}

/// The plain values first, then whatever has a heading: TOML wants that order.
fn write_section(path: &str, fields: &Fields, text: &mut String) {
    for (key, value) in fields {
        if !matches!(value, Written::Section(_) | Written::Blocks(_) | Written::Named(_)) {
            text.push_str(key);
            text.push_str(" = ");
            write_value(value, text);
            text.push('\n');
        }
    }
    for (key, value) in fields {
        let inner = if path.is_empty() { (*key).to_owned() } else { format!("{path}.{key}") };
        match value {
            Written::Section(fields) => {
                let _ = write!(text, "\n[{inner}]\n");
                write_section(&inner, fields, text);
            }
            Written::Blocks(blocks) => {
                for fields in blocks {
                    let _ = write!(text, "\n[[{inner}]]\n");
                    write_section(&inner, fields, text);
                }
            }
            Written::Named(named) => {
                for (name, fields) in named {
                    let _ = write!(text, "\n[{inner}.{name}]\n");
                    write_section(&format!("{inner}.{name}"), fields, text);
                }
            }
            _ => {}
        }
    }
}

fn write_value(value: &Written, text: &mut String) {
    match value {
        Written::Text(content) => write_text(content, text),
        Written::Integer(n) => {
            let _ = write!(text, "{n}");
        }
        // Debug always shows a fraction or an exponent, so that a float stays a float.
        Written::Number(x) => {
            let _ = write!(text, "{x:?}");
        }
        Written::Flag(flag) => {
            let _ = write!(text, "{flag}");
        }
        Written::List(list) => {
            text.push('[');
            for (i, item) in list.iter().enumerate() {
                text.push_str(if i == 0 { "" } else { ", " });
                write_value(item, text);
            }
            text.push(']');
        }
        Written::File(kept) => write_value(&Written::Inline(table_of(kept)), text),
        Written::Inline(fields) | Written::Section(fields) => {
            text.push('{');
            for (i, (key, item)) in fields.iter().enumerate() {
                text.push_str(if i == 0 { " " } else { ", " });
                text.push_str(key);
                text.push_str(" = ");
                write_value(item, text);
            }
            text.push_str(" }");
        }
        Written::Blocks(blocks) => {
            write_value(&Written::List(blocks.iter().cloned().map(Written::Inline).collect()), text);
        }
        Written::Named(_) => unreachable!("named tables have headings"),
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
            Self::Blocks(blocks) => blocks.iter().flatten().for_each(|(_, value)| value.files(found)),
            Self::Text(_) | Self::Integer(_) | Self::Number(_) | Self::Flag(_) | Self::Named(_) => {}
        }
    }

    /// The same without the names of files: only what is in them.
    pub fn without_names(&self) -> Self {
        let nameless = |fields: &Fields| fields.iter().map(|(key, value)| (*key, value.without_names())).collect();
        match self {
            Self::File(kept) => Self::Text(kept.sha256.clone()),
            Self::List(list) => Self::List(list.iter().map(Self::without_names).collect()),
            Self::Inline(fields) => Self::Inline(nameless(fields)),
            Self::Section(fields) => Self::Section(nameless(fields)),
            Self::Blocks(blocks) => Self::Blocks(blocks.iter().map(nameless).collect()),
            Self::Text(_) | Self::Integer(_) | Self::Number(_) | Self::Flag(_) | Self::Named(_) => self.clone(),
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
