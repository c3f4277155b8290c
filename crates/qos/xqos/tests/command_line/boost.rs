// SPDX-License-Identifier: MIT
//! `xqos boost`: which programs are raised and for how long, and that none stays raised when a process is killed.
//!
//! A stopped program cannot answer an Expose. It stays raised until its time limit expires, long enough to be observed.

use crate::fixture::{Lines, Running, Server, eventually, kill};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, CreateWindowAux, MapState, WindowClass};
use xqos_sys::Attributes;

const XCLOCK: &[&str] = &["xclock", "-geometry", "100x100+0+0"];

fn is_raised(pid: i32) -> bool {
    Attributes::of(pid).is_ok_and(|attributes| attributes.real_time_priority().is_some())
}

/// Starts `xqos boost`, and returns once it is active.
fn boost(server: &Server, arguments: &[&str]) -> Running {
    let mut command = server.xqos(&["boost"]);
    let mut boost = Running::start(command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(boost.out()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    boost
}

/// Covers the screen's corner for a moment, so that clients with a window there get an Expose.
fn expose(server: &Server) {
    let (connection, screen) = x11rb::connect(Some(&server.display)).unwrap();
    let (root, window) = (connection.setup().roots[screen].root, connection.generate_id().unwrap());
    let look = CreateWindowAux::new().override_redirect(1);
    let class = WindowClass::INPUT_OUTPUT;
    connection.create_window(0, window, root, 0, 0, 300, 300, 0, class, 0, &look).unwrap();
    connection.map_window(window).unwrap();
    connection.destroy_window(window).unwrap();
    connection.get_input_focus().unwrap().reply().unwrap();
}

/// Waits until a window is mapped and its program waits for events again, unless the machine is busy.
fn wait_until_drawn(server: &Server) {
    wait_until_mapped(server);
    sleep(Duration::from_millis(300)); // time: drawing gives no notice of its end
}

/// Waits until a client has a window on the screen.
pub fn wait_until_mapped(server: &Server) {
    let (connection, screen) = x11rb::connect(Some(&server.display)).unwrap();
    let root = connection.setup().roots[screen].root;
    eventually("a window is mapped", || {
        let children = connection.query_tree(root).unwrap().reply().unwrap().children;
        let looks =
            children.into_iter().filter_map(|child| connection.get_window_attributes(child).unwrap().reply().ok());
        looks.into_iter().any(|look| look.map_state == MapState::VIEWABLE).then_some(())
    });
}

/// A stopped clock that is raised for an Expose, and a time before this Expose.
fn raised_clock(server: &Server) -> (Running, Instant) {
    let clock = server.client(XCLOCK);
    wait_until_drawn(server);
    let before = eventually("the clock is raised", || {
        clock.signal("STOP");
        let before = Instant::now();
        expose(server);
        let is_seen = (0..50).any(|_| {
            sleep(Duration::from_millis(10));
            is_raised(clock.pid())
        });
        // The test missed the raised clock, or this Expose was not reported because an earlier one is unanswered.
        if !is_seen {
            clock.signal("CONT");
            sleep(Duration::from_millis(200)); // time: drawing gives no notice of its end
        }
        is_seen.then_some(before)
    });
    (clock, before)
}

fn end(clock: Running) {
    clock.signal("CONT");
    drop(clock);
}

/// Returns true if this user may not give real-time priorities. The test is then skipped.
pub fn is_real_time_refused() -> bool {
    // Use a separate thread, because it keeps the priority.
    let is_refused = std::thread::spawn(|| Attributes::real_time(1).give(0).is_err()).join().unwrap();
    if is_refused {
        xqos_testkit::left_out("this user may not give real-time priorities");
    }
    is_refused
}

#[test]
fn a_program_that_does_not_answer_is_raised_until_its_time_is_over() {
    if is_real_time_refused() {
        return;
    }
    let server = Server::served(&[]);
    const TIME: Duration = Duration::from_millis(400);
    let boost = boost(&server, &["--expose", "400ms"]);
    let (clock, before) = raised_clock(&server);
    let pid = clock.pid();
    eventually("the clock is restored", || (!is_raised(pid)).then_some(()));
    assert!(before.elapsed() >= TIME, "the priority was restored too early: {:?}", before.elapsed());
    clock.signal("CONT");
    // The clock now answers this Expose, and the one that it got while it was stopped.
    expose(&server);
    eventually("the clock is restored", || (!is_raised(pid)).then_some(()));
    boost.signal("TERM");
    boost.ended().with(0);
}

/// While `xqos boost` is stopped, it enforces no time limit, so only the victim's death can cause the priority to be
/// restored, however busy the machine is.
#[test]
fn no_program_stays_raised_whichever_process_is_killed() {
    if is_real_time_refused() {
        return;
    }
    for (victim, status) in VICTIMS {
        let server = Server::served(&[]);
        let boost = boost(&server, &["--expose", "1s"]);
        let guard = eventually("the guard is there", || child_of(boost.pid()));
        let clock = clock_raised_when_stopped(&server, &boost);
        let pid = clock.pid();
        end_victim(victim, &boost, guard, &server);
        boost.signal("CONT");
        assert_eq!(boost.ended().status, status, "{victim}");
        eventually("the guard has ended", || (!exists(guard)).then_some(()));
        // No process is left that could restore it later.
        assert!(!is_raised(pid), "{victim}: the clock is raised");
        if victim != "server" {
            let is_lent = || threads_raised(server.process.pid()) > 0;
            eventually("the server notices that the lender is gone", || (!is_lent()).then_some(()));
        }
        end(clock);
    }
}

/// Without raised programs, no timer wakes the processes.
#[test]
fn boost_and_its_guard_exit_with_each_other_and_with_the_server() {
    if is_real_time_refused() {
        return;
    }
    for (victim, status) in VICTIMS {
        let server = Server::served(&[]);
        let boost = boost(&server, &[]);
        let guard = eventually("the guard is there", || child_of(boost.pid()));
        end_victim(victim, &boost, guard, &server);
        assert_eq!(boost.ended().status, status, "{victim}");
        eventually("the guard has ended", || (!exists(guard)).then_some(()));
    }
}

/// The process to kill, and the expected exit status of `xqos boost`.
const VICTIMS: [(&str, i32); 4] = [("boost", -1), ("guard", 1), ("server", 0), ("boost by TERM", 0)];

fn end_victim(victim: &str, boost: &Running, guard: i32, server: &Server) {
    match victim {
        "boost" => kill(boost.pid(), "KILL"),
        "guard" => kill(guard, "KILL"),
        "server" => kill(server.process.pid(), "KILL"),
        _ => kill(boost.pid(), "TERM"),
    }
}

/// Returns a raised clock, with `xqos boost` stopped before the clock's time limit expired.
fn clock_raised_when_stopped(server: &Server, boost: &Running) -> Running {
    eventually("the clock is raised when boost is stopped", || {
        let (clock, _) = raised_clock(server);
        boost.signal("STOP");
        eventually("boost is stopped", || is_stopped(boost.pid()).then_some(()));
        if is_raised(clock.pid()) {
            return Some(clock);
        }
        boost.signal("CONT");
        end(clock);
        None
    })
}

fn exists(pid: i32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

fn is_stopped(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    status.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" T"))
}

fn child_of(pid: i32) -> Option<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

/// The number of raised threads of a server.
fn threads_raised(pid: i32) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    tasks.filter(|task| task.file_name().to_str().is_some_and(|id| is_raised(id.parse().unwrap()))).count()
}

#[test]
fn programs_of_other_users_are_left_alone() {
    if is_real_time_refused() {
        return;
    }
    let server = Server::served(&[]);
    let mut boost = boost(&server, &["--verbose", "--user", "64999"]);
    let said = Lines::of(boost.err());
    let clock = server.client(XCLOCK);
    wait_until_mapped(&server);
    let cpu = || server.entry(clock.pid()).unwrap()["cpu"].clone();
    let before = cpu();
    // No Expose is reported while an earlier one is unanswered.
    eventually("boost leaves the clock alone", || {
        expose(&server);
        said.have("left alone: it is another user's").then_some(())
    });
    assert!(!is_raised(clock.pid()));
    assert_eq!(cpu(), before);
    boost.signal("INT");
    boost.ended().with(0);
}

#[test]
fn a_program_gets_processor_time_and_its_children_do_not() {
    let server = Server::served(&[]);
    for (wanted, words) in [("20ms/10ms", "longer than"), ("1us/10ms", "out of range"), ("soon", "budget/period")] {
        let ended = server.ask(&["run", "--cpu", wanted, "--", "true"]);
        assert!(matches!(ended.status, 1 | 2) && ended.err.contains(words), "{ended:#?}");
    }
    if is_real_time_refused() {
        return;
    }
    let script = "xclock -geometry 50x50+0+0 & exec xeyes";
    let _run = Running::start(
        server
            .xqos(&["run", "--reserve", "3ms/10ms", "--cpu", "1ms/10ms", "--", "sh", "-c", script])
            .stderr(Stdio::null()),
    );
    let both = || Some((server.entry_called("xeyes")?, server.entry_called("xclock")?));
    let (eyes, clock) = eventually("both are connected", both);
    assert_eq!((&eyes["cpu"]["budget_ms"], &eyes["cpu"]["period_ms"]), (&1.0.into(), &10.0.into()), "{eyes:#}");
    assert!(clock["cpu"].is_null(), "{clock:#}");
}

#[test]
fn a_server_with_processor_time_promises_no_more_than_it_gets() {
    if is_real_time_refused() {
        return;
    }
    let server = Server::served(&["--cpu", "4ms/10ms", "--max-utilization", "0.9"]);
    let clock = server.client(XCLOCK);
    let reserve = |wanted: &str| server.ask(&["reserve", "--pid", &clock.pid().to_string(), wanted]);
    // 30 ms plus a gap of 2 x 6 ms x 0.4 fit into 0.4 x 100 ms. 38 ms plus the gap do not, nor do 3 ms in 10 ms.
    reserve("38ms/100ms").failed_saying(&["refused"]);
    reserve("3ms/10ms").failed_saying(&["refused"]);
    reserve("30ms/100ms").with(0);
    let top = server.json(&["top", "--once", "--json"]);
    assert_eq!(top["server"]["cpu"]["budget_ms"], 4.0, "{top:#}");
    assert_eq!(top["server"]["utilization_limit"], 0.4, "{top:#}");
    let policy = server.json(&["policy", "--json"]);
    assert_eq!((&policy["max_utilization"], &policy["utilization_limit"]), (&0.9.into(), &0.4.into()), "{policy:#}");
    let words = server.ask(&["policy"]).with(0).out;
    assert!(words.contains("0.9, limited to 0.4 by the server's processor time (server --cpu), 0.3 of it"), "{words}");
    let doctor = server.ask(&["doctor"]).with(0).out;
    assert!(doctor.contains("0.30 of at most 0.40, limited by the server's processor time"), "{doctor}");
}

#[test]
fn the_desktop_rule_is_set_shown_and_undone() {
    let server = Server::served(&["--desktop", "0.5"]);
    assert_eq!(server.json(&["policy", "--json"])["desktop_share"], 0.5);
    let set = server.ask(&["policy", "--desktop", "off"]).with(0);
    assert_eq!(set.out, "set: --desktop off; undo: xqos policy --desktop 0.5\n");
    assert!(server.json(&["policy", "--json"])["desktop_share"].is_null());
    let set = server.ask(&["policy", "fair", "--desktop", "on"]).with(0);
    assert_eq!(set.out, "set: fair --desktop on; undo: xqos policy fair --desktop off\n");
    for wrong in ["yes", "0", "0.95", "50%"] {
        server.ask(&["policy", "--desktop", wrong]).with(2);
    }
}

#[test]
fn cutting_is_set_shown_and_undone() {
    let server = Server::served(&["--cut", "off"]);
    assert!(server.json(&["policy", "--json"])["cut_part_ms"].is_null());
    let set = server.ask(&["policy", "--cut", "on"]).with(0);
    assert_eq!(set.out, "set: --cut on; undo: xqos policy --cut off\n");
    server.ask(&["policy", "--cut", "off"]).with(0);
    let set = server.ask(&["policy", "--cut", "2ms"]).with(0);
    assert_eq!(set.out, "set: --cut 2ms; undo: xqos policy --cut off\n");
    assert_eq!(server.json(&["policy", "--json"])["cut_part_ms"], 2.0);
    assert!(server.ask(&["doctor"]).with(0).out.contains("cut after 2 ms"));
    for wrong in ["yes", "0", "49us", "101ms"] {
        server.ask(&["policy", "--cut", wrong]).with(2);
    }
}

#[test]
fn cutting_is_refused_where_it_is_impossible() {
    let server = Server::served_through_libc();
    server.ask(&["policy", "smart", "--cut", "on"]).failed_saying(&["cannot be cut", "xqos doctor"]);
    assert_eq!(server.json(&["policy", "--json"])["policy"], "fair", "nothing was changed");
    let doctor = server.ask(&["doctor"]).with(0).out;
    assert!(doctor.contains("cannot be cut: through libc"), "{doctor}");
}

#[test]
fn pacing_is_set_shown_and_undone() {
    let server = Server::served(&[]);
    let set = server.ask(&["policy", "--expose-pacing", "40ms", "--min-fps", "10"]).with(0);
    assert_eq!(set.out, "set: --expose-pacing 40ms --min-fps 10; undo: xqos policy --expose-pacing off --min-fps 20\n");
    let policy = server.json(&["policy", "--json"]);
    assert_eq!((&policy["expose_pacing_ms"], &policy["min_fps"]), (&40.0.into(), &10.0.into()), "{policy:#}");
    server.ask(&["policy", "--expose-pacing", "off", "--min-fps", "20"]).with(0);
    assert!(server.json(&["policy", "--json"])["expose_pacing_ms"].is_null());
    for wrong in [["--expose-pacing", "2s"], ["--expose-pacing", "10us"], ["--min-fps", "0"], ["--min-fps", "1001"]] {
        server.ask(&["policy", wrong[0], wrong[1]]).with(2);
    }
}
