// SPDX-License-Identifier: MIT
//! The questions of a program's last start, kept for its next start. Answers are not kept, because another server may
//! answer differently.
//!
//! Only requests without side effects are remembered, so sending them to another server does no harm. The file has a
//! version and a checksum; a damaged file is ignored.

use crate::opcodes::op;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

const MAGIC: &[u8] = b"xqos near questions 1\n";
/// Maximum number of questions. A typical start asks a few hundred questions whose answers can be stored.
const MAX_ENTRIES: usize = 4096;
/// Maximum total size of all questions. A request longer than `MAX_REQUEST_BYTES` is not remembered.
const MAX_BYTES: usize = 256 << 10;
const MAX_REQUEST_BYTES: usize = 2048;
/// Maximum size of a file that is read.
pub const MAX_FILE_BYTES: u64 = 512 << 10;

/// A remembered question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The extension's name; empty for the core protocol.
    pub extension: String,
    /// Hash of the state that earlier requests set in the extension (see `context`).
    pub state: u64,
    /// The request. Comparisons ignore an extension's major opcode, because servers assign it.
    pub request: Vec<u8>,
}

/// All questions that a program asked, in order.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    entries: Vec<Entry>,
    known: HashSet<u64>,
    bytes: usize,
}

/// The file is truncated or its checksum is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl Memory {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn add(&mut self, extension: &str, state: u64, request: &[u8]) {
        let mut hasher = DefaultHasher::new();
        // Servers assign an extension's major opcode, so it is left out.
        let content = if extension.is_empty() { request } else { &request[1..] };
        (extension, state, content).hash(&mut hasher);
        let bytes = extension.len() + request.len() + 11;
        let has_room = self.entries.len() < MAX_ENTRIES && self.bytes + bytes <= MAX_BYTES;
        if has_room && request.len() <= MAX_REQUEST_BYTES && extension.len() < 64 && self.known.insert(hasher.finish())
        {
            self.bytes += bytes;
            self.entries.push(Entry { extension: extension.to_owned(), state, request: request.to_vec() });
        }
    }

    /// Splits the fonts into at most `most` parts. With fewer than two fonts, returns no parts.
    pub fn fonts(&self, most: usize) -> Vec<Memory> {
        let is_font = |entry: &&Entry| entry.extension.is_empty() && entry.request[0] == op::OPEN_FONT_REQUEST;
        let fonts: Vec<&Entry> = self.entries.iter().filter(is_font).collect();
        if fonts.len() < 2 {
            return Vec::new();
        }
        let count = fonts.len().min(most);
        let mut parts = vec![Memory::default(); count];
        fonts.iter().enumerate().for_each(|(at, font)| parts[at % count].add("", font.state, &font.request));
        parts
    }

    pub fn merge(&mut self, other: &Memory) {
        other.entries.iter().for_each(|entry| self.add(&entry.extension, entry.state, &entry.request));
    }

    pub fn write(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for Entry { extension, state, request } in &self.entries {
            bytes.push(extension.len() as u8);
            bytes.extend(extension.bytes());
            bytes.extend(state.to_le_bytes());
            bytes.extend((request.len() as u16).to_le_bytes());
            bytes.extend(request);
        }
        let sum = checksum(&bytes);
        bytes.extend(sum.to_le_bytes());
        bytes
    }

    pub fn read(bytes: &[u8]) -> Result<Memory, Damaged> {
        let (content, sum) = bytes.split_last_chunk().ok_or(Damaged)?;
        if checksum(content) != u64::from_le_bytes(*sum) {
            return Err(Damaged);
        }
        let (mut memory, mut rest) = (Memory::default(), content.strip_prefix(MAGIC).ok_or(Damaged)?);
        while !rest.is_empty() {
            let length = usize::from(take(&mut rest, 1)?[0]);
            let extension = std::str::from_utf8(take(&mut rest, length)?).map_err(|_| Damaged)?;
            let state = take(&mut rest, 8)?.try_into().map_err(|_| Damaged)?;
            let length = take(&mut rest, 2)?;
            let request = take(&mut rest, usize::from(length[0]) + 256 * usize::from(length[1]))?;
            if request.len() < 4 {
                return Err(Damaged);
            }
            memory.add(extension, u64::from_le_bytes(state), request);
        }
        Ok(memory)
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], Damaged> {
    let (taken, after) = rest.split_at_checked(count).ok_or(Damaged)?;
    *rest = after;
    Ok(taken)
}

/// FNV-1a, which detects damage but not forgery.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        let mut memory = Memory::default();
        memory.add("", 0, &[16, 0, 2, 0, 0, 0, 0, 0]);
        memory.add("RANDR", 7, &[140, 8, 2, 0, 1, 2, 3, 4]);
        memory
    }

    #[test]
    fn a_written_memory_reads_back_unchanged() {
        let read = Memory::read(&memory().write()).unwrap();
        assert_eq!(read.entries(), memory().entries());
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let bytes = memory().write();
        for length in 0..bytes.len() {
            assert_eq!(Memory::read(&bytes[..length]).err(), Some(Damaged), "cut off after {length}");
        }
        for index in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[index] ^= 0x10;
            assert_eq!(Memory::read(&bytes).err(), Some(Damaged), "byte {index}");
        }
    }

    #[test]
    fn splitting_fonts_keeps_all_of_them() {
        let mut memory = memory();
        let font = |number: u8| [45, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, b'a' + number, 0, 0, 0];
        memory.add("", 0, &font(0));
        assert!(memory.fonts(4).is_empty(), "a single font is not split off");
        (1..6).for_each(|number| memory.add("", 0, &font(number)));
        let asked = |part: &Memory| part.entries().iter().map(|entry| entry.request[12] - b'a').collect::<Vec<_>>();
        assert_eq!(memory.fonts(4).iter().map(asked).collect::<Vec<_>>(), [&[0, 4][..], &[1, 5], &[2], &[3]]);
    }

    #[test]
    fn questions_are_remembered_once_and_within_limits() {
        let mut memory = memory();
        memory.add("RANDR", 7, &[150, 8, 2, 0, 1, 2, 3, 4]);
        assert_eq!(memory.entries().len(), 2, "the major opcode is not significant");
        memory.add("", 0, &[0; 4000]);
        for number in 0..100_000_u32 {
            memory.add("", 0, &number.to_le_bytes());
        }
        assert!(memory.entries().len() <= MAX_ENTRIES && memory.bytes <= MAX_BYTES);
        assert!(memory.write().len() as u64 <= MAX_FILE_BYTES);
    }
}
