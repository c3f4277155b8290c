// SPDX-License-Identifier: MIT
//! Helpers for the tests of all crates: one reports a test that cannot run here, so that no test is skipped silently;
//! the other writes an executable file.
//!
//! Each skipped test adds a line to the file that `XQOS_SKIPS` names. At the end, `make test` counts and prints these
//! lines.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Prints that this thread's test is skipped and why, and adds the test to the list of skipped tests.
pub fn left_out(why: impl Display) {
    let thread = std::thread::current();
    let line = format!("{}: {}", thread.name().unwrap_or("a test"), one_line(&why.to_string()));
    println!("left out: {line}");
    if let Some(file) = std::env::var_os("XQOS_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(file).expect("XQOS_SKIPS names a file");
        // Use a single write, because several test programs may append at the same time.
        file.write_all(format!("{line}\n").as_bytes()).expect("XQOS_SKIPS can be written");
    }
}

/// Writes a program that can be started immediately. A separate process writes the file. Otherwise, a child that a
/// parallel test forks could still have it open for writing, and the kernel would refuse to execute it (ETXTBSY).
pub fn executable(path: &Path, content: &[u8]) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = command.spawn().expect("sh can be started");
    writer.stdin.take().expect("it has a pipe").write_all(content).expect("the pipe can be written");
    assert!(writer.wait().expect("it ends").success(), "{} cannot be written", path.display());
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
