// SPDX-License-Identifier: MIT
//! The order of memory accesses with which one writer passes records to readers without ever waiting for them.
//!
//! Writer: release fence, words (relaxed), head (release). Reader: head (acquire), words (relaxed), acquire fence, head
//! again. The second read of head pairs with the fence: a reader that saw a word of record n also sees a head of at
//! least n, so it knows that the slot of record n - capacity was being overwritten. Therefore only capacity - 1 slots
//! are readable. A record is returned whole or counted as lost.
//!
//! The code is generic over the memory, so that the mapping and the model share it; loom tries every interleaving of
//! the model.

#![deny(unsafe_code)]

use std::sync::atomic::Ordering;

/// Records read per access to the head. Each access takes the head's cache line from the writer, which needs it often.
pub const BATCH: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingWord {
    /// The number of records written.
    Head,
    /// 1 after the last record.
    Ended,
    /// A word of the record with this number.
    Record(u64, usize),
}

pub trait RingMemory {
    /// The number of records that fit.
    fn capacity(&self) -> u64;
    fn load(&self, at: RingWord, ordering: Ordering) -> u64;
    fn store(&self, at: RingWord, word: u64, ordering: Ordering);
    fn fence(&self, ordering: Ordering);
}

/// Writes record `number` over record `number` - capacity. There must be only one writer, which counts the records.
#[inline]
pub fn write<const N: usize>(memory: &impl RingMemory, number: u64, words: [u64; N]) {
    memory.fence(Ordering::Release);
    for (i, word) in words.into_iter().enumerate() {
        memory.store(RingWord::Record(number, i), word, Ordering::Relaxed);
    }
    memory.store(RingWord::Head, number + 1, Ordering::Release);
}

/// Marks the end: nothing will be written after this.
pub fn end(memory: &impl RingMemory) {
    memory.store(RingWord::Ended, 1, Ordering::Release);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadResult {
    /// Records were read.
    Some,
    /// This many records were overwritten before they were read.
    Lost(u64),
    /// No new record yet.
    Nothing,
    Ended,
}

/// The position of a reader: the number of the next record.
#[derive(Debug)]
pub struct Cursor {
    next: u64,
}

impl Cursor {
    pub fn new(next: u64) -> Cursor {
        Cursor { next }
    }

    /// Replaces the contents of `read` with the next records.
    pub fn read<const N: usize>(&mut self, memory: &impl RingMemory, read: &mut Vec<[u64; N]>) -> ReadResult {
        read.clear();
        let ended = memory.load(RingWord::Ended, Ordering::Acquire) != 0;
        let head = memory.load(RingWord::Head, Ordering::Acquire);
        if self.next >= head {
            return if ended { ReadResult::Ended } else { ReadResult::Nothing };
        }
        if let Some(lost) = self.skip_overwritten(head, memory.capacity()) {
            return lost;
        }
        for number in self.next..head.min(self.next + BATCH) {
            read.push(std::array::from_fn(|i| memory.load(RingWord::Record(number, i), Ordering::Relaxed)));
        }
        memory.fence(Ordering::Acquire);
        let head = memory.load(RingWord::Head, Ordering::Relaxed);
        // The first record is the oldest: if it was not being overwritten, none was.
        if let Some(lost) = self.skip_overwritten(head, memory.capacity()) {
            read.clear();
            return lost;
        }
        self.next += read.len() as u64;
        ReadResult::Some
    }

    /// If records were overwritten, continues half a ring behind the writer.
    fn skip_overwritten(&mut self, head: u64, capacity: u64) -> Option<ReadResult> {
        let behind = head.saturating_sub(self.next);
        if behind < capacity {
            return None;
        }
        let lost = behind - capacity / 2;
        self.next += lost;
        Some(ReadResult::Lost(lost))
    }
}

/// Run by `scripts/check-loom`.
#[cfg(all(test, loom))]
mod tests;
