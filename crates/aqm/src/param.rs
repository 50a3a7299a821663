//! Parameters of disciplines are data. Each discipline has a table of them, which the command line, Python, the
//! documentation and validation read.

use base::{Rate, Span};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// A name or a sentence of a row. It is a constant of the program, or belongs to the row and is freed with it.
pub type Text = Cow<'static, str>;

/// The kind of a parameter: what may be written for it, and in which unit it is kept.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A length of queue: packets (`24p`) or bytes (`12000b`).
    Length,
    /// A length of queue as [`Kind::Length`], or the time that it takes to send (`5ms`). It is kept as it was written.
    LengthOrTime,
    /// A time: `5ms`, `100us`, `2s`.
    Time,
    /// A frequency: `170hz`.
    Frequency,
    /// A rate: `100mbit`.
    Rate,
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
    /// Which values of a byte are meant: `0x01/0x03`, those that are 1 under the mask 3.
    Selector,
}

/// A length of queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Length {
    /// Packets.
    Packets(f64),
    /// Bytes.
    Bytes(f64),
}

impl Length {
    /// `factor` times this length, in its unit.
    pub fn times(self, factor: f64) -> Self {
        match self {
            Self::Packets(packets) => Self::Packets(packets * factor),
            Self::Bytes(bytes) => Self::Bytes(bytes * factor),
        }
    }
}

/// Which values of a byte are meant: those that are `value` under `mask`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selector {
    /// What the byte's bits under the mask are.
    pub value: u8,
    /// The bits that are compared. Without any every byte is meant.
    pub mask: u8,
}

impl Selector {
    /// Whether `byte` is meant.
    #[inline]
    pub fn takes(self, byte: u8) -> bool {
        byte & self.mask == self.value
    }

    /// Reads `VALUE/MASK`, each a byte in decimals or, after `0x`, in hexadecimals. `None` if it is nothing such.
    pub fn parse(text: &str) -> Option<Self> {
        let byte = |text: &str| match text.strip_prefix("0x") {
            Some(digits) if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => {
                u8::from_str_radix(digits, 16).ok()
            }
            None if text.bytes().all(|digit| digit.is_ascii_digit()) => text.parse().ok(),
            _ => None,
        };
        let (value, mask) = text.split_once('/')?;
        Some(Self { value: byte(value)?, mask: byte(mask)? })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#04x}/{:#04x}", self.value, self.mask)
    }
}

/// The value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Of [`Kind::Length`], or of [`Kind::LengthOrTime`].
    Length(Length),
    /// Of [`Kind::Time`], or of [`Kind::LengthOrTime`].
    Time(Span),
    /// Of [`Kind::Frequency`], in hertz.
    Frequency(f64),
    /// Of [`Kind::Rate`].
    Rate(Rate),
    /// Of [`Kind::Number`].
    Number(f64),
    /// Of [`Kind::Integer`].
    Integer(u64),
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Size`], in bytes.
    Size(u32),
    /// Of [`Kind::Word`].
    Word(&'static str),
    /// Of [`Kind::Selector`].
    Selector(Selector),
}

/// One row of a discipline's table. A constant is a `Param`, a registry has `Param<Text>`.
#[derive(Clone, Copy, Debug)]
pub struct Param<T = &'static str> {
    /// Name in scenarios and on the command line, as `tc` or the paper has it.
    pub name: T,
    /// What may be written.
    pub kind: Kind,
    /// The default as a scenario would write it. It is empty if it is computed from others, as `doc` then says.
    pub default: T,
    /// The range, smallest and largest, in the unit of the stored value (packets or bytes, seconds, hertz, ...).
    /// Flags and words have [`Param::ANY`].
    pub range: (f64, f64),
    /// What it does, in one sentence.
    pub doc: T,
    /// Where the default comes from.
    pub source: T,
}

impl Param {
    /// The range of flags, of words, and of numbers without bounds.
    pub const ANY: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
}

/// The `capacity` of a discipline that computes something from the link's rate.
pub const CAPACITY: Param = Param {
    name: "capacity",
    kind: Kind::Rate,
    default: "",
    range: (1.0, 1e13),
    doc: "The rate that it takes for the link's, whatever that is; absent, the rate that the link tells it. Needed \
          where the link tells of none.",
    source: "tc-red(8) has bandwidth for it",
};

impl From<Param> for Param<Text> {
    fn from(param: Param) -> Self {
        let Param { name, kind, default, range, doc, source } = param;
        Self { name: name.into(), kind, default: default.into(), range, doc: doc.into(), source: source.into() }
    }
}

impl<T> Param<T> {
    /// Admits `value` if it is of this parameter's kind and in its range; else says what was expected.
    pub fn admit(&self, value: &Value) -> Result<(), String> {
        let fits = match (self.kind, value) {
            (Kind::Length | Kind::LengthOrTime, Value::Length(Length::Packets(x) | Length::Bytes(x)))
            | (Kind::Frequency, Value::Frequency(x))
            | (Kind::Number, Value::Number(x)) => self.holds(*x),
            (Kind::Rate, Value::Rate(rate)) => self.holds(rate.bps_f64()),
            // The quotient is rounded once: 1000 s are 1000, which 1e12 * 1e-9 are not.
            (Kind::Time | Kind::LengthOrTime, Value::Time(span)) => self.holds(span.ns() as f64 / 1e9),
            (Kind::Integer, Value::Integer(n)) => self.holds(*n as f64),
            (Kind::Size, Value::Size(bytes)) => self.holds(f64::from(*bytes)),
            (Kind::Flag, Value::Flag(_)) => true,
            (Kind::Word(words), Value::Word(word)) => words.contains(word),
            // Bits of the value that the mask hides would keep every byte out.
            (Kind::Selector, Value::Selector(Selector { value, mask })) => value & !mask == 0,
            _ => false,
        };
        if fits { Ok(()) } else { Err(self.expected()) }
    }

    /// What may be written, in words: "a number from 0 to 1".
    pub fn expected(&self) -> String {
        let kind = match self.kind {
            Kind::Length => "a length such as 24p or 12000b",
            Kind::LengthOrTime => "a length such as 24p, 12000b or 5ms",
            Kind::Time => "a time such as 5ms",
            Kind::Frequency => "a frequency such as 170hz",
            Kind::Rate => "a rate such as 100mbit",
            Kind::Number => "a number",
            Kind::Integer => "a whole number",
            Kind::Flag => return "true or false".into(),
            Kind::Size => "a size such as 500b",
            Kind::Word(words) => return format!("one of {}", words.join(", ")),
            Kind::Selector => return "VALUE/MASK of a byte, such as 0x01/0x03, the value within the mask".into(),
        };
        let unit = match self.kind {
            Kind::Time => " s",
            Kind::Frequency => " hz",
            Kind::Rate => " bit/s",
            Kind::Size => " bytes",
            _ => "",
        };
        let (low, high) = (bound(self.range.0), bound(self.range.1));
        match (self.range.0.is_finite(), self.range.1.is_finite()) {
            (true, true) => format!("{kind}, from {low} to {high}{unit}"),
            (true, false) => format!("{kind}, at least {low}{unit}"),
            (false, true) => format!("{kind}, at most {high}{unit}"),
            (false, false) => kind.into(),
        }
    }

    fn holds(&self, x: f64) -> bool {
        // NaN is in no range.
        x.is_finite() && self.range.0 <= x && x <= self.range.1
    }
}

/// Writes an end of a range, with an exponent if a reader would have to count zeros after the point.
fn bound(x: f64) -> String {
    if x == 0.0 || x.abs() >= 1e-3 { x.to_string() } else { format!("{x:e}") }
}

/// Why values that are each in range were refused together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The parameter at fault.
    pub param: Text,
    /// What was expected of it.
    pub expected: String,
}

impl Refusal {
    /// A refusal of `param`, which should have been as `expected` says.
    pub fn new(param: impl Into<Text>, expected: impl Into<String>) -> Self {
        Self { param: param.into(), expected: expected.into() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.param, self.expected)
    }
}

/// The checked values of a discipline's parameters. Every parameter with a default has one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Values(pub BTreeMap<Text, Value>);

/// Writes two getters for a variant of [`Value`]: one for a value that is there, one for a value that may be absent.
macro_rules! getters {
    ($($name:ident, $find:ident, $variant:ident, $type:ty, $what:literal;)*) => { $(
        #[doc = concat!("The ", $what, " called `name`; the table has it, with a default, or `resolve` computed it.")]
        pub fn $name(&self, name: &str) -> $type {
            self.$find(name).unwrap_or_else(|| panic!("the table of parameters has the {} {name}", $what))
        }

        #[doc = concat!("The ", $what, " called `name`, if it was given or computed.")]
        pub fn $find(&self, name: &str) -> Option<$type> {
            match self.0.get(name) {
                Some(Value::$variant(value)) => Some(*value),
                _ => None,
            }
        }
    )* };
}

impl Values {
    getters! {
        length, find_length, Length, Length, "length";
        time, find_time, Time, Span, "time";
        frequency, find_frequency, Frequency, f64, "frequency";
        rate, find_rate, Rate, Rate, "rate";
        number, find_number, Number, f64, "number";
        integer, find_integer, Integer, u64, "whole number";
        flag, find_flag, Flag, bool, "flag";
        size, find_size, Size, u32, "size";
        word, find_word, Word, &'static str, "word";
        selector, find_selector, Selector, Selector, "selector";
    }

    /// The rate that a discipline before a link of rate `link` computes from: its
    /// [`capacity`](crate::registry::CAPACITY), if it has one.
    pub fn rate_at(&self, link: Rate) -> Rate {
        self.find_rate("capacity").unwrap_or(link)
    }

    /// A [`Kind::LengthOrTime`] as a length. A time becomes the bytes that a link of `rate` sends in it.
    pub fn length_at(&self, name: &str, rate: Rate) -> Length {
        match self.find_time(name) {
            Some(span) => Length::Bytes(span.secs_f64() * rate.bps_f64() / 8.0),
            None => self.length(name),
        }
    }

    /// Refuses `low` if it is above `high`. Both are of one kind, and lengths in one unit.
    pub fn ordered(&self, low: &'static str, high: &str) -> Result<(), Refusal> {
        let size = |name: &str| match &self.0[name] {
            Value::Length(Length::Packets(x) | Length::Bytes(x)) | Value::Frequency(x) | Value::Number(x) => *x,
            Value::Time(span) => span.ns() as f64,
            Value::Rate(rate) => rate.bps_f64(),
            Value::Integer(n) => *n as f64,
            Value::Size(bytes) => f64::from(*bytes),
            Value::Flag(_) | Value::Word(_) | Value::Selector(_) => unreachable!("{name} has an order"),
        };
        if size(low) > size(high) {
            return Err(Refusal::new(low, format!("at most {high}, {}", self.0[high])));
        }
        Ok(())
    }

    /// Sets a value that is not there yet. So a discipline fills in what it computes from the link.
    pub fn fill(&mut self, name: impl Into<Text>, value: Value) {
        self.0.entry(name.into()).or_insert(value);
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Bytes(bytes) => write!(f, "{bytes}b"),
        }
    }
}

/// Writes a value as a scenario would. Reading it back gives the same value.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(length) => write!(f, "{length}"),
            Self::Time(span) => {
                let ns = span.ns();
                let (unit, name) = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")]
                    .into_iter()
                    .find(|(unit, _)| ns % unit == 0)
                    .unwrap_or((1, "ns"));
                write!(f, "{}{name}", ns / unit)
            }
            Self::Frequency(hz) => write!(f, "{hz}hz"),
            Self::Rate(rate) => {
                let bps = rate.bps();
                let (unit, name) = [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1_000, "kbit")]
                    .into_iter()
                    .find(|(unit, _)| bps % unit == 0)
                    .unwrap_or((1, "bit"));
                write!(f, "{}{name}", bps / unit)
            }
            Self::Number(x) => write!(f, "{x}"),
            Self::Integer(n) => write!(f, "{n}"),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Size(bytes) => write!(f, "{bytes}b"),
            Self::Word(word) => write!(f, "{word}"),
            Self::Selector(selector) => write!(f, "{selector}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAM: Param =
        Param { name: "p", kind: Kind::Number, default: "0.1", range: (0.0, 1.0), doc: "", source: "" };

    #[test]
    fn selectors_are_read_as_they_are_written_and_nothing_else_is_one() {
        for (text, selector) in [
            ("0x01/0x03", Selector { value: 1, mask: 3 }),
            ("1/3", Selector { value: 1, mask: 3 }),
            ("0xFF/255", Selector { value: 255, mask: 255 }),
        ] {
            assert_eq!(Selector::parse(text), Some(selector));
            assert_eq!(Selector::parse(&selector.to_string()), Some(selector));
        }
        for text in ["", "1", "/3", "1/", "256/3", "0x/3", "+1/3", "-1/3", "1/3/3", "0x1g/3", "1 /3"] {
            assert_eq!(Selector::parse(text), None, "{text}");
        }
        let ect1 = Selector { value: 1, mask: 3 };
        assert!(ect1.takes(0b101_001) && ect1.takes(1) && !ect1.takes(2) && !ect1.takes(3) && !ect1.takes(0));
        let param = Param { kind: Kind::Selector, ..PARAM };
        assert!(param.admit(&Value::Selector(ect1)).is_ok());
        assert!(param.admit(&Value::Selector(Selector { value: 4, mask: 3 })).is_err());
    }

    #[test]
    fn ranges_are_closed_and_hold_no_nan() {
        for (x, fits) in [(0.0, true), (1.0, true), (1.000_001, false), (-0.1, false), (f64::NAN, false)] {
            assert_eq!(PARAM.admit(&Value::Number(x)).is_ok(), fits, "{x}");
        }
        assert_eq!(PARAM.admit(&Value::Number(2.0)), Err("a number, from 0 to 1".into()));
        assert!(PARAM.admit(&Value::Integer(1)).is_err(), "another kind is refused");
        let time = Param { kind: Kind::Time, range: (0.001, 1000.0), ..PARAM };
        for (ns, fits) in [(1_000_000, true), (999_999, false), (1_000_000_000_000, true), (1_000_000_000_001, false)] {
            assert_eq!(time.admit(&Value::Time(Span::from_ns(ns))).is_ok(), fits, "{ns} ns");
        }
        let tiny = Param { range: (1e-24, 0.001), ..PARAM };
        assert_eq!(tiny.admit(&Value::Number(1.0)), Err("a number, from 1e-24 to 0.001".into()));
        let word = Param { kind: Kind::Word(&["packet", "byte"]), range: Param::ANY, ..PARAM };
        assert!(word.admit(&Value::Word("byte")).is_ok());
        assert_eq!(word.admit(&Value::Word("bits")), Err("one of packet, byte".into()));
    }

    #[test]
    fn a_time_is_the_bytes_the_link_sends_in_it() {
        let mut values = Values::default();
        values.fill("qref", Value::Time(Span::from_ms(5)));
        values.fill("qref", Value::Length(Length::Packets(1.0)));
        // 5 ms at 100 Mb/s: 62,500 bytes.
        assert_eq!(values.length_at("qref", Rate::from_bps(100_000_000)), Length::Bytes(62_500.0));
    }

    #[test]
    fn values_are_written_as_they_are_read() {
        for (value, text) in [
            (Value::Length(Length::Packets(24.0)), "24p"),
            (Value::Length(Length::Bytes(31250.5)), "31250.5b"),
            (Value::Time(Span::from_us(1_500)), "1500us"),
            (Value::Time(Span::from_ms(5)), "5ms"),
            (Value::Frequency(170.0), "170hz"),
            (Value::Rate(Rate::from_bps(1_500_000)), "1500kbit"),
            (Value::Number(1.822e-5), "0.00001822"),
        ] {
            assert_eq!(value.to_string(), text);
        }
    }
}
