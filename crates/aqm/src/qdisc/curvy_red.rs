//! Curvy RED in two coupled queues is the elder sibling of [`super::dualpi2`]: in place of a controller that holds a
//! target, the probability of a signal to Classic flows grows with the square of their smoothed waiting time, and that
//! of a mark to Scalable ones with the waiting time itself. More flows find a longer queue, not more losses.
//!
//! Source: De Schepper, Briscoe and White, RFC 9332, 2023, Appendix B (Figures 9 and 10); the idea: Briscoe, "Insights
//! from Curvy RED (Random Early Detection)", BT Technical Report TR-TUB8-2015-003, 2015.
//!
//! | RFC 9332 B | here |
//! |---|---|
//! | `Q_C`, `gamma` = 2^-`g_C` | `average`, `gamma` |
//! | `range_C` = 2^`S_C` s, `minTh` | `range`, `min_th` |
//! | `range_L`, k = 2^k' | `range` / `coupling_factor` |
//! | `T` | `step_thresh` |
//! | `tshift` | `tshift` |
//! | `U`, `maxrand` | `curviness`, [`CurvyRed::is_below_all`] |
//!
//! The greatest of u random numbers is less than p where each of them is. They are drawn one after the other, and no
//! more once one was not.
//!
//! Deviations. The figure's `minTh` of 500 ms is beyond its buffer of 250 ms, so that nothing would ever be signalled:
//! it is taken for 500 us. The waiting times of lines 5b and 9a are those of the packet in hand. Where one queue is
//! empty the other is served. A packet is refused when it does not fit, there when an MTU does not. The coupling factor
//! need not be a power of 2, nor the other constants. With `ecn` off every packet is Classic, and dropped where it is
//! signalled. There is no overload beyond which Scalable packets are dropped: the figures have none.

use super::fifo::Limit;
use super::{Held, Qdisc, Taken};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::law::{self, Gauges, coupling};
use crate::packet::{Backlog, Driver, Packet, Tap};
use crate::param::{Kind, Length, Param, Refusal, Value, Values};
use crate::registry::{self, Discipline, Row, Site};
use base::{Rate, Span, Stream, Time, maths};
use std::collections::VecDeque;

const RFC: &str = "RFC 9332 B.1, Figure 9";

const PARAMS: &[Param] = &[
    Param {
        doc: "How much may wait in both queues, in packets or bytes; what arrives beyond is lost. Computed: what the \
              link sends in 250 ms.",
        ..registry::limit("", RFC)
    },
    Param { default: "true", source: "RFC 9332: it is made for ECN", ..registry::ECN },
    registry::only(&["rfc"], "RFC 9332 B"),
    Param { source: RFC, ..coupling::FACTOR },
    Param {
        name: "range",
        kind: Kind::Time,
        default: "500ms",
        range: (1e-6, 100.0),
        doc: "Smoothed Classic waiting time, beyond min_th, at which every Classic packet is signalled (range_C); \
              Scalable ones are all marked at this over coupling_factor.",
        source: "RFC 9332 B.1, Figure 9: S_C = -1",
    },
    Param {
        name: "min_th",
        kind: Kind::Time,
        default: "500us",
        range: (0.0, 10.0),
        doc: "Smoothed Classic waiting time up to which nothing is signalled for it (minTh).",
        source: "RFC 9332 B.1, Figure 9, which has 500 ms, beyond its own buffer: taken for 500 us",
    },
    Param {
        name: "gamma",
        kind: Kind::Number,
        default: "0.03125",
        range: (1e-6, 1.0),
        doc: "Weight of a Classic packet's waiting time in the moving average.",
        source: "RFC 9332 B.1, Figure 9: g_C = 5",
    },
    Param {
        name: "curviness",
        kind: Kind::Integer,
        default: "1",
        range: (1.0, 16.0),
        doc: "Exponent of the probability of a Scalable mark (U); that of a Classic signal is twice as large.",
        source: "RFC 9332 B.1: only U = 1 was tried",
    },
    Param {
        name: "step_thresh",
        kind: Kind::Time,
        default: "1ms",
        range: (0.0, 10.0),
        doc: "Waiting time above which a Scalable packet is marked for its own (T).",
        source: RFC,
    },
    Param {
        name: "tshift",
        kind: Kind::Time,
        default: "50ms",
        range: (0.0, 10.0),
        doc: "By how much longer than the head of the L-queue that of the Classic queue must have waited to be served.",
        source: RFC,
    },
    registry::CAPACITY,
];

fn uses_rate(values: &Values) -> bool {
    !values.0.contains_key("limit")
}

fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    let room = (rate.bytes_in(Span::from_ms(250)) as f64).min(4e9);
    values.fill("limit", Value::Length(Length::Bytes(room)));
    Ok(())
}

/// The discipline.
#[derive(Clone, Debug)]
pub struct CurvyRed<P> {
    limit: Limit,
    ecn_enabled: bool,
    factor: f64,
    range_s: f64,
    min_th_s: f64,
    gamma: f64,
    curviness: u64,
    threshold: Span,
    shift: Span,
    scalable: VecDeque<Held<P>>,
    classic: VecDeque<Held<P>>,
    held: Backlog,
    /// `Q_C`, seconds.
    average: f64,
    stream: Stream,
}

impl<P: Packet> CurvyRed<P> {
    /// Empty queues from resolved values.
    pub fn new(values: &Values, stream: Stream) -> Self {
        Self {
            limit: Limit::of(values),
            ecn_enabled: values.flag("ecn"),
            factor: values.number("coupling_factor"),
            range_s: values.time("range").secs_f64(),
            min_th_s: values.time("min_th").secs_f64(),
            gamma: values.number("gamma"),
            curviness: values.integer("curviness"),
            threshold: values.time("step_thresh"),
            shift: values.time("tshift"),
            scalable: VecDeque::with_capacity(64),
            classic: VecDeque::with_capacity(64),
            held: Backlog::default(),
            average: 0.0,
            stream,
        }
    }

    /// `p > maxrand(u)`.
    fn is_below_all(&mut self, p: f64, u: u64) -> bool {
        (0..u).all(|_| law::is_drawn(&mut self.stream, p))
    }

    /// The root of the probability of a Classic signal, if `curviness` is 1; below 0 where there is none.
    fn linear(&self) -> f64 {
        (self.average - self.min_th_s) / self.range_s
    }

    /// Whether the L-queue is served, which is not empty unless both are (Figure 10, lines 28 to 33).
    fn serves_scalable(&self, now: Time) -> bool {
        let age = |queue: &VecDeque<Held<P>>| queue.front().map(|held| now.since(held.enqueued));
        match (age(&self.scalable), age(&self.classic)) {
            (Some(scalable), Some(classic)) => scalable + self.shift >= classic,
            (None, Some(_)) => false,
            _ => true,
        }
    }

    /// Why a Scalable packet that waited so long is marked, if it is.
    fn decide_scalable(&mut self, waited: Span) -> Option<Cause> {
        if waited > self.threshold {
            return Some(Cause::FORCED);
        }
        // range_L = 2^(S_C - k')
        let p = (self.average - self.min_th_s) / (self.range_s / self.factor);
        self.is_below_all(p, self.curviness).then_some(Cause::EARLY)
    }
}

impl<P: Packet> Qdisc<P> for CurvyRed<P> {
    fn offer(&mut self, packet: P, now: Time, driver: &mut dyn Driver<P>) {
        let size = packet.size();
        if !self.limit.admits(self.held, size) {
            return driver.dropped(packet, Cause::TAIL, now);
        }
        driver.accepted(&packet, now);
        self.held.packets += 1;
        self.held.bytes += u64::from(size);
        let is_scalable = self.ecn_enabled && coupling::is_scalable(packet.ecn());
        let queue = if is_scalable { &mut self.scalable } else { &mut self.classic };
        queue.push_back(Held { packet, enqueued: now });
    }

    fn take(&mut self, now: Time, tap: &mut dyn Tap<P>) -> Taken<P> {
        loop {
            let is_scalable = self.serves_scalable(now);
            let queue = if is_scalable { &mut self.scalable } else { &mut self.classic };
            let Some(Held { mut packet, enqueued }) = queue.pop_front() else { return Taken::Empty };
            self.held.packets -= 1;
            self.held.bytes -= u64::from(packet.size());
            let waited = now.since(enqueued);
            let signal = if is_scalable {
                self.decide_scalable(waited)
            } else {
                self.average = self.gamma * waited.secs_f64() + (1.0 - self.gamma) * self.average;
                let p = self.linear();
                self.is_below_all(p, 2 * self.curviness).then_some(Cause::EARLY)
            };
            if let Some(cause) = signal {
                if !self.ecn_enabled || !packet.ecn().is_ect() {
                    tap.dropped(packet, cause, now);
                    continue;
                }
                packet.mark();
                tap.marked(&packet, cause, now);
            }
            return Taken::Packet(Held { packet, enqueued });
        }
    }

    fn backlog(&self) -> Backlog {
        self.held
    }

    fn gauges(&self) -> Gauges {
        let p = maths::powi(self.linear().clamp(0.0, 1.0), 2 * self.curviness);
        Gauges { probability: Some(p), control: Some(self.average), tracked_flows: None }
    }

    fn retune(&mut self, values: &Values, _rate: Rate, _now: Time) {
        let fresh = Self::new(values, self.stream.clone());
        let (scalable, classic) = (std::mem::take(&mut self.scalable), std::mem::take(&mut self.classic));
        *self = Self { scalable, classic, held: self.held, average: self.average, ..fresh };
    }
}

/// The row of [`CurvyRed`].
pub struct DualCurvyRed;

impl Discipline for DualCurvyRed {
    const ROW: Row = Row {
        name: "curvy_red",
        aliases: &["dualq_cred"],
        doc: "Two coupled queues as in dualpi2, whose signals grow with the Classic waiting time and its square.",
        source: "RFC 9332 Appendix B",
        year: 2015,
        marks: true,
        params: PARAMS,
        fixed: &["dialect"],
        gauges: &[
            Gauge::probability("Probability of a Classic signal."),
            Gauge::control("average", "s", "The smoothed waiting time of Classic packets."),
        ],
        causes: &[],
        uses_rate,
        resolve,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(CurvyRed::new(values, site.stream))
    }
}
