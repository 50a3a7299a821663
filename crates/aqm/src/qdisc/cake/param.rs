//! CAKE's parameters.

use crate::law::codel;
use crate::param::{Kind, Length, Param, Refusal, Value, Values};
use crate::registry;
use base::{Rate, Span};

const TC: &str = "tc-cake(8)";

/// The table.
pub const PARAMS: &[Param] = &[
    Param {
        doc: "How much may wait, in packets or bytes; beyond, the longest queue loses its head. Computed: four times \
              rtt at bandwidth, at least 4 MiB, at most 10240 full frames.",
        ..registry::limit("", "Linux sch_cake.c; memlimit in tc-cake(8)")
    },
    Param { default: "true", source: TC, ..registry::ECN },
    Param {
        name: "bandwidth",
        kind: Kind::Rate,
        default: "",
        range: (1000.0, 1e13),
        doc: "The rate that it shapes to; absent, the link behind sets the pace and tins take turns.",
        source: "tc-cake(8): unlimited",
    },
    Param {
        name: "diffserv",
        kind: Kind::Word(&["diffserv3", "diffserv4", "diffserv8", "precedence", "besteffort"]),
        default: "diffserv3",
        range: Param::ANY,
        doc: "How packets go to tins by their codepoint.",
        source: TC,
    },
    Param {
        name: "isolation",
        kind: Kind::Word(&[
            "triple-isolate",
            "dual-srchost",
            "dual-dsthost",
            "hosts",
            "flows",
            "srchost",
            "dsthost",
            "flowblind",
        ]),
        default: "triple-isolate",
        range: Param::ANY,
        doc: "What is kept apart: flows, hosts at either end, or flows and hosts.",
        source: TC,
    },
    Param {
        name: "rtt",
        kind: Kind::Time,
        default: "100ms",
        range: (1e-6, 3600.0),
        doc: "The longest usual round-trip time: COBALT's interval.",
        source: TC,
    },
    Param { default: "", source: TC, doc: "Waiting time that may stand. Computed: rtt / 20.", ..codel::TARGET },
    Param {
        name: "overhead",
        kind: Kind::Integer,
        default: "0",
        range: (0.0, 256.0),
        doc: "Bytes that framing adds to each packet, for the shaper.",
        source: TC,
    },
    Param {
        name: "mpu",
        kind: Kind::Integer,
        default: "0",
        range: (0.0, 256.0),
        doc: "The fewest bytes that a packet takes with its overhead.",
        source: TC,
    },
    Param {
        name: "framing",
        kind: Kind::Word(&["noatm", "atm", "ptm"]),
        default: "noatm",
        range: Param::ANY,
        doc: "Cells of 53 bytes for 48 (atm), or a byte more for each 64 (ptm).",
        source: TC,
    },
    Param {
        name: "ingress",
        kind: Kind::Flag,
        default: "false",
        range: Param::ANY,
        doc: "Losses are charged to the shaper: what they took of a bottleneck before it is gone.",
        source: TC,
    },
    Param {
        name: "ack_filter",
        kind: Kind::Word(&["off", "on", "aggressive"]),
        default: "off",
        range: Param::ANY,
        doc: "Lose acknowledgements that a later one overtakes in the queue: all but a pair, or all but one.",
        source: TC,
    },
];

/// The most full frames that wait, whatever the rate: 10240 of 1514 bytes.
const MOST_BYTES: f64 = 10_240.0 * 1514.0;

/// Computes the limit and the target.
pub fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let rtt = values.time("rtt");
    let wanted = values.find_rate("bandwidth").map_or(MOST_BYTES, |rate| {
        // Four times the product, as Linux has it.
        (rate.bps_f64() / 8.0 * rtt.secs_f64() * 4.0).max(f64::from(4 << 20))
    });
    values.fill("limit", Value::Length(Length::Bytes(wanted.min(MOST_BYTES).floor())));
    values.fill("target", Value::Time((rtt / 20).max(Span::from_us(1))));
    Ok(())
}
