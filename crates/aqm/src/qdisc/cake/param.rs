//! This file has CAKE's parameters, and computes those that words stand for.

use crate::law::{cobalt, codel};
use crate::param::{Kind, Length, Param, Refusal, Value, Values};
use crate::registry;
use base::{Rate, Span};

const TC: &str = "tc-cake(8)";

/// Words for round-trip times, as iproute2 has them. The last one is an hour in tc-cake(8) alone.
const RTTS: [(&str, Span); 8] = [
    ("datacentre", Span::from_us(100)),
    ("lan", Span::from_ms(1)),
    ("metro", Span::from_ms(10)),
    ("regional", Span::from_ms(30)),
    ("internet", Span::from_ms(100)),
    ("oceanic", Span::from_ms(300)),
    ("satellite", Span::from_secs(1)),
    ("interplanetary", Span::from_secs(1_000)),
];

/// Words for framing (tc-cake(8), "overhead compensation parameters"): `overhead`, `mpu`, `framing`.
const OVERHEADS: [(&str, u64, u64, &str); 14] = [
    ("raw", 0, 0, "noatm"),
    ("conservative", 48, 0, "atm"),
    ("ethernet", 38, 84, "noatm"),
    ("docsis", 18, 64, "noatm"),
    ("pppoe-ptm", 30, 0, "ptm"),
    ("bridged-ptm", 22, 0, "ptm"),
    ("pppoa-vcmux", 10, 0, "atm"),
    ("pppoa-llc", 14, 0, "atm"),
    ("pppoe-vcmux", 32, 0, "atm"),
    ("pppoe-llcsnap", 40, 0, "atm"),
    ("bridged-vcmux", 24, 0, "atm"),
    ("bridged-llcsnap", 32, 0, "atm"),
    ("ipoa-vcmux", 8, 0, "atm"),
    ("ipoa-llcsnap", 16, 0, "atm"),
];

/// The words of a table, as [`Kind::Word`] wants them.
const RTT_WORDS: [&str; RTTS.len()] = {
    let (mut words, mut at) = ([""; RTTS.len()], 0);
    while at < words.len() {
        words[at] = RTTS[at].0;
        at += 1;
    }
    words
};

/// The words of [`RTT_WORDS`].
const OVERHEAD_WORDS: [&str; OVERHEADS.len()] = {
    let (mut words, mut at) = ([""; OVERHEADS.len()], 0);
    while at < words.len() {
        words[at] = OVERHEADS[at].0;
        at += 1;
    }
    words
};

/// The table of parameters.
pub const PARAMS: &[Param] = &[
    Param {
        doc: "How much may wait, in packets or bytes; beyond, the longest queue loses its head. Computed: four times \
              rtt at bandwidth, at least 4 MiB, at most 10240 times mtu.",
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
        name: "rtt_keyword",
        kind: Kind::Word(&RTT_WORDS),
        default: "internet",
        range: Param::ANY,
        doc: "A word for `rtt`.",
        source: TC,
    },
    Param {
        name: "rtt",
        kind: Kind::Time,
        default: "",
        range: (1e-6, 3600.0),
        doc: "The longest usual round-trip time: COBALT's interval. Computed from rtt_keyword: 100 us, 1, 10, 30, 100, \
              300 ms, 1 s, 1000 s.",
        source: TC,
    },
    Param {
        default: "",
        source: TC,
        range: (1e-6, 3600.0),
        doc: "Waiting time that may stand. Computed: rtt / 20.",
        ..codel::TARGET
    },
    Param {
        name: "mtu",
        kind: Kind::Size,
        default: "1514b",
        range: (64.0, 65_535.0),
        doc: "Largest packet on the interface with its link header: one and a half may always be waited, four before a \
              signal.",
        source: "Linux sch_cake.c: psched_mtu() of Ethernet",
    },
    Param {
        name: "overhead_keyword",
        kind: Kind::Word(&OVERHEAD_WORDS),
        default: "raw",
        range: Param::ANY,
        doc: "A word for `overhead`, `mpu` and `framing` together; raw counts IP packets as they are.",
        source: TC,
    },
    Param {
        name: "overhead",
        kind: Kind::Integer,
        default: "",
        range: (0.0, 256.0),
        doc: "Bytes that framing adds to each IP packet, for the shaper. Computed from overhead_keyword.",
        source: TC,
    },
    Param {
        name: "mpu",
        kind: Kind::Integer,
        default: "",
        range: (0.0, 256.0),
        doc: "The fewest bytes that a packet takes with its overhead. Computed from overhead_keyword.",
        source: TC,
    },
    Param {
        name: "framing",
        kind: Kind::Word(&["noatm", "atm", "ptm"]),
        default: "",
        range: Param::ANY,
        doc: "Cells of 53 bytes for 48 (atm), or a byte more for each 64 (ptm). Computed from overhead_keyword.",
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
    Param {
        doc: "linux: time and 1/sqrt(count) rounded as there, and in a queue that was never signalled the first signal \
              comes at once. paper: to the nanosecond, and after an interval.",
        ..cobalt::DIALECT
    },
];

/// How many full packets wait at most, whatever the rate.
const MOST_PACKETS: f64 = 10_240.0;

/// Computes what words stand for, the limit and the target.
pub fn resolve(values: &mut Values, _rate: Rate) -> Result<(), Refusal> {
    let word = values.word("rtt_keyword");
    let (_, rtt) = RTTS.into_iter().find(|(name, _)| *name == word).expect("the table has each word");
    values.fill("rtt", Value::Time(rtt));
    let word = values.word("overhead_keyword");
    let of_word = OVERHEADS.into_iter().find(|(name, ..)| *name == word);
    let (_, overhead, mpu, framing) = of_word.expect("the table has each word");
    values.fill("overhead", Value::Integer(overhead));
    values.fill("mpu", Value::Integer(mpu));
    values.fill("framing", Value::Word(framing));
    let rtt = values.time("rtt");
    let most = MOST_PACKETS * f64::from(values.size("mtu"));
    let wanted = values.find_rate("bandwidth").map_or(most, |rate| {
        // Four times the product, as Linux has it.
        (rate.bps_f64() / 8.0 * rtt.secs_f64() * 4.0).max(f64::from(4 << 20))
    });
    values.fill("limit", Value::Length(Length::Bytes(wanted.min(most).floor())));
    values.fill("target", Value::Time((rtt / 20).max(Span::from_us(1))));
    values.ordered("target", "rtt")
}
