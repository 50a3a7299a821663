//! What packets take of a wire beyond their own size: bytes of framing, and cells that are sent whole.

/// How a wire is cut into cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cells {
    /// It is not.
    #[default]
    None,
    /// ATM: whole cells of 48 bytes, 53 on the wire, as AAL5 pads to (ITU-T I.363.5).
    Atm,
    /// PTM of VDSL2: a byte for each 64 or part of them (IEEE 802.3 §61.3.3: 64/65-octet encapsulation).
    Ptm,
}

impl Cells {
    /// The words for them, as tc-cake(8) has them.
    pub const WORDS: [(&'static str, Self); 3] = [("noatm", Self::None), ("atm", Self::Atm), ("ptm", Self::Ptm)];

    /// Bytes on the wire for so many that are framed.
    #[inline]
    pub const fn wire(self, bytes: u32) -> u32 {
        match self {
            Self::None => bytes,
            Self::Atm => bytes.div_ceil(48) * 53,
            Self::Ptm => bytes + bytes.div_ceil(64),
        }
    }
}

/// The framing of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Framing {
    /// Bytes of each packet beyond its IP size.
    pub overhead: u32,
    /// Cells that these and the packet are sent in.
    pub cells: Cells,
}

impl Framing {
    /// Bytes on the wire for a packet of `size`.
    #[inline]
    pub const fn wire(self, size: u32) -> u32 {
        self.cells.wire(size + self.overhead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_sent_whole() {
        let atm = |overhead: u32| Framing { overhead, cells: Cells::Atm };
        // Worked out by hand: an acknowledgement of 40 bytes over IP in AAL5 has a trailer of 8 bytes, 48 in all.
        assert_eq!(atm(8).wire(40), 53);
        assert_eq!(atm(9).wire(40), 106);
        // PPPoE over LLC/SNAP, 40 bytes: 1500 are 1540 in 33 cells (32 hold 1536).
        assert_eq!(atm(40).wire(1500), 33 * 53);
        assert_eq!(atm(36).wire(1500), 32 * 53);
        let ptm = Framing { overhead: 0, cells: Cells::Ptm };
        assert_eq!([ptm.wire(64), ptm.wire(65)], [65, 67]);
        assert_eq!(Framing { overhead: 38, cells: Cells::None }.wire(1500), 1538);
    }
}
