// SPDX-License-Identifier: MIT
//! `analyse`: what it says of starts that were not captured, and of values that are none.

use crate::fixture::{Folder, ended, xqos};
use serde_json::Value;
use std::fs::File;
use std::path::Path;

/// A start of speedcrunch.
fn capture(folder: &Folder) -> String {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/starts/speedcrunch.pcapng.zst");
    let file = folder.file("speedcrunch.pcapng");
    zstd::stream::copy_decode(File::open(packed).unwrap(), File::create(&file).unwrap()).unwrap();
    file
}

#[test]
fn a_start_is_foretold_over_a_link_and_behind_a_proxy() {
    let folder = Folder::new("foretold");
    let capture = capture(&folder);
    let arguments = ["analyse", "--predict", "rate=1mbit,delay=50ms", "--proxy", "strict", "--latency", "100ms"];
    let text = ended(xqos().args(arguments).arg(&capture)).with(0).out;
    for words in
        ["Behind a proxy (strict)", "Foretold, in seconds: as captured, then behind a proxy (strict)", "1 Mb/s"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = ended(xqos().args(arguments).args(["--json", &capture])).with(0).out;
    let report: Value = serde_json::from_str(&json).unwrap();
    let (proxy, start) = (&report["session"]["proxy"], &report["predictions"][0]);
    assert_eq!((&proxy["proxy"], &proxy["waits"], &proxy["left"]), (&"strict".into(), &77.into(), &20.into()));
    let seconds = |start: &Value| start["seconds"].as_f64().unwrap();
    // 2 MB at 1 Mb/s, and 77 or 20 round trips of 100 ms; what the proxy knows need not come over the link.
    assert!((22.0..26.0).contains(&seconds(start)), "{start}");
    assert!((5.7..10.0).contains(&(seconds(start) - seconds(&start["proxy"]))), "{start}");
}

#[test]
fn the_grid_has_twenty_links() {
    let folder = Folder::new("foretold-grid");
    let json = ended(xqos().args(["analyse", "--predict", "grid", "--json", &capture(&folder)])).with(0).out;
    let report: Value = serde_json::from_str(&json).unwrap();
    let list = report["predictions"].as_array().unwrap();
    assert_eq!(list.len(), 20);
    assert!(list.iter().all(|start| start.get("proxy").is_none() && start["seconds"].as_f64().unwrap() > 0.2));
}

#[test]
fn values_that_are_none_end_with_2_and_one_line() {
    for (arguments, words) in [
        (["--proxy", "nx"], "write lbx, strict or relaxed"),
        (["--proxy", ""], "write lbx, strict or relaxed"),
        (["--predict", "1mbit"], "write rate=1mbit,delay=50ms, or grid"),
        (["--predict", "rate=0mbit"], "out of range"),
        (["--predict", "rate=999999gbit"], "out of range"),
        (["--predict", "rate=1mbit,delay=3h"], "10s at most"),
        (["--predict", "rate=1mbit,rate=1mbit"], "twice"),
        (["--predict", "delay=-1ms"], "such as 3ms"),
        (["--latency", "50"], "50ms"),
        (["--latency", "0ms"], "above 0"),
        (["--latency", "9999h"], "too long"),
    ] {
        let told = ended(xqos().arg("analyse").args(arguments).arg("none.pcapng")).with(2);
        assert!(told.err.contains(words), "{arguments:?}: {}", told.err);
    }
    ended(xqos().args(["analyse", "--predict", "grid", "--csv", "none.pcapng"])).with(2);
}
