// SPDX-License-Identifier: MIT
//! Calling patterns: the requests before each wait, and how often a pattern repeats.
//!
//! The pattern `InternAtom`, 46 times in a row, is a loop that waits for one atom at a time. `InternAtom x 46` is one
//! round trip for 46 atoms.

use super::names::{NameId, NameTable};
use super::round_trip::{Wait, WaitTotal};
use std::collections::{HashMap, VecDeque};

/// Number of names kept per pattern: the last ones before the wait.
const MAX_NAMES: usize = 4;
/// Maximum number of patterns; all others share one entry. Programs have a few dozen.
const MAX_PATTERNS: usize = 512;

/// Requests between two waits: the last [`MAX_NAMES`] names, each with its number of repetitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Batch {
    names: VecDeque<(NameId, u32)>,
    is_cut: bool,
    replies: u32,
}

impl Batch {
    pub fn add(&mut self, name: NameId, has_reply: bool) {
        self.replies = self.replies.saturating_add(u32::from(has_reply));
        match self.names.back_mut() {
            Some((last, count)) if *last == name => *count = count.saturating_add(1),
            _ => self.names.push_back((name, 1)),
        }
        if self.names.len() > MAX_NAMES {
            self.names.pop_front();
            self.is_cut = true;
        }
    }

    pub fn asks_for_one(&self) -> bool {
        self.replies == 1
    }

    pub fn text(&self, names: &NameTable) -> String {
        let one = |&(name, count): &(NameId, u32)| match count {
            1 => names.name(name).to_owned(),
            count => format!("{} x {count}", names.name(name)),
        };
        let list = self.names.iter().map(one).collect::<Vec<_>>().join(", ");
        if self.is_cut { format!("..., {list}") } else { list }
    }

    fn is_other(&self) -> bool {
        self.names.is_empty()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Pattern {
    pub total: WaitTotal,
    /// Largest number of consecutive waits with this pattern.
    pub in_a_row: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Patterns {
    list: HashMap<Batch, Pattern>,
    last: Batch,
    in_a_row: u64,
}

impl Patterns {
    pub fn add(&mut self, batch: Batch, wait: &Wait) {
        let is_new = self.list.len() >= MAX_PATTERNS && !self.list.contains_key(&batch);
        let batch = if is_new { Batch::default() } else { batch };
        self.in_a_row = if self.last == batch && !batch.is_other() { self.in_a_row + 1 } else { 1 };
        if self.last != batch {
            self.last = batch.clone();
        }
        let pattern = self.list.entry(batch).or_default();
        pattern.total.add(wait);
        pattern.in_a_row = pattern.in_a_row.max(self.in_a_row);
    }

    /// Patterns as text, longest total time first.
    pub fn named(&self, names: &NameTable) -> Vec<(String, Pattern)> {
        let text = |batch: &Batch| if batch.is_other() { "(other)".to_owned() } else { batch.text(names) };
        let mut list: Vec<_> = self.list.iter().map(|(batch, pattern)| (text(batch), pattern.clone())).collect();
        list.sort_by(|(name, one), (other_name, other)| other.total.ns.cmp(&one.total.ns).then(name.cmp(other_name)));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: NameId) -> Wait {
        Wait { name, from_ns: 0, to_ns: 10, avoidable: None }
    }

    #[test]
    fn a_loop_differs_from_a_batch() {
        let mut names = NameTable::default();
        let (atom, window) = (names.id("InternAtom"), names.id("CreateWindow"));
        let mut patterns = Patterns::default();
        for _ in 0..46 {
            let mut batch = Batch::default();
            batch.add(atom, true);
            patterns.add(batch, &wait(atom));
        }
        let mut batch = Batch::default();
        batch.add(window, false);
        (0..46).for_each(|_| batch.add(atom, true));
        patterns.add(batch, &wait(atom));
        let named = patterns.named(&names);
        assert_eq!((named[0].0.as_str(), named[0].1.in_a_row, named[0].1.total.count), ("InternAtom", 46, 46));
        assert_eq!((named[1].0.as_str(), named[1].1.in_a_row), ("CreateWindow, InternAtom x 46", 1));
    }

    #[test]
    fn endless_patterns_share_one_entry() {
        let mut names = NameTable::default();
        let mut patterns = Patterns::default();
        for number in 0..4 * MAX_PATTERNS {
            let mut batch = Batch::default();
            let name = names.id(&number.to_string());
            batch.add(name, true);
            patterns.add(batch, &wait(name));
        }
        let named = patterns.named(&names);
        assert!(named.len() <= MAX_PATTERNS + 1);
        assert_eq!(named.iter().map(|(_, pattern)| pattern.total.count).sum::<u64>(), 4 * MAX_PATTERNS as u64);
    }
}
