// SPDX-License-Identifier: MIT
//! Each test has a row in the file `with-libc`, which records whether the test runs with the libc host.

use std::process::Command;

const ROWS: &str = include_str!("../with-libc");

#[test]
fn each_test_has_a_row_and_each_row_has_a_test() {
    let listed = Command::new(std::env::current_exe().unwrap()).arg("--list").output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let tests: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let rows = ROWS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let mut words = line.split_whitespace();
        assert!(matches!(words.next(), Some("run" | "skip")), "{line}");
        let name = words.next().expect("a name");
        assert!(words.next().is_some(), "{line}: no reason");
        name
    });
    let rows: Vec<&str> = rows.collect();
    for test in &tests {
        assert!(rows.iter().any(|row| test.starts_with(row)), "{test} has no row");
    }
    for row in rows {
        assert!(tests.iter().any(|test| test.starts_with(row)), "{row} has no test");
    }
}
