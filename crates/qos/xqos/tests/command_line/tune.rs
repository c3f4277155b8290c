// SPDX-License-Identifier: MIT
//! Measured reservations: `suggest` on a simulated trace, `run` and `reserve` with auto on a real server.

use crate::fixture::{Folder, Running, Server, ended, eventually, kill, xqos};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, CreateGCAux, GX, Rectangle};
use xqos_abi::trace::Entry;
use xqos_core::{ClientId, Parameters, PolicyKind, Role, Time};
use xqos_sim::server::{Rules, serve};
use xqos_sim::workload::{Plan, RequestBurst, RequestRun, Workload};
use xqos_sys::Attributes;
use xqos_trace::file::{Header, TraceWriter};

const MS: u64 = 1_000_000;
/// Long enough that a delay of several milliseconds on a busy machine is only a few percent of a frame.
const FRAME: Duration = Duration::from_millis(200);
/// If this variable is set, the test program plays a film on DISPLAY instead of testing.
const FILM: &str = "XQOS_TEST_FILM";

fn plan(id: u16, name: &[u8], bursts: impl Iterator<Item = (u64, u64)>) -> Plan {
    let client = ClientId(id);
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name);
    let identity = vec![
        Entry::Identity { client, pid: 100 + u32::from(id), base: u32::from(id) << 21, uid: 0 },
        Entry::Name { client, part: 0, bytes },
    ];
    let run = |request_ns| RequestRun { requests: 1, request_ns, request: 72, bytes: 40 };
    let burst = |(after_ns, ns)| RequestBurst { after_ns, inputs: 0, runs: vec![run(ns)] };
    Plan { id: client, identity, sync_priority: 0, role: Role::default(), bursts: bursts.map(burst).collect() }
}

/// A trace of ten seconds: a film of 25 frames per second, a clock, and typing.
fn trace(path: &Path) {
    let film = (0..240).map(|_| (38 * MS, 2 * MS));
    let clock = (0..50).map(|_| (200 * MS, MS / 2));
    let typing = [90, 210, 130, 170, 60, 340, 150, 110].iter().cycle().take(60).map(|ms| (ms * MS, 3 * MS));
    let plans = vec![plan(1, b"film", film), plan(2, b"clock", clock), plan(3, b"editor", typing)];
    let workload = Workload { began: Time(1_000 * MS), ended: Time(10_000 * MS), plans };
    let (policy, parameters) = (PolicyKind::Fair, Parameters::default());
    let rules = Rules { policy, parameters, reservations: Default::default(), watches: true, part_ns: 0 };
    let mut writer = TraceWriter::new(File::create(path).unwrap(), &Header::default()).unwrap();
    serve(&workload, &rules, |event| writer.add(event.encode()).unwrap()).unwrap();
    writer.flush().unwrap();
}

#[test]
fn suggest_finds_what_to_reserve_and_prints_the_rule() {
    let folder = Folder::new("suggest");
    let file = folder.file("desk.trace");
    trace(Path::new(&file));
    let told = ended(xqos().args(["suggest", &file])).with(0).out;
    let rule = "version = 1\n\n[[rule]]\nid = \"film\"\nmatch = { name = \"film\" }\nset = { reserve = \"auto\" }";
    assert!(told.contains(rule), "{told}");
    assert_eq!(told.matches("[[rule]]").count(), 1, "{told}");
    let json: Value = serde_json::from_str(&ended(xqos().args(["suggest", "--json", &file])).with(0).out).unwrap();
    let of = |program: &str| {
        let clients = json["clients"].as_array().unwrap();
        clients.iter().find(|client| client["program"] == program).unwrap_or_else(|| panic!("{program}: {json:#}"))
    };
    assert_eq!(of("film")["reserve"]["typed"], "2.24ms/40.08ms", "{json:#}");
    assert_eq!((&of("film")["found"], &of("film")["kind"]), (&"periodic".into(), &"clock".into()), "{json:#}");
    assert_eq!((&of("clock")["found"], &of("clock")["reserve"]), (&"light".into(), &Value::Null), "{json:#}");
    assert_eq!((&of("editor")["found"], &of("editor")["reserve"]), (&"aperiodic".into(), &Value::Null), "{json:#}");
}

#[test]
fn an_unusable_trace_is_reported_in_one_line() {
    let folder = Folder::new("suggest-bad");
    let (missing, strange, empty) = (folder.file("missing"), folder.file("strange"), folder.file("empty.trace"));
    std::fs::write(&strange, "no trace at all").unwrap();
    TraceWriter::new(File::create(&empty).unwrap(), &Header::default()).unwrap();
    ended(xqos().args(["suggest", &missing])).failed_saying(&[&missing, "cannot read"]);
    ended(xqos().args(["suggest", &strange])).failed_saying(&[&strange, "not a trace of xqos"]);
    ended(xqos().args(["suggest", &empty])).failed_saying(&[&empty, "no client had work", "record while"]);
}

#[test]
fn auto_refuses_hard_and_strict() {
    let server = Server::served(&[]);
    server.ask(&["reserve", "--pid", "1", "auto", "--hard"]).failed_saying(&["auto makes soft reservations only"]);
    server
        .ask(&["run", "--reserve", "auto", "--hard", "--", "true"])
        .failed_saying(&["auto makes soft reservations only"]);
    server.ask(&["run", "--reserve", "auto", "--strict", "--", "true"]).failed_saying(&["leave out --strict"]);
}

/// Processor time of this thread, which excludes time that other processes use.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Draws five times a second while `goes_on` holds, using a few percent of the server. A frame is one small write,
/// because a busy machine would split a frame of many requests.
fn play(display: &str, goes_on: impl Fn() -> bool) {
    // Use real-time priority if allowed, so that a busy machine does not disturb the rhythm.
    let _ = Attributes::real_time(1).give(0);
    let (connection, screen) = x11rb::connect(Some(display)).unwrap();
    let root = connection.setup().roots[screen].root;
    let context = connection.generate_id().unwrap();
    connection.create_gc(context, root, &CreateGCAux::new().function(GX::XOR).foreground(0x00ff_00ff)).unwrap();
    let all = Rectangle { x: 0, y: 0, width: 1000, height: 750 };
    let mut next = Instant::now();
    while goes_on() {
        connection.poly_fill_rectangle(root, context, &[all; 10]).unwrap();
        connection.get_input_focus().unwrap().reply().unwrap();
        while next <= Instant::now() {
            next += FRAME;
        }
        thread::sleep(next - Instant::now());
    }
}

/// Uses the processor for 10 ms of each frame, at the default priority.
fn decode() {
    let work = Duration::from_millis(10);
    loop {
        let began = processor_time();
        while processor_time() - began < work {}
        thread::sleep(FRAME - work);
    }
}

/// The film as a separate program, which exits on SIGTERM.
#[test]
fn plays_a_film_if_requested() {
    if std::env::var_os(FILM).is_some() {
        thread::spawn(decode);
        play(&std::env::var("DISPLAY").unwrap(), || true);
    }
}

/// A film that this process plays on a separate connection.
struct Film {
    goes_on: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Film {
    fn start(server: &Server) -> Film {
        let goes_on = Arc::new(AtomicBool::new(true));
        let (display, flag) = (server.display.clone(), goes_on.clone());
        let thread = thread::spawn(move || play(&display, || flag.load(Relaxed)));
        let film = Film { goes_on, thread: Some(thread) };
        eventually("the film is connected", || server.entry(pid()));
        film
    }
}

impl Drop for Film {
    fn drop(&mut self) {
        self.goes_on.store(false, Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn pid() -> i32 {
    std::process::id() as i32
}

/// The period of a process's reservation, in ms.
fn period(server: &Server, pid: i32) -> Option<f64> {
    server.entry(pid)?["reservation"]["period_ms"].as_f64()
}

fn auto(server: &Server) -> Running {
    let pid = pid().to_string();
    Running::start(server.xqos(&["reserve", "--pid", &pid, "auto"]).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

#[test]
fn a_running_film_has_its_reservation_until_auto_ends() {
    let server = Server::served(&[]);
    let _film = Film::start(&server);
    let auto = auto(&server);
    let found = eventually("the film has a reservation", || period(&server, pid()));
    assert!((150.0..=250.0).contains(&found), "{found}");
    assert_eq!(server.entry(pid()).unwrap()["reservation"]["hard"], false);
    auto.signal("INT");
    let told = auto.ended().with(0);
    assert!(told.out.contains("reserved") && told.err.contains("watching"), "{told:#?}");
    assert_eq!(period(&server, pid()), None, "auto clears its reservation");
}

#[test]
fn auto_continues_after_the_server_hangs() {
    /// Longer than the interval of auto's queries and its time limit for a reply together.
    const HANGS: Duration = Duration::from_millis(13_000);
    let server = Server::served(&[]);
    let _film = Film::start(&server);
    let mut auto = auto(&server);
    eventually("the film has a reservation", || period(&server, pid()));
    server.process.signal("STOP");
    thread::sleep(HANGS); // time: longer than a reply is awaited
    server.process.signal("CONT");
    assert!(auto.is_running());
    eventually("the film has a reservation again", || period(&server, pid()));
    auto.signal("INT");
    let told = auto.ended().with(0);
    assert!(!told.out.contains("by another program"), "{told:#?}");
}

#[test]
fn a_manual_change_ends_auto() {
    let server = Server::served(&[]);
    server.fix_blocking();
    let _film = Film::start(&server);
    let me = pid().to_string();
    for (by_hand, after, word) in [
        (&["reserve", "--pid", &me, "3ms/20ms"][..], Some(20.0), "set to 3 ms / 20 ms by another program"),
        (&["release", "--pid", &me], None, "released by another program"),
    ] {
        let auto = auto(&server);
        eventually("the film has a reservation", || period(&server, pid()));
        server.ask(by_hand).with(0);
        let told = auto.ended().with(0);
        assert!(told.out.contains(word), "{told:#?}");
        assert_eq!(period(&server, pid()), after);
        server.ask(&["release", "--all"]).with(0);
    }
    server.ask(&["reserve", "--pid", &me, "3ms/20ms"]).with(0);
    server.ask(&["reserve", "--pid", &me, "auto"]).failed_saying(&["has a reservation", "xqos release --client"]);
}

#[test]
fn auto_exits_with_its_client() {
    let server = Server::served(&[]);
    let film = Film::start(&server);
    let auto = auto(&server);
    eventually("the film has a reservation", || period(&server, pid()));
    drop(film);
    auto.ended().with(0);
    assert_eq!(server.clients().len(), 0);
}

/// The command line of the film as a separate program.
fn film() -> [String; 4] {
    let program = std::env::current_exe().unwrap();
    ["env", &format!("{FILM}=1"), &program.to_string_lossy(), "plays_a_film_if_requested"].map(str::to_owned)
}

/// Budget and period in ns of the processor time that a thread of the process has reserved.
fn of_processors(pid: i32) -> Option<(u64, u64)> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let mut threads = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    threads.find_map(|thread| Attributes::of(thread).ok()?.reservation())
}

#[test]
fn a_program_gets_measured_processor_time_and_loses_it_with_xqos() {
    if std::thread::spawn(|| Attributes::real_time(1).give(0).is_err()).join().unwrap() {
        return xqos_testkit::left_out("this user may not reserve processor time");
    }
    let server = Server::served(&[]);
    for signal in ["TERM", "KILL"] {
        let mut command = server.xqos(&["run", "--reserve", "auto", "--cpu", "auto", "--"]);
        let run = Running::start(command.args(film()).stdout(Stdio::null()).stderr(Stdio::piped()));
        let entry = eventually("the film has a reservation", || {
            server.clients().into_iter().find(|client| !client["reservation"].is_null())
        });
        let pid = entry["pid"].as_i64().unwrap() as i32;
        let (budget, period) = eventually("a processor is reserved, too", || of_processors(pid));
        assert!(
            (150 * MS..=250 * MS).contains(&period) && (5 * MS..=100 * MS).contains(&budget),
            "{budget} / {period}"
        );
        run.signal(signal);
        match signal {
            "KILL" => eventually("the guard has restored the thread", || of_processors(pid).is_none().then_some(())),
            _ => eventually("it has ended", || server.entry(pid).is_none().then_some(())),
        }
        kill(pid, "KILL");
        run.ended();
        eventually("it has ended", || server.entry(pid).is_none().then_some(()));
    }
}

#[test]
fn cpu_auto_needs_reserve_auto_and_cap_sys_nice() {
    let server = Server::served(&[]);
    let needs = "--cpu auto takes its period from the measured reservation";
    server.ask(&["run", "--cpu", "auto", "--", "true"]).failed_saying(&[needs, "add --reserve auto"]);
    server.ask(&["reserve", "--pid", "1", "3ms/10ms", "--cpu", "auto"]).failed_saying(&[needs, "write auto instead"]);
    server
        .ask(&["reserve", "--pid", "1", "auto", "--cpu", "1ms/10ms"])
        .failed_saying(&["the word auto", "xqos run --cpu"]);
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", crate::PROGRAM, "--display", &server.display]);
    command.args(["run", "--reserve", "auto", "--cpu", "auto", "--", "true"]);
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return xqos_testkit::left_out("only root can drop a capability");
    }
    let told = ended(&mut command).with(0);
    let lines: Vec<&str> = told.err.lines().filter(|line| line.contains("no processor time is reserved")).collect();
    assert!(lines.len() == 1 && lines[0].contains("run it as root") && lines[0].contains("setcap"), "{told:#?}");
}

#[test]
fn a_started_program_gets_its_measured_reservation() {
    let server = Server::served(&[]);
    let mut command = server.xqos(&["run", "--reserve", "auto", "--"]);
    let mut run = Running::start(command.args(film()).stdout(Stdio::null()).stderr(Stdio::piped()));
    let mut said = BufReader::new(run.err()).lines().map_while(Result::ok);
    let reserved = || server.clients().into_iter().find(|client| !client["reservation"].is_null());
    let entry = eventually("the film has a reservation", reserved);
    assert!((150.0..=250.0).contains(&entry["reservation"]["period_ms"].as_f64().unwrap()), "{entry:#}");
    // On a busy machine, the first measurement may find no rhythm and say so.
    let told = said.find(|line| line.contains("xqos: reserved")).unwrap();
    assert!(told.contains("times a second"), "{told}");
    run.signal("TERM");
    run.ended().with(128 + 15);
    assert_eq!(server.clients().len(), 0);
}

#[test]
fn a_program_without_a_rhythm_gets_nothing() {
    let server = Server::served(&[]);
    let run = Running::start(server.xqos(&["run", "--reserve", "auto", "--", "xeyes"]).stderr(Stdio::piped()));
    let entry = eventually("it is connected", || server.entry_called("xeyes"));
    run.signal("TERM");
    assert!(entry["reservation"].is_null(), "{entry:#}");
    let told = run.ended().with(128 + 15).err;
    assert!(told.contains("nothing was reserved for ") && !told.contains("xqos: reserved"), "{told}");
}
