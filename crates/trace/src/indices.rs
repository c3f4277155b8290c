// SPDX-License-Identifier: MIT
//! Indices of distinct values, such as names that many records share.

use std::collections::BTreeMap;

/// Indices of distinct values, in the order in which they appeared.
#[derive(Debug)]
pub struct Indices<T> {
    of: BTreeMap<T, u32>,
    pub all: Vec<T>,
}

impl<T> Default for Indices<T> {
    fn default() -> Indices<T> {
        Indices { of: BTreeMap::new(), all: Vec::new() }
    }
}

impl<T: Ord + Clone> Indices<T> {
    pub fn index(&mut self, value: T) -> u32 {
        let all = &mut self.all;
        *self.of.entry(value).or_insert_with_key(|value| {
            all.push(value.clone());
            all.len() as u32 - 1
        })
    }
}
