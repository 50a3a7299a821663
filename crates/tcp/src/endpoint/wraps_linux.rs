//! How Linux counts marks where an acknowledgement covers more packets than three bits can count marks of, so that
//! these may have gone round.
//!
//! | packets | an option | count |
//! |---|---|---|
//! | up to 7 | any | the least that the bits allow, which is exact |
//! | more | tells nothing of marks | the least if acknowledgements usually cover more than four, else the greatest |
//! | more | says that no byte was marked | the least |
//! | 8 to 15 | says that more bytes were marked than the least count takes | the greatest |
//! | | says that less were than half of what the greatest takes | the least |
//! | | says something between | the greatest |
//! | 16 and more | says that all bytes were marked, or more | the greatest |
//! | | says that some were | the least, and whole rounds of eight of as many packets as have that share |
//!
//! What the option tells counts only where it was foreseen. An end supposes that what arrives next has the ECN field
//! whose counter the last option added to. Acknowledgements without an option then count as if they said so. If another
//! counter is seen to change, it is the one that is supposed from then on. Nothing is supposed, and the option tells
//! nothing, where two others change at once or one falls, as it does when too much was supposed.
//!
//! Source: Linux 7.3, tcp_input.c (__tcp_accecn_process, tcp_accecn_process_option).
//!
//! | Linux | here |
//! |---|---|
//! | `pkts_acked_ewma` | `mean` of [`Usual`] |
//! | `est_ecnfield` | `supposed` of [`Foreseen`] |
//! | `opt_deltas_valid` | [`Foreseen::read`] and [`Foreseen::suppose`] answer with bytes |
//! | `delivered_pkts`, `delivered_bytes` | `packets` and `told_bytes` of [`Arrival`] |
//! | `delta`, `safe_delta`, `d_ceb` | `least`, `greatest`, `bytes` |
//!
//! # Deviations
//! - An option that comes for the first time after 8 MB is read.

use super::accurate::MOST;
use super::option::{CEB, in_order};
use crate::byte_counts::{ByteCounts, Order};

/// Binary digits of the mean after its point, and the weight of the newest number of packets: 1/64.
const DIGITS: u32 = 6;
const WEIGHT: u32 = 6;
/// If acknowledgements usually cover more packets than this, those that cover many are no sign of losses.
const MANY: u16 = 4 << DIGITS;

/// How many packets an acknowledgement usually covers, where that decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Usual {
    is_kept: bool,
    /// The moving average; zero before the first.
    mean: u16,
}

base::packed!(Usual { is_kept, mean });

impl Usual {
    /// Nothing is counted by it.
    pub const OFF: Self = Self { is_kept: false, mean: 0 };

    /// Nothing was acknowledged yet.
    pub const fn kept_if(is_kept: bool) -> Self {
        Self { is_kept, mean: 0 }
    }

    /// Notes an acknowledgement of so many packets, if it covers any.
    #[inline]
    pub fn note(&mut self, packets: u32) {
        if self.is_kept && packets > 0 {
            let (mean, newest) = (u32::from(self.mean), packets << DIGITS);
            let mean = if mean == 0 { newest } else { ((mean << WEIGHT) - mean + newest) >> WEIGHT };
            self.mean = mean.min(u16::MAX.into()) as u16;
        }
    }

    /// Which of two counts holds, where nothing else tells.
    pub fn choose(self, [least, greatest]: [u32; 2]) -> u32 {
        if self.mean > MANY { least } else { greatest }
    }
}

/// What an acknowledgement tells that arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Arrival {
    /// Packets that were not told of before.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that it acknowledges in order, whether or not they were reported before; of one that acknowledges none,
    /// those that it reports. Without packets, none.
    pub told_bytes: u64,
    /// Bytes of a full segment.
    pub mss: u32,
}

impl Arrival {
    /// Nothing.
    pub const NONE: Self = Self { packets: 0, bytes: 0, told_bytes: 0, mss: 0 };

    /// The bytes of so many of its packets.
    pub fn share(self, packets: u32) -> u64 {
        match self.packets {
            0 => u64::from(packets) * u64::from(self.mss),
            all => self.bytes * u64::from(packets) / u64::from(all),
        }
    }

    /// How many of its packets came marked, of those counts that the bits allow, if `bytes` did.
    pub fn marked(self, bytes: u64, [least, greatest]: [u32; 2]) -> u32 {
        let (mss, packets) = (u64::from(self.mss), u64::from(self.packets));
        if self.packets <= MOST || bytes == 0 {
            least
        } else if self.packets > 2 * MOST + 1 {
            if self.told_bytes <= bytes {
                return greatest;
            }
            let supposed = (bytes * packets).div_ceil(self.told_bytes) as u32;
            greatest.min(least + (supposed & !MOST))
        } else if bytes <= u64::from(least) * mss && bytes < u64::from(greatest) * mss / 2 {
            least
        } else {
            greatest
        }
    }
}

/// What is foreseen of the peer's counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Foreseen {
    /// The counter that is supposed to grow next.
    supposed: Option<usize>,
}

impl Foreseen {
    /// Adds to `counts` what an acknowledgement of `bytes` says without an option. Returns how many of these were
    /// marked, if that can be told.
    pub fn suppose(self, counts: &mut [u32; 3], bytes: u64) -> Option<u64> {
        let before = counts[CEB];
        let supposed = self.supposed?;
        counts[supposed] = counts[supposed].wrapping_add(bytes as u32);
        Some(counts[CEB].wrapping_sub(before).into())
    }

    /// Reads an option into `counts`. Returns how many bytes were marked since the last, if that can be told.
    pub fn read(&mut self, counts: &mut [u32; 3], option: &ByteCounts) -> Option<u64> {
        let (before, supposed) = (counts[CEB], self.supposed);
        let mut known = in_order(option.order, *counts);
        let (mut changed, mut falls) = (0_u32, false);
        for (place, (count, &counter)) in known.iter_mut().zip(option.counters()).enumerate() {
            // The 24 bits of the difference, with the sign of their first.
            let more = (counter.wrapping_sub(*count) << 8) as i32 >> 8;
            *count = count.wrapping_add_signed(more);
            falls |= more < 0;
            changed |= u32::from(more != 0) << place;
        }
        *counts = in_order(option.order, known);
        // Where a counter stands in this order, and which one stands there.
        let turned = |place: usize| match option.order {
            Order::Ect0First => place,
            Order::Ect1First => 2 - place,
        };
        let others = changed & !supposed.map_or(0, |counter| 1 << turned(counter));
        if falls || others != 0 && !others.is_power_of_two() {
            self.supposed = None;
            return None;
        }
        if others != 0 {
            self.supposed = Some(turned(others.trailing_zeros() as usize));
        }
        supposed.map(|_| counts[CEB].wrapping_sub(before).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean begins with the first number, and moves by a 64th of the difference, rounded down to a 64th.
    #[test]
    fn what_acknowledgements_usually_cover() {
        let mut usual = Usual::kept_if(true);
        let mut after = |packets, times| {
            (0..times).for_each(|_| usual.note(packets));
            (usual.mean, usual.choose([1, 9]))
        };
        assert_eq!(after(0, 1), (0, 9));
        assert_eq!(after(5, 1), (320, 1));
        assert_eq!(after(1, 1), (316, 1));
        // 1 + 4 (63/64)^n is less than 4 from n = 19 on, and with what is cut off from 16 on.
        assert_eq!(after(1, 14), (260, 1));
        assert_eq!(after(1, 1), (256, 9));
        assert_eq!(after(10, 1), (262, 1));
        assert_eq!(after(100_000, 1), (u16::MAX, 1));
        let mut never = Usual::kept_if(false);
        never.note(100);
        assert_eq!((never, never.choose([1, 9])), (Usual::OFF, 9));
    }

    /// Full segments of 1,000 bytes, of which some came marked.
    #[test]
    fn bytes_decide_between_two_counts() {
        let of = |packets: u32, marked: u32, bytes| {
            let all = u64::from(packets) * 1_000;
            let least = marked % 8;
            let greatest = packets - (packets - least) % 8;
            Arrival { packets, bytes: all, told_bytes: all, mss: 1_000 }.marked(bytes, [least, greatest])
        };
        for packets in 8..200 {
            for marked in 0..=packets {
                let counted = of(packets, marked, u64::from(marked) * 1_000);
                // From 16 on the share of the bytes is exact.
                assert!(counted == marked || packets < 16 && marked < 8, "{marked} of {packets}: {counted}");
            }
        }
        // 8 to 15: fewer than half of what the greatest count takes, and half.
        assert_eq!([of(15, 7, 7_000), of(15, 7, 7_499), of(15, 7, 7_500)], [7, 15, 15]);
        assert_eq!([of(15, 1, 1_000), of(15, 1, 1_001), of(15, 1, 0)], [1, 9, 1]);
        assert_eq!([of(8, 0, 1), of(8, 0, 0)], [8, 0]);
    }

    #[test]
    fn what_is_foreseen_and_what_is_not() {
        let option = |e1b, ceb, e0b| ByteCounts::new(Order::Ect1First, [e1b, ceb, e0b], 3);
        let (mut counts, mut foreseen) = ([1, 0, 1], Foreseen::default());
        assert_eq!(foreseen.suppose(&mut counts, 10), None);
        // The first to change is supposed from then on.
        assert_eq!(foreseen.read(&mut counts, &option(1, 0, 11)), None);
        assert_eq!(foreseen.suppose(&mut counts, 10), Some(0));
        assert_eq!(counts, [21, 0, 1]);
        assert_eq!(foreseen.read(&mut counts, &option(1, 5, 31)), Some(5));
        // Marks are, now.
        assert_eq!(foreseen.suppose(&mut counts, 10), Some(10));
        // One falls: too much was supposed.
        assert_eq!(foreseen.read(&mut counts, &option(1, 5, 41)), None);
        assert_eq!((counts, foreseen.suppose(&mut counts, 10)), ([41, 5, 1], None));
        assert_eq!(foreseen.read(&mut counts, &option(1, 5, 51)), None);
        // Two others change at once.
        assert_eq!(foreseen.read(&mut counts, &option(3, 9, 51)), None);
        assert_eq!(foreseen.read(&mut counts, &option(3, 13, 51)), None);
        assert_eq!(foreseen.read(&mut counts, &option(3, 14, 51)), Some(1));
    }
}
