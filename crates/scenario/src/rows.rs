//! This file reads files whose lines have fields, such as lists of packets.

use crate::distribution;
use crate::units;
use base::Span;

/// The lines of a file that hold something, with their numbers, without a heading.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    data(text).enumerate().filter(|(index, (_, line))| *index > 0 || !is_heading(line)).map(|(_, line)| line)
}

/// The line of a heading that names another unit than those in which columns are read, seconds and bytes.
pub(crate) fn other_units(text: &str) -> Option<usize> {
    const OTHERS: [&str; 16] =
        ["ms", "us", "ns", "min", "h", "kb", "mb", "gb", "kib", "mib", "gib", "bits", "bit", "kbit", "mbit", "packets"];
    let (number, heading) = data(text).next().filter(|(_, line)| is_heading(line))?;
    // `ms`, `time_ms`, `Time (ms)`, `Time [ms]`, `time/ms`
    let unit = |field: &str| {
        let field = field.trim().trim_end_matches([')', ']']);
        field.rsplit(['_', ' ', '(', '[', '/']).next().unwrap_or_default().to_lowercase()
    };
    heading.split(',').any(|field| OTHERS.contains(&unit(field).as_str())).then_some(number)
}

fn data(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| distribution::is_data(line))
}

/// A heading has names only. A line with a number, even "nan", is data gone wrong.
fn is_heading(line: &str) -> bool {
    let is_number = |field: &str| field.trim().parse::<f64>().is_ok();
    line.trim_start().starts_with(char::is_alphabetic) && !line.split(',').any(is_number)
}

/// Reads a time of a file, with a unit or in seconds, no longer than the longest run.
pub(crate) fn time_of(text: &str) -> Option<Span> {
    let seconds = text.parse::<f64>().ok().or_else(|| units::seconds(text).ok())?;
    (0.0..=units::MAX_SECONDS).contains(&seconds).then(|| Span::from_secs_f64(seconds))
}
