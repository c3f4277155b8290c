// SPDX-License-Identifier: MIT
//! `top`, `trace` and `replay` with real servers and real clients.

use crate::fixture::{Folder, Lines, Running, Server, ended, eventually, xqos};
use crate::recordings::Recording;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

const BUSY: [&str; 5] = ["x11perf", "-getimagexy100", "-reps", "300", "-repeat"];

fn busy(server: &Server, count: usize) -> Vec<Running> {
    let command: Vec<&str> = BUSY.into_iter().chain(["100000"]).collect();
    let clients: Vec<_> = (0..count).map(|_| server.client(&command)).collect();
    eventually("they draw", || {
        let busy = server.clients().iter().filter(|client| client["requests"].as_u64() > Some(500)).count();
        (busy >= count).then_some(())
    });
    clients
}

/// Records until each of these clients has made many requests. Returns the recorder's process ID.
pub fn record(server: &Server, clients: &[Running], file: &str, options: &[&str]) -> i32 {
    let recording = Recording::start(server, options, file);
    let recorder = recording.process.pid();
    let requests = |client: &Running| server.entry(client.pid()).and_then(|entry| entry["requests"].as_u64());
    let enough: Vec<_> = clients.iter().map(|client| requests(client).map(|count| count + 3000)).collect();
    eventually("enough is recorded", || {
        clients.iter().zip(&enough).all(|(client, enough)| requests(client) >= *enough).then_some(())
    });
    recording.process.signal("INT");
    recording.ended(0);
    recorder
}

#[test]
fn a_recorded_trace_is_summarised_shown_exported_and_replayed() {
    let (folder, server) = (Folder::new("trace"), Server::served(&[]));
    let clients = busy(&server, 2);
    let file = folder.file("a.trace");
    record(&server, &clients, &file, &[]);
    let stats: Value =
        serde_json::from_str(&ended(xqos().args(["trace", "stats", "--json", &file])).with(0).out).unwrap();
    let seconds = stats["seconds"].as_f64().unwrap();
    for client in &clients {
        let found = stats["clients"].as_array().unwrap().iter().find(|one| one["pid"] == client.pid());
        let found = found.unwrap_or_else(|| panic!("{} is missing: {stats:#}", client.pid()));
        assert_eq!(found["name"], format!("x11perf ({})", client.pid()));
        // The shares depend on the machine's load, but each one must agree with the client's server time.
        let [share, time_ms] = ["share", "server_time_ms"].map(|key| found[key].as_f64().unwrap());
        assert!(share > 0.0 && (share * seconds * 1e3 - time_ms).abs() < 0.1, "of {seconds} s: {found:#}");
        assert!(found["responses"]["count"].as_u64() > Some(10), "{found:#}");
        assert!(found["longest_request"]["name"] == "GetImage", "{found:#}");
    }
    // Delays caused by the kernel may be listed first. A delay caused by a client names the client and its request.
    let whys: Vec<&str> =
        stats["delays"].as_array().unwrap().iter().filter_map(|delay| delay["why"].as_str()).collect();
    let why = whys.iter().find(|why| why.starts_with("behind")).unwrap_or_else(|| panic!("no client: {whys:?}"));
    assert!(why.contains("x11perf") && why.contains("GetImage"), "{why}");

    let shown = ended(xqos().args(["trace", "show", "--kind", "dispatch,deactivation", &file])).with(0).out;
    assert!(shown.lines().count() > 100 && shown.contains("first under the policy"), "{}", shown.lines().count());
    let checked = ended(xqos().args(["replay", "--check", &file])).with(0).out;
    assert!(checked.contains(" decisions agree, 0 differ\n"), "{checked}");
    let replayed = ended(xqos().args(["replay", "--policy", "stock", "--reserve", "x11perf=2ms/20ms", &file])).with(0);
    assert!(replayed.out.contains("replayed under stock"), "{replayed:#?}");

    for (name, begins) in [("a.html", &b"<!doctype html>"[..]), ("a.csv", b"seconds,kind,"), ("a.pftrace", b"\x0a")] {
        let output = folder.file(name);
        ended(xqos().args(["trace", "export", &file, &output])).with(0);
        let bytes = fs::read(&output).unwrap();
        assert!(bytes.starts_with(begins) && bytes.len() > 10_000, "{name}: {} bytes", bytes.len());
    }

    let export = |output: &str| {
        let mut command = xqos();
        command.args(["trace", "export", &file, output, "--format", "csv"]).current_dir(&folder.path);
        command
    };
    let printed = ended(&mut export("-")).with(0);
    assert!(printed.out == fs::read_to_string(folder.file("a.csv")).unwrap() && !Path::new(&folder.file("-")).exists());
    // The reader of standard output has gone, as with `| head`.
    let (_, closed) = std::os::unix::net::UnixStream::pair().unwrap();
    let closed = Running::start(export("-").stdout(std::os::fd::OwnedFd::from(closed)).stderr(Stdio::piped()));
    assert_eq!(closed.ended().with(0).err, "");

    let fleet = folder.file("fleet.parquet");
    ended(xqos().args(["trace", "export", "--host", "ts01", &file, &fleet])).with(0);
    for table in ["sessions", "clients", "bursts", "waits"] {
        assert!(Path::new(&fleet).join(table).join("host=ts01").is_dir(), "{table}");
    }

    // Reading a trace that is cut off at any point must not panic.
    let whole = fs::read(&file).unwrap();
    let cut = folder.file("cut.trace");
    for part in 1..20 {
        fs::write(&cut, &whole[..whole.len() * part / 20]).unwrap();
        let ended = ended(xqos().args(["trace", "stats", &cut]));
        assert!([0, 1].contains(&ended.status) && !ended.err.contains("panicked"), "{ended:#?}");
    }
}

#[test]
fn a_server_that_goes_away_ends_the_recording_with_a_complete_file() {
    let folder = Folder::new("gone");
    for (signal, options) in [("KILL", &[][..]), ("TERM", &[]), ("KILL", &["--until-wait", "1h"])] {
        let server = Server::served(&[]);
        let _clients = busy(&server, 1);
        let file = folder.file(&format!("{signal}{}.trace", options.len()));
        let arguments = [&["trace", "record"], options, &[&file]].concat();
        let mut recorder = Running::start(server.xqos(&arguments).stderr(Stdio::piped()));
        let (mut err, mut said) = (BufReader::new(recorder.err()), String::new());
        err.read_line(&mut said).unwrap();
        let requests = || server.clients().iter().filter_map(|client| client["requests"].as_u64()).max();
        let before = requests();
        eventually("something is recorded", || (requests() > before).then_some(()));
        server.process.signal(signal);
        recorder.ended().with(0);
        err.read_to_string(&mut said).unwrap();
        let sentences = said.matches("the server is gone").count() + said.matches("the server ended the trace").count();
        assert!(sentences == 1 && said.contains(" MB in "), "{signal}: {said}");
        let stats: Value =
            serde_json::from_str(&ended(xqos().args(["trace", "stats", "--json", &file])).with(0).out).unwrap();
        assert!(stats["decisions"].as_u64() > Some(0) && stats["lost_records"] == 0, "{signal}: {stats:#}");
        let shown = ended(xqos().args(["trace", "show", "--kind", "end", &file])).with(0).out;
        assert_eq!(shown.lines().count(), 1, "{shown}");
    }
}

#[test]
fn level_requests_names_the_expensive_kinds() {
    let (folder, server) = (Folder::new("requests"), Server::served(&[]));
    let clients = busy(&server, 1);
    let file = folder.file("r.trace");
    record(&server, &clients, &file, &["--level", "requests"]);
    let stats: Value =
        serde_json::from_str(&ended(xqos().args(["trace", "stats", "--json", &file])).with(0).out).unwrap();
    assert_eq!(stats["clients"][0]["kinds"][0]["name"], "GetImage", "{stats:#}");
}

#[test]
fn a_full_disk_leaves_the_previous_export_and_nothing_else() {
    let folder = Folder::new("export-full");
    let (trace, output) = (folder.file("a.trace"), folder.file("kept"));
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data/rules.d/evidence/players.trace"), &trace).unwrap();
    fs::write(&output, "before").unwrap();
    let names = || fs::read_dir(&folder.path).unwrap().count();
    for format in ["html", "perfetto", "csv"] {
        // A limit on file sizes acts like a full disk.
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh", crate::PROGRAM]);
        ended(shell.args(["trace", "export", "--format", format, &trace, &output]))
            .failed_saying(&[&output, "too large"]);
        assert_eq!((fs::read_to_string(&output).unwrap().as_str(), names()), ("before", 2), "{format}");
    }
    ended(xqos().args(["trace", "export", "--format", "csv", &trace, &trace])).failed_saying(&["is the trace itself"]);
    ended(xqos().args(["trace", "export", "--format", "csv", &trace, &output])).with(0);
    assert_eq!((fs::read_to_string(&output).unwrap().starts_with("seconds,"), names()), (true, 2));
    ended(xqos().args(["trace", "stats", &trace])).with(0);
}

#[test]
fn failures_are_reported_in_one_line() {
    let (folder, server) = (Folder::new("bad"), Server::served(&[]));
    let file = folder.file("there.trace");
    fs::write(&file, "precious").unwrap();
    for options in [&["--time", "1s"][..], &["--until-wait", "1us"]] {
        let record = [&["trace", "record"], options, &[&file]].concat();
        server.ask(&record).failed_saying(&[&file, "already exists: remove it"]);
    }
    server.ask(&["trace", "record", "--until-wait", "1us", "/nowhere/file"]).failed_saying(&["/nowhere/file"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious", "an existing file is kept");
    for command in [&["trace", "stats", &file][..], &["replay", &file], &["replay", "--check", &file]] {
        ended(xqos().args(command)).failed_saying(&["not a trace of xqos"]);
    }
    ended(xqos().args(["trace", "show", "/nowhere.trace"])).failed_saying(&["/nowhere.trace"]);
    ended(xqos().args(["trace", "export", &file, "x.doc"])).failed_saying(&[".html"]);
    ended(xqos().args(["trace", "export", "--wire", "x.pcapng", &file, "x.csv"]))
        .failed_saying(&["--wire is for pages"]);
    for (arguments, words) in [
        (&["trace", "show", "--kind", "nonsense", "x"][..], "dispatch"),
        (&["replay", "--policy", "best", "x"], "fair"),
        (&["replay", "--check", "--policy", "fair", "x"], "cannot be used with"),
        (&["top", "--interval", "1ms"], "100ms"),
        (&["server", "--grab-limit", "10us", "--", "Xvfb"], "whole milliseconds"),
    ] {
        let ended = ended(xqos().args(arguments)).with(2);
        assert!(ended.err.contains(words), "{arguments:?}: {ended:#?}");
    }
    server.ask(&["top"]).failed_saying(&["terminal"]);
    let stock = Server::stock();
    for command in [&["top", "--once"][..], &["trace", "record", "--time", "1s", &folder.file("no.trace")]] {
        stock.ask(command).failed_saying(&["runs without xqos"]);
    }
}

#[test]
fn shares_in_top_add_up_to_that_of_the_server() {
    let server = Server::served(&[]);
    let clients = busy(&server, 2);
    server.ask(&["reserve", "--pid", &clients[0].pid().to_string(), "2ms/20ms"]).with(0);
    let once = server.json(&["top", "--once", "--json"]);
    assert_eq!(once["clients"].as_array().unwrap().len(), 2, "{once:#}");
    for key in ["pid", "program", "share", "server_time_ms", "requests"] {
        assert!(!once["clients"][0][key].is_null(), "{key}: {once:#}");
    }
    let mut command = server.xqos(&["top", "--json", "--interval", "500ms"]);
    let mut top = Running::start(command.stdout(Stdio::piped()));
    let is_reserved = |client: &&Value| client["pid"] == clients[0].pid();
    // A busy machine may serve nobody in one interval. The first sample has no earlier one to compare with.
    let sample = Lines::of(top.out()).wait_for("a sample of a busy server", |line| {
        let sample: Value = serde_json::from_str(line).unwrap();
        let reserved = sample["clients"].as_array().unwrap().iter().find(is_reserved)?;
        let is_compared = reserved["process_share"].is_number() && reserved["response"]["p99_ms"].is_number();
        (is_compared && sample["server"]["share"].as_f64() > Some(0.05)).then_some(sample)
    });
    let shares: f64 = sample["clients"].as_array().unwrap().iter().filter_map(|client| client["share"].as_f64()).sum();
    let of_server = sample["server"]["share"].as_f64().unwrap();
    assert!((shares - of_server).abs() < 0.02, "{shares} of clients, {of_server} of the server");
    let reserved = sample["clients"].as_array().unwrap().iter().find(is_reserved).unwrap();
    assert_eq!(reserved["reservation"]["budget_ms"], 2.0, "{reserved:#}");
    let part = |key: &str| reserved[key].as_f64().unwrap_or(-1.0);
    assert!(part("elapsed_share") >= part("share") && part("process_share") >= 0.0, "{reserved:#}");
    assert!(reserved["response"]["p99_ms"].as_f64() > Some(0.0), "{reserved:#}");
}

/// The paths of all JSON fields, such as "clients.reservation.used", sorted.
fn fields(value: &Value, path: &str) -> Vec<String> {
    let mut all = match value {
        Value::Object(object) => object
            .iter()
            .flat_map(|(name, value)| {
                let path = format!("{path}.{name}");
                [vec![path.clone()], fields(value, &path)].concat()
            })
            .collect(),
        Value::Array(list) => list.iter().flat_map(|value| fields(value, path)).collect(),
        _ => Vec::new(),
    };
    all.sort_unstable();
    all.dedup();
    all
}

#[test]
fn list_and_top_write_the_same_json() {
    let server = Server::served(&[]);
    let clients = busy(&server, 2);
    server.ask(&["reserve", "--pid", &clients[0].pid().to_string(), "2ms/20ms"]).with(0);
    let list = server.json(&["list", "--json"]);
    let top = server.json(&["top", "--once", "--json"]);
    assert_eq!((&list["version"], &top["version"]), (&1.into(), &1.into()));
    assert_eq!(fields(&list, ""), fields(&top, ""));
    assert!(fields(&list, "").contains(&".clients.reservation.used".to_owned()), "{list:#}");
}
