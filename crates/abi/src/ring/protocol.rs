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
mod tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, fence};
    use loom::thread;

    /// As few as the protocol works with, and as a model can try.
    const CAPACITY: u64 = 2;
    const WORDS: usize = 2;
    /// One more than fit, so that a place is overwritten while it may be read. With another one it takes a minute.
    const WRITTEN: u64 = 3;

    struct Model {
        head: AtomicU64,
        ended: AtomicU64,
        records: [AtomicU64; CAPACITY as usize * WORDS],
        /// Left out, to show that it is needed.
        missing: Option<Ordering>,
    }

    impl Model {
        fn new(missing: Option<Ordering>) -> Model {
            let word = || AtomicU64::new(0);
            Model { head: word(), ended: word(), records: std::array::from_fn(|_| word()), missing }
        }

        fn word(&self, place: Place) -> &AtomicU64 {
            match place {
                Place::Head => &self.head,
                Place::Ended => &self.ended,
                Place::Record(number, i) => &self.records[(number % CAPACITY) as usize * WORDS + i],
            }
        }
    }

    impl Memory for Model {
        fn capacity(&self) -> u64 {
            CAPACITY
        }

        fn load(&self, place: Place, ordering: Ordering) -> u64 {
            self.word(place).load(ordering)
        }

        fn store(&self, place: Place, word: u64, ordering: Ordering) {
            self.word(place).store(word, ordering);
        }

        fn fence(&self, ordering: Ordering) {
            if self.missing != Some(ordering) {
                fence(ordering);
            }
        }
    }

    /// Tells each record from the others and from memory that was never written.
    fn record(number: u64) -> [u64; WORDS] {
        [number + 1; WORDS]
    }

    /// A reader's look; `seen` are the records that it has read or lost.
    fn look(cursor: &mut Cursor, memory: &Model, seen: &mut u64) -> Found {
        let mut read = Vec::new();
        let found = cursor.read(memory, &mut read);
        if let Found::Lost(records) = found {
            *seen += records;
        }
        for words in read {
            assert_eq!(words, record(*seen), "record {seen} is torn");
            *seen += 1;
        }
        assert!(found != Found::Ended || *seen == WRITTEN, "it ended after {seen}");
        found
    }

    /// Reads while it is written, then the rest.
    fn write_and_read(missing: Option<Ordering>) {
        loom::model(move || {
            let memory = Arc::new(Model::new(missing));
            let written = Arc::clone(&memory);
            let writer = thread::spawn(move || {
                for number in 0..WRITTEN {
                    write(&*written, number, record(number));
                }
                end(&*written);
            });
            let (mut cursor, mut seen) = (Cursor::new(0), 0);
            // Not until the end: a reader that waits for a writer that is never run would make the model endless.
            for _ in 0..2 {
                look(&mut cursor, &memory, &mut seen);
            }
            writer.join().unwrap();
            while look(&mut cursor, &memory, &mut seen) != Found::Ended {}
            assert_eq!(seen, WRITTEN, "each record was read or counted as lost");
        });
    }

    #[test]
    fn a_reader_gets_whole_records_and_the_count_of_those_that_it_lost() {
        write_and_read(None);
    }

    #[test]
    #[should_panic(expected = "torn")]
    fn without_the_writers_fence_a_record_is_torn() {
        write_and_read(Some(Ordering::Release));
    }

    #[test]
    #[should_panic(expected = "torn")]
    fn without_the_readers_fence_a_record_is_torn() {
        write_and_read(Some(Ordering::Acquire));
    }
}
