// SPDX-License-Identifier: MIT
//! The ring under loom, which tries every interleaving of its writer and a reader.

use super::*;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use loom::thread;

/// The smallest sizes with which the protocol works, because the model's run time grows quickly.
const CAPACITY: u64 = 2;
const WORDS: usize = 2;
/// One record more than fits, so that a slot is overwritten while it may be read. A fourth record takes a minute.
const WRITTEN: u64 = 3;

struct Model {
    head: AtomicU64,
    ended: AtomicU64,
    records: [AtomicU64; CAPACITY as usize * WORDS],
    /// The fence to omit, to show that it is needed.
    missing: Option<Ordering>,
}

impl Model {
    fn new(missing: Option<Ordering>) -> Model {
        let word = || AtomicU64::new(0);
        Model { head: word(), ended: word(), records: std::array::from_fn(|_| word()), missing }
    }

    fn word(&self, at: RingWord) -> &AtomicU64 {
        match at {
            RingWord::Head => &self.head,
            RingWord::Ended => &self.ended,
            RingWord::Record(number, i) => &self.records[(number % CAPACITY) as usize * WORDS + i],
        }
    }
}

impl RingMemory for Model {
    fn capacity(&self) -> u64 {
        CAPACITY
    }

    fn load(&self, at: RingWord, ordering: Ordering) -> u64 {
        self.word(at).load(ordering)
    }

    fn store(&self, at: RingWord, word: u64, ordering: Ordering) {
        self.word(at).store(word, ordering);
    }

    fn fence(&self, ordering: Ordering) {
        if self.missing != Some(ordering) {
            fence(ordering);
        }
    }
}

/// A record that differs from all others and from memory that was never written.
fn record(number: u64) -> [u64; WORDS] {
    [number + 1; WORDS]
}

/// Reads once; `seen` counts the records that were read or lost.
fn read_once(cursor: &mut Cursor, memory: &Model, seen: &mut u64) -> ReadResult {
    let mut read = Vec::new();
    let result = cursor.read(memory, &mut read);
    if let ReadResult::Lost(records) = result {
        *seen += records;
    }
    for words in read {
        assert_eq!(words, record(*seen), "record {seen} is torn");
        *seen += 1;
    }
    assert!(result != ReadResult::Ended || *seen == WRITTEN, "the trace ended after {seen} records");
    result
}

/// Reads while the writer runs, then reads the remaining records.
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
        // A fixed number of reads: waiting for a writer that never runs would make the model endless.
        for _ in 0..2 {
            read_once(&mut cursor, &memory, &mut seen);
        }
        writer.join().unwrap();
        while read_once(&mut cursor, &memory, &mut seen) != ReadResult::Ended {}
        assert_eq!(seen, WRITTEN, "every record was read or counted as lost");
    });
}

#[test]
fn a_reader_gets_whole_records_and_the_number_of_lost_ones() {
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
