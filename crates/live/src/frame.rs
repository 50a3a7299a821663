//! A [`Frame`] is a packet as the disciplines hold it: a few words, and the place of its bytes.

use aqm::Packet;
use base::{Ecn, FlowKey};
use net::Step;

/// What a router knows of a packet whose bytes lie in a buffer.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub(crate) flow: FlowKey,
    /// How far it is on its route.
    pub(crate) step: Step,
    pub(crate) place: u32,
    pub(crate) size: u16,
    pub(crate) dscp: u8,
    /// As the discipline left it; written into the bytes when the packet leaves.
    pub(crate) ecn: Ecn,
    /// Where it comes from: 0 left, 1 right.
    pub(crate) side: u8,
    pub(crate) is_udp: bool,
}

impl Packet for Frame {
    fn size(&self) -> u32 {
        u32::from(self.size)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn flow(&self) -> FlowKey {
        self.flow
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
}
