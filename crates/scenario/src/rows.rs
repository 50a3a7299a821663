//! This file reads files whose lines have fields, such as lists of packets.

use crate::distribution;
use crate::units;
use base::Span;

/// The lines of a file that hold something, with their numbers, without a heading.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let data = (1..).zip(text.lines()).filter(|(_, line)| distribution::is_data(line)).enumerate();
    // A heading has names only. A line with a number, even "nan", is data gone wrong.
    let is_heading = |line: &str| {
        let is_number = |field: &str| field.trim().parse::<f64>().is_ok();
        line.trim_start().starts_with(char::is_alphabetic) && !line.split(',').any(is_number)
    };
    data.filter(move |(index, (_, line))| *index > 0 || !is_heading(line)).map(|(_, line)| line)
}

/// Reads a time of a file, with a unit or in seconds, no longer than the longest run.
pub(crate) fn time_of(text: &str) -> Option<Span> {
    let seconds = text.parse::<f64>().ok().or_else(|| units::seconds(text).ok())?;
    (0.0..=units::MAX_SECONDS).contains(&seconds).then(|| Span::from_secs_f64(seconds))
}
