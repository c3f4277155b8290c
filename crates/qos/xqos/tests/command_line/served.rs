// SPDX-License-Identifier: MIT
//! The commands on a real server with xqos in it.
//!
//! Each test has its own Xvfb, started by `xqos server`. The module is taken from XQOS_MODULE, or from the
//! workspace's target/release.

use crate::boost::wait_until_mapped;
use crate::fixture::{Ended, Folder, Lines, Running, Server, ended, eventually, is_ignored, kill};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    BUTTON_PRESS_EVENT, BUTTON_RELEASE_EVENT, ConnectionExt as _, CreateWindowAux, KEY_PRESS_EVENT, KEY_RELEASE_EVENT,
    PropMode, Window, WindowClass,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

const XCLOCK: &[&str] = &["xclock", "-update", "1"];

fn reservation(entry: &serde_json::Value) -> Option<(f64, f64, bool)> {
    let reservation = entry["reservation"].as_object()?;
    let ms = |field: &str| reservation[field].as_f64().unwrap();
    Some((ms("budget_ms"), ms("period_ms"), reservation["hard"].as_bool().unwrap()))
}

/// Starts `xqos run` with piped output.
fn run(server: &Server, arguments: &[&str]) -> Running {
    Running::start(server.xqos(&["run"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// A client's top-level window.
fn window_of(connection: &impl Connection, root: Window, client: &str) -> Window {
    let base = u32::from_str_radix(client.trim_start_matches("0x"), 16).unwrap();
    let mask = connection.setup().resource_id_mask;
    let windows = connection.query_tree(root).unwrap().reply().unwrap().children;
    windows.into_iter().find(|window| window & !mask == base).expect("it has a window")
}

/// Runs the undo command of a confirmation.
#[track_caller]
fn undo(server: &Server, confirmation: &str) -> Ended {
    let (_, undo) = confirmation.trim_end().split_once("undo: xqos ").expect("it says how to undo it");
    server.ask(&undo.split(' ').collect::<Vec<_>>()).with(0)
}

#[test]
fn the_started_process_is_the_server_and_is_served() {
    let server = Server::served(&["--policy", "smart", "--slice", "2ms", "--max-utilization", "0.8"]);
    let told = server.json(&["doctor", "--json"]);
    assert_eq!(told["pid"], server.process.pid(), "{told:#}");
    assert_eq!((&told["served"], &told["service"]["armed"]), (&true.into(), &true.into()), "{told:#}");
    let told = server.ask(&["doctor"]).with(0);
    assert!(told.out.contains("yes: XQOS 1.0, policy smart"), "{}", told.out);
    let policy = server.json(&["policy", "--json"]);
    assert_eq!((&policy["policy"], &policy["slice_ms"]), (&"smart".into(), &2.0.into()), "{policy:#}");
    assert_eq!(policy["max_utilization"], 0.8, "{policy:#}");
}

#[test]
fn a_server_whose_xqos_has_stepped_aside_says_so() {
    let server = Server::faulty("request:12");
    // Asking xqos for its clients could reach the fault.
    let clock = Running::start(server.command(XCLOCK[0]).args(&XCLOCK[1..]).stderr(Stdio::null()));
    wait_until_mapped(&server);
    let pid = clock.pid().to_string();
    eventually("xqos has stepped aside", || (server.ask(&["doctor"]).status == 1).then_some(()));
    let told = server.ask(&["doctor"]).with(1);
    assert!(
        told.out.contains("no: xqos has stepped aside") && told.out.contains("start the server again"),
        "{told:#?}"
    );
    let service = serde_json::from_str::<serde_json::Value>(&server.ask(&["doctor", "--json"]).with(1).out).unwrap();
    assert_eq!(service["service"]["armed"], false, "{service:#}");
    for arguments in [
        &["reserve", "--pid", &pid, "3ms/10ms"][..],
        &["weight", "--pid", &pid, "2"],
        &["policy", "smart"],
        &["run", "--weight", "2", "--", "true"],
    ] {
        server.ask(arguments).failed_saying(&["xqos has stepped aside", "no effect until that server is restarted"]);
    }
    assert!(server.ask(&["list"]).with(0).err.contains("no longer change"), "a note says that the figures are frozen");
    assert_eq!(server.json(&["top", "--once", "--json"])["server"]["reservations"], 0);
}

#[test]
fn the_list_shows_usage_by_client() {
    let server = Server::served(&[]);
    let clock = server.client(XCLOCK);
    let perf = server.client(&["x11perf", "-time", "60", "-getimagexy500"]);
    // On a busy machine, an early request may be the longest one for a while.
    let entry = eventually("x11perf has used the most server time, and GetImage is its longest request", || {
        server.entry(perf.pid()).filter(|entry| {
            // A clock that starts on a busy machine may use as much server time to load fonts.
            let of_clock = server.entry(clock.pid()).and_then(|clock| clock["server_time_ms"].as_f64());
            let used = entry["server_time_ms"].as_f64().unwrap();
            let has_share = entry["share"].as_f64() > Some(0.0) && entry["requests"].as_u64() > Some(10);
            used > 100.0 && Some(used) > of_clock && has_share && entry["longest_request"]["name"] == "GetImage"
        })
    });
    assert_eq!((&entry["program"], &entry["weight"]), (&"x11perf".into(), &1.0.into()), "{entry:#}");
    assert!(entry["share"].as_f64() <= Some(1.0), "{entry:#}");
    assert!(entry["reservation"].is_null() && entry["local"] == true, "{entry:#}");
    assert_eq!(server.clients().len(), 2, "xqos itself is not listed");
    assert_eq!(server.json(&["list", "--json", "--all"])["clients"].as_array().unwrap().len(), 3);
    let table = ended(server.xqos(&["list"]).env("COLUMNS", "80")).with(0).out;
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[..3].iter().all(|line| line.chars().count() <= 80), "{table}");
    assert!(lines[1].contains("x11perf"), "the client with the most server time comes first:\n{table}");
    assert!(lines[2].trim_start().starts_with(&clock.pid().to_string()), "{table}");
}

#[test]
fn a_reservation_is_made_by_process_class_window_or_client_and_undone() {
    let server = Server::served(&[]);
    server.fix_blocking();
    let clock = server.client(XCLOCK);
    let pid = clock.pid().to_string();
    let entry = || server.entry(clock.pid()).expect("it is connected");
    let client = entry()["client"].as_str().unwrap().to_owned();

    let told = server.ask(&["reserve", "--pid", &pid, "3ms/10ms"]).with(0);
    assert!(told.out.starts_with("reserved 3 ms / 10 ms for xclock"), "{}", told.out);
    assert_eq!(reservation(&entry()), Some((3.0, 10.0, false)));
    undo(&server, &told.out);
    assert_eq!(reservation(&entry()), None);

    eventually("the window has its class", || {
        (server.ask(&["reserve", "--class", "XCLOCK", "2ms/8ms", "--hard"]).status == 0).then_some(())
    });
    assert_eq!(reservation(&entry()), Some((2.0, 8.0, true)), "in upper or lower case");

    let told = server.ask(&["reserve", "--client", &client, "500us/20ms"]).with(0);
    assert_eq!(reservation(&entry()), Some((0.5, 20.0, false)));
    undo(&server, &told.out);
    assert_eq!(reservation(&entry()), Some((2.0, 8.0, true)), "back to what was before");

    let told = server.ask(&["release", "--pid", &pid]).with(0);
    assert_eq!(reservation(&entry()), None);
    undo(&server, &told.out);
    assert_eq!(reservation(&entry()), Some((2.0, 8.0, true)));

    let (connection, screen) = x11rb::connect(Some(&server.display)).unwrap();
    let window = window_of(&connection, connection.setup().roots[screen].root, &client);
    server.ask(&["reserve", "--window", &format!("{window:#x}"), "4ms/10ms"]).with(0);
    assert_eq!(reservation(&entry()), Some((4.0, 10.0, false)));
    server.ask(&["release", "--all"]).with(0);
    assert_eq!(reservation(&entry()), None);
    assert_eq!(server.ask(&["release", "--all"]).with(0).out, "no client has a reservation\n");
}

#[test]
fn a_reservation_of_a_group_is_set_by_name_and_undone() {
    let server = Server::served(&[]);
    server.fix_blocking();
    let clocks = [server.client(XCLOCK), server.client(XCLOCK)];
    let group = |clock: &Running| server.entry(clock.pid()).unwrap()["group"].clone();
    let name = group(&clocks[0])["name"].as_str().unwrap().to_owned();
    let told = server.ask(&["reserve", "--group", &name, "3ms/10ms", "--hard"]).with(0);
    let expected = format!("reserved 3 ms / 10 ms hard for each of 2 groups {name} (2 clients); undo: xqos release");
    assert!(told.out.starts_with(&expected) && told.out.lines().count() == 1, "{}", told.out);
    let reserved = group(&clocks[0])["reservation"].clone();
    assert_eq!((&reserved["budget_ms"], &reserved["hard"]), (&3.0.into(), &true.into()));
    // Two processes of one name are two groups unless they belong to one application; one command undoes both.
    undo(&server, told.out.lines().next().unwrap());
    assert!(group(&clocks[0])["reservation"].is_null() && group(&clocks[1])["reservation"].is_null());
    server.ask(&["reserve", "--group", &name, "2ms/10ms"]).with(0);
    server.ask(&["release", "--all"]).with(0);
    assert!(group(&clocks[0])["reservation"].is_null());
    let nothing = server.ask(&["release", "--group", &name]).with(0).out;
    assert!(nothing.contains("nothing to release") && nothing.contains(&name), "{nothing}");
    server.ask(&["reserve", "--group", &name, "19ms/20ms"]).failed_saying(&["is refused to each of 2 groups", "0.9"]);
    // The first group is admitted, and loses its reservation when the second is refused.
    server.ask(&["reserve", "--group", &name, "10ms/20ms"]).failed_saying(&["is refused to each of 2 groups"]);
    assert!(group(&clocks[0])["reservation"].is_null() && group(&clocks[1])["reservation"].is_null());
    server.ask(&["reserve", "--group", &name, "auto"]).failed_saying(&["one client at a time"]);
    server.ask(&["reserve", "--group", "nobody", "3ms/10ms"]).failed_saying(&["is in a group nobody", "xqos list"]);
}

#[test]
fn a_soft_reservation_may_follow_the_papers_rule() {
    let server = Server::served(&[]);
    server.fix_blocking();
    let clock = server.client(XCLOCK);
    let pid = clock.pid().to_string();
    let soft = || server.entry(clock.pid()).unwrap()["reservation"]["soft"].clone();
    let told = server.ask(&["reserve", "--pid", &pid, "2ms/8ms", "--soft=paper"]).with(0);
    assert!(told.out.starts_with("reserved 2 ms / 8 ms soft=paper for xclock"), "{}", told.out);
    assert_eq!(soft(), "paper");
    assert!(server.ask(&["list"]).with(0).out.contains("2/8 ms soft=paper"));
    let told = server.ask(&["reserve", "--pid", &pid, "3ms/8ms", "--soft=best-effort"]).with(0);
    assert!(told.out.contains(", was 2 ms / 8 ms soft=paper; undo: xqos reserve --client"), "{}", told.out);
    assert_eq!(soft(), "best-effort");
    undo(&server, told.out.lines().next().unwrap());
    assert_eq!(soft(), "paper");
    let paper = ["run", "--reserve", "1ms/8ms", "--soft=paper", "--", "xclock"];
    let mut run = Running::start(server.xqos(&paper).stderr(Stdio::piped()));
    let mut said = String::new();
    BufReader::new(run.err()).read_line(&mut said).unwrap();
    assert!(said.contains("reserved 1 ms / 8 ms soft=paper for xclock"), "{said}");
    assert!(server.clients().iter().any(|client| client["reservation"]["budget_ms"] == 1.0));
    run.signal("TERM");
    run.ended().with(128 + 15);
    server.ask(&["reserve", "--pid", &pid, "2ms/8ms", "--soft=paper", "--hard"]).with(2);
    server.ask(&["reserve", "--pid", &pid, "2ms/8ms", "--soft=none"]).with(2);
}

#[test]
fn a_missing_client_is_reported() {
    let server = Server::served(&[]);
    let _clock = server.client(XCLOCK);
    for (selector, id, words) in [
        ("--pid", "1", "process 1 has no connection"),
        ("--class", "no-such-class", "no window"),
        ("--window", "0x7fffffff", "there is no window"),
        ("--client", "0x7fffffff", "no client"),
        ("--client", "0x1", "belongs to the X server itself"),
    ] {
        server.ask(&["reserve", selector, id, "3ms/10ms"]).failed_saying(&[words]);
        server.ask(&["release", selector, id]).failed_saying(&[words]);
        server.ask(&["weight", selector, id, "2"]).failed_saying(&[words]);
    }
    let pid = _clock.pid().to_string();
    let nothing = server.ask(&["release", "--pid", &pid]).with(0).out;
    assert!(nothing.contains("nothing to release: xclock"), "nothing to do is no failure: {nothing}");
    server.ask(&["reserve", "--pid", &pid, "1us/10ms"]).failed_saying(&["shortest budget"]);
    server.ask(&["reserve", "--pid", &pid, "3ms/4000s"]).failed_saying(&["takes periods from"]);
}

#[test]
fn a_window_is_picked_with_the_pointer_or_cancelled() {
    let server = Server::served(&[]);
    let clock = server.client(&["xclock", "-update", "1", "-geometry", "200x200+0+0"]);
    let client = server.entry(clock.pid()).unwrap()["client"].as_str().unwrap().to_owned();
    let (connection, screen) = x11rb::connect(Some(&server.display)).unwrap();
    let root = connection.setup().roots[screen].root;
    let fake = |event: u8, detail: u8, (x, y): (i16, i16)| {
        connection.xtest_fake_input(event, detail, 0, root, x, y, 0).unwrap();
        connection.flush().unwrap();
    };
    let pick = || {
        let mut picking = server.xqos(&["reserve", "--pick", "3ms/10ms"]);
        let mut child = picking.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("click on a window"), "{line}");
        child
    };
    let click = |button: u8, at: (i16, i16)| {
        fake(6, 0, at);
        fake(BUTTON_PRESS_EVENT, button, (0, 0));
        fake(BUTTON_RELEASE_EVENT, button, (0, 0));
    };
    wait_until_mapped(&server);
    let picking = pick();
    click(1, (100, 100));
    let told = Ended::from(picking.wait_with_output().unwrap()).with(0);
    assert!(told.out.contains(&format!("pid {}", clock.pid())), "{told:#?}");
    assert_eq!(reservation(&server.entry(clock.pid()).unwrap()), Some((3.0, 10.0, false)));
    server.ask(&["release", "--all"]).with(0);

    frame(&connection, root, window_of(&connection, root, &client));
    let picking = pick();
    click(1, (290, 5));
    let told = Ended::from(picking.wait_with_output().unwrap()).with(0);
    assert!(told.out.contains("reserved 3 ms / 10 ms for xclock"), "not for the frame's client: {told:#?}");
    server.ask(&["release", "--all"]).with(0);

    let cancelled = pick();
    click(3, (100, 100));
    assert_eq!(Ended::from(cancelled.wait_with_output().unwrap()).with(1).out, "");
    let cancelled = pick();
    // Keycode 9 is Escape in evdev's numbering, which Xvfb uses.
    fake(KEY_PRESS_EVENT, 9, (0, 0));
    fake(KEY_RELEASE_EVENT, 9, (0, 0));
    assert_eq!(Ended::from(cancelled.wait_with_output().unwrap()).with(1).out, "");
    let background = pick();
    click(1, (600, 400));
    assert_eq!(Ended::from(background.wait_with_output().unwrap()).with(1).out, "");
    assert_eq!(reservation(&server.entry(clock.pid()).unwrap()), None);
}

/// Puts the window into a frame of another client, as a window manager does.
fn frame(connection: &RustConnection, root: u32, window: u32) {
    let frame = connection.generate_id().unwrap();
    let (depth, class) = (x11rb::COPY_FROM_PARENT as u8, WindowClass::INPUT_OUTPUT);
    let plain = CreateWindowAux::new();
    connection.create_window(depth, frame, root, 0, 0, 300, 300, 0, class, x11rb::COPY_FROM_PARENT, &plain).unwrap();
    let state = connection.intern_atom(false, b"WM_STATE").unwrap().reply().unwrap().atom;
    connection.change_property32(PropMode::REPLACE, window, state, state, &[1, 0]).unwrap();
    connection.reparent_window(window, frame, 0, 20).unwrap();
    connection.map_window(frame).unwrap().check().unwrap();
}

#[test]
fn a_refused_reservation_is_explained_with_numbers() {
    let server = Server::served(&[]);
    server.ask(&["policy", "--blocking", "2ms"]).with(0);
    let (one, two) = (server.client(XCLOCK), server.client(XCLOCK));
    server.ask(&["reserve", "--pid", &one.pid().to_string(), "5ms/10ms"]).with(0);
    let pid = two.pid().to_string();
    server.ask(&["reserve", "--pid", &pid, "3ms/10ms"]).failed_saying(&[
        "0.80 reserved + blocking 2 ms / 10 ms = 1.00 > 0.90",
        "3 ms / 10 ms is refused to xclock",
        "xqos policy --max-utilization",
    ]);
    assert_eq!(reservation(&server.entry(two.pid()).unwrap()), None, "nothing has changed");
    server.ask(&["reserve", "--pid", &pid, "1ms/10ms"]).with(0);

    // If the reservation is refused, the program runs without one; with --strict, it does not run.
    let program = "trap 'kill $!; exit 4' TERM; xclock & wait";
    let mut running = run(&server, &["--reserve", "5ms/10ms", "--", "sh", "-c", program]);
    let refusal = Lines::of(running.err()).wait_for_words("runs without a reservation");
    assert!(refusal.contains("reserved + blocking 2 ms / 10 ms"), "{refusal}");
    running.signal("TERM");
    running.ended().with(4);
    let told = server.ask(&["run", "--strict", "--reserve", "5ms/10ms", "--", "sh", "-c", "echo it runs"]);
    told.failed_saying(&["was not started", "reserved + blocking 2 ms / 10 ms"]);
    server.ask(&["release", "--all"]).with(0);
    let told = server.ask(&["run", "--strict", "--reserve", "5ms/10ms", "--", "sh", "-c", "xclock & xclock & wait"]);
    let told = told.with(1);
    assert!(told.err.contains("sh was ended: 5 ms / 10 ms is refused to xclock"), "the second clock is: {told:#?}");
    assert_eq!(server.clients().len(), 2, "both clocks of sh have ended");
}

#[test]
fn weights_and_priorities_are_set_and_undone() {
    let server = Server::served(&[]);
    let clock = server.client(XCLOCK);
    let pid = clock.pid().to_string();
    let told = server.ask(&["weight", "--pid", &pid, "2.5"]).with(0);
    assert_eq!(server.entry(clock.pid()).unwrap()["weight"], 2.5);
    assert_eq!(told.err, "");
    undo(&server, &told.out);
    assert_eq!(server.entry(clock.pid()).unwrap()["weight"], 1.0);
    let told = server.ask(&["priority", "--pid", &pid, "-7"]).with(0);
    assert!(told.err.contains("policy fixed only"), "a note says that the policy differs: {}", told.err);
    assert_eq!(server.entry(clock.pid()).unwrap()["fixed_priority"], -7);
    undo(&server, &told.out);
    assert_eq!(server.entry(clock.pid()).unwrap()["fixed_priority"], 0);
}

#[test]
fn the_policy_is_set_and_undone() {
    let server = Server::served(&[]);
    let before = server.json(&["policy", "--json"]);
    assert_eq!(before["policy"], "fair");
    let told = server.ask(&["policy", "smart", "--slice", "2ms", "--blocking", "1ms", "--max-utilization", "0.7"]);
    let after = server.json(&["policy", "--json"]);
    assert_eq!((&after["policy"], &after["slice_ms"]), (&"smart".into(), &2.0.into()));
    assert_eq!((&after["blocking_configured_ms"], &after["max_utilization"]), (&1.0.into(), &0.7.into()));
    undo(&server, &told.with(0).out);
    let mut back = server.json(&["policy", "--json"]);
    back["blocking_observed_ms"] = before["blocking_observed_ms"].clone();
    assert_eq!(back, before);
    let clock = server.client(XCLOCK);
    server.ask(&["reserve", "--pid", &clock.pid().to_string(), "3ms/10ms"]).with(0);
    server.ask(&["policy", "--max-utilization", "0.2"]).failed_saying(&["0.3 is already reserved"]);
}

#[test]
fn run_reserves_through_wrappers_and_passes_the_exit_status_on() {
    let server = Server::served(&[]);
    let script = "env nice -n 0 sh -c 'xclock -update 1; true'";
    let wish = ["--reserve", "3ms/10ms", "--hard", "--weight", "2", "--", "sh", "-c", script];
    let running = run(&server, &wish);
    let entry = eventually("the clock has a reservation", || {
        server.entry_called("xclock").filter(|entry| reservation(entry).is_some())
    });
    assert_eq!(reservation(&entry), Some((3.0, 10.0, true)));
    eventually("the clock has its weight", || server.entry_called("xclock").filter(|entry| entry["weight"] == 2.0));
    kill(entry["pid"].as_i64().unwrap() as i32, "TERM");
    let told = running.ended().with(0);
    assert!(told.err.contains("xqos: reserved 3 ms / 10 ms hard for xclock (pid "), "{told:#?}");

    let told = server.ask(&["run", "--quiet", "--reserve", "3ms/10ms", "--", "sh", "-c", "xset q >/dev/null; exit 7"]);
    assert_eq!(told.with(7).err, "", "--quiet says nothing when all goes well");
    server.ask(&["run", "--weight", "2", "--", "sh", "-c", "kill -KILL $$"]).with(137);
    server.ask(&["run", "--reserve", "1us/10ms", "--", "true"]).failed_saying(&["shortest budget"]);
    server.ask(&["run", "--weight", "2", "--", "/no/such/program"]).failed_saying(&["cannot start /no/such/program"]);
}

#[test]
fn a_child_of_the_program_does_not_inherit() {
    let server = Server::served(&[]);
    let mut running = run(&server, &["--reserve", "3ms/10ms", "--", "xterm", "-e", "sh -c 'xclock -update 1; true'"]);
    let clock = eventually("the clock is connected", || server.entry_called("xclock"));
    let terminal = eventually("the terminal has a reservation", || {
        server.entry_called("xterm").filter(|entry| reservation(entry).is_some())
    });
    let words = format!("no settings for pid {}: it was started by pid {}", clock["pid"], terminal["pid"]);
    Lines::of(running.err()).wait_for_words(&words);
    assert_eq!(reservation(&server.entry_called("xclock").unwrap()), None);
    kill(clock["pid"].as_i64().unwrap() as i32, "TERM");
    running.ended().with(0);
}

#[test]
fn a_program_that_forks_and_exits_keeps_its_reservation() {
    let server = Server::served(&[]);
    let mut running = run(&server, &["--reserve", "3ms/10ms", "--", "sh", "-c", "(sleep 0.3; exec xclock) & exit 3"]);
    let clock = eventually("the clock has a reservation", || {
        server.entry_called("xclock").filter(|entry| reservation(entry).is_some())
    });
    assert!(running.is_running(), "it waits for the clock, which has a reservation");
    kill(clock["pid"].as_i64().unwrap() as i32, "TERM");
    running.ended().with(3);
}

#[test]
fn signals_are_passed_on_to_the_program() {
    let server = Server::served(&[]);
    for (signal, status) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        if is_ignored(signal, status - 128) {
            continue;
        }
        let running = run(&server, &["--reserve", "3ms/10ms", "--", "xclock"]);
        let clock = eventually("the clock is connected", || server.entry_called("xclock"));
        running.signal(signal);
        running.ended().with(status);
        eventually("the clock has ended", || {
            server.entry(clock["pid"].as_i64().unwrap() as i32).is_none().then_some(())
        });
    }
}

#[test]
fn a_program_without_a_connection_is_reported() {
    let server = Server::served(&[]);
    let told = server.ask(&["run", "--reserve", "3ms/10ms", "--", "true"]).with(0);
    assert!(told.err.contains("made no X connection of its own") && told.err.contains("--pick"), "{}", told.err);
}

#[test]
fn waiting_for_a_program_sends_no_requests() {
    let server = Server::served(&[]);
    let running = run(&server, &["--reserve", "3ms/10ms", "--", "xclock"]);
    eventually("the clock has a reservation", || {
        server.entry_called("xclock").filter(|entry| reservation(entry).is_some())
    });
    let requests = || server.entry(running.pid()).expect("xqos run is connected")["requests"].clone();
    // The program may still be sending requests about the clock.
    eventually("half a second passes without a request", || {
        let before = requests();
        sleep(Duration::from_millis(500)); // time: no request is sent meanwhile
        (requests() == before).then_some(())
    });
}

#[test]
fn run_waits_for_the_program_after_the_server_has_gone() {
    let server = Server::served(&[]);
    let running = run(&server, &["--reserve", "3ms/10ms", "--", "sh", "-c", "xclock & sleep 2; exit 6"]);
    eventually("the clock has a reservation", || {
        server.entry_called("xclock").filter(|entry| reservation(entry).is_some())
    });
    server.process.signal("TERM");
    let told = running.ended().with(6);
    assert!(told.err.contains("the X server has gone"), "{told:#?}");
}

#[test]
fn a_program_that_connects_while_the_server_hangs_gets_its_reservation_later() {
    /// Longer than the time limit for a reply.
    const HANGS: Duration = Duration::from_millis(10_500);
    let (server, folder) = (Server::served(&[]), Folder::new("run-hangs"));
    let starts = folder.file("starts");
    let script = format!("until [ -e {starts} ]; do sleep 0.05; done; exec xclock");
    let running = run(&server, &["--reserve", "3ms/10ms", "--", "sh", "-c", &script]);
    eventually("it watches for connections", || server.entry(running.pid()));
    // Stop `xqos run`, so that it learns of the connection only when the server hangs.
    running.signal("STOP");
    std::fs::write(&starts, "").unwrap();
    eventually("the clock is connected", || server.entry_called("xclock"));
    server.process.signal("STOP");
    running.signal("CONT");
    sleep(HANGS); // time: longer than a reply is awaited
    server.process.signal("CONT");
    eventually("the clock has a reservation", || {
        server.entry_called("xclock").filter(|entry| reservation(entry).is_some())
    });
}

/// Pids of another machine have no meaning on this one.
#[test]
fn processes_of_another_machine_are_not_looked_up() {
    let server = Server::served_with(&["-listen", "tcp", "-ac"]);
    let clock = server.client(XCLOCK);
    // The same server, reached as if it were far away.
    let far = format!("127.0.0.1{}", server.display);
    let ask = |arguments: &[&str]| server.json(&[&["--display", &far], arguments].concat());
    let told = &ask(&["explain", "--json", "--pid", &clock.pid().to_string()])["clients"][0]["facts"];
    assert_eq!((&told["name"], &told["exe"]), (&"xclock".into(), &serde_json::Value::Null), "{told:#}");
    let told = ask(&["doctor", "--json"]);
    assert_eq!((&told["served"], &told["pid"]), (&true.into(), &serde_json::Value::Null), "{told:#}");
    let mut top = server.xqos(&["--display", &far, "top", "--json", "--interval", "100ms"]);
    let mut top = Running::start(top.stdout(Stdio::piped()));
    // The first sample has nothing to compare with.
    let line = BufReader::new(top.out()).lines().nth(1).unwrap().unwrap();
    let told: serde_json::Value = serde_json::from_str(&line).unwrap();
    let told = told["clients"].as_array().unwrap().iter().find(|client| client["program"] == "xclock").unwrap();
    assert_eq!(told["process_share"], serde_json::Value::Null, "{told:#}");
}
