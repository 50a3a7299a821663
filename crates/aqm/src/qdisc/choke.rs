//! CHOKe is "choose and keep for responsive flows, choose and kill for unresponsive flows". When the queue is long, it
//! compares each arriving packet with one drawn from the queue. If the two are of the same flow, both are lost. A flow
//! is hit in proportion to what it has in the queue, without any state for flows.
//!
//! Source: Pan, Prabhakar and Psounis, "CHOKe, A Stateless Active Queue Management Scheme for Approximating Fair
//! Bandwidth Allocation", INFOCOM 2000; defaults: tc-choke(8).
//!
//! | paper | here |
//! |---|---|
//! | RED's average, thresholds and `p_a` | [`Detector`] |
//! | drop candidates | `candidates` |
//!
//! It is no law, because it reaches packets that wait. Packets that RED draws may be marked; packets that match are
//! dropped.
//!
//! Dialect `linux`: RED as in Linux sch_choke. One stored draw decides for each signal, the band begins above `min` and
//! holds `max`, ECN-capable packets are marked above it too, and a packet is judged before the limit is looked at. The
//! places of lost packets stay in the queue and are drawn too: of three draws the first counts that is none of them,
//! and if all are, the packet at the head is met. Of the average only whole packets count, in the next average and in
//! the probability, unless `mode` is `byte`, which Linux does not have.
//!
//! Deviations. A packet that finds no room has met its candidates first, as in the paper and in Linux; in the paper's
//! dialect RED, as everywhere here, is then told of a loss and does not judge.

use super::fifo::Limit;
use super::thinned::Thinned;
use super::{Held, Qdisc, Taken};
use crate::cause::Cause;
use crate::law::red::{self, Detector};
use crate::law::{Arrival, Gauges, Verdict, measure};
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, Discipline, Row, Site};
use base::{FlowKey, Rate, Stream, Time};

const PAPER: &str = "Pan, Prabhakar and Psounis 2000";

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen; tc-choke(8) wants it stated"),
    registry::ECN,
    Param {
        kind: Kind::Word(&["paper", "linux"]),
        doc: "Whose details: the paper's, or those of Linux sch_choke.",
        ..red::param::DIALECT
    },
    Param {
        default: "",
        doc: "Average queue below which everything is admitted; computed: a third of max.",
        source: "tc-choke(8)",
        ..red::param::MIN
    },
    Param {
        default: "",
        doc: "Average queue above which what does not match is signalled, in the unit of min; computed: a quarter of limit.",
        source: "tc-choke(8)",
        ..red::param::MAX
    },
    red::param::PROBABILITY,
    red::param::WQ,
    Param {
        name: "candidates",
        kind: Kind::Integer,
        default: "1",
        range: (0.0, 1e3),
        doc: "Packets drawn from the queue to compare an arriving one with.",
        source: "Pan, Prabhakar and Psounis 2000: 1, and more against several unresponsive flows",
    },
    red::param::MODE,
    measure::MEAN_PACKET,
    registry::CAPACITY,
];

fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    values.fill("max", Value::Length(values.length("limit").times(0.25)));
    values.fill("min", Value::Length(values.length("max").times(1.0 / 3.0)));
    red::completed(values, rate).map(drop)
}

/// How sch_choke (choke_enqueue) spaces its signals; not as sch_red, whose band holds `min` and not `max`.
#[derive(Clone, Copy, Debug, Default)]
struct Spacing {
    /// Packets since the last signal; `None` outside the band.
    count: Option<u64>,
    /// The draw that decides when the next signal comes.
    draw: f64,
}

impl Spacing {
    /// Whether a packet of `size` is signalled by RED's average as it is.
    fn judge(&mut self, red: &Detector, size: u32, stream: &mut Stream) -> Option<Cause> {
        let (average, (min, max)) = (red.average(), red.band());
        if average <= min || average > max {
            self.count = None;
            return (average > max).then_some(Cause::FORCED);
        }
        let Some(before) = self.count else {
            *self = Self { count: Some(0), draw: stream.unit() };
            return None;
        };
        let count = before + 1;
        let above = if red.measure().weighs_size() { average - min } else { (average - min).floor() };
        let p = red.max_p() * above / (max - min) * red.measure().weight(size);
        if p * (count as f64) < self.draw {
            self.count = Some(count);
            return None;
        }
        *self = Self { count: Some(0), draw: stream.unit() };
        Some(Cause::EARLY)
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct Choke<P> {
    limit: Limit,
    red: Detector,
    min: f64,
    ecn_enabled: bool,
    /// The dialect `linux`.
    linux: Option<Spacing>,
    candidates: u64,
    queue: Thinned<Held<P>>,
    bytes: u64,
    stream: Stream,
}

impl<P: Packet> Choke<P> {
    /// An empty queue, from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let completed = red::completed(values, site.rate).expect("the values were resolved before");
        let red = Detector::new(&completed, site.rate);
        Self {
            limit: Limit::of(values),
            min: red.band().0,
            red,
            ecn_enabled: values.flag("ecn"),
            linux: (values.word("dialect") == "linux").then(Spacing::default),
            candidates: values.integer("candidates"),
            queue: Thinned::new(),
            bytes: 0,
            stream: site.stream,
        }
    }

    /// Takes the queue that a packet finds into the average. Linux's is a whole number of 2^-Wlog packets, of which a
    /// sample takes away the whole packets only: the average lies up to a packet above the queue that stands.
    fn observe(&mut self, backlog: Backlog, now: Time) {
        if self.linux.is_some() && !self.red.measure().weighs_size() {
            let average = self.red.average();
            self.red.observe_length(f64::from(backlog.packets) + (average - average.floor()), now);
        } else {
            self.red.observe(backlog, now);
        }
    }

    /// Compares a packet of `flow` with packets drawn from the queue, and loses those of the same flow. Returns whether
    /// there was one.
    fn meets_its_like(&mut self, flow: FlowKey, now: Time, tap: &mut dyn Tap<P>) -> bool {
        let mut has_met = false;
        for _ in 0..self.candidates {
            if self.queue.is_empty() {
                break;
            }
            let met = if self.linux.is_some() { self.take_like_linux(flow) } else { self.take_like(flow) };
            if let Some(Held { packet, .. }) = met {
                self.bytes -= u64::from(packet.size());
                tap.dropped(packet, Cause::EARLY, now);
                has_met = true;
            }
        }
        has_met
    }

    /// Draws a packet that waits, and takes it out if it is of `flow`.
    fn take_like(&mut self, flow: FlowKey) -> Option<Held<P>> {
        let rank = self.stream.below(self.queue.len() as u64) as usize;
        self.queue.get(rank).filter(|held| held.packet.flow() == flow)?;
        self.queue.remove(rank)
    }

    /// Draws a packet as sch_choke does, whose queue keeps the places of lost packets. It draws among all places up to
    /// three times, and takes the first packet if each place was empty.
    fn take_like_linux(&mut self, flow: FlowKey) -> Option<Held<P>> {
        let places = self.queue.places() as u64;
        let place = (0..3)
            .map(|_| self.stream.below(places) as usize)
            .find(|&place| self.queue.at(place).is_some())
            .unwrap_or(0);
        self.queue.at(place).filter(|held| held.packet.flow() == flow)?;
        self.queue.remove_at(place)
    }
}

impl<P: Packet> Qdisc<P> for Choke<P> {
    fn offer(&mut self, mut packet: P, now: Time, driver: &mut dyn Driver<P>) {
        let size = packet.size();
        let arrival = Arrival { size, ecn: packet.ecn(), flow: packet.flow(), backlog: self.backlog() };
        self.observe(arrival.backlog, now);
        if self.red.average() > self.min && self.meets_its_like(arrival.flow, now, driver) {
            return driver.dropped(packet, Cause::EARLY, now);
        }
        let has_room = self.limit.admits(self.backlog(), size);
        let verdict = match &mut self.linux {
            Some(spacing) => match spacing.judge(&self.red, size, &mut self.stream) {
                Some(cause) => Verdict::signal(self.ecn_enabled, arrival.ecn, cause),
                None => Verdict::Pass,
            },
            None if !has_room => {
                self.red.restart();
                return driver.dropped(packet, Cause::TAIL, now);
            }
            None => self.red.judge(&arrival, &mut self.stream),
        };
        if let Verdict::Drop(cause) = verdict {
            return driver.dropped(packet, cause, now);
        }
        if !has_room {
            return driver.dropped(packet, Cause::TAIL, now);
        }
        if let Verdict::Mark(cause) = verdict {
            packet.mark();
            driver.marked(&packet, cause, now);
        }
        driver.accepted(&packet, now);
        self.bytes += u64::from(size);
        self.queue.push_back(Held { packet, enqueued: now });
    }

    fn take(&mut self, now: Time, _tap: &mut dyn Tap<P>) -> Taken<P> {
        let Some(held) = self.queue.pop_front() else {
            self.red.idle_from(now);
            return Taken::Empty;
        };
        self.bytes -= u64::from(held.packet.size());
        Taken::Packet(held)
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.queue.len() as u32, bytes: self.bytes }
    }

    fn gauges(&self) -> Gauges {
        self.red.gauges()
    }

    fn retune(&mut self, values: &Values, rate: Rate, _now: Time) {
        let mut fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        fresh.red = fresh.red.instead_of(&self.red);
        std::mem::swap(&mut fresh.queue, &mut self.queue);
        *self = Self { linux: self.linux, bytes: self.bytes, ..fresh };
    }
}

/// The row of [`Choke`], whatever its packets.
pub struct ChooseAndKeep;

impl Discipline for ChooseAndKeep {
    const ROW: Row = Row {
        name: "choke",
        aliases: &[],
        doc: "Compares each arriving packet with one that waits, and loses both if they are of the same flow.",
        source: PAPER,
        year: 2000,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet"],
        gauges: red::GAUGES,
        causes: &[],
        uses_rate: registry::always,
        resolve,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(Choke::new(values, site))
    }
}
