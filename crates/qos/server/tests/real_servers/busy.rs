// SPDX-License-Identifier: MIT
//! Clients that keep the server busy.

use crate::decisions::{Decisions, Slice};
use crate::fixture::{Fixture, SOON, wait_for};
use crate::wire::{Canvas, Wire, opcode};
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use xqos_abi::{ClientEntry, Request};
use xqos_client::Control;
use xqos_lab::process::Owned;

/// The number of requests in one write. The kernel limits the number of writes that a socket can hold. With several
/// small requests in each write, the server stays busy for tenths of a second even if this process does not run.
const AT_ONCE: u64 = 16;

/// The number of writes before a client counts as started. They fit into the socket, and keep the server busy for tens
/// of milliseconds.
const FIRST_WRITES: u64 = 32;

/// A client that fills a pixmap until it is dropped. Each request takes about 0.1 ms.
#[derive(Debug)]
pub struct Busy {
    pub base: u32,
    stream: UnixStream,
    sent: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Busy {
    pub fn start(fixture: &Fixture) -> Busy {
        Busy::start_on(fixture.native())
    }

    /// Uses an existing connection.
    pub fn start_on(wire: Wire) -> Busy {
        Busy::start_with(wire, &[])
    }

    /// Sends XQOS requests before the drawing requests. Does not wait until the XQOS requests are executed, because
    /// they may hold the client back.
    pub fn start_with(mut wire: Wire, first: &[Request]) -> Busy {
        let (base, canvas) = (wire.base, wire.canvas(500, 500));
        for &request in first {
            wire.send_xqos(request);
        }
        let stream = wire.into_stream();
        let mut writer = stream.try_clone().unwrap();
        writer.set_write_timeout(None).unwrap();
        let requests = Canvas::fill(&canvas, 2).repeat(AT_ONCE as usize);
        (0..FIRST_WRITES).for_each(|_| writer.write_all(&requests).unwrap());
        let sent = Arc::new(AtomicU64::new(FIRST_WRITES * AT_ONCE));
        let count = Arc::clone(&sent);
        let thread = std::thread::spawn(move || {
            while writer.write_all(&requests).is_ok() {
                count.fetch_add(AT_ONCE, Ordering::Relaxed);
            }
        });
        Busy { base, stream, sent, thread: Some(thread) }
    }

    /// The number of requests written. It stops growing soon after the server stops reading.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Disconnects immediately, while requests are still unserved.
    pub fn end(self) {}
}

impl Drop for Busy {
    fn drop(&mut self) {
        // An error means that the server has already closed the connection.
        let _ = self.stream.shutdown(Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// A real x11perf that runs one test until it is dropped.
#[derive(Debug)]
pub struct X11perf(Owned);

impl X11perf {
    pub fn start(fixture: &Fixture, test: &str) -> X11perf {
        let mut command = Command::new("x11perf");
        command.args(["-display", fixture.display(), &format!("-{test}"), "-reps", "1000", "-repeat", "1000000"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        X11perf(Owned::start(&mut command, Duration::from_millis(1500)).unwrap())
    }

    /// Starts `count` processes and waits until all of them draw.
    pub fn start_many(fixture: &Fixture, test: &str, count: usize) -> Vec<X11perf> {
        let control = fixture.control().unwrap();
        let all: Vec<X11perf> = (0..count).map(|_| X11perf::start(fixture, test)).collect();
        for perf in &all {
            perf.entry_when_busy(&control);
        }
        all
    }

    /// The client's entry in the list, once it draws.
    pub fn entry_when_busy(&self, control: &Control) -> ClientEntry {
        let mut found = None;
        wait_for("x11perf draws", SOON, || {
            let clients = control.clients().unwrap().clients;
            found = clients.into_iter().find(|entry| entry.pid == self.0.pid() as i32 && entry.requests > 200);
            found.is_some()
        });
        found.unwrap()
    }

    pub fn is_running(&mut self) -> bool {
        self.0.is_running()
    }

    /// Kills the process with SIGKILL.
    pub fn kill(mut self) {
        self.0.pipes().kill().unwrap();
    }
}

/// Grabs the server while `send` queues requests. The clients then stay busy from the ungrab until the last request,
/// even if this process rarely runs. Until then, the caller must keep the returned connection and send nothing on it,
/// because requests on it would be served in between.
pub fn send_before_any_is_served(fixture: &Fixture, send: impl FnOnce()) -> Wire {
    let mut holder = fixture.native();
    holder.set_grab(true);
    send();
    let ungrab = holder.message(opcode::UNGRAB_SERVER, 0).finish();
    holder.send_many(&ungrab, 1);
    holder
}

/// A property of the root window that no other client uses (CUT_BUFFER0), and its type.
const SIGNED: u32 = 9;
const STRING: u32 = 31;

/// A client that sends a known number of requests. Each takes about 0.05 ms.
#[derive(Debug)]
pub struct Worker {
    pub wire: Wire,
    canvas: Canvas,
}

impl Worker {
    /// The number of requests that fit into a socket while the server does not read from it.
    pub const MOST: u16 = 5000;

    pub fn start(fixture: &Fixture) -> Worker {
        let mut wire = fixture.native();
        wire.set_patience(Duration::from_secs(120));
        let canvas = wire.canvas(500, 500);
        Worker { wire, canvas }
    }

    pub fn base(&self) -> u32 {
        self.wire.base
    }

    /// Sends this many requests.
    pub fn send(&mut self, requests: u16) {
        self.wire.send_many(&self.canvas.fill(1).repeat(requests.into()), requests);
    }

    /// Sends requests, every fiftieth of which appends this letter to a property of the root window. The property shows
    /// the order in which they were executed, on any server.
    pub fn send_and_sign(&mut self, letter: u8, letters: u16) {
        let signed = [self.canvas.fill(1).repeat(49), self.signature(letter)].concat();
        self.wire.send_many(&signed.repeat(letters.into()), 50 * letters);
    }

    /// Sends one request that appends this letter.
    pub fn sign(&mut self, letter: u8) {
        let signature = self.signature(letter);
        self.wire.send(&signature);
    }

    fn signature(&self, letter: u8) -> Vec<u8> {
        const APPEND: u8 = 2;
        let add = self.wire.message(opcode::CHANGE_PROPERTY, APPEND).u32(self.wire.root).u32(SIGNED).u32(STRING);
        add.raw(&[8, 0, 0, 0]).u32(1).raw(&[letter]).finish()
    }

    /// Reads and deletes the property with the letters, in the order in which they were appended.
    pub fn take_signatures(&mut self) -> String {
        let request = self.wire.message(opcode::GET_PROPERTY, 1).u32(self.wire.root).u32(SIGNED);
        let reply = self.wire.ask(&request.u32(STRING).u32(0).u32(1000).finish()).unwrap();
        String::from_utf8_lossy(&reply[32..][..self.wire.u32_in(&reply, 16) as usize]).into_owned()
    }

    /// Waits until all requests are executed.
    pub fn finish(&mut self) {
        self.wire.sync();
    }
}

/// Makes all workers send this many requests before any is served. Returns the slices until all are executed.
pub fn slices_of(fixture: &Fixture, workers: &mut [Worker], requests: u16) -> Vec<Slice> {
    let decisions = Decisions::of(fixture);
    let _holder = send_before_any_is_served(fixture, || workers.iter_mut().for_each(|worker| worker.send(requests)));
    workers.iter_mut().for_each(Worker::finish);
    decisions.end()
}
