//! Named random streams.

use crate::maths;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers for one user of randomness, named by a path such as `"traffic/0/user/17"`. Two streams
/// of one seed are independent, and a stream does not change when others come or go.
///
/// The generator is xoshiro256++ (Blackman and Vigna 2019), which gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Stream {
    generator: Xoshiro256PlusPlus,
}

impl Stream {
    /// The stream called `path` in the run seeded with `seed`.
    pub fn named(seed: u64, path: &str) -> Self {
        // FNV-1a over the path, then mixed with the seed: fixed for ever, so that digests are.
        let mut name = 0xcbf2_9ce4_8422_2325_u64;
        for byte in path.bytes() {
            name = (name ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(maths::mix64(seed) ^ maths::mix64(name)) }
    }

    /// Sixty-four random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform on [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform on (0, 1): safe to take the logarithm of.
    #[inline]
    pub fn open_unit(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Uniform on 0..`n` (Lemire's multiplication; the bias is below n/2^64).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((self.bits() as u128 * n as u128) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_by_seed_and_path() {
        let draw = |seed, path| Stream::named(seed, path).bits();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        // Frozen: a change here changes every published digest.
        assert_eq!(draw(1, "traffic/0/user/0"), 12_387_327_676_498_594_317);
    }

    #[test]
    fn units_are_uniform() {
        let mut stream = Stream::named(7, "unit");
        let n = 100_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let u = stream.unit();
            assert!((0.0..1.0).contains(&u));
            sum += u;
            squares += u * u;
        }
        // Four standard errors: sqrt(1/12/n) and sqrt(4/45/n).
        assert!((sum / n as f64 - 0.5).abs() < 4.0 * (1.0 / 12.0 / n as f64).sqrt());
        assert!((squares / n as f64 - 1.0 / 3.0).abs() < 4.0 * (4.0 / 45.0 / n as f64).sqrt());
    }
}
