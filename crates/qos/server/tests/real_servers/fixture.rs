// SPDX-License-Identifier: MIT
//! Starts servers with xqos in them, and reads what the kernel reports about them.
//!
//! A test that fails prints what xqos wrote to the server's log. Most tests run in parallel; a test that measures times
//! or clients' shares runs alone ([`alone`]).

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use xqos_abi::{ByteOrder, ClientEntry, PolicyChange, ServerInfo, entry_flag};
use xqos_client::Control;
use xqos_core::PolicyKind;
use xqos_lab::server::{Module, Server, ServerKind, Setup, find_module};

use crate::wire::Wire;
pub use xqos_testkit::wait_for;

static MACHINE: RwLock<()> = RwLock::new(());

/// Locked for reading while a server starts, for writing while one ends. A server that exits frees its display number
/// and then removes its socket file. By then, the file may belong to a server that has taken the number.
static DISPLAYS: RwLock<()> = RwLock::new(());

/// The permit for a test that may run at the same time as others.
pub fn in_parallel() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// The permit for a test that measures: no other test runs meanwhile.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The module under test, which always assumes contention, so that it decides each slice. The tests in `contention` do
/// not use this setting.
pub fn module() -> Module {
    Module { is_always_contended: true, ..Module::new(find_module(None).unwrap()) }
}

/// The settings for a server of this kind with xqos. A test may change them before it starts the server.
pub fn setup(kind: ServerKind) -> Setup {
    Setup::with_module(kind, module())
}

pub fn xvfb() -> Fixture {
    Fixture::start(&setup(ServerKind::Xvfb))
}

/// Starts a server for a test that may run at the same time as others, and connects to it.
pub fn served() -> (Fixture, Control) {
    let turn = in_parallel();
    let mut fixture = xvfb();
    fixture._turn = Some(turn);
    let control = fixture.control().unwrap();
    fix_blocking(&control);
    (fixture, control)
}

/// Makes the admission test use a blocking time of 1 ms. The observed one includes the time in which a busy machine
/// gave the server no processor, so that a second reservation could be refused.
pub fn fixed_blocking() -> PolicyChange {
    PolicyChange { blocking_us: Some(1000), ..PolicyChange::default() }
}

/// Sets [`fixed_blocking`].
pub fn fix_blocking(control: &Control) {
    control.set_policy(fixed_blocking()).unwrap();
}

pub fn xvfb_with(policy: PolicyKind) -> Fixture {
    Fixture::start(&Setup::with_module(ServerKind::Xvfb, Module { policy: Some(policy), ..module() }))
}

/// Returns true if the libc host serves all servers, even those that export their symbols.
pub fn uses_libc_host() -> bool {
    std::env::var("XQOS_HOST").is_ok_and(|host| host == "libc")
}

/// The policies that the host supports: the libc host has no `classic`, which counts single requests.
pub fn policies() -> Vec<PolicyKind> {
    PolicyKind::ALL.into_iter().filter(|&policy| policy != PolicyKind::Classic || !uses_libc_host()).collect()
}

/// Skips a test with a message if its server is not installed.
pub fn is_missing(kind: ServerKind) -> bool {
    is_missing_program(kind.program())
}

/// Skips a test with a message if a program that it needs is not installed.
pub fn is_missing_program(program: &str) -> bool {
    xqos_testkit::program(program).is_none()
}

/// Skips a test with a message unless root runs it.
pub fn is_not_root() -> bool {
    is_left_to_root("become another user")
}

/// Skips a test with a message unless root runs it. `what` names what only root can do.
pub fn is_left_to_root(what: &str) -> bool {
    // SAFETY: the call takes no arguments and cannot fail.
    let not_root = unsafe { libc::geteuid() } != 0;
    if not_root {
        xqos_testkit::left_out(format_args!("only root can {what}"));
    }
    not_root
}

/// Connects as the user nobody. The kernel reports the user of the connecting thread to the server.
pub fn as_nobody<T: Send>(connect: impl FnOnce() -> T + Send) -> T {
    const NOBODY: libc::uid_t = 65534;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: the bare system call takes no pointers and changes only this thread, which ends below.
            let result = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
            assert_eq!(result, 0, "cannot become another user");
            connect()
        });
        thread.join().unwrap()
    })
}

/// A running server.
#[derive(Debug)]
pub struct Fixture {
    /// `None` while this is dropped.
    server: Option<Server>,
    /// The test's permit to run, held until the server has ended.
    _turn: Option<RwLockReadGuard<'static, ()>>,
}

impl Fixture {
    pub fn start(setup: &Setup) -> Fixture {
        let _starting = DISPLAYS.read();
        Fixture { server: Some(setup.start().unwrap()), _turn: None }
    }

    pub fn wire(&self, order: ByteOrder) -> Wire {
        Wire::connect(self.display(), order)
    }

    /// A raw connection in this machine's byte order.
    pub fn native(&self) -> Wire {
        self.wire(ByteOrder::NATIVE)
    }

    pub fn info(&self) -> ServerInfo {
        self.control().unwrap().server_info().unwrap()
    }

    /// Checks that xqos serves the server and has not stepped aside.
    pub fn assert_armed(&mut self) {
        assert!(self.is_running(), "the server ended");
        let info = self.info();
        assert!(info.armed, "stepped aside: {}", info.reason);
    }

    /// The lines that xqos has written to the server's log.
    pub fn xqos_log(&self) -> String {
        self.log().lines().filter(|line| line.contains("xqos")).collect::<Vec<_>>().join("\n")
    }

    /// Runs `work` while the server is stopped, so that the server finds all its effects at the same time.
    pub fn while_stopped<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let status = format!("/proc/{}/stat", self.pid());
        self.stop(true);
        wait_for("the server is stopped", Duration::from_secs(60), || {
            let text = std::fs::read_to_string(&status).unwrap();
            text.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" T"))
        });
        let outcome = work();
        self.stop(false);
        outcome
    }

    /// Sets a limit of the server's process. Returns the previous limit.
    pub fn limit(&self, resource: libc::__rlimit_resource_t, most: u64) -> u64 {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` has room for the present limit, and is read for the new one.
        unsafe {
            assert_eq!(libc::prlimit(self.pid() as i32, resource, std::ptr::null(), &mut limit), 0);
            let before = std::mem::replace(&mut limit.rlim_cur, most);
            assert_eq!(libc::prlimit(self.pid() as i32, resource, &limit, std::ptr::null_mut()), 0);
            before
        }
    }

    pub fn threads(&self) -> usize {
        self.switches().unwrap().len()
    }

    pub fn open_files(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().count()
    }

    /// The server's private memory in kilobytes.
    pub fn private_kb(&self) -> u64 {
        self.memory().unwrap().private_dirty_kb
    }
}

impl Deref for Fixture {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.server.as_ref().expect("it is not dropped yet")
    }
}

impl DerefMut for Fixture {
    fn deref_mut(&mut self) -> &mut Server {
        self.server.as_mut().expect("it is not dropped yet")
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let last: Vec<&str> = log.lines().rev().take(30).collect();
            eprintln!("-- xqos in the log of {}:\n{}", self.display(), self.xqos_log());
            eprintln!("-- its last lines:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        let _ending = DISPLAYS.write();
        self.server = None;
    }
}

/// A time limit that is long enough on a busy machine. A test that exceeds it waits for something that never happens.
pub const SOON: Duration = Duration::from_secs(60);

/// Like [`wait_for`], for events that must occur before a reservation's deadline by the server's clock.
pub fn wait_before(deadline_ns: u64, control: &Control, what: &str, came: impl FnMut() -> bool) {
    wait_for(what, SOON, came);
    let late_ns = control.clients().unwrap().now_ns.saturating_sub(deadline_ns);
    assert_eq!(late_ns, 0, "{what}: not before the next budget");
}

/// The list entry of the client with this resource base.
pub fn entry(control: &Control, base: u32) -> ClientEntry {
    try_entry(control, base).unwrap_or_else(|| panic!("client {base:#x} is not in the list"))
}

pub fn is_held_back(control: &Control, base: u32) -> bool {
    entry(control, base).flags & entry_flag::HELD_BACK != 0
}

pub fn try_entry(control: &Control, base: u32) -> Option<ClientEntry> {
    control.clients().unwrap().clients.into_iter().find(|entry| entry.client == base)
}
