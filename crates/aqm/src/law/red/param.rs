//! The parameters of RED, for its own table and those of its kin.

use super::PAPER;
use crate::law::measure;
use crate::param::{Kind, Param};

/// Lower threshold.
pub const MIN: Param = Param {
    name: "min",
    kind: Kind::Length,
    default: "5p",
    range: (0.0, 1e9),
    doc: "Average queue below which nothing is signalled.",
    source: PAPER,
};
/// Upper threshold.
pub const MAX: Param = Param {
    name: "max",
    kind: Kind::Length,
    default: "15p",
    range: (0.0, 1e9),
    doc: "Average queue at which the probability reaches its maximum; in the unit of min.",
    source: PAPER,
};
/// Maximum probability.
pub const PROBABILITY: Param = Param {
    name: "probability",
    kind: Kind::Number,
    default: "0.02",
    range: (0.0, 1.0),
    doc: "Probability at an average of max; max_p in the paper. Spacing doubles the rate of signals it gives.",
    source: "Floyd and Jacobson 1993, §6; tc-red(8)",
};
/// Weight of the average.
pub const WQ: Param = Param {
    name: "wq",
    kind: Kind::Number,
    default: "0.002",
    range: (1e-12, 1.0),
    doc: "Weight of each sample in the average queue.",
    source: "Floyd and Jacobson 1993, §6",
};
/// Gentle or not.
pub const GENTLE: Param = Param {
    name: "gentle",
    kind: Kind::Flag,
    default: "false",
    range: Param::ANY,
    doc: "Above max let the probability rise to 1 at gentle_end instead of jumping there.",
    source: "Floyd and Jacobson 1993 has the jump; ns-2 since 2001 the slope",
};
/// Where gentle ends.
pub const GENTLE_END: Param = Param {
    name: "gentle_end",
    kind: Kind::Length,
    default: "",
    range: (0.0, 1e10),
    doc: "Average queue at which gentle reaches 1, in the unit of min; computed as twice max. The buffer's size in \
          Brandauer et al. 2001.",
    source: "Floyd 2000",
};
/// Packets or bytes.
pub const MODE: Param = measure::mode("packet", "Floyd and Jacobson 1993, §6; RFC 7141");
/// Spacing.
pub const WAIT: Param = Param {
    name: "wait",
    kind: Kind::Flag,
    default: "",
    range: Param::ANY,
    doc: "Wait at least 1/p packets between signals, spacing them over 1/p to 2/p instead of 1 to 1/p; computed: \
          true in the ns2 dialect, else false.",
    source: "Floyd and Jacobson 1993 does not; ns-2 wait_ does",
};
/// Until where ECN-capable packets are marked.
pub const MARK_UNTIL: Param = Param {
    name: "mark_until",
    kind: Kind::Word(&["max", "end", "full"]),
    default: "",
    range: Param::ANY,
    doc: "With ecn, the average up to which packets are marked; above it they are dropped. max: as RFC 3168 advises. \
          end: through the gentle slope (\"new gentle\", Le et al. 2007). full: always (RED* of Kuzmanovic 2005). \
          Computed: full in the linux dialect, else max.",
    source: "RFC 3168 §7; Linux without harddrop marks always",
};
/// Until which probability ECN-capable packets are marked.
pub const MARK_P: Param = Param {
    name: "mark_p",
    kind: Kind::Number,
    default: "1",
    range: (0.0, 1.0),
    doc: "With ecn, the probability (before spacing) up to which packets are marked; above it they are dropped.",
    source: "no ceiling in RFC 3168; ns-2.35 mark_p_ is 0.1",
};
/// Which RED.
pub const DIALECT: Param = Param {
    name: "dialect",
    kind: Kind::Word(&["paper", "ns2", "linux"]),
    default: "paper",
    range: Param::ANY,
    doc: "Whose details: the paper's, those of ns-2.35's queue/red.cc, or those of Linux sch_red.",
    source: PAPER,
};
/// Which RED, for those that have ALTQ's.
pub const DIALECT_OR_ALTQ: Param = Param {
    kind: Kind::Word(&["paper", "ns2", "linux", "altq"]),
    doc: "Whose details: the paper's, those of ns-2.35's queue/red.cc, of Linux sch_red, or of ALTQ's altq_red.c, with \
          its whole numbers. altq has no wait, a byte mode that is inferred, and weights that are powers of 1/2: wq \
          becomes the nearest.",
    ..DIALECT
};
/// Whether ALTQ's numbers wrap around.
pub const AVERAGE_OVERFLOW: Param = Param {
    name: "average_overflow",
    kind: Kind::Flag,
    default: "false",
    range: Param::ANY,
    doc: "In the dialect altq, keep the average, its thresholds and what is reckoned with them in 32 bits, as ALTQ \
          does; at a weight of 1/8192 an average of 64 packets is one too many, and becomes -64.",
    source: "altq_red.c has 32 bits; without, for weights and thresholds that it cannot hold",
};
