// SPDX-License-Identifier: MIT
//! The word that was probably meant: programs propose it for commands, options and keys of files that they do not know.
//!
//! Only a word that a slip of the finger leads to is proposed; a proposal that is far off teaches nothing.

/// Bytes of a word that may be a slip of another.
const LONGEST: usize = 60;

/// What was probably meant, of the words that are known.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // A longer word is no slip of the finger, and would cost its length.
    if word.len() > LONGEST {
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
}
