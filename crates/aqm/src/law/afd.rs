//! AFD is approximate fair dropping. A sample of the packets that arrived lately tells each flow's rate. A flow above
//! the fair share loses just what exceeds it. A controller moves the share so that the queue stays at its reference.
//!
//! Source: Pan, Breslau, Prabhakar and Shenker, "Approximate Fairness through Differential Dropping", ACM CCR 33(2),
//! 2003 ("the paper").
//!
//! | paper | here |
//! |---|---|
//! | shadow buffer of `b` packets, one in `s` sampled | `shadow`, `buffer`, `sample` |
//! | `m_i` | `counts` |
//! | `m_fair` | `share` |
//! | `D_i = max(0, 1 - m_fair / m_i)` | [`Afd::on_arrival`] |
//! | `m_fair(k) = m_fair(k-1) + alpha (q(k-1) - q_t) - beta (q(k) - q_t)` | [`Afd::tick`] |
//!
//! In byte mode `m_i` and `m_fair` are in mean packets, so that the share is one of bytes; the probability itself does
//! not depend on the size of the packet in hand. What arrives is sampled, whether or not it is then dropped.
//!
//! Deviations. The share is kept from 0 to the size of the shadow buffer, above which nothing is ever signalled. The
//! paper chooses `b` and `s` by guidelines; here one in so many packets is sampled that the shadow buffer remembers a
//! second at the link's rate.

use super::clock::Clock;
use super::flows::FlowTable;
use super::measure::{self, Measure};
use super::{Arrival, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{FlowKey, Rate, Stream, Time};

const PAPER: &str = "Pan, Breslau, Prabhakar and Shenker 2003";

const PARAMS: &[Param] = &[
    registry::limit("10000p", "Le et al. 2004: large enough that tail drops never occur"),
    registry::ECN,
    registry::only(&["paper"], PAPER),
    Param {
        name: "qref",
        kind: Kind::LengthOrTime,
        default: "50p",
        range: (0.0, 1e9),
        doc: "The queue to settle at (q_target). In byte mode packets are mean packets; a time is what the link sends \
              in it.",
        source: "the implementations in use; Le et al. 2004 found 240 best at 100 Mb/s",
    },
    number(
        "alpha",
        "1.7",
        (0.0, 1e6),
        "Gain of the share on the queue before, in sampled packets; less than beta.",
        PAPER,
    ),
    number("beta", "1.8", (1e-12, 1e6), "Gain of the share on the newest queue.", PAPER),
    Param {
        name: "w",
        kind: Kind::Frequency,
        default: "160hz",
        range: (0.1, 1e6),
        doc: "How often the share is computed.",
        source: PAPER,
    },
    Param {
        name: "buffer",
        kind: Kind::Integer,
        default: "1000",
        range: (1.0, 1e6),
        doc: "Packets in the shadow buffer (b).",
        source: "not fixed by Pan et al. 2003; enough for some hundred fast flows of ten samples each",
    },
    number(
        "sample",
        "",
        (1.0, 1e9),
        "One in so many packets is sampled (s). Computed: the packets the link sends in a second over buffer, at \
         least 1.",
        "Pan et al. 2003: the memory spans several round trips",
    ),
    Param {
        name: "replace",
        kind: Kind::Word(&["random", "oldest"]),
        default: "random",
        range: Param::ANY,
        doc: "Which packet of a full shadow buffer a sampled one replaces.",
        source: "Le et al. 2004 describe it so; implementations replace the oldest",
    },
    Param {
        doc: "byte: flows and the queue are counted in bytes, mean_packet of them as one sample; a packet's own size does \
              not matter. packet: each packet is a sample.",
        ..measure::mode("packet", "Le et al. 2004")
    },
    measure::MEAN_PACKET,
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

/// Whether the number of packets that are sampled, or a length written as a time, is computed from the link's rate.
fn uses_rate(values: &Values) -> bool {
    !values.0.contains_key("sample") || values.find_time("qref").is_some()
}

/// Computes how many packets are sampled, and checks that the gains bring the share down while the queue is too long.
pub fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    let sample = measure::capacity(values, rate) / values.integer("buffer") as f64;
    values.fill("sample", Value::Number(sample.max(1.0)));
    let beta = values.number("beta");
    if values.number("alpha") < beta { Ok(()) } else { Err(Refusal::new("alpha", format!("less than beta, {beta}"))) }
}

/// A packet in the shadow buffer. It counts as one, or as its bytes in byte mode.
#[derive(Clone, Copy, Debug)]
struct Sampled {
    flow: FlowKey,
    amount: u64,
}

/// The law.
#[derive(Clone, Debug)]
pub struct Afd {
    measure: Measure,
    qref: f64,
    alpha: f64,
    beta: f64,
    clock: Clock,
    ecn_enabled: bool,
    /// The probability with which a packet is sampled, `1/s`.
    sample_p: f64,
    replaces_oldest: bool,
    buffer: usize,
    shadow: Vec<Sampled>,
    oldest: usize,
    /// What the shadow buffer holds of each flow, in packets or bytes.
    counts: FlowTable<u64>,
    share: f64,
    queue_before: f64,
    stream: Stream,
}

impl Afd {
    /// AFD from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let qref = values.length_at("qref", site.rate);
        let measure = Measure::new(values, qref);
        let buffer = values.integer("buffer") as usize;
        Self {
            measure,
            qref: measure.length(qref),
            alpha: values.number("alpha"),
            beta: values.number("beta"),
            clock: Clock::at_hz(values.frequency("w")),
            ecn_enabled: values.flag("ecn"),
            sample_p: 1.0 / values.number("sample"),
            replaces_oldest: values.word("replace") == "oldest",
            buffer,
            shadow: Vec::with_capacity(buffer),
            oldest: 0,
            counts: FlowTable::with_room_for(64),
            share: buffer as f64,
            queue_before: 0.0,
            stream: site.stream,
        }
    }

    /// What the shadow buffer holds of `flow`, in packets.
    pub fn count(&self, flow: FlowKey) -> f64 {
        let count = self.counts.get(flow).copied().unwrap_or_default() as f64;
        if self.measure.weighs_size() { count / f64::from(self.measure.mean_packet()) } else { count }
    }

    /// With probability `1/s`, takes the arrival into the shadow buffer.
    fn sample(&mut self, flow: FlowKey, size: u32) {
        if !super::is_drawn(&mut self.stream, self.sample_p) {
            return;
        }
        let sampled = Sampled { flow, amount: if self.measure.weighs_size() { u64::from(size) } else { 1 } };
        if self.shadow.len() < self.buffer {
            self.shadow.push(sampled);
        } else {
            let place = if self.replaces_oldest { self.oldest } else { self.stream.below(self.buffer as u64) as usize };
            self.oldest = (self.oldest + 1) % self.buffer;
            let replaced = std::mem::replace(&mut self.shadow[place], sampled);
            self.forget(replaced);
        }
        *self.counts.get_or_insert(flow, 0) += sampled.amount;
    }

    fn forget(&mut self, Sampled { flow, amount }: Sampled) {
        let count = self.counts.get_mut(flow).expect("what is in the shadow buffer is counted");
        *count -= amount;
        if *count == 0 {
            self.counts.remove(flow);
        }
    }
}

impl Law for Afd {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, _now: Time) -> Verdict {
        // A flow of which there is no sample: minus infinity, or no number. Neither is ever drawn.
        let p = 1.0 - self.share / self.count(arrival.flow);
        let is_signalled = super::is_drawn(&mut self.stream, p);
        self.sample(arrival.flow, arrival.size);
        if is_signalled { Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY) } else { Verdict::Pass }
    }

    fn on_overflow(&mut self, arrival: &Arrival, _now: Time) {
        self.sample(arrival.flow, arrival.size);
    }

    fn next_tick(&self) -> Time {
        self.clock.next()
    }

    fn tick(&mut self, backlog: Backlog, now: Time) {
        if self.clock.take(now) {
            let queue = self.measure.queue(backlog);
            let step = self.alpha * (self.queue_before - self.qref) - self.beta * (queue - self.qref);
            self.share = (self.share + step).clamp(0.0, self.buffer as f64);
            self.queue_before = queue;
        }
    }

    fn gauges(&self) -> Gauges {
        Gauges { probability: None, control: Some(self.share), tracked_flows: Some(self.counts.len() as u32) }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let mut fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        std::mem::swap(&mut fresh.shadow, &mut self.shadow);
        std::mem::swap(&mut fresh.counts, &mut self.counts);
        let Self { oldest, share, queue_before, .. } = *self;
        *self = Self { oldest, share, queue_before, clock: fresh.clock.instead_of(self.clock, now), ..fresh };
    }
}

impl LawRow for Afd {
    const ROW: Row = Row {
        name: "afd",
        aliases: &[],
        doc: "Signals each flow for what it sends above a fair share that keeps the queue at its reference.",
        source: PAPER,
        year: 2003,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mode", "mean_packet", "buffer"],
        gauges: &[
            Gauge::control(
                "share",
                "packets",
                "Fair share: samples of a flow in the shadow buffer that are not signalled.",
            ),
            Gauge::flows("Flows in the shadow buffer."),
        ],
        causes: &[],
        uses_rate,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }

    fn own_bytes(values: &Values) -> usize {
        values.integer("buffer") as usize * size_of::<Sampled>() + FlowTable::<u64>::bytes_for(64)
    }
}
