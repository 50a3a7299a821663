//! This file keeps, of each probe on its way, its flow and its number, so that its fate can be recorded.

use base::{Span, Time};
use net::AccessLink;
use record::Sink;

/// The probes on their way, and the results of their flows.
pub struct Probes {
    /// The results.
    pub measured: record::Probes,
    /// For each packet on its way: its flow, and its number within the flow.
    slots: Vec<(u32, u32)>,
    free: Vec<u32>,
    /// For each flow: its source, the receiver's access link, and the delay before that.
    flows: Vec<(u32, AccessLink, Span)>,
}

impl Probes {
    /// A collection without flows. Packets count that are sent from `from` on and before `to`.
    pub fn new(from: Time, to: Time) -> Self {
        Self { measured: record::Probes::new(from, to), slots: Vec::new(), free: Vec::new(), flows: Vec::new() }
    }

    /// Adds the flow of the source with index `source`, which is flow `number` of its block and sends from `side`. The
    /// delay between the last link and the receiver's access link is `behind`. Returns the flow.
    pub fn add_flow(&mut self, source: u32, block: u16, number: u32, side: u8, behind: Span) -> u32 {
        self.flows.push((source, AccessLink::new(Time::ZERO), behind));
        self.measured.add_flow(block, number, side)
    }

    /// Notes that a flow sends a packet. Returns the packet's place.
    pub fn send(&mut self, flow: u32, now: Time) -> u32 {
        let slot = (flow, self.measured.sent(flow, now));
        if let Some(place) = self.free.pop() {
            self.slots[place as usize] = slot;
            place
        } else {
            self.slots.push(slot);
            // Reserved now, so that giving places back never allocates.
            self.free.reserve(self.slots.len());
            self.slots.len() as u32 - 1
        }
    }

    /// The source of the packet at `place`.
    pub fn source(&self, place: u32) -> u32 {
        self.flows[self.slots[place as usize].0 as usize].0
    }

    /// When a packet that left the last link at `left_at` has crossed the receiver's access link.
    pub fn crosses(&mut self, place: u32, left_at: Time, takes: Span) -> Time {
        let (_, link, behind) = &mut self.flows[self.slots[place as usize].0 as usize];
        link.carry(takes, left_at + *behind)
    }

    /// Notes that the packet at `place` has been received.
    pub fn received(&mut self, place: u32, now: Time, sink: &mut dyn Sink) {
        let (flow, packet) = self.slots[place as usize];
        self.free.push(place);
        self.measured.received(flow, packet, now, sink);
    }

    /// Notes that the packet at `place` is lost.
    pub fn lost(&mut self, place: u32, sink: &mut dyn Sink) {
        let (flow, packet) = self.slots[place as usize];
        self.free.push(place);
        self.measured.lost(flow, packet, sink);
    }
}
