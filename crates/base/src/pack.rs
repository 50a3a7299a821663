//! Packing puts state that is not needed for a while into as few bytes as its values take.
//!
//! A value is packed as words. A word of zero takes a bit, any other one a bit and a byte for each seven of its bits.
//! So what is as it was at first takes next to nothing. Unpacking gives the same value again, bit for bit.
//!
//! [`packed!`](crate::packed) writes how a type is packed from the list of its fields or variants. One that is missing
//! does not compile. What is rare, large or manifold is [left whole](crate::left_whole) and lies beside the bytes.

use crate::{Ecn, FlowKey, Span, Time};
use std::any::Any;
use std::array;
use std::collections::VecDeque;

/// A value that can be packed.
pub trait Pack: Sized {
    /// Adds the value to what is packed.
    fn pack(&self, to: &mut Packer);

    /// Takes the value out again.
    fn unpack(from: &mut Unpacker<'_>) -> Self;

    /// Becomes the value that is taken out, in the memory that this one has.
    fn restore(&mut self, from: &mut Unpacker<'_>) {
        *self = Self::unpack(from);
    }
}

/// What was left whole.
pub type Whole = Box<dyn Any + Send + Sync>;

/// Where values are packed.
#[derive(Default)]
pub struct Packer {
    bytes: Vec<u8>,
    whole: Vec<Whole>,
    words: usize,
    /// Where the bits of the last eight words are.
    bits_at: usize,
}

/// Words of which the bits are in one byte.
const GROUP: usize = 8;
/// Bits of a word in a byte, and the bit that says that more follow.
const BITS: u32 = 7;
const MORE: u8 = 1 << BITS;

impl Packer {
    /// Adds a word.
    pub fn word(&mut self, mut word: u64) {
        let bit = self.words % GROUP;
        self.words += 1;
        if bit == 0 {
            self.bits_at = self.bytes.len();
            self.bytes.push(0);
        }
        if word == 0 {
            return;
        }
        self.bytes[self.bits_at] |= 1 << bit;
        while word >= u64::from(MORE) {
            self.bytes.push(word as u8 | MORE);
            word >>= BITS;
        }
        self.bytes.push(word as u8);
    }

    /// Adds something whole.
    pub fn whole(&mut self, whole: impl Any + Send + Sync) {
        self.whole.push(Box::new(whole));
    }

    /// What was packed, and what was left whole. The next value begins anew.
    pub fn finish(&mut self) -> (Box<[u8]>, Vec<Whole>) {
        let packed = Box::from(&self.bytes[..]);
        self.bytes.clear();
        self.words = 0;
        (packed, std::mem::take(&mut self.whole))
    }
}

/// What was packed, while it is taken out in the same order.
pub struct Unpacker<'a> {
    bytes: &'a [u8],
    whole: &'a [Whole],
    words: usize,
    bits: u8,
}

impl<'a> Unpacker<'a> {
    /// Begins to take out what [`Packer::finish`] gave.
    pub fn new(bytes: &'a [u8], whole: &'a [Whole]) -> Self {
        Self { bytes, whole, words: 0, bits: 0 }
    }

    fn byte(&mut self) -> u8 {
        let (&byte, rest) = self.bytes.split_first().expect("as much is taken out as was packed");
        self.bytes = rest;
        byte
    }

    /// Takes a word out.
    pub fn word(&mut self) -> u64 {
        let bit = self.words % GROUP;
        self.words += 1;
        if bit == 0 {
            self.bits = self.byte();
        }
        if self.bits & 1 << bit == 0 {
            return 0;
        }
        let (mut word, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            word |= u64::from(byte & !MORE) << shift;
            shift += BITS;
            if byte & MORE == 0 {
                return word;
            }
        }
    }

    /// Takes out something that was left whole.
    pub fn whole<T: Any + Clone>(&mut self) -> T {
        let (first, rest) = self.whole.split_first().expect("as much is taken out as was left whole");
        self.whole = rest;
        first.downcast_ref::<T>().expect("it is taken out as what it was").clone()
    }

    /// Whether everything was taken out.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.whole.is_empty()
    }
}

/// Says how a type is packed: a structure by its fields, a tuple of one by a name for that, an enumeration by its
/// variants with a name for what each of them has.
///
/// ```
/// use base::{Pack, Packer, Span, Unpacker, packed};
///
/// #[derive(Clone, PartialEq, Debug)]
/// struct Estimate {
///     mean: Span,
///     samples: u32,
/// }
///
/// packed!(Estimate { mean, samples });
///
/// let estimate = Estimate { mean: Span::from_ms(20), samples: 0 };
/// let mut packer = Packer::default();
/// estimate.pack(&mut packer);
/// let (bytes, whole) = packer.finish();
/// assert!(bytes.len() < size_of::<Estimate>());
/// assert_eq!(Estimate::unpack(&mut Unpacker::new(&bytes, &whole)), estimate);
/// ```
#[macro_export]
macro_rules! packed {
    ($name:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::Pack for $name {
            fn pack(&self, to: &mut $crate::Packer) {
                let Self { $($field),+ } = self;
                $($crate::Pack::pack($field, to);)+
            }

            fn unpack(from: &mut $crate::Unpacker<'_>) -> Self {
                Self { $($field: $crate::Pack::unpack(from)),+ }
            }

            fn restore(&mut self, from: &mut $crate::Unpacker<'_>) {
                let Self { $($field),+ } = self;
                $($crate::Pack::restore($field, from);)+
            }
        }
    };
    ($name:ident($field:ident)) => {
        impl $crate::Pack for $name {
            fn pack(&self, to: &mut $crate::Packer) {
                let Self($field) = self;
                $crate::Pack::pack($field, to);
            }

            fn unpack(from: &mut $crate::Unpacker<'_>) -> Self {
                Self($crate::Pack::unpack(from))
            }

            fn restore(&mut self, from: &mut $crate::Unpacker<'_>) {
                let Self($field) = self;
                $crate::Pack::restore($field, from);
            }
        }
    };
    ($name:ident: $($variant:ident $(($state:ident))? $({ $field:ident })?)|+) => {
        const _: () = {
            enum Which {
                $($variant),+
            }

            impl $crate::Pack for $name {
                fn pack(&self, to: &mut $crate::Packer) {
                    match self {
                        $(Self::$variant $(($state))? $({ $field })? => {
                            to.word(Which::$variant as u64);
                            $($crate::Pack::pack($state, to);)?
                            $($crate::Pack::pack($field, to);)?
                        })+
                    }
                }

                fn unpack(from: &mut $crate::Unpacker<'_>) -> Self {
                    match from.word() {
                        $(word if word == Which::$variant as u64 => {
                            $(let $state = $crate::Pack::unpack(from);)?
                            $(let $field = $crate::Pack::unpack(from);)?
                            Self::$variant $(($state))? $({ $field })?
                        })+
                        _ => unreachable!("it was packed as one of these"),
                    }
                }
            }
        };
    };
}

/// Lets values of some types lie whole beside what is packed.
#[macro_export]
macro_rules! left_whole {
    ($($name:ident),+) => {
        $(impl $crate::Pack for $name {
            fn pack(&self, to: &mut $crate::Packer) {
                to.whole(self.clone());
            }

            fn unpack(from: &mut $crate::Unpacker<'_>) -> Self {
                from.whole()
            }
        })+
    };
}

macro_rules! packed_numbers {
    ($($number:ty),+) => {
        $(impl Pack for $number {
            fn pack(&self, to: &mut Packer) {
                to.word(u64::from(*self));
            }

            fn unpack(from: &mut Unpacker<'_>) -> Self {
                from.word() as $number
            }
        })+
    };
}

packed_numbers!(u8, u16, u32);
packed!(FlowKey(number));
packed!(Ecn: NotEct | Ect1 | Ect0 | Ce);

/// As a signed number with its sign last: the largest number of all often stands for what is not known.
impl Pack for u64 {
    fn pack(&self, to: &mut Packer) {
        to.word(self << 1 ^ ((*self as i64) >> 63) as u64);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let word = from.word();
        word >> 1 ^ (word & 1).wrapping_neg()
    }
}

impl Pack for bool {
    fn pack(&self, to: &mut Packer) {
        to.word(u64::from(*self));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        from.word() != 0
    }
}

/// From its last byte: round numbers end with zeros.
impl Pack for f64 {
    fn pack(&self, to: &mut Packer) {
        to.word(self.to_bits().swap_bytes());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::from_bits(from.word().swap_bytes())
    }
}

impl Pack for Time {
    fn pack(&self, to: &mut Packer) {
        self.ns().pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::from_ns(u64::unpack(from))
    }
}

impl Pack for Span {
    fn pack(&self, to: &mut Packer) {
        self.ns().pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::from_ns(u64::unpack(from))
    }
}

impl<T: Pack, const N: usize> Pack for [T; N] {
    fn pack(&self, to: &mut Packer) {
        self.iter().for_each(|each| each.pack(to));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        array::from_fn(|_| T::unpack(from))
    }

    fn restore(&mut self, from: &mut Unpacker<'_>) {
        self.iter_mut().for_each(|each| each.restore(from));
    }
}

impl<A: Pack, B: Pack> Pack for (A, B) {
    fn pack(&self, to: &mut Packer) {
        self.0.pack(to);
        self.1.pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        (A::unpack(from), B::unpack(from))
    }
}

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, to: &mut Packer) {
        self.is_some().pack(to);
        self.iter().for_each(|it| it.pack(to));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        bool::unpack(from).then(|| T::unpack(from))
    }

    fn restore(&mut self, from: &mut Unpacker<'_>) {
        match self {
            Some(it) if bool::unpack(from) => it.restore(from),
            Some(_) => *self = None,
            None => *self = Self::unpack(from),
        }
    }
}

impl<T: Pack> Pack for Box<T> {
    fn pack(&self, to: &mut Packer) {
        T::pack(self, to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        Self::new(T::unpack(from))
    }

    fn restore(&mut self, from: &mut Unpacker<'_>) {
        T::restore(self, from);
    }
}

impl<T: Pack> Pack for VecDeque<T> {
    fn pack(&self, to: &mut Packer) {
        to.word(self.len() as u64);
        self.iter().for_each(|each| each.pack(to));
    }

    fn unpack(from: &mut Unpacker<'_>) -> Self {
        let mut all = Self::new();
        all.restore(from);
        all
    }

    fn restore(&mut self, from: &mut Unpacker<'_>) {
        self.clear();
        self.extend((0..from.word()).map(|_| T::unpack(from)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stream;

    #[derive(Clone, PartialEq, Debug)]
    enum Kind {
        Small,
        Large(Box<u8>),
        Named { by: bool },
    }

    packed!(Kind: Small | Large(size) | Named { by });

    #[derive(Clone, PartialEq, Debug)]
    struct Rare([u64; 4]);

    left_whole!(Rare);

    #[derive(Clone, PartialEq, Debug)]
    struct State {
        at: Time,
        wait: Option<Span>,
        share: f64,
        is_open: bool,
        counts: [u32; 2],
        kind: Kind,
        list: VecDeque<(u64, u8)>,
        boxed: Option<Box<State>>,
        rare: Option<Box<Rare>>,
        field: Ecn,
    }

    packed!(State { at, wait, share, is_open, counts, kind, list, boxed, rare, field });

    /// A state of which each number has any length from none to all of its bits.
    fn drawn(stream: &mut Stream, deep: u32) -> State {
        let mut number = || {
            let bits = stream.bits() >> stream.below(64);
            if stream.chance(0.2) { !bits } else { bits }
        };
        let (at, wait, share) = (Time::from_ns(number()), Span::from_ns(number()), f64::from_bits(number()));
        let share = if share.is_nan() { 0.5 } else { share };
        let counts = [number() as u32, number() as u32];
        let list = (0..number() % 4).map(|_| (number(), number() as u8)).collect();
        let rare = [number(), number(), number(), number()];
        State {
            at,
            wait: stream.chance(0.5).then_some(wait),
            share,
            is_open: stream.chance(0.5),
            counts,
            kind: match stream.below(3) {
                0 => Kind::Small,
                1 => Kind::Large(Box::new(stream.bits() as u8)),
                _ => Kind::Named { by: stream.chance(0.5) },
            },
            list,
            boxed: (deep > 0 && stream.chance(0.5)).then(|| Box::new(drawn(stream, deep - 1))),
            rare: stream.chance(0.5).then(|| Box::new(Rare(rare))),
            field: [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][stream.below(4) as usize],
        }
    }

    #[test]
    fn what_is_taken_out_is_what_was_packed() {
        let mut stream = Stream::named(1, "pack");
        let mut packer = Packer::default();
        let mut used = drawn(&mut stream, 3);
        for _ in 0..10_000 {
            let states = [drawn(&mut stream, 3), drawn(&mut stream, 0)];
            states.pack(&mut packer);
            let (bytes, whole) = packer.finish();
            let mut from = Unpacker::new(&bytes, &whole);
            assert_eq!(<[State; 2]>::unpack(&mut from), states);
            assert!(from.is_empty());
            // Whatever was there before.
            used.restore(&mut Unpacker::new(&bytes, &whole));
            assert_eq!(used, states[0]);
        }
    }

    #[test]
    fn what_says_nothing_takes_bits() {
        let mut packer = Packer::default();
        [0_u32; 800].pack(&mut packer);
        [u64::MAX; 8].pack(&mut packer);
        assert_eq!(packer.finish().0.len(), 100 + 1 + 8);
    }
}
