// SPDX-License-Identifier: MIT
//! Counts in narrow columns.

/// A count in six characters at most.
pub fn count(number: f64) -> String {
    match number {
        below if below < 10.0 => format!("{number:.1}"),
        below if below < 1e4 => format!("{number:.0}"),
        below if below < 1e7 => format!("{:.0}k", number / 1e3),
        _ => format!("{:.0}M", number / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_fit_their_columns() {
        for number in [0.0, 9.94, 500.0, 9_999.0, 1e6, 5e7] {
            assert!(count(number).len() <= 6, "{}", count(number));
        }
    }
}
