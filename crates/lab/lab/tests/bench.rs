// SPDX-License-Identifier: MIT
//! Tests the benchmark from end to end, with xqos in a server: stored results and their evaluation.
//!
//! The test needs the module: run `make build` or set XQOS_MODULE.

use std::fs;
use std::path::PathBuf;
use xqos_lab::bench::{self, BenchOptions};
use xqos_lab::experiments;
use xqos_testkit::Folder;

#[test]
fn results_are_stored_and_rendered_again() {
    let folder = Folder::new("bench");
    let output = folder.path.join("out");
    let names = ["memory", "fairness"].map(str::to_owned).to_vec();
    let options = BenchOptions { names, out: output.clone(), quick: true, trials: 5, again: false, module: None };
    bench::run(experiments::all(), &options).unwrap();
    let read = |name: &str| fs::read_to_string(output.join(name)).unwrap();
    let findings: serde_json::Value = serde_json::from_str(&read("results.json")).unwrap();
    let findings = findings.as_array().unwrap();
    assert_eq!(findings.len(), 2);
    for finding in findings {
        assert_eq!(finding["quick"], true);
        assert!(finding["machine"]["server"].as_str().unwrap().starts_with("Xvfb "), "{finding}");
        assert!(!finding["verdicts"].as_array().unwrap().is_empty(), "{finding}");
    }
    let page = read("index.html");
    assert!(page.contains("Memory in the server") && page.contains("Jain index"));
    fs::remove_file(output.join("index.html")).unwrap();
    bench::report(&experiments::all(), &output, None).unwrap();
    assert_eq!(read("index.html"), page);
}

#[test]
fn a_missing_module_is_reported_before_measuring() {
    let folder = Folder::new("bench");
    let output = folder.path.join("out");
    let module = Some(PathBuf::from("/nowhere/module.so"));
    let names = vec!["memory".into()];
    let options = BenchOptions { names, out: output.clone(), quick: true, trials: 1, again: false, module };
    let error = bench::run(experiments::all(), &options).unwrap_err().to_string();
    assert!(error.contains("/nowhere/module.so") && !output.exists(), "{error}");
}
