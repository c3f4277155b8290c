// SPDX-License-Identifier: MIT
//! Helpers for the tests of all crates: reports tests that cannot run here, so that none is skipped silently, and
//! writes executable files.
//!
//! `make test` counts the skipped tests: each is a line in the file named by `XQOS_SKIPS`, which `make test` prints at
//! its end.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Prints that the test of this thread is skipped and why, and adds it to the list of skipped tests.
pub fn left_out(why: impl Display) {
    let thread = std::thread::current();
    let line = format!("{}: {}", thread.name().unwrap_or("a test"), one_line(&why.to_string()));
    println!("left out: {line}");
    if let Some(file) = std::env::var_os("XQOS_SKIPS") {
        let mut file = OpenOptions::new().create(true).append(true).open(file).expect("XQOS_SKIPS names a file");
        // One write, because several test programs may append at the same time.
        file.write_all(format!("{line}\n").as_bytes()).expect("XQOS_SKIPS can be written");
    }
}

/// Writes a program that can be started immediately. A separate process writes it: otherwise a child started meanwhile
/// by a parallel test could hold our file open for writing, and the kernel would refuse to execute it (ETXTBSY).
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
