// SPDX-License-Identifier: MIT
//! Makes text of other programs safe to print.

/// Replaces control characters, because a program may choose any name and the text may reach a terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// Joins the lines of a text, for messages of one line.
pub fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
