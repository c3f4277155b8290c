// SPDX-License-Identifier: MIT
//! The grid of slow links: measures its first cell (raw X over 10 Mb/s), then checks that an interrupted run continues
//! with the next cell.
//!
//! The bounds also hold on a busy machine, because load only makes the figures larger.

use crate::fixture::{Folder, Running, ended, eventually, module, xqos};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Skips the test, with the reason on standard error, where links are not allowed or xterm cannot run.
pub fn is_allowed() -> bool {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        xqos_testkit::left_out("xterm expects to be root in a user namespace and exits because it is not");
        return false;
    }
    let wire = module().with_file_name("xqos-wire");
    let told = ended(Command::new(wire).args(["link", "--", "xterm", "-version"]));
    if told.status != 0 {
        xqos_testkit::left_out(&told.err);
    }
    told.status == 0
}

/// The cells that a folder of results has so far.
fn cells(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("out/grid.parts")).unwrap_or_default();
    text.lines().skip(1).filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Runs the grid until this many cells have been measured, then interrupts the run.
fn run_until(folder: &Path, count: usize) -> String {
    let progress = folder.join("progress");
    let mut command = xqos();
    command.env("XQOS_MODULE", module()).args(["run", "grid", "--quick", "--out"]).arg(folder.join("out"));
    command.stdout(Stdio::null()).stderr(File::create(&progress).unwrap());
    let mut running = Running::start(command.env("TMPDIR", folder));
    let said = || fs::read_to_string(&progress).unwrap();
    eventually("the cell is measured", || (cells(folder).len() >= count || !running.is_running()).then_some(()));
    running.signal("INT");
    assert_eq!(running.ended().status, 130, "{}", said());
    said()
}

#[test]
fn a_cell_is_measured_and_an_interrupted_grid_continues_with_the_next() {
    if !is_allowed() {
        return;
    }
    let folder = Folder::new("grid");
    let said = run_until(&folder.path, 1);
    assert!(said.contains("10 Mb/s, 0.1 ms, xterm, raw X: turn 1"), "{said}");
    let cell = cells(&folder.path).remove(0);
    let number = |name: &str| cell["samples"][name][0].as_f64().unwrap_or_else(|| panic!("{name} in {cell:#}"));
    assert!(number("round_trips") > 50.0 && number("bytes") > 20_000.0, "{cell:#}");
    // Each round trip takes at least twice the one-way delay.
    assert!(
        number("network_delay") > 50.0 * 0.0002 && number("network_delay") <= number("elapsed") + 0.001,
        "{cell:#}"
    );
    assert!(number("link_bytes") > number("bytes") / 2.0, "the X traffic crosses the link: {cell:#}");
    assert!(number("agreement") > 80.0, "the states do not match this link: {cell:#}");
    let said = run_until(&folder.path, 2);
    assert!(!said.contains("0.1 ms, xterm, raw X: turn 1"), "measured cells are kept: {said}");
}
