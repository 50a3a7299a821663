//! This file has runs that Python makes a step at a time, looks into and steers, and laws that a policy in Python
//! steers. Simulated time passes without the interpreter's lock, so that several runs go on in as many threads.

use crate::{ScenarioError, files::beside, laws};
use aqm::Fault;
use aqm::changes::Sendable;
use base::{Span, Time};
use law::steered::{self, HELD, Helm, Pilot, Policy, Seen};
use net::Port;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use record::{DropRow, ExchangeRow, QueueRow, Sink};
use scenario::{Resolved, Scenario};
use self_cell::self_cell;
use sim::Simulation;
use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

self_cell!(
    struct Run {
        owner: Scenario,
        #[not_covariant]
        dependent: Simulation,
    }
);

/// What was seen of a queue, in the order of the arguments of `aqmlab.laws.observed.Seen`.
type Counts = (u32, u32, u64, u32, u32, u32, u64, u64, u64, u64, f64);

/// What was seen of hosts: connections, exchanges under way, exchanges that were completed within the step, and the sum
/// of their response times in seconds.
type Hosts = (u32, u32, u32, f64);

/// What the link can send, bits a second: in the mean over the step, and at its end.
type Rates = (f64, u64);

fn counts(seen: &Seen) -> Counts {
    let &Seen { offered_packets, delivered_packets, delivered_bytes, dropped_packets, marked_packets, .. } = seen;
    let &Seen { queue_packets, queue_bytes, wait_sum_ns, wait_max_ns, rate_bps, probability, .. } = seen;
    let passed = (offered_packets, delivered_packets, delivered_bytes, dropped_packets, marked_packets);
    let (waits, rate) = ((queue_packets, queue_bytes, wait_sum_ns, wait_max_ns), (rate_bps, probability));
    let ((a, b, c, d, e), (f, g, h, i), (j, k)) = (passed, waits, rate);
    (a, b, c, d, e, f, g, h, i, j, k)
}

/// What a meter counted, which takes a packet to have left when it is sent.
fn metered(row: &QueueRow, rate_bps: u64) -> Seen {
    Seen {
        offered_packets: row.offered_packets,
        delivered_packets: row.delivered_packets,
        delivered_bytes: row.delivered_bytes,
        dropped_packets: row.dropped_packets,
        marked_packets: row.marked_packets,
        queue_packets: row.queue_packets,
        queue_bytes: row.queue_bytes,
        wait_sum_ns: row.queue_delay_sum.ns(),
        wait_max_ns: row.queue_delay_max.ns(),
        rate_bps,
        probability: row.gauges.probability.unwrap_or(0.0),
    }
}

/// Counts exchanges as they complete.
#[derive(Default)]
struct Completed {
    exchanges: u32,
    response_s: f64,
}

impl Sink for Completed {
    fn exchange(&mut self, row: &ExchangeRow) {
        self.exchanges += 1;
        self.response_s += row.response_time.secs_f64();
    }
    fn queue(&mut self, _row: &QueueRow) {}
    fn drop(&mut self, _row: &DropRow) {}
}

/// A run under way, and the port of it that is looked at.
pub struct Held {
    run: Run,
    port: Port,
    helm: Option<Helm>,
    completed: Completed,
    /// What a link can send that changes.
    sendable: Option<Sendable>,
    /// The step under way begins at the first of these instants and ends at the second.
    step: [Time; 2],
}

impl Held {
    /// Lets everything happen that does before `until`.
    fn advance(&mut self, until: Time) {
        self.step[1] = until;
        if until > Time::ZERO {
            let (before, sink) = (Time::from_ns(until.ns() - 1), &mut self.completed);
            self.run.with_dependent_mut(|_, simulation| simulation.run_until(before, sink, &mut |_| true));
        }
    }

    /// What happened since this was asked last.
    fn take(&mut self) -> Passed {
        let observed = self.run.with_dependent_mut(|_, simulation| simulation.observe());
        let at = self.port.index();
        let (row, rate) = (&observed.ports[at], observed.rates[at]);
        let seen = match &self.helm {
            // What a chosen law shows is what the queue does.
            Some(helm) => Seen { probability: row.gauges.probability.unwrap_or(0.0), ..helm.take() },
            None => metered(row, rate.bps()),
        };
        let [from, to] = self.step;
        self.step = [to, to];
        let mean_bps = match &mut self.sendable {
            Some(sendable) if to > from => sendable.bits_until(to) / to.since(from).secs_f64(),
            _ => rate.bps_f64(),
        };
        let Completed { exchanges, response_s } = std::mem::take(&mut self.completed);
        let hosts = (observed.connections.iter().sum(), observed.under_way.iter().sum(), exchanges, response_s);
        (counts(&seen), hosts, (mean_bps, rate.bps()))
    }
}

/// A run that may be over, as several threads have it.
pub struct Shared {
    held: Mutex<Option<Held>>,
    /// The thread of a crew in which it passed last, by a number of its own.
    pub home: AtomicUsize,
}

/// What was seen of a step.
pub type Passed = (Counts, Hosts, Rates);

/// Lets everything happen that does before the instant `until_ns`. Returns what happened since this was asked last;
/// nothing if the run is over. A fault of a law ends it.
pub fn pass(run: &Shared, until_ns: u64) -> Option<Result<Passed, Fault>> {
    let mut held = run.held.lock().unwrap_or_else(PoisonError::into_inner);
    let passed = held.as_mut().map(|held| {
        aqm::fault::caught(|| {
            held.advance(Time::from_ns(until_ns));
            held.take()
        })
    });
    if matches!(passed, Some(Err(_))) {
        *held = None;
    }
    passed
}

/// A run of a scenario, a step at a time.
#[pyclass(frozen, module = "aqmlab._native")]
pub struct Stepped(Arc<Shared>);

impl Stepped {
    /// The run, for a thread that lets it pass.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.0)
    }

    /// Does something with the run, without the interpreter's lock. A fault of a law ends the run.
    fn with<T: Send>(&self, py: Python<'_>, what: impl FnOnce(&mut Held) -> T + Send) -> PyResult<T> {
        py.detach(|| {
            let mut held = self.0.held.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(run) = held.as_mut() else {
                return Err(over());
            };
            aqm::fault::caught(|| what(run)).map_err(|fault| {
                *held = None;
                laws::misbehaved(fault)
            })
        })
    }
}

#[pymethods]
impl Stepped {
    /// Begins a run of the scenario in `text`, one direction of whose link `link` is looked at. Where `laws` are given,
    /// its discipline there is `steered`: by a probability if the list is empty, else by choice among these
    /// disciplines, each of which is that of this direction of the only link of a scenario's text.
    #[new]
    #[pyo3(signature = (text, origin, link, way, laws=None))]
    #[expect(clippy::needless_pass_by_value, reason = "Python hands lists over by value")]
    fn new(py: Python<'_>, text: &str, origin: &str, link: &str, way: u8, laws: Option<Vec<String>>) -> PyResult<Self> {
        py.detach(|| begun(text, origin, link, way, laws.as_deref())).map(|held| {
            let home = AtomicUsize::new(usize::MAX);
            Self(Arc::new(Shared { held: Mutex::new(Some(held)), home }))
        })
    }

    /// Lets everything happen that does before the instant `until_ns`. Returns what happened since this was asked last.
    fn advance(&self, py: Python<'_>, until_ns: u64) -> PyResult<Passed> {
        py.detach(|| pass(&self.0, until_ns)).ok_or_else(over)?.map_err(laws::misbehaved)
    }

    /// Packets are signalled with this probability from now on.
    fn steer(&self, py: Python<'_>, probability: f64) -> PyResult<()> {
        self.with(py, |held| held.helm.as_ref().map(|helm| helm.steer(probability)).is_some())
            .and_then(|is_held| if is_held { Ok(()) } else { Err(not_steered()) })
    }

    /// The law of this number decides from now on.
    fn choose(&self, py: Python<'_>, law: usize) -> PyResult<()> {
        self.with(py, |held| held.helm.as_ref().map(|helm| helm.choose(law)).is_some())
            .and_then(|is_held| if is_held { Ok(()) } else { Err(not_steered()) })
    }

    /// Sets parameters of a discipline from the end of the step on, as `Simulation::set_all` does.
    #[expect(clippy::needless_pass_by_value, reason = "Python hands lists over by value")]
    fn set(&self, py: Python<'_>, link: &str, way: u8, changes: Vec<(String, String)>) -> PyResult<()> {
        let changes: Vec<(&str, &str)> = changes.iter().map(|(name, text)| (&**name, &**text)).collect();
        self.with(py, |held| {
            let from = held.step[1];
            held.run.with_dependent_mut(|_, simulation| simulation.set_all(link, way, &changes, from))
        })?
        .map_err(|error| ScenarioError::new_err(error.to_string().trim_start_matches("override: ").to_owned()))
    }

    /// Ends the run: its memory is free.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.held.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

pub fn over() -> PyErr {
    PyValueError::new_err("the run is over")
}

fn not_steered() -> PyErr {
    PyValueError::new_err("the discipline is not steered")
}

/// A run at its start, its measurement under way.
fn begun(text: &str, origin: &str, link: &str, way: u8, chosen: Option<&[String]>) -> PyResult<Held> {
    let found: Arc<Mutex<Option<Helm>>> = Arc::default();
    let registry = laws::registry();
    let resolve = |registry: &_, text: &str| -> PyResult<Resolved> {
        scenario::resolve_with(registry, text, origin, &[], &beside(origin)).map_err(crate::refused)
    };
    let resolved = match chosen {
        None => resolve(&registry, text)?,
        Some(chosen) => {
            let mut laws = Vec::new();
            for text in chosen {
                let resolved = resolve(&registry, text)?;
                let qdisc = &resolved.scenario().map_err(crate::refused)?.links[0].qdiscs[usize::from(way > 0)];
                laws.push((qdisc.entry.clone(), qdisc.values.clone()));
            }
            let given = Arc::clone(&found);
            let give = move |helm: Helm| *given.lock().unwrap_or_else(PoisonError::into_inner) = Some(helm);
            let entry = steered::held(laws, give).map_err(ScenarioError::new_err)?;
            let registry = registry.as_ref().clone().with(entry).map_err(ScenarioError::new_err)?;
            resolve(&Arc::new(registry), text)?
        }
    };
    let scenario = resolved.scenario().map_err(crate::refused)?.clone();
    let names = || scenario.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
    let at = scenario.links.iter().position(|known| known.name == link).filter(|_| way < 2);
    let at = at.ok_or_else(|| ScenarioError::new_err(format!("link: {link}: expected one of {}", names())))?;
    let port = Port::new(at as u16, way);
    let sendable = scenario.links[at].sendable(usize::from(way), scenario.seed);
    let made = || {
        let mut run = Run::new(scenario, |scenario| Simulation::new(scenario));
        run.with_dependent_mut(|_, simulation| simulation.start_measuring());
        run
    };
    let run = aqm::fault::caught(made).map_err(laws::misbehaved)?;
    let helm = found.lock().unwrap_or_else(PoisonError::into_inner).take();
    if chosen.is_some() && helm.is_none() {
        return Err(ScenarioError::new_err(format!("link: {link}: expected a discipline that is {HELD}")));
    }
    Ok(Held { run, port, helm, completed: Completed::default(), sendable, step: [Time::ZERO; 2] })
}

/// Brings a policy, for scenarios that name the file `path`, as `bring_library` brings a law. `made` is called for each
/// queue, and makes what is called at the end of each step: with what was seen, and to answer with a probability.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands paths over by value")]
#[expect(clippy::too_many_arguments, reason = "they are what a policy's file says of it")]
pub fn bring_policy(
    name: String,
    doc: String,
    source: String,
    step_ns: u64,
    memory: u32,
    made: Py<PyAny>,
    path: PathBuf,
    sha256: &str,
) -> PyResult<String> {
    let about = Policy { name, doc, source, step: Span::from_ns(step_ns), memory };
    let pilot = move || -> Result<Pilot, String> {
        let ask = Python::attach(|py| made.call0(py).map_err(|error| raised(py, &error)))?;
        Ok(Box::new(move |seen: &Seen| {
            Python::attach(|py| {
                let said = ask.call1(py, (counts(seen),)).and_then(|said| said.extract::<f64>(py));
                said.map_err(|error| raised(py, &error))
            })
        }))
    };
    let entry = steered::policy(about, pilot).map(|entry| (entry, String::new()));
    laws::bring(entry, &path, sha256)
}

/// What Python raised, in a line.
fn raised(py: Python<'_>, error: &PyErr) -> String {
    let what = error.value(py).to_string();
    let kind = error.get_type(py).name().map_or_else(|_| "an error".to_owned(), |name| name.to_string());
    format!("failed: {kind}: {}", what.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What this file adds to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Stepped>()?;
    module.add_function(wrap_pyfunction!(bring_policy, module)?)
}
