// SPDX-License-Identifier: MIT
//! A glob: `*` matches any characters, `?` matches one character, everything else matches itself.
//!
//! A pattern must match a whole fact. A match costs at most the pattern's length times the fact's length. Both lengths
//! are bounded, so no match can take long.

use std::fmt;
use wildmatch::WildMatch;

/// Maximum length of a pattern, in bytes.
pub const MAX_PATTERN: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterCase {
    Sensitive,
    /// For window classes, like `xqos reserve --class`, and for host names.
    Ignored,
}

#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    case: LetterCase,
    /// `None`: the text has no wildcards.
    glob: Option<WildMatch>,
}

impl Pattern {
    pub fn new(text: &str, case: LetterCase) -> Result<Pattern, String> {
        if text.is_empty() {
            return Err("an empty pattern matches nothing: write a name, or \"*\" for any".to_owned());
        }
        if text.len() > MAX_PATTERN {
            return Err(format!("a pattern has at most {MAX_PATTERN} bytes, and this one has {}", text.len()));
        }
        let glob = text.contains(['*', '?']).then(|| match case {
            LetterCase::Sensitive => WildMatch::new(text),
            LetterCase::Ignored => WildMatch::new_case_insensitive(text),
        });
        Ok(Pattern { text: text.to_owned(), case, glob })
    }

    pub fn matches(&self, fact: &str) -> bool {
        match (&self.glob, self.case) {
            (Some(glob), _) => glob.matches(fact),
            (None, LetterCase::Sensitive) => self.text == fact,
            (None, LetterCase::Ignored) => self.text.eq_ignore_ascii_case(fact),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As it can be written in a rule file.
        let quote = if self.text.contains('\\') { '\'' } else { '"' };
        write!(out, "{quote}{}{quote}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fits(pattern: &str, fact: &str) -> bool {
        Pattern::new(pattern, LetterCase::Sensitive).unwrap().matches(fact)
    }

    #[test]
    fn a_pattern_matches_a_whole_fact() {
        assert!(fits("mpv", "mpv") && !fits("mpv", "mpv2") && !fits("mpv", "xmpv"));
        assert!(fits("*/mpv", "/usr/bin/mpv") && !fits("*/mpv", "/usr/bin/xmpv") && !fits("*/mpv", "mpv"));
        assert!(fits("10.0.0.*", "10.0.0.17") && fits("m?v", "mpv") && !fits("m?v", "mv"));
        assert!(fits("[a-b]{c}", "[a-b]{c}") && !fits("[a-b]{c}", "ac"), "only * and ? are special");
        assert!(fits("*", "") && fits("**", "x"));
    }

    #[test]
    fn case_insensitive_patterns_ignore_case() {
        let pattern = Pattern::new("MPV", LetterCase::Ignored).unwrap();
        assert!(pattern.matches("mpv") && pattern.matches("Mpv"));
        assert!(Pattern::new("Fire*", LetterCase::Ignored).unwrap().matches("firefox"));
        assert!(!fits("MPV", "mpv"));
    }

    #[test]
    fn empty_and_long_patterns_are_refused_with_the_limit() {
        assert!(Pattern::new("", LetterCase::Sensitive).unwrap_err().contains("\"*\""));
        assert!(Pattern::new(&"a".repeat(256), LetterCase::Sensitive).is_ok());
        assert!(Pattern::new(&"a".repeat(257), LetterCase::Sensitive).unwrap_err().contains("at most 256 bytes"));
    }

    #[test]
    fn many_stars_on_a_long_fact_terminate() {
        let pattern = "*a".repeat(127) + "*b";
        assert!(!fits(&pattern, &"a".repeat(4096)));
        assert!(fits(&pattern, &("a".repeat(4095) + "b")));
        assert!(!fits("*a*a*a*a*b", &"a".repeat(4096)));
    }
}
