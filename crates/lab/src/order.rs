// SPDX-License-Identifier: MIT
//! The order in which compared things are measured.

/// Every other turn the other way round, so that none is always the first.
pub fn in_turn<T>(cases: impl IntoIterator<Item = T>, turn: u32) -> Vec<T> {
    let mut cases: Vec<T> = cases.into_iter().collect();
    if turn % 2 == 1 {
        cases.reverse();
    }
    cases
}
