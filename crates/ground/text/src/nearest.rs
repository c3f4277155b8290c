// SPDX-License-Identifier: MIT
//! Finds the known word that was probably meant, to suggest it for a mistyped command, option or key.
//!
//! A word is suggested only if a typing mistake explains the difference, because a wrong suggestion would mislead.

use strsim::osa_distance;

/// Longest word that gets a suggestion, in bytes.
const LONGEST: usize = 60;

/// The known word that was probably meant.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // A longer word is unlikely to be a typing mistake, and the comparison would be slow.
    if word.len() > LONGEST {
        return None;
    }
    let distances = known.iter().map(|known| (osa_distance(word, known), *known));
    let (distance, best) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1.max(best.len() / 3)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_suggested() {
        let known = ["exe", "name", "class", "weight", "priority"];
        for (word, meant) in [("weigth", "weight"), ("clas", "class"), ("prio", "priority"), ("Exe", "exe")] {
            assert_eq!(nearest(word, &known), (word != "prio").then_some(meant), "{word}");
        }
        assert_eq!(nearest("something-else", &known), None);
        assert_eq!(nearest("lsit", &["list", "bench"]), Some("list"), "swapped neighbours are one slip");
        assert_eq!(nearest("nice", &["list", "bench"]), None);
        assert_eq!(nearest(&"w".repeat(1_000_000), &known), None);
    }
}
