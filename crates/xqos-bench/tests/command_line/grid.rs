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
        xqos_skip::left_out("xterm expects to be root in a user namespace and exits because it is not");
        return false;
    }
    let wire = module().with_file_name("xqos-wire");
    let told = ended(Command::new(wire).args(["link", "--", "xterm", "-version"]));
    if told.status != 0 {
        xqos_skip::left_out(&told.err);
    }
    told.status == 0
}

/// Runs the grid until the progress output satisfies `has_come`, then interrupts the run.
fn run_until(folder: &Path, has_come: impl Fn(&str) -> bool) -> String {
    let progress = folder.join("progress");
    let mut command = xqos();
    command.env("XQOS_MODULE", module()).args(["run", "grid", "--quick", "--out"]).arg(folder.join("out"));
    command.stdout(Stdio::null()).stderr(File::create(&progress).unwrap());
    let mut running = Running::start(command.env("TMPDIR", folder));
    let said = || fs::read_to_string(&progress).unwrap();
    eventually("the cell is measured", || (has_come(&said()) || !running.is_running()).then_some(()));
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
    // Cells whose program is missing are skipped, so the first measured cell need not be number 1.
    let cells = |said: &str| said.matches(" of 8: ").count();
    let said = run_until(&folder.path, |said| cells(said) >= 2);
    let first = said.split("cell ").nth(1).and_then(|line| line.split_once(';')).expect("a cell").0.to_owned();
    assert!(first.ends_with("xterm, raw X, 10 Mb/s / 0.1 ms"), "{said}");
    let parts = fs::read_to_string(folder.path.join("out/grid.parts")).unwrap();
    let line = parts.lines().find(|line| line.contains("\"Ok\"")).expect("a cell is kept");
    let cell: Value = serde_json::from_str(line).unwrap();
    let measured = &cell["outcome"]["Ok"];
    let number = |name: &str| measured[name].as_f64().unwrap_or_else(|| panic!("{name} in {cell:#}"));
    assert!(number("round_trips") > 50.0 && number("x_bytes") > 20_000.0, "{cell:#}");
    // Each round trip takes at least twice the one-way delay.
    assert!(number("delay_s") > 50.0 * 0.0002 && number("delay_s") <= number("elapsed_s") + 0.001, "{cell:#}");
    let back = measured["link_bytes"][1].as_u64().expect("bytes of the link");
    assert!(back as f64 > number("x_bytes") / 2.0, "what X says goes over the link: {cell:#}");
    for part in measured["agreement"].as_array().expect("of raw X") {
        assert!(part.as_f64().unwrap() > 0.8, "the classifier is not of this link: {cell:#}");
    }
    let said = run_until(&folder.path, |said| cells(said) >= 1);
    assert!(!said.contains(&first), "what was done is kept: {said}");
}
