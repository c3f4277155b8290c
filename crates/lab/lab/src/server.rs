// SPDX-License-Identifier: MIT
//! Real X servers for experiments and tests: Xvfb, Xephyr, Xtigervnc and Xorg, stock or with xqos.
//!
//! Each server chooses a free display and reports it (`-displayfd`), so any number of servers can run side by side. The
//! log and configuration are in a private folder that is removed with the server. A server is ended by its own process
//! id. An Xwayland is started by a compositor of its own.

mod compositor;
mod xorg;

pub use compositor::Compositor;

use crate::device::Device;
use crate::folder::Folder;
use crate::process::{self, Owned};
use anyhow::{Context, Result, anyhow, bail, ensure};
use compositor::Xwayland;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use x11rb::connection::Connection;
use x11rb::rust_connection::RustConnection;
use xqos_client::Control;
use xqos_core::PolicyKind;
use xqos_sys::proc::{self, MemoryUse, RunTimes, ThreadSwitches};

const RFB_SOCKET: &str = "rfb";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    Xvfb,
    /// Shown inside a separate Xvfb.
    Xephyr,
    /// Listens only on a socket in its private folder.
    Xtigervnc,
    /// With the dummy driver, which uses neither a graphics card nor a console.
    Xorg,
    /// Started by its own compositor, which displays nothing.
    Xwayland(Compositor),
}

impl ServerKind {
    /// All servers that, as packaged by Debian, export the symbols that xqos needs.
    pub const ALL: [ServerKind; 4] = [ServerKind::Xvfb, ServerKind::Xephyr, ServerKind::Xtigervnc, ServerKind::Xorg];

    /// The program's path. Debian's /usr/bin/Xorg may be a wrapper that refuses to run without a console.
    pub fn program(self) -> &'static str {
        match self {
            ServerKind::Xvfb => "Xvfb",
            ServerKind::Xephyr => "Xephyr",
            ServerKind::Xtigervnc => "Xtigervnc",
            ServerKind::Xorg => "/usr/lib/xorg/Xorg",
            ServerKind::Xwayland(_) => "Xwayland",
        }
    }
}

/// The module to load into a server, and its settings.
#[derive(Clone, Debug, Default)]
pub struct Module {
    pub path: PathBuf,
    /// In each field, `None` stands for the module's own default.
    pub policy: Option<PolicyKind>,
    pub slice_us: Option<u32>,
    pub max_utilization_ppm: Option<u32>,
    /// Decides each slice even without contention.
    pub is_always_contended: bool,
}

impl Module {
    pub fn new(path: impl Into<PathBuf>) -> Module {
        Module { path: path.into(), ..Module::default() }
    }
}

#[derive(Clone, Debug)]
pub struct Setup {
    pub kind: ServerKind,
    /// `None` for a server as the distribution ships it.
    pub module: Option<Module>,
    /// True if the server resets itself when its last client disconnects.
    pub resets: bool,
    /// A power of two from 64 to 2,048.
    pub max_clients: u32,
    /// In pixels.
    pub screen: (u32, u32),
    /// True for a pointer device; for Xorg only.
    pub has_pointer: bool,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
}

impl Setup {
    pub fn stock(kind: ServerKind) -> Setup {
        Setup {
            kind,
            module: None,
            resets: false,
            max_clients: 256,
            screen: (1280, 1024),
            has_pointer: false,
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    pub fn with_module(kind: ServerKind, module: Module) -> Setup {
        Setup { module: Some(module), ..Setup::stock(kind) }
    }

    /// Starts the server and waits until clients can connect.
    pub fn start(&self) -> Result<Server> {
        process::allow_many_files();
        let folder = Folder::create()?;
        let host = match self.kind {
            ServerKind::Xephyr => Some(Setup { screen: self.screen, ..Setup::stock(ServerKind::Xvfb) }.start()?.into()),
            _ => None,
        };
        let mut command = Command::new(self.kind.program());
        self.add_arguments(&mut command, &folder)?;
        self.add_environment(&mut command, host.as_deref());
        if let ServerKind::Xwayland(compositor) = self.kind {
            return compositor.start(self, command, folder);
        }
        let (mut ready, servers_end) = UnixStream::pair()?;
        command.args(["-displayfd", &servers_end.as_raw_fd().to_string()]);
        xqos_sys::hand_over(&mut command, servers_end.as_raw_fd());
        let errors = File::create(folder.path("errors"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let process = Owned::start(&mut command, Duration::from_secs(5))?;
        drop(servers_end);
        let (kind, display) = (self.kind, String::new());
        let mut server = Server { process, xwayland: None, host, folder, display, kind, pointer: None };
        server.display = server.wait_until_ready(&mut ready)?;
        if self.has_pointer {
            server.pointer = Some(Arc::new(Device::connect(&server.folder.path(xorg::POINTER_SOCKET))?));
        }
        Ok(server)
    }

    fn add_arguments(&self, command: &mut Command, folder: &Folder) -> Result<()> {
        let size = format!("{}x{}", self.screen.0, self.screen.1);
        match self.kind {
            ServerKind::Xvfb => command.args(["-screen", "0", &format!("{size}x24")]),
            ServerKind::Xephyr => command.args(["-screen", &format!("{size}x24")]),
            ServerKind::Xtigervnc => command
                .args(["-geometry", &size, "-depth", "24", "-SecurityTypes", "None", "-rfbport", "-1"])
                .arg("-rfbunixpath")
                .arg(folder.path(RFB_SOCKET)),
            ServerKind::Xorg => {
                let config = folder.path("xorg.conf");
                fs::write(&config, xorg::config(self, folder)?)?;
                command.arg("-config").arg(config).arg("-logfile").arg(folder.path("log"));
                command.args(["-novtswitch", "-sharevts"])
            }
            // Disable access control, because the compositor may run as another user, or exclude us.
            ServerKind::Xwayland(_) => command.arg("-ac"),
        };
        command.args(["-nolisten", "tcp", "-maxclients", &self.max_clients.to_string()]);
        if !self.resets {
            command.arg("-noreset");
        }
        command.args(&self.arguments);
        Ok(())
    }

    fn add_environment(&self, command: &mut Command, host: Option<&Server>) {
        // Ignore settings in the user's environment, which are for the user's own servers.
        command.env_remove("LD_PRELOAD");
        for name in OF_THE_USER.split_whitespace() {
            command.env_remove(name);
        }
        if let Some(host) = host {
            command.env("DISPLAY", host.display());
        }
        if let Some(module) = &self.module {
            if self.kind != ServerKind::Xorg {
                command.env("LD_PRELOAD", &module.path);
            }
            let settings = [
                ("XQOS_POLICY", module.policy.map(|policy| policy.name().to_owned())),
                ("XQOS_SLICE_US", module.slice_us.map(|slice_us| slice_us.to_string())),
                ("XQOS_MAX_UTILIZATION_PPM", module.max_utilization_ppm.map(|ppm| ppm.to_string())),
                ("XQOS_CONTENTION", module.is_always_contended.then(|| "always".to_owned())),
            ];
            command.envs(settings.into_iter().filter_map(|(name, value)| Some((name, value?))));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }
}

/// Settings of the module that are left out of a server's environment.
const OF_THE_USER: &str = "XQOS_POLICY XQOS_SLICE_US XQOS_CUT_US XQOS_MAX_UTILIZATION_PPM XQOS_DESKTOP_SHARE_PPM \
                           XQOS_CONTENTION XQOS_GRAB_LIMIT_MS XQOS_TEST_FAULT XQOS_TEST_CUT";

/// A running server. It ends when this is dropped, or when the thread that started it ends.
#[derive(Debug)]
pub struct Server {
    // Drop order: the server ends before its host, and before its folder is removed; an Xwayland ends with its
    // compositor.
    /// The server, or its compositor.
    process: Owned,
    xwayland: Option<Xwayland>,
    host: Option<Box<Server>>,
    folder: Folder,
    display: String,
    kind: ServerKind,
    pub(crate) pointer: Option<Arc<Device>>,
}

impl Server {
    /// In the format of DISPLAY: `:7`.
    pub fn display(&self) -> &str {
        &self.display
    }

    pub fn kind(&self) -> ServerKind {
        self.kind
    }

    pub fn pid(&self) -> u32 {
        self.xwayland.as_ref().map_or(self.process.pid(), |server| server.pid)
    }

    /// The compositor of an Xwayland.
    pub fn compositor_pid(&self) -> Option<u32> {
        self.xwayland.as_ref().map(|_| self.process.pid())
    }

    /// The Xvfb that shows an Xephyr.
    pub fn host(&self) -> Option<&Server> {
        self.host.as_deref()
    }

    /// The folder of the server's files. It is also the runtime folder of an Xwayland's compositor.
    pub fn folder(&self) -> PathBuf {
        self.folder.path("")
    }

    /// The socket for viewers; only an Xtigervnc has it.
    pub fn viewer_socket(&self) -> Option<PathBuf> {
        (self.kind == ServerKind::Xtigervnc).then(|| self.folder.path(RFB_SOCKET))
    }

    pub fn is_running(&mut self) -> bool {
        self.process.is_running() && self.xwayland.as_ref().is_none_or(Xwayland::is_running)
    }

    /// Suspends the server, whatever it is doing, or lets it continue. With Xwayland this suspends the compositor.
    pub fn stop(&mut self, stops: bool) {
        self.process.stop(stops);
    }

    pub fn log(&self) -> String {
        let read = |name| fs::read(self.folder.path(name)).unwrap_or_default();
        String::from_utf8_lossy(&[read("log"), read("errors")].concat()).into_owned()
    }

    pub fn connect(&self) -> Result<RustConnection> {
        Ok(xqos_client::connect(Some(&self.display))?.0)
    }

    /// A connection that speaks XQOS. The error includes the server's log.
    pub fn control(&self) -> Result<Control> {
        Control::connect(Some(&self.display))?.ok_or_else(|| anyhow!("no XQOS in {}:\n{}", self.display, self.log()))
    }

    /// Like [`Server::control`], but also fails if xqos has stepped aside, because xqos would then not be measured.
    pub fn armed(&self) -> Result<Control> {
        let control = self.control()?;
        let info = control.server_info()?;
        if !info.armed {
            bail!("xqos stepped aside: {}\n{}", info.reason, self.log());
        }
        Ok(control)
    }

    pub fn version(&self) -> Result<String> {
        let connection = self.connect()?;
        let setup = connection.setup();
        let vendor = String::from_utf8_lossy(&setup.vendor);
        Ok(format!("{:?} {} ({vendor})", self.kind, version_text(setup.release_number)))
    }

    pub fn cpu_time(&self) -> Result<Duration> {
        process::cpu_time(self.pid())
    }

    pub fn memory(&self) -> Result<MemoryUse> {
        Ok(proc::memory(self.pid() as i32)?)
    }

    pub fn switches(&self) -> Result<Vec<ThreadSwitches>> {
        let switches = proc::switches(self.pid() as i32);
        ensure!(!switches.is_empty(), "cannot read /proc/{}/task", self.pid());
        Ok(switches)
    }

    /// The kernel's scheduler figures of the thread that serves requests; `None` if the kernel does not provide them.
    pub fn schedstat(&self) -> Option<RunTimes> {
        RunTimes::of(self.pid() as i32)
    }

    fn wait_until_ready(&mut self, ready: &mut UnixStream) -> Result<String> {
        ready.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut number = String::new();
        // The server closes its end of the pipe when it has written the number, or when it dies.
        let outcome = ready.read_to_string(&mut number);
        if outcome.is_err() || number.trim().parse::<u32>().is_err() {
            bail!("{} did not start:\n{}", self.kind.program(), self.log());
        }
        Ok(format!(":{}", number.trim()))
    }
}

/// Finds the module: at `path` from the options or in XQOS_MODULE, else next to this program or in the workspace.
pub fn find_module(path: Option<&Path>) -> Result<PathBuf> {
    const NAME: &str = "libxqos_module.so";
    let named = path.map(Path::to_owned).or_else(|| std::env::var_os("XQOS_MODULE").map(PathBuf::from));
    if let Some(path) = named {
        // Make the path absolute: the dynamic linker would resolve a relative name in the server's folder.
        return fs::canonicalize(&path).with_context(|| format!("no xqos module at {}", path.display()));
    }
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(NAME)));
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/release").join(NAME);
    let found = beside.into_iter().chain([workspace]).find(|path| path.exists());
    let found =
        found.ok_or_else(|| anyhow!("{NAME} is not built: run `make build`, or set XQOS_MODULE to its path"))?;
    Ok(fs::canonicalize(found)?)
}

/// `12101007` is 21.1.7; before 21 the leading 1 was part of the version.
fn version_text(release: u32) -> String {
    let (major, minor, patch) = (release / 100_000 % 100, release / 1000 % 100, release % 1000);
    if major >= 21 { format!("{major}.{minor}.{patch}") } else { format!("1.{major}.{minor}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_numbers_read_as_versions() {
        assert_eq!(version_text(12_101_007), "21.1.7");
        assert_eq!(version_text(12_013_000), "1.20.13");
    }

    #[test]
    fn a_module_given_by_path_must_exist() {
        let error = find_module(Some(Path::new("/nowhere/module.so"))).unwrap_err();
        assert!(error.to_string().contains("/nowhere/module.so"));
    }
}
