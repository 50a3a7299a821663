//! An [`Error`] says in one line what is wrong with a scenario.

use std::fmt;

/// One thing that is wrong with a scenario. `Display` is exactly one line: where, key = value, what was expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The file, with the line where it is known, or `override`.
    pub place: String,
    /// The key, dotted: `traffic.0.users`. Empty where the text is not TOML at all.
    pub key: String,
    /// The value as it was written, shortened; `None` where there is none.
    pub value: Option<String>,
    /// What was expected.
    pub problem: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = without_middle(&self.place, 200);
        if !self.key.is_empty() {
            line += ": ";
            line += &without_middle(&self.key, 100);
        }
        if let Some(value) = &self.value {
            line += if self.key.is_empty() { ": " } else { " = " };
            line += value;
        }
        line += ": ";
        line += &without_middle(&self.problem, 1200);
        f.write_str(&one_line(&line))
    }
}

impl std::error::Error for Error {}

/// Escapes whatever would break a line.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || c == '\u{2028}' || c == '\u{2029}' {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// Cuts the middle out of `text`, to at most `length` characters. Files and long lists differ at their ends.
fn without_middle(text: &str, length: usize) -> String {
    let count = text.chars().count();
    if count <= length {
        return text.to_owned();
    }
    let half = length / 2 - 2;
    text.chars().take(half).chain("...".chars()).chain(text.chars().skip(count - half)).collect()
}

/// The first characters of `text`, so that an error stays readable.
pub(crate) fn shortened(text: &str) -> String {
    const LENGTH: usize = 60;
    if text.chars().count() <= LENGTH {
        text.to_owned()
    } else {
        let mut short: String = text.chars().take(LENGTH - 3).collect();
        short += "...";
        short
    }
}
