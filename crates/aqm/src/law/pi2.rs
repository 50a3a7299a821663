//! PI2 is PIE without its tuning. A linear controller of the waiting time has an output `p'`. It is squared for flows
//! whose rate goes with 1/sqrt(p), and doubled for those whose rate goes with 1/p.
//!
//! Source: De Schepper, Bondarenko, Tsang and Briscoe, "PI2: A Linearized AQM for both Classic and Scalable TCP",
//! CoNEXT 2016 ("the paper").
//!
//! | paper | here |
//! |---|---|
//! | `p'`, the pseudo-probability | [`Coupling::linear`] |
//! | `alpha`, `beta` in Hz, `T`, target | the same, `tupdate`, `target` |
//! | `k`, coupling | `coupling_factor` |
//!
//! The waiting time is that of the last packet that left, or 0 if none waited behind it. Scalable flows say so by
//! ECT(1) (RFC 9331), which the paper did not know yet: it took all ECN-capable flows for Scalable.
//!
//! Deviations. Past the point where every Scalable packet is marked, packets are dropped with the square of p' whatever
//! their ECN field, as in the later DualPI2 (RFC 9332 A.2); the paper stops at a quarter and leaves the rest to the
//! limit.

use super::clock::Clock;
use super::coupling::{self, Coupling};
use super::pie;
use super::{Arrival, Departure, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Param, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Stream, Time};

const PAPER: &str = "De Schepper et al. 2016";

/// The law.
#[derive(Clone, Debug)]
pub struct Pi2 {
    clock: Clock,
    coupling: Coupling,
    ecn_enabled: bool,
    sojourn_s: f64,
    stream: Stream,
}

impl Pi2 {
    /// PI2 from resolved values.
    pub fn new(values: &Values, stream: Stream) -> Self {
        Self {
            clock: Clock::every(values.time("tupdate")),
            coupling: Coupling::new(values),
            ecn_enabled: values.flag("ecn"),
            sojourn_s: 0.0,
            stream,
        }
    }

    /// Whether two draws are both below `p'`: so the paper draws the square.
    fn is_drawn_twice(&mut self) -> bool {
        let p = self.coupling.linear();
        super::is_drawn(&mut self.stream, p) && super::is_drawn(&mut self.stream, p)
    }
}

impl Law for Pi2 {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        let scalable = self.coupling.scalable();
        let is_overloaded = self.coupling.drops_on_overload() && scalable > 1.0;
        let is_capable = self.ecn_enabled && arrival.ecn.is_ect();
        if is_capable && coupling::is_scalable(arrival.ecn) {
            if is_overloaded && self.is_drawn_twice() {
                return Verdict::Drop(Cause::OVERLOAD);
            }
            return if super::is_drawn(&mut self.stream, scalable) {
                Verdict::Mark(Cause::EARLY)
            } else {
                Verdict::Pass
            };
        }
        match self.is_drawn_twice() {
            false => Verdict::Pass,
            true if !is_capable => Verdict::Drop(Cause::EARLY),
            true if is_overloaded => Verdict::Drop(Cause::OVERLOAD),
            true => Verdict::Mark(Cause::EARLY),
        }
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        let is_last = departure.backlog.packets == 0;
        self.sojourn_s = if is_last { 0.0 } else { now.since(departure.enqueued).secs_f64() };
        Verdict::Pass
    }

    fn next_tick(&self) -> Time {
        self.clock.next()
    }

    fn tick(&mut self, _backlog: Backlog, now: Time) {
        if self.clock.take(now) {
            self.coupling.step(self.sojourn_s);
        }
    }

    fn is_at_rest(&self) -> bool {
        self.sojourn_s == 0.0 && self.coupling.is_at_rest()
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            probability: Some(self.coupling.classic()),
            control: Some(self.coupling.linear()),
            tracked_flows: None,
        }
    }

    fn retune(&mut self, values: &Values, _rate: Rate, now: Time) {
        let fresh = Self::new(values, self.stream.clone());
        let clock = fresh.clock.instead_of(self.clock, now);
        let coupling = fresh.coupling.clone().instead_of(&self.coupling);
        *self = Self { clock, coupling, sojourn_s: self.sojourn_s, ..fresh };
    }
}

impl LawRow for Pi2 {
    const ROW: Row = Row {
        name: "pi2",
        aliases: &[],
        doc: "Controls the waiting time by a linear controller whose output is squared for Classic flows.",
        source: PAPER,
        year: 2016,
        marks: true,
        params: &[
            registry::limit("1000p", "tc-pie(8), from which it was made"),
            registry::ECN,
            registry::only(&["paper"], PAPER),
            Param { default: "20ms", source: PAPER, ..pie::TARGET },
            Param { default: "32ms", source: PAPER, ..pie::TUPDATE },
            Param {
                default: "0.3125",
                source: "De Schepper et al. 2016: 5/16",
                doc: "Gain on the distance of the waiting time from its target, in Hz.",
                ..pie::ALPHA
            },
            Param {
                default: "3.125",
                source: "De Schepper et al. 2016: 50/16",
                doc: "Gain on the change of the waiting time since the last step, in Hz.",
                ..pie::BETA
            },
            coupling::FACTOR,
            coupling::DROP_ON_OVERLOAD,
        ],
        fixed: &["dialect"],
        gauges: &[
            Gauge::probability("Probability of a Classic signal, the square of p'."),
            Gauge::control("linear", "", "The controller's p'."),
        ],
        causes: &[],
        uses_rate: registry::never,
        resolve: registry::as_given,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site.stream)
    }
}
