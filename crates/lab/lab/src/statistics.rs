// SPDX-License-Identifier: MIT
//! Statistics of samples and of paired measurements.
//!
//! Percentiles use the nearest rank, so every printed percentile is a measured value. Measurements on a shared machine
//! drift, so compared cases are measured in pairs, one after the other. The median of the pairs' ratios is quoted with
//! its range.

use serde::{Deserialize, Serialize};

/// The median of several measurements, and their range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub count: usize,
    pub least: f64,
    pub median: f64,
    pub greatest: f64,
}

impl Spread {
    /// All zero if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let sorted = sorted(values);
        let [least, greatest] = [0.0, 1.0].map(|part| percentile(&sorted, part));
        Spread { count: sorted.len(), least, median: median_of_sorted(&sorted), greatest }
    }
}

/// The median; for an even number of values, the mean of the middle two. 0 without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    median_of_sorted(&sorted(values))
}

/// The smallest value that at least `part` of the values do not exceed; 0 without values.
pub fn quantile(values: impl IntoIterator<Item = f64>, part: f64) -> f64 {
    percentile(&sorted(values), part)
}

/// 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The population standard deviation, as in the papers; 0 for fewer than two values.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let middle = mean(values);
    (values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// The geometric mean, for ratios. 0 without values, or if a value is not positive.
pub fn geometric_mean(values: &[f64]) -> f64 {
    if values.is_empty() || values.iter().any(|&value| value <= 0.0) {
        return 0.0;
    }
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}

/// Jain's fairness index: 1 for equal shares, 1/n if one has everything.
pub fn jain_index(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 0.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

/// Nearest rank: the smallest value that at least `part` of the values do not exceed.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let of = |part| quantile(values.iter().copied(), part);
        assert_eq!((Spread::of(values.iter().copied()).count, of(1.0)), (200, 200.0));
        assert_eq!((of(0.50), of(0.99), mean(&values)), (100.0, 198.0, 100.5));
        assert_eq!([0.50, 0.99, 1.0].map(|part| quantile([7.0], part)), [7.0, 7.0, 7.0]);
    }

    #[test]
    fn statistics_of_no_values_are_zero() {
        assert_eq!([0.50, 0.99, 1.0].map(|part| quantile([], part)), [0.0, 0.0, 0.0]);
        assert_eq!(Spread::of([]), Spread::default());
        assert_eq!((median([]), mean(&[]), geometric_mean(&[]), jain_index(&[])), (0.0, 0.0, 0.0, 0.0));
    }

    #[test]
    fn medians_of_even_counts_lie_between_the_middle_two() {
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), 2.5);
        let spread = Spread::of([5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!((spread.least, spread.median, spread.greatest, spread.count), (1.0, 3.0, 5.0, 5));
    }

    #[test]
    fn a_deviation_is_the_root_of_the_mean_square_distance() {
        assert_eq!(deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 2.0);
        assert_eq!((deviation(&[3.0]), deviation(&[])), (0.0, 0.0));
    }

    #[test]
    fn a_geometric_mean_treats_half_and_double_alike() {
        assert!((geometric_mean(&[0.5, 2.0]) - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[1.0, 0.0]), 0.0);
    }

    #[test]
    fn jain_index_runs_from_one_over_n_to_one() {
        assert!((jain_index(&[2.0, 2.0, 2.0]) - 1.0).abs() < 1e-12);
        assert!((jain_index(&[9.0, 0.0, 0.0]) - 1.0 / 3.0).abs() < 1e-12);
    }
}
