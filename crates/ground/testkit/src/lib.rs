// SPDX-License-Identifier: MIT
//! Helpers for the tests of all crates: they find required programs and files, report skipped tests (no test is skipped
//! silently), wait for conditions, draw random numbers, and create temporary folders.
//!
//! A test may use only programs and files that scripts/setup installs for tests. Others are refused even if they are
//! installed, so that the test fails on the author's machine and not first on a fresh one.
//!
//! Each skipped test adds a line to the file that `XQOS_SKIPS` names. At the end, `make test` counts and prints these
//! lines.

#![forbid(unsafe_code)]

mod folder;
mod random;
mod wait;

pub use folder::Folder;
pub use random::{Random, seed, seeds};
pub use wait::{find, wait_for};

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Contains the table of the programs and files that each purpose needs.
const SETUP: &str = include_str!("../../../../scripts/setup");

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

/// The path of a program. If it is not installed, the test is skipped. Panics if scripts/setup does not install the
/// program for tests (with `make test-lab`: neither for tests nor for the lab).
pub fn program(name: &str) -> Option<PathBuf> {
    refuse_unlisted("program", name, is_lab());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = find_program(name, &path);
    if found.is_none() {
        left_out(format_args!("{name} is not installed"));
    }
    found
}

/// Like [`program`], for a file or folder that scripts/setup lists by its path.
pub fn file(path: &str) -> Option<PathBuf> {
    refuse_unlisted("file", path, is_lab());
    let found = Some(PathBuf::from(path)).filter(|path| path.exists());
    if found.is_none() {
        left_out(format_args!("{path} is not installed"));
    }
    found
}

fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    // The PATH of an ordinary user may lack /usr/sbin.
    let folders = std::env::split_paths(path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn is_lab() -> bool {
    std::env::var_os("XQOS_TEST_LAB").is_some()
}

fn refuse_unlisted(kind: &str, name: &str, is_lab: bool) {
    let is_installed = |purpose| matches!(purpose, "build" | "demo" | "test") || purpose == "lab" && is_lab;
    let is_listed = SETUP.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|row| {
        matches!(&row[..], [purpose, _, its, names @ ..] if is_installed(purpose) && *its == kind && names.contains(&name))
    });
    assert!(
        is_listed,
        "scripts/setup does not install {name} for tests: add it to the table there, or move the test to `make test-lab`"
    );
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
    use super::*;

    #[test]
    fn programs_and_files_of_the_table_are_found() {
        assert!(program("make").is_some_and(|path| path.is_file()));
        assert_eq!(file("/usr/share/xcb"), Some(PathBuf::from("/usr/share/xcb")));
        refuse_unlisted("program", "prometheus", true);
    }

    #[test]
    fn programs_and_files_outside_the_table_are_refused_even_if_installed() {
        for (kind, name) in [("program", "prometheus"), ("program", "dpkg"), ("program", "mak"), ("file", "/usr/share")]
        {
            let refused = std::panic::catch_unwind(|| refuse_unlisted(kind, name, false)).unwrap_err();
            let message = refused.downcast_ref::<String>().unwrap();
            assert!(message.contains(&format!("does not install {name} for tests")), "{message}");
        }
    }

    #[test]
    fn a_reason_is_one_line() {
        assert_eq!(one_line("no such\n  program\n"), "no such program");
    }
}
