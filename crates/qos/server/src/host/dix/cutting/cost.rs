// SPDX-License-Identifier: MIT
//! The measured cost of a kind of request: processor time per unit of work, from which the size of a part follows.

use crate::parts::DrawingKind;

/// The cost before the first measurement, in nanoseconds per pixel: high, so that the first parts are short.
const UNKNOWN: f64 = 4.0;
/// A single measurement raises the cost at most by this factor, since it may include other work.
const MAX_RISE: f64 = 4.0;

/// The costs of all kinds. A cost rises immediately and falls slowly: a short part does less harm than a long one.
#[derive(Debug)]
pub struct Costs {
    /// In nanoseconds.
    limit: f64,
    costs: [f64; DrawingKind::COUNT],
    /// Cached results of [`Costs::work`]: each request needs one, and a division would double the cost of the check.
    work: [u64; DrawingKind::COUNT],
}

impl Costs {
    /// Initial costs; `limit_ns`: the time that a part should take.
    pub fn new(limit_ns: u64) -> Costs {
        let limit = limit_ns as f64;
        Costs { limit, costs: [UNKNOWN; DrawingKind::COUNT], work: [(limit / UNKNOWN) as u64; DrawingKind::COUNT] }
    }

    /// The amount of work of this kind in one part.
    pub fn work(&self, kind: DrawingKind) -> u64 {
        self.work[kind as usize]
    }

    pub fn learn(&mut self, kind: DrawingKind, ns: u64, work: u64) {
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
            costs.learn(DrawingKind::Points, 1000, 1000);
        }
        assert_eq!(costs.work(DrawingKind::Points) / 1000, 249);
        costs.learn(DrawingKind::Points, 2000, 1000);
        assert_eq!(costs.work(DrawingKind::Points) / 1000, 125);
        costs.learn(DrawingKind::Points, 1000, 1000);
        assert_eq!(costs.work(DrawingKind::Points) / 1000, 142);
        assert_eq!(costs.work(DrawingKind::Arcs), 62_500, "each kind has its own cost");
        costs.learn(DrawingKind::Points, u64::MAX, 0);
        assert!(costs.work(DrawingKind::Points) > 30_000, "a single measurement has a limited effect");
    }
}
