//! What a running simulation tells of itself while it goes on.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use scenario::Scenario;
use std::time::Duration;

/// How far a run is after so much time on the clock, and what has happened at its links so far.
pub fn news<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    simulation: &sim::Simulation<'_>,
    wall: Duration,
) -> PyResult<Bound<'py, PyDict>> {
    let (pulse, glance) = (simulation.pulse(), simulation.glance());
    let news = PyDict::new(py);
    news.set_item("time_s", pulse.now.secs_f64())?;
    news.set_item("duration_s", scenario.duration.secs_f64())?;
    news.set_item("bottleneck_packets", pulse.bottleneck_packets)?;
    news.set_item("events", pulse.events)?;
    news.set_item("ticks", pulse.ticks)?;
    news.set_item("wall_s", wall.as_secs_f64())?;
    news.set_item("exchanges", glance.exchanges)?;
    let times = PyDict::new(py);
    for (index, name) in ["p50", "p95", "p99"].into_iter().enumerate() {
        times.set_item(name, glance.response_s.map(|seconds| seconds[index]))?;
    }
    news.set_item("response_s", times)?;
    news.set_item("links", scenario.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>())?;
    let of_ports = |of: fn(&sim::PortGlance) -> u64| glance.ports.iter().map(of).collect::<Vec<_>>();
    news.set_item("port_bytes", of_ports(|port| port.passed.bytes))?;
    news.set_item("port_packets", of_ports(|port| port.delivered))?;
    news.set_item("port_wait_ns", of_ports(|port| port.passed.wait_ns))?;
    news.set_item("port_drops", of_ports(|port| port.dropped))?;
    news.set_item("port_marks", of_ports(|port| port.marked))?;
    news.set_item("port_queue_packets", of_ports(|port| u64::from(port.backlog.packets)))?;
    news.set_item("port_queue_bytes", of_ports(|port| port.backlog.bytes))?;
    let waits = glance.ports.iter().map(|port| port.waits_s.map(Vec::from));
    news.set_item("port_waits_s", waits.collect::<Vec<_>>())?;
    Ok(news)
}
