//! These are the two REDs of RIO as ns-2's Diffserv module has them (diffserv/dsredq.cc of ns-2.35; modes RIO-C and
//! RIO-D), for runs that are compared with it. They differ from [`pair`](super::pair) in ways that results show:
//!
//! - A class becomes idle when the last packet that its average counts begins to be sent, even while the link is busy
//!   with the other class. It stays idle until one of its packets is accepted. An arrival decays the average by the
//!   whole slots since then and once more, and then samples. If it is dropped, the class stays idle, and the next
//!   arrival decays by all of that time again.
//! - Between the thresholds a packet is dropped with p / (1 - count p), as in the paper. Count p may pass 1, if p rises
//!   in the moment in which the drop has become due. The quotient is then negative, and nothing is dropped until the
//!   average is above the upper threshold, where everything is, or not above the lower one.
//! - The law does not see packets that a full queue refuses. ECN-capable packets are marked wherever others are
//!   dropped.
//!
//! Deviations. Averages are not kept in single precision. A draw that cannot decide is not taken.

use crate::cause::Cause;
use crate::law::{Arrival, Gauges, Verdict, average, measure};
use crate::param::{Length, Refusal, Value, Values};
use base::{Rate, Stream, Time, maths};

const IN: usize = 0;
const OUT: usize = 1;

/// `count` while the average is not above the lower threshold.
const OUTSIDE: i64 = -1;

/// The values of a class.
#[derive(Clone, Copy, Debug)]
struct Setting {
    /// Average queue in packets above which packets are signalled with a probability.
    min: f64,
    /// Average queue in packets above which all are.
    max: f64,
    /// Probability at `max`.
    max_p: f64,
}

impl Setting {
    fn probability(&self, average: f64) -> f64 {
        self.max_p * (average - self.min) / (self.max - self.min)
    }
}

/// A class.
#[derive(Clone, Copy, Debug)]
struct Class {
    setting: Setting,
    average: f64,
    /// Packets since the last signal, [`OUTSIDE`] the band.
    count: i64,
    waiting: u32,
    /// Since when the class is idle; [`Time::NEVER`] while it is not.
    idle_since: Time,
}

/// The two REDs.
#[derive(Clone, Debug)]
pub struct Dsred {
    classes: [Class; 2],
    is_coupled: bool,
    weight: f64,
    slot_s: f64,
    ecn_enabled: bool,
}

/// Refuses parameters that the module does not have.
pub fn resolve(values: &mut Values) -> Result<(), Refusal> {
    values.fill("wait", Value::Flag(false));
    values.fill("mark_until", Value::Word("full"));
    let refused = [
        ("gentle", values.flag("gentle"), "false in the ns2 dialects"),
        ("wait", values.flag("wait"), "false in the ns2 dialects"),
        ("mode", values.word("mode") != "packet", "packet in the ns2 dialects"),
        ("mark_until", values.word("mark_until") != "full", "full in the ns2 dialects"),
        ("mark_p", values.number("mark_p") < 1.0, "1 in the ns2 dialects"),
        ("min_in", is_bytes(values, "min_in"), "packets in the ns2 dialects"),
        ("min_out", is_bytes(values, "min_out"), "packets in the ns2 dialects"),
    ];
    match refused.into_iter().find(|(_, is_refused, _)| *is_refused) {
        Some((name, _, expected)) => Err(Refusal::new(name, expected)),
        None => Ok(()),
    }
}

fn is_bytes(values: &Values, name: &str) -> bool {
    matches!(values.length(name), Length::Bytes(_))
}

fn packets(values: &Values, name: &str) -> f64 {
    match values.length(name) {
        Length::Packets(packets) => packets,
        Length::Bytes(_) => unreachable!("bytes were refused"),
    }
}

impl Dsred {
    /// The REDs of an empty queue before a link of `rate`; coupled is RIO-C.
    pub fn new(values: &Values, rate: Rate, is_coupled: bool) -> Self {
        let class = |min, max, max_p| Class {
            setting: Setting { min: packets(values, min), max: packets(values, max), max_p: values.number(max_p) },
            average: 0.0,
            count: OUTSIDE,
            waiting: 0,
            idle_since: Time::ZERO,
        };
        Self {
            classes: [class("min_in", "max_in", "probability_in"), class("min_out", "max_out", "probability_out")],
            is_coupled,
            weight: values.number("wq"),
            slot_s: 1.0 / measure::capacity(values, rate),
            ecn_enabled: values.flag("ecn"),
        }
    }

    /// Puts these two in the place of `before`, whose averages and spacing they take over.
    #[must_use]
    pub fn instead_of(self, before: &Self) -> Self {
        let class = |index: usize| Class { setting: self.classes[index].setting, ..before.classes[index] };
        Self { classes: [class(IN), class(OUT)], ..self }
    }

    /// Decides about an arriving packet that the queue has room for.
    #[inline]
    pub fn judge(&mut self, arrival: &Arrival, is_in: bool, stream: &mut Stream, now: Time) -> Verdict {
        let own = if is_in { IN } else { OUT };
        for index in self.counted_by(own) {
            self.sample(index, now);
        }
        let class = &mut self.classes[own];
        let verdict = class.decide(arrival, self.ecn_enabled, stream);
        if !matches!(verdict, Verdict::Drop(_)) {
            class.waiting += 1;
            for index in self.counted_by(own) {
                self.classes[index].idle_since = Time::NEVER;
            }
        }
        verdict
    }

    /// Hears that a packet begins to be sent.
    #[inline]
    pub fn depart(&mut self, is_in: bool, now: Time) {
        let own = if is_in { IN } else { OUT };
        self.classes[own].waiting -= 1;
        for index in self.counted_by(own) {
            if self.queue(index) == 0 {
                self.classes[index].idle_since = now;
            }
        }
    }

    /// The probability and the average of OUT packets.
    pub fn gauges(&self) -> Gauges {
        let Class { setting, average, .. } = self.classes[OUT];
        let probability = match average {
            _ if average <= setting.min => 0.0,
            _ if average > setting.max => 1.0,
            _ => setting.probability(average),
        };
        Gauges { probability: Some(probability), control: Some(average), tracked_flows: None }
    }

    /// The classes whose averages count a packet of class `own`.
    fn counted_by(&self, own: usize) -> std::ops::RangeInclusive<usize> {
        own..=if self.is_coupled { OUT } else { own }
    }

    /// The packets that wait and that the average of class `index` counts.
    fn queue(&self, index: usize) -> u32 {
        let other = if self.is_coupled && index == OUT { self.classes[IN].waiting } else { 0 };
        self.classes[index].waiting + other
    }

    fn sample(&mut self, index: usize, now: Time) {
        let queue = f64::from(self.queue(index));
        let class = &mut self.classes[index];
        if class.idle_since.is_set() {
            let slots = average::whole_slots(now.since(class.idle_since).secs_f64(), self.slot_s);
            class.average *= maths::powi(1.0 - self.weight, slots);
        }
        class.average += self.weight * (queue - class.average);
    }
}

impl Class {
    fn decide(&mut self, arrival: &Arrival, ecn_enabled: bool, stream: &mut Stream) -> Verdict {
        if self.average <= self.setting.min {
            self.count = OUTSIDE;
            return Verdict::Pass;
        }
        if self.average > self.setting.max {
            self.count = 0;
            return Verdict::signal(ecn_enabled, arrival.ecn, Cause::FORCED);
        }
        self.count += 1;
        let p = self.setting.probability(self.average);
        let room = 1.0 - self.count as f64 * p;
        let is_chosen = room >= 0.0 && p > 0.0 && (p >= room || stream.unit() * room < p);
        if !is_chosen {
            return Verdict::Pass;
        }
        self.count = 0;
        Verdict::signal(ecn_enabled, arrival.ecn, Cause::EARLY)
    }
}
