//! From a scenario to the network it describes.

use crate::network::Network;
use crate::packets::Segments;
use crate::probes::Probes;
use crate::queue::EventQueue;
use base::Rate;
use net::{Bottleneck, Receivers};
use record::Meter;
use scenario::{Impairments, Scenario};

/// The network of `scenario`, idle.
pub fn network(scenario: &Scenario) -> Network {
    let link = &scenario.link;
    let access = scenario.path.access_rate;
    let [from, to, _] = scenario.edges();
    Network {
        segments: Segments::default(),
        bottleneck: Bottleneck::new([0, 1].map(|side| link.egress(side, scenario.seed))),
        meters: [Meter::new(), Meter::new()],
        queue: EventQueue::new(slot_shift(link.rate.max(link.reverse_rate))),
        access,
        receivers: [0, 1]
            .map(|side| Receivers::behind([link.rate, link.reverse_rate][side], link.traces[side].is_some(), access)),
        hosts: Vec::new(),
        impairments: Impairments::of(scenario),
        writes_drops: scenario.record.drops,
        probes: Probes::new(from, to),
    }
}

/// A slot of the event queue should hold a few events: about four full packets' time on the link, 1 us to 32 us.
fn slot_shift(rate: Rate) -> u32 {
    rate.time_for(4 * 1500).ns().max(1).ilog2().clamp(10, 15)
}
