// SPDX-License-Identifier: MIT
//! The proxy's event loop: all clients of a display and the scout, in one thread.

use super::cache::{Cache, Caches};
use super::client::{Client, ScoutProgress};
use super::connect::{Connecting, Pending, Purpose};
use super::scouts::{FONT_CONNECTIONS, Fonts, ScoutConnection};
use rustix::event::PollFlags;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use xqos_cli::output::note;
use xqos_near::{Memory, Near, Report, Scout, Settings, Store};
use xqos_sys::ready;
use xqos_wire::capture::relay::display::Display;
use xqos_wire::capture::relay::upstream::{Socket, Upstream};

/// Interval at which to check whether a client has been held long enough.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const PIECE_BYTES: usize = 64 << 10;
/// Maximum number of simultaneous clients, the default of X servers.
const MAX_CLIENTS: usize = 256;

/// State that other threads read while the loop runs.
#[derive(Debug, Default)]
pub struct Shared {
    pub open: AtomicUsize,
    /// Whether the connection to the X server is lost.
    pub has_lost_server: AtomicBool,
    /// The report about connections that have ended.
    pub report: Mutex<ProxyReport>,
}

impl Shared {
    pub fn report(&self) -> ProxyReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The combined result of connections that have ended.
#[derive(Clone, Debug, Default)]
pub struct ProxyReport {
    pub counts: Report,
    /// Names of requests by opcode; the server assigns the opcodes of extensions.
    pub names: Vec<((u8, u8), String)>,
}

/// The state of the proxy's thread.
#[derive(Debug)]
pub struct Loop {
    display: Arc<Display>,
    connecting: Connecting,
    shared: Arc<Shared>,
    settings: Settings,
    caches: Caches,
    /// The queries of the program's last start, and those of this start.
    memory: Memory,
    learned: Memory,
    scout: Option<ScoutConnection>,
    /// Open font connections, and the number of font connections that are still being established.
    fonts: Vec<Fonts>,
    fonts_to_come: usize,
    store: Store,
    clients: Vec<ProxiedClient>,
    began: Instant,
}

/// A client, and the queries of its program's last start.
#[derive(Debug)]
struct ProxiedClient {
    client: Client,
    /// `Some` if each program has a separate file.
    own: Option<(Cache, Memory)>,
}

impl Loop {
    pub fn new(
        display: Arc<Display>,
        (upstream, first): (Upstream, Socket),
        shared: Arc<Shared>,
        settings: Settings,
        caches: Caches,
    ) -> io::Result<Loop> {
        let memory = if let Caches::One(cache) = &caches { cache.read() } else { Memory::default() };
        let fonts = memory.fonts(FONT_CONNECTIONS);
        let new_scout = if fonts.is_empty() { Scout::new } else { Scout::with_font_connections };
        let scout = Some(ScoutConnection::new(first.fd, new_scout(&settings.server_cookie, &memory)));
        let mut connecting = Connecting::new(upstream)?;
        fonts.into_iter().for_each(|fonts| connecting.begin(Purpose::Fonts(fonts)));
        Ok(Loop {
            display,
            fonts_to_come: connecting.count(),
            connecting,
            shared,
            settings,
            caches,
            memory,
            learned: Memory::default(),
            scout,
            fonts: Vec::new(),
            store: Store::default(),
            clients: Vec::new(),
            began: Instant::now(),
        })
    }

    /// Runs until `stop` is readable.
    pub fn run(&mut self, stop: &UnixStream) -> io::Result<()> {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let ready = self.wait(stop)?;
            let [stop, connected, hidden, in_tmp, others @ ..] = ready.as_slice() else { break };
            if !stop.is_empty() {
                break;
            }
            let (fonts, others) = others.split_at(self.fonts.len());
            let (ends, scout) = others.split_at(2 * self.clients.len());
            if scout.iter().any(|ready| !ready.is_empty()) {
                self.receive_from_scout(&mut buffer);
            }
            for (fonts, _) in self.fonts.iter_mut().zip(fonts).filter(|(_, ready)| !ready.is_empty()) {
                fonts.connection.receive(&mut buffer, &mut self.store);
            }
            if self.scout.as_ref().is_none_or(|scout| scout.state.has_loaded_fonts()) {
                self.fonts.iter_mut().for_each(|fonts| fonts.ask(&mut self.store));
            }
            self.fonts.retain(|fonts| !fonts.is_over());
            for (ProxiedClient { client, .. }, ready) in self.clients.iter_mut().zip(ends.chunks_exact(2)) {
                if !ready[0].is_empty() || !ready[1].is_empty() {
                    let now_ns = self.began.elapsed().as_nanos() as u64;
                    client.work([ready[0], ready[1]], &mut buffer, now_ns, &mut self.store);
                }
            }
            self.let_go();
            self.close();
            if !connected.is_empty() {
                self.take_connected();
            }
            for (listener, ready) in [hidden, in_tmp].into_iter().enumerate() {
                if !ready.is_empty() {
                    self.accept(listener);
                }
            }
            // Relaxed: nothing else depends on this value.
            self.shared.open.store(self.clients.len() + self.connecting.count(), Ordering::Relaxed);
        }
        self.end();
        Ok(())
    }

    /// Polls, in this order: the stop socket, established connections, listeners, font connections, both ends of each
    /// client, and the scout.
    fn wait(&mut self, stop: &UnixStream) -> io::Result<Vec<PollFlags>> {
        let is_holding = self.clients.iter().any(|proxied| proxied.client.is_holding());
        let listen =
            if self.clients.len() + self.connecting.count() < MAX_CLIENTS { PollFlags::IN } else { PollFlags::empty() };
        let mut wanted = vec![(stop.as_fd(), PollFlags::IN), (self.connecting.wakeups(), PollFlags::IN)];
        wanted.extend(self.display.listeners.iter().map(|listener| (listener.as_fd(), listen)));
        wanted.extend(self.fonts.iter_mut().map(|fonts| fonts.connection.interest()));
        wanted.extend(self.clients.iter_mut().flat_map(|proxied| proxied.client.interests()));
        wanted.extend(self.scout.iter_mut().map(ScoutConnection::interest));
        ready(&wanted, is_holding.then_some(POLL_INTERVAL))
    }

    fn receive_from_scout(&mut self, buffer: &mut [u8]) {
        let Some(scout) = &mut self.scout else { return };
        scout.receive(buffer, &mut self.store);
        if scout.state.has_ended() {
            // Without the scout, no events report changes, and the server may reset when its last client disconnects.
            self.settings.passive = true;
            self.scout = None;
            // Relaxed: nothing else depends on this value.
            self.shared.has_lost_server.store(true, Ordering::Relaxed);
        }
    }

    fn let_go(&mut self) {
        let asking = || self.scout.iter().chain(self.fonts.iter().map(|fonts| &fonts.connection));
        let has_fonts = self.fonts_to_come == 0 && self.fonts.is_empty();
        let progress = ScoutProgress {
            is_ready: has_fonts && self.scout.as_ref().is_none_or(|scout| scout.state.is_ready()),
            last_heard: asking().map(|scout| scout.last_heard).max().unwrap_or(self.began),
        };
        let now_ns = self.began.elapsed().as_nanos() as u64;
        for ProxiedClient { client, own } in &mut self.clients {
            let memory = own.as_ref().map_or(&self.memory, |(_, memory)| memory);
            client.hold(progress, memory, now_ns, &mut self.store);
        }
    }

    /// Removes clients that have ended.
    fn close(&mut self) {
        for ProxiedClient { client, .. } in &mut self.clients {
            client.near.log_lines().iter().for_each(|line| note(line));
        }
        let (mut over, open) =
            std::mem::take(&mut self.clients).into_iter().partition::<Vec<_>, _>(|proxied| proxied.client.is_over());
        self.clients = open;
        over.iter_mut().for_each(|proxied| self.conclude(proxied));
    }

    fn conclude(&mut self, ProxiedClient { client, own }: &mut ProxiedClient) {
        if let Some(fault) = client.near.fault() {
            note(&fault.to_string());
        }
        match own {
            Some((cache, _)) if !client.near.memory().is_empty() => cache.write(client.near.memory()),
            Some(_) => {}
            None => self.learned.merge(client.near.memory()),
        }
        let mut report = self.shared.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.counts.add(client.near.report());
        for &opcodes in client.near.report().by_request.keys() {
            if !report.names.iter().any(|(known, _)| *known == opcodes) {
                report.names.push((opcodes, self.store.opcodes.name(opcodes.0, opcodes.1).to_owned()));
            }
        }
    }

    /// Accepts a client, and starts connecting it to the server.
    fn accept(&mut self, listener: usize) {
        match self.display.accept(listener) {
            Ok((program, pid)) => self.connecting.begin(Purpose::Client(Pending { program: program.into(), pid })),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                note("a client of another user was refused");
            }
            // The client has already disconnected, or no descriptor is left for it.
            Err(_) => {}
        }
    }

    /// Starts serving clients that are now connected to the server. If the server could not be reached, the client is
    /// disconnected, as happens when a server exits.
    fn take_connected(&mut self) {
        while let Some((purpose, server)) = self.connecting.next() {
            match (purpose, server) {
                (Purpose::Client(Pending { program, pid }), Some(server)) => {
                    let own = self.asked_before(pid);
                    let client = Client::new(program, server, Near::new(self.settings.clone()));
                    self.clients.push(ProxiedClient { client, own });
                }
                (Purpose::Client(_), None) => {}
                (Purpose::Fonts(fonts), server) => {
                    self.fonts_to_come -= 1;
                    let cookie = &self.settings.server_cookie;
                    self.fonts.extend(server.map(|server| Fonts::new(server, cookie, fonts)));
                }
            }
        }
    }

    /// The saved queries of the program that connects, if each program has its own file. The scout sends them now.
    fn asked_before(&mut self, pid: i32) -> Option<(Cache, Memory)> {
        let Caches::Each(display) = &self.caches else { return None };
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok().filter(|name| !name.trim().is_empty())?;
        let cache = Cache::of(display, name.trim().as_ref());
        let memory = cache.read();
        if let Some(scout) = &mut self.scout {
            scout.state.ask(&memory, &mut self.store);
            scout.send();
        }
        Some((cache, memory))
    }

    fn end(&mut self) {
        for mut guest in std::mem::take(&mut self.clients) {
            guest.client.near.log_lines().iter().for_each(|line| note(line));
            self.conclude(&mut guest);
        }
        if let (Caches::One(cache), false) = (&self.caches, self.learned.is_empty()) {
            cache.write(&self.learned);
        }
    }
}
