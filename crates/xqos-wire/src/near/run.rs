// SPDX-License-Identifier: MIT
//! The loop of the proxy: all clients of a display, and the scout, in one thread.

use super::ahead::{Ahead, FONT_CONNECTIONS, Fonts};
use super::cache::{Cache, Caches};
use super::client::{Client, Progress};
use super::connect::{Connecting, Waiting, Whom};
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

/// How often it is looked whether a client was held long enough.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const PIECE_BYTES: usize = 64 << 10;
/// At once, as X servers allow by default.
const MAX_CLIENTS: usize = 256;

/// What others look at while the loop runs.
#[derive(Debug, Default)]
pub struct Shared {
    pub open: AtomicUsize,
    /// The X server is gone.
    pub has_lost_server: AtomicBool,
    /// Of connections that have ended.
    pub told: Mutex<Told>,
}

impl Shared {
    pub fn told(&self) -> Told {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The result of connections.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub report: Report,
    /// By request: its name, as the server's opcodes have it.
    pub names: Vec<((u8, u8), String)>,
}

/// All that runs in the proxy's thread.
#[derive(Debug)]
pub struct Loop {
    display: Arc<Display>,
    connecting: Connecting,
    shared: Arc<Shared>,
    settings: Settings,
    caches: Caches,
    /// What the one program asked at its last start, and now.
    memory: Memory,
    learned: Memory,
    ahead: Option<Ahead>,
    /// Connections for fonts, which end when those are here; and how many are not made yet.
    fonts: Vec<Fonts>,
    fonts_to_come: usize,
    store: Store,
    clients: Vec<Guest>,
    began: Instant,
}

/// A client, and what its program asked at its last start.
#[derive(Debug)]
struct Guest {
    client: Client,
    /// Where there is a file for each.
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
        let scout = if fonts.is_empty() { Scout::new } else { Scout::beside_others };
        let ahead = Some(Ahead::new(first.fd, scout(&settings.server_cookie, &memory)));
        let mut connecting = Connecting::new(upstream)?;
        fonts.into_iter().for_each(|fonts| connecting.begin(Whom::Fonts(fonts)));
        Ok(Loop {
            display,
            fonts_to_come: connecting.count(),
            connecting,
            shared,
            settings,
            caches,
            memory,
            learned: Memory::default(),
            ahead,
            fonts: Vec::new(),
            store: Store::default(),
            clients: Vec::new(),
            began: Instant::now(),
        })
    }

    /// Until `stop` is readable.
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
                self.hear_scout(&mut buffer);
            }
            for (fonts, _) in self.fonts.iter_mut().zip(fonts).filter(|(_, ready)| !ready.is_empty()) {
                fonts.ahead.hear(&mut buffer, &mut self.store);
            }
            if self.ahead.as_ref().is_none_or(|ahead| ahead.scout.has_loaded_fonts()) {
                self.fonts.iter_mut().for_each(|fonts| fonts.ask(&mut self.store));
            }
            self.fonts.retain(|fonts| !fonts.is_over());
            for (Guest { client, .. }, ready) in self.clients.iter_mut().zip(ends.chunks_exact(2)) {
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
            // A number to look at; nothing else depends on it.
            self.shared.open.store(self.clients.len() + self.connecting.count(), Ordering::Relaxed);
        }
        self.end();
        Ok(())
    }

    /// What each is ready for: the other end, connections that were made, listeners, connections for fonts, the clients' ends and
    /// the scout.
    fn wait(&mut self, stop: &UnixStream) -> io::Result<Vec<PollFlags>> {
        let is_holding = self.clients.iter().any(|guest| guest.client.is_holding());
        let listen =
            if self.clients.len() + self.connecting.count() < MAX_CLIENTS { PollFlags::IN } else { PollFlags::empty() };
        let mut wanted = vec![(stop.as_fd(), PollFlags::IN), (self.connecting.told(), PollFlags::IN)];
        wanted.extend(self.display.listeners.iter().map(|listener| (listener.as_fd(), listen)));
        wanted.extend(self.fonts.iter_mut().map(|fonts| fonts.ahead.interest()));
        wanted.extend(self.clients.iter_mut().flat_map(|guest| guest.client.interests()));
        wanted.extend(self.ahead.iter_mut().map(Ahead::interest));
        ready(&wanted, is_holding.then_some(LOOK_AGAIN))
    }

    fn hear_scout(&mut self, buffer: &mut [u8]) {
        let Some(ahead) = &mut self.ahead else { return };
        ahead.hear(buffer, &mut self.store);
        if ahead.scout.has_ended() {
            // Without it nobody hears of changes, and nobody keeps the server from a reset.
            self.settings.passive = true;
            self.ahead = None;
            // A word to those who ask; nothing else depends on it.
            self.shared.has_lost_server.store(true, Ordering::Relaxed);
        }
    }

    fn let_go(&mut self) {
        let asking = || self.ahead.iter().chain(self.fonts.iter().map(|fonts| &fonts.ahead));
        let has_fonts = self.fonts_to_come == 0 && self.fonts.is_empty();
        let progress = Progress {
            is_ready: has_fonts && self.ahead.as_ref().is_none_or(|ahead| ahead.scout.is_ready()),
            last_heard: asking().map(|ahead| ahead.last_heard).max().unwrap_or(self.began),
        };
        let now_ns = self.began.elapsed().as_nanos() as u64;
        for Guest { client, own } in &mut self.clients {
            let memory = own.as_ref().map_or(&self.memory, |(_, memory)| memory);
            client.hold(progress, memory, now_ns, &mut self.store);
        }
    }

    /// Forgets those that are over.
    fn close(&mut self) {
        for Guest { client, .. } in &mut self.clients {
            client.near.remarks().iter().for_each(|line| note(line));
        }
        let (mut over, open) =
            std::mem::take(&mut self.clients).into_iter().partition::<Vec<_>, _>(|guest| guest.client.is_over());
        self.clients = open;
        over.iter_mut().for_each(|guest| self.conclude(guest));
    }

    fn conclude(&mut self, Guest { client, own }: &mut Guest) {
        if let Some(fault) = client.near.fault() {
            note(&fault.to_string());
        }
        match own {
            Some((cache, _)) if !client.near.memory().is_empty() => cache.write(client.near.memory()),
            Some(_) => {}
            None => self.learned.merge(client.near.memory()),
        }
        let mut told = self.shared.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.report.add(client.near.report());
        for &opcodes in client.near.report().by_request.keys() {
            if !told.names.iter().any(|(known, _)| *known == opcodes) {
                told.names.push((opcodes, self.store.opcodes.name(opcodes.0, opcodes.1).to_owned()));
            }
        }
    }

    /// Takes a client that waits, and begins to connect it.
    fn accept(&mut self, listener: usize) {
        match self.display.accept(listener) {
            Ok((program, pid)) => self.connecting.begin(Whom::Client(Waiting { program: program.into(), pid })),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                note("a client of another user was turned away");
            }
            // One that is gone already, or for which there is no file left, is as good as none.
            Err(_) => {}
        }
    }

    /// Serves the clients whose connections are made; one whose server was not reached is dropped, as by a server that is gone.
    fn take_connected(&mut self) {
        while let Some((whom, server)) = self.connecting.next() {
            match (whom, server) {
                (Whom::Client(Waiting { program, pid }), Some(server)) => {
                    let own = self.asked_before(pid);
                    let client = Client::new(program, server, Near::new(self.settings.clone()));
                    self.clients.push(Guest { client, own });
                }
                (Whom::Client(_), None) => {}
                (Whom::Fonts(fonts), server) => {
                    self.fonts_to_come -= 1;
                    let cookie = &self.settings.server_cookie;
                    self.fonts.extend(server.map(|server| Fonts::new(server, cookie, fonts)));
                }
            }
        }
    }

    /// What a program that connects asked at its last start, if it has a file of its own; it is asked now.
    fn asked_before(&mut self, pid: i32) -> Option<(Cache, Memory)> {
        let Caches::Each(display) = &self.caches else { return None };
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok().filter(|name| !name.trim().is_empty())?;
        let cache = Cache::of(display, name.trim().as_ref());
        let memory = cache.read();
        if let Some(ahead) = &mut self.ahead {
            ahead.scout.ask(&memory, &mut self.store);
            ahead.say();
        }
        Some((cache, memory))
    }

    fn end(&mut self) {
        for mut guest in std::mem::take(&mut self.clients) {
            guest.client.near.remarks().iter().for_each(|line| note(line));
            self.conclude(&mut guest);
        }
        if let (Caches::One(cache), false) = (&self.caches, self.learned.is_empty()) {
            cache.write(&self.learned);
        }
    }
}
