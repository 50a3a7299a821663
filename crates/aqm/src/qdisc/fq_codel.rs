//! FQ-CoDel is fair queueing ([`super::fq_frame`]) with CoDel ([`crate::law::codel`]) on each queue. All of it is
//! there.
//!
//! Source: RFC 8290. ECN is on by default, as in Linux.
//!
//! Dialects are CoDel's and the frame's. `linux` moreover compares the MTU with the bytes of all queues. It also counts
//! evictions as signals of the queue that they hit; [`crate::law::codel`] says what becomes of Newton's step then.

use super::Qdisc;
use super::fq_frame::{self, FairQueue, Full, Seen};
use crate::law::codel::{self, Codel};
use crate::packet::Packet;
use crate::param::{Param, Values};
use crate::registry::{self, Discipline, Row, Site};

/// Fair queueing around CoDel.
pub struct FqCodel;

impl Discipline for FqCodel {
    const ROW: Row = Row {
        name: "fq_codel",
        aliases: &[],
        doc: "Hashes flows to queues that take turns, new ones first, with CoDel on each.",
        source: "RFC 8290",
        year: 2012,
        marks: true,
        params: &[
            registry::limit_of_flows("10240p", "RFC 8290 §5.2.3; tc-fq_codel(8)"),
            Param { default: "true", source: "tc-fq_codel(8): on, unlike in other disciplines", ..registry::ECN },
            codel::DIALECT,
            codel::TARGET,
            codel::INTERVAL,
            fq_frame::FLOWS,
            fq_frame::QUANTUM,
            fq_frame::DROP_BATCH,
            codel::MTU,
            codel::CE_THRESHOLD,
            codel::CE_THRESHOLD_SELECTOR,
        ],
        fixed: &["dialect", "flows"],
        gauges: fq_frame::GAUGES,
        causes: &[],
        uses_rate: registry::never,
        resolve: codel::resolve,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, mut site: Site) -> Box<dyn Qdisc<P> + Send> {
        let full = Full::EvictFattest(values.integer("drop_batch") as u32);
        let seen = if values.word("dialect") == "linux" { Seen::All } else { Seen::Own };
        let queues = values.integer("flows") as u32;
        Box::new(FairQueue::new(values, queues, &mut site.stream, full, seen, || Codel::new(values)))
    }

    fn state_bytes(values: &Values) -> usize {
        fq_frame::state_bytes::<Codel>(values.integer("flows"), 0)
    }
}
