//! The parameters of DualPI2, what its dialects have for them, and what is computed from the link's rate.

use super::super::native::{self, Native};
use super::super::protection;
use crate::law::{coupling, pie};
use crate::param::{Kind, Length, Param, Refusal, Value, Values};
use crate::registry;
use base::{Rate, Span};

const RFC: &str = "RFC 9332 A.1; tc-dualpi2(8)";

/// Which packets are Scalable.
const ANY_ECT: Param = Param {
    name: "any_ect",
    kind: Kind::Flag,
    default: "false",
    range: Param::ANY,
    doc: "ECT(0) goes to the L-queue too, not only ECT(1) and CE; in the linux dialect.",
    source: "tc-dualpi2(8): l4s_ect",
};

pub(super) const PARAMS: &[Param] = &[
    Param {
        doc: "How much may wait in both queues, in packets or bytes; what arrives beyond is lost. Computed: what the \
              link sends in 250 ms, or 10000p for linux.",
        ..registry::limit("", RFC)
    },
    Param { default: "true", source: "RFC 9332: it is made for ECN", ..registry::ECN },
    Param {
        name: "dialect",
        kind: Kind::Word(&["rfc", "linux", "docsis"]),
        doc: "Where RFC 9332 and Linux differ: how signals are drawn, and the L-queue's own marks; with docsis the \
              RFC's with the L-queue of cable modems.",
        source: "RFC 9332",
        ..pie::DIALECT
    },
    Param { source: RFC, doc: "The waiting time at which the Classic queue settles.", ..pie::TARGET },
    Param {
        default: "",
        source: RFC,
        doc: "How often p' is computed. Computed: the smaller of target and max_rtt / 3, or 16ms for linux.",
        ..pie::TUPDATE
    },
    Param {
        default: "",
        source: RFC,
        doc: "Gain on the distance of the waiting time from its target, in Hz. Computed: 0.1 tupdate / max_rtt^2, \
              or 0.16 for linux.",
        ..pie::ALPHA
    },
    Param {
        default: "",
        source: RFC,
        doc: "Gain on the change of the waiting time since the last step, in Hz. Computed: 0.3 / max_rtt, or 3.2 for \
              linux.",
        ..pie::BETA
    },
    Param {
        name: "max_rtt",
        kind: Kind::Time,
        default: "",
        range: (1e-6, 10.0),
        doc: "The longest usual round-trip time, to compute the gains with; absent, 100ms.",
        source: RFC,
    },
    coupling::FACTOR,
    coupling::DROP_ON_OVERLOAD,
    Param {
        name: "classic_protection",
        kind: Kind::Number,
        default: "0.1",
        range: (0.0, 1.0),
        doc: "The share of the link that the Classic queue has for certain while packets wait in both, in whole percent.",
        source: "tc-dualpi2(8): 10 %; RFC 9332 leaves the scheduler open",
    },
    native::NATIVE,
    native::MIN_TH,
    native::RANGE,
    native::TH_LEN,
    native::STEP_THRESH,
    native::MIN_QLEN_STEP,
    protection::QUEUE_PROTECTION,
    protection::CRITICAL_DELAY,
    protection::CRITICAL_SCORE,
    protection::AGING,
    ANY_ECT,
    Param {
        name: "drop_early",
        kind: Kind::Flag,
        default: "false",
        range: Param::ANY,
        doc: "The controller decides about arriving packets, not about leaving ones; in the linux dialect.",
        source: "tc-dualpi2(8): drop_dequeue",
    },
    Param {
        name: "mtu",
        kind: Kind::Size,
        default: "1500b",
        range: (1.0, 65_535.0),
        doc: "Largest packet: the credit the L-queue starts with, and the linux dialect's shortest queue to act on.",
        source: "Linux sch_dualpi2.c",
    },
    registry::CAPACITY,
];

/// What differs between the forms in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dialect {
    limit: Room,
    /// `tupdate`, `alpha` and `beta` where there is no `max_rtt` to compute them from.
    gains: Option<(Span, f64, f64)>,
    /// Signals come by chance, not when their probabilities have summed up to 1.
    pub(super) draws: bool,
    /// The L-queue may mark of itself by a ramp, and does unless `native` says otherwise.
    has_ramp: bool,
    /// The L-queue's own marks are decided apart from the controller's, and in an overload too.
    pub(super) marks_apart: bool,
    /// At the probability that just marks all of the L-queue there is no overload yet.
    pub(super) overload_is_beyond: bool,
    /// The controller spares a queue of fewer bytes than so many packets of `mtu`.
    pub(super) spared: u64,
    /// The L-queue is that of cable modems: IAQM's ramp, and queue protection.
    is_cable: bool,
}

/// What may wait, unless `limit` says so.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Room {
    /// What the link sends in this time.
    Time(Span),
    Packets(f64),
}

/// RFC 9332 A.
const RFC_9332: Dialect = Dialect {
    limit: Room::Time(Span::from_ms(250)),
    gains: None,
    draws: false,
    has_ramp: true,
    marks_apart: false,
    overload_is_beyond: false,
    spared: 0,
    is_cable: false,
};

/// RFC 9332 with the L-queue of DOCSIS 3.1 (MULPI, Annexes O and P).
const DOCSIS: Dialect = Dialect { is_cable: true, ..RFC_9332 };

/// Linux sch_dualpi2.c.
const LINUX: Dialect = Dialect {
    limit: Room::Packets(10_000.0),
    // The gains are 41/256 and 819/256 there.
    gains: Some((Span::from_ms(16), 0.16, 3.2)),
    draws: true,
    has_ramp: false,
    marks_apart: true,
    overload_is_beyond: true,
    spared: 2,
    is_cable: false,
};

impl Dialect {
    pub(super) fn of(values: &Values) -> Self {
        match values.word("dialect") {
            "linux" => LINUX,
            "docsis" => DOCSIS,
            _ => RFC_9332,
        }
    }
}

/// Whether the limit, the ramp or the waiting time that queue protection goes by is computed from the link's rate.
pub(super) fn uses_rate(values: &Values) -> bool {
    let dialect = Dialect::of(values);
    let has_limit = values.0.contains_key("limit");
    let protects = matches!(values.0.get("queue_protection"), Some(Value::Flag(true)));
    matches!(dialect.limit, Room::Time(_)) && !has_limit || dialect.is_cable || protects
}

/// The ramp of IAQM ends at 1 ms, 2^19 ns after it begins. It never begins below the time of two packets.
fn resolve_native(values: &mut Values, dialect: &Dialect, rate: Rate) {
    values.fill("native", Value::Word(if dialect.has_ramp { "ramp" } else { "step" }));
    let range = Span::from_ns(1 << 19);
    let floor = rate.time_for(2 * u64::from(values.size("mtu")));
    let (min_th, range) = match dialect.is_cable {
        true => (Span::from_ms(1).saturating_sub(range).max(floor), range),
        false => (Span::from_us(800), Span::from_us(400)),
    };
    values.fill("min_th", Value::Time(min_th));
    values.fill("range", Value::Time(range));
    values.fill("queue_protection", Value::Flag(dialect.is_cable));
    let highest = match Native::of(values) {
        Native::Ramp { min_th, range, .. } => min_th + range,
        Native::StepTime(threshold) => threshold,
        Native::StepPackets(_) => Span::from_ms(1),
    };
    values.fill("critical_delay", Value::Time(highest.max(Span::from_us(1)).min(Span::from_secs(10))));
}

pub(super) fn resolve(values: &mut Values, rate: Rate) -> Result<(), Refusal> {
    let dialect = Dialect::of(values);
    let limit = match dialect.limit {
        Room::Packets(packets) => Length::Packets(packets),
        Room::Time(time) => Length::Bytes((rate.bytes_in(time) as f64).min(4e9)),
    };
    values.fill("limit", Value::Length(limit));
    resolve_native(values, &dialect, rate);
    let max_rtt = values.find_time("max_rtt");
    if let (None, Some((tupdate, alpha, beta))) = (max_rtt, dialect.gains) {
        values.fill("tupdate", Value::Time(tupdate));
        values.fill("alpha", Value::Number(alpha));
        values.fill("beta", Value::Number(beta));
    }
    let max_rtt = max_rtt.unwrap_or(Span::from_ms(100));
    values.fill("tupdate", Value::Time(values.time("target").min(max_rtt / 3)));
    let (tupdate_s, max_rtt_s) = (values.time("tupdate").secs_f64(), max_rtt.secs_f64());
    values.fill("alpha", Value::Number(0.1 * tupdate_s / (max_rtt_s * max_rtt_s)));
    values.fill("beta", Value::Number(0.3 / max_rtt_s));
    if !dialect.has_ramp && values.word("native") == "ramp" {
        return Err(Refusal::new("native", "step in the linux dialect, which has no ramp"));
    }
    if values.word("native") == "ramp" && values.integer("min_qlen_step") > 0 {
        return Err(Refusal::new("min_qlen_step", "0 with the ramp, which has th_len"));
    }
    if dialect.has_ramp && values.flag("drop_early") {
        return Err(Refusal::new("drop_early", "false in the rfc dialect, which decides when packets leave"));
    }
    if dialect.has_ramp && values.flag("any_ect") {
        return Err(Refusal::new("any_ect", "false but in the linux dialect, which has it"));
    }
    if !dialect.has_ramp && values.flag("queue_protection") {
        return Err(Refusal::new("queue_protection", "false in the linux dialect, which has none"));
    }
    if values.find_time("max_rtt").is_some() {
        values.ordered("tupdate", "max_rtt")?;
    }
    match values.0.get("step_thresh") {
        Some(Value::Length(Length::Bytes(_))) => {
            Err(Refusal::new("step_thresh", "packets such as 24p or a time such as 5ms"))
        }
        _ => Ok(()),
    }
}
