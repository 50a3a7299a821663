//! CoDel is controlled delay. A queue whose waiting time stays above a target for a whole interval is a standing queue,
//! which does nobody good. CoDel then signals one packet at its head, and one more after ever shorter times,
//! interval / sqrt(count), until the waiting time falls below the target.
//!
//! Source: Nichols, Jacobson, McGregor and Iyengar, "Controlled Delay Active Queue Management", RFC 8289, 2018.
//!
//! | RFC 8289 §5 | here |
//! |---|---|
//! | `TARGET`, `INTERVAL`, `maxpacket_` | `target`, `interval`, `mtu` |
//! | `first_above_time_`, 0 for none | `first_above` |
//! | `dropping_`, `drop_next_`, `count_`, `lastcount_` | the same |
//! | `ok_to_drop` | `is_standing` |
//! | the loop that pulls packets | one verdict a packet, and `lost` for what the packet before it was |
//!
//! The RFC pulls packets until it finds one to send. A law is asked about one packet at a time, at the same instant
//! after a drop; it gives the same answers because a drop in the dropping state moves `drop_next` only when the next
//! packet is still above the target, and the packet behind the first drop passes whatever it is.
//!
//! ECN is as in Linux, the RFC leaving it open: a mark stands for a drop and for the end of the pull.
//!
//! The forms in use are one algorithm, and differ in this:
//!
//! | what | `rfc` | `linux` | `ns3` |
//! |---|---|---|---|
//! | a step of the clock; times are whole steps, rounded down | 1 ns | 1024 ns | 1024 ns |
//! | what is rounded of a waiting time | nothing | both its ends | the time |
//! | an interval has passed when it is | complete | over | over |
//! | the longest queue that is never signalled | an MTU | an MTU | a byte less |
//! | 1/sqrt(count) | exact | 16 bits, a Newton step a signal | 16 bits, a Newton step a signal |
//! | evictions from a shared queue are signals | no | yes | no |
//! | the signal after a mark is timed from when that was | due | due | made |
//! | `ce_threshold` wants `ecn` set | no | no | yes |
//!
//! Under fair queueing `linux` compares the MTU with the bytes of all queues ([`crate::qdisc::fq_codel`]). A Newton
//! step gives 0.5 for count 2, not 0.71. Evictions may raise the count beyond what one step can follow (count x^2 near
//! 3 or over): it then comes out negative and wraps around, or close to 0, where rounding may keep it, and every packet
//! is lost until one waited less than the target.
//!
//! Deviations. None known from the RFC; `mtu` is its `maxpacket_`, for which it says to use the interface's. None known
//! from what Linux 6.12.117 decides (times do not wrap around after 36 minutes; a machine just started was idle for
//! ever before). Earlier kernels keep `first_above` where a queue has no packet to give; that shows where bytes of a
//! queue are counted with those of others.

use super::{Departure, Gauges, Law, Verdict};
use crate::cause::Cause;
use crate::gauge::Gauge;
use crate::param::{Kind, Param, Refusal, Selector, Values};
use crate::registry::{self, LawRow, Row, Site};
use base::{Rate, Span, Time};

const RFC: &str = "RFC 8289 §4.2, §4.3";

/// CoDel's `target`.
pub const TARGET: Param = Param {
    name: "target",
    kind: Kind::Time,
    default: "5ms",
    range: (1e-6, 10.0),
    doc: "Waiting time that may stand: signals come when it was exceeded for a whole interval.",
    source: RFC,
};

/// CoDel's `interval`.
pub const INTERVAL: Param = Param {
    name: "interval",
    kind: Kind::Time,
    default: "100ms",
    range: (1e-6, 100.0),
    doc: "How long the target must be exceeded before the first signal; the longest usual round-trip time.",
    source: RFC,
};

/// Refuses a target that is longer than the interval in which it is to be exceeded, and a selector of nothing.
pub fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    if values.find_selector("ce_threshold_selector").is_some() && values.find_time("ce_threshold").is_none() {
        return Err(Refusal::new("ce_threshold_selector", "ce_threshold beside it, to which it belongs"));
    }
    // RFC 8289 §4.3: the target is 5 to 10 % of the interval.
    values.ordered("target", "interval")
}

/// CoDel's `mtu`.
pub const MTU: Param = Param {
    name: "mtu",
    kind: Kind::Size,
    default: "1500b",
    range: (1.0, 65_535.0),
    doc: "A queue of at most so many bytes is never signalled.",
    source: "RFC 8289 §5.2: the interface's MTU",
};

/// CoDel's `ce_threshold`.
pub const CE_THRESHOLD: Param = Param {
    name: "ce_threshold",
    kind: Kind::Time,
    default: "",
    range: (0.0, 10.0),
    doc: "Waiting time above which every ECN-capable packet is marked besides, whatever `ecn` says (ns3: only with \
          it); absent by default.",
    source: "tc-codel(8): off",
};

/// CoDel's `ce_threshold_selector`.
pub const CE_THRESHOLD_SELECTOR: Param = Param {
    name: "ce_threshold_selector",
    kind: Kind::Selector,
    default: "",
    range: Param::ANY,
    doc: "To which packets `ce_threshold` applies: those whose DS field, the codepoint's six bits and the ECN field's \
          two, is VALUE under MASK. `0x01/0x03` has it mark ECT(1) alone, the packets of L4S; absent by default, which \
          is all.",
    source: "tc-fq_codel(8): off",
};

/// CoDel's `dialect`.
pub const DIALECT: Param = Param {
    name: "dialect",
    kind: Kind::Word(&["rfc", "linux", "ns3"]),
    default: "rfc",
    range: Param::ANY,
    doc: "Where forms in use differ: when an interval has passed, which queue is too short to signal, how \
          1/sqrt(count) is computed, the clock's steps, and from when the signal after a mark is timed.",
    source: "RFC 8289 §5",
};

/// What the packet before this one was, if it was lost at this same instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lost {
    /// It was not lost: this packet is the first that the link gets to see.
    Nothing,
    /// It was the first drop, which began the dropping state.
    First,
    /// It was a further drop in the dropping state.
    Further,
}

/// What differs between the forms in use.
#[derive(Clone, Copy, Debug)]
struct Dialect {
    /// A step of the clock is 2^`shift` ns.
    shift: u32,
    /// 1/sqrt(count) has 16 bits and comes one Newton step nearer with each signal.
    steps_root: bool,
    /// The interval must be over, not just complete.
    waits_longer: bool,
    /// A queue of exactly one MTU may be signalled.
    signals_one_mtu: bool,
    /// Waiting times are rounded to the clock's steps, not the instants between which they are.
    rounds_wait: bool,
    /// Evictions count as signals.
    counts_evictions: bool,
    /// After a mark in the dropping state the next signal is timed from now, not from when this one was due.
    marks_from_now: bool,
    /// `ce_threshold` marks only where `ecn` is set.
    wants_ecn: bool,
}

/// RFC 8289 §5.
const RFC_8289: Dialect = Dialect {
    shift: 0,
    steps_root: false,
    waits_longer: false,
    signals_one_mtu: false,
    rounds_wait: false,
    counts_evictions: false,
    marks_from_now: false,
    wants_ecn: false,
};

/// Linux codel.h, codel_impl.h (`CODEL_SHIFT`).
const LINUX: Dialect = Dialect { shift: 10, steps_root: true, waits_longer: true, counts_evictions: true, ..RFC_8289 };

/// ns-3 codel-queue-disc.cc, which follows Linux but for this.
const NS3: Dialect = Dialect {
    signals_one_mtu: true,
    rounds_wait: true,
    counts_evictions: false,
    marks_from_now: true,
    wants_ecn: true,
    ..LINUX
};

impl Dialect {
    fn of(values: &Values) -> Self {
        match values.word("dialect") {
            "linux" => LINUX,
            "ns3" => NS3,
            _ => RFC_8289,
        }
    }
}

/// 1/sqrt(count).
#[derive(Clone, Copy, Debug)]
enum Root {
    Exact(f64),
    /// In units of 2^-16, 65535 for 1, as far as Newton's steps have come.
    Stepped(u16),
}

impl Root {
    fn of_one(self) -> Self {
        match self {
            Self::Exact(_) => Self::Exact(1.0),
            Self::Stepped(_) => Self::Stepped(u16::MAX),
        }
    }

    /// The value for the new `count`.
    fn step(self, count: u32) -> Self {
        match self {
            Self::Exact(_) => Self::Exact(1.0 / f64::from(count).sqrt()),
            // Linux codel_impl.h, codel_Newton_step: x (3 - count x^2) / 2, in integers with 32 bits of fraction, which
            // wrap around; two bits are given up in between to make room for the product.
            Self::Stepped(x) => {
                let x = u64::from(x) << 16;
                let squared = (x * x) >> 32;
                let rest = (3_u64 << 32).wrapping_sub(u64::from(count) * squared) >> 2;
                Self::Stepped((rest.wrapping_mul(x) >> (32 - 2 + 1) >> 16) as u16)
            }
        }
    }

    /// The control law (RFC 8289 §5.4): interval / sqrt(count), in whole steps of the clock.
    fn share(self, interval: u64) -> u64 {
        match self {
            Self::Exact(x) => (interval as f64 * x + 0.5) as u64,
            Self::Stepped(x) => (interval * u64::from(x)) >> 16,
        }
    }
}

/// The law. Times are in steps of its clock.
#[derive(Clone, Debug)]
pub struct Codel {
    dialect: Dialect,
    target: u64,
    interval: u64,
    /// The longest queue, in bytes, that is never signalled.
    spared: u64,
    ce_threshold: Option<u64>,
    /// The DS fields that `ce_threshold` is for.
    selector: Selector,
    ecn_enabled: bool,
    /// When the waiting time will have been above the target for an interval, if it is above it.
    first_above: Option<u64>,
    is_dropping: bool,
    /// When the next signal is due, or would have been; none before the first.
    drop_next: Option<u64>,
    /// Signals in this dropping state, plus what the last one left.
    count: u32,
    /// `count` when this dropping state began.
    last_count: u32,
    inverse_root: Root,
    lost: Lost,
}

impl Codel {
    /// CoDel from resolved values.
    pub fn new(values: &Values) -> Self {
        let dialect = Dialect::of(values);
        let steps = |time: Span| time.ns() >> dialect.shift;
        Self {
            dialect,
            target: steps(values.time("target")),
            interval: steps(values.time("interval")),
            spared: u64::from(values.size("mtu")) - u64::from(dialect.signals_one_mtu),
            ce_threshold: values.find_time("ce_threshold").map(steps),
            selector: values.find_selector("ce_threshold_selector").unwrap_or(Selector { value: 0, mask: 0 }),
            ecn_enabled: values.flag("ecn"),
            first_above: None,
            is_dropping: false,
            drop_next: None,
            count: 0,
            last_count: 0,
            inverse_root: if dialect.steps_root { Root::Stepped(u16::MAX) } else { Root::Exact(1.0) },
            lost: Lost::Nothing,
        }
    }

    /// How long the packet in hand waited.
    fn waited(&self, departure: &Departure, now: Time) -> u64 {
        if self.dialect.rounds_wait {
            now.since(departure.enqueued).ns() >> self.dialect.shift
        } else {
            (now.ns() >> self.dialect.shift) - (departure.enqueued.ns() >> self.dialect.shift)
        }
    }

    /// Whether this packet shows a queue that stands: above the target for an interval (RFC 8289 §5.6, `dodequeue`).
    fn is_standing(&mut self, departure: &Departure, waited: u64, now: u64) -> bool {
        if waited < self.target || departure.backlog.bytes <= self.spared {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            Some(due) if self.dialect.waits_longer => now > due,
            Some(due) => now >= due,
            None => {
                self.first_above = Some(now + self.interval);
                false
            }
        }
    }

    /// Decides what to do with this packet: signal it if a signal is due.
    fn decide(&mut self, departure: &Departure, waited: u64, now: u64) -> Verdict {
        let is_standing = self.is_standing(departure, waited, now);
        let mut due = self.drop_next.unwrap_or(0);
        match std::mem::replace(&mut self.lost, Lost::Nothing) {
            Lost::First => return Verdict::Pass,
            Lost::Further if is_standing => {
                due = self.after(due);
                self.drop_next = Some(due);
            }
            _ => {}
        }
        if !is_standing {
            self.is_dropping = false;
            return Verdict::Pass;
        }
        if self.is_dropping && now < due {
            return Verdict::Pass;
        }
        let signal = Verdict::signal(self.ecn_enabled, departure.ecn, Cause::EARLY);
        let is_drop = matches!(signal, Verdict::Drop(_));
        if self.is_dropping {
            self.set_count(self.count.wrapping_add(1));
            if is_drop {
                self.lost = Lost::Further;
            } else {
                self.drop_next = Some(self.after(if self.dialect.marks_from_now { now } else { due }));
            }
        } else {
            self.begin(now);
            if is_drop {
                self.lost = Lost::First;
            }
        }
        signal
    }

    /// Begins the dropping state at `now`. If the last one was a short while ago, it goes on at the rate of that one.
    fn begin(&mut self, now: u64) {
        self.is_dropping = true;
        let delta = self.count.wrapping_sub(self.last_count);
        let was_recent = self.drop_next.is_some_and(|due| now.saturating_sub(due) < 16 * self.interval);
        if delta > 1 && was_recent {
            self.set_count(delta);
        } else {
            self.count = 1;
            self.inverse_root = self.inverse_root.of_one();
        }
        self.last_count = self.count;
        self.drop_next = Some(self.after(now));
    }

    fn set_count(&mut self, count: u32) {
        self.count = count;
        self.inverse_root = self.inverse_root.step(count);
    }

    /// When the signal is due that follows one at `time`.
    fn after(&self, time: u64) -> u64 {
        time + self.inverse_root.share(self.interval)
    }
}

impl Law for Codel {
    #[inline]
    fn on_departure(&mut self, departure: &Departure, now: Time) -> Verdict {
        let waited = self.waited(departure, now);
        let verdict = self.decide(departure, waited, now.ns() >> self.dialect.shift);
        let is_late = self.ce_threshold.is_some_and(|threshold| waited > threshold);
        let may_mark = departure.ecn.is_ect()
            && self.selector.takes(departure.ds_field())
            && (self.ecn_enabled || !self.dialect.wants_ecn);
        if verdict == Verdict::Pass && is_late && may_mark {
            return Verdict::Mark(Cause::FORCED);
        }
        verdict
    }

    fn on_eviction(&mut self, packets: u32, _now: Time) {
        if self.dialect.counts_evictions {
            self.count = self.count.wrapping_add(packets);
        }
    }

    fn on_idle(&mut self, _now: Time) {
        // RFC 8289 §5.6: an empty queue is not above the target. The packet behind a first drop may be missing only
        // where the queue's bytes are counted with others'; the RFC stays in the dropping state then.
        if self.lost != Lost::First {
            self.is_dropping = false;
        }
        self.lost = Lost::Nothing;
        self.first_above = None;
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            probability: None,
            control: Some(if self.is_dropping { f64::from(self.count) } else { 0.0 }),
            tracked_flows: None,
        }
    }

    fn retune(&mut self, values: &Values, _rate: Rate, _now: Time) {
        let fresh = Self::new(values);
        let Self { first_above, is_dropping, drop_next, count, last_count, inverse_root, lost, .. } = *self;
        *self = Self { first_above, is_dropping, drop_next, count, last_count, inverse_root, lost, ..fresh };
    }
}

impl LawRow for Codel {
    const ROW: Row = Row {
        name: "codel",
        aliases: &[],
        doc: "Signals packets at the head of a queue whose waiting time stays above a target, at a rising rate.",
        source: "Nichols and Jacobson 2012; RFC 8289",
        year: 2012,
        marks: true,
        params: &[
            registry::limit("1000p", "tc-codel(8): 1000 packets"),
            registry::ECN,
            DIALECT,
            TARGET,
            INTERVAL,
            MTU,
            CE_THRESHOLD,
            CE_THRESHOLD_SELECTOR,
        ],
        fixed: &["dialect"],
        gauges: &[Gauge::control(
            "count",
            "signals",
            "Signals in this dropping state and what the last one left; 0 outside of one.",
        )],
        causes: &[],
        uses_rate: registry::never,
        resolve,
    };

    fn made(values: &Values, _site: Site) -> Self {
        Self::new(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Backlog;
    use base::{Ecn, FlowKey, Stream};
    use std::collections::VecDeque;

    /// CoDel as a loop that pulls packets, after RFC 8289 §5.5: `(enqueued, size)` go in, the one to send comes out.
    #[derive(Default)]
    struct Puller {
        queue: VecDeque<(Time, u32)>,
        first_above: Option<Time>,
        dropping: bool,
        drop_next: Time,
        count: u32,
        last_count: u32,
        drops: u32,
    }

    impl Puller {
        fn pull(&mut self, now: Time) -> (Option<(Time, u32)>, bool) {
            let packet = self.queue.pop_front();
            let left: u64 = self.queue.iter().map(|packet| u64::from(packet.1)).sum();
            match packet {
                Some((enqueued, _)) if now.since(enqueued) >= Span::from_ms(5) && left > 1500 => {
                    let due = *self.first_above.get_or_insert(now + Span::from_ms(100));
                    (packet, now >= due)
                }
                _ => {
                    self.first_above = None;
                    (packet, false)
                }
            }
        }

        fn later(&self, time: Time) -> Time {
            time + Span::from_ns((1e8 / f64::from(self.count).sqrt() + 0.5) as u64)
        }

        fn take(&mut self, now: Time) -> Option<(Time, u32)> {
            let (mut packet, mut ok) = self.pull(now);
            if self.dropping {
                self.dropping = ok;
                while self.dropping && now >= self.drop_next {
                    self.drops += 1;
                    self.count += 1;
                    (packet, ok) = self.pull(now);
                    self.dropping = ok;
                    if ok {
                        self.drop_next = self.later(self.drop_next);
                    }
                }
            } else if ok {
                self.drops += 1;
                packet = self.pull(now).0;
                self.dropping = true;
                let delta = self.count - self.last_count;
                let is_soon = now.since(self.drop_next) < Span::from_ms(1600);
                self.count = if delta > 1 && is_soon { delta } else { 1 };
                self.drop_next = self.later(now);
                self.last_count = self.count;
            }
            packet
        }
    }

    #[test]
    fn a_verdict_a_packet_is_the_loop_that_pulls() {
        let mut values = Values::default();
        for param in Codel::ROW.params {
            match param.name {
                "target" => values.fill(param.name, crate::param::Value::Time(Span::from_ms(5))),
                "interval" => values.fill(param.name, crate::param::Value::Time(Span::from_ms(100))),
                "mtu" => values.fill(param.name, crate::param::Value::Size(1500)),
                "ecn" => values.fill(param.name, crate::param::Value::Flag(false)),
                "dialect" => values.fill(param.name, crate::param::Value::Word("rfc")),
                _ => {}
            }
        }
        let mut stream = Stream::named(1, "codel");
        let (mut drops, mut deep, mut again) = (0, 0, 0);
        for _ in 0..200 {
            let mut puller = Puller::default();
            let mut law = Codel::new(&values);
            let mut queue: VecDeque<(Time, u32)> = VecDeque::new();
            let mut now = Time::ZERO;
            // Phases of different load, some of them silent for seconds.
            for _ in 0..40 {
                let (offers, gap_ms) = (stream.below(5), [1, 5, 20, 100, 700][stream.below(5) as usize]);
                for _ in 0..stream.below(200) {
                    now += Span::from_ns(stream.below(gap_ms * 2_000_000));
                    for _ in 0..offers {
                        let size = [40, 576, 1500][stream.below(3) as usize];
                        puller.queue.push_back((now, size));
                        queue.push_back((now, size));
                    }
                    now += Span::from_ns(stream.below(5_000_000));
                    let before = puller.drops;
                    let (was_dropping, last) = (puller.dropping, puller.count);
                    let expected = puller.take(now);
                    deep = deep.max(puller.drops - before);
                    again += u32::from(!was_dropping && puller.dropping && puller.count > 1 && last > 1);
                    let sent = loop {
                        let Some((enqueued, size)) = queue.pop_front() else {
                            law.on_idle(now);
                            break None;
                        };
                        let bytes = queue.iter().map(|packet| u64::from(packet.1)).sum();
                        let backlog = Backlog { packets: queue.len() as u32, bytes };
                        let flow = FlowKey(0);
                        let departure = Departure { size, ecn: Ecn::NotEct, dscp: 0, flow, enqueued, backlog };
                        match law.on_departure(&departure, now) {
                            Verdict::Pass => break Some((enqueued, size)),
                            verdict => assert_eq!(verdict, Verdict::Drop(Cause::EARLY)),
                        }
                    };
                    assert_eq!((sent, queue.len()), (expected, puller.queue.len()), "at {now:?}");
                }
            }
            drops += puller.drops;
        }
        // The walk has been everywhere: many drops, several in one pull, and dropping begun again where it was.
        assert!(drops > 1000 && deep > 3 && again > 10, "{drops} drops, {deep} in one pull, {again} resumed");
    }
}
