//! This crate is what Python sees of aqmlab: bindings and nothing else. Structured values cross as JSON text, and
//! tables are files.

mod answer;
mod catalogues;
mod crew;
mod demand;
mod files;
mod laws;
mod live;
mod progress;
mod stepped;

use base::Span;
use cpu_time::ThreadTime;
use files::beside;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use record::Engine;
use record::table::Tables;
use std::path::PathBuf;
use std::time::{Duration, Instant};

create_exception!(_native, LawError, PyRuntimeError, "A law from outside that misbehaves, in one line.");
create_exception!(_native, ScenarioError, PyValueError, "A scenario that cannot be run, in one line.");

/// How often a running simulation reports.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Version of the engine.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Checks a scenario and fills in every default. Returns JSON with `toml`, `scenario`, `digest`, `loads`, `reached`,
/// `files` and `memory`. The last is the memory that a run will need, and is empty while a load is to be calibrated.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands lists over by value")]
fn resolve(py: Python<'_>, text: &str, origin: &str, overrides: Vec<(String, String)>) -> PyResult<String> {
    let resolved = resolved(py, text, origin, &overrides)?;
    Ok(answer::of(&resolved))
}

/// Checks that a text is TOML of a size and depth that are read. Raises [`ScenarioError`] with one line if it is not.
#[pyfunction]
fn check_toml(text: &str, origin: &str) -> PyResult<()> {
    scenario::check_toml(text, origin).map_err(refused)
}

/// The equilibrium that the forward discipline of a scenario was computed for, as JSON; null where there is none.
#[pyfunction]
fn equilibrium(py: Python<'_>, text: &str, origin: &str) -> PyResult<String> {
    let resolved = resolved(py, text, origin, &[])?;
    let scenario = resolved.scenario().map_err(refused)?;
    Ok(catalogues::equilibrium(scenario.link()).to_string())
}

/// Runs a resolved scenario, writes its tables into `directory` and returns the summary as JSON. Files that it names
/// lie beside `origin`.
#[pyfunction]
#[pyo3(signature = (resolved_toml, directory, progress, origin="scenario.toml"))]
#[expect(clippy::needless_pass_by_value, reason = "Python hands paths over by value")]
fn simulate(
    py: Python<'_>,
    resolved_toml: &str,
    directory: PathBuf,
    progress: Option<Py<PyAny>>,
    origin: &str,
) -> PyResult<String> {
    let resolved = resolved(py, resolved_toml, origin, &[])?;
    let scenario = resolved.scenario().map_err(refused)?;
    let mut tables = Tables::of(scenario, &directory, scenario.record.flows.is_some()).map_err(unwritable)?;
    let mut failure = None;
    let outcome = py.detach(|| {
        #[expect(clippy::disallowed_methods, reason = "a driver reads the clock to say how fast it was")]
        let (started, cpu) = (Instant::now(), ThreadTime::now());
        let mut reported = Duration::ZERO;
        let mut report = |simulation: &sim::Simulation<'_>| {
            let wall = started.elapsed();
            if wall < reported + REPORT_EVERY {
                return true;
            }
            reported = wall;
            let Some(callback) = &progress else { return true };
            failure = Python::attach(|py| {
                py.check_signals()?;
                callback.call1(py, (progress::news(py, scenario, simulation, wall)?,)).map(drop)
            })
            .err();
            failure.is_none()
        };
        let outcome = aqm::fault::caught(|| sim::run(scenario, &mut tables, &mut report))?;
        Ok(outcome.map(|outcome| (outcome, started.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64())))
    });
    let Some((outcome, wall_s, cpu_s)) = outcome.map_err(laws::misbehaved)? else {
        return Err(failure.unwrap_or_else(|| PyRuntimeError::new_err("the run was broken off")));
    };
    tables.write_delays(&directory, &outcome.meters).map_err(unwritable)?;
    tables.finish().map_err(unwritable)?;
    let engine = Engine {
        kind: "sim",
        events: Some(outcome.events),
        bottleneck_packets: outcome.bottleneck_packets,
        simulated: Span::from_ns(scenario.duration.ns()),
        wall_s,
        cpu_s,
    };
    let summary = outcome.summary(scenario, &engine);
    Ok(summary.to_json().to_string())
}

/// The registry of disciplines as JSON.
#[pyfunction]
fn disciplines() -> String {
    catalogues::disciplines().to_string()
}

/// What the field knows by a name that is none of a discipline here, in a line; `None` of other names.
#[pyfunction]
fn known_as(name: &str) -> Option<&'static str> {
    scenario::known_as(name)
}

/// The TCP stack profiles as JSON.
#[pyfunction]
fn stacks() -> String {
    catalogues::stacks().to_string()
}

/// The congestion controllers as JSON.
#[pyfunction]
fn controllers() -> String {
    catalogues::controllers().to_string()
}

/// The catalogue of measures as JSON.
#[pyfunction]
fn measures() -> String {
    record::measures::to_json().to_string()
}

/// The kinds and models of traffic as JSON.
#[pyfunction]
fn traffic_models() -> String {
    catalogues::traffic().to_string()
}

/// What a model of traffic draws, as JSON: each quantity with its mean, quantiles and shares of the sum.
#[pyfunction]
fn quantities(model: &str) -> String {
    demand::quantities(model).to_string()
}

/// The quantity in the text of a file with two columns, as JSON like those of [`quantities`].
#[pyfunction]
fn table_quantity(name: &str, text: &str) -> PyResult<String> {
    demand::table_quantity(name, text).map(|value| value.to_string()).map_err(refused)
}

/// The connection vectors in the text of a file, as JSON.
#[pyfunction]
fn vectors(name: &str, text: &str) -> PyResult<String> {
    let refuse = |bad: traffic::tmix::reading::Malformed| {
        ScenarioError::new_err(format!("{name}:{}: {}", bad.line, bad.problem))
    };
    demand::vectors(text).map(|value| value.to_string()).map_err(refuse)
}

/// The compiled half of aqmlab.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("LawError", module.py().get_type::<LawError>())?;
    module.add("ScenarioError", module.py().get_type::<ScenarioError>())?;
    module.add_function(wrap_pyfunction!(version, module)?)?;
    module.add_function(wrap_pyfunction!(resolve, module)?)?;
    module.add_function(wrap_pyfunction!(check_toml, module)?)?;
    module.add_function(wrap_pyfunction!(equilibrium, module)?)?;
    module.add_function(wrap_pyfunction!(simulate, module)?)?;
    module.add_function(wrap_pyfunction!(disciplines, module)?)?;
    module.add_function(wrap_pyfunction!(known_as, module)?)?;
    module.add_function(wrap_pyfunction!(stacks, module)?)?;
    module.add_function(wrap_pyfunction!(controllers, module)?)?;
    module.add_function(wrap_pyfunction!(measures, module)?)?;
    module.add_function(wrap_pyfunction!(traffic_models, module)?)?;
    module.add_function(wrap_pyfunction!(quantities, module)?)?;
    module.add_function(wrap_pyfunction!(table_quantity, module)?)?;
    module.add_function(wrap_pyfunction!(vectors, module)?)?;
    module.add_function(wrap_pyfunction!(laws::bring_library, module)?)?;
    module.add_function(wrap_pyfunction!(laws::bring_table, module)?)?;
    module.add_function(wrap_pyfunction!(laws::bring_discipline, module)?)?;
    module.add_function(wrap_pyfunction!(laws::drive, module)?)?;
    module.add_function(wrap_pyfunction!(laws::replay, module)?)?;
    module.add_function(wrap_pyfunction!(live::live, module)?)?;
    crew::add_to(module)?;
    stepped::add_to(module)?;
    Ok(())
}

/// Resolves without holding the interpreter, so that other threads can use it while large files are read and
/// populations are found.
fn resolved(py: Python<'_>, text: &str, origin: &str, overrides: &[(String, String)]) -> PyResult<scenario::Resolved> {
    py.detach(|| scenario::resolve_with(&laws::registry(), text, origin, overrides, &beside(origin))).map_err(refused)
}

fn refused(error: scenario::Error) -> PyErr {
    ScenarioError::new_err(error.to_string())
}

fn unwritable(error: impl std::fmt::Display) -> PyErr {
    PyOSError::new_err(format!("the tables cannot be written: {error}"))
}
