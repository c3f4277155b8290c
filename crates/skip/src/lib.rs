// SPDX-License-Identifier: MIT
//! For the tests of all crates: tells of one that cannot run here, so that none is left out in silence, and writes programs.
//!
//! `make test` counts those left out: each is a line of the file that `XQOS_SKIPS` names, which `make test` shows at its end.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

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

/// Writes a program that can be started at once. Another process writes it: a child that a test beside this one starts meanwhile
/// would keep our file open for writing, and the kernel starts no such program.
pub fn executable(path: &Path, content: &[u8]) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut writer = command.spawn().expect("there is a shell");
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
