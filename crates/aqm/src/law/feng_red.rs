//! Self-configuring RED scales the maximum probability of RED. Each time the average queue falls below the band, RED
//! was too aggressive, and the probability goes down. Each time it rises above the band, the probability goes up.
//!
//! Source: Feng, Kandlur, Saha and Shin, "A Self-Configuring RED Gateway", INFOCOM 1999.
//!
//! | paper | here |
//! |---|---|
//! | status Between, Below, Above | `Status` |
//! | `max_p <- max_p / alpha`, `max_p <- max_p beta` | `adapt` |
//! | `alpha` = 3, `beta` = 2 | `alpha`, `beta` |
//!
//! The probability moves only when the average enters a region, however long it stays there. Every detail of RED itself
//! is [`red`]'s: parameters, dialects, modes, ECN.
//!
//! Deviations. The maximum probability is kept within `bottom` and `top`, which the paper does not have: it has neither
//! a smallest probability to come back from nor a reason not to pass 1. An idle link counts as below when the next
//! packet arrives, with the average as decayed until then.

use super::red::{self, Detector};
use super::{Arrival, Gauges, Law, Verdict, measure};
use crate::param::{Kind, Param, Refusal, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Stream, Time};

const PAPER: &str = "Feng, Kandlur, Saha and Shin 1999";

const PARAMS: &[Param] = &[
    registry::limit("1000p", "the interface's txqueuelen"),
    registry::ECN,
    red::param::DIALECT,
    red::param::MIN,
    red::param::MAX,
    Param {
        default: "0.1",
        doc: "Maximum probability to begin with.",
        // From zero no factor would lead away.
        range: (1e-6, 1.0),
        source: "ns-2.35 linterm_ = 10; the paper lets it find its own",
        ..red::param::PROBABILITY
    },
    red::param::WQ,
    red::param::GENTLE,
    red::param::GENTLE_END,
    red::param::MODE,
    measure::MEAN_PACKET,
    red::param::WAIT,
    red::param::MARK_UNTIL,
    red::param::MARK_P,
    number("alpha", "3", (1.0, 1e3), "Divides the maximum probability when the average falls below min.", PAPER),
    number("beta", "2", (1.0, 1e3), "Multiplies the maximum probability when the average rises above max.", PAPER),
    number(
        "bottom",
        "0.0001",
        (1e-9, 1.0),
        "Smallest maximum probability.",
        "none in the paper: nine divisions from 1",
    ),
    number("top", "1", (1e-9, 1.0), "Largest maximum probability.", "a probability"),
    registry::CAPACITY,
];

const fn number(
    name: &'static str,
    default: &'static str,
    range: (f64, f64),
    doc: &'static str,
    source: &'static str,
) -> Param {
    Param { name, kind: Kind::Number, default, range, doc, source }
}

/// Checks that thresholds and bounds are in order.
pub fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    red::resolve(values, rate)?;
    values.ordered("bottom", "top")?;
    values.ordered("bottom", "probability")?;
    values.ordered("probability", "top")
}

/// Where the average queue is, or was when it last was not in the band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Below,
    Between,
    Above,
}

/// The law.
#[derive(Clone, Debug)]
pub struct FengRed {
    red: Detector,
    stream: Stream,
    status: Status,
    alpha: f64,
    beta: f64,
    bounds: (f64, f64),
}

impl FengRed {
    /// Self-configuring RED from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        Self {
            red: Detector::new(values, site.rate),
            stream: site.stream,
            // An empty queue at the start is no sign of aggressive dropping.
            status: Status::Below,
            alpha: values.number("alpha"),
            beta: values.number("beta"),
            bounds: (values.number("bottom"), values.number("top")),
        }
    }

    /// Scales the maximum probability if the average, just updated, has entered another region.
    fn adapt(&mut self) {
        let average = self.red.average();
        let (min, max) = self.red.band();
        let (bottom, top) = self.bounds;
        let status = if average < min {
            Status::Below
        } else if average > max {
            Status::Above
        } else {
            Status::Between
        };
        if status == self.status {
            return;
        }
        self.status = status;
        let max_p = self.red.max_p();
        match status {
            Status::Below => self.red.set_max_p((max_p / self.alpha).max(bottom)),
            Status::Above => self.red.set_max_p((max_p * self.beta).min(top)),
            Status::Between => {}
        }
    }
}

impl Law for FengRed {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        self.red.observe(arrival.backlog, now);
        self.adapt();
        self.red.judge(arrival, &mut self.stream)
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        self.red.observe(arrival.backlog, now);
        self.adapt();
        self.red.overflow(arrival, &mut self.stream);
    }

    fn on_idle(&mut self, now: Time) {
        self.red.idle_from(now);
    }

    fn gauges(&self) -> Gauges {
        self.red.gauges()
    }

    fn retune(&mut self, values: &Values, rate: Rate, _now: Time) {
        let fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        let red = fresh.red.clone().instead_of(&self.red);
        *self = Self { red, status: self.status, ..fresh };
    }
}

impl LawRow for FengRed {
    const ROW: Row = Row {
        name: "feng_red",
        aliases: &[],
        doc: "RED that scales its maximum probability each time its average queue leaves the band.",
        source: PAPER,
        year: 1999,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet"],
        gauges: red::GAUGES,
        causes: &[],
        uses_rate: registry::always,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }
}
