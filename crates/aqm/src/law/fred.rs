//! FRED is flow RED: RED that knows how much of the queue each flow has. Flows with little are never dropped early.
//! Flows with much more than the mean lose packets. Flows that were caught at it before get no more than the mean.
//!
//! Source: Lin and Morris, "Dynamics of Random Early Detection", SIGCOMM 1997, figure 6.
//!
//! | paper | here |
//! |---|---|
//! | `qlen_i`, `strike_i` | `Share` |
//! | `Nactive`, flows with packets in the queue | `flows` |
//! | `avgcq = max(1, avg / Nactive)` | `mean_share` |
//! | `minq`, `maxq = min_th`, or 2 above `max_th` | `minq`, `most` |
//! | `p_a`, `count` | [`Detector`] |
//!
//! The average is sampled when a packet is accepted and when one leaves, and on arrival only at an empty queue. With
//! `ecn`, what RED itself draws is marked; what a flow loses for its share of the queue is dropped.
//!
//! Deviations. A flow that is new to the queue does not count in `Nactive` for its own first packet. An arrival at an
//! empty queue is one sample, not two. Where thresholds are in bytes, so are shares: `minq` are mean packets.

use super::flows::FlowTable;
use super::red::{self, Detector};
use super::{Arrival, Departure, Gauges, Law, Verdict, measure};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Param, Refusal, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Stream, Time};

const PAPER: &str = "Lin and Morris 1997";

/// Above the band even a flow alone may have this much, in packets.
const MOST_ABOVE: f64 = 2.0;

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen"),
    registry::ECN,
    registry::only(&["paper"], PAPER),
    red::param::MIN,
    red::param::MAX,
    red::param::PROBABILITY,
    red::param::WQ,
    Param {
        name: "minq",
        kind: Kind::Number,
        default: "2",
        range: (0.0, 1e6),
        doc: "Packets in the queue up to which a flow is not dropped early.",
        source: "Lin and Morris 1997: 2 for small buffers, 4 for large",
    },
    red::param::MODE,
    measure::MEAN_PACKET,
    registry::CAPACITY,
];

fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    red::completed(values, rate).map(drop)
}

/// What a flow has in the queue, and how often it was caught with too much.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    backlog: Backlog,
    strikes: u32,
}

/// The law.
#[derive(Clone, Debug)]
pub struct Fred {
    red: Detector,
    stream: Stream,
    min: f64,
    max: f64,
    minq: f64,
    flows: FlowTable<Share>,
}

impl Fred {
    /// FRED from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let values = red::completed(values, site.rate).expect("the values were resolved before");
        let red = Detector::new(&values, site.rate);
        let (min, max) = red.band();
        Self { red, stream: site.stream, min, max, minq: values.number("minq"), flows: FlowTable::with_room_for(64) }
    }

    fn decide(&mut self, arrival: &Arrival) -> Verdict {
        let average = self.red.average();
        let mean_share = (average / self.flows.len().max(1) as f64).max(1.0);
        let is_above = average >= self.max;
        let most = if is_above { MOST_ABOVE } else { self.min };
        let mut share = 0.0;
        if let Some(flow) = self.flows.get_mut(arrival.flow) {
            share = self.red.measure().queue(flow.backlog);
            let is_too_much =
                share >= most || is_above && share > 2.0 * mean_share || share >= mean_share && flow.strikes > 1;
            if is_too_much {
                flow.strikes += 1;
                return Verdict::Drop(Cause::FORCED);
            }
        }
        if average >= self.min && !is_above && share < self.minq.max(mean_share) {
            self.red.pass_over(arrival);
            return Verdict::Pass;
        }
        self.red.judge(arrival, &mut self.stream)
    }
}

impl Law for Fred {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        let is_first = arrival.backlog.packets == 0;
        if is_first {
            self.red.observe(arrival.backlog, now);
        }
        let verdict = self.decide(arrival);
        if !matches!(verdict, Verdict::Drop(_)) {
            if !is_first {
                self.red.observe(arrival.backlog, now);
            }
            let flow = self.flows.get_or_insert(arrival.flow, Share::default());
            flow.backlog.packets += 1;
            flow.backlog.bytes += u64::from(arrival.size);
        }
        verdict
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        if arrival.backlog.packets == 0 {
            self.red.observe(arrival.backlog, now);
        }
        self.red.restart();
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        let flow = self.flows.get_mut(departure.flow).expect("what leaves had been counted");
        flow.backlog.packets -= 1;
        flow.backlog.bytes -= u64::from(departure.size);
        if flow.backlog.packets == 0 {
            self.flows.remove(departure.flow);
        }
        self.red.observe(departure.backlog, now);
        Verdict::Pass
    }

    fn on_idle(&mut self, now: Time) {
        self.red.idle_from(now);
    }

    fn follows_packets(&self) -> bool {
        true
    }

    fn gauges(&self) -> Gauges {
        Gauges { tracked_flows: Some(self.flows.len() as u32), ..self.red.gauges() }
    }

    fn retune(&mut self, values: &Values, rate: Rate, _now: Time) {
        let mut fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        fresh.red = fresh.red.instead_of(&self.red);
        std::mem::swap(&mut fresh.flows, &mut self.flows);
        *self = fresh;
    }
}

impl LawRow for Fred {
    const ROW: Row = Row {
        name: "fred",
        aliases: &[],
        doc: "RED that spares flows with little in the queue and holds the others to the mean.",
        source: PAPER,
        year: 1997,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet"],
        gauges: &[red::GAUGES[0], red::GAUGES[1], Gauge::flows("Flows with packets in the queue.")],
        causes: &[],
        uses_rate: registry::always,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }

    fn own_bytes(_values: &Values) -> usize {
        FlowTable::<Share>::bytes_for(64)
    }
}
