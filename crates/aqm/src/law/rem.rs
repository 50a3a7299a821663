//! REM is random exponential marking. The link keeps a price, which rises while more arrives than leaves, or more waits
//! than should. A packet is signalled with a probability exponential in the price, so that prices add over a path.
//!
//! Source: Athuraliya, Low, Li and Yin, "REM: Active Queue Management", IEEE Network 15(3), 2001.
//!
//! | paper | here |
//! |---|---|
//! | `p(t+1) = max(0, p(t) + gamma (alpha (b - b*) + x - c))` | `price`, [`Rem::tick`] |
//! | `b*` | `target` |
//! | `x`, `c` in packets an interval | `arrived`, `capacity` |
//! | `1 - phi^(-p)` | `probability` |
//!
//! All that is offered counts as arrived, even what is then lost. In byte mode sizes are counted, and prices do not
//! depend on the mean packet being right. In packet mode they do, because the capacity is in mean packets.
//!
//! Dialect `ns2`: with `ecn`, packets are marked when they leave instead of when they arrive, and those that are not
//! ECN-capable are never dropped. Without `ecn` there is no difference. (Its queue also holds one packet less than its
//! limit; that is not copied.)

use super::clock::Clock;
use super::measure::{self, Measure};
use super::{Arrival, Departure, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Param, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Stream, Time, maths};

const PAPER: &str = "Athuraliya, Low, Li and Yin 2001";

const fn number(name: &'static str, default: &'static str, range: (f64, f64), doc: &'static str) -> Param {
    Param { name, kind: Kind::Number, default, range, doc, source: PAPER }
}

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen"),
    registry::ECN,
    Param {
        name: "dialect",
        kind: Kind::Word(&["paper", "ns2"]),
        default: "paper",
        range: Param::ANY,
        doc: "With ecn: mark at arrival and drop what cannot be marked (paper), or mark at departure and drop nothing \
              (ns2).",
        source: PAPER,
    },
    Param {
        name: "target",
        kind: Kind::LengthOrTime,
        default: "20p",
        range: (0.0, 1e9),
        doc: "The queue to settle at. In byte mode packets are mean packets; a time is what the link sends in it.",
        source: "ns-2 pbo_; the UNC studies have 24 and 240",
    },
    number("gamma", "0.001", (0.0, 1.0), "Step of the price, per packet of mismatch."),
    number("alpha", "0.1", (0.0, 1.0), "Weight of the queue's mismatch against the rate's."),
    number("phi", "1.001", (1.000_000_001, 1e3), "Base of the exponential: how strongly a price is signalled."),
    Param {
        name: "interval",
        kind: Kind::Time,
        default: "2ms",
        range: (1e-6, 10.0),
        doc: "Time between two updates of the price.",
        source: "ns-2 pupdtime_",
    },
    Param {
        name: "inw",
        kind: Kind::Number,
        default: "1",
        range: (1e-6, 1.0),
        doc: "Weight of the last interval in the average of arrivals; 1 is no average.",
        source: "ns-2 inw_",
    },
    measure::mode("byte", "Le et al. 2007: as its authors recommend"),
    measure::MEAN_PACKET,
    measure::WEIGHT_PACKET,
    registry::CAPACITY,
];

/// The law.
#[derive(Clone, Debug)]
pub struct Rem {
    measure: Measure,
    clock: Clock,
    target: f64,
    gamma: f64,
    alpha: f64,
    ln_phi: f64,
    interval_s: f64,
    /// How many packets the link sends in an interval.
    capacity: f64,
    input_weight: f64,
    ecn_enabled: bool,
    marks_at_departure: bool,
    /// What arrived since the last update, and its average an interval, in packets.
    arrived: Backlog,
    arrived_average: f64,
    price: f64,
    probability: f64,
    stream: Stream,
}

impl Rem {
    /// REM from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let target = values.length_at("target", site.rate);
        let measure = Measure::new(values, target);
        let interval = values.time("interval");
        let ecn_enabled = values.flag("ecn");
        Self {
            measure,
            clock: Clock::every(interval),
            target: measure.length(target),
            gamma: values.number("gamma"),
            alpha: values.number("alpha"),
            ln_phi: maths::ln(values.number("phi")),
            interval_s: interval.secs_f64(),
            capacity: measure::capacity(values, site.rate) * interval.secs_f64(),
            input_weight: values.number("inw"),
            ecn_enabled,
            marks_at_departure: ecn_enabled && values.word("dialect") == "ns2",
            arrived: Backlog::default(),
            arrived_average: 0.0,
            price: 0.0,
            probability: 0.0,
            stream: site.stream,
        }
    }

    fn count(&mut self, size: u32) {
        self.arrived.packets += 1;
        self.arrived.bytes += u64::from(size);
    }

    fn is_chosen(&mut self, size: u32) -> bool {
        super::is_drawn(&mut self.stream, self.probability * self.measure.weight(size))
    }
}

impl Law for Rem {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        self.count(arrival.size);
        if !self.marks_at_departure && self.is_chosen(arrival.size) {
            return Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY);
        }
        Verdict::Pass
    }

    fn on_overflow(&mut self, arrival: &Arrival, _now: Time) {
        self.count(arrival.size);
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, _now: Time) -> Verdict {
        if self.marks_at_departure && departure.ecn.is_ect() && self.is_chosen(departure.size) {
            return Verdict::Mark(Cause::EARLY);
        }
        Verdict::Pass
    }

    fn next_tick(&self) -> Time {
        self.clock.next()
    }

    fn tick(&mut self, backlog: Backlog, now: Time) {
        if self.clock.take(now) {
            self.arrived_average += self.input_weight * (self.measure.queue(self.arrived) - self.arrived_average);
            self.arrived = Backlog::default();
            let mismatch =
                self.alpha * (self.measure.queue(backlog) - self.target) + self.arrived_average - self.capacity;
            self.price = (self.price + self.gamma * mismatch).max(0.0);
            self.probability = 1.0 - maths::exp(-self.price * self.ln_phi);
        }
    }

    fn is_at_rest(&self) -> bool {
        self.price == 0.0 && self.probability == 0.0 && self.arrived.packets == 0 && self.arrived_average == 0.0
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn gauges(&self) -> Gauges {
        Gauges { probability: Some(self.probability), control: Some(self.price), tracked_flows: None }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        let Self { arrived, price, probability, .. } = *self;
        let clock = fresh.clock.instead_of(self.clock, now);
        // What arrives in an interval, of another length.
        let arrived_average = self.arrived_average * (fresh.interval_s / self.interval_s);
        *self = Self { arrived, arrived_average, price, probability, clock, ..fresh };
    }
}

impl LawRow for Rem {
    const ROW: Row = Row {
        name: "rem",
        aliases: &[],
        doc: "Keeps a price that matches rate and queue to the link, and signals exponentially in it.",
        source: PAPER,
        year: 2001,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet", "weight_packet"],
        gauges: &[
            Gauge::probability("Probability of a packet of mean size."),
            Gauge::control("price", "", "Price at the last update."),
        ],
        causes: &[],
        uses_rate: registry::always,
        resolve: registry::as_given,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }
}
