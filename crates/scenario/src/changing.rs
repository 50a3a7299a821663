//! A link may change while a run goes on: by `schedule` and `period`, or by `states`, in `[link]` and `[links.NAME]`.
//!
//! ```toml
//! schedule = [
//!     { at = "10s", rate = "5mbit" },
//!     { at = "20s", rate = "50mbit", delay = "30ms", outage = "80ms" },
//! ]
//! period = "30s"
//! ```
//!
//! What an entry does not say stays as it is. A link without a rate or delay of its own in reverse has the forward one.
//! After a period the link is as it was at the start, and the schedule begins again.
//!
//! ```toml
//! states = [
//!     { rate = "50mbit", stay = { exponential = "4s" }, to = [0, 1] },
//!     { rate = "5mbit", stay = { exponential = "1s" }, to = [1, 0] },
//! ]
//! ```
//!
//! The link begins in the first state. It stays in each state for a time that is drawn, and goes on to another one that
//! is drawn by the weights in `to`. What a state does not say is as the link has it.

use crate::bounds::MOST_CHANGES;
use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::section::{Entry, Section};
use crate::units;
use crate::written::{Fields, Written};
use aqm::changes::{Condition, Moment, Pattern, State};
use base::Span;

pub(crate) const KEYS: &[&str] = &["schedule", "period", "states", "told_rate"];

/// The longest delay behind a link. Beyond a satellite's, somebody mistook a unit.
const LONGEST_DELAY: Span = Span::from_secs(10);
const LONGEST: Span = Span::from_secs(1_000_000);
/// The shortest period and mean stay, since each change costs an event.
const SHORTEST_PERIOD: Span = Span::from_ms(1);
const A_SCHEDULE: &str = "a list of changes such as [{ at = \"10s\", rate = \"5mbit\" }]";
const STATES: &str = "a list of two states or more, such as [{ rate = \"5mbit\", stay = \"1s\", to = [0, 1] }, ...]";

/// The condition of a link both ways, and whether the reverse one follows the forward one.
#[derive(Clone, Copy)]
pub(crate) struct Likeness {
    pub conditions: [Condition; 2],
    pub rate_follows: bool,
    pub delay_follows: bool,
}

/// Reads how a link changes that would start as `start`; `None` if it does not. Returns its condition at the start too.
pub(crate) fn read(section: &Section<'_>, start: Likeness) -> Result<(Option<Pattern>, [Condition; 2]), Error> {
    let unchanged = (None, start.conditions);
    match (section.get("schedule"), section.get("states")) {
        (None, None) => match section.get("period") {
            Some(entry) => Err(entry.expected("no such key on a link without a schedule or states")),
            None => Ok(unchanged),
        },
        (Some(_), Some(states)) => Err(states.expected("no states beside a schedule: the link changes by either")),
        (Some(schedule), None) => {
            refuse_trace(section, &schedule)?;
            Ok((Some(read_schedule(section, &schedule, start)?), start.conditions))
        }
        (None, Some(states)) => {
            refuse_trace(section, &states)?;
            if let Some(entry) = section.get("period") {
                return Err(entry.expected("no period beside states: they follow each other at random"));
            }
            let states = read_states(section, &states, start)?;
            let first = states[0].conditions;
            Ok((Some(Pattern::Chain(states)), first))
        }
    }
}

fn refuse_trace(section: &Section<'_>, changing: &Entry<'_>) -> Result<(), Error> {
    match section.get("trace").or_else(|| section.get("reverse_trace")) {
        Some(_) => Err(changing.expected("none on a link with a trace, whose rate is the trace's")),
        None => Ok(()),
    }
}

/// Reads a table about a link that is otherwise as `before`.
fn read_likeness(table: &Section<'_>, before: Likeness) -> Result<Likeness, Error> {
    let mut next = before;
    if let Some(entry) = table.get("rate") {
        next.conditions[0].rate = read_rate(&entry)?;
        if before.rate_follows {
            next.conditions[1].rate = next.conditions[0].rate;
        }
    }
    if let Some(entry) = table.get("reverse_rate") {
        next.conditions[1].rate = read_rate(&entry)?;
    }
    if let Some(entry) = table.get("delay") {
        next.conditions[0].delay = read_delay(&entry)?;
        if before.delay_follows {
            next.conditions[1].delay = next.conditions[0].delay;
        }
    }
    if let Some(entry) = table.get("reverse_delay") {
        next.conditions[1].delay = read_delay(&entry)?;
    }
    Ok(next)
}

fn read_rate(entry: &Entry<'_>) -> Result<base::Rate, Error> {
    entry.rate().map_err(|error| Error {
        problem: format!("{}; a time without any is outage = \"80ms\"", error.problem),
        ..error
    })
}

/// Reads a propagation delay behind a link.
pub(crate) fn read_delay(entry: &Entry<'_>) -> Result<Span, Error> {
    entry.span_within(Span::ZERO, LONGEST_DELAY)
}

fn write_likeness(conditions: &[Condition; 2]) -> Fields {
    let [forward, reverse] = conditions;
    vec![
        ("rate", Written::Text(units::write_rate(forward.rate))),
        ("reverse_rate", Written::Text(units::write_rate(reverse.rate))),
        ("delay", Written::Text(units::write_span(forward.delay))),
        ("reverse_delay", Written::Text(units::write_span(reverse.delay))),
    ]
}

fn read_schedule(section: &Section<'_>, entry: &Entry<'_>, start: Likeness) -> Result<Pattern, Error> {
    let list = entry.list(A_SCHEDULE)?;
    if list.is_empty() || list.len() > MOST_CHANGES {
        return Err(entry.error(format!("expected a list of 1 to {MOST_CHANGES} changes")));
    }
    let period = section.get("period").map(|entry| entry.span_within(SHORTEST_PERIOD, LONGEST)).transpose()?;
    let mut moments: Vec<Moment> = Vec::with_capacity(list.len());
    let mut present = start;
    for change in list {
        let table = change.section(A_SCHEDULE)?;
        table.only(&[&["at", "rate", "reverse_rate", "delay", "reverse_delay", "outage"]])?;
        let after = table.require("at", "a time since the start of the run", |entry| {
            let after = entry.span_within(Span::from_ns(1), LONGEST)?;
            if let Some(before) = moments.last().filter(|before| after <= before.after) {
                let before = units::write_span(before.after);
                return Err(entry.expected(format!("a time later than {before}, that of the change before")));
            }
            if let Some(period) = period.filter(|period| after >= *period) {
                return Err(
                    entry.expected(format!("a time before the end of the period, {}", units::write_span(period)))
                );
            }
            Ok(after)
        })?;
        present = read_likeness(&table, present)?;
        let outage = table.read("outage", Span::ZERO, |entry| {
            let outage = entry.span_within(Span::ZERO, LONGEST)?;
            match period.filter(|period| outage >= *period) {
                Some(period) => Err(entry.expected(format!("less than the period, {}", units::write_span(period)))),
                None => Ok(outage),
            }
        })?;
        moments.push(Moment { after, conditions: present.conditions, outage });
    }
    Ok(Pattern::Schedule { start: start.conditions, moments, period })
}

fn read_states(section: &Section<'_>, entry: &Entry<'_>, start: Likeness) -> Result<Vec<State>, Error> {
    /// The most states: more than any table of such models has.
    const MOST_STATES: usize = 1000;
    let list = entry.list(STATES)?;
    if !(2..=MOST_STATES).contains(&list.len()) {
        return Err(entry.error(format!("expected a list of 2 to {MOST_STATES} states")));
    }
    let count = list.len();
    let state = |entry: &Entry<'_>| {
        let table = entry.section(STATES)?;
        table.only(&[&["rate", "reverse_rate", "delay", "reverse_delay", "stay", "to"]])?;
        let conditions = read_likeness(&table, start)?.conditions;
        let stay = table.require("stay", "a time or a distribution of times", |entry| {
            let stay = distribution::read(entry, Quantity::Time)?;
            // A mean near none would stop the run.
            if stay.mean() >= SHORTEST_PERIOD.secs_f64() {
                Ok(stay)
            } else {
                Err(entry.expected("times of at least 1ms in the mean"))
            }
        })?;
        let weights = format!("a weight for each of the {count} states, at least one above zero");
        let to = table.require("to", &weights, |entry| {
            let to = entry
                .list(&weights)?
                .iter()
                .map(|entry| entry.number_within(0.0..=1e9))
                .collect::<Result<Vec<_>, _>>()?;
            if to.len() == count && to.iter().sum::<f64>() > 0.0 { Ok(to) } else { Err(entry.expected(&weights)) }
        })?;
        Ok(State { conditions, stay, to })
    };
    let states: Vec<State> = list.iter().map(state).collect::<Result<_, _>>()?;
    refuse_idle(section, &list, start.conditions, states[0].conditions)?;
    Ok(states)
}

/// Refuses what a link says of itself where each of its states says another.
fn refuse_idle(
    section: &Section<'_>,
    states: &[Entry<'_>],
    start: [Condition; 2],
    first: [Condition; 2],
) -> Result<(), Error> {
    let differing = [
        ("rate", start[0].rate != first[0].rate),
        ("reverse_rate", start[1].rate != first[1].rate),
        ("delay", start[0].delay != first[0].delay),
        ("reverse_delay", start[1].delay != first[1].delay),
    ];
    for (key, differs) in differing {
        let Some(entry) = section.get(key).filter(|_| differs) else { continue };
        if states.iter().all(|state| state.section(STATES).is_ok_and(|table| table.get(key).is_some())) {
            return Err(entry.expected("no such key beside states that all have it, or what the first of them has"));
        }
    }
    Ok(())
}

/// Writes the keys of [`read`].
pub(crate) fn write(pattern: &Pattern) -> Fields {
    match pattern {
        Pattern::Schedule { moments, period, .. } => {
            let moment = |moment: &Moment| {
                let mut fields = vec![("at", Written::Text(units::write_span(moment.after)))];
                fields.extend(write_likeness(&moment.conditions));
                fields.push(("outage", Written::Text(units::write_span(moment.outage))));
                Written::Inline(fields)
            };
            let mut fields = vec![("schedule", Written::List(moments.iter().map(moment).collect()))];
            fields.extend(period.map(|period| ("period", Written::Text(units::write_span(period)))));
            fields
        }
        Pattern::Chain(states) => {
            let state = |state: &State| {
                let mut fields = write_likeness(&state.conditions);
                fields.push(("stay", distribution::write(&state.stay, Quantity::Time)));
                fields.push(("to", Written::List(state.to.iter().map(|&weight| Written::Number(weight)).collect())));
                Written::Inline(fields)
            };
            vec![("states", Written::List(states.iter().map(state).collect()))]
        }
    }
}
