//! RED is random early detection. It keeps a slow average of the queue. Between two thresholds it signals arriving
//! packets with a probability that rises with the average, and spaces the signals evenly. Above them it signals
//! everything.
//!
//! Source: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1(4), 1993
//! ("the paper"); gentle: Floyd, "Recommendation on using the gentle_ variant of RED", 2000; ECN: RFC 3168.
//!
//! | paper | here |
//! |---|---|
//! | `avg`, `w_q` | [`Average`] |
//! | `min_th`, `max_th`, `max_p` | `min`, `max`, `probability` |
//! | `p_b` | [`Curve::probability`] |
//! | `p_a`, `count` | `is_chosen` and `is_drawn`, `count` |
//!
//! All forms in use differ in a few answers, which are parameters: `gentle` and where it ends (2 max, or the buffer as
//! in Brandauer et al. 2001); `mode`; `wait`; what happens to ECN-capable packets above `max` (`mark_until`: RFC 3168,
//! "RED*" of Kuzmanovic 2005, "new gentle" of Le et al. 2007), or above a probability (`mark_p`, ns-2). What is left is
//! a `dialect`:
//! - `ns2`: after idle the average decays once more and whole slots only; nothing is signalled at a queue of one packet
//!   or less, nor the first packet above `min`; byte mode scales after the spacing, and spaces by bytes. Beyond the
//!   curve's end all that holds with a probability of 1 (`use_mark_p_` is true in ns-2.35).
//! - `linux`: one stored draw for each signal, and never the first packet in the band; idle times are forgotten by
//!   [a table](super::average::linux). Not its fixed-point arithmetic.
//! - `altq`: ALTQ's whole numbers, idle times and spacing, which [`altq`] states. For [`red`](self) and
//!   [`ared`](super::ared) alone.
//!
//! Deviations. The hard limit is the queue's own and comes first; a packet it refuses enters the average and restarts
//! the spacing, which the paper leaves open. ns-2 and Linux judge first, and so do their dialects here: the packet
//! moves the law as any other, in Linux without the loss restarting anything. Only the draw that ns-2 then wastes is
//! not taken. The packet in transmission is not part of the queue. The paper's byte mode scales by the largest packet,
//! here as everywhere since by the mean one.

pub mod altq;
pub mod form;
pub mod param;

use super::average::{Average, Idle};
use super::curve::Curve;
use super::measure::{self, Measure};
use super::{Arrival, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Length, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Ecn, Rate, Stream, Time};
use form::Form;

const PAPER: &str = "Floyd and Jacobson 1993";

/// What RED and its kin show of themselves.
pub const GAUGES: &[Gauge] = &[
    Gauge::probability("Probability of a packet of mean size at the average queue, before spacing."),
    Gauge::control("average", "packets", "Average queue."),
];

/// Fills in RED's computed parameters and checks that thresholds are in order.
pub fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let dialect = values.word("dialect");
    values.fill("wait", Value::Flag(dialect == "ns2"));
    values.fill("mark_until", Value::Word(if dialect == "linux" { "full" } else { "max" }));
    let (min, max) = (values.length("min"), values.length("max"));
    values.fill("gentle_end", Value::Length(max.times(2.0)));
    let end = values.length("gentle_end");
    ordered("max", min, max, "min")?;
    ordered("gentle_end", max, end, "max")?;
    if values.word("mark_until") == "end" && !values.flag("gentle") {
        return Err(Refusal::new("mark_until", "max or full: without gentle there is no slope to mark through"));
    }
    if dialect == "altq" {
        return altq::resolve(values);
    }
    if values.find_flag("average_overflow") == Some(true) {
        return Err(Refusal::new("average_overflow", "false: the dialect altq alone has such an average"));
    }
    Ok(())
}

/// Completes the values of a law that is built on RED and offers only some of its parameters. The others are the
/// paper's.
pub fn completed(values: &Values, rate: Rate) -> Result<Values, Refusal> {
    let mut values = values.clone();
    values.fill("dialect", Value::Word("paper"));
    values.fill("gentle", Value::Flag(false));
    values.fill("mode", Value::Word("packet"));
    values.fill("mark_p", Value::Number(1.0));
    resolve(&mut values, rate)?;
    Ok(values)
}

fn ordered(name: &'static str, low: Length, high: Length, low_name: &str) -> Result<(), Refusal> {
    match (low, high) {
        (Length::Packets(low), Length::Packets(high)) | (Length::Bytes(low), Length::Bytes(high)) if low <= high => {
            Ok(())
        }
        _ => Err(Refusal::new(name, format!("a length of at least {low_name}, {low}, and in its unit"))),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dialect {
    Paper,
    Ns2,
    Linux,
}

/// `count` while the average is below the band.
const OUTSIDE: i64 = -1;

/// The law.
#[derive(Clone, Debug)]
pub struct Red {
    form: Form,
    stream: Stream,
}

impl Red {
    /// RED from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        Self { form: Form::new(values, site.rate), stream: site.stream }
    }
}

/// RED without the stream that it draws from. Its kin are built of it, some of several.
#[derive(Clone, Debug)]
pub struct Detector {
    measure: Measure,
    average: Average,
    curve: Curve,
    /// The maximum probability that was given; kin of RED move it.
    first_max_p: f64,
    dialect: Dialect,
    /// The least `count` times `p` of a signal: 1 with `wait`, else 0.
    wait: f64,
    ecn_enabled: bool,
    /// ECN-capable packets are marked below this average and up to this probability.
    mark_below: f64,
    mark_p: f64,
    /// Packets since the last signal, [`OUTSIDE`] the band.
    count: i64,
    /// Bytes since the last signal (ns-2's byte mode).
    count_bytes: u64,
    /// The draw that decides when the next signal comes (Linux).
    stored_draw: f64,
}

impl Detector {
    /// RED from resolved values, before a link of `rate`.
    pub fn new(values: &Values, rate: Rate) -> Self {
        let dialect = match values.word("dialect") {
            "ns2" => Dialect::Ns2,
            "linux" => Dialect::Linux,
            _ => Dialect::Paper,
        };
        let measure = Measure::new(values, values.length("min"));
        let [min, max, gentle_end] = ["min", "max", "gentle_end"].map(|name| measure.length(values.length(name)));
        let end = if values.flag("gentle") { gentle_end } else { max };
        let idle = match dialect {
            Dialect::Paper => Idle::Decay,
            Dialect::Ns2 => Idle::DecayAndSample,
            Dialect::Linux => Idle::Table,
        };
        let slot_s = 1.0 / measure::capacity(values, rate);
        Self {
            measure,
            average: Average::new(values.number("wq"), slot_s, idle).compared_with(min),
            curve: Curve::new(min, max, end, values.number("probability")),
            first_max_p: values.number("probability"),
            dialect,
            wait: f64::from(u8::from(values.flag("wait"))),
            ecn_enabled: values.flag("ecn"),
            mark_below: match values.word("mark_until") {
                "max" => max,
                "end" => end,
                _ => f64::INFINITY,
            },
            mark_p: values.number("mark_p"),
            count: OUTSIDE,
            count_bytes: 0,
            stored_draw: 0.0,
        }
    }

    /// Puts this detector in the place of `before`. It takes over the average, the spacing and, unless another one was
    /// given, the maximum probability.
    #[must_use]
    pub fn instead_of(self, before: &Self) -> Self {
        let mut detector = Self {
            average: self.average.instead_of(before.average),
            count: before.count,
            count_bytes: before.count_bytes,
            stored_draw: before.stored_draw,
            ..self
        };
        if detector.first_max_p == before.first_max_p {
            detector.set_max_p(before.max_p());
        }
        detector
    }

    /// Takes a queue of `backlog` into the average. Call it at each arrival, before [`Detector::judge`].
    #[inline]
    pub fn observe(&mut self, backlog: Backlog, now: Time) {
        self.average.sample(self.measure.queue(backlog), now);
    }

    /// Takes a queue of `length` packets, or mean packets, into the average.
    pub fn observe_length(&mut self, length: f64, now: Time) {
        self.average.sample(length, now);
    }

    /// Decides about an arriving packet by the average as it is.
    #[inline]
    pub fn judge(&mut self, arrival: &Arrival, stream: &mut Stream) -> Verdict {
        let average = self.average.value();
        if average < self.curve.min() {
            self.count = OUTSIDE;
            return Verdict::Pass;
        }
        self.decide(arrival, average, stream)
    }

    /// Whether this packet is signalled. The average is in the band or above.
    fn decide(&mut self, arrival: &Arrival, average: f64, stream: &mut Stream) -> Verdict {
        if self.is_spared(arrival) {
            self.count = OUTSIDE;
            return Verdict::Pass;
        }
        let p = self.curve.probability(average);
        let is_beyond = average >= self.curve.end();
        if is_beyond && self.dialect != Dialect::Ns2 {
            return self.force(arrival.ecn, average, p);
        }
        if !self.is_chosen(p, arrival.size, stream) {
            return Verdict::Pass;
        }
        self.count = 0;
        self.count_bytes = 0;
        self.signal(arrival.ecn, if is_beyond { Cause::FORCED } else { Cause::EARLY }, average, p)
    }

    /// Lets a packet pass that arrives in the band, and counts it in the spacing, without a draw.
    pub fn pass_over(&mut self, arrival: &Arrival) {
        self.count += 1;
        self.count_bytes += u64::from(arrival.size);
    }

    /// Hears that the queue refused an arriving packet, after [`Detector::observe`]. What follows is the dialect's
    /// affair.
    pub fn overflow(&mut self, arrival: &Arrival, stream: &mut Stream) {
        match self.dialect {
            Dialect::Paper => self.restart(),
            // red.cc judges first: the band is entered or left all the same, and then the loss restarts the spacing.
            Dialect::Ns2 => {
                let is_outside = self.average() < self.curve.min() || self.is_spared(arrival);
                self.count = if is_outside { OUTSIDE } else { 0 };
                self.count_bytes = 0;
            }
            // sch_red judges first too, and what its child queue then refuses it is not told.
            Dialect::Linux => {
                self.judge(arrival, stream);
            }
        }
    }

    /// Hears that an arriving packet was lost. The loss was a signal, and the spacing begins anew.
    pub fn restart(&mut self) {
        self.count = if self.average() < self.curve.min() { OUTSIDE } else { 0 };
        self.count_bytes = 0;
    }

    /// The link is idle from `now` on.
    pub fn idle_from(&mut self, now: Time) {
        self.average.idle_from(now);
    }

    /// The average queue, and the probability that goes with it.
    pub fn gauges(&self) -> Gauges {
        let average = self.average.value();
        Gauges { probability: Some(self.curve.probability(average)), control: Some(average), tracked_flows: None }
    }

    /// How queues are measured.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    /// The average queue after the last sample, in packets.
    #[inline]
    pub fn average(&self) -> f64 {
        self.average.value()
    }

    /// The average queue at `now`, decayed if the link is idle.
    pub fn average_at(&self, now: Time) -> f64 {
        self.average.at(now)
    }

    /// The maximum probability.
    pub fn max_p(&self) -> f64 {
        self.curve.max_p()
    }

    /// Sets the maximum probability.
    pub fn set_max_p(&mut self, max_p: f64) {
        self.curve.set_max_p(max_p);
    }

    /// The thresholds in packets.
    pub fn band(&self) -> (f64, f64) {
        (self.curve.min(), self.curve.max())
    }

    /// Signals a packet because the average is beyond the curve's end.
    fn force(&mut self, ecn: Ecn, average: f64, p: f64) -> Verdict {
        self.count = if self.dialect == Dialect::Linux { OUTSIDE } else { 0 };
        self.count_bytes = 0;
        self.signal(ecn, Cause::FORCED, average, p)
    }

    /// Whether ns-2 signals nothing because the queue is so short: one packet or, where it counts bytes, one byte.
    #[inline]
    fn is_spared(&self, arrival: &Arrival) -> bool {
        self.dialect == Dialect::Ns2 && self.measure.is_smallest(arrival.backlog)
    }

    /// Whether a packet of `size` is signalled, given `p_b` = `p`. It computes `p_a` and draws.
    #[inline]
    fn is_chosen(&mut self, p: f64, size: u32, stream: &mut Stream) -> bool {
        let is_first = self.count == OUTSIDE;
        self.count += 1;
        self.count_bytes += u64::from(size);
        match self.dialect {
            Dialect::Paper => self.is_drawn(p * self.measure.weight(size), self.count as f64, 1.0, stream),
            Dialect::Ns2 if is_first => {
                self.count = 1;
                self.count_bytes = u64::from(size);
                false
            }
            Dialect::Ns2 if self.measure.weighs_size() => {
                let count = self.count_bytes / u64::from(self.measure.mean_packet());
                self.is_drawn(p, count as f64, self.measure.weight(size), stream)
            }
            Dialect::Ns2 => self.is_drawn(p, self.count as f64, 1.0, stream),
            Dialect::Linux if is_first => {
                self.stored_draw = stream.unit();
                false
            }
            Dialect::Linux => {
                let is_chosen = p * self.measure.weight(size) * self.count as f64 >= self.stored_draw;
                if is_chosen {
                    self.stored_draw = stream.unit();
                }
                is_chosen
            }
        }
    }

    /// Draws with probability `p_a` * `scale`. `p_a` is p / (1 - count p). With `wait` it is p / (2 - count p), and 0
    /// before count p = 1. If `p_a` is 1 or more, the signal is certain, whatever the scale (ns-2 modify_p). The code
    /// compares products, which spares the division.
    #[inline]
    fn is_drawn(&self, p: f64, count: f64, scale: f64, stream: &mut Stream) -> bool {
        let spent = count * p;
        if spent < self.wait {
            return false;
        }
        let room = 1.0 + self.wait - spent;
        if p >= room {
            return true;
        }
        let part = p * scale;
        part > 0.0 && (part >= room || stream.unit() * room < part)
    }

    /// The signal as the packet can carry it.
    #[cold]
    fn signal(&self, ecn: Ecn, cause: Cause, average: f64, p: f64) -> Verdict {
        let is_light = average < self.mark_below && p <= self.mark_p;
        match Verdict::signal(self.ecn_enabled, ecn, cause) {
            Verdict::Mark(_) if !is_light => Verdict::Drop(Cause::OVERLOAD),
            verdict => verdict,
        }
    }
}

impl Law for Red {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        self.form.observe(arrival.backlog, now);
        self.form.judge(arrival, &mut self.stream)
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        self.form.observe(arrival.backlog, now);
        self.form.overflow(arrival, &mut self.stream);
    }

    fn on_idle(&mut self, now: Time) {
        self.form.idle_from(now);
    }

    fn gauges(&self) -> Gauges {
        self.form.gauges()
    }

    fn retune(&mut self, values: &Values, rate: Rate, _now: Time) {
        self.form = Form::new(values, rate).instead_of(&self.form);
    }
}

impl LawRow for Red {
    const ROW: Row = Row {
        name: "red",
        aliases: &[],
        doc: "Signals arriving packets with a probability that rises with a slow average of the queue.",
        source: PAPER,
        year: 1993,
        marks: true,
        params: &[
            registry::limit("1000p", "the interface's txqueuelen; tc-red(8) wants it stated"),
            registry::ECN,
            param::DIALECT_OR_ALTQ,
            param::MIN,
            param::MAX,
            param::PROBABILITY,
            param::WQ,
            param::GENTLE,
            param::GENTLE_END,
            param::MODE,
            measure::MEAN_PACKET,
            param::WAIT,
            param::MARK_UNTIL,
            param::MARK_P,
            param::AVERAGE_OVERFLOW,
            registry::CAPACITY,
        ],
        fixed: &["dialect", "mode", "mean_packet", "average_overflow"],
        gauges: GAUGES,
        causes: &[],
        uses_rate: |values| values.word("dialect") != "altq",
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }
}
