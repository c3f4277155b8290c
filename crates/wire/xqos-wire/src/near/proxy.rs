// SPDX-License-Identifier: MIT
//! A running proxy: its display, its cookie and its thread.

use super::cache::Caches;
use super::connect::connect;
use super::run::{Loop, ProxyReport, ProxyState};
use crate::lock;
use anyhow::{Context, Result};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};
use xqos_near::NearSettings;
use xqos_near::setup::Cookie;
use xqos_wire::background::Background;
use xqos_wire::relay::authority::{Authority, secret};
use xqos_wire::relay::display::Display;
use xqos_wire::relay::upstream::Upstream;

/// Maximum time to wait for the last replies, which take a few round trips.
const SETTLE: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A running proxy. Dropping it ends the proxy and removes its files.
#[derive(Debug)]
pub struct Proxy {
    // The order matters for drop: the files are removed only after the thread has ended.
    thread: Background<io::Result<()>>,
    display: Arc<Display>,
    authority: Authority,
    state: Arc<Mutex<ProxyState>>,
    waker: UnixStream,
}

impl Proxy {
    /// Starts listening for clients of the display `name`; `None` means that of the variable DISPLAY. A server that is
    /// not on this machine is reached later, so that a program can start meanwhile.
    pub fn start(name: Option<&str>, settings: NearSettings, caches: Caches) -> Result<Proxy> {
        let upstream = Upstream::named(name)?;
        let waits = upstream.is_local() || matches!(caches, Caches::Each(_));
        let first = waits.then(|| connect(&upstream)).transpose()?;
        let display = Display::make(upstream.display.screen);
        let display = Arc::new(display.context("cannot create the proxy's display in /tmp/.X11-unix")?);
        let own = Cookie::magic(secret().context("cannot create the cookie of the proxy's display")?);
        let authority = Authority::make(display.number, None, &own.name, &own.data);
        let authority = authority.context("cannot write the cookie of the proxy's display")?;
        let settings = NearSettings { own_cookie: Some(own), ..settings };
        let state = Arc::default();
        let run = Loop::new(Arc::clone(&display), (upstream, first), Arc::clone(&state), settings, caches);
        let start = |mut run: Loop| Ok((run.waker()?, Background::start("near", move |stop| run.run(&stop))?));
        let (waker, thread) = run.and_then(start).context("cannot start the proxy")?;
        Ok(Proxy { thread, display, authority, state, waker })
    }

    pub fn state(&self) -> MutexGuard<'_, ProxyState> {
        lock(&self.state)
    }

    /// Waits until the report includes the connections that programs have closed; these are verified after closing.
    /// Waits for at most [`SETTLE`], because the X server may not answer.
    pub fn settle(&self) {
        let (end, before) = (Instant::now() + SETTLE, self.state().passes);
        let is_settled = |state: &ProxyState| state.passes > before + 1 && state.waiting == 0;
        while !is_settled(&self.state()) && Instant::now() < end {
            // The first pass may have begun earlier; the second one notices what programs have closed so far.
            let _ = (&self.waker).write_all(&[0]);
            thread::sleep(POLL_INTERVAL);
        }
    }

    pub fn finish(self) -> Result<ProxyReport> {
        self.thread.finish().and_then(|ended| ended).context("the proxy failed")?;
        Ok(lock(&self.state).report.clone())
    }

    pub fn display(&self) -> String {
        self.display.name()
    }

    pub fn authority(&self) -> &Path {
        self.authority.path()
    }
}
