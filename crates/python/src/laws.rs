//! This file keeps the laws and disciplines that Python has brought, from libraries or compiled in this process.
//! Scenarios that are resolved afterwards may name their files.

use crate::{LawError, ScenarioError, catalogues};
use aqm::registry::{Entry, Registry, Site};
use aqm::replay::{Deed, Outcome, Step};
use base::{Ecn, FlowKey, Stream, Time};
use cpu_time::ThreadTime;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};

static REGISTRY: LazyLock<Mutex<Arc<Registry>>> = LazyLock::new(|| Mutex::new(Arc::new(Registry::builtin())));

/// The disciplines that a scenario may name now.
pub fn registry() -> Arc<Registry> {
    Arc::clone(&REGISTRY.lock().expect("nobody panics with it"))
}

/// Brings the law of the library `library`, for scenarios that name the file `path`. Returns JSON with its
/// `disciplines` and what it was `built_with`. The library stays loaded.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands paths over by value")]
pub fn bring_library(library: PathBuf, path: PathBuf, sha256: &str) -> PyResult<String> {
    bring(law::open(&library), &path, sha256)
}

/// Brings the law whose table is at `address` of this process, as [`bring_library`].
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands paths over by value")]
#[expect(unsafe_code, reason = "an address is Python's word")]
pub fn bring_table(address: usize, path: PathBuf, sha256: &str) -> PyResult<String> {
    // SAFETY: `aqmlab.laws` has made the table, keeps it for as long as the process lives, and changes nothing of it.
    bring(unsafe { law::at(address) }, &path, sha256)
}

/// Brings the discipline whose table is at `address`, as [`bring_table`].
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands paths over by value")]
#[expect(unsafe_code, reason = "an address is Python's word")]
pub fn bring_discipline(address: usize, path: PathBuf, sha256: &str) -> PyResult<String> {
    // SAFETY: as above.
    bring(unsafe { law::discipline_at(address) }, &path, sha256)
}

/// Brings a law, or refuses it with its path.
pub fn bring(found: Result<(Entry, String), String>, path: &Path, sha256: &str) -> PyResult<String> {
    let refused = |why: String| ScenarioError::new_err(format!("{}: {why}", path.display()));
    let (entry, built_with) = found.map_err(refused)?;
    let mut current = REGISTRY.lock().expect("nobody panics with it");
    let mut registry = Registry::clone(&current);
    registry.bring(path, sha256, entry).map_err(refused)?;
    *current = Arc::new(registry);
    let (_, forms) = current.of_content(sha256).expect("it was just brought");
    let [own, fair] = forms;
    let law = own.map(|own| &*own.row().name);
    let forms = [(own, None), (fair, law)].into_iter();
    let disciplines: Vec<_> = forms.filter_map(|(form, law)| Some(catalogues::discipline(form?, law))).collect();
    Ok(json!({ "disciplines": disciplines, "built_with": built_with }).to_string())
}

/// Puts the forward discipline of a resolved scenario through `operations` random operations. Returns JSON with the
/// counts and the nanoseconds of processor time that they took, or with the `fault` and its `story`.
#[pyfunction]
pub fn drive(py: Python<'_>, text: &str, origin: &str, seed: u64, operations: u32, tells: bool) -> PyResult<String> {
    let resolved = crate::resolved(py, text, origin, &[])?;
    let scenario = resolved.scenario().map_err(crate::refused)?;
    let (link, qdisc) = (&scenario.links[0], &scenario.links[0].qdiscs[0]);
    py.detach(|| {
        // Of this thread alone: what else the machine does is no cost of the law's.
        let began = ThreadTime::now();
        let found = law::check::drive(&qdisc.entry, &qdisc.values, link.rates[0], seed, operations, tells);
        let ns = began.elapsed().as_nanos() as u64;
        Ok(match found {
            Ok(counts) => json!({
                "offered": counts.offered, "taken": counts.taken, "lost": counts.lost, "refused": counts.refused,
                "marked": counts.marked, "ticks": counts.ticks, "lost_when_idle": counts.lost_when_idle,
                "reordered": counts.reordered, "overtaking": counts.overtaking,
                "history": format!("{:016x}", counts.history), "ns": ns,
            }),
            Err((fault, story)) => json!({ "fault": fault.message(), "story": story }),
        }
        .to_string())
    })
}

/// A step of a story as Python writes it: `["offer", AT_NS, SIZE, ECN, FLOW]`, `["take", AT_NS]` or `["look", AT_NS]`.
#[derive(Deserialize)]
struct Op(String, u64, #[serde(default)] u32, #[serde(default)] String, #[serde(default)] u64);

impl Op {
    fn step(&self) -> Step {
        let Self(word, at_ns, size, ecn, flow) = self;
        let ecn = match ecn.as_str() {
            "ect0" => Ecn::Ect0,
            "ect1" => Ecn::Ect1,
            "ce" => Ecn::Ce,
            _ => Ecn::NotEct,
        };
        let deed = match word.as_str() {
            "offer" => Deed::Offer { size: *size, ecn, flow: FlowKey(*flow) },
            "take" => Deed::Take,
            _ => Deed::Look,
        };
        Step { at: Time::from_ns(*at_ns), deed }
    }
}

/// Puts the forward discipline of a resolved scenario, which draws from the stream `vector` of `seed`, through the
/// story `ops`. Returns JSON with what came of each step, or with the `fault`.
#[pyfunction]
pub fn replay(py: Python<'_>, text: &str, origin: &str, seed: u64, ops: &str) -> PyResult<String> {
    let resolved = crate::resolved(py, text, origin, &[])?;
    let scenario = resolved.scenario().map_err(crate::refused)?;
    let (link, qdisc) = (&scenario.links[0], &scenario.links[0].qdiscs[0]);
    let ops: Vec<Op> = serde_json::from_str(ops).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let site = Site { rate: link.rates[0], stream: Stream::named(seed, "vector") };
    py.detach(|| {
        let run = || aqm::replay::replay(&mut *qdisc.entry.build(&qdisc.values, site), ops.iter().map(Op::step));
        Ok(match aqm::fault::caught(run) {
            Ok(outcomes) => json!({ "decisions": outcomes.into_iter().map(decision).collect::<Vec<_>>() }),
            Err(fault) => json!({ "fault": fault.message() }),
        }
        .to_string())
    })
}

fn decision(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Told(told) => json!(told),
        Outcome::State(backlog, gauges) => json!({
            "packets": backlog.packets, "bytes": backlog.bytes,
            "probability": gauges.probability, "control": gauges.control,
        }),
    }
}

/// The exception for a law that has ended a run.
#[expect(clippy::needless_pass_by_value, reason = "it is an error that is mapped")]
pub fn misbehaved(fault: aqm::Fault) -> PyErr {
    LawError::new_err(fault.message())
}
