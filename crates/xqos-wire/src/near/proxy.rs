// SPDX-License-Identifier: MIT
//! A proxy that runs: its display, its cookie, its thread.

use super::cache::Caches;
use super::run::{Loop, Shared, Told};
use anyhow::{Context, Result, anyhow};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use xqos_near::Settings;
use xqos_near::setup::Cookie;
use xqos_wire::capture::relay::authority::{Authority, cookie, secret};
use xqos_wire::capture::relay::display::Display;
use xqos_wire::capture::relay::upstream::Upstream;

/// How long the last answers are waited for: they take a few round trips.
const SETTLE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Its drop ends it and removes its files.
#[derive(Debug)]
pub struct Proxy {
    display: Arc<Display>,
    authority: Authority,
    shared: Arc<Shared>,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Proxy {
    /// Begins to listen for clients of that display, `None` being DISPLAY's.
    pub fn start(name: Option<&str>, settings: Settings, caches: Caches) -> Result<Proxy> {
        let (upstream, first) = Upstream::find_connected(name)?;
        let display = Display::make(upstream.screen());
        let display = Arc::new(display.context("no display of our own can be made in /tmp/.X11-unix")?);
        let own = Cookie::magic(secret().context("no cookie can be made for our display")?);
        let authority = Authority::make(display.number(), None, &own.name, &own.data);
        let authority = authority.context("the cookie for our display cannot be written")?;
        let (name, data) = cookie(&upstream).unwrap_or_default();
        let settings = Settings { own_cookie: Some(own), server_cookie: Cookie { name, data }, ..settings };
        let (ours, theirs) = UnixStream::pair().context("the proxy cannot be started")?;
        let shared = Arc::new(Shared::default());
        let upstream = (upstream, first);
        let run = Loop::new(Arc::clone(&display), upstream, theirs, Arc::clone(&shared), settings, caches);
        let mut run = run.context("the proxy cannot be started")?;
        let thread = thread::Builder::new().name("near".to_owned()).spawn(move || run.run());
        let thread = Some(thread.context("the proxy cannot be started")?);
        Ok(Proxy { display, authority, shared, stop: Some(ours), thread })
    }

    /// What became of the connections that have ended.
    pub fn told(&self) -> Told {
        self.shared.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the X server is gone.
    pub fn has_lost_server(&self) -> bool {
        // A word to those who ask; nothing else depends on it.
        self.shared.has_lost_server.load(Ordering::Relaxed)
    }

    /// Waits until no connection is left, but not for ever: a program may have left others behind. What is to be verified is asked
    /// when a program has gone.
    pub fn settle(&self) {
        let end = Instant::now() + SETTLE;
        while self.open() > 0 && Instant::now() < end {
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Ends it.
    pub fn finish(mut self) -> Result<Told> {
        self.end().unwrap_or(Ok(())).context("the proxy broke off")?;
        Ok(self.told())
    }

    fn end(&mut self) -> Option<Result<()>> {
        self.stop = None;
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|_| Err(io::Error::other("its thread panicked"))).map_err(|error| anyhow!(error)))
    }

    /// For DISPLAY.
    pub fn display(&self) -> String {
        self.display.name()
    }

    /// For XAUTHORITY.
    pub fn authority(&self) -> &Path {
        self.authority.path()
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        // A number to look at; nothing else depends on it.
        self.shared.open.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.end();
    }
}
