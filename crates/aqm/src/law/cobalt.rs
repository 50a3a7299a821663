//! COBALT is "CoDel and BLUE, alternate". For flows that answer to signals it has a simpler CoDel, whose count decays
//! while the queue is short instead of being forgotten. For flows that do not answer it has BLUE: a probability of loss
//! that grows whenever the queue overflows, and shrinks when it runs empty.
//!
//! Source: Hoeiland-Joergensen, Taht and Morton, "Piece of CAKE: A Comprehensive Queue Management Solution for Home
//! Gateways", IEEE LANMAN 2018 ("the paper"), §III; Linux sch_cake.c, of which it is a part, for all details.
//!
//! | Linux sch_cake.c | here |
//! |---|---|
//! | `target`, `interval`, `mtu_time`, `p_inc`, `p_dec` | [`Setting`] |
//! | `count`, `drop_next`, `dropping`, `p_drop`, `blue_timer` | [`Cobalt`] |
//! | `cobalt_should_drop` | [`Cobalt::decide`] |
//! | `cobalt_queue_full`, `cobalt_queue_empty` | [`Cobalt::full`], [`Cobalt::empty`] |
//!
//! BLUE drops packets whatever their ECN field. That is on purpose: a flow that answers to marks gives it no reason to.
//! The last packet of a queue may be marked, but is never dropped.
//!
//! The forms in use are one algorithm, and differ in this:
//!
//! | what | `paper` | `linux` |
//! |---|---|---|
//! | 1/sqrt(count) | exact | 32 bits, from a table below 16 and by a Newton step a change above |
//! | the first interval of a queue that was never signalled | a whole one where it was in use before | none |
//! | an interval | as it is | modulo 2^32 ns, 4.29 s |
//!
//! The comments in sch_cake.c mean the first interval to be a whole one. But 1/sqrt(count) is 0 there until the count
//! first changes, so that in such a queue the second packet that waited too long is signalled at once. In both forms
//! that is so where a queue was not in use for an interval and its first packet waits too long: the schedule, which
//! tells when the queue was last in use, then lies behind and is set to the present.
//!
//! Deviations. ns-3's form knows no test against the time of packets, and raises BLUE's probability at 400 ms besides;
//! it is not offered. BLUE's probability is a float, Linux's has 32 bits.

use super::codel;
use super::{Arrival, Departure, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::param::{Kind, Param, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Span, Stream, Time};

const CAKE: &str = "Linux sch_cake.c";

/// By how much BLUE's probability grows when the queue overflows.
const P_INC: f64 = 1.0 / 256.0;
/// By how much it shrinks when the queue runs empty.
const P_DEC: f64 = 1.0 / 4096.0;

/// COBALT's `dialect`, and CAKE's.
pub const DIALECT: Param = Param {
    name: "dialect",
    kind: Kind::Word(&["paper", "linux"]),
    default: "paper",
    range: Param::ANY,
    doc: "linux: 1/sqrt(count) in 32 bits, and 0 in a queue that was never signalled, whose first signal so comes at \
          once. paper: exact, and after an interval where the queue was in use.",
    source: "Hoeiland-Joergensen, Taht and Morton 2018",
};

/// [`Precision::Integer`]: 1/sqrt(count) for counts below 16, in units of 2^-32.
const ROOTS: [u32; 16] = [
    4_294_967_295,
    4_294_967_295,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];

/// What differs between the forms in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dialect {
    /// How fractions are kept: 1/sqrt(count), in CAKE also the time of a byte.
    pub precision: Precision,
    /// The bits of an interval that count.
    interval_mask: u64,
}

/// How fractions are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precision {
    /// To the nanosecond.
    Exact,
    /// In integers of some 32 bits; 1/sqrt(count) as far as Newton's steps have come, and 0 before the first.
    Integer,
}

/// The paper, and the comments in sch_cake.c.
pub const PAPER: Dialect = Dialect { precision: Precision::Exact, interval_mask: u64::MAX };

/// Linux sch_cake.c: `cobalt_control`, `cobalt_newton_step`. `reciprocal_scale` takes 32 bits.
pub const LINUX: Dialect = Dialect { precision: Precision::Integer, interval_mask: 0xFFFF_FFFF };

impl Dialect {
    /// The dialect that the parameter names.
    pub fn of(values: &Values) -> Self {
        match values.word("dialect") {
            "linux" => LINUX,
            _ => PAPER,
        }
    }
}

/// What a COBALT is set to.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Waiting time that may stand, and the pace of BLUE.
    pub target: Span,
    /// How long the waiting time may exceed it before the first signal.
    pub interval: Span,
    /// The time that a packet of full size takes on the link: four of them may always stand.
    pub mtu_time: Span,
    /// Whether ECN-capable packets are marked.
    pub ecn_enabled: bool,
    /// Whose form it is.
    pub dialect: Dialect,
}

/// The state of one queue.
#[derive(Clone, Debug, Default)]
pub struct Cobalt {
    count: u32,
    /// [`Precision::Integer`]: 1/sqrt(count) in units of 2^-32.
    inverse_root: u32,
    drop_next: Time,
    is_dropping: bool,
    p_drop: f64,
    blue_at: Time,
}

impl Cobalt {
    /// When the signal after one at `time` is due: interval / sqrt(count) later, where a count of 0 is as 1.
    fn after(&self, setting: &Setting, time: Time) -> Time {
        let interval = setting.interval.ns() & setting.dialect.interval_mask;
        let share = match setting.dialect.precision {
            Precision::Exact => (interval as f64 / f64::from(self.count.max(1)).sqrt() + 0.5) as u64,
            Precision::Integer => (interval * u64::from(self.inverse_root)) >> 32,
        };
        time + Span::from_ns(share)
    }

    /// Changes the count to `count`; the schedule moves on from where it was.
    fn reschedule(&mut self, setting: &Setting, count: u32) {
        self.count = count;
        if setting.dialect.precision == Precision::Integer {
            self.inverse_root = match ROOTS.get(count as usize) {
                Some(root) => *root,
                // Newton's step for x = 1/sqrt(count): x (3 - count x^2) / 2, in 32 bits that wrap.
                None => {
                    let root = u64::from(self.inverse_root);
                    let rest = (3_u64 << 32).wrapping_sub(u64::from(count) * ((root * root) >> 32));
                    ((rest >> 2).wrapping_mul(root) >> 31) as u32
                }
            };
        }
        self.drop_next = self.after(setting, self.drop_next);
    }

    /// Decides what becomes of the packet at the head of the queue. An ingress shaper lets two packets of each of its
    /// `bulk_flows` stand besides; all others say 0.
    pub fn decide(
        &mut self,
        setting: &Setting,
        departure: &Departure,
        bulk_flows: u32,
        stream: &mut Stream,
        now: Time,
    ) -> Verdict {
        let waited = now.since(departure.enqueued);
        let is_over = waited > setting.target
            && waited > setting.mtu_time * (2 * u64::from(bulk_flows))
            && waited > setting.mtu_time * 4;
        let is_due = self.count > 0 && now >= self.drop_next;
        // Whether the schedule lies behind, before this packet moves it.
        let mut is_late = now > self.drop_next;
        if is_over {
            if !self.is_dropping {
                self.is_dropping = true;
                self.drop_next = self.after(setting, now);
            }
            self.count = self.count.max(1);
        } else {
            self.is_dropping = false;
        }
        let mut is_signalled = false;
        if is_due && self.is_dropping {
            is_signalled = true;
            self.reschedule(setting, self.count.saturating_add(1));
            is_late = now > self.drop_next;
        } else if is_due {
            // The count decays at the pace at which it grew.
            while self.count > 0 && now >= self.drop_next {
                self.reschedule(setting, self.count - 1);
                is_late = now > self.drop_next;
            }
        }
        let is_capable = setting.ecn_enabled && departure.ecn.is_ect();
        let is_marked = is_signalled && is_capable;
        let is_blue = super::is_drawn(stream, self.p_drop);
        let is_dropped = is_signalled && !is_capable || is_blue;
        if self.count == 0 {
            // While nothing is to be signalled the schedule tells when the queue was last in use.
            self.drop_next = now + setting.interval;
        } else if is_late && !is_dropped {
            self.drop_next = now;
        }
        match (is_dropped && departure.backlog.packets > 0, is_marked) {
            (true, _) if is_blue && is_capable => Verdict::Drop(Cause::OVERLOAD),
            (true, _) => Verdict::Drop(Cause::EARLY),
            (false, true) => Verdict::Mark(Cause::EARLY),
            (false, false) => Verdict::Pass,
        }
    }

    /// Hears that the queue overflowed.
    pub fn full(&mut self, setting: &Setting, now: Time) {
        if now.since(self.blue_at) > setting.target {
            self.p_drop = (self.p_drop + P_INC).min(1.0);
            self.blue_at = now;
        }
        self.is_dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// Hears that the queue was asked for a packet and had none.
    pub fn empty(&mut self, setting: &Setting, now: Time) {
        if self.p_drop > 0.0 && now.since(self.blue_at) > setting.target {
            self.p_drop = (self.p_drop - P_DEC).max(0.0);
            self.blue_at = now;
        }
        self.is_dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.reschedule(setting, self.count - 1);
        }
    }

    /// Whether there is nothing left to remember at `now`.
    pub fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0.0 && self.count == 0 && now >= self.drop_next
    }
}

/// The law: COBALT before a link of known rate.
#[derive(Clone, Debug)]
pub struct CobaltLaw {
    setting: Setting,
    state: Cobalt,
    stream: Stream,
}

impl CobaltLaw {
    /// COBALT from resolved values.
    pub fn new(values: &Values, site: Site) -> Self {
        let setting = Setting {
            target: values.time("target"),
            interval: values.time("interval"),
            mtu_time: site.rate.time_for(u64::from(values.size("mtu"))),
            ecn_enabled: values.flag("ecn"),
            dialect: Dialect::of(values),
        };
        Self { setting, state: Cobalt::default(), stream: site.stream }
    }
}

impl Law for CobaltLaw {
    fn on_overflow(&mut self, _arrival: &Arrival, now: Time) {
        self.state.full(&self.setting, now);
    }

    fn on_eviction(&mut self, _packets: u32, now: Time) {
        self.state.full(&self.setting, now);
    }

    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        self.state.decide(&self.setting, departure, 0, &mut self.stream, now)
    }

    fn on_idle(&mut self, now: Time) {
        self.state.empty(&self.setting, now);
    }

    fn gauges(&self) -> Gauges {
        Gauges { probability: Some(self.state.p_drop), control: Some(f64::from(self.state.count)), tracked_flows: None }
    }

    fn retune(&mut self, values: &Values, rate: Rate, _now: Time) {
        self.setting = Self::new(values, Site { rate, stream: self.stream.clone() }).setting;
    }
}

impl LawRow for CobaltLaw {
    const ROW: Row = Row {
        name: "cobalt",
        aliases: &[],
        doc: "A simpler CoDel, with BLUE beside it for flows that do not answer: the law inside CAKE.",
        source: "Hoeiland-Joergensen, Taht and Morton 2018; Linux sch_cake.c",
        year: 2018,
        marks: true,
        params: &[
            registry::limit("1000p", "tc-codel(8); CAKE's is of all queues together"),
            Param { default: "true", source: CAKE, ..registry::ECN },
            Param { source: CAKE, ..codel::TARGET },
            Param { source: CAKE, ..codel::INTERVAL },
            Param {
                name: "mtu",
                kind: Kind::Size,
                default: "1500b",
                range: (1.0, 65_535.0),
                doc: "Largest packet: as long as four of them take on the link may always be waited.",
                source: CAKE,
            },
            DIALECT,
            registry::CAPACITY,
        ],
        fixed: &["dialect"],
        gauges: &[
            Gauge::probability("BLUE's probability of a loss."),
            Gauge::control("count", "signals", "CoDel's count."),
        ],
        causes: &[],
        uses_rate: registry::always,
        resolve: codel::resolve,
    };

    fn made(values: &Values, site: Site) -> Self {
        Self::new(values, site)
    }
}
