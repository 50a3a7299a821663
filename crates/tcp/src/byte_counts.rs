//! The AccECN option as a segment carries it (RFC 9768 §3.2.3): up to three counters of bytes, in one of two orders.

/// The order of the counters, which is the option's kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// AccECN0: EE0B, ECEB, EE1B.
    Ect0First,
    /// AccECN1: EE1B, ECEB, EE0B.
    Ect1First,
}

/// Counters of bytes by the field that they came with, as far as an option has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteCounts {
    /// Their order.
    pub order: Order,
    /// The counters in that order, the first `len` of which are there: the last 24 bits of each.
    counters: [u32; Self::MOST],
    len: u8,
}

impl ByteCounts {
    /// A full option.
    pub const MOST: usize = 3;
    /// A counter goes round here.
    pub const MODULUS: u32 = 1 << 24;

    /// The first `len` of these counters, in this order.
    pub fn new(order: Order, counters: [u32; Self::MOST], len: usize) -> Self {
        let counters = counters.map(|counter| counter % Self::MODULUS);
        Self { order, counters, len: len.min(Self::MOST) as u8 }
    }

    /// The counters that are there.
    pub fn counters(&self) -> &[u32] {
        &self.counters[..usize::from(self.len)]
    }

    /// Bytes on the link: kind, length and three for each counter, padded to words.
    pub fn option_bytes(&self) -> u32 {
        (2 + 3 * u32::from(self.len)).next_multiple_of(4)
    }

    /// Above the two counters that a word holds there is how many counters there are, and then their order.
    const LEN_AT: u32 = 48;
    const ORDER_BIT: u64 = 4 << Self::LEN_AT;

    /// The option in the room of two reports.
    pub(crate) fn packed(&self) -> [u64; 2] {
        let [first, second, third] = self.counters.map(u64::from);
        let order = if self.order == Order::Ect1First { Self::ORDER_BIT } else { 0 };
        [third, first | second << 24 | u64::from(self.len) << Self::LEN_AT | order]
    }

    /// The option that was [packed](Self::packed) so. The room of the first report may have one, where two counters are
    /// all.
    pub(crate) fn unpacked([more, room]: [u64; 2]) -> Self {
        let len = (room >> Self::LEN_AT & 3) as usize;
        let order = if room & Self::ORDER_BIT != 0 { Order::Ect1First } else { Order::Ect0First };
        let third = if len == Self::MOST { more as u32 } else { 0 };
        Self::new(order, [room as u32, (room >> 24) as u32, third], len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_comes_out_as_it_went_in() {
        for order in [Order::Ect0First, Order::Ect1First] {
            for len in 0..=ByteCounts::MOST {
                for counters in [[1, 0, 1], [0xff_ffff; 3], [0x01_2345, 0x67_89ab, 0xcd_ef01], [1 << 24, 5, 1 << 25]] {
                    let mut counters = counters;
                    counters[len..].fill(0);
                    let option = ByteCounts::new(order, counters, len);
                    assert_eq!(ByteCounts::unpacked(option.packed()), option);
                    assert_eq!(option.counters(), counters.map(|counter| counter & 0xff_ffff)[..len].to_vec());
                }
            }
        }
        let bytes = |len| ByteCounts::new(Order::Ect0First, [1, 0, 1], len).option_bytes();
        assert_eq!([0, 1, 2, 3].map(bytes), [4, 8, 8, 12]);
    }
}
