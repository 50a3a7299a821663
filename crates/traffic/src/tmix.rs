//! Tmix plays connections again that were seen on a link. It repeats what their applications did, not their packets.
//!
//! A **connection vector** describes one TCP connection: when it began, what each end wrote, and how long it thought
//! before writing. It also has the conditions of the connection: its round-trip time, both receive windows, and the
//! share of packets lost each way. The *initiator* opens the connection, the *acceptor* is the other end. The bytes
//! that one end writes at a time are a **data unit** (ADU).
//!
//! - In a **sequential** vector the ends take turns. A unit is written a think time after the unit before it: after its
//!   arrival if that was the other end's, and after its writing if it was the same end's. An *epoch* is a unit of the
//!   initiator with the acceptor's answer; either may be missing (a-b-t model).
//! - In a **concurrent** vector each end writes on its own: a think time after it wrote the unit before, or after its
//!   end of the connection was open, whatever arrives.
//!
//! A sequential vector ends when one end closes, a time after the last unit. In a concurrent one each end closes for
//! itself.
//!
//! Sources: Weigle, Adurthi, Hernandez-Campos, Jeffay and Smith, "Tmix: A Tool for Generating Realistic TCP Application
//! Workloads in ns-2", CCR 36(3), 2006; the chapter on Tmix of the ns-2 manual (2.35); Hernandez-Campos, "Generation
//! and Validation of Empirically-Derived TCP Application Workloads", UNC 2006 (the a-b-t model; resampling).
//!
//! - [`reading`]: both published formats. [`resampling`]: fewer or more connections than were seen.
//!
//! Nothing here knows a network. A set takes two arrays, with 40 bytes a connection and 12 a data unit.

pub mod reading;
pub mod resampling;

pub use resampling::{Path, Population, Resampling, Start, Unmet};

use base::{Span, Time};
use std::ops::Range;

/// The end that opens the connection.
pub const INITIATOR: usize = 0;
/// The other end.
pub const ACCEPTOR: usize = 1;

/// A set of connection vectors, in the order of their starts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Vectors {
    heads: Vec<Head>,
    units: Vec<Unit>,
}

/// The fixed part of a connection's vector.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Head {
    start_us: u64,
    /// Where its units begin.
    first: u32,
    rtt_us: u32,
    windows: [u32; 2],
    loss: [f32; 2],
    is_concurrent: bool,
}

/// One thing that one end does: it waits, then writes or closes. Size and wait take 40 bits each, so that a unit has
/// three words: the low word of each, then the high bytes of both and the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit([u32; 3]);

/// One connection vector.
#[derive(Clone, Copy, Debug)]
pub struct Vector<'v> {
    head: &'v Head,
    units: &'v [Unit],
}

impl Unit {
    /// Largest size in bytes and longest wait in microseconds, exclusive.
    pub const LIMIT: u64 = 1 << 40;

    /// A unit in which `end` waits so many microseconds and writes so many bytes, or closes if there are none.
    fn new(end: usize, wait_us: u64, bytes: u64) -> Self {
        assert!(wait_us < Self::LIMIT && bytes < Self::LIMIT, "the reader keeps to the limit");
        Self([bytes as u32, wait_us as u32, (bytes >> 32 | (wait_us >> 32) << 8 | (end as u64) << 16) as u32])
    }

    /// Which end does it: [`INITIATOR`] or [`ACCEPTOR`].
    #[inline]
    pub const fn end(self) -> usize {
        (self.0[2] >> 16) as usize
    }

    /// Bytes to write; 0 closes.
    #[inline]
    pub const fn bytes(self) -> u64 {
        self.0[0] as u64 | (self.0[2] as u64 & 0xff) << 32
    }

    /// How long to wait before.
    #[inline]
    pub const fn wait(self) -> Span {
        Span::from_us(self.0[1] as u64 | (self.0[2] as u64 >> 8 & 0xff) << 32)
    }

    /// Whether it is the end of what this end does.
    #[inline]
    pub const fn closes(self) -> bool {
        self.0[0] == 0 && self.0[2] & 0xff == 0
    }
}

impl Vectors {
    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// The vector at `index`, in the order of starts.
    pub fn get(&self, index: u32) -> Vector<'_> {
        let index = index as usize;
        let head = &self.heads[index];
        let end = self.heads.get(index + 1).map_or(self.units.len(), |next| next.first as usize);
        Vector { head, units: &self.units[head.first as usize..end] }
    }

    /// Where the units of the vector at `index` are among those of all.
    pub fn places(&self, index: u32) -> Range<u32> {
        let first = self.heads[index as usize].first;
        first..first + self.get(index).units.len() as u32
    }

    /// The unit at `place` among those of all vectors.
    #[inline]
    pub fn unit(&self, place: u32) -> Unit {
        self.units[place as usize]
    }

    /// The units at `places` among those of all vectors.
    #[inline]
    pub fn units(&self, places: Range<u32>) -> &[Unit] {
        &self.units[places.start as usize..places.end as usize]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Vector<'_>> {
        (0..self.heads.len() as u32).map(|index| self.get(index))
    }

    /// The largest receive window of any end.
    pub fn largest_window(&self) -> u32 {
        self.heads.iter().flat_map(|head| head.windows).max().unwrap_or(0)
    }

    /// The connections of both sets as if they had been seen on one link, in the order of their starts. Of those that
    /// start together, the ones of `self` come first.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        let mut both = Self {
            heads: Vec::with_capacity(self.heads.len() + other.heads.len()),
            units: Vec::with_capacity(self.units.len() + other.units.len()),
        };
        let (mut ours, mut theirs) = (self.iter().peekable(), other.iter().peekable());
        loop {
            let next = match (ours.peek(), theirs.peek()) {
                (Some(a), Some(b)) if b.head.start_us < a.head.start_us => theirs.next(),
                (Some(_), _) => ours.next(),
                (None, _) => theirs.next(),
            };
            let Some(vector) = next else { return both };
            both.heads.push(Head { first: both.units.len() as u32, ..*vector.head });
            both.units.extend_from_slice(vector.units);
        }
    }
}

impl<'v> Vector<'v> {
    /// When the connection begins, from the start of the set.
    pub fn start(&self) -> Time {
        Time::ZERO + Span::from_us(self.head.start_us)
    }

    /// Round-trip time.
    pub fn rtt(&self) -> Span {
        Span::from_us(self.head.rtt_us.into())
    }

    /// Receive windows of initiator and acceptor, bytes.
    pub fn windows(&self) -> [u32; 2] {
        self.head.windows
    }

    /// Share of the packets lost that the initiator, and that the acceptor sends.
    pub fn loss(&self) -> [f64; 2] {
        self.head.loss.map(f64::from)
    }

    /// Whether both ends write independently.
    pub fn is_concurrent(&self) -> bool {
        self.head.is_concurrent
    }

    /// What the ends do: in its order where they take turns, otherwise the initiator's part before the acceptor's.
    pub fn units(&self) -> &'v [Unit] {
        self.units
    }

    /// Bytes that initiator and acceptor write in all.
    pub fn bytes(&self) -> [u64; 2] {
        self.units.iter().fold([0; 2], |mut bytes, unit| {
            bytes[unit.end()] += unit.bytes();
            bytes
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_keeps_what_it_is_given() {
        for (end, wait, bytes) in [(0, 0, 0), (1, 0, 1), (0, Unit::LIMIT - 1, 0), (1, 1 << 33, Unit::LIMIT - 1)] {
            let unit = Unit::new(end, wait, bytes);
            assert_eq!((unit.end(), unit.wait(), unit.bytes()), (end, Span::from_us(wait), bytes));
            assert_eq!(unit.closes(), bytes == 0);
        }
    }

    /// What the module's text says; a million connections of ten units are then 160 MB.
    #[test]
    fn a_connection_takes_forty_bytes_and_a_unit_twelve() {
        assert_eq!((size_of::<Head>(), size_of::<Unit>()), (40, 12));
    }

    #[test]
    fn sets_merge_in_the_order_of_their_starts() {
        let vector = |start: u64, bytes: u64| format!("S {start} 1\nw 1 1\nr 1\nl 0 0\nI 0 0 {bytes}\n");
        let [one, other] = [[(5, 7), (9, 8)], [(5, 9), (7, 10)]].map(|set| {
            let text: String = set.map(|(start, bytes)| vector(start, bytes)).concat();
            reading::read(&text).expect("a set")
        });
        let merged = one.merged(other);
        let found: Vec<_> = merged.iter().map(|v| (v.start().ns() / 1000, v.units()[0].bytes())).collect();
        assert_eq!(found, [(5, 7), (5, 9), (7, 10), (9, 8)]);
        assert!(merged.iter().all(|vector| vector.units().len() == 2), "with its close");
    }
}
