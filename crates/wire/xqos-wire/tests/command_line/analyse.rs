// SPDX-License-Identifier: MIT
//! Tests `xqos analyse`: predicted starts, captures from bug reports, and invalid option values.

use crate::fixture::{Folder, ended, xqos};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;

/// Unpacks the capture of a start of speedcrunch.
fn capture(folder: &Folder) -> String {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/starts/speedcrunch.pcapng.zst");
    let file = folder.file("speedcrunch.pcapng");
    zstd::stream::copy_decode(File::open(packed).unwrap(), File::create(&file).unwrap()).unwrap();
    file
}

#[test]
fn a_start_is_predicted_over_a_link_and_behind_a_proxy() {
    let folder = Folder::new("foretold");
    let capture = capture(&folder);
    let arguments = ["analyse", "--predict", "rate=1mbit,delay=50ms", "--proxy", "strict", "--latency", "100ms"];
    let text = ended(xqos().args(arguments).arg(&capture)).with(0).out;
    for words in
        ["Behind a proxy (strict)", "Predicted, in seconds: as captured, then behind a proxy (strict)", "1 Mb/s"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = ended(xqos().args(arguments).args(["--json", &capture])).with(0).out;
    let report: Value = serde_json::from_str(&json).unwrap();
    let (proxy, start) = (&report["session"]["proxy"], &report["predictions"][0]);
    assert_eq!((&proxy["proxy"], &proxy["waits"], &proxy["left"]), (&"strict".into(), &77.into(), &20.into()));
    let seconds = |start: &Value| start["seconds"].as_f64().unwrap();
    // 2 MB at 1 Mb/s, plus 77 or 20 round trips of 100 ms. The proxy's own answers do not use the link.
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

/// Analyses a capture from a bug report. Returns the notes, the report, and the report's first connection.
fn reported(name: &str, arguments: &[&str]) -> (String, Value, Value) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/reported").join(name);
    let told = ended(xqos().args(["analyse", "--json"]).args(arguments).arg(&file)).with(0);
    let report: Value = serde_json::from_str(&told.out).unwrap();
    let connection = report["connections"][0].clone();
    (told.err, report, connection)
}

fn again(connection: &Value) -> u64 {
    ["requests", "replies"].map(|way| connection["streams"][way]["retransmitted_bytes"].as_u64().unwrap()).iter().sum()
}

#[test]
fn keep_alives_with_one_byte_count_as_idle() {
    let (err, _, connection) = reported("keepalive.pcap", &[]);
    assert!(connection["idle_s"].as_f64().unwrap() > 240.0 && err.is_empty(), "{connection}");
    assert_eq!((again(&connection), &connection["round_trips"]), (0, &7.into()));
}

#[test]
fn captured_headers_are_enough_for_round_trips_and_gaps_are_reported() {
    let (err, report, connection) = reported("snap96.pcap", &["--predict", "rate=1mbit"]);
    assert!(err.contains("7778 bytes inside messages were not captured") && err.lines().count() == 1, "{err}");
    assert_eq!((&connection["round_trips"], &connection["is_whole"]), (&10.into(), &true.into()));
    assert_eq!(report["predictions"][0]["round_trips"], 9, "the program did not wait for the last reply");
}

#[test]
fn a_lost_syn_counts_as_network_time() {
    let (_, report, connection) = reported("syn-again.pcap", &["--predict", "rate=10mbit,delay=10ms"]);
    let start = &connection["startup"]["quiet"];
    let seconds = |value: &Value| value.as_f64().unwrap();
    assert!(seconds(&start["client_s"]) < 0.01 && seconds(&start["blocked_s"]) > 1.0, "{start}");
    assert!(seconds(&report["predictions"][0]["seconds"]) < 0.2, "{}", report["predictions"][0]);
}

#[test]
fn a_request_of_length_0_leaves_later_requests_readable() {
    let (err, _, connection) = reported("zero.pcap", &[]);
    assert_eq!((&connection["replies"]["InternAtom"]["count"], &connection["round_trips"]), (&4.into(), &5.into()));
    assert_eq!((&connection["errors"]["Length"]["count"], err.as_str()), (&1.into(), ""));
}

#[test]
fn packets_seen_on_two_interfaces_are_counted_once() {
    let (err, _, connection) = reported("sll2.pcap", &[]);
    assert!(err.contains("32 packets were captured twice"), "{err}");
    assert_eq!((again(&connection), &connection["streams"]["requests"]["packets"]), (0, &19.into()));
}

#[test]
fn nanoseconds_in_a_file_of_microseconds_are_detected_and_reported() {
    let (err, _, connection) = reported("ns-in-us.pcap", &[]);
    assert!(err.contains("counts nanoseconds"), "{err}");
    assert!((0.8..1.0).contains(&connection["seconds"].as_f64().unwrap()), "{}", connection["seconds"]);
}

#[test]
fn packets_that_are_not_tcp_are_counted() {
    let folder = Folder::new("other-packets");
    let original = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/reported/zero.pcap")).unwrap();
    let file = folder.file("other.pcap");
    let analyse = || ended(xqos().args(["analyse", "--messages", &file]));
    // An ARP packet before the other packets.
    let arp = [&[0; 8][..], &[14, 0, 0, 0].repeat(2), &[0; 12], &[8, 6]].concat();
    fs::write(&file, [&original[..24], &arp, &original[24..]].concat()).unwrap();
    let told = analyse().with(0);
    assert!(told.err.contains("1 packets were left out: they are not TCP over IP"), "{}", told.err);
    fs::write(&file, [&original[..24], &arp.repeat(3)].concat()).unwrap();
    let told = analyse().with(1);
    assert!(told.err.contains("3 packets were left out"), "{}", told.err);
    assert!(told.err.contains("has no X connection (3 packets): capture TCP"), "{}", told.err);
}

#[test]
fn messages_are_lines_of_text_or_json() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/reported/zero.pcap");
    let print = |arguments: &[&str]| ended(xqos().args(["analyse", "--messages"]).args(arguments).arg(&file));
    let text = print(&[]).with(0).out;
    let atom = "1 > 2 Request InternAtom 16: only_if_exists false, name_len 7, name \"AFTER_0\"";
    assert!(text.lines().next().unwrap().starts_with("0.000000 1 opened ") && text.contains(atom), "{text}");
    let json = print(&["--json", "--connection", "1"]).with(0).out;
    let lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), text.lines().count());
    let request = lines.iter().find(|line| line["name"] == "InternAtom" && line["kind"] == "request").unwrap();
    assert_eq!((&request["connection"], &request["fields"]["only_if_exists"]), (&1.into(), &"false".into()));
    print(&["--connection", "2"]).failed_saying(&["there is no connection 2: the capture has 1"]);
    print(&["--connection", "0"]).failed_saying(&["there is no connection 0"]);
    ended(xqos().args(["analyse", "--messages", "/etc/passwd"])).failed_saying(&["/etc/passwd", "neither a pcap"]);
    ended(xqos().args(["analyse", "--json", "--connection", "1"]).arg(&file)).failed_saying(&["add --messages"]);
    print(&["--csv"]).with(2);
    print(&["--predict", "grid"]).with(2);
}

#[test]
fn a_filter_leaves_only_messages_with_its_names() {
    let folder = Folder::new("where");
    let file = capture(&folder);
    let analyse = |arguments: &[&str]| ended(xqos().arg("analyse").args(arguments).arg(&file)).with(0).out;
    let all = analyse(&["--messages"]);
    let wanted = |line: &&str| [" InternAtom ", " MapWindow "].iter().any(|name| line.contains(name));
    let expected: Vec<&str> = all.lines().filter(wanted).collect();
    let shown = analyse(&["--messages", "--where", "message=internatom,MapWindow"]);
    assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    assert!(expected.len() > 10 && expected.len() < all.lines().count());
    assert_eq!(analyse(&["--messages", "--where", "message=BadWindow"]), "");
    let report = |arguments: &[&str]| -> Value { serde_json::from_str(&analyse(arguments)).unwrap() };
    let (whole, part) = (report(&["--json"]), report(&["--json", "--where", "message=InternAtom"]));
    for place in ["/connections/0", "/session"] {
        let (whole, part) = (whole.pointer(place).unwrap(), part.pointer(place).unwrap());
        assert_eq!(part["requests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["InternAtom"]);
        assert_eq!(part["requests"]["InternAtom"], whole["requests"]["InternAtom"]);
        assert_eq!(part["round_trips"], whole["round_trips"], "totals stay");
        let names: Vec<_> = part["waits"].as_array().unwrap().iter().map(|wait| &wait["name"]).collect();
        assert_eq!(names, ["InternAtom"]);
        assert_eq!(part["events"].as_object().unwrap().len(), 0);
    }
}

#[test]
fn images_are_compressed_in_five_ways() {
    let folder = Folder::new("images");
    let file = capture(&folder);
    let json = ended(xqos().args(["analyse", "--images", "--json", &file])).with(0).out;
    let list: Value = serde_json::from_str(&json).unwrap();
    let images: Vec<_> = list.as_array().unwrap().iter().filter(|row| row["of"] == "images").collect();
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    assert_eq!(images.len(), 5, "{json}");
    for row in &images {
        assert!((1..number(row, "bytes") / 10).contains(&number(row, "compressed_bytes")), "flat colours: {row}");
        assert!(row["processor_s"].as_f64().unwrap() > 0.0, "{row}");
    }
    let text = ended(xqos().args(["analyse", "--images", &file])).with(0).out;
    assert!(text.contains("JPEG XL") && text.contains("glyphs"), "{text}");
    ended(xqos().args(["analyse", "--images", "--messages", &file])).with(2);
    ended(xqos().args(["analyse", "--images", "/etc/passwd"])).failed_saying(&["neither a pcap"]);
}

/// A capture of connections that are refused: a SYN and a reset each.
fn refused(count: u16) -> Vec<u8> {
    const RAW: u32 = 101;
    let mut bytes = Vec::new();
    [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, RAW].into_iter().for_each(|word: u32| bytes.extend(word.to_le_bytes()));
    for number in 0..2 * count {
        // SYN from the client, then RST with ACK from the server.
        let (client, server) = ((20_000 + number / 2).to_be_bytes(), 6000_u16.to_be_bytes());
        let (from, to, flags) = if number % 2 == 0 { (client, server, 0x02) } else { (server, client, 0x14) };
        let us = u32::from(number) * 10;
        [1, us, 40, 40].into_iter().for_each(|word: u32| bytes.extend(word.to_le_bytes()));
        bytes.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        bytes.extend([from, to].concat());
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 1, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    }
    bytes
}

#[test]
fn connections_beyond_the_maximum_are_mentioned() {
    let folder = Folder::new("analyse-many");
    let file = folder.file("many.pcap");
    std::fs::write(&file, refused(4100)).unwrap();
    let told = ended(xqos().args(["analyse", &file])).with(0);
    assert!(told.err.contains("the first 4096 connections, without 4 more"), "{}", told.err);
    for (number, words) in [("4100", "was left out: use --messages"), ("4101", "the capture has 4100")] {
        let told = ended(xqos().args(["analyse", "--connection", number, &file])).with(1);
        assert!(told.err.contains(words), "{}", told.err);
    }
}

#[test]
fn invalid_values_end_with_status_2_and_one_line() {
    for (arguments, words) in [
        (["--proxy", "nx"], "write lbx, strict, relaxed or batch"),
        (["--proxy", ""], "write lbx, strict, relaxed or batch"),
        (["--predict", "1mbit"], "write rate=1mbit,delay=50ms, or grid"),
        (["--predict", "rate=0mbit"], "out of range"),
        (["--predict", "rate=999999gbit"], "out of range"),
        (["--predict", "rate=1mbit,delay=3h"], "10s at most"),
        (["--predict", "rate=1mbit,rate=1mbit"], "twice"),
        (["--predict", "delay=-1ms"], "such as 3ms"),
        (["--where", "InternAtom"], "write message=NAME"),
        (["--where", "message=InternAtm"], "such as CreateWindow"),
        (["--latency", "50"], "50ms"),
        (["--latency", "0ms"], "above 0"),
        (["--latency", "9999h"], "too long"),
    ] {
        let told = ended(xqos().arg("analyse").args(arguments).arg("none.pcapng")).with(2);
        assert!(told.err.contains(words), "{arguments:?}: {}", told.err);
    }
    ended(xqos().args(["analyse", "--predict", "grid", "--csv", "none.pcapng"])).with(2);
}
