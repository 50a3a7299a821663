//! FQ-PIE is fair queueing ([`super::fq_frame`]) with PIE ([`crate::law::pie`]) on each queue. All of it is there.
//!
//! Source: Ramakrishnan, Bhasi, Saicharan, Monis, Patil and Tahiliani, "FQ-PIE Queue Discipline in the Linux Kernel:
//! Design, Implementation and Challenges", IEEE LCN Symposium 2019; tc-fq_pie(8).
//!
//! PIE acts on arrivals, so at the limit it is the arriving packet that is lost. Each queue's PIE has a stream of
//! random numbers of its own, made from the discipline's when that is made.
//!
//! Dialects are PIE's and, in the turns, the frame's.
//!
//! Deviations from Linux. All queues take their steps at once; Linux spreads more than 2048 over several timers. No
//! limit on memory, which Linux counts but does not enforce.

use super::Qdisc;
use super::fq_frame::{self, FairQueue, Full, Seen};
use crate::law::pie::{self, Pie};
use crate::packet::Packet;
use crate::param::Values;
use crate::registry::{self, Discipline, Row, Site};
use base::Stream;

/// Fair queueing around PIE.
pub struct FqPie;

impl Discipline for FqPie {
    const ROW: Row = Row {
        name: "fq_pie",
        aliases: &[],
        doc: "Hashes flows to queues that take turns, new ones first, with PIE on each.",
        source: "Ramakrishnan et al. 2019; tc-fq_pie(8)",
        year: 2019,
        marks: true,
        params: &[
            registry::limit("10240p", "tc-fq_pie(8)"),
            registry::ECN,
            pie::DIALECT,
            pie::TARGET,
            pie::TUPDATE,
            pie::ALPHA,
            pie::BETA,
            fq_frame::FLOWS,
            fq_frame::QUANTUM,
            pie::MAX_BURST,
            pie::ECN_PROB,
            pie::BYTEMODE,
            pie::MEAN_PACKET,
            pie::DQ_RATE_ESTIMATOR,
            pie::DERANDOMIZE,
        ],
        fixed: &["dialect", "flows"],
        gauges: fq_frame::GAUGES,
        causes: &[],
        uses_rate: registry::never,
        resolve: pie::resolve,
    };

    fn build<P: Packet + Send + 'static>(values: &Values, mut site: Site) -> Box<dyn Qdisc<P> + Send> {
        let mut seeds = site.stream.clone();
        // The first number is the hash's.
        seeds.bits();
        let law = || Pie::new(values, Stream::named(seeds.bits(), "queue"));
        let queues = values.integer("flows") as u32;
        Box::new(FairQueue::new(values, queues, &mut site.stream, Full::RefuseArriving, Seen::Own, law))
    }

    fn state_bytes(values: &Values) -> usize {
        fq_frame::state_bytes::<Pie>(values.integer("flows"), 0)
    }
}
