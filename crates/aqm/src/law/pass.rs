//! Drop-tail: no law at all. Packets are lost only when the queue is full: the arriving one, or with `drop = "head"`
//! the oldest, so that the sender hears of it a queue earlier (Lakshman, Neidhardt and Ott, "The Drop from Front
//! Strategy in TCP and in TCP over ATM", INFOCOM 1996).
//!
//! Rule (Linux `pfifo`, `bfifo`): a packet is accepted while fewer than `limit` packets wait, or while its bytes still
//! fit in `limit` bytes. From the head as many are lost as it takes (Linux `pfifo_head_drop` and ns-2's `drop_front_`
//! lose one, which in bytes may not be enough). In the dialect `ns2` the packet that would fill the queue to its limit
//! is refused (ns-2.35 queue/drop-tail.cc): it holds one packet, or byte, less.

use super::Law;
use crate::packet::Packet;
use crate::param::{Kind, Param, Values};
use crate::qdisc::Qdisc;
use crate::qdisc::fifo::{End, Fifo, Limit};
use crate::registry::{self, Discipline, Row, Site};
use base::{Rate, Time};

/// The law that lets everything pass; [`Fifo`] around it is `pfifo` or `bfifo`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pass;

impl Law for Pass {
    fn retune(&mut self, _values: &Values, _rate: Rate, _now: Time) {}

    fn room(values: &Values) -> (Limit, End) {
        let limit = match (values.word("dialect"), Limit::of(values)) {
            ("ns2", Limit::Packets(packets)) => Limit::Packets(packets.saturating_sub(1)),
            ("ns2", Limit::Bytes(bytes)) => Limit::Bytes(bytes.saturating_sub(1)),
            (_, limit) => limit,
        };
        (limit, End::of(values))
    }
}

const DROP: Param = Param {
    name: "drop",
    kind: Kind::Word(&["tail", "head"]),
    default: "tail",
    range: Param::ANY,
    doc: "What a full queue loses: the arriving packet (tail), or the oldest ones (head).",
    source: "tc-pfifo(8), tc-bfifo(8); head: Lakshman, Neidhardt and Ott 1996",
};

const DIALECT: Param = Param {
    name: "dialect",
    kind: Kind::Word(&["linux", "ns2"]),
    default: "linux",
    range: Param::ANY,
    doc: "Whether limit may wait (linux, and whatever else there is), or less than that (ns2).",
    source: "tc-pfifo(8); ns-2.35 queue/drop-tail.cc",
};

/// Drop-tail with a limit in packets by default.
pub struct Pfifo;

impl Discipline for Pfifo {
    const ROW: Row = Row {
        name: "pfifo",
        aliases: &["droptail", "fifo"],
        doc: "First in, first out; packets are lost only when the queue is full.",
        source: "the \"tail drop\" of RFC 2309 §2; tc-pfifo(8)",
        year: 1998,
        marks: false,
        params: &[
            registry::limit("1000p", "tc-pfifo(8): the interface's txqueuelen, 1000"),
            registry::ECN,
            DIALECT,
            DROP,
        ],
        fixed: &["dialect"],
        gauges: &[],
        causes: &[],
        uses_rate: registry::never,
        resolve: registry::as_given,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, _site: Site) -> Box<dyn Qdisc<P> + Send> {
        Box::new(Fifo::around(Pass, values))
    }

    fn lone_law(_values: &Values, _site: Site) -> Option<Box<dyn Law + Send>> {
        Some(Box::new(Pass))
    }
}

/// Drop-tail with a limit in bytes by default.
pub struct Bfifo;

impl Discipline for Bfifo {
    const ROW: Row = Row {
        name: "bfifo",
        params: &[
            registry::limit("1500000b", "tc-bfifo(8): txqueuelen 1000 times an MTU of 1500"),
            registry::ECN,
            DIALECT,
            DROP,
        ],
        source: "the \"tail drop\" of RFC 2309 §2; tc-bfifo(8)",
        aliases: &[],
        ..Pfifo::ROW
    };

    fn build<P: Packet + Send + 'static>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
        Pfifo::build(values, site)
    }
}
