//! Runs the test vectors in testdata/vectors; their README says what they mean.

use crate::common::{self, Parcel, Recorder, Told};
use aqm::{Cause, Qdisc, registry};
use base::{Ecn, Rate, Stream, Time};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    about: String,
    source: String,
    discipline: String,
    rate_bps: u64,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    draws: Vec<f64>,
    #[serde(default)]
    parameters: BTreeMap<String, toml::Value>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    at_ns: u64,
    offer: Option<u32>,
    #[serde(default)]
    take: bool,
    #[serde(default)]
    tick: bool,
    #[serde(default)]
    ecn: Field,
    #[serde(default = "one")]
    flow: u64,
    #[serde(default = "one")]
    times: u64,
    #[serde(default)]
    every_ns: u64,
    expect: Option<String>,
    #[serde(default)]
    except: BTreeMap<String, String>,
    probability: Option<f64>,
    control: Option<f64>,
    packets: Option<u32>,
    bytes: Option<u64>,
    within: Option<f64>,
}

#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "kebab-case")]
enum Field {
    #[default]
    NotEct,
    Ect0,
    Ect1,
    Ce,
}

impl From<Field> for Ecn {
    fn from(field: Field) -> Self {
        match field {
            Field::NotEct => Self::NotEct,
            Field::Ect0 => Self::Ect0,
            Field::Ect1 => Self::Ect1,
            Field::Ce => Self::Ce,
        }
    }
}

fn one() -> u64 {
    1
}

/// A discipline under a vector, and the story so far.
struct Run {
    qdisc: Box<dyn Qdisc<Parcel> + Send>,
    offered: u64,
    gone: u64,
    story: String,
}

impl Run {
    /// Does what is due until `now`, as an egress would, and then the step; returns what happened.
    fn step(&mut self, step: &Step, now: Time) -> Vec<String> {
        while self.qdisc.next_tick() <= now {
            let due = self.qdisc.next_tick();
            self.qdisc.tick(due);
            assert!(self.qdisc.next_tick() > due, "a tick moves on");
        }
        let mut recorder = Recorder::default();
        let mut sent = None;
        if let Some(size) = step.offer {
            self.offered += 1;
            let parcel = Parcel { number: self.offered, size, ecn: step.ecn.into(), flow: step.flow };
            self.qdisc.offer(parcel, now, &mut recorder);
        } else if step.take {
            sent = Some(self.qdisc.take(now, &mut recorder).packet());
        }
        let mut events: Vec<String> = recorder.0.iter().map(tell).collect();
        self.gone += recorder.0.iter().filter(|told| matches!(told, Told::Dropped(..))).count() as u64;
        match sent {
            Some(Some(held)) => {
                self.gone += 1;
                events.push(format!("send #{}", held.packet.number));
            }
            Some(None) => events.push("none".into()),
            None => {}
        }
        let backlog = self.qdisc.backlog();
        writeln!(
            self.story,
            "{now:?} {} -> {}; backlog {} packets, {} bytes; {:?}",
            if let Some(size) = step.offer {
                format!("offer {size}")
            } else {
                if step.take { "take" } else { "tick" }.into()
            },
            events.join(", "),
            backlog.packets,
            backlog.bytes,
            self.qdisc.gauges(),
        )
        .expect("a string takes what is written");
        assert_eq!(self.offered, self.gone + u64::from(backlog.packets), "packets are conserved\n{}", self.story);
        events
    }
}

fn tell(told: &Told) -> String {
    let cause = |cause: &Cause| cause.name();
    match told {
        Told::Accepted(n) => format!("accept #{n}"),
        Told::Marked(n, c) => format!("mark {} #{n}", cause(c)),
        Told::Dropped(n, c) => format!("drop {} #{n}", cause(c)),
    }
}

/// Whether events are as expected: the same words in order, numbers only where the expectation has them.
fn agree(expected: &str, events: &[String]) -> bool {
    let expected: Vec<&str> = expected.split(',').map(str::trim).filter(|event| !event.is_empty()).collect();
    expected.len() == events.len()
        && expected.iter().zip(events).all(|(expected, event)| match expected.contains('#') {
            true => expected == event,
            false => Some(*expected) == event.split(" #").next(),
        })
}

fn run(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let vector: Vector = toml::from_str(&text).map_err(|error| error.to_string())?;
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    if folder.as_deref() != Some(&vector.discipline) {
        return Err(format!("it is about {} and lies in {folder:?}", vector.discipline));
    }
    if vector.about.is_empty() || vector.source.is_empty() {
        return Err("it says what it is about and where it comes from".into());
    }
    let stream = || Stream::named(vector.seed, "vector");
    let mut fresh = stream();
    let draws: Vec<f64> = vector.draws.iter().map(|_| fresh.unit()).collect();
    if draws != vector.draws {
        return Err(format!("the first draws of seed {} are {draws:?}", vector.seed));
    }
    let written: Vec<(String, String)> = vector
        .parameters
        .iter()
        .map(|(key, value)| (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .collect();
    let qdisc = common::build(&vector.discipline, &written, Rate::from_bps(vector.rate_bps), stream())?;
    let mut run = Run { qdisc, offered: 0, gone: 0, story: String::new() };
    let mut last = 0;
    for (index, step) in vector.steps.iter().enumerate() {
        let fail =
            |run: &Run, what: String| Err(format!("step {}: {what}\nThe story so far:\n{}", index + 1, run.story));
        if u8::from(step.offer.is_some()) + u8::from(step.take) + u8::from(step.tick) != 1 {
            return fail(&run, "expected one of offer, take, tick".into());
        }
        for round in 0..step.times {
            let now = step.at_ns + round * step.every_ns;
            if now < last {
                return fail(&run, format!("time goes back to {now}"));
            }
            last = now;
            let events = run.step(step, Time::from_ns(now));
            let expected = step.except.get(&(round + 1).to_string()).or(step.expect.as_ref());
            if let Some(expected) = expected.filter(|expected| !agree(expected, &events)) {
                return fail(&run, format!("round {}: expected {expected}, got {}", round + 1, events.join(", ")));
            }
        }
        let gauges = run.qdisc.gauges();
        for (name, expected, got) in
            [("probability", step.probability, gauges.probability), ("control", step.control, gauges.control)]
        {
            // Another order of the same operations: some roundings of 1e-16 each.
            let within = step.within.unwrap_or(1e-9);
            if let Some(expected) = expected {
                let is_near = got.is_some_and(|got| (got - expected).abs() <= within * expected.abs().max(1e-3));
                if !is_near {
                    return fail(&run, format!("expected {name} {expected}, got {got:?}"));
                }
            }
        }
        let backlog = run.qdisc.backlog();
        if step.packets.is_some_and(|packets| packets != backlog.packets)
            || step.bytes.is_some_and(|bytes| bytes != backlog.bytes)
        {
            return fail(&run, format!("expected {:?} packets, {:?} bytes; got {backlog:?}", step.packets, step.bytes));
        }
    }
    Ok(())
}

fn vectors() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vectors");
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
        paths.sort();
        paths
    };
    let folders = list(&root).into_iter().filter(|path| path.is_dir());
    folders.flat_map(|folder| list(&folder)).filter(|path| path.extension().is_some_and(|e| e == "toml")).collect()
}

#[test]
fn every_vector_holds() {
    let failures: Vec<String> = vectors()
        .iter()
        .filter_map(|path| run(path).err().map(|failure| format!("{}\n{failure}\n", path.display())))
        .collect();
    assert!(failures.is_empty(), "{} vectors fail\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn every_discipline_has_vectors() {
    let paths = vectors();
    for row in registry::rows() {
        let folder = Path::new("vectors").join(&*row.name);
        assert!(
            paths.iter().any(|path| path.parent().is_some_and(|parent| parent.ends_with(&folder))),
            "{} has vectors",
            row.name
        );
    }
}
