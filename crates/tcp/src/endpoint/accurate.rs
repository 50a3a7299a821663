//! Accurate ECN feedback (RFC 9768): what the header's three bits, AE, CWR and ECE, say in a handshake, and how they
//! count marked packets afterwards.
//!
//! | RFC 9768 | here |
//! |---|---|
//! | Table 2, the SYN | [`Feedback::of_syn`](super::feedback::Feedback::of_syn) |
//! | Table 2, the SYN/ACK | [`Feedback::of_synack`](super::feedback::Feedback::of_synack) |
//! | Table 3, the handshake encoding | [`code_of`] |
//! | Table 4, what a server infers of it | [`field_of`] |
//! | `r.cep` | `cep` of an [`Echo`](super::feedback::Echo) |
//! | `s.cep` | `cep` of a [`Heard`](super::feedback::Heard) |
//! | Appendix A.2, `d.cep` and `dSafer.cep` | [`newly_marked`] |
//!
//! # Deviations
//! - Nobody resets a connection (§3.1.5): no end here sends both kinds of SYN.
//! - Continuous marking and a zeroed counter are not tested for (§3.2.2.3 and §3.2.2.4 leave it open).

use crate::segment::Flags;
use base::Ecn;

/// The counter of marked packets begins with this (§3.2.1).
pub(super) const INITIAL: u32 = 5;
/// The most packets whose marks three bits can count.
pub(super) const MOST: u32 = 7;
/// What the bits of a SYN say that asks for accurate feedback, and those of one that asks for the classic one.
pub(super) const ASKS: u32 = 0b111;
pub(super) const ASKS_CLASSIC: u32 = 0b011;
/// What the bits of a SYN/ACK say: no ECN, the classic one, and bits that were merely reflected. All others mean
/// accurate feedback, the reserved one too (§3.1.3).
pub(super) const NONE: u32 = 0b000;
pub(super) const CLASSIC: u32 = 0b001;
pub(super) const BROKEN: u32 = 0b111;

/// The three bits that say which ECN field a packet of the handshake arrived with.
pub(super) fn code_of(field: Ecn) -> u32 {
    match field {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The field that these three bits stand for, if for any.
pub(super) fn field_of(code: u32) -> Option<Ecn> {
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].into_iter().find(|&field| code_of(field) == code)
}

/// Whether a field that was sent as `sent` may arrive as `arrived` (RFC 3168 §18): routers mark what is ECN-capable,
/// and change nothing else. A change from one ECT to the other is not refused.
pub(super) fn may_become(sent: Ecn, arrived: Ecn) -> bool {
    sent == arrived || !matches!(sent, Ecn::NotEct | Ecn::Ce) && arrived != Ecn::NotEct
}

/// How many packets were newly marked, by a field that says `ace` to a sender that knows of `cep` marks, when `packets`
/// more arrived. Where the field may have gone round, it is taken to have done so as often as it can. Linux has another
/// rule (`wraps_linux.rs`).
pub(super) fn newly_marked(ace: u32, cep: u32, packets: u32) -> u32 {
    let least = ace.wrapping_sub(cep) & MOST;
    if packets <= MOST { least } else { packets - (packets.wrapping_sub(least) & MOST) }
}

impl Flags {
    /// AE, CWR and ECE as one number.
    #[inline]
    pub const fn ace(self) -> u32 {
        (self.has(Self::AE) as u32) << 2 | (self.has(Self::CWR) as u32) << 1 | self.has(Self::ECE) as u32
    }

    /// AE, CWR and ECE that say the last three bits of `number`.
    #[inline]
    pub const fn of_ace(number: u32) -> Self {
        let ae = Self::NONE.with_if(Self::AE, number & 4 != 0);
        ae.with_if(Self::CWR, number & 2 != 0).with_if(Self::ECE, number & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever number of packets arrived and however many of them were marked: the result is never too small, it is
    /// right as long as the field cannot have gone round, and it is wrong by whole rounds only.
    #[test]
    fn a_count_is_right_up_to_seven_packets_and_never_too_small() {
        for cep in 0..16 {
            for packets in 0..40_u32 {
                for marked in 0..=packets {
                    let heard = newly_marked((cep + marked) & 7, cep, packets);
                    assert!(heard >= marked && heard <= packets.max(MOST), "{marked} of {packets}: {heard}");
                    assert_eq!((heard - marked) % 8, 0);
                    assert!(packets > MOST || heard == marked);
                    // The safest case: one more round would be more than arrived.
                    assert!(packets <= MOST || heard + 8 > packets);
                }
            }
        }
    }

    #[test]
    fn a_counter_may_say_more_than_arrived() {
        // §3.2.2.5.2: control packets are marked too, and nobody acknowledges these.
        assert_eq!(newly_marked(2, 5, 1), 5);
        assert_eq!(newly_marked(5, 5, 0), 0);
    }

    #[test]
    fn bits_and_numbers_are_the_same() {
        for number in 0..8 {
            assert_eq!(Flags::of_ace(number).ace(), number);
            assert_eq!(Flags::of_ace(number + 8), Flags::of_ace(number));
        }
    }
}
