// SPDX-License-Identifier: MIT
//! Rule files without a server, and the daemon on a real server.

use crate::fixture::{Ended, Folder, Running, Server, ended, eventually, xqos};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, CreateWindowAux, PropMode, Window, WindowClass};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

/// A user's own folder of rules.
pub struct Rules(Folder);

impl Rules {
    pub fn new(name: &str) -> Rules {
        let rules = Rules(Folder::new(&format!("rules-{name}")));
        fs::create_dir_all(rules.0.path.join("xqos/rules.d")).unwrap();
        rules
    }

    /// Replaces a file atomically, as editors do.
    pub fn write(&self, name: &str, text: &str) {
        let (path, new) = (self.path(name), self.path(&format!(".{name}.new")));
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).unwrap();
        fs::rename(new, path).unwrap();
    }

    pub fn path(&self, name: &str) -> String {
        self.0.file(&format!("xqos/rules.d/{name}"))
    }

    /// Makes a command use these rules.
    pub fn with<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("XDG_CONFIG_HOME", &self.0.path)
    }

    pub fn ask(&self, arguments: &[&str]) -> Ended {
        ended(self.with(xqos().args(arguments)))
    }

    pub fn ask_on(&self, server: &Server, arguments: &[&str]) -> Ended {
        ended(self.with(&mut server.xqos(arguments)))
    }

    /// Starts the daemon, and waits until it is ready.
    pub fn applied_on(&self, server: &Server) -> Running {
        self.applied_by(server.xqos(&["rules", "run"]).arg("--verbose"))
    }

    /// Starts the daemon with another command.
    pub fn applied_by(&self, command: &mut Command) -> Running {
        let mut daemon = Running::start(self.with(command).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let mut said = String::new();
        BufReader::new(daemon.out()).read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        daemon
    }
}

pub fn rule(id: &str, who: &str, set: &str) -> String {
    format!("[[rule]]\nid = \"{id}\"\nmatch = {{ {who} }}\nset = {{ {set} }}\n")
}

pub fn file(rules: &[String]) -> String {
    format!("version = 1\n{}", rules.concat())
}

pub fn weight(server: &Server, pid: i32) -> f64 {
    server.entry(pid).map_or(0.0, |entry| entry["weight"].as_f64().unwrap())
}

#[track_caller]
pub fn weighs(server: &Server, pid: i32, wanted: f64) {
    eventually("the weight is set", || (weight(server, pid) == wanted).then_some(()));
}

#[test]
fn mistakes_in_rule_files_are_reported_with_their_line() {
    let rules = Rules::new("check");
    rules.write("50-a.toml", &file(&[rule("a", "exe = \"*/mpv\"", "weight = 2")]));
    assert!(rules.ask(&["rules", "check"]).with(0).out.contains(" valid"));
    rules.write("60-b.toml", &file(&[rule("b", "exee = \"*/mpv\"", "weight = 2")]));
    let told = rules.ask(&["rules", "check"]).with(1);
    let expected = format!("{}:4: a match has no key 'exee': did you mean 'exe'?\n", rules.path("60-b.toml"));
    assert_eq!((told.out, told.err.as_str()), (expected, "xqos: 1 mistake in rule files: see the lines above\n"));
    let told = rules.ask(&["rules", "check", &rules.path("50-a.toml")]).with(0);
    assert_eq!(told.out, "1 rule is valid\n");
    rules.ask(&["rules", "check", "/nonexistent"]).with(1);
}

#[test]
fn the_list_shows_the_standing_of_files_and_each_rule_with_its_line() {
    let rules = Rules::new("list");
    rules.write("50-a.toml", &file(&[rule("a", "exe = \"*/mpv\"", "weight = 2, reserve = \"auto\"")]));
    rules.write("60-b.toml", "");
    rules.write("70-c.toml", "version = 2\n");
    let told = rules.ask(&["rules", "list"]).with(0);
    let line = |words: &[&str]| told.out.lines().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(line(&[&rules.path("50-a.toml"), "counts"]), "{told:#?}");
    assert!(line(&[&rules.path("60-b.toml"), "empty: masks files of this name in earlier folders"]), "{told:#?}");
    assert!(line(&[&rules.path("70-c.toml"), "refused"]), "{told:#?}");
    let place = format!("{}:2", rules.path("50-a.toml"));
    assert!(line(&["a ", &place, "reserve = \"auto\", weight = 2"]), "{told:#?}");
    assert!(told.err.contains("70-c.toml:1: this xqos supports version 1 only"), "{told:#?}");
    let told: Value = serde_json::from_str(&rules.ask(&["rules", "list", "--json"]).with(0).out).unwrap();
    let own = told["rules"].as_array().unwrap().iter().find(|rule| rule["place"] == place.as_str()).unwrap();
    assert_eq!(own["sets"], serde_json::json!(["reserve = \"auto\"", "weight = 2"]), "{told:#}");
}

#[test]
fn rules_are_tested_against_expectations() {
    let rules = Rules::new("test");
    rules.write("50-a.toml", &file(&[rule("a", "exe = \"*/mpv\"", "weight = 2")]));
    let case = |set: &str| {
        let head = "version = 1\nrules = [\"50-a.toml\"]\n[[case]]\nwhat = \"a player\"\n";
        rules.write("t", &format!("{head}facts = {{ exe = \"/usr/bin/mpv\" }}\nset = {{ {set} }}\n"));
        rules.ask(&["rules", "test", &rules.path("t")])
    };
    assert_eq!(case("weight = 2").with(0).out, "1 case is as expected\n");
    let told = case("weight = 3").with(1);
    assert!(told.out.starts_with(&format!("{}:3: a player: weight = 3 is missing\n", rules.path("t"))), "{told:#?}");
    assert!(told.out.contains("weight = 2 is set by 'a'"), "{told:#?}");
    assert_eq!(told.err, "xqos: 1 of 1 case is not as expected\n");
}

/// Files of a folder of the repository.
fn sources(folder: &str) -> Vec<String> {
    let folder = format!("{}/../../../data/{folder}", env!("CARGO_MANIFEST_DIR"));
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path().to_string_lossy().into_owned());
    let files: Vec<String> = files.filter(|file| file.ends_with(".toml")).collect();
    assert!(!files.is_empty());
    files
}

#[test]
fn the_shipped_rules_are_few_and_meet_their_expectations() {
    let (rules, tests) = (sources("rules.d"), sources("rules.d/tests"));
    let told = ended(xqos().args(["rules", "check"]).args(&rules)).with(0);
    let count: usize = told.out.split(' ').next().unwrap().parse().unwrap();
    assert!((1..=20).contains(&count), "{told:#?}");
    ended(xqos().args(["rules", "test"]).args(&tests)).with(0);
    for file in rules {
        let name = file.rsplit('/').next().unwrap();
        let is_tested = |test: &String| fs::read_to_string(test).unwrap().contains(&format!("../{name}"));
        assert!(tests.iter().any(is_tested), "{name} has no expectations");
    }
}

#[test]
fn rules_are_applied_and_undone() {
    let server = Server::served(&[]);
    let clock = server.client(&["xclock"]);
    let rules = Rules::new("kept");
    rules.write("50-a.toml", &file(&[rule("clocks", "class = \"xclock\"", "weight = 2, reserve = \"3ms/10ms\"")]));
    let daemon = rules.applied_on(&server);
    weighs(&server, clock.pid(), 2.0);
    assert_eq!(server.entry(clock.pid()).unwrap()["reservation"]["budget_ms"], 3.0);

    rules.write("60-b.toml", &file(&[rule("more", "exe = \"*/xclock\"", "weight = 4")]));
    weighs(&server, clock.pid(), 4.0);
    let later = server.client(&["xclock"]);
    weighs(&server, later.pid(), 4.0);

    rules.write("60-b.toml", "version = 1\n[[rule\n");
    fs::remove_file(rules.path("50-a.toml")).unwrap();
    eventually("the removed rule is undone", || server.entry(clock.pid())?["reservation"].is_null().then_some(()));
    assert_eq!(weight(&server, clock.pid()), 4.0, "a broken file keeps its last good version");

    let told = rules.ask_on(&server, &["rules", "off"]).with(0);
    assert!(told.out.contains(&format!("pid {} has undone", daemon.pid())), "{told:#?}");
    assert_eq!((weight(&server, clock.pid()), weight(&server, later.pid())), (1.0, 1.0));
    let said = daemon.ended().with(0).err;
    for words in ["weight 2 for xclock", "by rule 'clocks'", "60-b.toml:2: invalid TOML", "its settings are undone"] {
        assert!(said.contains(words), "'{words}' is missing in\n{said}");
    }
    assert!(rules.ask_on(&server, &["rules", "off"]).with(0).out.starts_with("no rules are applied"));
}

#[test]
fn manual_settings_override_rules() {
    let server = Server::served(&[]);
    let (before, after) = (server.client(&["xclock"]), server.client(&["xclock"]));
    let (first, second) = (before.pid().to_string(), after.pid().to_string());
    server.ask(&["weight", "--pid", &first, "7"]).with(0);
    let rules = Rules::new("hand");
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 2")]));
    let daemon = rules.applied_on(&server);
    weighs(&server, after.pid(), 2.0);
    server.ask(&["weight", "--pid", &second, "8"]).with(0);
    // A third client shows when the rules have been evaluated again.
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 3")]));
    let third = server.client(&["xclock"]);
    weighs(&server, third.pid(), 3.0);
    assert_eq!((weight(&server, before.pid()), weight(&server, after.pid())), (7.0, 8.0));
    daemon.signal("TERM");
    daemon.ended().with(0);
    let weights = [&before, &after, &third].map(|clock| weight(&server, clock.pid()));
    assert_eq!(weights, [7.0, 8.0, 1.0], "only settings by rules are undone");
}

#[test]
fn only_one_daemon_runs_per_display() {
    let server = Server::served(&[]);
    let rules = Rules::new("one");
    let daemon = rules.applied_on(&server);
    let who = format!("pid {} already applies rules", daemon.pid());
    rules.ask_on(&server, &["rules", "run"]).failed_saying(&[&who, "xqos rules off"]);
    daemon.signal("TERM");
    daemon.ended().with(0);
    rules.applied_on(&server).signal("INT");
}

/// A client of this process, with a window.
pub struct Windowed {
    connection: RustConnection,
    root: Window,
    window: Window,
}

impl Windowed {
    pub fn new(server: &Server) -> Windowed {
        let (connection, screen) = x11rb::connect(Some(&server.display)).unwrap();
        let root = connection.setup().roots[screen].root;
        let window = connection.generate_id().unwrap();
        let (class, nothing) = (WindowClass::INPUT_OUTPUT, CreateWindowAux::new());
        connection.create_window(24, window, root, 0, 0, 50, 50, 0, class, 0, &nothing).unwrap().check().unwrap();
        Windowed { connection, root, window }
    }

    fn class(&self, class: &[u8]) {
        let (window, property) = (self.window, AtomEnum::WM_CLASS);
        self.connection.change_property8(PropMode::REPLACE, window, property, AtomEnum::STRING, class).unwrap();
        self.connection.flush().unwrap();
    }

    /// Sets a property of 32-bit numbers.
    fn set(&self, window: Window, name: &str, values: &[u32]) {
        let (property, kind) = (self.atom(name), AtomEnum::CARDINAL);
        self.connection.change_property32(PropMode::REPLACE, window, property, kind, values).unwrap();
        self.connection.flush().unwrap();
    }

    fn atom(&self, name: &str) -> u32 {
        self.connection.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap().atom
    }
}

#[test]
fn a_client_is_evaluated_again_when_its_windows_change() {
    let server = Server::served(&[]);
    let rules = Rules::new("windows");
    let all = [
        rule("late", "class = \"Latecomer\"", "weight = 2"),
        rule("full", "state = \"fullscreen\"", "weight = 3"),
        rule("worked-in", "state = \"active\"", "weight = 4"),
        rule("icon", "state = \"iconic\"", "weight = 0.25"),
    ];
    rules.write("50-a.toml", &file(&all));
    let _daemon = rules.applied_on(&server);
    let client = Windowed::new(&server);
    let pid = std::process::id() as i32;
    client.class(b"later\0Latecomer\0");
    weighs(&server, pid, 2.0);
    client.set(client.window, "_NET_WM_STATE", &[client.atom("_NET_WM_STATE_FULLSCREEN")]);
    weighs(&server, pid, 3.0);
    client.set(client.root, "_NET_ACTIVE_WINDOW", &[client.window]);
    weighs(&server, pid, 4.0);
    client.set(client.root, "_NET_ACTIVE_WINDOW", &[client.root]);
    client.set(client.window, "_NET_WM_STATE", &[]);
    weighs(&server, pid, 2.0);
    client.set(client.window, "WM_STATE", &[3, 0]);
    weighs(&server, pid, 0.25);
    client.class(b"another\0Another\0");
    client.set(client.window, "WM_STATE", &[1, 0]);
    weighs(&server, pid, 1.0);
}

#[test]
fn the_daemon_survives_hostile_window_properties() {
    let server = Server::served(&[]);
    let rules = Rules::new("hostile");
    rules.write("50-a.toml", &file(&[rule("x", "class = \"*a*a*a*a*b\"", "weight = 2")]));
    let mut daemon = rules.applied_on(&server);
    let client = Windowed::new(&server);
    for class in [&b"\xff\xfe\0\xff\0"[..], b"", b"\0\0\0\0", &[b'a'; 65_536], b"\x1b[2J\0"] {
        client.class(class);
    }
    client.set(client.window, "WM_STATE", &[]);
    client.set(client.window, "_NET_WM_STATE", &[u32::MAX; 1000]);
    client.set(client.root, "_NET_ACTIVE_WINDOW", &[0xffff_ffff]);
    for _ in 0..200 {
        let passing = Windowed::new(&server);
        passing.class(b"passing\0Passing\0");
    }
    client.class(b"aaaab\0aaaab\0");
    weighs(&server, std::process::id() as i32, 2.0);
    assert!(daemon.is_running());
}

#[test]
fn dry_run_and_explain_show_settings_and_change_nothing() {
    let server = Server::served(&[]);
    let clock = server.client(&["xclock"]);
    let rules = Rules::new("dry");
    let all = [
        rule("clocks", "exe = \"*/xclock\", local = true", "weight = 2"),
        rule("films", "name = \"mpv\"", "weight = 9"),
    ];
    rules.write("50-a.toml", &file(&all));
    let told = rules.ask_on(&server, &["rules", "dry-run"]).with(0);
    let row = told.out.lines().find(|line| line.contains("xclock")).unwrap_or_else(|| panic!("{told:#?}"));
    for words in [&clock.pid().to_string(), "weight = 2", " 1 ", "clocks"] {
        assert!(row.contains(words), "'{words}' is missing in\n{}", told.out);
    }
    assert!(told.err.contains("rule 'films'") && told.err.contains("matches no connected client"), "{told:#?}");
    let told = rules.ask_on(&server, &["explain", "--pid", &clock.pid().to_string()]).with(0);
    let place = rules.path("50-a.toml");
    for words in [
        format!("  weight = 2, from clocks ({place}:2); now 1\n"),
        format!("* clocks ({place}:2): matched\n"),
        format!("  films ({place}:6): name is xclock, not \"mpv\"\n"),
    ] {
        assert!(told.out.contains(&words), "'{words}' is missing in\n{}", told.out);
    }
    let pid = clock.pid().to_string();
    for arguments in [&["rules", "dry-run", "--json"][..], &["explain", "--json", "--pid", &pid]] {
        let told: Value = serde_json::from_str(&rules.ask_on(&server, arguments).with(0).out).unwrap();
        let settings = &told["clients"][0]["settings"][0];
        assert_eq!((&settings["value"], &settings["now"]), (&"2".into(), &"1".into()), "{told:#}");
    }
    assert_eq!(weight(&server, clock.pid()), 1.0);
}

/// The number of wakeups of a process with one thread.
pub fn wakeups(pid: i32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap().to_owned()
}

#[test]
fn an_idle_daemon_is_not_woken() {
    let server = Server::served(&[]);
    let clock = server.client(&["xclock"]);
    let rules = Rules::new("idle");
    rules.write("50-a.toml", &file(&[rule("clocks", "class = \"xclock\"", "weight = 2")]));
    let daemon = rules.applied_on(&server);
    weighs(&server, clock.pid(), 2.0);
    eventually("two seconds pass without a wakeup", || {
        let before = wakeups(daemon.pid());
        sleep(Duration::from_secs(2)); // time: wakeups are counted meanwhile
        (wakeups(daemon.pid()) == before).then_some(())
    });
}

#[test]
fn the_daemon_exits_with_its_server() {
    let server = Server::served(&[]);
    let rules = Rules::new("gone");
    let daemon = rules.applied_on(&server);
    server.process.signal("TERM");
    assert!(daemon.ended().with(0).err.contains("the X server has exited"));
}

#[test]
fn rules_need_a_server_with_xqos() {
    let server = Server::stock();
    let rules = Rules::new("stock");
    for arguments in [&["rules", "run"][..], &["rules", "dry-run"], &["explain", "--pid", "1"]] {
        rules.ask_on(&server, arguments).failed_saying(&["runs without xqos"]);
    }
}
