//! From a scenario to the network it describes.

use crate::network::Network;
use crate::packets::{Parcel, Segments};
use crate::probes::Probes;
use crate::queue::EventQueue;
use aqm::Egress;
use aqm::registry::{self, Site};
use base::{Rate, Stream, Time};
use record::Meter;
use scenario::{QdiscSpec, Scenario};
use std::collections::VecDeque;

/// The network of `scenario`, idle.
pub fn network(scenario: &Scenario) -> Network {
    let egress = |rate: Rate, qdisc: &QdiscSpec, direction: &str| -> Egress<Parcel> {
        let stream = Stream::named(scenario.seed, &format!("link/{direction}/qdisc"));
        Egress::new(rate, registry::build(qdisc.kind, &qdisc.values, Site { rate, stream }))
            .with_overhead(scenario.link.overhead)
    };
    let link = &scenario.link;
    Network {
        segments: Segments::default(),
        egress: [egress(link.rate, &link.qdisc, "forward"), egress(link.reverse_rate, &link.reverse_qdisc, "reverse")],
        meters: [Meter::new(), Meter::new()],
        queue: EventQueue::new(slot_shift(link.rate.max(link.reverse_rate))),
        access: scenario.path.access_rate,
        receiving: [VecDeque::with_capacity(64), VecDeque::with_capacity(64)],
        hosts: Vec::new(),
        lost_before_link: [0; 2],
        writes_drops: scenario.record.drops,
        probes: Probes::new(Time::ZERO + scenario.warmup, Time::ZERO + scenario.duration - scenario.cooldown),
    }
}

/// A slot of the event queue should hold a few events: about four full packets' time on the link, 1 us to 32 us.
fn slot_shift(rate: Rate) -> u32 {
    rate.time_for(4 * 1500).ns().max(1).ilog2().clamp(10, 15)
}
