//! This file makes a whole run: warm-up, measured window and cool-down, a row an interval, and the figures at the end.

use crate::network::Around;
use crate::simulation::Simulation;
use base::{Span, Time};
use net::Port;
use record::{Crossing, Engine, Meter, Responses, Sink, Summary, TcpTotals, Window};
use scenario::Scenario;

/// The results of a run.
pub struct Outcome {
    /// What was counted at each port, by link, forward before reverse.
    pub meters: Vec<Meter>,
    /// How long packets waited on their routes, where there are several links.
    pub crossings: Vec<Crossing>,
    /// Response times.
    pub responses: Responses,
    /// The results of probes.
    pub probes: record::Probes,
    /// What became of frames.
    pub frames: record::Frames,
    /// What TCP has done within the measured window.
    pub tcp: TcpTotals,
    /// How many events were handled.
    pub events: u64,
    /// How many packets left a link in the whole run, in both directions.
    pub bottleneck_packets: u64,
    /// Length of the measured window.
    pub measured: Span,
}

impl Outcome {
    /// The summary of this run of `scenario`, which `engine` made.
    pub fn summary<'a>(&'a self, scenario: &'a Scenario, engine: &'a Engine) -> Summary<'a> {
        Summary {
            scenario,
            measured: self.measured,
            meters: &self.meters,
            crossings: &self.crossings,
            responses: &self.responses,
            probes: &self.probes,
            frames: &self.frames,
            tcp: &self.tcp,
            engine,
        }
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    /// Simulated time.
    pub now: Time,
    /// Packets that left a link so far, both directions.
    pub bottleneck_packets: u64,
    /// Events handled so far.
    pub events: u64,
    /// Ticks of the disciplines so far, which are events too.
    pub ticks: u64,
}

/// After so many events a run shows its pulse, however little simulated time they take. They take some hundredths of a
/// second of real time.
pub(crate) const PULSE_EVENTS: u64 = 1 << 16;

/// Somebody who hears of a run while it goes on, who may look at it ([`Simulation::pulse`], [`Simulation::glance`]) and
/// answers whether it is to go on.
pub type Listener<'a> = &'a mut dyn FnMut(&Simulation<'_>) -> bool;

/// Runs `scenario` to its end. `progress` hears how far the run has come, at least once an interval of the queue table.
/// If it answers `false`, the run is broken off and there is no outcome.
///
/// # Panics
/// If packets were not conserved: that is a defect of this crate.
pub fn run(scenario: &Scenario, sink: &mut dyn Sink, progress: Listener<'_>) -> Option<Outcome> {
    let [from, to, _] = scenario.edges();
    let mut window = Window::new(scenario.edges(), scenario.record.interval);
    let mut simulation = Simulation::new(scenario);
    let (mut at_start, mut at_end) = (None, None);
    let look_every = scenario.record.flows;
    let mut look_at = look_every.map_or(Time::NEVER, |every| Time::ZERO + every);
    while window.next().is_set() {
        let next = window.next().min(look_at);
        // A window that begins with the run has all of it.
        if next > Time::ZERO && !simulation.run_until(next, sink, progress) {
            return None;
        }
        if let Some(every) = look_every.filter(|_| next == look_at) {
            simulation.look_at_senders(sink);
            look_at += every;
        }
        if next < window.next() {
            continue;
        }
        let edge = window.pass();
        if edge.starts {
            simulation.start_measuring();
            at_start = Some(simulation.totals());
        }
        if edge.stops {
            simulation.stop_measuring();
            at_end = Some(simulation.totals());
        }
        if edge.has_row {
            simulation.take_rows(sink);
        }
        if edge.ends_interval {
            if simulation.is_measuring {
                simulation.look_at_endless_flows();
            }
            if !progress(&simulation) {
                return None;
            }
        }
    }
    simulation.assert_conserved();
    simulation.network.around.probes.measured.finish(sink);
    simulation.network.around.media.frames.finish(sink);
    let (start, stop) = at_start.zip(at_end).expect("the window lies within the run");
    let lost = simulation.network.net.ports().map(|(_, at)| at.meter.window().lost_before_link[0]);
    let lost_before_link = scenario.loses_segments_before_link().then(|| lost.sum());
    Some(Outcome {
        tcp: TcpTotals { lost_before_link, ..stop.since(&start) },
        events: simulation.events(),
        bottleneck_packets: simulation.bottleneck_packets(),
        measured: to.since(from),
        responses: simulation.responses().clone(),
        crossings: {
            let Around { steps, routes, waits, .. } = &simulation.network.around;
            Crossing::all(steps.iter().copied(), routes, waits)
        },
        probes: simulation.network.around.probes.measured,
        frames: simulation.network.around.media.frames,
        meters: simulation.network.net.into_own().map(|at| at.meter).collect(),
    })
}

impl Simulation<'_> {
    /// Ends the interval under way and hands its rows over.
    fn take_rows(&mut self, sink: &mut dyn Sink) {
        let now = self.now();
        self.recorder.take().for_each(|row| sink.demand(&row));
        for (index, (egress, at)) in self.network.net.ports_mut().enumerate() {
            sink.queue(&at.meter.take_interval(now, Port::at(index), egress.backlog(), egress.gauges()));
        }
    }

    /// How far the run has come.
    pub fn pulse(&self) -> Pulse {
        Pulse {
            now: self.now(),
            bottleneck_packets: self.bottleneck_packets(),
            events: self.events(),
            ticks: self.network.net.ports().map(|(egress, _)| egress.ticks()).sum(),
        }
    }

    fn bottleneck_packets(&self) -> u64 {
        self.network.net.ports().map(|(egress, _)| egress.counts().delivered).sum()
    }
}
