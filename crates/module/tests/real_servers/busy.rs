//! Clients that always have more to do.

use crate::fixture::{Fixture, wait_for};
use crate::wire::{Canvas, Wire};
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

/// Requests in one write. The kernel counts what waits in a socket by writes, so that many small requests in each make a
/// stock that lasts for tenths of a second, even where this process does not get a processor for a while.
const AT_ONCE: u64 = 16;

/// A client that fills a pixmap until it is dropped; a request takes the server about a tenth of a millisecond.
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

    /// On a connection that was set up for it.
    pub fn start_on(wire: Wire) -> Busy {
        Busy::start_with(wire, &[])
    }

    /// With requests of XQOS before the first of its own. They are not waited for: with them it may be held back.
    pub fn start_with(mut wire: Wire, first: &[Request]) -> Busy {
        let (base, canvas) = (wire.base, wire.canvas(500, 500));
        for &request in first {
            let request = wire.xqos_bytes(request);
            wire.send(&request);
        }
        let stream = wire.into_stream();
        let mut writer = stream.try_clone().unwrap();
        writer.set_write_timeout(None).unwrap();
        let sent = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&sent);
        let requests = Canvas::fill(&canvas, 2).repeat(AT_ONCE as usize);
        let thread = std::thread::spawn(move || {
            while writer.write_all(&requests).is_ok() {
                count.fetch_add(AT_ONCE, Ordering::Relaxed);
            }
        });
        Busy { base, stream, sent, thread: Some(thread) }
    }

    /// Requests that found room on their way; it stands still soon after the server no longer reads.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Goes away at once, with all that is not served yet.
    pub fn end(self) {}
}

impl Drop for Busy {
    fn drop(&mut self) {
        // Errors say that the server closed it before.
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

    /// So many of them, all connected and drawing.
    pub fn start_many(fixture: &Fixture, test: &str, count: usize) -> Vec<X11perf> {
        let control = fixture.control().unwrap();
        let all: Vec<X11perf> = (0..count).map(|_| X11perf::start(fixture, test)).collect();
        for perf in &all {
            perf.entry_when_busy(&control);
        }
        all
    }

    /// Its entry in the list, once it draws.
    pub fn entry_when_busy(&self, control: &Control) -> ClientEntry {
        let mut found = None;
        wait_for("x11perf draws", Duration::from_secs(20), || {
            let clients = control.clients().unwrap().clients;
            found = clients.into_iter().find(|entry| entry.pid == self.0.pid() as i32 && entry.requests > 200);
            found.is_some()
        });
        found.unwrap()
    }

    pub fn is_running(&mut self) -> bool {
        self.0.is_running()
    }

    /// SIGKILL, in the midst of whatever it does.
    pub fn kill(mut self) {
        self.0.pipes().kill().unwrap();
    }
}

/// Share of the server's time that a client got in so long a time from now on.
pub fn share(control: &Control, base: u32, during: Duration) -> f64 {
    shares(control, &[base], during)[0]
}

/// The same for several clients, at the same time.
pub fn shares(control: &Control, bases: &[u32], during: Duration) -> Vec<f64> {
    let look = || {
        let list = control.clients().unwrap();
        let of = |base| list.clients.iter().find(|entry| entry.client == base).expect("it is connected").server_time_ns;
        (list.now_ns, bases.iter().map(|&base| of(base)).collect::<Vec<u64>>())
    };
    let (from, before) = look();
    std::thread::sleep(during);
    let (to, after) = look();
    before.iter().zip(after).map(|(before, after)| (after - before) as f64 / (to - from) as f64).collect()
}
