//! Any law can stand under fair queueing: `fq_red`, `fq_pi`, `fq_blue` and so on are [`super::fq_frame`] with that law
//! on each queue. FQ-CoDel and FQ-PIE have details of their own, and so files of their own.
//!
//! Source: RFC 8290 §1.1, "the FQ scheduler and the AQM are separable"; the frame is its §4.
//!
//! | parameter | of |
//! |---|---|
//! | `queues` (FQ-CoDel's `flows`: some laws mean another thing by it), `quantum` | the frame |
//! | `limit` | all queues together |
//! | all others | the law, of which each queue has one |
//!
//! Each law has a stream of random numbers of its own, made from the discipline's when that is made.
//!
//! What a law computes from the link's rate (PI's gains, REM's capacity, a target in time), it computes from the whole
//! rate, because a queue that is alone has that much. What it measures, it measures of its own queue.
//!
//! There is a deviation from the RFC. At the limit the arriving packet is lost, as in FQ-PIE, and the law of its queue
//! is told, as it would be in one queue. The RFC evicts from the fattest queue, which laws that follow each packet
//! would not see.

use super::Qdisc;
use super::fq_frame::{self, FairQueue, Full, Seen};
use crate::gauge::Gauge;
use crate::law::Law;
use crate::packet::Packet;
use crate::param::{Param, Text, Values};
use crate::registry::{LawRow, Row, Site};
use base::Stream;

/// What is written before the name of a law.
const PREFIX: &str = "fq_";

/// The frame's own parameters.
const FRAME: [Param; 2] = [Param { name: "queues", ..fq_frame::FLOWS }, fq_frame::QUANTUM];

/// The law that `name` puts under fair queueing.
pub fn law_of(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

/// The row of a law under fair queueing.
pub fn row(law: &Row<Text>) -> Row<Text> {
    // A law of a user need say neither where it comes from nor when.
    let source: Text =
        if law.source.is_empty() { "RFC 8290".into() } else { format!("RFC 8290; {}", law.source).into() };
    let year = if law.year == 0 { 0 } else { law.year.max(2018) };
    let doc = format!("Hashes flows to queues that take turns, new ones first, with {} on each.", law.name);
    Row {
        name: format!("{PREFIX}{}", law.name).into(),
        aliases: Vec::new(),
        doc: doc.into(),
        source,
        year,
        gauges: fq_frame::GAUGES.iter().copied().map(Gauge::from).collect(),
        fixed: law.fixed.iter().cloned().chain([FRAME[0].name.into()]).collect(),
        params: law.params.iter().cloned().chain(FRAME.map(Param::from)).collect(),
        ..law.clone()
    }
}

/// Builds the law `L` under fair queueing.
pub fn build<P: Packet + Send + 'static, L: LawRow>(values: &Values, site: Site) -> Box<dyn Qdisc<P> + Send> {
    around(values, site, |site| L::made(values, site))
}

/// Builds fair queueing around laws that `made` makes.
pub fn around<P: Packet + Send + 'static, L: Law + Send + 'static>(
    values: &Values,
    mut site: Site,
    made: impl Fn(Site) -> L,
) -> Box<dyn Qdisc<P> + Send> {
    let mut seeds = site.stream.clone();
    // The first number is the hash's.
    seeds.bits();
    let rate = site.rate;
    let law = || made(Site { rate, stream: Stream::named(seeds.bits(), "queue") });
    let queues = values.integer("queues") as u32;
    Box::new(FairQueue::new(values, queues, &mut site.stream, Full::RefuseArriving, Seen::Own, law))
}

/// How many bytes the result of [`build`] holds before the first packet.
pub fn state_bytes<L: LawRow>(values: &Values) -> usize {
    state_bytes_around::<L>(values, L::own_bytes(values))
}

/// How many bytes the result of [`around`] holds before the first packet, if each law holds `own` beside itself.
pub fn state_bytes_around<L>(values: &Values, own: usize) -> usize {
    fq_frame::state_bytes::<L>(values.integer("queues"), own)
}
