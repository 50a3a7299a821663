//! This file says which codepoint goes to which of CAKE's tins, and what share of the link each tin may have before it
//! loses its priority (tc-cake(8), "priority queue parameters"; Linux sch_cake.c).

/// How traffic is divided among tins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Diffserv {
    /// All traffic is alike.
    BestEffort,
    /// By the three bits of IP precedence.
    Precedence,
    /// Bulk, best effort, voice.
    Three,
    /// Bulk, best effort, video, voice.
    Four,
    /// Eight classes.
    Eight,
}

/// One tin's share of the rate while its priority holds, and of turns if no rate is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Bytes a second; `None` if the link is not shaped.
    pub rate_bytes: Option<u64>,
    /// Bytes a turn among tins.
    pub quantum: i64,
}

impl Diffserv {
    /// The division that the word of `tc` names.
    pub fn of(word: &str) -> Self {
        match word {
            "besteffort" => Self::BestEffort,
            "precedence" => Self::Precedence,
            "diffserv4" => Self::Four,
            "diffserv8" => Self::Eight,
            _ => Self::Three,
        }
    }

    /// The tin of a codepoint. Of two tins the one with the larger number goes first.
    pub fn tin(self, dscp: u8) -> usize {
        // Codepoints: CS0 to CS7 are 0, 8, .. 56; AFxy 10 to 38; VA 44; EF 46; LE 1; 2 and 4 are the old TOS bits.
        match (self, dscp) {
            (Self::Precedence, _) => usize::from(dscp >> 3 & 7),
            // LE, CS1: bulk.
            (Self::Three | Self::Four, 1 | 8) => 1,
            // TOS4, VA, EF, CS6, CS7: voice.
            (Self::Three, 4 | 44 | 46 | 48 | 56) => 2,
            // TOS4, CS2, AF2x, CS3, AF3x, AF4x: video.
            (Self::Four, 4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38) => 2,
            // CS4, CS5, VA, EF, CS6, CS7: voice.
            (Self::Four, 32 | 40 | 44 | 46 | 48 | 56) => 3,
            (Self::BestEffort | Self::Three | Self::Four, _) => 0,
            (Self::Eight, 1) => 0,
            (Self::Eight, 2 | 8 | 10 | 12 | 14) => 1,
            (Self::Eight, 24 | 26 | 28 | 30 | 34 | 36 | 38) => 3,
            (Self::Eight, 4 | 18 | 20 | 22) => 4,
            (Self::Eight, 16) => 5,
            (Self::Eight, 32 | 40 | 44 | 46) => 6,
            (Self::Eight, 48 | 56) => 7,
            (Self::Eight, _) => 2,
        }
    }

    /// The shares of the tins. If the link is shaped, it has so many bytes a second.
    pub fn shares(self, rate_bytes: Option<u64>) -> Vec<Share> {
        let part = |shift: u32| Share { rate_bytes: rate_bytes.map(|rate| rate >> shift), quantum: 1024 >> shift };
        match self {
            Self::BestEffort => vec![Share { rate_bytes, quantum: 65_535 }],
            Self::Three => vec![part(0), part(4), part(2)],
            Self::Four => vec![part(0), part(4), part(1), part(2)],
            Self::Precedence | Self::Eight => {
                // Each has 7/8 of what the one before has.
                let next = |share: &Share| {
                    let rate_bytes = share.rate_bytes.map(|rate| rate * 7 / 8);
                    Some(Share { rate_bytes, quantum: share.quantum * 7 / 8 })
                };
                std::iter::successors(Some(Share { rate_bytes, quantum: 256 }), next).take(8).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codepoints_go_where_the_manual_says() {
        for (dscp, three, four, eight) in [
            (0, 0, 0, 2),
            (1, 1, 1, 0),  // LE
            (8, 1, 1, 1),  // CS1
            (10, 0, 0, 1), // AF11
            (16, 0, 2, 5), // CS2
            (24, 0, 2, 3), // CS3
            (32, 0, 3, 6), // CS4
            (34, 0, 2, 3), // AF41
            (40, 0, 3, 6), // CS5
            (46, 2, 3, 6), // EF
            (48, 2, 3, 7), // CS6
            (56, 2, 3, 7), // CS7
            (63, 0, 0, 2), // unknown
        ] {
            let tins = [Diffserv::Three, Diffserv::Four, Diffserv::Eight].map(|diffserv| diffserv.tin(dscp));
            assert_eq!(tins, [three, four, eight], "{dscp}");
            assert_eq!(Diffserv::BestEffort.tin(dscp), 0);
            assert_eq!(Diffserv::Precedence.tin(dscp), usize::from(dscp / 8));
        }
    }

    #[test]
    fn shares_are_those_of_the_manual() {
        let rates = |diffserv: Diffserv| -> Vec<u64> {
            diffserv.shares(Some(16_000)).iter().map(|share| share.rate_bytes.expect("given")).collect()
        };
        assert_eq!(rates(Diffserv::Three), [16_000, 1_000, 4_000]);
        assert_eq!(rates(Diffserv::Four), [16_000, 1_000, 8_000, 4_000]);
        assert_eq!(rates(Diffserv::Eight)[..3], [16_000, 14_000, 12_250]);
        assert_eq!(Diffserv::Eight.shares(None)[2], Share { rate_bytes: None, quantum: 196 });
    }
}
