// SPDX-License-Identifier: MIT
//! scripts/test-runner hides the programs that scripts/setup does not install for tests.

use std::path::Path;
use std::process::Command;
use xqos_testkit::Folder;

const RUNNER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/test-runner");

/// The runner changes PATH only on Debian.
fn is_debian() -> bool {
    let is_debian = Path::new("/usr/bin/dpkg-query").exists();
    if !is_debian {
        xqos_testkit::left_out("this is not Debian");
    }
    is_debian
}

/// Puts programs into a folder on PATH, and returns those that a test finds when the runner starts it.
fn found(is_lab: bool) -> Vec<String> {
    let folder = Folder::new("runner");
    std::fs::create_dir(folder.path.join("deps")).unwrap();
    for name in ["xclock", "promtool", "unlisted"] {
        xqos_testkit::executable(&folder.path.join(name), b"#!/bin/sh\n");
    }
    let test = folder.path.join("deps/test");
    xqos_testkit::executable(
        &test,
        b"#!/bin/sh\nfor name in sh awk xclock promtool unlisted; do command -v $name; done\n",
    );
    let path = format!("{}:{}", folder.path.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(RUNNER);
    command.arg(test).env("PATH", path).env("CARGO_TARGET_DIR", folder.path.join("target")).env_remove("XQOS_TEST_LAB");
    if is_lab {
        command.env("XQOS_TEST_LAB", "1");
    }
    let paths = String::from_utf8(command.output().unwrap().stdout).unwrap();
    paths.lines().map(|path| path.rsplit('/').next().unwrap().to_owned()).collect()
}

#[test]
fn a_test_finds_only_programs_of_the_table_and_of_required_packages() {
    if is_debian() {
        assert_eq!(found(false), ["sh", "awk", "xclock"]);
        assert_eq!(found(true), ["sh", "awk", "xclock", "promtool"]);
    }
}

#[test]
fn this_test_runs_through_the_runner() {
    if is_debian() {
        let path = std::env::var("PATH").unwrap();
        assert!(path.contains("/test-programs/") && !path.contains(':'), "{path}");
    }
}
