// SPDX-License-Identifier: MIT
//! Which long waits end `trace record --until-wait`.

use crate::fixture::{Folder, Running, Server, ended, eventually, xqos};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use x11rb::protocol::xproto::ConnectionExt as _;

/// Starts clients that always have work: each sends ten thousand requests before it waits for a reply. The requests
/// take the server seconds, so a client still counts as busy if it waits a second for a processor.
fn saturate(server: &Server) -> Vec<Running> {
    let client = || server.client(&["x11perf", "-copypixpix500", "-reps", "10000", "-repeat", "100000"]);
    let clients: Vec<_> = (0..4).map(|_| client()).collect();
    let is_drawing = |client: &Value| client["program"] == "x11perf" && client["requests"].as_u64() > Some(500);
    eventually("they draw", || (server.clients().iter().filter(|one| is_drawing(one)).count() == 4).then_some(()));
    clients
}

/// A running recording.
pub struct Recording {
    pub process: Running,
    said: BufReader<Box<dyn Read>>,
}

impl Recording {
    pub fn start(server: &Server, options: &[&str], file: &str) -> Recording {
        let mut command = server.xqos(&["trace", "record"]);
        let mut process = Running::start(command.args(options).arg(file).stderr(Stdio::piped()));
        let mut said = BufReader::new(Box::new(process.err()) as Box<dyn Read>);
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("^C ends"), "{line}");
        Recording { process, said }
    }

    /// Waits until the recording exits, and returns what it printed after its first line.
    #[track_caller]
    pub fn ended(mut self, status: i32) -> String {
        let ended = self.process.ended();
        let mut said = String::new();
        self.said.read_to_string(&mut said).unwrap();
        assert_eq!(ended.status, status, "{said}");
        said
    }
}

fn statistics(file: &str) -> Value {
    serde_json::from_str(&ended(xqos().args(["trace", "stats", "--json", file])).with(0).out).unwrap()
}

/// The processor time of a process, in clock ticks.
fn ticks(pid: i32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_long_wait_of_a_light_client_ends_the_recording_and_the_time_before_it_is_kept() {
    // Classic serves ten requests of each client in turn, so a client with few requests waits for all others.
    let (folder, server) = (Folder::new("trigger"), Server::served(&["--policy", "classic"]));
    let _busy = saturate(&server);
    let light = server.client(&["xclock", "-update", "1"]);
    let file = folder.file("wait.trace");
    let said =
        server.ask(&["trace", "record", "--until-wait", "20ms", "--keep", "2s", "--time", "60s", &file]).with(0).err;
    assert!(said.contains(&format!("xclock ({}) waited ", light.pid())), "{said}");
    let stats = statistics(&file);
    let found = stats["clients"].as_array().unwrap().iter().find(|client| client["pid"] == light.pid()).unwrap();
    // The trigger counts all waits of a burst together.
    assert!(found["responses"]["worst_ms"].as_f64() > Some(20.0), "{found:#}");
    ended(xqos().args(["replay", "--check", &file])).with(0);
}

#[test]
fn waits_of_busy_clients_end_a_recording_only_if_they_are_named() {
    let (folder, server) = (Folder::new("turns"), Server::served(&["--policy", "classic"]));
    let _busy = saturate(&server);
    let (file, named) = (folder.file("a.trace"), folder.file("named.trace"));
    let recording = Recording::start(&server, &["--until-wait", "20ms", "--keep", "200ms"], &file);
    // In two seconds of service, each client is served many times.
    let begun = ticks(server.process.pid());
    eventually("the server has worked", || (ticks(server.process.pid()) > begun + 200).then_some(()));
    recording.process.signal("INT");
    let said = recording.ended(1);
    assert_eq!(said, "xqos: no client waited that long: nothing was written\n");
    assert!(!fs::exists(&file).unwrap());
    // The same waits end a recording that names the program.
    let said = server
        .ask(&["trace", "record", "--until-wait", "20ms", "--client", "x11perf", "--time", "60s", &named])
        .with(0);
    assert!(said.err.contains("x11perf (") && said.err.contains(" waited "), "{said:#?}");
}

#[test]
fn a_recording_lasts_until_it_is_stopped_although_the_server_writes_no_records() {
    let (folder, server) = (Folder::new("grabbed"), Server::served(&[]));
    let holder = x11rb::connect(Some(&server.display)).unwrap().0;
    holder.grab_server().unwrap();
    holder.get_input_focus().unwrap().reply().unwrap();
    let file = folder.file("grab.trace");
    server.ask(&["trace", "record", "--time", "600ms", &file]).with(0);
    let stats = statistics(&file);
    assert!(stats["seconds"].as_f64() > Some(0.5), "{stats:#}");
    let held = stats["clients"].as_array().unwrap().iter().find(|client| client["pid"] == std::process::id()).unwrap();
    assert!(held["grabbed_ms"].as_f64() > Some(500.0), "{held:#}");
    let why = ended(xqos().args(["why", &file])).with(0).out.replace('\n', " ");
    assert!(why.contains("The reason is a server grab"), "{why}");
}
