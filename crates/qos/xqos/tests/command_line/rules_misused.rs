// SPDX-License-Identifier: MIT
//! Faulty and hostile rule files, and a clock that jumps, on a real server: a line says what is wrong, and the last
//! valid rules stay in effect.
//!
//! `crates/qos/rules/tests` tests the messages. These tests check the effect on clients.

use crate::fixture::{Folder, Running, Server, eventually};
use crate::rules::{Rules, file, rule, weighs, weight};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

/// The daemon. Its messages go to a file, because 20 mistakes may not fit into a pipe.
struct Daemon<'a> {
    server: &'a Server,
    rules: &'a Rules,
    folder: Folder,
    running: Running,
    /// How often `read_everything` was called.
    marks: i32,
}

impl<'a> Daemon<'a> {
    fn start(server: &'a Server, rules: &'a Rules, name: &str) -> Daemon<'a> {
        let folder = Folder::new(name);
        let said = fs::File::create(folder.file("said")).unwrap();
        let mut command = server.xqos(&["rules", "run"]);
        let running = Running::start(rules.with(&mut command).stdout(Stdio::null()).stderr(said));
        Daemon { server, rules, folder, running, marks: 0 }
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.file("said")).unwrap()
    }

    /// Waits until the daemon has read all earlier changes: writes a rule, and waits until it has taken effect.
    fn read_everything(&mut self, client: &Running) {
        self.marks += 1;
        let mark = self.marks;
        self.rules.write("90-mark.toml", &file(&[rule("mark", "name = \"xclock\"", &format!("priority = {mark}"))]));
        eventually("the mark is set", || (self.server.entry(client.pid())?["fixed_priority"] == mark).then_some(()));
    }
}

#[test]
fn a_faulty_file_keeps_its_last_valid_version_and_a_line_says_why() {
    let server = Server::served(&[]);
    let clock = server.client(&["xclock"]);
    let rules = Rules::new("misused");
    let path = rules.path("50-a.toml");
    let good = file(&[rule("good", "name = \"xclock\"", "weight = 2")]);
    rules.write("50-a.toml", &good);
    let mut daemon = Daemon::start(&server, &rules, "misused-said");
    weighs(&server, clock.pid(), 2.0);
    let bad = |set: &str| file(&[rule("bad", "name = \"xclock\"", set)]).into_bytes();
    let many = "version = 1\n".to_owned() + &"[[rule]]\n".repeat(100_000);
    let exploding = format!("name = \"{}\"", "*a".repeat(200));
    for (what, text, words) in [
        ("10 MB", vec![b'#'; 10_000_000], "50-a.toml: is larger than 1 MB"),
        ("100,000 entries", many.into_bytes(), "50-a.toml:10002: this file has more than 10000 rules"),
        (
            "an exploding pattern",
            file(&[rule("bad", &exploding, "weight = 9")]).into_bytes(),
            "a pattern has at most 256 bytes",
        ),
        ("not UTF-8", b"version = 1\n# caf\xe9\n".to_vec(), "50-a.toml:2: is not UTF-8 from this line on"),
        ("an unknown key", bad("weigth = 9"), "50-a.toml:5: set has no key 'weigth': did you mean 'weight'?"),
        (
            "more than any server promises",
            bad("weight = 9, reserve = \"99ms/100ms\""),
            "50-a.toml:5: reserve: 99 ms / 100 ms",
        ),
        ("a limit of a user's", b"version = 1\n[limits]\nauto = 0.9\n".to_vec(), "50-a.toml:2: limits restrict users"),
    ] {
        rules.write("50-a.toml", &good);
        daemon.read_everything(&clock);
        let new = rules.path(".new");
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o644)).unwrap();
        fs::rename(&new, &path).unwrap();
        daemon.read_everything(&clock);
        assert!(daemon.said().contains(words), "{what}: '{words}' is missing in\n{}", daemon.said());
        assert_eq!(weight(&server, clock.pid()), 2.0, "{what}");
    }
    fs::remove_file(&path).unwrap();
    let elsewhere = daemon.folder.file("elsewhere.toml");
    fs::write(&elsewhere, bad("weight = 9")).unwrap();
    symlink(&elsewhere, rules.path("60-b.toml")).unwrap();
    rules.write("70-c.toml", &file(&[rule("others", "name = \"xclock\"", "weight = 9")]));
    fs::set_permissions(rules.path("70-c.toml"), fs::Permissions::from_mode(0o666)).unwrap();
    // A fast daemon may have read the file while it was still valid; the rename then removes its rules.
    fs::rename(rules.path("70-c.toml"), rules.path("71-c.toml")).unwrap();
    daemon.read_everything(&clock);
    for words in ["60-b.toml: is a link out of its folder", "71-c.toml: is writable by others"] {
        assert!(daemon.said().contains(words), "'{words}' is missing in\n{}", daemon.said());
    }
    assert_eq!(weight(&server, clock.pid()), 1.0, "the removed rule is undone, and refused files set nothing");
    assert!(daemon.running.is_running());
}

#[test]
fn a_refused_setting_is_reported_once_and_others_are_applied() {
    let server = Server::served(&["--max-utilization", "0.5"]);
    let (first, second) = (server.client(&["xclock"]), server.client(&["xlogo"]));
    let rules = Rules::new("above");
    let all = [
        rule("greedy", "name = \"xclock\"", "reserve = \"60ms/100ms\", weight = 2"),
        rule("modest", "name = \"xlogo\"", "reserve = \"10ms/100ms\", weight = 3"),
    ];
    rules.write("50-a.toml", &file(&all));
    let mut daemon = Daemon::start(&server, &rules, "above-said");
    daemon.read_everything(&first);
    weighs(&server, second.pid(), 3.0);
    weighs(&server, first.pid(), 2.0);
    let reservation = |client: &Running| server.entry(client.pid()).unwrap()["reservation"].clone();
    assert!(reservation(&first).is_null(), "{}", daemon.said());
    assert_eq!(reservation(&second)["budget_ms"], 10.0, "{}", daemon.said());
    // The refused reservation is tried again at each evaluation, but reported only once.
    daemon.read_everything(&first);
    daemon.read_everything(&first);
    let refusals =
        daemon.said().lines().filter(|line| line.contains("by rule 'greedy'") && !line.contains("weight")).count();
    assert_eq!(refusals, 1, "{}", daemon.said());
}

/// Makes the time of day jump by a year, back and forth, at each call.
const JUMPING: &str = "
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t id, struct timespec *time)
{
    static int count;
    int result = syscall(SYS_clock_gettime, id, time);
    if (id == CLOCK_REALTIME)
        time->tv_sec += count++ % 2 ? 31536000 : -31536000;
    return result;
}
";

#[test]
fn a_jumping_time_of_day_changes_nothing() {
    let folder = Folder::new("jumping");
    let (source, library) = (folder.file("jumping.c"), folder.file("jumping.so"));
    fs::write(&source, JUMPING).unwrap();
    let Some(cc) = xqos_testkit::program("cc") else { return };
    let status = Command::new(cc).args(["-shared", "-fPIC", "-o", &library, &source]).status();
    assert!(status.unwrap().success(), "the C source compiles");
    let server = Server::served(&[]);
    let clock = server.client(&["xclock"]);
    let rules = Rules::new("jumping");
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 2")]));
    let mut daemon = rules.applied_by(server.xqos(&["rules", "run"]).env("LD_PRELOAD", &library));
    for wanted in [3.0, 4.0, 5.0] {
        rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", &format!("weight = {wanted}"))]));
        weighs(&server, clock.pid(), wanted);
        let late = server.client(&["xclock"]);
        weighs(&server, late.pid(), wanted);
    }
    assert!(daemon.is_running());
    daemon.signal("TERM");
    daemon.ended().with(0);
    weighs(&server, clock.pid(), 1.0);
}
