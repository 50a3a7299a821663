//! The path may lose or reorder packets before they reach the bottleneck (`loss`, `reorder`), much as netem does
//! (tc-netem(8)).
//!
//! ```toml
//! [path]
//! loss = 0.01
//! reorder = { share = 0.001, delay = "5ms" }
//! ```
//!
//! Each packet is lost with the same probability, whatever became of the others. Of the remaining packets a share is
//! held back by some more delay, and overtaken by whatever its sender sends meanwhile.
//!
//! # Deviations
//! - In netem `reorder` is the share that is sent at once while all others are delayed. Here it is the share that is
//!   held back, so that `rtt` stays the round-trip time of the others.

use crate::distribution::{self, Quantity};
use crate::error::Error;
use crate::scenario::{Path, Scenario};
use crate::section::{Entry, Section};
use crate::units;
use crate::written::{Fields, Written};
use base::{Distribution, Span, Stream};

pub(crate) const KEYS: &[&str] = &["loss", "reverse_loss", "reorder", "reverse_reorder"];

/// What the path does to the packets of one direction.
#[derive(Clone, PartialEq, Debug)]
pub struct Impairment {
    /// The probability with which a packet is lost.
    pub loss: f64,
    /// How some of the other packets are held back, if any are.
    pub reorder: Option<Reorder>,
}

/// Packets that are held back.
#[derive(Clone, PartialEq, Debug)]
pub struct Reorder {
    /// The probability with which a packet is held back.
    pub share: f64,
    /// For how long, seconds.
    pub delay: Distribution,
}

impl Impairment {
    /// A path that loses and reorders nothing.
    pub const NONE: Self = Self { loss: 0.0, reorder: None };
}

/// Reads what `[path]` says of both directions. The reverse one is as the forward one unless it has its own keys.
pub(crate) fn read(section: &Section<'_>) -> Result<([Impairment; 2], Fields), Error> {
    let read = |loss, reorder, default: &Impairment| {
        let loss = section.read(loss, default.loss, |entry| entry.number_within(0.0..=1.0))?;
        let reorder = section.read(reorder, default.reorder.clone(), read_reorder)?;
        Ok::<_, Error>(Impairment { loss, reorder })
    };
    let forward = read("loss", "reorder", &Impairment::NONE)?;
    let reverse = read("reverse_loss", "reverse_reorder", &forward)?;
    // They are written only where there are any, so that scenarios without them keep their text and digest.
    let mut written = Vec::new();
    if forward.loss > 0.0 || reverse.loss > 0.0 {
        written.extend([("loss", forward.loss), ("reverse_loss", reverse.loss)].map(|(k, x)| (k, Written::Number(x))));
    }
    if forward.reorder.is_some() || reverse.reorder.is_some() {
        written.push(("reorder", write_reorder(forward.reorder.as_ref())));
        written.push(("reverse_reorder", write_reorder(reverse.reorder.as_ref())));
    }
    Ok(([forward, reverse], written))
}

/// Reads `reorder`; `None` where nothing is held back.
fn read_reorder(entry: &Entry<'_>) -> Result<Option<Reorder>, Error> {
    let section = entry.section("a table such as { share = 0.001, delay = \"5ms\" }")?;
    section.only(&[&["share", "delay"]])?;
    let share = section.require("share", "a number from 0 to 1", |entry| entry.number_within(0.0..=1.0))?;
    if share == 0.0 && section.get("delay").is_none() {
        return Ok(None);
    }
    let delay = section.require("delay", "a time or a distribution of times", |entry| {
        let delay = distribution::read(entry, Quantity::Time)?;
        if delay.max() > 0.0 { Ok(delay) } else { Err(entry.expected("times of more than 0s")) }
    })?;
    Ok((share > 0.0).then_some(Reorder { share, delay }))
}

fn write_reorder(reorder: Option<&Reorder>) -> Written {
    let mut fields = vec![("share", Written::Number(reorder.map_or(0.0, |reorder| reorder.share)))];
    fields.extend(reorder.map(|reorder| ("delay", distribution::write(&reorder.delay, Quantity::Time))));
    Written::Inline(fields)
}

/// Decides the fate of each packet, in the order in which packets are sent in each direction.
pub struct Impairments {
    sides: [Side; 2],
}

struct Side {
    impairment: Impairment,
    losses: Stream,
    reorders: Stream,
}

impl Impairments {
    /// The impairments of a run of `scenario`; `None` where there are none.
    pub fn of(scenario: &Scenario) -> Option<Self> {
        let side = |side: usize, direction| {
            let stream = |what| Stream::named(scenario.seed, &format!("path/{direction}/{what}"));
            let impairment = scenario.path.impairments[side].clone();
            Side { impairment, losses: stream("loss"), reorders: stream("reorder") }
        };
        scenario.path.is_impaired().then(|| Self { sides: [side(0, "forward"), side(1, "reverse")] })
    }

    /// The fate of the next packet that `side` sends: how much later it reaches the bottleneck, or `None` if it is
    /// lost.
    #[inline]
    pub fn fate(&mut self, side: usize) -> Option<Span> {
        let Side { impairment, losses, reorders } = &mut self.sides[side];
        if impairment.loss > 0.0 && losses.chance(impairment.loss) {
            return None;
        }
        let held_back = impairment.reorder.as_ref().filter(|reorder| reorders.chance(reorder.share));
        let seconds = held_back.map_or(0.0, |reorder| reorder.delay.draw(reorders).min(units::MAX_SECONDS));
        Some(Span::from_secs_f64(seconds))
    }
}

impl Path {
    /// Whether packets are lost or held back before the bottleneck in either direction.
    pub fn is_impaired(&self) -> bool {
        self.impairments.iter().any(|impairment| *impairment != Impairment::NONE)
    }

    /// Whether packets are lost there.
    pub fn is_lossy(&self) -> bool {
        self.impairments.iter().any(|impairment| impairment.loss > 0.0)
    }
}
