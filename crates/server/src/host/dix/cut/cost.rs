// SPDX-License-Identifier: MIT
//! The measured cost of a kind of request: processor time per unit of work, from which the size of a part follows.

use crate::parts::Kind;

/// The cost before the first measurement, in nanoseconds per pixel: high, so that the first parts are short.
const UNKNOWN: f64 = 4.0;
/// A single measurement raises the cost at most this much, since it may contain work that is not the request's.
const MAX_RISE: f64 = 4.0;

/// The costs of all kinds. A cost rises immediately and falls slowly: a part should rather be too short than too long.
#[derive(Debug)]
pub struct Costs([f64; Kind::COUNT]);

impl Costs {
    pub const fn new() -> Costs {
        Costs([UNKNOWN; Kind::COUNT])
    }

    /// How much work of this kind takes this time.
    pub fn work_in(&self, kind: Kind, ns: u64) -> u64 {
        (ns as f64 / self.0[kind as usize]) as u64
    }

    pub fn learn(&mut self, kind: Kind, ns: u64, work: u64) {
        let cost = &mut self.0[kind as usize];
        let measured = (ns as f64 / work.max(1) as f64).max(0.001);
        *cost = if measured > *cost { measured.min(*cost * MAX_RISE) } else { 0.75 * *cost + 0.25 * measured };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_rises_immediately_and_falls_slowly() {
        let mut costs = Costs::new();
        for _ in 0..200 {
            costs.learn(Kind::Points, 1000, 1000);
        }
        assert_eq!(costs.work_in(Kind::Points, 250_000) / 1000, 249);
        costs.learn(Kind::Points, 2000, 1000);
        assert_eq!(costs.work_in(Kind::Points, 250_000) / 1000, 125);
        costs.learn(Kind::Points, 1000, 1000);
        assert_eq!(costs.work_in(Kind::Points, 250_000) / 1000, 142);
        assert_eq!(costs.work_in(Kind::Arcs, 250_000), 62_500, "each kind has its own cost");
        costs.learn(Kind::Points, u64::MAX, 0);
        assert!(costs.work_in(Kind::Points, 250_000) > 30_000, "one measurement alone is not believed");
    }
}
