// SPDX-License-Identifier: MIT
//! Finds the known word that was probably meant, to suggest it for a mistyped command, option or key.
//!
//! A word is suggested only if a typing mistake explains the difference, because a wrong suggestion would mislead.

/// Longest word that gets a suggestion, in bytes.
const LONGEST: usize = 60;

/// The known word that was probably meant.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    // A longer word is unlikely to be a typing mistake, and the comparison would be slow.
    if word.len() > LONGEST {
        return None;
    }
    let distances = known.iter().map(|known| (distance(word, known), *known));
    let (distance, best) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1.max(best.len() / 3)).then_some(best)
}

/// Number of characters to insert, remove, change or swap with a neighbour (optimal string alignment).
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut last_but_one = Vec::new();
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for i in 0..one.len() {
        let mut row = vec![i + 1];
        for j in 0..other.len() {
            let changed = last[j] + usize::from(one[i] != other[j]);
            let least = changed.min(row[j] + 1).min(last[j + 1] + 1);
            let is_swapped = i > 0 && j > 0 && one[i] == other[j - 1] && one[i - 1] == other[j];
            row.push(if is_swapped { least.min(last_but_one[j - 1] + 1) } else { least });
        }
        last_but_one = std::mem::replace(&mut last, row);
    }
    last[other.len()]
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
