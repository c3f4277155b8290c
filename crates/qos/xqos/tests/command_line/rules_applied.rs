// SPDX-License-Identifier: MIT
//! Rules take effect on a real server, and a daemon that dies leaves nothing behind.

use crate::boost::{is_real_time_refused, wait_until_mapped};
use crate::fixture::{Folder, Lines, Running, Server, eventually, kill, module, xqos};
use crate::rules::{Rules, Windowed, file, rule, wakeups, weighs, weight};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, CreateWindowAux, WindowClass};
use x11rb::rust_connection::RustConnection;
use xqos_abi::{ClientEntry, Grouping, Setting, Subject, entry_flag};
use xqos_client::Control;
use xqos_sys::Attributes;

fn control(server: &Server) -> Control {
    Control::connect(Some(&server.display)).unwrap().unwrap()
}

fn entry(control: &Control, pid: i32) -> ClientEntry {
    control.clients().unwrap().clients.into_iter().find(|entry| entry.pid == pid).unwrap()
}

/// Waits until the entry of a process satisfies a condition.
#[track_caller]
fn becomes(control: &Control, pid: i32, what: &str, is_so: impl Fn(&ClientEntry) -> bool) -> ClientEntry {
    eventually(what, || Some(entry(control, pid)).filter(&is_so))
}

#[test]
fn groups_and_pacing_are_set_and_undone() {
    let server = Server::served(&[]);
    let (first, second) = (server.client(&["xclock"]), server.client(&["xclock"]));
    let control = control(&server);
    control.set(Subject::Server, Setting::Grouping(Grouping::None)).unwrap();
    let rules = Rules::new("groups");
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "group = \"user\", pace = true")]));
    let daemon = rules.applied_on(&server);
    let is_paced = |entry: &ClientEntry| entry.flags & entry_flag::PACED != 0 && entry.group != 0;
    let one = becomes(&control, first.pid(), "the first is grouped and paced", is_paced);
    let other = becomes(&control, second.pid(), "the second is, too", is_paced);
    assert_eq!((one.group, one.group_name.as_str().split(' ').next()), (other.group, Some("user")));
    rules.write(
        "50-a.toml",
        &file(&[rule("clocks", "name = \"xclock\"", "group = \"app\", max = \"30%\", pace = false")]),
    );
    let is_capped = |entry: &ClientEntry| entry.group_cap_ppm == 300_000 && entry.flags & entry_flag::NEVER_PACED != 0;
    let one = becomes(&control, first.pid(), "the first is capped", is_capped);
    let other = becomes(&control, second.pid(), "the second is, too", is_capped);
    assert_ne!(one.group, other.group, "each process is an application");
    daemon.signal("KILL");
    let is_free =
        |entry: &ClientEntry| entry.group == 0 && entry.flags & (entry_flag::PACED | entry_flag::NEVER_PACED) == 0;
    becomes(&control, first.pid(), "the settings are undone", is_free);
    becomes(&control, second.pid(), "the settings are undone", is_free);
}

/// The program under test with system rules in their place, as in an installation.
struct Installed {
    folder: PathBuf,
}

impl Installed {
    fn new(name: &str, rules: &str) -> Installed {
        // Use the build folder, because a hard link needs the same file system.
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::create_dir_all(folder.join("lib/xqos/rules.d")).unwrap();
        fs::hard_link(crate::PROGRAM, folder.join("bin/xqos")).unwrap();
        let installed = Installed { folder };
        installed.write(rules);
        installed
    }

    fn write(&self, rules: &str) {
        let path = self.folder.join("lib/xqos/rules.d/50-limits.toml");
        fs::write(path.with_extension("new"), rules).unwrap();
        fs::rename(path.with_extension("new"), path).unwrap();
    }

    fn applied_on(&self, server: &Server, rules: &Rules) -> Running {
        let program = self.folder.join("bin/xqos").to_string_lossy().into_owned();
        rules.applied_by(server.command(&program).args(["rules", "run"]))
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_limit_per_user_applies_and_ends_with_the_daemon() {
    let server = Server::served(&[]);
    let (control, rules) = (control(&server), Rules::new("limits"));
    let installed = Installed::new("limits", "version = 1\n[limits]\nper_user = 0.3\n");
    let limit = || control.groups().unwrap().user_limit_ppm;
    let limited = |ppm| eventually("the limit is as wanted", || (limit() == ppm).then_some(()));
    let daemon = installed.applied_on(&server, &rules);
    limited(300_000);
    installed.write("version = 1\n[limits]\nper_user = 0.95\n");
    limited(950_000);
    installed.write("version = 1\n[limits]\nper_user = 1.5\n");
    let other = server.client(&["xclock"]);
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 2")]));
    weighs(&server, other.pid(), 2.0);
    assert_eq!(limit(), 950_000, "the last good version counts");
    daemon.signal("KILL");
    limited(0);
    let said = daemon.ended().err;
    assert!(
        said.contains("per_user = 0.95 in [limits] has no effect: this server promises at most 0.9 in total"),
        "{said}"
    );
    assert!(said.contains("50-limits.toml:3: a limit is a share of the server, at most 0.95"), "{said}");
    server.ask(&["policy", "--user-limit", "0.2"]).with(0);
    installed.write("version = 1\n[limits]\nper_user = 0.3\n");
    let daemon = installed.applied_on(&server, &rules);
    weighs(&server, other.pid(), 2.0);
    daemon.signal("TERM");
    let said = daemon.ended().with(0).err;
    assert!(said.contains("per_user in [limits] has no effect: 0.2 was set manually"), "{said}");
    assert_eq!(limit(), 200_000);
}

fn is_raised(pid: i32) -> bool {
    Attributes::of(pid).is_ok_and(|attributes| attributes.real_time_priority().is_some())
}

/// Covers the screen for a moment, so that clients with a window get an Expose.
fn expose(server: &Server) {
    let (connection, screen) = x11rb::connect(Some(&server.display)).unwrap();
    let (root, window) = (connection.setup().roots[screen].root, connection.generate_id().unwrap());
    let look = CreateWindowAux::new().override_redirect(1);
    connection.create_window(0, window, root, 0, 0, 1024, 768, 0, WindowClass::INPUT_OUTPUT, 0, &look).unwrap();
    connection.map_window(window).unwrap();
    connection.destroy_window(window).unwrap();
    connection.get_input_focus().unwrap().reply().unwrap();
}

#[test]
fn only_programs_named_by_a_rule_are_raised_to_redraw() {
    if is_real_time_refused() {
        return;
    }
    let server = Server::served(&[]);
    // Side by side, because a covered window gets no Expose.
    let (clock, logo) = (
        server.client(&["xclock", "-geometry", "100x100+0+0"]),
        server.client(&["xlogo", "-geometry", "100x100+200+0"]),
    );
    let rules = Rules::new("cpu");
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "cpu = true, weight = 2")]));
    let daemon = rules.applied_on(&server);
    weighs(&server, clock.pid(), 2.0);
    let both = |signal: &str| [&clock, &logo].into_iter().for_each(|client| client.signal(signal));
    // A stopped program cannot answer, and stays raised until its time limit expires. No Expose is reported while an
    // earlier one is unanswered, possibly from before boost was listening, so both programs are continued in between.
    eventually("the clock is raised", || {
        both("STOP");
        expose(&server);
        let raised = (0..50).any(|_| {
            sleep(Duration::from_millis(10));
            is_raised(clock.pid())
        });
        assert!(!is_raised(logo.pid()), "no rule names it");
        (!raised).then(|| both("CONT"));
        raised.then_some(())
    });
    daemon.signal("KILL");
    eventually("the clock is restored", || {
        expose(&server);
        (!is_raised(clock.pid())).then_some(())
    });
    both("CONT");
}

/// An Xvnc that listens for viewers on a Unix socket and on a TCP port.
fn vnc(folder: &Folder, port: u16) -> Option<Server> {
    let mut command = xqos();
    command.args(["server", "--module"]).arg(module()).args([
        "--",
        "Xtigervnc",
        "-geometry",
        "640x480",
        "-depth",
        "24",
    ]);
    command.args([
        "-SecurityTypes",
        "None",
        "-localhost",
        "-rfbport",
        &port.to_string(),
        "-rfbunixpath",
        &folder.file("rfb"),
    ]);
    xqos_testkit::program("Xtigervnc").map(|_| Server::start_other(&mut command))
}

#[test]
fn an_unwatched_display_is_capped_until_a_viewer_connects() {
    let folder = Folder::new("unwatched");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Some(server) = vnc(&folder, port) else { return };
    let (first, second) = (server.client(&["xclock"]), server.client(&["xlogo"]));
    let control = control(&server);
    let rules = Rules::new("unwatched");
    let set = "group = \"unwatched\", max = \"5%\"";
    rules.write("50-a.toml", &file(&[rule("unwatched", "state = \"unwatched\"", set)]));
    let daemon = rules.applied_by(server.xqos(&["rules", "run"]).args(["--unwatched-after", "1s"]));
    let is_capped = |entry: &ClientEntry| entry.group_cap_ppm == 50_000;
    let is_free = |entry: &ClientEntry| entry.group_cap_ppm == 0;
    let both = |what: &str, is_so: &dyn Fn(&ClientEntry) -> bool| {
        [&first, &second].map(|client| becomes(&control, client.pid(), what, is_so).group)
    };
    let groups = both("without a viewer, both are capped", &is_capped);
    assert_eq!(groups[0], groups[1], "both share one cap");
    let viewer = UnixStream::connect(folder.file("rfb")).unwrap();
    both("with a viewer, neither is capped", &is_free);
    drop(viewer);
    both("the viewer has disconnected", &is_capped);
    let viewer = TcpStream::connect(("127.0.0.1", port)).unwrap();
    both("with a viewer by TCP, neither is capped", &is_free);
    drop(viewer);
    both("the viewer has disconnected", &is_capped);
    daemon.signal("KILL");
    both("the cap ends with the daemon", &is_free);
}

#[test]
fn a_stopped_daemon_keeps_its_settings_and_catches_up() {
    let server = Server::served(&[]);
    let clock = server.client(&["xclock"]);
    let rules = Rules::new("stopped");
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 2, priority = 5")]));
    let daemon = rules.applied_on(&server);
    weighs(&server, clock.pid(), 2.0);
    daemon.signal("STOP");
    // Meanwhile the server keeps serving, new clients get the defaults, and a user can change settings manually.
    let late = server.client(&["xclock"]);
    server.ask(&["priority", "--pid", &clock.pid().to_string(), "9"]).with(0);
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 3, priority = 6")]));
    for _ in 0..50 {
        Windowed::new(&server);
    }
    assert_eq!((weight(&server, clock.pid()), weight(&server, late.pid())), (2.0, 1.0));
    daemon.signal("CONT");
    weighs(&server, late.pid(), 3.0);
    weighs(&server, clock.pid(), 3.0);
    assert_eq!(server.entry(clock.pid()).unwrap()["fixed_priority"], 9);
    daemon.signal("STOP");
    daemon.signal("KILL");
    weighs(&server, late.pid(), 1.0);
}

/// Waits until the daemon waits for events, and not for a reply to an X request, which would have no time limit.
/// Returns the client that this function uses to check that the server replies.
fn idle(server: &Server, daemon: &Running) -> RustConnection {
    let (client, _) = x11rb::connect(Some(&server.display)).unwrap();
    eventually("the daemon is idle", || {
        let before = wakeups(daemon.pid());
        sleep(Duration::from_millis(300)); // time: wakeups are counted meanwhile
        client.get_input_focus().unwrap().reply().unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", daemon.pid())).unwrap();
        (stat.contains(") S ") && wakeups(daemon.pid()) == before).then_some(())
    });
    client
}

/// A clock, and a daemon that has applied a rule to it.
fn clock_of_weight_2(server: &Server, name: &str) -> (Running, Rules, Running) {
    let (clock, rules) = (server.client(&["xclock"]), Rules::new(name));
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 2")]));
    let daemon = rules.applied_on(server);
    weighs(server, clock.pid(), 2.0);
    (clock, rules, daemon)
}

#[test]
fn a_server_that_hangs_does_not_end_the_daemon() {
    let server = Server::served(&[]);
    let (clock, rules, mut daemon) = clock_of_weight_2(&server, "hangs");
    let said = Lines::of(daemon.err());
    wait_until_mapped(&server);
    let _client = idle(&server, &daemon);
    server.process.signal("STOP");
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 3")]));
    said.wait_for_words("did not answer in time");
    server.process.signal("CONT");
    weighs(&server, clock.pid(), 3.0);
    daemon.signal("TERM");
    daemon.ended().with(0);
    let said = said.rest();
    assert!(!said.contains("has exited"), "{said}");
}

#[test]
fn a_signal_ends_the_daemon_while_the_server_hangs() {
    let server = Server::served(&[]);
    let (clock, _rules, daemon) = clock_of_weight_2(&server, "ends");
    server.process.signal("STOP");
    daemon.signal("TERM");
    let said = daemon.ended().with(0).err;
    server.process.signal("CONT");
    assert!(said.contains("it drops the settings when it continues"), "{said}");
    weighs(&server, clock.pid(), 1.0);
}

#[test]
fn a_limit_per_user_is_set_when_the_server_answers_again() {
    let server = Server::served(&[]);
    let (control, rules) = (control(&server), Rules::new("limits-hang"));
    let installed = Installed::new("limits-hang", "version = 1\n[limits]\nper_user = 0.3\n");
    let limit = || control.groups().unwrap().user_limit_ppm;
    let limited = |ppm| eventually("the limit is as wanted", || (limit() == ppm).then_some(()));
    let mut daemon = installed.applied_on(&server, &rules);
    limited(300_000);
    let said = Lines::of(daemon.err());
    let _client = idle(&server, &daemon);
    server.process.signal("STOP");
    installed.write("version = 1\n[limits]\nper_user = 0.4\n");
    said.wait_for_words("did not answer in time");
    server.process.signal("CONT");
    limited(400_000);
}

#[test]
fn a_server_reset_ends_the_daemon_and_a_new_one_applies_the_rules() {
    let server = Server::served(&[]);
    let clock = server.client(&["xclock"]);
    let rules = Rules::new("reset");
    rules.write("50-a.toml", &file(&[rule("clocks", "name = \"xclock\"", "weight = 2")]));
    let daemon = rules.applied_on(&server);
    weighs(&server, clock.pid(), 2.0);
    kill(server.process.pid(), "HUP");
    let ended = daemon.ended();
    assert!(
        ended.err.contains("has exited") || ended.err.contains("was closed: start `xqos rules run` again"),
        "{ended:#?}"
    );
    let clock = server.client(&["xclock"]);
    assert_eq!(weight(&server, clock.pid()), 1.0);
    let daemon = rules.applied_on(&server);
    weighs(&server, clock.pid(), 2.0);
    daemon.signal("TERM");
    daemon.ended().with(0);
}

/// A file of a thousand rules; the last one matches this process.
fn a_thousand(weight: u32) -> String {
    let others = (0..999).map(|at| rule(&format!("r{at}"), &format!("exe = \"*/program{at}\""), "priority = 5"));
    let own = std::env::current_exe().unwrap();
    let own = rule("own", &format!("exe = \"{}\"", own.display()), &format!("weight = {weight}"));
    file(&others.chain([own]).collect::<Vec<_>>())
}

/// The number of requests that a process has made on all its connections.
fn requests(control: &Control, pid: i32) -> u64 {
    let clients = control.clients().unwrap().clients;
    clients.iter().filter(|entry| entry.pid == pid).map(|entry| entry.requests).sum()
}

#[test]
fn a_thousand_rules_apply_to_500_clients_with_few_requests() {
    const CLIENTS: usize = 500;
    let server = Server::served_with(&["-maxclients", "1024"]);
    let _connections: Vec<_> = (0..CLIENTS).map(|_| x11rb::connect(Some(&server.display)).unwrap()).collect();
    let control = control(&server);
    let own = std::process::id() as i32;
    let have = |weight: u32| {
        let clients = control.clients().unwrap().clients;
        clients.iter().filter(|entry| entry.pid == own && entry.weight == 100 * weight).count()
    };
    let rules = Rules::new("thousand");
    rules.write("50-a.toml", &a_thousand(2));
    // The daemon prints a line for each client, more than a pipe can hold.
    let daemon =
        Running::start(rules.with(&mut server.xqos(&["rules", "run"])).stdout(Stdio::null()).stderr(Stdio::null()));
    eventually("all clients have the rule's weight", || (have(2) >= CLIENTS).then_some(()));
    for weight in [3, 4, 5] {
        let before = requests(&control, daemon.pid());
        let begun = Instant::now();
        rules.write("50-a.toml", &a_thousand(weight));
        eventually("all clients have the new weight", || (have(weight) >= CLIENTS).then_some(()));
        let took = begun.elapsed();
        let asked = requests(&control, daemon.pid()) - before;
        println!("read again for {CLIENTS} clients: {took:.1?}, {asked} requests");
        // Two requests per client (the rule and the weight), the list of clients, and one round trip for all.
        assert!(asked <= 2 * CLIENTS as u64 + 10, "{asked} requests");
    }
}

#[test]
fn rules_check_reports_settings_without_effect_in_one_line() {
    let rules = Rules::new("remarks");
    rules.write("50-a.toml", &file(&[rule("auto", "exe = \"*/mpv\"", "reserve = \"auto\", hard = true")]));
    let told = rules.ask(&["rules", "check"]).with(0);
    let place = rules.path("50-a.toml");
    let remark = format!(
        "{place}:2: rule 'auto': hard has no effect with reserve = \"auto\", which makes only soft reservations"
    );
    assert!(told.out.lines().any(|line| line == remark), "{told:#?}");
}
