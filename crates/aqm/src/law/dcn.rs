//! DCN is differential congestion notification. Most flows are small and carry few of the bytes, and DCN signals only
//! the few that send much. A scoreboard finds these. Each of their packets is then signalled with the probability that
//! brings the flow down to a common share. A controller moves the share until the queue is at its reference.
//!
//! Source: Le, Aikat, Jeffay and Smith, "Differential Congestion Notification: Taming the Elephants", ICNP 2004 ("the
//! paper"); its controller: Pan, Breslau, Prabhakar and Shenker, "Approximate Fairness through Differential Dropping",
//! ACM CCR 33(2), 2003.
//!
//! | paper | here |
//! |---|---|
//! | scoreboard `SB` | `seen`, a slot for each value of a hash |
//! | high-bandwidth table `HB`, `pktcount` | `heavy` |
//! | `p_ref` | `share` |
//! | `max(0, 1 - p_ref / pktcount)` | [`Dcn::on_arrival`] |
//! | `T_dec`, `T_update`, clearing interval, 4 | `tdec`, `tupdate`, `clear`, `threshold` |
//! | `q_ref`, `a`, `b` | `qref`, `a`, `b` |
//!
//! What the paper leaves open, and what is done here:
//! - The order of the recursion. As printed, `a` (the smaller gain) goes with the newest queue, so that the share rises
//!   while the queue grows. AFD, whose controller it is, has it the other way round, and so has the default here;
//!   `dialect = "printed"` is the paper's letter.
//! - Whether `pktcount` counts packets that arrived or that were forwarded: both are said. `counts = "forwarded"`, the
//!   default, makes both true: a flow that sends `n` packets in `T_dec` settles at a count of `n` and is forwarded
//!   `p_ref` of them. Counting arrivals, the count of a flow above the share, and with it the probability, grows from
//!   period to period for as long as the flow does not give way.
//! - Whether counts are reduced together, or each in its own time. Here each has its own time, from when the flow
//!   became known. If they were reduced together, all flows would be signalled less at the same instant, and the queue
//!   would swing with a period of `T_dec`.
//! - Gains, `T_update`, the clearing interval and the sizes of the tables. These are parameters, with a reason at each.
//!
//! Deviations. The share is kept from winding up. Above the largest count of this and the last `tdec` it has no effect,
//! so it stops rising there, and falls from there. It begins with what the link sends in `tdec`, so that nobody is
//! signalled before the queue has been above its reference. A flow that returns to the scoreboard after a clearing
//! interval counts from that packet on. A full `HB` takes no more flows. A reduction that is due is done at the flow's
//! next packet, or at the sweep at each multiple of `tdec`, whichever comes first, with the share of that moment.
//! Packets lost by the limit count if arrivals are counted, and only then.

use super::clock::Clock;
use super::flows::FlowTable;
use super::measure::{self, Measure};
use super::{Arrival, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::packet::Backlog;
use crate::param::{Kind, Param, Refusal, Value, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{FlowKey, Rate, Span, Stream, Time};

const PAPER: &str = "Le, Aikat, Jeffay and Smith 2004";

/// Keeps the scoreboard's hash apart from others over the same flows.
const SALT: u64 = 0xDC4;

const PARAMS: &[Param] = &[
    registry::limit("10000p", "Le et al. 2004: large enough that tail drops never occur"),
    registry::ECN,
    Param {
        name: "dialect",
        kind: Kind::Word(&["afd", "printed"]),
        default: "afd",
        range: Param::ANY,
        doc: "Which queue the larger gain b goes with: the newest as in AFD, or the one before as the paper prints it.",
        source: "Pan et al. 2003, whose controller it is",
    },
    Param {
        name: "qref",
        kind: Kind::LengthOrTime,
        default: "24p",
        range: (0.0, 1e9),
        doc: "The queue to settle at; a time is what the link sends in it, in packets of mean_packet bytes.",
        source: "Le et al. 2004: 24 packets at 100 Mb/s",
    },
    Param {
        name: "a",
        kind: Kind::Number,
        default: "0.178",
        range: (0.0, 1e6),
        doc: "Smaller gain of the share on the queue, less than b.",
        source: "not published; so much less than b that the share moves by some packets in tdec at a queue of 2 qref",
    },
    Param {
        name: "b",
        kind: Kind::Number,
        default: "0.18",
        range: (1e-12, 1e6),
        doc: "Larger gain of the share on the queue.",
        source: "not published; a tenth of AFD's 1.8, in a flat optimum of response times of web users",
    },
    time("tupdate", "6250us", "Time between two updates of the share.", "not published; AFD's 160 Hz"),
    time(
        "tdec",
        "800ms",
        "Time between two reductions of a flow's count by the share: twice the largest round-trip time.",
        "Le et al. 2004: round trips up to 400 ms",
    ),
    Param {
        name: "threshold",
        kind: Kind::Integer,
        default: "4",
        range: (1.0, 1e9),
        doc: "Packets on the scoreboard that make a flow a high-bandwidth one.",
        source: PAPER,
    },
    Param {
        name: "share",
        kind: Kind::Number,
        default: "",
        range: (0.0, 1e18),
        doc: "The share to begin with, in packets of a flow in tdec; computed: what the link sends in it.",
        source: "not published; so that nobody is signalled before the queue has been above qref",
    },
    time(
        "clear",
        "800ms",
        "Silence after which the scoreboard counts a flow anew.",
        "not published; as tdec, so that a packet in every round trip goes on counting",
    ),
    Param {
        name: "counts",
        kind: Kind::Word(&["forwarded", "arrived"]),
        default: "forwarded",
        range: Param::ANY,
        doc: "Which packets of a high-bandwidth flow its count counts.",
        source: "Le et al. 2004 say both",
    },
    Param {
        name: "sb",
        kind: Kind::Integer,
        default: "8192",
        range: (1.0, 1e6),
        doc: "Slots of the scoreboard; two flows in the same slot drive each other out.",
        source: "not published; some times the flows active at 100 Mb/s",
    },
    Param {
        name: "hb",
        kind: Kind::Integer,
        default: "4096",
        range: (1.0, 1e6),
        doc: "Most high-bandwidth flows; further ones stay on the scoreboard.",
        source: "Le et al. 2004: a few thousand, of which some 2000 were in use",
    },
    measure::MEAN_PACKET,
    registry::CAPACITY,
];

const fn time(name: &'static str, default: &'static str, doc: &'static str, source: &'static str) -> Param {
    Param { name, kind: Kind::Time, default, range: (1e-6, 1e3), doc, source }
}

/// Whether the share, or a length written as a time, is computed from the link's rate.
fn uses_rate(values: &Values) -> bool {
    !values.0.contains_key("share") || values.find_time("qref").is_some()
}

/// Checks that the gains bring the share down while the queue stands above its reference.
pub fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    let all = measure::capacity(values, rate) * values.time("tdec").secs_f64();
    values.fill("share", Value::Number(all));
    let b = values.number("b");
    if values.number("a") < b { Ok(()) } else { Err(Refusal::new("a", format!("less than b, {b}"))) }
}

/// A flow that sends much.
#[derive(Clone, Copy, Debug)]
struct Heavy {
    count: f64,
    /// When the count was last reduced, or the flow became known.
    reduced: Time,
}

impl Heavy {
    /// Does the reductions that are due at `now`. Returns whether the flow still sends much.
    #[inline]
    fn reduce(&mut self, share: f64, tdec: Span, now: Time) -> bool {
        let periods = now.since(self.reduced).ns() / tdec.ns();
        if periods > 0 {
            self.count -= periods as f64 * share;
            self.reduced += tdec * periods;
        }
        self.count >= 0.0
    }
}

/// A slot of the scoreboard.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    flow: FlowKey,
    count: u64,
    last: Time,
}

/// The law.
#[derive(Clone, Debug)]
pub struct Dcn {
    measure: Measure,
    qref: f64,
    /// Gains on the queue at this update and at the one before.
    gain_now: f64,
    gain_before: f64,
    updates: Clock,
    /// When flows that went silent are looked for.
    sweeps: Clock,
    tdec: Span,
    threshold: u64,
    clear: Span,
    counts_arrivals: bool,
    ecn_enabled: bool,
    seen: Vec<Seen>,
    heavy: FlowTable<Heavy>,
    heavy_max: usize,
    /// The largest count since the last sweep, and the largest between that sweep and the one before.
    largest: (f64, f64),
    share: f64,
    /// The share that was given to begin with.
    first_share: f64,
    queue_before: f64,
    stream: Stream,
}

impl Dcn {
    /// DCN from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let qref = values.length_at("qref", site.rate);
        let measure = Measure::of_queue(values, qref);
        let (a, b) = (values.number("a"), values.number("b"));
        let (gain_now, gain_before) = if values.word("dialect") == "printed" { (a, -b) } else { (-b, a) };
        let threshold = values.integer("threshold");
        let heavy_max = values.integer("hb") as usize;
        Self {
            measure,
            qref: measure.length(qref),
            gain_now,
            gain_before,
            updates: Clock::every(values.time("tupdate")),
            sweeps: Clock::every(values.time("tdec")),
            tdec: values.time("tdec"),
            threshold,
            clear: values.time("clear"),
            counts_arrivals: values.word("counts") == "arrived",
            ecn_enabled: values.flag("ecn"),
            seen: vec![Seen::default(); values.integer("sb") as usize],
            heavy: FlowTable::with_room_for(64),
            heavy_max,
            largest: (0.0, 0.0),
            share: values.number("share"),
            first_share: values.number("share"),
            queue_before: 0.0,
            stream: site.stream,
        }
    }

    /// Counts a packet of a flow that is not known to send much.
    fn score(&mut self, flow: FlowKey, now: Time) {
        let index = (u128::from(flow.hash(SALT)) * self.seen.len() as u128) >> 64;
        let slot = &mut self.seen[index as usize];
        let goes_on = slot.flow == flow && now.since(slot.last) < self.clear;
        let count = if goes_on { slot.count + 1 } else { 1 };
        *slot = Seen { flow, count, last: now };
        if count >= self.threshold && self.heavy.len() < self.heavy_max {
            self.heavy.get_or_insert(flow, Heavy { count: count as f64, reduced: now });
            self.largest.0 = self.largest.0.max(count as f64);
        }
    }

    fn update(&mut self, queue: f64) {
        let step = self.gain_now * (queue - self.qref) + self.gain_before * (self.queue_before - self.qref);
        let ceiling = self.largest.0.max(self.largest.1).max(self.threshold as f64);
        let from = if queue > self.qref { self.share.min(ceiling) } else { self.share };
        self.share = (from + step).clamp(0.0, ceiling.max(from));
        self.queue_before = queue;
    }

    fn sweep(&mut self, now: Time) {
        let (share, tdec, mut largest) = (self.share, self.tdec, 0.0_f64);
        self.heavy.retain(|_, heavy| {
            let stays = heavy.reduce(share, tdec, now);
            largest = largest.max(heavy.count);
            stays
        });
        self.largest = (largest, self.largest.0);
    }
}

impl Law for Dcn {
    #[inline]
    fn on_arrival(&mut self, arrival: &Arrival, now: Time) -> Verdict {
        let Some(heavy) = self.heavy.get_mut(arrival.flow) else {
            self.score(arrival.flow, now);
            return Verdict::Pass;
        };
        if !heavy.reduce(self.share, self.tdec, now) {
            self.heavy.remove(arrival.flow);
            self.score(arrival.flow, now);
            return Verdict::Pass;
        }
        // A count of 0 makes it minus infinity or no number: never drawn.
        let p = 1.0 - self.share / heavy.count;
        let verdict = if super::is_drawn(&mut self.stream, p) {
            Verdict::signal(self.ecn_enabled, arrival.ecn, Cause::EARLY)
        } else {
            Verdict::Pass
        };
        if self.counts_arrivals || !matches!(verdict, Verdict::Drop(_)) {
            heavy.count += 1.0;
            self.largest.0 = self.largest.0.max(heavy.count);
        }
        verdict
    }

    fn on_overflow(&mut self, arrival: &Arrival, now: Time) {
        if !self.counts_arrivals {
            return;
        }
        if let Some(heavy) = self.heavy.get_mut(arrival.flow) {
            if heavy.reduce(self.share, self.tdec, now) {
                heavy.count += 1.0;
                self.largest.0 = self.largest.0.max(heavy.count);
                return;
            }
            self.heavy.remove(arrival.flow);
        }
        self.score(arrival.flow, now);
    }

    fn next_tick(&self) -> Time {
        self.updates.next().min(self.sweeps.next())
    }

    fn tick(&mut self, backlog: Backlog, now: Time) {
        if self.updates.take(now) {
            self.update(self.measure.queue(backlog));
        }
        if self.sweeps.take(now) {
            self.sweep(now);
        }
    }

    fn gauges(&self) -> Gauges {
        Gauges { probability: None, control: Some(self.share), tracked_flows: Some(self.heavy.len() as u32) }
    }

    fn retune(&mut self, values: &Values, rate: Rate, now: Time) {
        let mut fresh = Self::new(values, Site { rate, stream: self.stream.clone() });
        std::mem::swap(&mut fresh.seen, &mut self.seen);
        std::mem::swap(&mut fresh.heavy, &mut self.heavy);
        let Self { largest, queue_before, .. } = *self;
        let updates = fresh.updates.instead_of(self.updates, now);
        let sweeps = fresh.sweeps.instead_of(self.sweeps, now);
        let share = if fresh.first_share == self.first_share { self.share } else { fresh.share };
        *self = Self { largest, queue_before, updates, sweeps, share, ..fresh };
    }
}

impl LawRow for Dcn {
    const ROW: Row = Row {
        name: "dcn",
        aliases: &[],
        doc: "Signals only flows that send much, each down to a common share that keeps the queue at its reference.",
        source: PAPER,
        year: 2004,
        marks: true,
        params: PARAMS,
        fixed: &["dialect", "mean_packet", "sb"],
        gauges: &[
            Gauge::control("share", "packets", "Share of a flow in tdec."),
            Gauge::flows("High-bandwidth flows."),
        ],
        causes: &[],
        uses_rate,
        resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }

    fn own_bytes(values: &Values) -> usize {
        values.integer("sb") as usize * size_of::<Seen>() + FlowTable::<Heavy>::bytes_for(64)
    }
}
