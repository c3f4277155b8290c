// SPDX-License-Identifier: MIT
//! Tells of a test that cannot run here, so that none is left out in silence.
//!
//! `make test` counts them: each is a line of the file that `XQOS_SKIPS` names, which `make test` shows at its end.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Prints that the test of this thread is left out and why, and adds it to the file of all that were.
pub fn left_out(why: impl Display) {
    let thread = std::thread::current();
    let line = format!("{}: {}", thread.name().unwrap_or("a test"), one_line(&why.to_string()));
    println!("left out: {line}");
    if let Some(file) = std::env::var_os("XQOS_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(file).expect("XQOS_SKIPS names a file");
        // One write: programs of tests may add at the same time.
        file.write_all(format!("{line}\n").as_bytes()).expect("XQOS_SKIPS can be written");
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_reason_is_one_line() {
        assert_eq!(super::one_line("no such\n  program\n"), "no such program");
    }
}
