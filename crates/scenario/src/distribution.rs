//! This file reads and writes distributions as text: a value, or a table that names the form.
//!
//! ```toml
//! a = "80ms"
//! b = { uniform = ["10ms", "150ms"] }                    # and step = "1ms" for whole milliseconds
//! c = { exponential = "50ms" }                           # its mean
//! d = { pareto = { mean = "7000b", shape = 1.2 } }       # or scale, the smallest value, instead of mean
//! e = { weibull = { scale = "1s", shape = 0.8 } }
//! f = { lognormal = { median = "1s", sigma = 0.5 } }     # sigma: of the natural logarithm
//! g = { table = "file.csv" }                             # or the points themselves: [["10ms", 0.0], ["20ms", 1.0]]
//! h = { even = ["10ms", "150ms"] }                       # rtt only: flow k of n gets the k-th of n even steps
//! ```
//!
//! Numbers of things, such as objects, are written as numbers: `{ pareto = { mean = 4, shape = 1.2 } }`.
//!
//! A table is an empirical distribution function, which is linear between its points. It has lines of
//! `value,cumulative probability`. Neither falls, and the last probability is 1. A value has a unit as everywhere, or
//! the unit at the end of its column's name in a heading (`rtt_ms,probability`). Without either it is in seconds or
//! bytes. Lines that begin with `#` are skipped.

use crate::bounds::{MOST_POINTS, MOST_TEXT};
use crate::document::Data;
use crate::error::{Error, shortened};
use crate::scenario::RttSpec;
use crate::section::{Entry, Section};
use crate::units;
use crate::written::{Fields, Written};
use base::{Distribution, Span};

/// The quantity that a distribution is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Kept in seconds.
    Time,
    /// Kept in bytes.
    Size,
    /// A number of things.
    Count,
}

const FORMS: &[&str] = &["uniform", "exponential", "pareto", "weibull", "lognormal", "table"];
const EVEN: &[&str] = &["even"];
const MODIFIERS: &[&str] = &["step"];
/// The largest number of things, and how an error describes numbers up to it.
const MOST: f64 = 1e6;
const COUNT: &str = "a number from 0 to 1000000";
/// The range of shapes. Beyond it a distribution is a constant, or nothing at all, to any simulation.
const SHAPE: std::ops::RangeInclusive<f64> = 0.01..=1000.0;

impl Quantity {
    fn read(self, text: &str) -> Result<f64, String> {
        match self {
            Self::Time => units::seconds(text),
            Self::Size => units::bytes(text),
            Self::Count => match text.parse::<f64>() {
                Ok(count) if (0.0..=MOST).contains(&count) => Ok(count),
                _ => Err(COUNT.into()),
            },
        }
    }

    fn write(self, value: f64) -> Written {
        match self {
            Self::Time => Written::Text(units::write_seconds(value)),
            Self::Size => Written::Text(units::write_bytes(value)),
            Self::Count => Written::Number(value),
        }
    }

    fn value(self, entry: &Entry<'_>) -> Result<f64, Error> {
        match self {
            Self::Time | Self::Size => entry.quantity(|text| self.read(text)),
            Self::Count => {
                entry.number().filter(|count| (0.0..=MOST).contains(count)).ok_or_else(|| entry.expected(COUNT))
            }
        }
    }

    fn positive(self, entry: &Entry<'_>) -> Result<f64, Error> {
        let value = self.value(entry)?;
        if value > 0.0 { Ok(value) } else { Err(entry.expected("more than zero")) }
    }

    /// The unit of numbers without one in a table.
    fn base_unit(self) -> &'static str {
        match self {
            Self::Time => "s",
            Self::Size => "b",
            Self::Count => "",
        }
    }
}

/// Reads a distribution.
pub(crate) fn read(entry: &Entry<'_>, quantity: Quantity) -> Result<Distribution, Error> {
    let Data::Table(_) = entry.data() else {
        return quantity.value(entry).map(Distribution::Constant);
    };
    let section = entry.section("a distribution")?;
    section.only(&[FORMS, MODIFIERS])?;
    read_form(entry, &section, quantity, &[])
}

/// Reads round-trip times.
pub(crate) fn read_rtt(entry: &Entry<'_>) -> Result<RttSpec, Error> {
    /// The longest round-trip time, seconds. A satellite hop takes 0.6 s, so that beyond this somebody mistook a unit.
    const LONGEST: f64 = 60.0;
    let Data::Table(table) = entry.data() else {
        let span = entry.span_within(Span::ZERO, Span::from_secs_f64(LONGEST))?;
        return Ok(RttSpec::Drawn(Distribution::Constant(span.ns() as f64 / 1e9)));
    };
    let section = entry.section("a distribution")?;
    section.only(&[FORMS, EVEN, MODIFIERS])?;
    let rtt = if table.contains_key("even") && !FORMS.iter().any(|&form| table.contains_key(form)) {
        if let Some(step) = section.get("step") {
            return Err(step.error("does not go with even"));
        }
        let (low, high) = section.require("even", "two values", |entry| pair(entry, Quantity::Time))?;
        RttSpec::Even { low, high }
    } else {
        RttSpec::Drawn(read_form(entry, &section, Quantity::Time, EVEN)?)
    };
    let typical = match &rtt {
        RttSpec::Even { high, .. } => *high,
        RttSpec::Drawn(distribution) if distribution.max().is_finite() => distribution.max(),
        // The median is judged, since an unbounded tail may have an infinite mean.
        RttSpec::Drawn(distribution) => distribution.quantile(0.5),
    };
    if typical > LONGEST {
        return Err(entry.expected(format!("round-trip times of at most {LONGEST}s")));
    }
    Ok(rtt)
}

/// Writes a distribution so that [`read`] gives it back.
pub(crate) fn write(distribution: &Distribution, quantity: Quantity) -> Written {
    let value = |x: &f64| quantity.write(*x);
    let shaped = |form, scale_name, scale, shape_name, shape: &f64| {
        Written::Inline(vec![(
            form,
            Written::Inline(vec![(scale_name, value(scale)), (shape_name, Written::Number(*shape))]),
        )])
    };
    match distribution {
        Distribution::Constant(x) => value(x),
        Distribution::Uniform(low, high) => {
            Written::Inline(vec![("uniform", Written::List(vec![value(low), value(high)]))])
        }
        Distribution::Steps { low, high, step } => {
            Written::Inline(vec![("uniform", Written::List(vec![value(low), value(high)])), ("step", value(step))])
        }
        Distribution::Exponential { mean } => Written::Inline(vec![("exponential", value(mean))]),
        Distribution::Pareto { scale, shape } => shaped("pareto", "scale", scale, "shape", shape),
        Distribution::Weibull { scale, shape } => shaped("weibull", "scale", scale, "shape", shape),
        Distribution::LogNormal { median, sigma } => shaped("lognormal", "median", median, "sigma", sigma),
        Distribution::Table(points) => {
            let point = |(x, p): &(f64, f64)| Written::List(vec![value(x), Written::Number(*p)]);
            Written::Inline(vec![("table", Written::List(points.iter().map(point).collect()))])
        }
    }
}

/// Writes round-trip times so that [`read_rtt`] gives them back.
pub(crate) fn write_rtt(rtt: &RttSpec) -> Written {
    match rtt {
        RttSpec::Drawn(distribution) => write(distribution, Quantity::Time),
        RttSpec::Even { low, high } => {
            let ends: Fields =
                vec![("even", Written::List(vec![Quantity::Time.write(*low), Quantity::Time.write(*high)]))];
            Written::Inline(ends)
        }
    }
}

/// The smallest value that can be drawn.
pub(crate) fn smallest(distribution: &Distribution) -> f64 {
    match distribution {
        Distribution::Constant(low) | Distribution::Uniform(low, _) | Distribution::Steps { low, .. } => *low,
        Distribution::Pareto { scale, .. } => *scale,
        Distribution::Exponential { .. } | Distribution::Weibull { .. } | Distribution::LogNormal { .. } => 0.0,
        Distribution::Table(points) => points.first().map_or(0.0, |(value, _)| *value),
    }
}

/// Reads one of [`FORMS`]. `more` are what might stand in its place here, for the error.
fn read_form(
    entry: &Entry<'_>,
    section: &Section<'_>,
    quantity: Quantity,
    more: &[&str],
) -> Result<Distribution, Error> {
    let forms = || format!("one of {}", [FORMS, more].concat().join(", "));
    let mut given = FORMS.iter().filter_map(|&form| section.get(form).map(|inner| (form, inner)));
    let (Some((form, inner)), None) = (given.next(), given.next()) else {
        return Err(entry.expected(forms()));
    };
    if let (Some(even), _) | (None, Some(even)) =
        (section.get("even"), section.get("step").filter(|_| form != "uniform"))
    {
        return Err(even.error(format!("does not go with {form}")));
    }
    match form {
        "uniform" => {
            let (low, high) = pair(&inner, quantity)?;
            match section.get("step") {
                Some(step) => steps(low, high, &step, quantity),
                None => Ok(Distribution::Uniform(low, high)),
            }
        }
        "exponential" => Ok(Distribution::Exponential { mean: quantity.positive(&inner)? }),
        "pareto" => pareto(&inner, quantity),
        "weibull" => {
            let table = parts(&inner, &["scale", "shape"])?;
            Ok(Distribution::Weibull {
                scale: table.require("scale", "a scale", |entry| quantity.positive(entry))?,
                shape: table.require("shape", "a number", |entry| entry.number_within(SHAPE))?,
            })
        }
        "lognormal" => {
            let table = parts(&inner, &["median", "sigma"])?;
            Ok(Distribution::LogNormal {
                median: table.require("median", "a median", |entry| quantity.positive(entry))?,
                sigma: table.require("sigma", "a number", |entry| entry.number_within(0.0..=100.0))?,
            })
        }
        "table" => table(&inner, quantity),
        _ => unreachable!("every form is read"),
    }
}

fn parts<'a>(entry: &Entry<'a>, names: &[&str]) -> Result<Section<'a>, Error> {
    let section = entry.section(&format!("a table of {}", names.join(" and ")))?;
    section.only(&[names])?;
    Ok(section)
}

/// Reads two values, of which the second is not below the first.
fn pair(entry: &Entry<'_>, quantity: Quantity) -> Result<(f64, f64), Error> {
    let two = "two values, the smallest first";
    let items = entry.list(two)?;
    let [low, high] = items.as_slice() else { return Err(entry.expected(two)) };
    let (low, high) = (quantity.value(low)?, quantity.value(high)?);
    if low <= high { Ok((low, high)) } else { Err(entry.expected(two)) }
}

fn steps(low: f64, high: f64, step: &Entry<'_>, quantity: Quantity) -> Result<Distribution, Error> {
    let width = quantity.positive(step)?;
    let count = (high - low) / width;
    // The ends and the step are decimals, so that their quotient differs from a whole number by a few roundings at
    // most.
    if count.round() < 1.0 || (count - count.round()).abs() > 1e-9 * count {
        return Err(step.expected("a step that divides the range"));
    }
    Ok(Distribution::Steps { low, high, step: width })
}

fn pareto(entry: &Entry<'_>, quantity: Quantity) -> Result<Distribution, Error> {
    let table = parts(entry, &["mean", "scale", "shape"])?;
    let shape = table.require("shape", "a number", |entry| entry.number_within(SHAPE))?;
    let scale = match (table.get("scale"), table.get("mean")) {
        (Some(scale), None) => quantity.positive(&scale)?,
        (None, Some(mean)) if shape > 1.0 => quantity.positive(&mean)? * (shape - 1.0) / shape,
        (None, Some(_)) => return Err(entry.expected("a shape above 1: below, the mean is infinite")),
        _ => return Err(entry.expected("either scale or mean")),
    };
    Ok(Distribution::Pareto { scale, shape })
}

/// Reads the points of an empirical distribution function, from the scenario itself or from a file.
fn table(entry: &Entry<'_>, quantity: Quantity) -> Result<Distribution, Error> {
    if let Data::Text(name) = entry.data() {
        let text = (entry.context.files)(name).map_err(|reason| entry.error(format!("cannot be read: {reason}")))?;
        file(name, &entry.key, &text, quantity)
    } else {
        let mut points = Points::default();
        let expected = "the name of a file, or pairs such as [\"10ms\", 0.5]";
        for item in entry.list(expected)? {
            let fields = item.list(expected)?;
            let [value, probability] = fields.as_slice() else { return Err(item.expected(expected)) };
            let value = quantity.value(value)?;
            let probability = probability.number_within(0.0..=1.0)?;
            points.push(value, probability).map_err(|problem| item.error(problem))?;
        }
        points.finish().map_err(|problem| entry.error(problem))
    }
}

/// Reads the distribution in the `text` of a file without a scenario. Returns its quantity too, which the heading
/// tells.
/// Without a heading, or with one that ends in no unit, it is a number of things.
///
/// # Errors
/// The first line that is not as expected.
pub fn read_table(name: &str, text: &str) -> Result<(Distribution, Quantity), Error> {
    // Some editors begin a text with its encoding.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().find(|line| is_data(line)).unwrap_or_default();
    // The unit of the heading, or of the first value where there is none.
    let written = match heading_unit(first) {
        Some(unit) => format!("1{unit}"),
        None => first.split(',').next().unwrap_or_default().trim().to_owned(),
    };
    let is_of = |quantity: &Quantity| quantity.read(&written).is_ok();
    let quantity = [Quantity::Time, Quantity::Size].into_iter().find(is_of).unwrap_or(Quantity::Count);
    file(name, "", text, quantity).map(|distribution| (distribution, quantity))
}

/// The points in the `text` of a file.
fn file(name: &str, key: &str, text: &str, quantity: Quantity) -> Result<Distribution, Error> {
    if text.len() > MOST_TEXT {
        let problem = format!("{} bytes long, expected at most {MOST_TEXT}", text.len());
        return Err(Error { place: name.to_owned(), key: key.to_owned(), value: None, problem });
    }
    let mut points = Points::default();
    let refuse = |line: usize, content: &str, problem: String| Error {
        place: format!("{name}:{line}"),
        key: key.to_owned(),
        value: (!content.is_empty()).then(|| shortened(content)),
        problem,
    };
    let mut unit = quantity.base_unit().to_owned();
    let mut last = (1, "");
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| is_data(line)) {
        let is_first = last.1.is_empty();
        last = (number, line.trim());
        if is_first && let Some(heading) = heading_unit(line) {
            // A number of things has no unit, whatever its column is called.
            unit = if quantity == Quantity::Count { String::new() } else { heading };
            if quantity.read(&format!("1{unit}")).is_err() {
                return Err(refuse(
                    number,
                    last.1,
                    format!("expected a heading such as value_{},probability", quantity.base_unit()),
                ));
            }
            continue;
        }
        point_of(line, &unit, quantity)
            .and_then(|(value, probability)| points.push(value, probability))
            .map_err(|problem| refuse(number, last.1, problem))?;
    }
    points.finish().map_err(|problem| refuse(last.0, last.1, problem))
}

/// Points of a distribution function as they come in.
#[derive(Default)]
struct Points(Vec<(f64, f64)>);

impl Points {
    fn push(&mut self, value: f64, probability: f64) -> Result<(), String> {
        let (value_before, probability_before) = self.0.last().copied().unwrap_or((0.0, 0.0));
        if !(0.0..=1.0).contains(&probability) {
            return Err("expected a cumulative probability from 0 to 1".into());
        }
        if value < value_before || probability < probability_before {
            return Err("expected values and probabilities that do not fall from one line to the next".into());
        }
        if self.0.len() == MOST_POINTS {
            return Err(format!("expected at most {MOST_POINTS} points: fewer say the same"));
        }
        self.0.push((value, probability));
        Ok(())
    }

    fn finish(mut self) -> Result<Distribution, String> {
        match self.0.last_mut() {
            // The sum of rounded shares ends near 1.
            Some((_, last)) if (*last - 1.0).abs() < 1e-6 => *last = 1.0,
            Some(_) => return Err("expected 1 as the last cumulative probability".into()),
            None => return Err("expected lines of value,cumulative probability".into()),
        }
        Ok(Distribution::Table(self.0))
    }
}

/// Whether a line of a file holds anything.
pub(crate) fn is_data(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

/// The unit that a heading gives. `None` if the line is no heading, because it has a number where one belongs.
fn heading_unit(line: &str) -> Option<String> {
    let (value, probability) = line.split_once(',')?;
    let is_name = |field: &str| field.trim().starts_with(|c: char| c.is_alphabetic());
    if !is_name(value) || !is_name(probability) {
        return None;
    }
    let unit = value.trim().rsplit('_').next().unwrap_or_default();
    Some(if unit == "bytes" { "b".to_owned() } else { unit.to_owned() })
}

/// One line of a table.
fn point_of(line: &str, unit: &str, quantity: Quantity) -> Result<(f64, f64), String> {
    let expected = "expected value,cumulative probability, neither negative";
    let (value, probability) = line.split_once(',').ok_or(expected)?;
    let value = value.trim();
    let value = match value.parse::<f64>() {
        // Written out without an exponent; what is negative or not finite stays unreadable.
        Ok(number) => quantity.read(&format!("{number}{unit}")),
        Err(_) => quantity.read(value),
    };
    let probability = probability.trim().parse::<f64>().map_err(|_| expected)?;
    Ok((value.map_err(|_| expected)?, probability))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_of_what_its_heading_or_its_first_value_is() {
        for (text, wanted) in [
            ("size_kb,p\n1,0.5\n2,1\n", (Quantity::Size, 2_048.0)),
            ("1kb,0.5\n2kb,1\n", (Quantity::Size, 2_048.0)),
            ("# times\n10ms,0.5\n20ms,1\n", (Quantity::Time, 0.02)),
            ("10,0.5\n20,1\n", (Quantity::Count, 20.0)),
        ] {
            let (distribution, quantity) = read_table("t.csv", text).expect("a sound table");
            assert_eq!((quantity, distribution.max()), wanted, "{text}");
        }
    }
}
