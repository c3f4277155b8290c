// SPDX-License-Identifier: MIT
//! The scheduler's snapshot in a trace: [`Entry::Begin`] holds its length, each [`Entry::State`] record two words.
//!
//! A reader of a trace needs the state of the scheduler at the beginning. A snapshot with missing records is discarded.

use crate::trace::Entry;

/// Collects a snapshot from the records of a trace.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    words: Vec<u64>,
    /// The number of words of the current snapshot; `None` outside of a snapshot.
    length: Option<usize>,
}

impl Collector {
    /// Takes a record. The last record of a snapshot returns all words for [`xqos_core::Scheduler::restore`].
    pub fn take(&mut self, what: &Entry) -> Option<Vec<u64>> {
        match *what {
            Entry::Begin { words, .. } => self.begin_anew(Some(words as usize)),
            Entry::Lost { .. } => self.begin_anew(None),
            Entry::State { words, .. } => return self.add(words),
            _ => {}
        }
        None
    }

    fn begin_anew(&mut self, length: Option<usize>) {
        self.words.clear();
        self.length = length;
    }

    fn add(&mut self, words: [u64; 2]) -> Option<Vec<u64>> {
        let length = self.length?;
        self.words.extend(words);
        if self.words.len() < length {
            return None;
        }
        // With an odd length the last word is padding.
        self.words.truncate(length);
        self.length = None;
        Some(std::mem::take(&mut self.words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Level;
    use xqos_core::Fact;

    fn begin(words: u32) -> Entry {
        Entry::Begin { level: Level::Slices, server_pid: 1, words }
    }

    fn state(index: u32) -> Entry {
        let first = 2 * u64::from(index);
        Entry::State { index, words: [first, first + 1] }
    }

    /// The result of each record.
    fn collected<const N: usize>(records: [Entry; N]) -> [Option<Vec<u64>>; N] {
        let mut collector = Collector::default();
        records.map(|what| collector.take(&what))
    }

    #[test]
    fn a_snapshot_is_complete_with_its_last_word() {
        let [.., last] = collected([begin(4), state(0), state(1)]);
        assert_eq!(last, Some(vec![0, 1, 2, 3]));
        let collected = collected([begin(3), state(0), Entry::Fact(Fact::Replenish), state(1), state(2)]);
        assert_eq!(collected, [None, None, None, Some(vec![0, 1, 2]), None], "padding and later records are dropped");
    }

    #[test]
    fn a_new_snapshot_replaces_an_unfinished_one() {
        let [.., last] = collected([begin(4), state(7), begin(2), state(0)]);
        assert_eq!(last, Some(vec![0, 1]));
    }

    #[test]
    fn a_snapshot_with_a_gap_is_discarded() {
        let gap = Entry::Lost { records: 1 };
        assert_eq!(collected([begin(4), state(0), gap, state(1), state(2)]), [const { None }; 5]);
        assert_eq!(collected([state(0)]), [None], "a snapshot without its beginning is discarded");
    }
}
