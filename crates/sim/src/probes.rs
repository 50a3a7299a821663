//! Probes on their way: which flow each is of and which of its packets, for whoever learns what became of it.

use base::{Span, Time};
use net::AccessLink;
use record::Sink;

/// All of them, and what their flows saw.
pub struct Probes {
    /// What is measured.
    pub measured: record::Probes,
    /// Of packets on their way: flow, number of the packet.
    slots: Vec<(u32, u32)>,
    free: Vec<u32>,
    /// Of flows: the source, the receiver's access link, and the delay before that.
    flows: Vec<(u32, AccessLink, Span)>,
}

impl Probes {
    /// No flows; packets sent from `from` on and before `to` count.
    pub fn new(from: Time, to: Time) -> Self {
        Self { measured: record::Probes::new(from, to), slots: Vec::new(), free: Vec::new(), flows: Vec::new() }
    }

    /// One more flow, of a source of this index, which is flow `number` of a block and sends from `side`. It has the
    /// delay `behind` between the last link and the receiver's access link.
    pub fn add_flow(&mut self, source: u32, block: u16, number: u32, side: u8, behind: Span) -> u32 {
        self.flows.push((source, AccessLink::new(Time::ZERO), behind));
        self.measured.add_flow(block, number, side)
    }

    /// A flow sends a packet; the answer is the packet's place.
    pub fn send(&mut self, flow: u32, now: Time) -> u32 {
        let slot = (flow, self.measured.sent(flow, now));
        if let Some(place) = self.free.pop() {
            self.slots[place as usize] = slot;
            place
        } else {
            self.slots.push(slot);
            // Room to give every place back without growing then.
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

    /// The packet at `place` has been received.
    pub fn received(&mut self, place: u32, now: Time, sink: &mut dyn Sink) {
        let (flow, packet) = self.slots[place as usize];
        self.free.push(place);
        self.measured.received(flow, packet, now, sink);
    }

    /// The packet at `place` is lost.
    pub fn lost(&mut self, place: u32, sink: &mut dyn Sink) {
        let (flow, packet) = self.slots[place as usize];
        self.free.push(place);
        self.measured.lost(flow, packet, sink);
    }
}
