// SPDX-License-Identifier: MIT
//! The measured cost of a kind of request: processor time per unit of work, from which the size of a part follows.

use crate::parts::Kind;

/// The cost before the first measurement, in nanoseconds per pixel: high, so that the first parts are short.
const UNKNOWN: f64 = 4.0;
/// A single measurement raises the cost at most by this factor, since it may include other work.
const MAX_RISE: f64 = 4.0;

/// The costs of all kinds. A cost rises immediately and falls slowly: a short part does less harm than a long one.
#[derive(Debug)]
pub struct Costs {
    /// In nanoseconds.
    limit: f64,
    costs: [f64; Kind::COUNT],
    /// Cached results of [`Costs::work`]: each request needs one, and a division would double the cost of the check.
    work: [u64; Kind::COUNT],
}

impl Costs {
    /// Initial costs; `limit_ns`: the time that a part should take.
    pub fn new(limit_ns: u64) -> Costs {
        let limit = limit_ns as f64;
        Costs { limit, costs: [UNKNOWN; Kind::COUNT], work: [(limit / UNKNOWN) as u64; Kind::COUNT] }
    }

    /// The amount of work of this kind in one part.
    pub fn work(&self, kind: Kind) -> u64 {
        self.work[kind as usize]
    }

    pub fn learn(&mut self, kind: Kind, ns: u64, work: u64) {
        let cost = &mut self.costs[kind as usize];
        let measured = (ns as f64 / work.max(1) as f64).max(0.001);
        *cost = if measured > *cost { measured.min(*cost * MAX_RISE) } else { 0.75 * *cost + 0.25 * measured };
        self.work[kind as usize] = (self.limit / *cost) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_rises_immediately_and_falls_slowly() {
        let mut costs = Costs::new(250_000);
        for _ in 0..200 {
            costs.learn(Kind::Points, 1000, 1000);
        }
        assert_eq!(costs.work(Kind::Points) / 1000, 249);
        costs.learn(Kind::Points, 2000, 1000);
        assert_eq!(costs.work(Kind::Points) / 1000, 125);
        costs.learn(Kind::Points, 1000, 1000);
        assert_eq!(costs.work(Kind::Points) / 1000, 142);
        assert_eq!(costs.work(Kind::Arcs), 62_500, "each kind has its own cost");
        costs.learn(Kind::Points, u64::MAX, 0);
        assert!(costs.work(Kind::Points) > 30_000, "a single measurement has a limited effect");
    }
}
