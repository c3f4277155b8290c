// SPDX-License-Identifier: MIT
//! Width of text in a terminal.
//!
//! Names can be in any script: a Chinese, Japanese or Korean character takes two columns, a combining mark takes none.
//! Cut text is never wider than the limit, and fitted text has exactly the given width.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

pub fn columns(text: &str) -> usize {
    text.width()
}

/// Cuts or pads a text to exactly `width` columns.
pub fn fitted(text: &str, width: usize, align: Align) -> String {
    padded(&cut(text, width), width, align)
}

/// Pads a text to at least `width` columns.
pub fn padded(text: &str, width: usize, align: Align) -> String {
    let spaces = " ".repeat(width.saturating_sub(columns(text)));
    match align {
        Align::Left => format!("{text}{spaces}"),
        Align::Right => format!("{spaces}{text}"),
    }
}

/// Cuts a text to at most `width` columns; a cut text ends in '…'.
pub fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let mut used = 0;
    let fits = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= room
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short
}

/// Wraps a text into lines of at most `width` columns. Words that do not fit in a line are cut.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').map(|word| cut(word, width)) {
        match lines.last_mut().filter(|line| line.is_empty() || columns(line) + 1 + columns(&word) <= width) {
            Some(line) if line.is_empty() => *line = word,
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "e" with a combining acute accent: two characters, one column.
    const ACCENTED: &str = "e\u{301}";

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        assert_eq!((columns("xclock"), columns("東京"), columns(ACCENTED), columns("")), (6, 4, 1, 0));
        assert_eq!(fitted("東京", 6, Align::Left), "東京  ");
        assert_eq!(fitted("東京", 6, Align::Right), "  東京");
        assert_eq!(fitted(ACCENTED, 3, Align::Right), format!("  {ACCENTED}"));
    }

    #[test]
    fn characters_are_not_split() {
        // Two columns are left after 東. The next character would fill both and leave none for '…'.
        assert_eq!(cut("東京都", 4), "東…");
        assert_eq!(fitted("東京都", 4, Align::Left), "東… ");
        assert_eq!(cut("東京都", 6), "東京都");
        let name = ACCENTED.repeat(3);
        assert_eq!(cut(&name, 2), format!("{ACCENTED}…"), "a mark stays with its letter");
        assert_eq!((cut("xclock", 1), cut("xclock", 0)), ("…".to_owned(), String::new()));
    }

    #[test]
    fn fitted_text_has_the_requested_width() {
        for text in ["xclock", "東京都庁", "e\u{301}e\u{301}e\u{301}e\u{301}", "한국어 x", "👩‍🚀 mpv", ""]
        {
            for width in 0..12 {
                assert_eq!(columns(&fitted(text, width, Align::Left)), width, "{text} in {width}");
            }
        }
    }

    #[test]
    fn lines_are_broken_between_words_and_no_line_is_too_wide() {
        assert_eq!(wrapped("a longest wait, since then", 10), ["a longest", "wait,", "since then"]);
        assert_eq!(wrapped("PolyFillRectangle of 東京都庁", 8), ["PolyFil…", "of", "東京都庁"]);
        assert_eq!((wrapped("short", 80), wrapped("", 8)), (vec!["short".to_owned()], vec![String::new()]));
    }
}
