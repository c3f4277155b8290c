// SPDX-License-Identifier: MIT
//! Medians and quantiles of a few times, which a single outlier hardly changes.

/// The smallest value v such that at least this fraction of the values is at most v; 0 if there are no values.
pub(crate) fn quantile(values: &[u64], numerator: usize, denominator: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * numerator).div_ceil(denominator.max(1));
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

pub(crate) fn median(values: &[u64]) -> u64 {
    quantile(values, 1, 2)
}

pub(crate) fn mean(values: &[u64]) -> u64 {
    let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
    (sum / values.len().max(1) as u128) as u64
}

/// Median distance from `centre`.
pub(crate) fn scatter(values: &[u64], centre: u64) -> u64 {
    let distances: Vec<u64> = values.iter().map(|value| value.abs_diff(centre)).collect();
    median(&distances)
}

/// Fraction of the values within `percent` of `centre`.
pub(crate) fn near(values: &[u64], centre: u64, percent: u64) -> f64 {
    let is_near = |value: &&u64| u128::from(value.abs_diff(centre)) * 100 <= u128::from(centre) * u128::from(percent);
    values.iter().filter(is_near).count() as f64 / values.len().max(1) as f64
}

/// Adds a value, and removes the oldest one if there are too many.
pub(crate) fn keep<T>(recent: &mut Vec<T>, most: usize, last: T) {
    if recent.len() >= most {
        recent.remove(0);
    }
    recent.push(last);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_existing_values() {
        let values: Vec<u64> = (1..=48).rev().collect();
        assert_eq!((quantile(&values, 15, 16), median(&values), mean(&values)), (45, 24, 24));
        assert_eq!((quantile(&[7], 15, 16), median(&[]), mean(&[])), (7, 0, 0));
        assert_eq!((scatter(&[10, 12, 90], 12), near(&[10, 12, 90], 12, 20)), (2, 2.0 / 3.0));
        assert_eq!(mean(&[u64::MAX, u64::MAX]), u64::MAX);
    }
}
