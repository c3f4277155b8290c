// SPDX-License-Identifier: MIT
//! How records pass from one writer to a reader that it does not wait for.
//!
//! The writer: release fence, words (relaxed), head (release). A reader: head (acquire), words (relaxed), acquire fence,
//! head again. The second reading pairs with the fence: a reader that saw a word of record n also sees a head of n at
//! least, and so knows that the place of record n - capacity was being overwritten. So of `capacity` places one less can
//! be read. A record is given whole or counted as lost.
//!
//! Written for any memory, so that it is the same in the mapping and in the model, where loom tries every interleaving.

#![deny(unsafe_code)]

use std::sync::atomic::Ordering;

/// Records that are read between two looks at the head, whose place the writer needs for each record.
pub const BATCH: u64 = 256;

/// A word of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// How many records were written.
    Head,
    /// 1 after the last record.
    Ended,
    /// A word of the record of this number.
    Record(u64, usize),
}

/// What the ring lies in.
pub trait Memory {
    /// Records that fit.
    fn capacity(&self) -> u64;
    fn load(&self, place: Place, ordering: Ordering) -> u64;
    fn store(&self, place: Place, word: u64, ordering: Ordering);
    fn fence(&self, ordering: Ordering);
}

/// Writes record `number`, over that of `number` - capacity. There is one writer, which counts.
#[inline]
pub fn write<const N: usize>(memory: &impl Memory, number: u64, words: [u64; N]) {
    memory.fence(Ordering::Release);
    for (i, word) in words.into_iter().enumerate() {
        memory.store(Place::Record(number, i), word, Ordering::Relaxed);
    }
    memory.store(Place::Head, number + 1, Ordering::Release);
}

/// Nothing will be written any more.
pub fn end(memory: &impl Memory) {
    memory.store(Place::Ended, 1, Ordering::Release);
}

/// What a reader finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Records.
    Some,
    /// How many were overwritten before they were read.
    Lost(u64),
    /// Nothing new yet.
    Nothing,
    /// And nothing will come.
    Ended,
}

/// How far a reader is: the number of the next record.
#[derive(Debug)]
pub struct Cursor {
    next: u64,
}

impl Cursor {
    pub fn new(next: u64) -> Cursor {
        Cursor { next }
    }

    /// Puts the next records into `read`, in place of what is in it.
    pub fn read<const N: usize>(&mut self, memory: &impl Memory, read: &mut Vec<[u64; N]>) -> Found {
        read.clear();
        let ended = memory.load(Place::Ended, Ordering::Acquire) != 0;
        let head = memory.load(Place::Head, Ordering::Acquire);
        if self.next >= head {
            return if ended { Found::Ended } else { Found::Nothing };
        }
        if let Some(lost) = self.skip_overwritten(head, memory.capacity()) {
            return lost;
        }
        for number in self.next..head.min(self.next + BATCH) {
            read.push(std::array::from_fn(|i| memory.load(Place::Record(number, i), Ordering::Relaxed)));
        }
        memory.fence(Ordering::Acquire);
        let head = memory.load(Place::Head, Ordering::Relaxed);
        // The first of them is the oldest: if that one was not being overwritten, none was.
        if let Some(lost) = self.skip_overwritten(head, memory.capacity()) {
            read.clear();
            return lost;
        }
        self.next += read.len() as u64;
        Found::Some
    }

    /// Goes on where there is still something to read, with some room before the writer's heels.
    fn skip_overwritten(&mut self, head: u64, capacity: u64) -> Option<Found> {
        let behind = head.saturating_sub(self.next);
        if behind < capacity {
            return None;
        }
        let lost = behind - capacity / 2;
        self.next += lost;
        Some(Found::Lost(lost))
    }
}

/// `scripts/check-loom` runs these.
#[cfg(all(test, loom))]
mod tests;
