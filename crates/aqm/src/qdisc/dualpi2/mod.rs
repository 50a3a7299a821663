//! DualPI2 has two queues that share a link and a controller. Scalable flows (L4S) get a queue of their own (the
//! L-queue), which frequent marks keep to a millisecond and which is served first. Classic flows get a queue that
//! stands at a target. The controller's signals to the Classic queue are coupled to the marks of the L-queue, so that
//! both kinds of flow get the same window.
//!
//! Source: De Schepper, Briscoe and White, "Dual-Queue Coupled Active Queue Management (AQM) for Low Latency, Low Loss,
//! and Scalable Throughput (L4S)", RFC 9332, 2023, Appendix A; Linux sch_dualpi2.c; tc-dualpi2(8).
//!
//! | RFC 9332 A | here |
//! |---|---|
//! | `target`, `Tupdate`, `alpha`, `beta` | `target`, `tupdate`, `alpha`, `beta` |
//! | `RTT_max`, `k` | `max_rtt`, `coupling_factor` |
//! | `p'`, `p_C`, `p_CL` | [`Coupling`] |
//! | `laqm`: `minTh`, `range`, `Th_len` | `Native::Ramp`: `min_th`, `range`, `th_len` |
//! | `recur` | `Recurrence` |
//! | `scheduler()`, left open | weighted turns by bytes: `classic_protection` (Linux) |
//! | `p_Lmax` = 1, `p_Cmax` = 1/k^2 | overload |
//!
//! The forms in use are one algorithm, and differ in this:
//!
//! | what | `rfc` | `linux` |
//! |---|---|---|
//! | `limit` | what the link sends in 250 ms | 10,000 packets |
//! | `tupdate`, `alpha`, `beta` without `max_rtt` | computed from 100 ms | 16 ms, 0.16, 3.2 |
//! | a signal comes | when probabilities have summed up to 1 | by chance |
//! | a probability that is a square is | one term of that sum | two draws |
//! | the L-queue's own marks | a ramp, or a step | a step |
//! | they and the controller's | are one signal, of the larger probability | are apart |
//! | overload is where all of the L-queue is marked | or more would be | and more would be |
//! | the controller spares a queue | never | below two packets of `mtu` |
//!
//! Deviations. A probability above 1 is summed up as 1. With `ecn` off every packet is Classic, and dropped where it is
//! signalled. The RFC refuses a packet when an MTU would not fit, here when the packet does not. No filters, no limit
//! on memory, and no segments to split. The dialect `docsis` has the L-queue of cable modems alone: their ramp
//! (`native.rs`) and queue protection (`protection.rs`). Linux's gains are whole multiples of 1/275 Hz, p' and a step
//! of it of 2^-32. The RFC's waiting time of the L-queue is read as that of the packet in hand.

use super::fifo::Limit;
use super::native::{Native, Spares};
use super::protection::Protection;
use super::{Held, Qdisc, Taken};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::law::clock::Clock;
use crate::law::coupling::{self, Coupling};
use crate::law::{self, Gauges};
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::Values;
use crate::registry::{Discipline, Row, Site};
use base::{Rate, Span, Stream, Time};
use param::{Dialect, PARAMS, resolve, uses_rate};
use std::collections::VecDeque;

mod param;

/// Signals as often as a probability says, without chance: when the sum of probabilities passes 1 (RFC 9332 A.1).
#[derive(Clone, Copy, Debug, Default)]
struct Recurrence(f64);

impl Recurrence {
    fn is_due(&mut self, likelihood: f64) -> bool {
        // More than 1 would be owed long after the overload.
        self.0 += likelihood.min(1.0);
        let is_due = self.0 > 1.0;
        if is_due {
            self.0 -= 1.0;
        }
        is_due
    }
}

/// One of the two queues.
#[derive(Clone, Debug)]
struct Queue<P> {
    packets: VecDeque<Held<P>>,
    bytes: u64,
    recurrence: Recurrence,
}

impl<P> Queue<P> {
    fn new() -> Self {
        Self { packets: VecDeque::with_capacity(64), bytes: 0, recurrence: Recurrence::default() }
    }

    /// How long its head has waited; 0 if the queue is empty.
    fn age(&self, now: Time) -> Span {
        self.packets.front().map_or(Span::ZERO, |held| now.since(held.enqueued))
    }
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    limit: Limit,
    clock: Clock,
    coupling: Coupling,
    native: Native,
    spares: Spares,
    drops_early: bool,
    any_ect: bool,
    protection: Option<Protection>,
    rate: Rate,
    ecn_enabled: bool,
    dialect: Dialect,
    mtu: u64,
    scalable: Queue<P>,
    classic: Queue<P>,
    held: Backlog,
    /// Weights of the Classic and the L-queue, in hundredths.
    weights: (i64, i64),
    /// Bytes times weight that the Classic queue is owed, or at 0 and below owes.
    credit: i64,
    stream: Stream,
}

impl<P: Packet> DualPi2<P> {
    /// Empty queues from resolved values.
    pub fn new(values: &Values, rate: Rate, stream: Stream) -> Self {
        let weight = (values.number("classic_protection") * 100.0 + 0.5) as i64;
        let mtu = u64::from(values.size("mtu"));
        let mut queue = Self {
            limit: Limit::of(values),
            clock: Clock::every(values.time("tupdate")),
            coupling: Coupling::new(values),
            native: Native::of(values),
            spares: Spares { least: values.integer("min_qlen_step") as usize, spared: VecDeque::new() },
            drops_early: values.flag("drop_early"),
            any_ect: values.flag("any_ect"),
            protection: Protection::of(values),
            rate,
            ecn_enabled: values.flag("ecn"),
            dialect: Dialect::of(values),
            mtu,
            scalable: Queue::new(),
            classic: Queue::new(),
            held: Backlog::default(),
            weights: (weight, 100 - weight),
            credit: 0,
            stream,
        };
        queue.reset_credit();
        queue
    }

    /// Gives the L-queue a lead of a packet.
    fn reset_credit(&mut self) {
        self.credit = self.mtu as i64 * (self.weights.0 - self.weights.1);
    }

    /// Whether a packet says that its sender is Scalable.
    fn is_scalable(&self, packet: &P) -> bool {
        self.ecn_enabled && (coupling::is_scalable(packet.ecn()) || self.any_ect && packet.ecn().is_ect())
    }

    /// Whether a packet that says so belongs to the Classic queue all the same, for what its flow did to the L-queue.
    /// That waits for what is in it, as a cable modem reckons it at an arrival.
    fn is_sanctioned(&mut self, packet: &P, now: Time) -> bool {
        let Some(protection) = &mut self.protection else { return false };
        let waiting = self.scalable.packets.len() as u32;
        let delay = self.rate.time_for(self.scalable.bytes);
        let native = self.native.probability(delay, waiting);
        protection.sanctions(packet.flow(), packet.size(), (delay, native), now)
    }

    /// Whether a packet of the Classic queue is marked where others are dropped. One that was sanctioned is not: its
    /// sender would take the mark for one of the L-queue's (RFC 9331 §5.4.1.2).
    fn may_mark_classic(&self, packet: &P) -> bool {
        self.ecn_enabled && packet.ecn().is_ect() && !coupling::is_scalable(packet.ecn())
    }

    /// Whether everything Scalable is marked, and drops are to help.
    fn is_overloaded(&self) -> bool {
        let p = self.coupling.scalable();
        self.coupling.drops_on_overload() && if self.dialect.overload_is_beyond { p > 1.0 } else { p >= 1.0 }
    }

    /// Whether the queue is so short that the controller does nothing to it.
    fn is_spared(&self) -> bool {
        self.held.bytes < self.dialect.spared * self.mtu
    }

    /// Whether a packet of the L-queue or of the Classic queue gets a signal of this probability.
    fn is_signalled(&mut self, is_scalable: bool, p: f64) -> bool {
        match self.dialect.draws {
            true => law::is_drawn(&mut self.stream, p),
            false if is_scalable => self.scalable.recurrence.is_due(p),
            false => self.classic.recurrence.is_due(p),
        }
    }

    /// Whether it gets one of the probability of a Classic signal, the square of p'.
    fn is_signalled_as_classic(&mut self, is_scalable: bool) -> bool {
        match self.dialect.draws {
            true => {
                let p = self.coupling.linear();
                law::is_drawn(&mut self.stream, p) && law::is_drawn(&mut self.stream, p)
            }
            false => self.is_signalled(is_scalable, self.coupling.classic()),
        }
    }

    /// Decides about a Classic packet: whether it is dropped, and why; `None` passes.
    fn decide_classic(&mut self, is_capable: bool) -> Option<(bool, Cause)> {
        if self.is_spared() {
            return None;
        }
        self.is_signalled_as_classic(false).then_some(match is_capable {
            true if self.is_overloaded() => (true, Cause::OVERLOAD),
            true => (false, Cause::EARLY),
            false => (true, Cause::EARLY),
        })
    }

    /// What the controller alone decides about a Scalable packet, where its marks are apart.
    fn decide_coupled(&mut self) -> Option<(bool, Cause)> {
        if self.is_spared() {
            return None;
        }
        if self.is_overloaded() && self.is_signalled_as_classic(true) {
            return Some((true, Cause::OVERLOAD));
        }
        self.is_signalled(true, self.coupling.scalable()).then_some((false, Cause::EARLY))
    }

    /// Decides about a Scalable packet: whether it is dropped, and why; `None` passes.
    fn decide_scalable(&mut self, waited: Span, behind: u32, is_spared: bool) -> Option<(bool, Cause)> {
        let native = if is_spared { 0.0 } else { self.native.probability(waited, behind) };
        let cause = if native >= 1.0 { Cause::FORCED } else { Cause::EARLY };
        if self.dialect.marks_apart {
            let coupled = if self.drops_early { None } else { self.decide_coupled() };
            return coupled.or_else(|| self.is_signalled(true, native).then_some((false, cause)));
        }
        let (coupled, is_overloaded) = (self.coupling.scalable(), self.is_overloaded());
        if is_overloaded && self.is_signalled_as_classic(true) {
            return Some((true, Cause::OVERLOAD));
        }
        // In an overload the controller's marks are all that there are.
        let (p, cause) = if is_overloaded { (coupled, Cause::EARLY) } else { (native.max(coupled), cause) };
        self.is_signalled(true, p).then_some((false, cause))
    }
}

impl<P: Packet> Qdisc<P> for DualPi2<P> {
    fn offer(&mut self, mut packet: P, now: Time, driver: &mut dyn Driver<P>) {
        let size = packet.size();
        if !self.limit.admits(self.held, size) {
            return driver.dropped(packet, Cause::TAIL, now);
        }
        let is_scalable = self.is_scalable(&packet) && !self.is_sanctioned(&packet, now);
        if self.drops_early {
            let signal = match is_scalable {
                true => self.decide_coupled(),
                false => self.decide_classic(self.may_mark_classic(&packet)),
            };
            match signal {
                None => {}
                Some((false, cause)) => {
                    packet.mark();
                    driver.marked(&packet, cause, now);
                }
                Some((true, cause)) => return driver.dropped(packet, cause, now),
            }
        }
        driver.accepted(&packet, now);
        self.held.packets += 1;
        self.held.bytes += u64::from(size);
        if is_scalable {
            self.spares.hear_arrival(self.scalable.packets.len());
        }
        let queue = if is_scalable { &mut self.scalable } else { &mut self.classic };
        queue.bytes += u64::from(size);
        queue.packets.push_back(Held { packet, enqueued: now });
    }

    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Taken<P> {
        loop {
            let both = !self.scalable.packets.is_empty() && !self.classic.packets.is_empty();
            let is_scalable = self.classic.packets.is_empty() || both && self.credit <= 0;
            let queue = if is_scalable { &mut self.scalable } else { &mut self.classic };
            let Some(Held { mut packet, enqueued }) = queue.packets.pop_front() else {
                self.reset_credit();
                return Taken::Empty;
            };
            let behind = queue.packets.len() as u32;
            let size = packet.size();
            queue.bytes -= u64::from(size);
            self.held.packets -= 1;
            self.held.bytes -= u64::from(size);
            let signal = match is_scalable {
                true => {
                    let is_spared = self.spares.hear_departure();
                    self.decide_scalable(now.since(enqueued), behind, is_spared)
                }
                false if self.drops_early => None,
                false => self.decide_classic(self.may_mark_classic(&packet)),
            };
            match signal {
                None => {}
                Some((false, cause)) => {
                    packet.mark();
                    tap.marked(&packet, cause, now);
                }
                Some((true, cause)) => {
                    tap.dropped(packet, cause, now);
                    continue;
                }
            }
            if both {
                let (classic, scalable) = self.weights;
                self.credit += i64::from(size) * if is_scalable { classic } else { -scalable };
            }
            return Taken::Packet(Held { packet, enqueued });
        }
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn next_tick(&self) -> Time {
        self.clock.next()
    }

    fn tick(&mut self, now: Time) {
        if self.clock.take(now) {
            let delay = self.scalable.age(now).max(self.classic.age(now));
            self.coupling.step(delay.secs_f64());
        }
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            probability: Some(self.coupling.classic()),
            control: Some(self.coupling.linear()),
            tracked_flows: None,
        }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let mut fresh = Self::new(values, values.rate_at(rate), self.stream.clone());
        fresh.protection = fresh.protection.map(|fresh| fresh.instead_of(self.protection.as_ref()));
        std::mem::swap(&mut fresh.scalable, &mut self.scalable);
        std::mem::swap(&mut fresh.classic, &mut self.classic);
        // Packets that wait were spared or not when they came; where none can be, nothing was written down of them.
        if self.spares.least > 0 {
            fresh.spares.spared = std::mem::take(&mut self.spares.spared);
        } else if fresh.spares.least > 0 {
            fresh.spares.spared = vec![false; fresh.scalable.packets.len()].into();
        }
        let clock = fresh.clock.instead_of(self.clock, now);
        let coupling = fresh.coupling.clone().instead_of(&self.coupling);
        let is_same = (fresh.mtu, fresh.weights) == (self.mtu, self.weights);
        // The lead of the L-queue, while nothing waits, is a packet.
        let credit = if is_same || self.held.packets > 0 { self.credit } else { fresh.credit };
        *self = Self { clock, coupling, credit, held: self.held, ..fresh };
    }
}

/// The row of [`DualPi2`].
pub struct Dual;

impl Discipline for Dual {
    const ROW: Row = Row {
        name: "dualpi2",
        aliases: &[],
        doc: "Two queues, one of them short for Scalable flows, coupled so that both kinds of flow share the link.",
        source: "RFC 9332",
        year: 2019,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "max_rtt"],
        gauges: &[
            Gauge::probability("Probability of a Classic signal, the square of p'."),
            Gauge::control("linear", "", "The controller's p'."),
        ],
        causes: &[],
        uses_rate,
        resolve,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(DualPi2::new(values, values.rate_at(site.rate), site.stream))
    }
}
