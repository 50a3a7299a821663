//! Packets in flight: a slab, and the few words of each that a router sees.

use aqm::Packet;
use base::{Ecn, FlowKey};
use tcp::Segment;

/// Whose packet it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A connection's.
    Tcp(u32),
    /// An unresponsive source's.
    Udp(u32),
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// What it carries; of an unresponsive source's only the size counts.
    pub segment: Segment,
    /// Whose it is.
    pub owner: Owner,
    /// How a router knows it.
    pub flow: FlowKey,
    /// The side that sent it, and so the direction: 0 forward, 1 in reverse.
    pub side: u8,
}

/// What the bottleneck holds of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Parcel {
    /// The connection, for a router.
    pub flow: FlowKey,
    /// Its place in the slab.
    pub id: u32,
    /// Bytes.
    pub size: u16,
    /// ECN field.
    pub ecn: Ecn,
    /// Whether it is an unresponsive source's.
    pub is_udp: bool,
}

impl Packet for Parcel {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.size)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    #[inline]
    fn mark(&mut self) {
        self.ecn = Ecn::Ce;
    }
    #[inline]
    fn flow(&self) -> FlowKey {
        self.flow
    }
}

/// The slab.
#[derive(Default)]
pub struct Packets {
    slots: Vec<InFlight>,
    free: Vec<u32>,
}

impl Packets {
    /// Keeps `packet`; returns its place.
    #[inline]
    pub fn insert(&mut self, packet: InFlight) -> u32 {
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = packet;
            id
        } else {
            self.slots.push(packet);
            // Room to give every place back without growing then.
            self.free.reserve(self.slots.len());
            self.slots.len() as u32 - 1
        }
    }

    /// The packet at `id`.
    #[inline]
    pub fn get(&self, id: u32) -> &InFlight {
        &self.slots[id as usize]
    }

    /// Writes back the ECN field with which it left the bottleneck.
    #[inline]
    pub fn set_ecn(&mut self, id: u32, ecn: Ecn) {
        self.slots[id as usize].segment.ecn = ecn;
    }

    /// Gives its place back.
    #[inline]
    pub fn remove(&mut self, id: u32) -> InFlight {
        self.free.push(id);
        self.slots[id as usize]
    }

    /// How many are on their way.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
