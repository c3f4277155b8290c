// SPDX-License-Identifier: MIT
//! Tests with ordinary programs: a terminal, two toolkits, a player, a browser. Each must show a window, be listed
//! correctly, and leave no client behind, both alone and together with the others and a busy client.

use crate::busy::Busy;
use crate::fixture::{Fixture, in_parallel, is_missing_program, wait_for, xvfb};
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConnectionExt as _, MapState};
use xqos_abi::{ClientEntry, entry_flag};
use xqos_client::Control;
use xqos_lab::folder::Folder;
use xqos_lab::mpv::film;
use xqos_lab::process::Owned;

/// A browser needs several seconds to respond if the processors are busy.
const PATIENCE: Duration = Duration::from_secs(240);
const GRACE: Duration = Duration::from_secs(20);

/// An animation, so that the browser draws all the time. (A browser does not draw what other windows cover.)
const PAGE: &str = "<!doctype html><style>div{width:60px;height:60px;background:#c52;animation:a 1s linear infinite \
alternate}@keyframes a{to{transform:translate(200px,150px)}}</style><div></div>";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Xterm,
    /// GTK 3.
    Gtk,
    /// Qt.
    FeatherPad,
    Mpv,
    Chromium,
}

impl Program {
    const ALL: [Program; 5] = [Program::Xterm, Program::Gtk, Program::FeatherPad, Program::Mpv, Program::Chromium];

    fn name(self) -> &'static str {
        match self {
            Program::Xterm => "xterm",
            Program::Gtk => "gtk3-widget-factory",
            Program::FeatherPad => "featherpad",
            Program::Mpv => "mpv",
            Program::Chromium => "chromium",
        }
    }

    /// Prints a message and skips a program that is not installed.
    fn is_missing(self) -> bool {
        is_missing_program(self.name())
    }

    /// Returns true if the program draws without input.
    fn is_moving(self) -> bool {
        matches!(self, Program::Xterm | Program::Mpv | Program::Chromium)
    }

    fn command(self, sandbox: &Sandbox) -> Command {
        let mut command = Command::new(self.name());
        match self {
            Program::Mpv => command.args(["--geometry=+0+0"]).args(film((320, 240), 30)),
            Program::Xterm => command.args(["-e", "sh", "-c", "while :; do seq 1 50; sleep 0.05; done"]),
            Program::Chromium => command
                .args(["--ozone-platform=x11", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"])
                .args(["--disable-background-networking", "--disable-component-update", "--disable-breakpad"])
                .args(["--password-store=basic", "--window-size=400,300", "--window-position=870,700"])
                .arg(format!("--user-data-dir={}", sandbox.folder.path("profile").display()))
                .arg(format!("--app=file://{}", sandbox.folder.path("page.html").display())),
            _ => &mut command,
        };
        command
    }
}

/// A server and an environment without any of the user's files.
#[derive(Debug)]
struct Sandbox {
    server: Fixture,
    control: Control,
    folder: Folder,
    programs: Vec<Program>,
}

impl Sandbox {
    fn create() -> Sandbox {
        let (server, folder) = (xvfb(), Folder::create().unwrap());
        fs::write(folder.path("page.html"), PAGE).unwrap();
        let programs: Vec<_> = Program::ALL.into_iter().filter(|program| !program.is_missing()).collect();
        Sandbox { control: server.control().unwrap(), server, folder, programs }
    }

    fn start(&self, program: Program) -> Running {
        let mut command = program.command(self);
        for name in ["LD_PRELOAD", "WAYLAND_DISPLAY", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        command.env("DISPLAY", self.server.display()).env("HOME", self.folder.path(""));
        command.env("XDG_RUNTIME_DIR", self.folder.path("")).env("DBUS_SESSION_BUS_ADDRESS", "disabled:");
        command.env("GDK_BACKEND", "x11").env("QT_QPA_PLATFORM", "xcb").env("GSETTINGS_BACKEND", "memory");
        command.env("NO_AT_BRIDGE", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running { program, process: Owned::start(&mut command, GRACE).unwrap() }
    }

    /// The id bases of the clients with windows on the screen.
    fn shown(&self) -> Vec<u32> {
        let connection = self.control.connection().unwrap();
        let (root, mask) = (connection.setup().roots[0].root, connection.setup().resource_id_mask);
        let windows = connection.query_tree(root).unwrap().reply().unwrap().children;
        let is_shown = |window: &u32| {
            // The window may have been destroyed meanwhile.
            let found = connection.get_window_attributes(*window).unwrap().reply();
            found.is_ok_and(|found| found.map_state == MapState::VIEWABLE)
        };
        windows.into_iter().filter(is_shown).map(|window| window & !mask).collect()
    }

    fn clients(&self) -> Vec<ClientEntry> {
        self.control.clients().unwrap().clients
    }

    /// Requests and server time of all clients of a program. In a browser, the process that draws is not the one that
    /// owns the window.
    fn work_of(&self, name: &str) -> (u64, u64) {
        let own = self.clients().into_iter().filter(|entry| entry.name == name);
        own.fold((0, 0), |sum, entry| (sum.0 + entry.requests, sum.1 + entry.server_time_ns))
    }

    /// Waits until the program's window is on the screen. Returns the list entry of the window's client.
    fn wait_until_shown(&self, started: &mut Running) -> ClientEntry {
        let (pid, name) = (started.process.pid() as i32, started.program.name());
        let mut found = None;
        wait_for(&format!("{name} shows its window"), PATIENCE, || {
            assert!(started.process.is_running(), "{name} has ended");
            let (shown, clients) = (self.shown(), self.clients());
            found = clients.into_iter().find(|entry| entry.pid == pid && shown.contains(&entry.client));
            found.is_some()
        });
        let found = found.unwrap();
        assert!(found.name == name && found.flags & entry_flag::LOCAL != 0 && found.requests > 0, "{found:?}");
        found
    }

    fn wait_until_left(&self, clients: usize, who: &str) {
        wait_for(&format!("{who}: no client is left"), PATIENCE, || self.clients().len() == clients);
    }
}

#[derive(Debug)]
struct Running {
    program: Program,
    process: Owned,
}

#[test]
fn each_program_shows_a_window_is_listed_and_leaves_no_client() {
    let _turn = in_parallel();
    let mut sandbox = Sandbox::create();
    let before = sandbox.clients().len();
    for &program in &sandbox.programs {
        let mut started = sandbox.start(program);
        sandbox.wait_until_shown(&mut started);
        started.process.end();
        sandbox.wait_until_left(before, program.name());
        assert!(sandbox.shown().is_empty(), "{program:?}: a window without a client");
    }
    sandbox.server.assert_armed();
}

#[test]
fn programs_are_served_together_with_a_busy_client() {
    let _turn = in_parallel();
    let mut sandbox = Sandbox::create();
    let busy = Busy::start(&sandbox.server);
    let before = sandbox.clients().len();
    let mut all: Vec<Running> = sandbox.programs.iter().map(|&program| sandbox.start(program)).collect();
    for started in &mut all {
        sandbox.wait_until_shown(started);
    }
    for started in all.iter_mut().filter(|started| started.program.is_moving()) {
        let name = started.program.name();
        let (requests, time_ns) = sandbox.work_of(name);
        wait_for(&format!("{name} draws"), PATIENCE, || {
            assert!(started.process.is_running(), "{name} has ended");
            let now = sandbox.work_of(name);
            now.0 > requests + 30 && now.1 > time_ns
        });
    }
    let sent = busy.sent();
    wait_for("the busy client is served", PATIENCE, || busy.sent() > sent + 100);
    // Ask all programs to end before waiting for any of them.
    all.iter_mut().for_each(|started| started.process.ask_to_end());
    drop(all);
    sandbox.wait_until_left(before, "all");
    sandbox.server.assert_armed();
}
