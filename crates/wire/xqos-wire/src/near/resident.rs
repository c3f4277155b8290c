// SPDX-License-Identifier: MIT
//! One proxy per display, shared by several programs, so that each program benefits from answers to earlier programs.
//!
//! The proxy is a separate process. The first launcher starts it; later ones find it through a socket in a private
//! folder of the user. The proxy sends its display to each launcher; a launcher stays connected while its program runs.
//!
//! | a launcher sends | the proxy |
//! |---|---|
//! | nothing | when the launcher connects, sends `DISPLAY`, `XAUTHORITY` and its options, one line each |
//! | `report` | sends the report of all connections that programs have closed |
//! | `stop` | exits |
//!
//! The proxy also exits when the X server exits, and after some time without programs. A lock, which the kernel
//! releases when the process exits, ensures that there is only one proxy.

use super::cache::{Caches, make_private, plain};
use super::proxy::Proxy;
use super::{Arguments, report};
use crate::program::Program;
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::Scope;
use std::time::{Duration, Instant};
use xqos_cli::output::{line, note};
use xqos_cli::program::one_line;
use xqos_near::NearSettings;
use xqos_sys::{self as sys, Signals};

/// Time without programs after which the proxy exits. While idle, it uses 1 to 3 MB and one client slot of the server.
const IDLE_FOR: Duration = Duration::from_secs(600);
/// Maximum time until a new proxy listens, which takes three round trips.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How often the proxy checks for a lost server and for idle time.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum size of the text that a launcher receives.
const MAX_WORDS: u64 = 64 << 10;

#[derive(Debug)]
struct ResidentProxy {
    socket: UnixStream,
    display: String,
    authority: PathBuf,
    is_relaxed: bool,
    verifies: bool,
}

/// How a resident proxy describes its options.
const RELAXED: &str = "relaxed";
const STRICT: &str = "strict";
const VERIFIES: &str = " verify";

pub fn run(arguments: &Arguments, name: &str, signals: &Signals) -> Result<ExitCode> {
    let proxy = find_or_start(arguments, name)?;
    if proxy.is_relaxed != arguments.near.relaxed {
        let order = if proxy.is_relaxed { RELAXED } else { STRICT };
        note(&format!("the resident proxy runs in {order} order; to change that, first stop it: xqos near --stop"));
    }
    if arguments.near.verify && !proxy.verifies {
        note("the resident proxy runs without --verify; to change that, first stop it: xqos near --stop");
    }
    let mut program = Program::start(&arguments.program, &proxy.display, Some(&proxy.authority))?;
    program.watch(None, signals, arguments.quiet)?;
    if arguments.near.report || arguments.near.verify {
        match ask(&proxy.socket, "report") {
            Ok(report) => report.lines().for_each(note),
            Err(error) => note(&one_line(&error.context("there is no report"))),
        }
    }
    Ok(ExitCode::from(program.status()))
}

pub fn stop(name: &str) -> Result<ExitCode> {
    match UnixStream::connect(folder(name)?.join("socket")) {
        Ok(socket) => ask(&socket, "stop").map(|_| ExitCode::SUCCESS),
        Err(_) => line(&format!("nothing to stop: display {name} has no resident proxy")).map(|()| ExitCode::SUCCESS),
    }
}

fn find_or_start(arguments: &Arguments, name: &str) -> Result<ResidentProxy> {
    if name.is_empty() {
        bail!("DISPLAY is not set: give the program's X server with --display");
    }
    let folder = folder(name)?;
    if let Some(proxy) = find(&folder) {
        return Ok(proxy);
    }
    let mut child = start(arguments, name, &folder)?;
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(proxy) = find(&folder) {
            return Ok(proxy);
        }
        match child.try_wait().context("cannot wait for the resident proxy")? {
            None => {}
            // Another proxy has the lock: it is starting and will be found, or it is ending and has to be replaced.
            Some(status) if status.success() => child = start(arguments, name, &folder)?,
            Some(_) => {
                let said = fs::read_to_string(folder.join("log")).unwrap_or_default();
                bail!("the resident proxy did not start: {}", said.trim().trim_start_matches("xqos: "));
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    bail!("the resident proxy did not answer within {} s: see {}", PATIENCE.as_secs(), folder.join("log").display())
}

/// Starts a proxy, which exits immediately if another one has the lock.
fn start(arguments: &Arguments, name: &str, folder: &Path) -> Result<Child> {
    let mut command = Command::new(sys::own_path());
    command.args(["near", "--serve", "--display", name]).args(arguments.near.words());
    // The proxy outlives this process and must not receive the terminal's signals.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
    let log = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(folder.join("log"));
    command.stderr(log.context("cannot create the log of the resident proxy")?);
    sys::unblock_signals_in(&mut command);
    command.spawn().context("cannot start the resident proxy")
}

fn find(folder: &Path) -> Option<ResidentProxy> {
    let socket = UnixStream::connect(folder.join("socket")).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    // The proxy sends nothing more until it receives a command.
    let lines = BufReader::new((&socket).take(MAX_WORDS)).lines().map_while(Result::ok).take(3).collect::<Vec<_>>();
    let [display, authority, options] = lines.try_into().ok()?;
    let (is_relaxed, verifies) = (options.starts_with(RELAXED), options.ends_with(VERIFIES));
    Some(ResidentProxy { socket, display, authority: authority.into(), is_relaxed, verifies })
}

/// Sends a command, and reads the reply until the other end closes.
fn ask(mut socket: &UnixStream, word: &str) -> Result<String> {
    let mut words = String::new();
    let asked =
        socket.write_all(format!("{word}\n").as_bytes()).and_then(|()| socket.shutdown(std::net::Shutdown::Write));
    asked
        .and_then(|()| socket.take(MAX_WORDS).read_to_string(&mut words))
        .context("the resident proxy does not answer")?;
    Ok(words)
}

/// The folder of a display, private to the user.
fn folder(name: &str) -> Result<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    let root = runtime
        .map_or_else(|| env::temp_dir().join(format!("xqos-near-{}", geteuid().as_raw())), |it| it.join("xqos-near"));
    let folder = root.join(plain(name));
    let made = make_private(&root).and_then(|()| make_private(&folder));
    made.with_context(|| format!("cannot use the folder {}", folder.display()))?;
    Ok(folder)
}

/// Runs the resident proxy until it is stopped or no longer needed.
pub fn serve(name: &str, settings: NearSettings, signals: &Signals) -> Result<ExitCode> {
    let folder = folder(name)?;
    let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(folder.join("lock"));
    let lock: File = lock.context("cannot create the lock of the resident proxy")?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(ExitCode::SUCCESS);
    }
    let order = if settings.relaxed { RELAXED } else { STRICT };
    let options = format!("{order}{}", if settings.verify { VERIFIES } else { "" });
    let proxy = Proxy::start(Some(name), settings, Caches::Each(name.to_owned()))?;
    let path = folder.join("socket");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).context("cannot remove an old socket"),
        _ => {}
    }
    let listener = UnixListener::bind(&path).context("cannot create the socket of the resident proxy")?;
    listener.set_nonblocking(true).context("cannot listen for programs")?;
    let authority = proxy.authority().display();
    let greeting = format!("{}\n{authority}\n{options}\n", proxy.display());
    let served = std::thread::scope(|reporters| attend(&proxy, &listener, &greeting, signals, reporters));
    let _ = fs::remove_file(&path);
    served.map(|()| ExitCode::SUCCESS)
}

/// Answers launchers. A report waits for the server, which may hang, so it has its own thread.
fn attend<'scope>(
    proxy: &'scope Proxy,
    listener: &UnixListener,
    greeting: &str,
    signals: &Signals,
    reporters: &'scope Scope<'scope, '_>,
) -> Result<()> {
    let (mut launchers, mut last_seen) = (Vec::<UnixStream>::new(), Instant::now());
    loop {
        if signals.next().is_some_and(|signal| signal.number != libc::SIGCHLD) || proxy.state().has_lost_server {
            return Ok(());
        }
        while let Ok((launcher, _)) = listener.accept() {
            launchers.extend(greet(launcher, greeting));
        }
        let mut stays = Vec::new();
        for launcher in launchers.drain(..) {
            match read_command(&launcher).as_deref() {
                None => stays.push(launcher),
                Some("stop") => return Ok(()),
                Some("report") => _ = reporters.spawn(move || send_report(&launcher, proxy)),
                Some(_) => {}
            }
        }
        launchers = stays;
        if !launchers.is_empty() || proxy.state().open > 0 {
            last_seen = Instant::now();
        } else if last_seen.elapsed() > IDLE_FOR {
            return Ok(());
        }
        let mut files: Vec<RawFd> = vec![signals.as_raw_fd(), listener.as_raw_fd()];
        files.extend(launchers.iter().map(AsRawFd::as_raw_fd));
        sys::poll(&files, Some(CHECK_INTERVAL)).context("cannot wait for programs")?;
    }
}

/// Accepts a launcher of the same user, and sends it the greeting.
fn greet(launcher: UnixStream, greeting: &str) -> Option<UnixStream> {
    let user = socket_peercred(&launcher).ok()?.uid;
    if user != geteuid() {
        return None;
    }
    launcher.set_nonblocking(true).ok()?;
    (&launcher).write_all(greeting.as_bytes()).ok()?;
    Some(launcher)
}

/// Reads a launcher's command: `None` if the launcher has sent nothing, an empty command if it has closed.
fn read_command(mut launcher: &UnixStream) -> Option<String> {
    let mut bytes = [0; 16];
    match launcher.read(&mut bytes) {
        Ok(count) => Some(String::from_utf8_lossy(&bytes[..count]).trim().to_owned()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
        Err(_) => Some(String::new()),
    }
}

fn send_report(mut launcher: &UnixStream, proxy: &Proxy) {
    proxy.settle();
    let report = &proxy.state().report;
    let mut lines = report::lines(report);
    lines.push(report::verdict(&report.counts));
    // The launcher may have closed already.
    let _ = launcher.write_all(format!("{}\n", lines.join("\n")).as_bytes());
}
