// SPDX-License-Identifier: MIT
//! Which of many patterns fit a fact, without trying each.
//!
//! A glob can only fit where its plain letters are: of each, the run of letters is looked for that fewest others have, all of
//! them in one pass over the fact (Aho and Corasick, 1975). Where it is found, and at the end at which the glob has it, the
//! glob itself is tried. What is found is exactly what trying each would find.

use crate::pattern::{Case, Pattern};
use aho_corasick::AhoCorasick;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Bytes of a run that are looked for. It bounds what the automaton holds, and tells patterns apart well enough.
const MAX_RUN: usize = 16;

/// Where a glob has a run of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Begin,
    Inside,
    End,
}

/// The patterns of one key.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Each with whatever it stands for.
    patterns: Vec<(Pattern, Vec<usize>)>,
    /// Those without wildcards, by their text.
    whole: HashMap<String, Vec<usize>>,
    runs: Option<AhoCorasick>,
    /// Of each run: the globs that are found by it.
    found_by: Vec<Vec<(usize, Place)>>,
    /// Globs without letters.
    always: Vec<usize>,
}

impl Index {
    /// Of patterns of the same key, with numbers of what they stand for.
    pub(crate) fn new<'a>(all: impl Iterator<Item = (&'a Pattern, usize)>) -> Index {
        let mut index = Index::default();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (pattern, number) in all {
            let at = *known.entry(pattern.as_str()).or_insert(index.patterns.len());
            match index.patterns.get_mut(at) {
                Some((_, numbers)) => numbers.push(number),
                None => index.patterns.push((pattern.clone(), vec![number])),
            }
        }
        index.place();
        index
    }

    /// Tells the numbers of all patterns that fit; gives how many were tried.
    pub(crate) fn find(&self, fact: &str, mut tell: impl FnMut(usize)) -> usize {
        let mut tried = 0;
        let mut attempt = |at: usize| {
            let (pattern, numbers) = &self.patterns[at];
            tried += 1;
            if pattern.matches(fact) {
                numbers.iter().for_each(|&number| tell(number));
            }
        };
        let folded = self.patterns.first().map_or(String::new(), |(pattern, _)| folded(fact, pattern.case()));
        self.always.iter().for_each(|&at| attempt(at));
        self.whole.get(&folded).into_iter().flatten().for_each(|&at| attempt(at));
        let Some(runs) = &self.runs else { return tried };
        let mut is_seen = vec![false; self.found_by.len()];
        for found in runs.find_overlapping_iter(&folded) {
            let run = found.pattern().as_usize();
            let is_new = !std::mem::replace(&mut is_seen[run], true);
            let is_at = |place| match place {
                Place::Begin => found.start() == 0,
                Place::Inside => is_new,
                Place::End => found.end() == folded.len(),
            };
            self.found_by[run].iter().filter(|(_, place)| is_at(*place)).for_each(|&(at, _)| attempt(at));
        }
        tried
    }

    /// Decides by what each pattern is found.
    fn place(&mut self) {
        let runs: Vec<Vec<(String, Place)>> = self.patterns.iter().map(|(pattern, _)| runs_of(pattern)).collect();
        let mut used: HashMap<&str, usize> = HashMap::new();
        runs.iter().flatten().for_each(|(run, _)| *used.entry(run).or_default() += 1);
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for (at, (pattern, _)) in self.patterns.iter().enumerate() {
            if pattern.is_plain() {
                self.whole.entry(folded(pattern.as_str(), pattern.case())).or_default().push(at);
                continue;
            }
            let rarest = runs[at].iter().min_by_key(|(run, _)| (used[run.as_str()], Reverse(run.len())));
            let Some((run, place)) = rarest else {
                self.always.push(at);
                continue;
            };
            let number = *numbers.entry(run).or_insert(self.found_by.len());
            if number == self.found_by.len() {
                self.found_by.push(Vec::new());
            }
            self.found_by[number].push((at, *place));
        }
        let mut texts = vec![""; numbers.len()];
        numbers.into_iter().for_each(|(run, number)| texts[number] = run);
        match AhoCorasick::new(&texts) {
            Ok(automaton) => self.runs = Some(automaton).filter(|_| !texts.is_empty()),
            // More than an automaton can hold: then each is tried.
            Err(_) => self.always.extend(self.found_by.drain(..).flatten().map(|(at, _)| at)),
        }
    }
}

/// The runs of plain letters in a glob; none of a text without wildcards.
fn runs_of(pattern: &Pattern) -> Vec<(String, Place)> {
    let text = pattern.as_str();
    if pattern.is_plain() {
        return Vec::new();
    }
    let end = text.split(['*', '?']).count() - 1;
    let runs = text.split(['*', '?']).enumerate().map(|(at, run)| {
        let place = if at == 0 {
            Place::Begin
        } else if at == end {
            Place::End
        } else {
            Place::Inside
        };
        (folded(run, pattern.case()), place)
    });
    runs.filter(|(run, _)| !run.is_empty()).map(|(run, place)| (shortened(&run, place), place)).collect()
}

/// As much of a run as is looked for, in whole letters.
fn shortened(run: &str, place: Place) -> String {
    let is_fit = |part: &&str| part.len() <= MAX_RUN;
    let mut cuts = run.char_indices().map(|(at, _)| at).chain([run.len()]);
    let part = match place {
        Place::End => cuts.map(|at| &run[at..]).find(is_fit),
        Place::Begin | Place::Inside => cuts.by_ref().map(|at| &run[..at]).take_while(is_fit).last(),
    };
    part.unwrap_or_default().to_owned()
}

/// Letters as patterns of this case compare them.
fn folded(text: &str, case: Case) -> String {
    match case {
        Case::Counts => text.to_owned(),
        Case::Ignored => text.chars().flat_map(char::to_lowercase).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(patterns: &[Pattern], fact: &str) -> (Vec<usize>, usize) {
        let index = Index::new(patterns.iter().zip(0..));
        let mut found = Vec::new();
        let tried = index.find(fact, |number| found.push(number));
        found.sort_unstable();
        (found, tried)
    }

    fn patterns(texts: &[&str], case: Case) -> Vec<Pattern> {
        texts.iter().map(|text| Pattern::new(text, case).unwrap()).collect()
    }

    #[test]
    fn a_glob_is_tried_where_its_rarest_letters_are_at_their_end_of_the_fact() {
        let all = patterns(&["*/mpv", "/usr/bin/*-1", "/usr/bin/*-2", "*", "/usr/bin/mpv", "*/mpv"], Case::Counts);
        assert_eq!(found(&all, "/usr/bin/mpv"), (vec![0, 3, 4, 5], 3));
        assert_eq!(found(&all, "/usr/bin/mpv-2"), (vec![2, 3], 2));
        assert_eq!(found(&all, "/opt/mpv/-1x"), (vec![3], 1));
    }

    #[test]
    fn letters_that_come_again_and_again_cost_one_try() {
        let all = patterns(&["*a*b", "*a?a*"], Case::Counts);
        let (numbers, tried) = found(&all, &"a".repeat(4096));
        assert_eq!((numbers, tried), (vec![1], 1));
    }

    #[test]
    fn long_runs_are_cut_at_letters() {
        let long = "ä".repeat(100);
        for pattern in [format!("*{long}"), format!("{long}*"), format!("?{long}*")] {
            let all = patterns(&[&pattern], Case::Counts);
            assert_eq!(
                found(&all, &format!("ä{long}")).0.len(),
                usize::from(pattern != format!("{long}?")),
                "{pattern}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Few letters, so that they meet, and some whose lower case is another letter or two.
        #[test]
        fn what_is_found_is_what_trying_each_finds(
            texts in proptest::collection::vec("[abAk\u{212a}\u{130}/*?]{1,20}", 0..20),
            fact in "[abAk\u{212a}\u{130}i\u{307}/]{0,24}",
            ignored in any::<bool>(),
        ) {
            let case = if ignored { Case::Ignored } else { Case::Counts };
            let all: Vec<Pattern> = texts.iter().map(|text| Pattern::new(text, case).unwrap()).collect();
            let each: Vec<usize> = (0..all.len()).filter(|&at| all[at].matches(&fact)).collect();
            let (found, tried) = found(&all, &fact);
            prop_assert_eq!(found, each);
            prop_assert!(tried <= all.len());
        }
    }
}
