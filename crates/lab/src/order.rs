// SPDX-License-Identifier: MIT
//! The order of compared measurements.

/// Reverses the order in every other turn, so that no case is always first.
pub fn in_turn<T>(cases: impl IntoIterator<Item = T>, turn: u32) -> Vec<T> {
    let mut cases: Vec<T> = cases.into_iter().collect();
    if turn % 2 == 1 {
        cases.reverse();
    }
    cases
}
