//! `summary.json` says what a run comes to. A key without meaning for a run is null, never absent and never 0.

use crate::frames::Frames;
use crate::measures::exchanges::{self, Exchanges};
use crate::measures::hosts::{self, Tcp, TcpTotals, Udp};
use crate::measures::link::{self, Way};
use crate::measures::values;
use crate::meter::Meter;
use crate::probes::Probes;
use crate::responses::Responses;
use crate::seconds::seconds;
use base::Span;
use net::{Routes, Step};
use scenario::{Link, Scenario};
use serde_json::{Map, Value, json};

/// How the run was made, and what it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Engine {
    /// `sim` or `live`.
    pub kind: &'static str,
    /// Events handled in the whole run; `None` for a live run, which has none.
    pub events: Option<u64>,
    /// Packets that left the bottleneck in both directions, the whole run.
    pub bottleneck_packets: u64,
    /// Simulated time, the whole run.
    pub simulated: Span,
    /// Elapsed real time, seconds.
    pub wall_s: f64,
    /// Processor time, seconds.
    pub cpu_s: f64,
}

/// What the packets of a route waited for one of its links.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// The block of traffic.
    pub traffic: u16,
    /// 0 forward, 1 in reverse.
    pub direction: u8,
    /// The link, by number.
    pub link: u16,
    /// What they waited.
    pub waits: Waits,
}

impl Crossing {
    /// The crossings of all blocks, made of the waits at each step; none where waits were not counted. `steps` has the
    /// first step of each block, forward and in reverse.
    pub fn all(steps: impl Iterator<Item = [Step; 2]>, routes: &Routes, waits: &[Waits]) -> Vec<Self> {
        let blocks = steps.enumerate().flat_map(|(block, steps)| steps.map(|first| (block as u16, first)));
        let each = blocks.flat_map(|(traffic, first)| routes.route(first).map(move |step| (traffic, step)));
        let crossing = |(traffic, step): (u16, Step)| {
            let (port, waits) = (routes.port(step), *waits.get(usize::from(step.number()))?);
            Some(Self { traffic, direction: port.direction(), link: port.link(), waits })
        };
        each.filter_map(crossing).collect()
    }
}

/// The sum and number of waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Packets.
    pub packets: u64,
    /// Nanoseconds.
    pub sum_ns: u128,
}

impl Waits {
    /// Adds the wait of a packet.
    pub fn add(&mut self, waited: Span) {
        self.packets += 1;
        self.sum_ns += u128::from(waited.ns());
    }

    /// The mean wait in seconds; `None` without packets.
    pub fn mean_s(&self) -> Option<f64> {
        (self.packets > 0).then(|| seconds(self.sum_ns as f64) / self.packets as f64)
    }
}

/// Everything that a summary is made of.
pub struct Summary<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Length of the measured window.
    pub measured: Span,
    /// What was counted at each port: by link, forward and in reverse.
    pub meters: &'a [Meter],
    /// What packets waited on their routes, where there are several links.
    pub crossings: &'a [Crossing],
    /// Response times.
    pub responses: &'a Responses,
    /// What probes saw.
    pub probes: &'a Probes,
    /// What became of frames.
    pub frames: &'a Frames,
    /// TCP.
    pub tcp: &'a TcpTotals,
    /// Engine.
    pub engine: &'a Engine,
}

impl Summary<'_> {
    /// The summary as JSON.
    pub fn to_json(&self) -> Value {
        let measured_s = seconds(self.measured.ns() as f64);
        let scenario = self.scenario;
        let of = |(link, meters): (&Link, &[Meter])| {
            [0, 1].map(|side| {
                let capacity_bps = scenario.capacity_bps(link, side);
                let counts = meters[side].window();
                let causes = &link.qdiscs[side].entry.row().causes;
                let way = Way { counts, causes, capacity_bps, measured_s };
                values(link::ROWS, |value| value(&way))
            })
        };
        let figures: Vec<[Value; 2]> = scenario.links.iter().zip(self.meters.chunks(2)).map(of).collect();
        let [forward, reverse] = &figures[0];
        let links = scenario.links.iter().zip(&figures);
        let links = links.map(|(link, [f, r])| (link.name.clone(), json!({ "forward": f, "reverse": r })));
        let udp = Udp::new(&self.meters.iter().map(Meter::window).collect::<Vec<_>>());
        let hosts = Tcp { totals: self.tcp, measured_s };
        let are_possible = self.tcp.is_used && scenario.completes_exchanges();
        let seen = Exchanges { responses: self.responses, are_possible };
        json!({
            "scenario": scenario.name,
            "seed": scenario.seed,
            "measured_s": measured_s,
            "forward": forward,
            "reverse": reverse,
            "links": links.collect::<Map<String, Value>>(),
            "routes": self.routes(),
            "tcp": values(hosts::TCP, |value| value(&hosts)),
            "udp": values(hosts::UDP, |value| value(&udp)),
            "probes": self.probes.to_json(),
            "frames": self.frames.to_json(),
            "exchanges": values(exchanges::ROWS, |value| value(&seen)),
            "engine": engine(self.engine),
            // A live run puts what only it knows here.
            "live": null,
        })
    }
}

impl Summary<'_> {
    /// The mean waits of each block of traffic, in each direction in which it has packets: one for each link, in the
    /// order of the route. Null where there is one link.
    fn routes(&self) -> Value {
        if !self.scenario.has_routes() {
            return Value::Null;
        }
        let mut blocks: Map<String, Value> = Map::new();
        for crossing in self.crossings.iter().filter(|crossing| crossing.waits.packets > 0) {
            let found = json!({
                "link": self.scenario.links[usize::from(crossing.link)].name,
                "delivered_packets": crossing.waits.packets,
                "queue_delay_mean_s": crossing.waits.mean_s(),
            });
            let block = blocks.entry(crossing.traffic.to_string()).or_insert_with(|| json!({}));
            let direction = ["forward", "reverse"][usize::from(crossing.direction)];
            match &mut block[direction] {
                Value::Array(list) => list.push(found),
                none => *none = json!([found]),
            }
        }
        Value::Object(blocks)
    }
}

fn engine(engine: &Engine) -> Value {
    let positive = |x: f64| (x > 0.0).then_some(x);
    json!({
        "kind": engine.kind,
        "events": engine.events,
        "bottleneck_packets": engine.bottleneck_packets,
        "wall_s": engine.wall_s,
        "cpu_s": engine.cpu_s,
        "packets_per_cpu_s": positive(engine.cpu_s).map(|cpu| engine.bottleneck_packets as f64 / cpu),
        "simulated_per_wall": positive(engine.wall_s).map(|wall| seconds(engine.simulated.ns() as f64) / wall),
    })
}
