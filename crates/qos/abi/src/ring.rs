// SPDX-License-Identifier: MIT
//! The ring: trace records in memory that the server shares with readers through a file descriptor.
//!
//! ```text
//! byte 0     magic, record bytes, capacity          written once
//! byte 64    head: records written since the start  the server
//! byte 128   ended: 1 after the last record         the server
//! byte 4096  record 0 | record 1 | ... | record capacity - 1
//!            record n is in slot n % capacity
//! ```
//!
//! There is one writer and any number of readers. The writer does not know its readers: a slow reader costs it nothing
//! and detects overwritten records itself. Readers map the memory read-only, and seals keep it from shrinking.
//!
//! `protocol` defines the order in which both sides access the words and explains why no reader sees half a record.
//! [`crate::trace::Event::decode`] handles whatever a hostile writer stores.

#![allow(unsafe_code)]

mod protocol;

use crate::trace::{RECORD_BYTES, Words};
use protocol::{BATCH, Cursor, ReadResult, RingMemory, RingWord};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

const MAGIC: u64 = u64::from_le_bytes(*b"xqosring");
const HEADER_BYTES: usize = 4096;
const HEAD_AT: usize = 64;
const ENDED_AT: usize = 128;
/// The range of a ring's capacity in records; a capacity is a power of two.
pub const CAPACITIES: std::ops::RangeInclusive<u32> = 1 << 8..=1 << 22;
/// The default capacity: 4 MB, half a second at 250,000 slices per second.
pub const DEFAULT_CAPACITY: u32 = 1 << 17;

#[derive(Debug)]
struct Mapping {
    start: NonNull<AtomicU64>,
    bytes: usize,
    capacity: u64,
}

// SAFETY: the mapping is accessed only through atomics, and only its owner unmaps it.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(fd: BorrowedFd<'_>, capacity: u64, writable: bool) -> io::Result<Mapping> {
        let bytes = HEADER_BYTES + capacity as usize * RECORD_BYTES;
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        // SAFETY: creates a new mapping; both callers have checked that the file has at least `bytes` bytes.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0)? };
        let start = NonNull::new(start.cast::<AtomicU64>()).ok_or(io::ErrorKind::Other)?;
        Ok(Mapping { start, bytes, capacity })
    }

    /// The word at a byte offset of the header or the records.
    #[inline]
    fn word(&self, byte: usize) -> &AtomicU64 {
        debug_assert!(byte % 8 == 0 && byte < self.bytes);
        // SAFETY: the word is within the mapping and aligned, and is only accessed as an atomic.
        unsafe { self.start.add(byte / 8).as_ref() }
    }

    #[inline]
    fn word_at(&self, at: RingWord) -> &AtomicU64 {
        self.word(match at {
            RingWord::Head => HEAD_AT,
            RingWord::Ended => ENDED_AT,
            RingWord::Record(number, i) => HEADER_BYTES + (number % self.capacity) as usize * RECORD_BYTES + 8 * i,
        })
    }
}

impl RingMemory for Mapping {
    #[inline]
    fn capacity(&self) -> u64 {
        self.capacity
    }

    #[inline]
    fn load(&self, at: RingWord, ordering: Ordering) -> u64 {
        self.word_at(at).load(ordering)
    }

    #[inline]
    fn store(&self, at: RingWord, word: u64, ordering: Ordering) {
        self.word_at(at).store(word, ordering);
    }

    #[inline]
    fn fence(&self, ordering: Ordering) {
        fence(ordering);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is our own mapping, and nothing refers to it any longer.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// The server's end of a ring.
#[derive(Debug)]
pub struct RingWriter {
    fd: OwnedFd,
    mapping: Mapping,
    head: u64,
}

impl RingWriter {
    /// Creates a ring with room for this many records, rounded up to a power of two within [`CAPACITIES`].
    pub fn create(capacity: u32) -> io::Result<RingWriter> {
        let capacity = capacity.clamp(*CAPACITIES.start(), *CAPACITIES.end()).next_power_of_two();
        let bytes = HEADER_BYTES as u64 + u64::from(capacity) * RECORD_BYTES as u64;
        // Beyond this limit, the kernel would send SIGXFSZ, which ends the server.
        if getrlimit(Resource::Fsize).current.is_some_and(|most| bytes > most) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let file = File::from(memfd_create(c"xqos-trace", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
        file.set_len(bytes)?;
        let fd = OwnedFd::from(file);
        let mapping = Mapping::new(fd.as_fd(), capacity.into(), true)?;
        mapping.word(0).store(MAGIC, Ordering::Relaxed);
        mapping.word(8).store(RECORD_BYTES as u64, Ordering::Relaxed);
        mapping.word(16).store(capacity.into(), Ordering::Release);
        // F_SEAL_FUTURE_WRITE needs Linux 5.1. Our own mapping stays writable; new writable mappings are refused.
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL)?;
        Ok(RingWriter { fd, mapping, head: 0 })
    }

    /// The descriptor for readers.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub fn capacity(&self) -> u32 {
        self.mapping.capacity as u32
    }

    /// The number of records written so far, which is also the number of the next record.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Writes a record in place of the oldest one.
    #[inline]
    pub fn push(&mut self, words: Words) {
        protocol::write(&self.mapping, self.head, words);
        self.head += 1;
    }
}

impl Drop for RingWriter {
    fn drop(&mut self) {
        protocol::end(&self.mapping);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Record(Words),
    /// This many records were overwritten before they were read.
    Lost(u64),
    /// No new record yet.
    Nothing,
    Ended,
}

/// A reader's end of a ring.
#[derive(Debug)]
pub struct RingReader {
    mapping: Mapping,
    cursor: Cursor,
    /// Records read in one batch, and the number of them already returned.
    read: Vec<Words>,
    given: usize,
}

impl RingReader {
    /// Maps a ring received from a server, for reading from record `next` on. Refuses a file that could shrink, and
    /// sizes that do not match.
    pub fn open(fd: OwnedFd, next: u64) -> io::Result<RingReader> {
        let unfit = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("not a trace ring: {what}"));
        if !fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
            return Err(unfit("it is not sealed"));
        }
        let file = File::from(fd);
        let bytes = file.metadata()?.len();
        let capacity = bytes.saturating_sub(HEADER_BYTES as u64) / RECORD_BYTES as u64;
        if !u32::try_from(capacity).is_ok_and(|capacity| CAPACITIES.contains(&capacity)) {
            return Err(unfit("its size"));
        }
        let mapping = Mapping::new(file.as_fd(), capacity, false)?;
        let header = [0, 8, 16].map(|byte| mapping.word(byte).load(Ordering::Acquire));
        if header != [MAGIC, RECORD_BYTES as u64, capacity] {
            return Err(unfit("its header"));
        }
        Ok(RingReader { mapping, cursor: Cursor::new(next), read: Vec::with_capacity(BATCH as usize), given: 0 })
    }

    /// The next record, or the reason why there is none.
    pub fn read(&mut self) -> Next {
        if let Some(&words) = self.read.get(self.given) {
            self.given += 1;
            return Next::Record(words);
        }
        self.given = 0;
        match self.cursor.read(&self.mapping, &mut self.read) {
            ReadResult::Some => self.read(),
            ReadResult::Lost(records) => Next::Lost(records),
            ReadResult::Nothing => Next::Nothing,
            ReadResult::Ended => Next::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::ManuallyDrop;

    fn pair(capacity: u32) -> (RingWriter, RingReader) {
        let writer = RingWriter::create(capacity).unwrap();
        let reader = RingReader::open(writer.fd().try_clone_to_owned().unwrap(), 0).unwrap();
        (writer, reader)
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no memfd_create")]
    fn records_are_read_in_order_and_the_end_last() {
        let (mut writer, mut reader) = pair(256);
        assert_eq!(reader.read(), Next::Nothing);
        writer.push([1, 2, 3, 4]);
        writer.push([5, 6, 7, 8]);
        drop(writer);
        assert_eq!(reader.read(), Next::Record([1, 2, 3, 4]));
        assert_eq!(reader.read(), Next::Record([5, 6, 7, 8]));
        assert_eq!(reader.read(), Next::Ended);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no memfd_create")]
    fn a_slow_reader_learns_how_many_records_it_lost() {
        let (mut writer, mut reader) = pair(256);
        for number in 0..1000 {
            writer.push([number; 4]);
        }
        let mut seen = 0;
        loop {
            match reader.read() {
                Next::Lost(records) => seen += records,
                Next::Record(words) => {
                    assert_eq!(words, [seen; 4]);
                    seen += 1;
                }
                Next::Nothing => break,
                Next::Ended => panic!("the writer lives"),
            }
        }
        assert_eq!(seen, 1000);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no memfd_create")]
    fn a_reader_never_sees_half_a_record() {
        let (mut writer, mut reader) = pair(256);
        let done = std::thread::spawn(move || {
            for number in 0..2_000_000u64 {
                writer.push([number; 4]);
            }
        });
        let (mut next, mut read) = (0, 0);
        loop {
            match reader.read() {
                Next::Record(words) => {
                    assert_eq!(words, [next; 4], "record {next}");
                    (next, read) = (next + 1, read + 1);
                }
                Next::Lost(records) => next += records,
                Next::Nothing => {}
                Next::Ended => break,
            }
        }
        done.join().unwrap();
        assert_eq!(next, 2_000_000);
        assert!(read > 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no memfd_create")]
    fn an_invalid_ring_is_refused() {
        let (writer, _reader) = pair(256);
        writer.mapping.word(16).store(1 << 20, Ordering::Relaxed);
        let error = RingReader::open(writer.fd().try_clone_to_owned().unwrap(), 0).unwrap_err();
        assert!(error.to_string().contains("header"), "{error}");
        let plain = File::open("/proc/self/exe").unwrap();
        let error = RingReader::open(plain.into(), 0).unwrap_err();
        assert!(error.to_string().contains("sealed"), "{error}");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no memfd_create")]
    fn readers_cannot_write() {
        let (writer, _reader) = pair(256);
        assert!(Mapping::new(writer.fd(), 256, true).is_err());
    }

    /// Uses plain memory with the length and alignment of a mapping, so that Miri can check each access.
    #[test]
    fn two_threads_share_the_words_of_a_mapping_and_nothing_else() {
        const CAPACITY: u64 = 8;
        const WRITTEN: u64 = 100;
        let bytes = HEADER_BYTES + CAPACITY as usize * RECORD_BYTES;
        let memory: Vec<AtomicU64> = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
        let mapping = || {
            let start = NonNull::new(memory.as_ptr().cast_mut()).unwrap();
            // This memory is not a real mapping and must not be unmapped.
            ManuallyDrop::new(Mapping { start, bytes, capacity: CAPACITY })
        };
        let (writers, readers) = (mapping(), mapping());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                (0..WRITTEN).for_each(|number| protocol::write(&*writers, number, [number; 4]));
                protocol::end(&*writers);
            });
            let (mut cursor, mut read, mut next) = (Cursor::new(0), Vec::<Words>::new(), 0);
            loop {
                match cursor.read(&*readers, &mut read) {
                    ReadResult::Some => {
                        for &words in &read {
                            assert_eq!(words, [next; 4], "record {next}");
                            next += 1;
                        }
                    }
                    ReadResult::Lost(records) => next += records,
                    ReadResult::Nothing => std::thread::yield_now(),
                    ReadResult::Ended => break,
                }
            }
            assert_eq!(next, WRITTEN);
        });
    }
}
