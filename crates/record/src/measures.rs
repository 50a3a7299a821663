//! The catalogue of measures says of each number of a run its name, its unit, its formula and its sources.
//!
//! A measure is defined here and nowhere else. Summaries are written by its rows ([`link`], [`hosts`], [`exchanges`];
//! those of probes and frames stand beside what counts them), the documentation's tables are made of them, and Python
//! takes names, titles and units from them. Measures that Python works out of the tables ([`results`]) stand here too;
//! Python registers a formula under each of their names.
//!
//! All are over the measured window: the run without its warm-up and cool-down.

pub mod exchanges;
pub mod hosts;
pub mod link;
pub mod results;

use crate::{frames, probes};
use serde_json::{Map, Value, json};

/// A row of the catalogue. `V` is how its number is worked out for the summary.
pub struct Row<V: 'static> {
    /// Its name, in the summary and wherever somebody asks for it.
    pub name: &'static str,
    /// What people read at the head of a column.
    pub title: &'static str,
    /// The unit of its values: `s`, `bit/s`, `packets`. `share of packets` is between 0 and 1, empty is a plain number.
    pub unit: &'static str,
    /// How it is worked out, in words and symbols.
    pub formula: &'static str,
    /// The columns of tables and the counts that it is worked out of.
    pub source: &'static str,
    /// The parameters with which claims, figures and tables ask for it; `None` where only the summary has it.
    pub parameters: Option<&'static str>,
    /// How the number is worked out for the summary.
    pub value: V,
}

/// A row of the catalogue without its function, with its place in the summary.
#[derive(Clone, Copy)]
pub struct Measure {
    /// The table of the summary that has it: `forward`, which stands for `reverse` too, `tcp`, `udp`, `probes`,
    /// `frames`, `exchanges`; empty where the summary does not have it.
    pub section: &'static str,
    /// The part of the documentation that has it, if it can be asked for.
    pub part: &'static str,
    /// What it is called.
    pub name: &'static str,
    /// What people read at the head of a column.
    pub title: &'static str,
    /// What its values are in.
    pub unit: &'static str,
    /// How it is worked out.
    pub formula: &'static str,
    /// What it is worked out of.
    pub source: &'static str,
    /// The parameters with which it is asked for; `None` where it cannot be.
    pub parameters: Option<&'static str>,
}

impl Measure {
    /// The dotted key under which the summary has it: `forward.utilisation`.
    pub fn key(&self) -> Option<String> {
        (!self.section.is_empty()).then(|| format!("{}.{}", self.section, self.name))
    }

    /// As JSON, for Python.
    fn to_json(self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "unit": self.unit,
            "formula": self.formula,
            "source": self.source,
            "key": self.key(),
            "parameters": self.parameters.map(names),
        })
    }
}

/// The names of the parameters in such a text, where they stand between backticks: "`direction` forward, `link`".
fn names(parameters: &str) -> Vec<&str> {
    parameters.split('`').skip(1).step_by(2).collect()
}

/// Every measure, in the order in which pages list them.
pub fn all() -> Vec<Measure> {
    fn of<V>(section: &'static str, part: &'static str, rows: &[Row<V>]) -> Vec<Measure> {
        let of = |row: &Row<V>| Measure {
            section,
            part,
            name: row.name,
            title: row.title,
            unit: row.unit,
            formula: row.formula,
            source: row.source,
            parameters: row.parameters,
        };
        rows.iter().map(of).collect()
    }
    [
        of("forward", "link", link::ROWS),
        of("tcp", "run", hosts::TCP),
        of("udp", "run", hosts::UDP),
        of("probes", "run", probes::ROWS),
        of("frames", "run", frames::ROWS),
        of("exchanges", "responses", exchanges::ROWS),
        of("", "responses", results::RESPONSES),
        of("", "link", results::LINK),
        of("", "run", results::RUN),
        of("", "sizes", results::SIZES),
    ]
    .concat()
}

/// The catalogue as JSON.
pub fn to_json() -> Value {
    all().into_iter().map(Measure::to_json).collect()
}

/// The percentiles that summaries have of times. `quantile` gives the time in seconds that a fraction did not exceed.
pub(crate) fn percentiles(quantile: impl Fn(f64) -> Option<f64>) -> Value {
    let of = |percent: u8| (format!("p{percent}"), json!(quantile(f64::from(percent) / 100.0)));
    Value::Object([10, 25, 50, 75, 90, 95, 99].map(of).into_iter().collect())
}

/// An object with the number of each row under its name; `value` works a number out.
pub(crate) fn values<V>(rows: &[Row<V>], value: impl Fn(&V) -> Value) -> Value {
    Value::Object(rows.iter().map(|row| (row.name.to_owned(), value(&row.value))).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_name_is_defined_once() {
        let (mut keys, mut asked) = (BTreeSet::new(), BTreeSet::new());
        for measure in all() {
            assert!(measure.key().is_none_or(|key| keys.insert(key)), "{}", measure.name);
            assert!(measure.parameters.is_none() || asked.insert(measure.name), "{}", measure.name);
            assert!(measure.key().is_some() || measure.parameters.is_some(), "{} is nobody's", measure.name);
            let said = [measure.title, measure.formula, measure.source];
            assert!(said.iter().all(|text| !text.is_empty() && !text.contains('|')), "{}", measure.name);
        }
    }

    #[test]
    fn parameters_are_what_stands_between_backticks() {
        assert_eq!(names("`column`, `statistic` mean, `link`"), ["column", "statistic", "link"]);
        assert!(names("").is_empty());
    }
}
