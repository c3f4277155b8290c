// SPDX-License-Identifier: MIT
//! `xqos rules status` and `reload`: with a real daemon, and with peers that send invalid questions or answers.

use crate::fixture::{Ended, Running, Server};
use crate::rules::{Rules, file, rule, weighs, weight};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, ConnectionExt as _, CreateWindowAux, EventMask, PropMode, SELECTION_NOTIFY_EVENT, SelectionNotifyEvent,
    Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

#[test]
fn the_status_names_the_daemon_its_files_and_the_clients_of_each_rule() {
    let server = Server::served(&[]);
    let (clock, rules) = (server.client(&["xclock"]), Rules::new("status"));
    for command in ["status", "reload"] {
        let asked = rules.ask_on(&server, &["rules", command]);
        asked.failed_saying(&["no rules are applied on the X server", &server.display, "`xqos rules run`"]);
    }
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 2")]));
    let daemon = rules.applied_on(&server);
    weighs(&server, clock.pid(), 2.0);
    let status = server.json(&["rules", "status", "--json"]);
    assert_eq!((&status["version"], &status["pid"]), (&1.into(), &daemon.pid().into()), "{status:#}");
    assert!(status["last_error"].is_null() && status["running_ms"].as_f64().unwrap() > 0.0, "{status:#}");
    let files = status["rules"]["files"].as_array().unwrap();
    assert!(files.contains(&rules.path("50-a.toml").into()), "{status:#}");
    let applied = status["applied"].as_array().unwrap();
    let of_clock: Vec<_> = applied.iter().filter(|one| one["pid"] == clock.pid() && one["rule"] == "clocks").collect();
    assert_eq!(of_clock.len(), 1, "{status:#}");
    assert_eq!(of_clock[0]["setting"], "weight = 2", "{status:#}");
    let shown = rules.ask_on(&server, &["rules", "status"]).with(0).out;
    for words in [&format!("pid {}", daemon.pid()), &rules.path("50-a.toml"), "no error", "xclock", "weight = 2"] {
        assert!(shown.contains(words), "'{words}' is missing in\n{shown}");
    }
}

#[test]
fn a_reload_reads_changes_that_cause_no_event_and_refuses_a_bad_file() {
    let server = Server::served(&[]);
    let (clock, rules) = (server.client(&["xclock"]), Rules::new("reload"));
    // The daemon watches its folders, but not the folders in them.
    let target = rules.path("parts/clocks.toml");
    fs::create_dir(rules.path("parts")).unwrap();
    let weigh = |set: &str| fs::write(&target, file(&[rule("clocks", "name = \"xclock\"", set)])).unwrap();
    weigh("weight = 2");
    symlink(&target, rules.path("50-a.toml")).unwrap();
    let _daemon = rules.applied_by(&mut server.xqos(&["rules", "run"]));
    weighs(&server, clock.pid(), 2.0);
    weigh("weight = 3");
    let done = rules.ask_on(&server, &["rules", "reload"]).with(0);
    assert!(done.out.starts_with("read again on the X server") && done.out.lines().count() == 1, "{done:#?}");
    weighs(&server, clock.pid(), 3.0);
    weigh("weigth = 4");
    let wrong = ["50-a.toml:5: set has no key 'weigth'", "the last valid version stays in effect"];
    rules.ask_on(&server, &["rules", "reload"]).failed_saying(&wrong);
    let shown = rules.ask_on(&server, &["rules", "status"]).with(0).out;
    assert!(shown.contains("refused: ") && shown.contains("last error, ") && shown.contains("weight = 3"), "{shown}");
    assert_eq!(weight(&server, clock.pid()), 3.0);
    weigh("weight = 5");
    rules.ask_on(&server, &["rules", "reload"]).with(0);
    weighs(&server, clock.pid(), 5.0);
    let shown = rules.ask_on(&server, &["rules", "status"]).with(0).out;
    assert!(!shown.contains("refused: ") && shown.contains("last error, "), "{shown}");
}

/// A client that speaks the protocol of the selection itself.
struct Peer {
    x11: RustConnection,
    window: Window,
}

impl Peer {
    fn new(server: &Server) -> Peer {
        let (x11, screen) = x11rb::connect(Some(&server.display)).unwrap();
        let (root, window) = (x11.setup().roots[screen].root, x11.generate_id().unwrap());
        let aux = CreateWindowAux::new();
        x11.create_window(0, window, root, 0, 0, 1, 1, 0, WindowClass::INPUT_ONLY, 0, &aux).unwrap();
        Peer { x11, window }
    }

    fn atom(&self, name: &str) -> Atom {
        self.x11.intern_atom(false, name.as_bytes()).unwrap().reply().unwrap().atom
    }

    fn selection(&self) -> Atom {
        self.atom("_XQOS_RULES_S0")
    }

    /// Converts the selection; returns the property of the answer, 0 if it was refused.
    fn convert(&self, target: &str, property: Atom) -> Atom {
        self.x11.convert_selection(self.window, self.selection(), self.atom(target), property, 0u32).unwrap();
        self.x11.flush().unwrap();
        match self.x11.wait_for_event().unwrap() {
            Event::SelectionNotify(answer) => answer.property,
            other => panic!("{other:?}"),
        }
    }

    /// Owns the selection, and answers one question with this text.
    fn answers(&self, server: &Server, text: &[u8]) -> Ended {
        self.x11.set_selection_owner(self.window, self.selection(), 0u32).unwrap().check().unwrap();
        let mut command = server.xqos(&["rules", "status"]);
        let asking = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let Event::SelectionRequest(asked) = self.x11.wait_for_event().unwrap() else { panic!("no question") };
        self.x11.change_property8(PropMode::REPLACE, asked.requestor, asked.property, asked.target, text).unwrap();
        let answer = SelectionNotifyEvent {
            response_type: SELECTION_NOTIFY_EVENT,
            sequence: 0,
            time: asked.time,
            requestor: asked.requestor,
            selection: asked.selection,
            target: asked.target,
            property: asked.property,
        };
        self.x11.send_event(false, asked.requestor, EventMask::NO_EVENT, answer).unwrap().check().unwrap();
        asking.ended()
    }
}

#[test]
fn the_daemon_refuses_unknown_questions_and_survives_clients_that_leave() {
    let server = Server::served(&[]);
    let rules = Rules::new("asked");
    let daemon = rules.applied_by(&mut server.xqos(&["rules", "run"]));
    let peer = Peer::new(&server);
    let property = peer.atom("PRIMARY");
    for (target, property) in [("STRING", property), ("TARGETS", property), ("_XQOS_RULES_STATUS", 0)] {
        assert_eq!(peer.convert(target, property), 0, "{target}");
    }
    assert_eq!(peer.convert("_XQOS_RULES_STATUS", property), property);
    for _ in 0..100 {
        let gone = Peer::new(&server);
        gone.x11.convert_selection(gone.window, gone.selection(), gone.atom("_XQOS_RULES_RELOAD"), 1u32, 0u32).unwrap();
        gone.x11.flush().unwrap();
    }
    assert_eq!(server.json(&["rules", "status", "--json"])["pid"], daemon.pid());
}

#[test]
fn a_server_that_hangs_is_reported() {
    let server = Server::served(&[]);
    server.process.signal("STOP");
    let ask = |word| Running::start(server.xqos(&["rules", word]).stdout(Stdio::piped()).stderr(Stdio::piped()));
    for asked in ["status", "reload", "off"].map(ask) {
        asked.ended().failed_saying(&["the X server did not answer in time"]);
    }
    server.process.signal("CONT");
}

#[test]
fn a_false_daemon_cannot_write_to_the_terminal() {
    let server = Server::served(&[]);
    let peer = Peer::new(&server);
    peer.answers(&server, b"\x1b[2J\xff{").failed_saying(&["the rules daemon is of another version"]);
    let text = r#"{"version":1,"pid":1,"running_ms":1,"read_ago_ms":1,"rules":{"count":1,"files":["\u001b[2Jfile"],
        "mistakes":["\u001b[2Jm"],"keeps_earlier":false},"last_error":{"text":"\u001b[2Je","ago_ms":1e300},
        "applied":[{"client":"\u001b","pid":1,"program":"","setting":"\u001b","rule":"\u001b","place":"\u001b"}]}"#;
    let shown = peer.answers(&server, text.as_bytes()).with(0).out;
    assert!(shown.contains("?[2Jfile") && !shown.contains('\x1b'), "{shown}");
}
