// SPDX-License-Identifier: MIT
//! Provokes stutters, and checks the reasons that `xqos why` gives for them.

use crate::boost::is_real_time_refused;
use crate::fixture::{Folder, Running, Server, ended, eventually, xqos};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, CoordMode, CreateGCAux, Point};
use x11rb::rust_connection::RustConnection;

/// A running `xqos why` that reports when it gets SIGUSR1.
struct Why {
    process: Running,
    said: BufReader<Box<dyn Read>>,
}

impl Why {
    fn start(server: &Server, folder: &Folder, options: &[&str]) -> Why {
        let mut why = Why::spawn(server, folder, &[&["--no-kernel"], options].concat());
        assert!(why.line().contains("makes a folder; ^C ends"), "the first line says what happens");
        why
    }

    /// Starts `xqos why` so that it also records the kernel. The second value is true if this user may record it.
    fn with_kernel(server: &Server, folder: &Folder, options: &[&str]) -> (Why, bool) {
        let mut why = Why::spawn(server, folder, options);
        let is_refused = !why.line().contains("makes a folder; ^C ends");
        assert!(!is_refused || why.line().contains("makes a folder; ^C ends"), "one line says why not");
        (why, !is_refused)
    }

    fn spawn(server: &Server, folder: &Folder, options: &[&str]) -> Why {
        let output = folder.path.to_string_lossy().into_owned();
        let mut command = server.xqos(&["why", "--history", "2s", "--keep", "2", "--output", &output]);
        let mut process = Running::start(command.args(options).stdout(Stdio::null()).stderr(Stdio::piped()));
        Why { said: BufReader::new(Box::new(process.err())), process }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line
    }

    /// The explanation of the last seconds, on one line.
    fn explain(&mut self) -> String {
        self.process.signal("USR1");
        self.next()
    }

    /// The next explanation.
    fn next(&mut self) -> String {
        let line = self.line();
        let folder = line.strip_prefix("xqos: ").and_then(|line| line.split(" has the").next()).unwrap_or_default();
        let text = fs::read_to_string(format!("{folder}/why.txt")).unwrap_or_else(|error| panic!("{line}: {error}"));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn connect(server: &Server) -> RustConnection {
    x11rb::connect(Some(&server.display)).unwrap().0
}

fn round_trip(connection: &RustConnection) {
    connection.get_input_focus().unwrap().reply().unwrap();
}

/// The reason on a busy machine, where the server has no processor for most of a stutter.
const STARVED: &str = "The reason is the processor";

/// Repeats a stutter until the report gives one of these reasons and has all of these words.
fn until_named(why: &mut Why, reasons: &[&str], words: &[&str], mut stutter: impl FnMut()) {
    eventually(&format!("{reasons:?} is named, with {words:?}"), || {
        stutter();
        let said = why.explain();
        let has = |part: &&str| said.contains(part);
        (reasons.iter().any(has) && words.iter().all(has)).then_some(())
    });
}

/// Lets a client wait for a reply while another one holds a server grab.
fn wait_behind_grab(holder: &RustConnection, other: &RustConnection) {
    holder.grab_server().unwrap();
    round_trip(holder);
    let focus = other.get_input_focus().unwrap();
    other.flush().unwrap();
    sleep(Duration::from_millis(300)); // time: the length of the wait
    holder.ungrab_server().unwrap();
    round_trip(holder);
    focus.reply().unwrap();
}

#[test]
fn a_server_grab_is_explained_with_its_holder() {
    let (folder, server) = (Folder::new("why-grab"), Server::served(&[]));
    let (holder, other) = (connect(&server), connect(&server));
    let mut why = Why::start(&server, &folder, &["--limit", "10ms", "--every", "1h"]);
    let kill = format!("kill {}", std::process::id());
    until_named(&mut why, &["The reason is a server grab"], &["held it for", "What to do", &kill], || {
        wait_behind_grab(&holder, &other);
    });
}

#[test]
fn a_long_request_is_explained_with_its_name() {
    let (folder, server) = (Folder::new("why-long"), Server::served(&[]));
    let (busy, other) = (connect(&server), connect(&server));
    let screen = &busy.setup().roots[0];
    let [pixmap, context] = [(); 2].map(|()| busy.generate_id().unwrap());
    busy.create_pixmap(screen.root_depth, pixmap, screen.root, 1000, 700).unwrap();
    busy.create_gc(context, pixmap, &CreateGCAux::new().line_width(40)).unwrap();
    // One figure, which is never cut.
    let points: Vec<Point> = (0..30_000).map(|at| Point { x: at % 2 * 999, y: at % 700 }).collect();
    let mut why = Why::start(&server, &folder, &["--limit", "10ms", "--every", "1h"]);
    until_named(&mut why, &["one long request: PolyLine of", STARVED], &["PolyLine"], || {
        busy.poly_line(CoordMode::ORIGIN, pixmap, context, &points).unwrap();
        busy.flush().unwrap();
        // The server has begun the request, and will need far more than the limit for it.
        sleep(Duration::from_millis(5));
        round_trip(&other);
        round_trip(&busy);
    });
    // Wait until `xqos why` exits, because a folder that it makes after a long wait may still be incomplete.
    why.process.signal("INT");
    why.process.ended().with(0);
    assert!(fs::read_dir(&folder.path).unwrap().count() <= 2, "--keep limits the folders");
    let made = fs::read_dir(&folder.path).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    assert!(fs::read(made.join("why.html")).unwrap().starts_with(b"<!doctype html>"));
    let trace = made.join("why.trace").to_string_lossy().into_owned();
    ended(xqos().args(["replay", "--check", &trace])).with(0);
    let again = ended(xqos().args(["why", "--limit", "10ms", &trace])).with(0).out;
    assert!(again.contains(" waited ") && again.contains("PolyLine"), "{again}");
}

#[test]
fn twelve_busy_clients_delay_a_light_client_under_policy_stock() {
    let (folder, server) = (Folder::new("why-busy"), Server::served(&["--policy", "stock"]));
    let light = connect(&server);
    let busy = || server.client(&["x11perf", "-copypixpix500", "-reps", "100", "-repeat", "100000"]);
    let _busy: Vec<Running> = (0..12).map(|_| busy()).collect();
    let mut why = Why::start(&server, &folder, &["--limit", "10ms", "--every", "1h"]);
    until_named(&mut why, &["The reason is many requests", STARVED], &["x11perf ("], || {
        for _ in 0..10 {
            round_trip(&light);
            sleep(Duration::from_millis(10));
        }
    });
}

/// Lets a server run only on one processor, and returns its number.
fn pin(server: &Server) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let first = allowed.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().to_owned();
    ended(Command::new("taskset").args(["-a", "-c", "-p", &first, &server.process.pid().to_string()])).with(0);
    first
}

/// A program with real-time priority that takes a processor for half a second. Its own limit ends it even if it takes
/// the only processor and the kernel does not interrupt real-time programs.
fn hog(processor: &str) -> Running {
    const LOOP: &str = "ulimit -t 2; while :; do :; done";
    let words = ["0.5", "taskset", "-c", processor, "chrt", "--fifo", "50", "sh", "-c", LOOP];
    Running::start(Command::new("timeout").args(words))
}

#[test]
fn a_real_time_program_on_the_servers_processor_is_explained_with_its_priority() {
    if is_real_time_refused() {
        return;
    }
    let (folder, server) = (Folder::new("why-hog"), Server::served(&[]));
    let light = connect(&server);
    let processor = pin(&server);
    let (mut why, is_named) = Why::with_kernel(&server, &folder, &["--limit", "10ms", "--every", "1h"]);
    if !is_named {
        xqos_testkit::left_out("the kernel cannot be traced here, so that the program is not named");
    }
    let named = ["It ran sh (", "which has real-time priority 50,", "What to do", "sudo chrt --other --pid 0 "];
    let words = if is_named { &named[..] } else { &["What to do", "sudo xqos why"] };
    until_named(&mut why, &[STARVED], words, || {
        let hog = hog(&processor);
        sleep(Duration::from_millis(100)); // time: the program uses the processor meanwhile
        round_trip(&light);
        hog.ended();
    });
}

#[test]
fn a_long_wait_makes_a_folder_without_a_request() {
    let (folder, server) = (Folder::new("why-itself"), Server::served(&[]));
    let (holder, other) = (connect(&server), connect(&server));
    let mut why = Why::start(&server, &folder, &["--limit", "100ms", "--every", "1s"]);
    // A server without a processor may notice a request too late.
    eventually("a wait makes a folder", || {
        wait_behind_grab(&holder, &other);
        fs::read_dir(&folder.path).unwrap().next().map(drop)
    });
    assert!(why.next().contains(" waited "));
}

#[test]
fn a_server_that_hangs_is_explained_immediately_and_does_not_end_the_recording() {
    let (folder, server) = (Folder::new("why-hangs"), Server::served(&[]));
    let mut why = Why::start(&server, &folder, &[]);
    server.process.signal("STOP");
    sleep(Duration::from_millis(1500)); // time: the recording asks for a new segment, after half of its history
    let asked = Instant::now();
    why.explain();
    let took = asked.elapsed();
    server.process.signal("CONT");
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(why.explain().contains("server"), "the recording continues");
}

#[test]
fn a_quiet_server_is_reported_after_the_given_time_and_misuse_in_one_line() {
    let (folder, server) = (Folder::new("why-quiet"), Server::served(&[]));
    let output = folder.file("made/for-it");
    let quiet = server.ask(&["why", "--time", "300ms", "--limit", "10s", "--output", &output]).with(0);
    assert!(quiet.out.starts_with("No client waited "), "{quiet:#?}");
    assert_eq!(fs::read_dir(&output).unwrap().count(), 1);
    server.ask(&["why", "--output", "/dev/null/why"]).failed_saying(&["/dev/null/why", "--output"]);
    server.ask(&["why", "/nowhere.trace"]).failed_saying(&["/nowhere.trace"]);
    for arguments in [&["why", "--keep", "0"][..], &["why", "--time", "1s", "a.trace"], &["why", "--limit", "5"]] {
        server.ask(arguments).with(2);
    }
    Server::stock().ask(&["why", "--time", "1s"]).failed_saying(&["runs without xqos"]);
}
