// SPDX-License-Identifier: MIT
//! Measures one program far from its X server: a toolkit behind `xqos near` with a delay of 10 ms.
//!
//! The bounds also hold on a busy machine, because load only makes the figures larger.

use crate::fixture::{Folder, ended, module, xqos};
use crate::grid::is_allowed;
use serde_json::Value;
use std::fs;

const EXPERIMENT: &str = r#"about = "one start"
title = "One start"
question = "How long does it take?"
[order]
fixed_turns = 1
[setting]
measure = "command"
server = "stock"
command = ["start-over-link", "server", "gtk3-demo", "strict", "10mbit", "10ms"]
prints = ["from_command", "elapsed", "left", "saved"]
count_quick = 1
"#;

#[test]
fn a_start_behind_near_is_measured() {
    if !is_allowed() || xqos_testkit::program("gtk3-demo").is_none() {
        return;
    }
    let folder = Folder::new("near");
    let file = folder.path.join("one.toml");
    fs::write(&file, EXPERIMENT).unwrap();
    let mut command = xqos();
    command.env("XQOS_MODULE", module()).env("TMPDIR", &folder.path).args(["run", "--quick", "--out"]);
    ended(command.arg(folder.path.join("out")).arg(&file)).with(0);
    let result: Value = serde_json::from_str(&fs::read_to_string(folder.path.join("out/one.json")).unwrap()).unwrap();
    let start = &result["raw"]["trials"][0]["samples"];
    let number = |name: &str| start[name][0].as_f64().unwrap_or_else(|| panic!("{name} in {result:#}"));
    // Each remaining wait takes a round trip.
    assert!(number("left") > 0.0 && number("saved") > number("left") / 2.0, "{start:#}");
    assert!(number("from_command") > number("elapsed"), "it includes the start of near: {start:#}");
    assert!(number("elapsed") > 0.1, "{start:#}");
}
