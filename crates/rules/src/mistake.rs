// SPDX-License-Identifier: MIT
//! What is wrong with a rule file: where, what, and what to write instead.
//!
//! Everything that a file can be refused for is one of these, in one line, so that the daemon, `xqos rules check` and the
//! tests say the same.

use std::fmt;
use std::sync::Arc;

/// As many are told of one file; the rest is counted.
pub const TOLD: usize = 20;
/// A word of a file in a message is cut here, in characters.
const SHOWN: usize = 60;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub file: Arc<str>,
    /// 0: the file or folder as a whole.
    pub line: usize,
    pub what: String,
}

impl Mistake {
    /// About a file or folder as a whole.
    pub fn whole(file: &str, what: impl Into<String>) -> Mistake {
        Mistake { file: file.into(), line: 0, what: what.into() }
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

/// A word of a stranger's, short and without control characters.
pub fn shown(word: &str) -> String {
    let mut letters = printable(word);
    if let Some((at, _)) = letters.char_indices().nth(SHOWN) {
        letters.truncate(at);
        letters.push_str("...");
    }
    letters
}

fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_strangers_are_cut_and_have_no_control_characters() {
        assert_eq!(shown("a\x1b[2Jb"), "a?[2Jb");
        assert_eq!(shown(&"ä".repeat(100)), "ä".repeat(60) + "...");
    }
}
