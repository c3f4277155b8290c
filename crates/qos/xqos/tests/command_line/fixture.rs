// SPDX-License-Identifier: MIT
//! Servers, programs and folders for the tests. All are removed at the end of the test; processes are killed by pid.

use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::Value;
use std::fmt::Debug;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::RwLock;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};
pub use xqos_testkit::Folder;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The program under test, without the tester's own display.
pub fn xqos() -> Command {
    clean(crate::PROGRAM)
}

fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "XQOS_POLICY", "XQOS_SLICE_US", "XQOS_MAX_UTILIZATION_PPM", "COLUMNS"] {
        command.env_remove(name);
    }
    command
}

/// The output and exit status of a command.
#[derive(Debug)]
pub struct Ended {
    pub status: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    #[track_caller]
    pub fn with(self, status: i32) -> Ended {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }

    /// Asserts exit status 1, no standard output, and one line on standard error with these words.
    #[track_caller]
    pub fn failed_saying(self, words: &[&str]) {
        assert_eq!((self.status, self.out.as_str()), (1, ""), "{self:#?}");
        assert_eq!(self.err.lines().count(), 1, "one line says why: {self:#?}");
        assert!(self.err.starts_with("xqos: "), "{self:#?}");
        for word in words {
            assert!(self.err.contains(word), "'{word}' is missing: {self:#?}");
        }
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ended { status: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs a command and waits until it exits.
pub fn ended(command: &mut Command) -> Ended {
    command.stdin(Stdio::null()).output().expect("the command starts").into()
}

/// A process that is ended when the test ends, if it is still running.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    pub fn start(command: &mut Command) -> Running {
        Running(command.stdin(Stdio::null()).spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    pub fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    pub fn signal(&self, name: &str) {
        kill(self.pid(), name);
    }

    /// Waits until it exits; returns its standard output and error if they are piped.
    #[track_caller]
    pub fn ended(mut self) -> Ended {
        let status = eventually("the process ends", || self.0.try_wait().expect("it is our child"));
        let mut ended = Ended { status: status.code().unwrap_or(-1), out: String::new(), err: String::new() };
        if let Some(mut out) = self.0.stdout.take() {
            out.read_to_string(&mut ended.out).expect("text");
        }
        if let Some(mut err) = self.0.stderr.take() {
            err.read_to_string(&mut ended.err).expect("text");
        }
        ended
    }

    /// Standard output, which must be piped.
    pub fn out(&mut self) -> impl Read + use<> {
        self.0.stdout.take().expect("it is piped")
    }

    /// Standard error, which must be piped.
    pub fn err(&mut self) -> impl Read + use<> {
        self.0.stderr.take().expect("it is piped")
    }

    pub fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("it is our child").is_none()
    }
}

/// The lines that a process writes. A thread reads them, so that a full pipe cannot block the process.
#[derive(Debug)]
pub struct Lines(Receiver<String>);

impl Lines {
    pub fn of(output: impl Read + Send + 'static) -> Lines {
        let (sender, lines) = channel();
        spawn(move || BufReader::new(output).lines().map_while(Result::ok).for_each(|line| _ = sender.send(line)));
        Lines(lines)
    }

    /// Waits for a line for which `find` returns a value.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, find: impl Fn(&str) -> Option<T>) -> T {
        let (end, mut others) = (Instant::now() + PATIENCE, Vec::new());
        loop {
            let next = self.0.recv_timeout(end.saturating_duration_since(Instant::now()));
            let line = next.unwrap_or_else(|_| panic!("{what} is missing in {others:#?}"));
            if let Some(found) = find(&line) {
                return found;
            }
            others.push(line);
        }
    }

    /// Waits for a line with these words.
    #[track_caller]
    pub fn wait_for_words(&self, words: &str) -> String {
        self.wait_for(words, |line| line.contains(words).then(|| line.to_owned()))
    }

    /// Returns true if a line with these words has arrived since the last call.
    pub fn have(&self, words: &str) -> bool {
        self.0.try_iter().any(|line| line.contains(words))
    }

    /// The other lines, once the process has exited.
    pub fn rest(self) -> String {
        self.0.iter().collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    fn end(&mut self) {
        if self.is_running() {
            self.signal("TERM");
            let end = Instant::now() + Duration::from_secs(5);
            while self.is_running() && Instant::now() < end {
                sleep(Duration::from_millis(10));
            }
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// Sends a signal to one process.
pub fn kill(pid: i32, signal: &str) {
    let _ = Command::new("kill").args(["-s", signal, &pid.to_string()]).stderr(Stdio::null()).status();
}

/// Repeats `ask` until it returns a value.
#[track_caller]
pub fn eventually<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    xqos_testkit::find(what, PATIENCE, ask)
}

/// The text of a file from its start.
fn whole(mut file: File) -> String {
    let mut text = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut text)).expect("it can be read");
    String::from_utf8_lossy(&text).into_owned()
}

/// An X server of the test.
#[derive(Debug)]
pub struct Server {
    pub process: Running,
    pub display: String,
}

/// Locked for reading while a server starts, for writing while one ends. A server that ends frees its display number
/// and then removes the file of its socket, which may already be that of a server that has taken the number.
static DISPLAYS: RwLock<()> = RwLock::new(());

impl Drop for Server {
    fn drop(&mut self) {
        let _ending = DISPLAYS.write();
        self.process.end();
    }
}

impl Server {
    /// A server without xqos.
    pub fn stock() -> Server {
        Server::stock_with(&["-nolisten", "tcp"])
    }

    /// A server without xqos, with these arguments.
    pub fn stock_with(arguments: &[&str]) -> Server {
        Server::start(&mut Command::new("Xvfb"), arguments)
    }

    /// A server in which xqos fails on purpose, as described for the module's XQOS_TEST_FAULT.
    pub fn faulty(fault: &str) -> Server {
        Server::with_module(&[], Some(("XQOS_TEST_FAULT", fault)), &[])
    }

    /// A server with xqos, started by `xqos server` with these options.
    pub fn served(options: &[&str]) -> Server {
        Server::with_module(options, None, &[])
    }

    /// A server with xqos, attached through the server's libc calls.
    pub fn served_through_libc() -> Server {
        Server::with_module(&[], Some(("XQOS_HOST", "libc")), &[])
    }

    /// A server with xqos, with these arguments for the server itself.
    pub fn served_with(arguments: &[&str]) -> Server {
        Server::with_module(&[], None, arguments)
    }

    fn with_module(options: &[&str], environment: Option<(&str, &str)>, arguments: &[&str]) -> Server {
        let mut command = xqos();
        command.arg("server").args(options).arg("--module").arg(module()).args(["--", "Xvfb"]);
        command.envs(environment);
        Server::start(&mut command, &[&["-nolisten", "tcp"], arguments].concat())
    }

    fn start(command: &mut Command, arguments: &[&str]) -> Server {
        Server::ready(command, &[&["-noreset", "-screen", "0", "1024x768x24"], arguments].concat())
    }

    fn ready(command: &mut Command, arguments: &[&str]) -> Server {
        // The server writes its display number once it is ready for clients.
        command.args(["-displayfd", "1"]).args(arguments);
        // Use a file, because a pipe that is not read while the server runs could fill up.
        let said = File::from(memfd_create("said", MemfdFlags::CLOEXEC).expect("a file in memory"));
        command.stdout(Stdio::piped()).stderr(said.try_clone().expect("another descriptor"));
        let _starting = DISPLAYS.read();
        let mut process = Running::start(command);
        let mut number = String::new();
        let out = process.0.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut number).expect("the server writes its display");
        assert!(!number.is_empty(), "the server did not start: {command:?}, {:?}, {}", process.0.wait(), whole(said));
        Server { process, display: format!(":{}", number.trim()) }
    }

    /// Starts a server other than Xvfb; the command names it.
    pub fn start_other(command: &mut Command) -> Server {
        Server::ready(command, &["-nolisten", "tcp", "-noreset"])
    }

    /// The program under test, for this server.
    pub fn xqos(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(crate::PROGRAM);
        command.args(arguments);
        command
    }

    /// Any program, for this server.
    pub fn command(&self, program: &str) -> Command {
        let mut command = clean(program);
        command.env("DISPLAY", &self.display);
        command
    }

    /// Fixes the blocking time, so that long requests on a busy machine do not affect admission.
    pub fn fix_blocking(&self) {
        self.ask(&["policy", "--blocking", "0.1ms"]).with(0);
    }

    pub fn ask(&self, arguments: &[&str]) -> Ended {
        ended(&mut self.xqos(arguments))
    }

    /// The JSON output of a command.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let ended = self.ask(arguments).with(0);
        serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:#?}"))
    }

    /// Starts an X client, and waits until it is connected.
    pub fn client(&self, command: &[&str]) -> Running {
        let mut program = Command::new(command[0]);
        program.args(&command[1..]).env("DISPLAY", &self.display).stdout(Stdio::null()).stderr(Stdio::null());
        let client = Running::start(&mut program);
        eventually("the client is connected", || self.entry(client.pid()));
        client
    }

    /// The entry of a process in `xqos list --json`.
    pub fn entry(&self, pid: i32) -> Option<Value> {
        self.clients().into_iter().find(|client| client["pid"] == pid)
    }

    pub fn entry_called(&self, program: &str) -> Option<Value> {
        self.clients().into_iter().find(|client| client["program"] == program)
    }

    pub fn clients(&self) -> Vec<Value> {
        self.json(&["list", "--json"])["clients"].as_array().expect("an array").clone()
    }
}

/// The module under test: XQOS_MODULE, or else the module of the release build.
pub fn module() -> PathBuf {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../target/release/libxqos_module.so");
    let module = std::env::var_os("XQOS_MODULE").map_or_else(|| PathBuf::from(built), PathBuf::from);
    assert!(module.is_file(), "build the module first: cargo build --release ({} is not there)", module.display());
    module
}

/// Returns true if this process, and therefore its children, ignore a signal, as under nohup. The test is then skipped.
pub fn is_ignored(name: &str, signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap().trim();
    let is_ignored = (u64::from_str_radix(ignored, 16).unwrap() >> (signal - 1)) & 1 == 1;
    if is_ignored {
        xqos_testkit::left_out(format_args!("this process and its children ignore {name}, as under nohup"));
    }
    is_ignored
}
