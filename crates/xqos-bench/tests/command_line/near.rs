// SPDX-License-Identifier: MIT
//! Measures one program far from its X server: a toolkit behind `xqos near` with a delay of 10 ms, including
//! interactive work.
//!
//! The bounds also hold on a busy machine, because load only makes the figures larger.

use crate::fixture::{Folder, ended, module, xqos};
use crate::grid::is_allowed;
use serde_json::Value;
use std::fs;

fn has_toolkit() -> bool {
    let is_there =
        std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|folder| folder.join("gtk3-demo").is_file());
    if !is_there {
        xqos_skip::left_out("gtk3-demo is not installed");
    }
    is_there
}

#[test]
fn a_start_behind_near_and_the_work_after_it_are_measured() {
    if !is_allowed() || !has_toolkit() {
        return;
    }
    let folder = Folder::new("near");
    let mut command = xqos();
    command.env("XQOS_MODULE", module()).env("XQOS_NEAR_ONLY", "near, strict").env("TMPDIR", &folder.path);
    let told = ended(command.args(["run", "near", "--quick", "--out"]).arg(folder.path.join("out"))).with(0);
    assert!(told.out.contains("gtk3-demo") && told.out.contains("Steady work"), "{told:#?}");
    let result: Value = serde_json::from_str(&fs::read_to_string(folder.path.join("out/near.json")).unwrap()).unwrap();
    let text = result.to_string();
    let cell = text.split_once("\"outcome\":{\"Ok\":").unwrap_or_else(|| panic!("a cell is measured: {text}")).1;
    let start = serde_json::Deserializer::from_str(cell).into_iter::<Value>().next().unwrap().unwrap();
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("a number in {start:#}"));
    // Each remaining wait takes a round trip.
    let left = number(&start["waits"]["left"]);
    assert!(left > 0.0 && number(&start["waits"]["saved"]) > left / 2.0, "{start:#}");
    assert!(number(&start["from_command_s"]) > number(&start["elapsed_s"]), "its own beginning is in it: {start:#}");
    assert!(number(&start["elapsed_s"]) > 0.1, "{start:#}");
    let key = &start["steady"]["scrolling"];
    assert!(number(&key["first_ms"]) >= 20.0, "a key needs a round trip: {start:#}");
    assert!(number(&key["last_ms"]) >= number(&key["first_ms"]), "{start:#}");
}
