//! What the rates come to: each test, and all of them together, under one scheduler over another.

use super::{Leg, Speed, Tested, xmark};
use crate::statistics::{Spread, geometric_mean, median};

/// "Within 2% of each other", says section 7.3 of most tests.
const CLOSE_PERCENT: f64 = 2.0;

impl Speed {
    pub(super) fn turns(&self) -> usize {
        self.tests.first().and_then(|test| test.over_stock.get(&Leg::Fair)).map_or(0, Vec::len)
    }

    pub(super) fn table_2(&self, label: &str, above: Leg, below: Leg) -> Spread {
        Spread::of(self.table_2.iter().filter(|test| test.label == label).flat_map(|test| test.ratios(above, below)))
    }

    pub(super) fn is_whole(&self) -> bool {
        self.left_out.is_empty()
    }

    /// Xmark, or the reduced one, under one scheduler over that under another; turn by turn.
    pub(super) fn xmark(&self, above: Leg, below: Leg) -> Spread {
        let under = |leg| match self.xmarks.get(&leg) {
            Some(xmarks) => xmarks.clone(),
            None => self.by_turn(leg, |ratios| xmark::weighted_mean(ratios)),
        };
        Spread::of(under(above).iter().zip(under(below)).map(|(above, below)| above / below))
    }

    /// Of all tests, whatever they weigh.
    pub(super) fn geometric_mean(&self, leg: Leg) -> Spread {
        Spread::of(self.by_turn(leg, |ratios| geometric_mean(&ratios.map(|(_, ratio)| ratio).collect::<Vec<_>>())))
    }

    /// Of each turn, the mean of all tests' (weight, ratio to stock).
    fn by_turn(&self, leg: Leg, mean: impl Fn(&mut dyn Iterator<Item = (u32, f64)>) -> f64) -> Vec<f64> {
        let of = |turn: usize| mean(&mut self.tests.iter().map(|test| (test.weight, test.ratio(leg, turn))));
        (0..self.turns()).map(of).collect()
    }

    pub(super) fn name_of_mark(&self) -> &'static str {
        if self.is_whole() { "Xmark" } else { "reduced Xmark" }
    }

    /// How many tests do.
    pub(super) fn count(&self, leg: Leg, does: impl Fn(&Spread) -> bool) -> usize {
        self.tests.iter().filter(|test| does(&test.spread(leg))).count()
    }

    pub(super) fn close(&self, leg: Leg) -> usize {
        self.near(leg, CLOSE_PERCENT)
    }

    /// How many tests are that near to stock.
    pub(super) fn near(&self, leg: Leg, percent: f64) -> usize {
        // x11perfcomp prints three digits after the point; a hundredth of the last one is for binary fractions.
        self.count(leg, |ratio| (ratio.median - 1.0).abs() <= percent / 100.0 + 1e-5)
    }

    /// Of Xmark's whole weight.
    pub(super) fn part_of_weight<'a>(&self, tests: impl IntoIterator<Item = &'a Tested>) -> f64 {
        let whole: u32 = self.tests.iter().map(|test| test.weight).chain(self.left_out.values().copied()).sum();
        let part: u32 = tests.into_iter().map(|test| test.weight).sum();
        f64::from(part) / f64::from(whole.max(1))
    }
}

impl Tested {
    pub(super) fn ratio(&self, leg: Leg, turn: usize) -> f64 {
        if leg == Leg::Stock { 1.0 } else { self.over_stock[&leg][turn] }
    }

    pub(super) fn spread(&self, leg: Leg) -> Spread {
        Spread::of(self.over_stock.get(&leg).into_iter().flatten().copied())
    }

    pub(super) fn rate(&self, leg: Leg) -> f64 {
        median(self.per_s.get(&leg).into_iter().flatten().copied())
    }
}
