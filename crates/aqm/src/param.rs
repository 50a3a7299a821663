//! Parameters of disciplines as data: one table a discipline, read by the command line, Python, the documentation
//! and validation alike.

use base::Span;
use std::collections::BTreeMap;

/// The kind of a parameter: what may be written and in which unit it is kept.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A length of queue: packets (`24p`) or bytes (`12000b`, `64kb`).
    Length,
    /// A time: `5ms`, `100us`, `2s`.
    Time,
    /// A frequency: `170hz`.
    Frequency,
    /// A plain number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Flag,
    /// A size in bytes: `500b`, `1500b`.
    Size,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A length of queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Length {
    /// Packets.
    Packets(f64),
    /// Bytes.
    Bytes(f64),
}

/// The value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// See [`Kind::Length`].
    Length(Length),
    /// See [`Kind::Time`].
    Time(Span),
    /// Hertz, see [`Kind::Frequency`].
    Frequency(f64),
    /// See [`Kind::Number`].
    Number(f64),
    /// See [`Kind::Integer`].
    Integer(u64),
    /// See [`Kind::Flag`].
    Flag(bool),
    /// Bytes, see [`Kind::Size`].
    Size(u32),
    /// See [`Kind::Word`].
    Word(&'static str),
}

/// One row of a discipline's table.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name in scenarios and on the command line, as `tc` or the paper has it.
    pub name: &'static str,
    /// What may be written.
    pub kind: Kind,
    /// The default as it would be written in a scenario; empty where it is computed from others, as `doc` says.
    pub default: &'static str,
    /// The range, smallest and largest, in the unit of the stored value (packets or bytes, seconds, hertz, ...).
    pub range: (f64, f64),
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
}

/// Checked values of one discipline's parameters: every row of its table that has a default is present.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Values(pub BTreeMap<&'static str, Value>);
