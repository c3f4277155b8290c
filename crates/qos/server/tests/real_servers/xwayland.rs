// SPDX-License-Identifier: MIT
//! Tests of Xwayland as Wayland compositors start it, through a wrapper script. The libc host serves it and must give
//! the same guarantees as for other servers. The tests use the times that xqos records in the server.

use crate::busy::{Busy, Worker, X11perf, slices_of};
use crate::decisions::{Slice, check_fairness, check_reservation};
use crate::fixture::{
    Fixture, SOON, alone, entry, in_parallel, is_left_to_root, is_missing_program, module, setup, wait_for,
};
use crate::wire::Wire;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use xqos_abi::ByteOrder;
use xqos_client::Control;
use xqos_lab::process::Owned;
use xqos_lab::server::{Compositor, ServerKind};

/// `make test` uses weston and sway. `make test-lab` sets XQOS_TEST_LAB to use all four: mutter and kwin need many
/// desktop packages, which only `scripts/setup --for lab` installs.
fn compositors() -> Vec<Compositor> {
    if is_missing_program("Xwayland") {
        return Vec::new();
    }
    let is_lab = std::env::var_os("XQOS_TEST_LAB").is_some();
    Compositor::ALL.into_iter().filter(|&one| (is_lab || !is_for_lab(one)) && !is_left_out(one)).collect()
}

fn is_for_lab(compositor: Compositor) -> bool {
    matches!(compositor, Compositor::Mutter | Compositor::Kwin)
}

fn is_left_out(compositor: Compositor) -> bool {
    let is_mutter = compositor == Compositor::Mutter;
    is_missing_program(compositor.program())
        || is_mutter && (is_missing_program("dbus-daemon") || is_left_to_root("mount a script over Xwayland"))
}

fn start(compositor: Compositor) -> (Fixture, Control) {
    let server = Fixture::start(&setup(ServerKind::Xwayland(compositor)));
    let control = server.control().unwrap();
    let info = control.server_info().unwrap();
    assert!(control.is_served_through_libc() == Some(true) && info.armed, "{compositor:?}: {}", info.reason);
    assert_eq!(info.server_pid, server.pid(), "{compositor:?}: the pid of Xwayland, not of the compositor");
    (server, control)
}

/// The shares are checked while both clients have requests waiting in their sockets. They are accurate to within one
/// slice, even if the kernel has interrupted that slice.
#[test]
fn two_busy_clients_get_half_of_xwayland_each() {
    let _turn = alone();
    for compositor in compositors() {
        let (server, _control) = start(compositor);
        let mut workers = [Worker::start(&server), Worker::start(&server)];
        workers.iter_mut().for_each(Worker::finish);
        let bases = workers.each_ref().map(Worker::base);
        let slices = slices_of(&server, &mut workers, Worker::MOST);
        check_fairness(&slices, &bases, [100, 100]);
        let shared = || slices.iter().filter(|slice| bases.iter().all(|&base| slice.was_ready(base)));
        let used_ns = |base| shared().filter(|slice| slice.client == base).map(|slice| slice.ns).sum::<u64>();
        let [first, second] = bases.map(used_ns);
        let share = first as f64 / (first + second) as f64;
        let longest_ns = shared().map(|slice| slice.ns).max().unwrap_or_default();
        let said = format!("{compositor:?}: the first of two alike has {share:.3} of their time");
        println!("{said}; the longest slice took {} ms", longest_ns / 1_000_000);
        let is_stretched = longest_ns > (first + second) / 20;
        assert!(is_stretched || (0.4..=0.6).contains(&share), "{said}");
    }
}

/// The client runs together with another busy client, and then alone. All its requests wait in the socket.
#[test]
fn a_hard_reservation_in_xwayland_gets_its_budgets_and_no_more() {
    const BUDGET_US: u32 = 3000;
    const PERIOD_US: u32 = 10_000;
    let _turn = alone();
    for compositor in compositors() {
        let (server, control) = start(compositor);
        let mut workers = [Worker::start(&server), Worker::start(&server)];
        workers.iter_mut().for_each(Worker::finish);
        let base = workers[0].base();
        control.reserve(base, BUDGET_US, PERIOD_US, true).unwrap();
        let slices = slices_of(&server, &mut workers, Worker::MOST);
        check_reservation(&slices, base);
        let (budgets, used_ns, elapsed_ns) = budgets_of(&slices, base);
        let share = used_ns as f64 / elapsed_ns as f64;
        let said = format!("{compositor:?}: {budgets} budgets of 3 ms in 10 ms are {share:.3} of the time");
        println!("{said}");
        assert!(budgets > 10 && used_ns >= budgets * u64::from(BUDGET_US) * 1000, "{said}, {used_ns} ns used");
        let most = f64::from(BUDGET_US) / f64::from(PERIOD_US) + 0.01;
        assert!(share <= most, "{said}");
    }
}

/// The number of complete budgets, the time used from them, and the elapsed time. The last budget may be unfinished and
/// is excluded.
fn budgets_of(slices: &[Slice], base: u32) -> (u64, u64, u64) {
    let of_budget = |slice: &Slice| slice.reservation(base).unwrap().deadline;
    let its: Vec<&Slice> = slices.iter().filter(|slice| slice.client == base && slice.is_reserved).collect();
    let last = its.iter().position(|slice| of_budget(slice) == of_budget(its[its.len() - 1])).unwrap();
    let deadlines: BTreeSet<_> = its[..last].iter().map(|slice| of_budget(slice)).collect();
    let used_ns = its[..last].iter().map(|slice| slice.ns).sum();
    (deadlines.len() as u64, used_ns, its[last].decided.since(its[0].decided))
}

#[test]
fn the_list_of_xwayland_names_the_processes_of_its_clients() {
    let _turn = in_parallel();
    for compositor in compositors() {
        let (server, control) = start(compositor);
        let mut wire = server.native();
        wire.sync();
        assert_eq!(entry(&control, wire.base).pid as u32, std::process::id(), "{compositor:?}");
        let perf = X11perf::start(&server, "rect10");
        assert_eq!(perf.entry_when_busy(&control).name, "x11perf", "{compositor:?}");
        let manager = server.compositor_pid().unwrap() as i32;
        let clients = control.clients().unwrap().clients;
        let found = clients.iter().find(|entry| entry.pid == manager).map(|entry| entry.name.as_str());
        assert_eq!(found, Some(compositor.program()), "its window manager: {clients:?}");
        let words = words_of(server.pid());
        let has = |option: &str| words.iter().any(|word| word.starts_with(option));
        // Older compositors use `-listen`, newer ones `-listenfd`.
        assert!(has("-listen") && has(own_connection(compositor)), "{compositor:?}: {words:?}");
    }
}

/// The option with which a compositor passes its own connection to Xwayland.
fn own_connection(compositor: Compositor) -> &'static str {
    if compositor == Compositor::Mutter { "-initfd" } else { "-wm" }
}

fn words_of(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    line.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The program uses the extension. It is the example of libxqos, which `make build` builds.
#[test]
fn a_program_reserves_for_itself_in_xwayland() {
    let _turn = in_parallel();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../libxqos/build/metronome");
    assert!(program.exists(), "not built: make -C libxqos");
    for compositor in compositors() {
        let (server, _control) = start(compositor);
        let output = Command::new(&program).arg("30").env("DISPLAY", server.display()).output().unwrap();
        let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{compositor:?}: {complained}");
        assert!(said.contains("3000 us in 10000 us"), "{compositor:?}: {said}");
    }
}

/// The faults occur while the compositor starts and while clients draw.
#[test]
fn the_desktop_is_served_after_a_fault_in_xwayland() {
    let _turn = in_parallel();
    for (compositor, fault) in compositors().into_iter().flat_map(|one| [(one, "call:1000"), (one, "call:10000")]) {
        let mut wanted = setup(ServerKind::Xwayland(compositor));
        wanted.environment.push(("XQOS_TEST_FAULT".into(), fault.into()));
        let mut server = Fixture::start(&wanted);
        let busy = [Busy::start(&server), Busy::start(&server)];
        wait_for("xqos steps aside", SOON, || server.xqos_log().contains("stepped aside"));
        assert!(server.control().is_err(), "{compositor:?}, {fault}: the control socket is closed");
        let sent = busy.each_ref().map(Busy::sent);
        wait_for("both are served", SOON, || busy.iter().zip(sent).all(|(busy, sent)| busy.sent() > sent + 300));
        let mut late = server.native();
        late.canvas(10, 10);
        late.sync();
        assert!(server.is_running(), "{compositor:?}, {fault}");
    }
}

#[test]
fn an_xwayland_in_its_own_window_is_served() {
    let _turn = in_parallel();
    if is_missing_program("Xwayland") || is_missing_program("weston") {
        return;
    }
    let (desk, _control) = start(Compositor::Weston);
    let mut command = Command::new("Xwayland");
    command.args(["-displayfd", "1", "-nolisten", "tcp", "-noreset"]).env("LD_PRELOAD", module().path);
    command.env("XDG_RUNTIME_DIR", desk.folder()).env("WAYLAND_DISPLAY", "wayland");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = Owned::start(&mut command, Duration::from_secs(5)).unwrap();
    let mut display = String::new();
    BufReader::new(process.pipes().stdout.take().unwrap()).read_line(&mut display).unwrap();
    let display = format!(":{}", display.trim());
    Wire::connect(&display, ByteOrder::NATIVE).sync();
    let info = Control::connect(Some(&display)).unwrap().expect("it is served").server_info().unwrap();
    assert!(info.armed && info.server_pid == process.pid(), "{}", info.reason);
}

/// A socket for an unused display, and its file.
struct Socket {
    display: String,
    path: PathBuf,
}

impl Socket {
    fn bind() -> (Socket, UnixListener) {
        let path_of = |number: &u32| PathBuf::from(format!("/tmp/.X11-unix/X{number}"));
        let (number, listener) =
            (700..).find_map(|number| Some((number, UnixListener::bind(path_of(&number)).ok()?))).unwrap();
        (Socket { display: format!(":{number}"), path: path_of(&number) }, listener)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The socket is passed as by a compositor, or as by a user that starts Xwayland for a single program.
#[test]
fn an_xwayland_with_a_passed_socket_is_served_and_ends_with_its_last_client() {
    let _turn = in_parallel();
    if is_missing_program("Xwayland") || is_missing_program("weston") {
        return;
    }
    let (desk, _control) = start(Compositor::Weston);
    let (socket, listener) = Socket::bind();
    let mut command = Command::new("sh");
    let script = format!("exec Xwayland {} -listenfd 3 -terminate -nolisten tcp 3<&0 </dev/null", socket.display);
    command.args(["-c", &script]).env("LD_PRELOAD", module().path);
    command.env("XDG_RUNTIME_DIR", desk.folder()).env("WAYLAND_DISPLAY", "wayland");
    command.stdin(OwnedFd::from(listener)).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Owned::start(&mut command, Duration::from_secs(5)).unwrap();
    let mut wire = Wire::connect(&socket.display, ByteOrder::NATIVE);
    let control = Control::connect(Some(&socket.display)).unwrap().expect("it is served");
    let info = control.server_info().unwrap();
    assert!(info.armed && info.server_pid == process.pid(), "{}", info.reason);
    let busy = Busy::start_on(Wire::connect(&socket.display, ByteOrder::NATIVE));
    wait_for("a busy client is served", SOON, || entry(&control, busy.base).requests > 300);
    drop((busy, control));
    wire.sync();
    assert!(process.is_running(), "a client is left");
    drop(wire);
    wait_for("the server has ended", SOON, || !process.is_running());
}

#[test]
fn nothing_is_left_of_a_compositor_that_has_ended() {
    let _turn = in_parallel();
    for compositor in compositors() {
        let (server, _control) = start(compositor);
        let folder = server.folder();
        assert!(processes_of(&folder) >= 2, "{compositor:?}: itself and Xwayland");
        drop(server);
        wait_for("all processes have ended", SOON, || processes_of(&folder) == 0);
        assert!(!folder.exists(), "{compositor:?}: {folder:?}");
    }
}

/// The number of processes with this folder in their environment.
fn processes_of(folder: &Path) -> usize {
    let folder = folder.to_string_lossy();
    let has_it = |path: &Path| {
        fs::read(path.join("environ")).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(folder.as_ref()))
    };
    fs::read_dir("/proc").unwrap().filter(|entry| entry.as_ref().is_ok_and(|entry| has_it(&entry.path()))).count()
}
