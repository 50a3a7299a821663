//! What a router reads in a packet: the ECN field and the flow.

/// The two ECN bits of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport.
    #[default]
    NotEct = 0,
    /// ECN-capable, ECT(1): the identifier of L4S (RFC 9331).
    Ect1 = 1,
    /// ECN-capable, ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// Whether a router may mark this packet instead of dropping it.
    pub const fn is_ect(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// A flow, as a router tells one from another: a value that stands for the 5-tuple.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct FlowKey(pub u64);

impl FlowKey {
    /// Sixty-four well-mixed bits of this flow under `salt`, the same on every machine (the finalizer of
    /// splitmix64, Steele, Lea and Flood 2014).
    pub const fn hash(self, salt: u64) -> u64 {
        crate::maths::mix64(self.0 ^ crate::maths::mix64(salt ^ 0x9e37_79b9_7f4a_7c15))
    }
}
