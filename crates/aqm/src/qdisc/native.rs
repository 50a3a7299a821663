//! How the L-queue of a dual queue marks of itself, by the waiting time or the length of the queue.

use crate::param::{Kind, Length, Param, Value, Values};
use base::Span;
use std::collections::VecDeque;

const RFC: &str = "RFC 9332 A.1; tc-dualpi2(8)";

/// The `native`.
pub const NATIVE: Param = Param {
    name: "native",
    kind: Kind::Word(&["ramp", "step"]),
    default: "",
    range: Param::ANY,
    doc: "How the L-queue marks of itself, by its waiting time: from min_th on ever more over range, or all above \
          step_thresh. Computed: ramp, or step for linux.",
    source: RFC,
};

/// The `min_th`.
pub const MIN_TH: Param = Param {
    name: "min_th",
    kind: Kind::Time,
    default: "",
    range: (0.0, 10.0),
    doc: "Waiting time in the L-queue at which the ramp begins. Computed: 800us; for docsis the range before 1ms, or \
          later what the link needs for two packets of mtu.",
    source: "RFC 9332 A.1; DOCSIS 3.1 MULPI, Annex O",
};

/// The `range`.
pub const RANGE: Param = Param {
    name: "range",
    kind: Kind::Time,
    default: "",
    range: (0.0, 10.0),
    doc: "Waiting time over which the ramp rises to 1. Computed: 400us, or 524288ns for docsis.",
    source: "RFC 9332 A.1; DOCSIS 3.1 MULPI, Annex O",
};

/// The `th_len`.
pub const TH_LEN: Param = Param {
    name: "th_len",
    kind: Kind::Integer,
    default: "1",
    range: (0.0, 1e6),
    doc: "The ramp spares an L-queue of so many packets or fewer, the one in hand included (min_qlen_step of step).",
    source: "RFC 9332 A.1",
};

/// The `step_thresh`.
pub const STEP_THRESH: Param = Param {
    name: "step_thresh",
    kind: Kind::LengthOrTime,
    default: "1ms",
    range: (0.0, 1e6),
    doc: "Waiting time, or packets (not bytes) left behind, above which the step marks.",
    source: "tc-dualpi2(8)",
};

/// The `min_qlen_step`.
pub const MIN_QLEN_STEP: Param = Param {
    name: "min_qlen_step",
    kind: Kind::Integer,
    default: "0",
    range: (0.0, 1e6),
    doc: "The step spares a packet that finds fewer than this in the L-queue when it arrives.",
    source: "tc-dualpi2(8)",
};

/// How the L-queue marks of itself.
#[derive(Clone, Copy, Debug)]
pub enum Native {
    /// From `min_th` on ever more, and all of it after `range` more; not while `th_len` packets or fewer are there.
    Ramp {
        /// Where it begins.
        min_th: Span,
        /// How much later it has reached 1.
        range: Span,
        /// So short a queue is spared.
        th_len: u32,
    },
    /// What waited longer.
    StepTime(Span),
    /// What leaves more packets behind.
    StepPackets(u32),
}

impl Native {
    /// As resolved values say.
    pub fn of(values: &Values) -> Self {
        match (values.word("native"), values.0.get("step_thresh")) {
            ("step", Some(Value::Time(threshold))) => Self::StepTime(*threshold),
            ("step", _) => match values.length("step_thresh") {
                Length::Packets(packets) | Length::Bytes(packets) => Self::StepPackets(packets as u32),
            },
            _ => Self::Ramp {
                min_th: values.time("min_th"),
                range: values.time("range"),
                th_len: values.integer("th_len") as u32,
            },
        }
    }

    /// The probability for a packet that waited so long, with so many left behind it.
    pub fn probability(self, waited: Span, behind: u32) -> f64 {
        let is = |above: bool| if above { 1.0 } else { 0.0 };
        match self {
            Self::Ramp { th_len, .. } if behind < th_len => 0.0,
            Self::Ramp { min_th, range, .. } if waited >= min_th + range => is(true),
            Self::Ramp { min_th, range, .. } => waited.saturating_sub(min_th).secs_f64() / range.secs_f64().max(1e-12),
            Self::StepTime(threshold) => is(waited > threshold),
            Self::StepPackets(threshold) => is(behind > threshold),
        }
    }
}

/// Which packets of the L-queue the step spares: those that found fewer than `least` packets in it.
#[derive(Clone, Debug, Default)]
pub struct Spares {
    /// How many packets it has to find.
    pub least: usize,
    /// Of each packet of the queue, in order, whether it is spared; none where none can be.
    pub spared: VecDeque<bool>,
}

impl Spares {
    /// A packet arrives at a queue of `found`.
    pub fn hear_arrival(&mut self, found: usize) {
        if self.least > 0 {
            self.spared.push_back(found < self.least);
        }
    }

    /// The first packet leaves. Returns whether it is spared.
    pub fn hear_departure(&mut self) -> bool {
        // A queue that was filled under another setting has packets without a word of theirs.
        self.spared.pop_front().unwrap_or(false)
    }
}
