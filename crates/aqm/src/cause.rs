//! This file says why packets are lost and marked. There are five kinds of causes. A discipline from outside may have
//! causes of its own besides; each has a name and counts as one of the kinds, so that sums over the kinds are whole.

use std::fmt;
use std::sync::{PoisonError, RwLock};

/// Why a packet was lost or marked: a kind of cause, or a discipline's own cause of that kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cause {
    /// The number of the kind, below the length of [`Cause::ALL`].
    kind: u8,
    /// Which name it has, from 1; 0 for the kind itself.
    own: u16,
}

/// The names of own causes. They stay for as long as the process: there are as many as laws have declared in it.
static NAMES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

impl Cause {
    /// The hard limit of the queue was reached.
    pub const TAIL: Self = Self::kind_of(0);
    /// The law drew this packet: a random or computed early signal.
    pub const EARLY: Self = Self::kind_of(1);
    /// The law's control variable is above the threshold from which it signals every packet.
    pub const FORCED: Self = Self::kind_of(2);
    /// The law drops a packet that it could have marked, because congestion is too heavy for marks.
    pub const OVERLOAD: Self = Self::kind_of(3);
    /// The packet is an acknowledgement that a later one makes superfluous.
    pub const FILTERED: Self = Self::kind_of(4);

    /// Every kind, in the order of its number.
    pub const ALL: [Self; 5] = [Self::TAIL, Self::EARLY, Self::FORCED, Self::OVERLOAD, Self::FILTERED];

    const fn kind_of(kind: u8) -> Self {
        Self { kind, own: 0 }
    }

    /// A discipline's own cause called `name`, which counts as `kind`. Causes of one name and kind are equal.
    ///
    /// `None` once the process has 65,535 names.
    pub fn own(name: &str, kind: Self) -> Option<Self> {
        let mut names = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        let at = names.iter().position(|known| *known == name).unwrap_or(names.len());
        let own = u16::try_from(at + 1).ok()?;
        if at == names.len() {
            names.push(Box::leak(name.into()));
        }
        Some(Self { own, ..kind })
    }

    /// Where it stands in counts by kind.
    #[inline]
    pub const fn index(self) -> usize {
        self.kind as usize
    }

    /// The kind that it counts as.
    pub const fn kind(self) -> Self {
        Self::kind_of(self.kind)
    }

    /// Whether it is a discipline's own.
    #[inline]
    pub const fn is_own(self) -> bool {
        self.own != 0
    }

    /// The word used in tables.
    pub fn name(self) -> &'static str {
        if let Some(at) = usize::from(self.own).checked_sub(1) {
            return NAMES.read().unwrap_or_else(PoisonError::into_inner)[at];
        }
        ["tail", "early", "forced", "overload", "filtered"][self.index()]
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A discipline's own cause, as its row has it.
#[derive(Clone, Debug)]
pub struct OwnCause {
    /// The cause.
    pub cause: Cause,
    /// What it is, in a sentence.
    pub doc: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_causes_have_names_and_count_as_kinds() {
        let burst = Cause::own("burst", Cause::FORCED).expect("there is room");
        assert_eq!((burst.name(), burst.index(), burst.kind()), ("burst", 2, Cause::FORCED));
        assert!(burst.is_own() && burst != Cause::FORCED);
        assert_eq!(Cause::own("burst", Cause::FORCED), Some(burst));
        let drawn = Cause::own("burst", Cause::EARLY).expect("there is room");
        assert!(drawn != burst && drawn.name() == "burst");
        assert_eq!(Cause::own("probe", burst.kind()).map(Cause::name), Some("probe"));
    }

    #[test]
    fn kinds_are_numbered_as_they_are_listed() {
        assert!(Cause::ALL.iter().enumerate().all(|(at, kind)| kind.index() == at && !kind.is_own()));
        assert_eq!(Cause::ALL.map(Cause::name), ["tail", "early", "forced", "overload", "filtered"]);
    }
}
