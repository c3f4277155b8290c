// SPDX-License-Identifier: MIT
//! A mistake in a file that a user writes: the line, the reason and what to write instead.

use crate::escape::printable;
use std::fmt;
use std::sync::Arc;

/// Maximum number of characters that a message quotes from a file.
const MAX_QUOTED: usize = 60;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub file: Arc<str>,
    /// Line number; 0 stands for the whole file or folder.
    pub line: usize,
    pub what: String,
}

impl Mistake {
    /// A mistake that concerns a whole file or folder.
    pub fn in_file(file: &str, what: impl Into<String>) -> Mistake {
        Mistake { file: file.into(), line: 0, what: what.into() }
    }

    /// A mistake in the line that has this byte of the text.
    pub fn at(file: &str, text: &[u8], offset: usize, what: impl Into<String>) -> Mistake {
        let line = text.iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1;
        Mistake { file: file.into(), line, what: what.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = printable(&self.file);
        match self.line {
            0 => write!(out, "{file}: {}", self.what),
            line => write!(out, "{file}:{line}: {}", self.what),
        }
    }
}

impl std::error::Error for Mistake {}

/// Makes untrusted text safe to print: short and without control characters.
pub fn clean(word: &str) -> String {
    let mut letters = printable(word);
    if let Some((at, _)) = letters.char_indices().nth(MAX_QUOTED) {
        letters.truncate(at);
        letters.push_str("...");
    }
    letters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_shortened_and_loses_control_characters() {
        assert_eq!(clean("a\x1b[2Jb"), "a?[2Jb");
        assert_eq!(clean(&"ä".repeat(100)), "ä".repeat(60) + "...");
    }
}
