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

/// What was probably meant, of the words that are known.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // A longer word is no slip of the finger, and would cost its length.
    if word.len() > SHOWN {
        return None;
    }
    let distances = known.iter().map(|known| (distance(word, known), *known));
    let (distance, best) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1.max(best.len() / 3)).then_some(best)
}

/// Letters to put in, take out or change (Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, against) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *against);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_named_where_there_is_one() {
        let known = ["exe", "name", "class", "weight", "priority"];
        for (word, meant) in [("weigth", "weight"), ("clas", "class"), ("prio", "priority"), ("Exe", "exe")] {
            assert_eq!(nearest(word, &known), (word != "prio").then_some(meant), "{word}");
        }
        assert_eq!(nearest("something-else", &known), None);
        assert_eq!(nearest(&"w".repeat(1_000_000), &known), None);
    }

    #[test]
    fn words_of_strangers_are_cut_and_have_no_control_characters() {
        assert_eq!(shown("a\x1b[2Jb"), "a?[2Jb");
        assert_eq!(shown(&"ä".repeat(100)), "ä".repeat(60) + "...");
    }
}
