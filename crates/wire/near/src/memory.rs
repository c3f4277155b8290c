// SPDX-License-Identifier: MIT
//! The questions of a connection, in the program's order. [`crate::Questions`] keeps them for the next start.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of questions. A typical start asks a few hundred questions whose answers can be stored.
const MAX_ENTRIES: usize = 4096;
/// Maximum total size of all questions. A request longer than `MAX_REQUEST_BYTES` is not remembered.
const MAX_BYTES: usize = 256 << 10;
const MAX_REQUEST_BYTES: usize = 2048;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RememberedQuestion {
    /// The extension's name; empty for the core protocol.
    pub extension: String,
    /// Hash of the state that earlier requests set in the extension (see `context`).
    pub state: u64,
    /// The request. Comparisons ignore an extension's major opcode, because servers assign it.
    pub request: Vec<u8>,
}

/// All questions that a program asked, in order.
#[derive(Clone, Debug, Default)]
pub struct AskedQuestions {
    pub entries: Vec<RememberedQuestion>,
    known: HashSet<u64>,
    bytes: usize,
}

impl AskedQuestions {
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
            self.entries.push(RememberedQuestion { extension: extension.to_owned(), state, request: request.to_vec() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> AskedQuestions {
        let mut memory = AskedQuestions::default();
        memory.add("", 0, &[16, 0, 2, 0, 0, 0, 0, 0]);
        memory.add("RANDR", 7, &[140, 8, 2, 0, 1, 2, 3, 4]);
        memory
    }

    #[test]
    fn questions_are_remembered_once_and_within_limits() {
        let mut memory = memory();
        memory.add("RANDR", 7, &[150, 8, 2, 0, 1, 2, 3, 4]);
        assert_eq!(memory.entries.len(), 2, "the major opcode is not significant");
        memory.add("", 0, &[0; 4000]);
        for number in 0..100_000_u32 {
            memory.add("", 0, &number.to_le_bytes());
        }
        assert!(memory.entries.len() <= MAX_ENTRIES && memory.bytes <= MAX_BYTES);
    }
}
