// SPDX-License-Identifier: MIT
//! Random numbers for tests. A seed gives the same numbers on every machine.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::RangeInclusive;

/// The seed of a random test: a new one in each run, or the value of `XQOS_TEST_SEED`. The test prints it,
/// and the test harness shows the output of failed tests.
pub fn seed() -> u64 {
    let set = std::env::var("XQOS_TEST_SEED").ok();
    let set = set.map(|seed| seed.parse().expect("XQOS_TEST_SEED is a whole number"));
    let seed = set.unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("to repeat this test, set XQOS_TEST_SEED={seed}");
    seed
}

/// This many seeds, the first of which is [`seed`].
pub fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let first = seed();
    (0..count).map(move |nth| first.wrapping_add(nth))
}

/// A random number generator (SplitMix64, Steele et al. 2014), which begins with this seed.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.below_u64(limit as u64) as usize
    }

    /// Like [`Random::below`], for 64-bit numbers.
    pub fn below_u64(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below_u64(range.end() - range.start() + 1)
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// A number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_the_published_numbers() {
        let mut random = Random(1_234_567);
        let wanted = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([(); 3].map(|()| random.next()), wanted);
    }

    #[test]
    fn numbers_keep_their_bounds() {
        let mut random = Random(seed());
        for _ in 0..1000 {
            assert!(random.below(3) < 3 && random.below_u64(0) == 0);
            assert!((5..=6).contains(&random.within(5..=6)) && [1, 2].contains(&random.one_of(&[1, 2])));
            assert!((0.0..1.0).contains(&random.unit()));
        }
        assert_eq!(random.bytes(7).len(), 7);
    }
}
