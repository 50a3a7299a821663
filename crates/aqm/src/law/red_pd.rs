//! RED-PD is RED with preferential dropping. A flow that RED keeps signalling sends more than its share. RED-PD finds
//! such flows in the history of RED's signals. It drops some of their packets before they reach RED, until RED signals
//! them no more often than others.
//!
//! Source: Mahajan, Floyd and Wetherall, "Controlling High-Bandwidth Flows at the Congested Router", ICNP 2001; steps
//! and the test of responsiveness as in ns-2.35's queue/red-pd.cc and tcl/ex/red-pd.
//!
//! | paper | here |
//! |---|---|
//! | target round-trip time `R`, ambient drop rate `p` | `rtt`, `average_rate` |
//! | congestion epoch `R / sqrt(1.5 p)`, of which `K/M` make an interval | [`interval`] |
//! | `M` lists of signalled flows, `K` of which identify one | `LISTS`, `NEEDED`, `history` |
//! | monitored flows and their dropping probability | `monitored` |
//! | unresponsive flows | `Responses` |
//!
//! Every detail of RED itself is [`red`]'s: parameters, dialects, modes, ECN. Packets filtered out before RED are
//! dropped, ECN-capable or not.
//!
//! Deviations. Packets are filtered independently with their probability (ns-2 spaces them, which changes the rate).
//! Marks and losses by the queue's limit are signals too. A list holds every signalled flow, not the fifty with the
//! most bytes. Rates are compared between one interval and the next. Only what RED signalled in the last interval is
//! raised, by its share of those signals (ns-2: whatever lost a packet, by its share of the bytes of all five lists).
//! Twice the rate bounds what is added (in ns-2 only to the first probability of a flow). Let-offs do not wait for
//! 0.4 s, raises do. When a flow is no longer filtered, the time of its last change is forgotten.

use super::flows::FlowTable;
use super::red::{self, Detector};
use super::{Arrival, Gauges, Law, Verdict, measure};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Param, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{FlowKey, Rate, Span, Stream, Time};

const PAPER: &str = "Mahajan, Floyd and Wetherall 2001";

/// How many lists are kept, and how many of them identify a flow.
const LISTS: usize = 5;
const NEEDED: usize = 3;
/// No probability is raised while RED signals a smaller share than this.
const LIGHT: f64 = 0.001;
/// Largest probability that a flow's filter begins with.
const FIRST: f64 = 0.5;
/// A flow that is not signalled any more is let off by this, or by a factor if that is less.
const LET_OFF: f64 = 0.05;
/// Shortest time between two raises of a flow's probability.
const RAISE_AFTER: Span = Span::from_ms(400);

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen"),
    registry::ECN,
    red::param::DIALECT,
    Param {
        name: "rtt",
        kind: Kind::Time,
        default: "40ms",
        range: (1e-4, 10.0),
        doc: "Flows that send more than TCP would over this round-trip time (R) are controlled.",
        source: PAPER,
    },
    red::param::MIN,
    red::param::MAX,
    red::param::PROBABILITY,
    red::param::WQ,
    red::param::GENTLE,
    red::param::GENTLE_END,
    red::param::MODE,
    measure::MEAN_PACKET,
    red::param::WAIT,
    red::param::MARK_UNTIL,
    red::param::MARK_P,
    registry::CAPACITY,
];

/// Length of an interval at the ambient drop rate `p`: three fifths of a congestion epoch of a TCP flow over `rtt`, so
/// that five intervals are three epochs; from 2 to 10 round trips.
pub fn interval(rtt: Span, p: f64) -> Span {
    let rtt_s = rtt.secs_f64();
    let epoch_s = rtt_s / (1.5 * p).sqrt();
    Span::from_secs_f64((NEEDED as f64 / LISTS as f64 * epoch_s).clamp(2.0 * rtt_s, 10.0 * rtt_s))
}

/// A flow's probability after a raise for a signalled excess of `step`. A raise that would pass 1 instead leaves the
/// flow a part of what passed before.
fn raised(pd: f64, step: f64, is_unresponsive: bool) -> f64 {
    let (factor, steps) = if is_unresponsive { (3.0, 2.0) } else { (2.0, 1.0) };
    let raised = if step > pd { pd * factor } else { pd + steps * step };
    if raised > 1.0 { 1.0 - (1.0 - pd) / factor } else { raised }
}

/// A flow's probability after it was let off once.
fn let_off(pd: f64, is_unresponsive: bool) -> f64 {
    let divisor = if is_unresponsive { 1.5 } else { 2.0 };
    if pd > divisor * LET_OFF { pd - LET_OFF } else { pd / divisor }
}

/// How a flow answers to signals: its rate should fall with the root of the share of its packets that are lost.
#[derive(Clone, Copy, Debug, Default)]
struct Responses {
    rate: f64,
    lost_share: f64,
    good: u32,
    bad: u32,
}

impl Responses {
    /// Counts an interval in which the flow sent at `rate` and lost `lost_share` of it.
    fn add(&mut self, rate: f64, lost_share: f64) {
        let ratio = lost_share / self.lost_share;
        // Nothing is learnt while less is lost than before, or nothing was.
        if ratio.is_finite() && ratio > 1.0 {
            let has_slowed = rate <= self.rate / ratio.sqrt();
            *if has_slowed { &mut self.good } else { &mut self.bad } += 1;
        }
        (self.rate, self.lost_share) = (rate, lost_share);
    }

    fn is_unresponsive(&self) -> bool {
        self.bad >= 3 && (self.good == 0 || self.bad >= 4 * self.good)
    }
}

/// A flow that is filtered.
#[derive(Clone, Copy, Debug)]
struct Monitored {
    pd: f64,
    changed: Time,
    /// Intervals that ended since the probability changed.
    intervals: u32,
    /// Packets in this interval.
    arrived: u32,
    lost: u32,
    responses: Responses,
}

/// The law.
#[derive(Clone, Debug)]
pub struct RedPd {
    red: Detector,
    min: f64,
    stream: Stream,
    rtt: Span,
    /// RED's signals to each flow in the last intervals, the newest first.
    history: FlowTable<[u32; LISTS]>,
    monitored: FlowTable<Monitored>,
    /// What RED saw in this interval.
    arrived: u32,
    signalled: u32,
    /// The share that RED signals, averaged over intervals with a weight of one half. It begins with the share of the
    /// first interval.
    average_rate: Option<f64>,
    /// Lengths of the last four intervals.
    lengths: [Span; 4],
    next: Time,
}

impl RedPd {
    /// RED-PD from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let red = Detector::new(values, site.rate);
        let rtt = values.time("rtt");
        let first = interval(rtt, 0.0);
        Self {
            min: red.band().0,
            red,
            stream: site.stream,
            rtt,
            history: FlowTable::with_room_for(64),
            monitored: FlowTable::with_room_for(64),
            arrived: 0,
            signalled: 0,
            average_rate: None,
            lengths: [first; 4],
            next: Time::ZERO + first,
        }
    }

    /// Probability with which packets of `flow` are filtered out, if it is monitored.
    pub fn filtered(&self, flow: FlowKey) -> Option<f64> {
        self.monitored.get(flow).map(|monitored| monitored.pd)
    }

    /// Whether a packet is filtered out before RED.
    fn is_filtered(&mut self, arrival: &Arrival) -> bool {
        let Some(monitored) = self.monitored.get_mut(arrival.flow) else { return false };
        monitored.arrived += 1;
        // A flow that answers is left alone while there is no congestion.
        let is_congested = self.red.average() >= self.min && arrival.backlog.packets > 1;
        let is_filtered =
            (is_congested || monitored.responses.is_unresponsive()) && super::is_drawn(&mut self.stream, monitored.pd);
        monitored.lost += u32::from(is_filtered);
        is_filtered
    }

    /// Hears that RED signalled a packet of `flow`, or that the queue lost it.
    fn record(&mut self, flow: FlowKey) {
        self.signalled += 1;
        self.history.get_or_insert(flow, [0; LISTS])[0] += 1;
        if let Some(monitored) = self.monitored.get_mut(flow) {
            monitored.lost += 1;
        }
    }

    /// Ends an interval: identifies flows, raises probabilities and lets flows off.
    fn end_interval(&mut self, now: Time) {
        let rate = f64::from(self.signalled) / f64::from(self.arrived.max(1));
        let average_rate = self.average_rate.map_or(rate, |average| (average + rate) / 2.0);
        self.average_rate = Some(average_rate);
        self.learn();
        if rate > LIGHT {
            self.raise(rate.min(average_rate), now);
        }
        self.let_off(now);
        self.history.retain(|_, signals| {
            signals.rotate_right(1);
            signals[0] = 0;
            signals[1..].iter().any(|signals| *signals > 0)
        });
        (self.arrived, self.signalled) = (0, 0);
        let length = interval(self.rtt, average_rate);
        self.lengths.rotate_right(1);
        self.lengths[0] = length;
        self.next += length;
    }

    /// Compares each monitored flow with itself an interval ago.
    fn learn(&mut self) {
        let length_s = self.lengths[0].secs_f64();
        for monitored in self.monitored.values_mut() {
            let arrived = f64::from(monitored.arrived);
            monitored.responses.add(arrived / length_s, f64::from(monitored.lost) / arrived.max(1.0));
            monitored.intervals += 1;
            (monitored.arrived, monitored.lost) = (0, 0);
        }
    }

    /// Raises the probability of flows that are identified and were signalled in this interval.
    fn raise(&mut self, rate: f64, now: Time) {
        let identified =
            |signals: &[u32; LISTS]| signals[0] > 0 && signals.iter().filter(|signals| **signals > 0).count() >= NEEDED;
        let (mut flows, mut total) = (0, 0);
        for (_, signals) in self.history.iter().filter(|(_, signals)| identified(signals)) {
            flows += 1;
            total += u64::from(signals[0]);
        }
        let patience = self.lengths.iter().fold(Span::ZERO, |sum, length| sum + *length).max(RAISE_AFTER);
        for (flow, signals) in self.history.iter().filter(|(_, signals)| identified(signals)) {
            let share = f64::from(signals[0]) * f64::from(flows) / total as f64;
            let step = rate * share.min(2.0);
            let fresh =
                Monitored { pd: 0.0, changed: now, intervals: 0, arrived: 0, lost: 0, responses: Responses::default() };
            let monitored = self.monitored.get_or_insert(flow, fresh);
            if monitored.pd == 0.0 {
                monitored.pd = step.min(FIRST);
            } else if now.since(monitored.changed) >= patience {
                monitored.pd = raised(monitored.pd, step, monitored.responses.is_unresponsive());
                monitored.changed = now;
                monitored.intervals = 0;
            }
        }
    }

    /// Lowers the probability of flows that RED does not signal any more.
    fn let_off(&mut self, now: Time) {
        let history = &self.history;
        self.monitored.retain(|flow, monitored| {
            let is_unresponsive = monitored.responses.is_unresponsive();
            let (patience, floor) = if is_unresponsive { (5, 0.0025) } else { (3, 0.005) };
            if history.get(flow).is_some() || monitored.intervals < patience {
                return true;
            }
            if monitored.pd <= floor {
                return false;
            }
            monitored.pd = let_off(monitored.pd, is_unresponsive);
            monitored.changed = now;
            monitored.intervals = 0;
            true
        });
    }
}

impl Law for RedPd {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        if self.is_filtered(arrival) {
            return Verdict::Drop(Cause::EARLY);
        }
        self.arrived += 1;
        self.red.observe(arrival.backlog, now);
        let verdict = self.red.judge(arrival, &mut self.stream);
        if verdict != Verdict::Pass {
            self.record(arrival.flow);
        }
        verdict
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        self.arrived += 1;
        if let Some(monitored) = self.monitored.get_mut(arrival.flow) {
            monitored.arrived += 1;
        }
        self.red.observe(arrival.backlog, now);
        self.red.overflow(arrival, &mut self.stream);
        self.record(arrival.flow);
    }

    fn on_idle(&mut self, now: Time) {
        self.red.idle_from(now);
    }

    fn next_tick(&self) -> Time {
        self.next
    }

    fn tick(&mut self, _backlog: Backlog, now: Time) {
        if now >= self.next {
            self.end_interval(now);
        }
    }

    fn gauges(&self) -> Gauges {
        Gauges { tracked_flows: Some(self.monitored.len() as u32), ..self.red.gauges() }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let mut fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        fresh.red = fresh.red.instead_of(&self.red);
        std::mem::swap(&mut fresh.history, &mut self.history);
        std::mem::swap(&mut fresh.monitored, &mut self.monitored);
        let Self { arrived, signalled, average_rate, .. } = *self;
        // The first interval is as long as `rtt` makes it; further ones are when they begin.
        let (lengths, next) = if average_rate.is_none() && self.rtt != fresh.rtt {
            (fresh.lengths, fresh.next.max(now))
        } else {
            (self.lengths, self.next)
        };
        *self = Self { arrived, signalled, average_rate, lengths, next, ..fresh };
    }
}

impl LawRow for RedPd {
    const ROW: Row = Row {
        name: "red_pd",
        aliases: &[],
        doc: "RED that filters the flows it keeps signalling, so that they get no more than others.",
        source: PAPER,
        year: 2001,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet"],
        gauges: &[red::GAUGES[0], red::GAUGES[1], Gauge::flows("Flows that are filtered.")],
        causes: &[],
        uses_rate: registry::always,
        resolve: red::resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }

    fn own_bytes(_values: &Values) -> usize {
        FlowTable::<[u32; LISTS]>::bytes_for(64) + FlowTable::<Monitored>::bytes_for(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_the_ambient_rate() {
        let rtt = Span::from_ms(40);
        // 0.6 * 0.04 / sqrt(0.03) = 0.138564 s.
        assert_eq!(interval(rtt, 0.02).ns() / 1000, 138_564);
        assert_eq!([interval(rtt, 0.0), interval(rtt, 1.0)], [Span::from_ms(400), Span::from_ms(80)]);
    }

    #[test]
    fn probabilities_are_raised_and_let_off() {
        // By hand; sums and quotients of numbers below 1 are off by a rounding or two.
        for (got, expected) in [
            (raised(0.2, 0.3, false), 0.4),
            (raised(0.2, 0.1, false), 0.3),
            (raised(0.1, 0.3, true), 0.3),
            (raised(0.2, 0.1, true), 0.4),
            (raised(0.5, 0.6, false), 1.0),
            (raised(0.6, 0.7, false), 0.8),
            (raised(0.4, 0.5, true), 0.8),
            (raised(0.7, 0.2, true), 0.9),
            (let_off(0.2, false), 0.15),
            (let_off(0.08, false), 0.04),
            (let_off(0.09, false), 0.045),
            (let_off(0.09, true), 0.04),
            (let_off(0.06, true), 0.04),
        ] {
            assert!((got - expected).abs() < 1e-15, "{got} {expected}");
        }
    }

    #[test]
    fn a_flow_that_does_not_slow_down_is_found_out() {
        // Four times the loss asks for half the rate.
        let story = |rates: [f64; 5]| {
            let mut responses = Responses::default();
            for (rate, lost_share) in rates.into_iter().zip([0.001, 0.004, 0.016, 0.064, 0.256]) {
                responses.add(rate, lost_share);
            }
            responses.is_unresponsive()
        };
        assert!(story([800.0; 5]));
        assert!(!story([800.0, 400.0, 200.0, 100.0, 50.0]), "half is enough");
        assert!(story([800.0, 400.1, 200.1, 100.1, 50.1]), "and less than half is not");
        // Three bad to one good are not four times as many.
        assert!(!story([800.0, 400.0, 400.0, 400.0, 400.0]));
    }
}
