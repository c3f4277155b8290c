// SPDX-License-Identifier: MIT
//! The proxy's event loop: all clients of a display and the scout, in one thread.

use super::cache::{Cache, Caches};
use super::client::ClientSockets;
use super::connect::{Connected, Connecting, Pending, Purpose};
use super::profiles;
use super::scouts::{FONT_CONNECTIONS, Fonts, ScoutConnection};
use crate::lock;
use rustix::event::PollFlags;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use xqos_cli::output::note;
use xqos_near::scout::Source;
use xqos_near::{Near, NearReport, NearSettings, Questions, Scout, Store};
use xqos_sys::ready;
use xqos_wire::relay::RelayError;
use xqos_wire::relay::display::Display;
use xqos_wire::relay::upstream::Upstream;

/// Maximum time for which a question is held without any reply to the proxy's own queries.
const HOLD_IN_SILENCE: Duration = Duration::from_secs(4);
/// Maximum time for which a question is held. A question that is not held would probably wait for the same replies.
const HOLD_AT_MOST: Duration = Duration::from_secs(30);
/// Interval at which to check whether a question has been held long enough.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
const PIECE_BYTES: usize = 64 << 10;
/// Maximum number of simultaneous clients, the default of X servers.
const MAX_CLIENTS: usize = 256;

/// State that other threads read while the loop runs.
#[derive(Debug, Default)]
pub struct ProxyState {
    /// Number of open connections.
    pub open: usize,
    /// Number of connections that wait for the X server: being established, or closed by the program.
    pub waiting: usize,
    /// Number of times that the loop has looked at all connections.
    pub passes: u64,
    pub has_lost_server: bool,
    pub is_unreachable: bool,
    /// The report about connections that have ended.
    pub report: ProxyReport,
}

/// The combined result of connections that have ended.
#[derive(Clone, Debug, Default)]
pub struct ProxyReport {
    pub counts: NearReport,
    /// Names of requests by opcode; the server assigns the opcodes of extensions.
    pub names: Vec<((u8, u8), String)>,
    /// The questions of the program for which the proxy was started.
    pub questions: Questions,
}

#[derive(Debug)]
pub struct Loop {
    display: Arc<Display>,
    connecting: Connecting,
    state: Arc<Mutex<ProxyState>>,
    settings: NearSettings,
    caches: Caches,
    /// The queries of the program's last start, and those of this start.
    last_start: Arc<Questions>,
    learned: Questions,
    scout: Option<ScoutConnection>,
    /// `Some` until the server is reached: the queries that the scout sends then.
    early: Option<Vec<(Arc<Questions>, Source)>>,
    /// Profiles whose queries were sent.
    profiles: Vec<&'static str>,
    held_since: Option<Instant>,
    /// Open font connections, and the number of font connections that are still being established.
    fonts: Vec<Fonts>,
    fonts_to_come: usize,
    store: Store,
    clients: Vec<ProxiedClient>,
    began: Instant,
}

/// A client, and the name and file of its program, if each program has a separate file.
#[derive(Debug)]
struct ProxiedClient {
    client: ClientSockets,
    own: Option<(String, Cache)>,
}

impl Loop {
    /// `first` is the scout's connection, if the server has been reached already.
    pub fn new(
        display: Arc<Display>,
        (upstream, first): (Upstream, Option<Connected>),
        state: Arc<Mutex<ProxyState>>,
        settings: NearSettings,
        caches: Caches,
    ) -> io::Result<Loop> {
        let last_start = if let Caches::One(_, cache) = &caches { cache.read() } else { Questions::default() };
        let last_start = Arc::new(last_start);
        let mut all = Loop {
            display,
            connecting: Connecting::new(upstream)?,
            state,
            settings,
            caches,
            last_start: Arc::clone(&last_start),
            learned: Questions::default(),
            scout: None,
            early: Some(Vec::new()),
            profiles: Vec::new(),
            held_since: None,
            fonts: Vec::new(),
            fonts_to_come: 0,
            store: Store::default(),
            clients: Vec::new(),
            began: Instant::now(),
        };
        match first {
            Some(connected) => all.begin_scout(connected),
            None => _ = all.connecting.begin(Purpose::Scout),
        }
        if !last_start.is_empty() {
            all.ask_ahead(&last_start, false);
        }
        Ok(all)
    }

    pub fn waker(&self) -> io::Result<UnixStream> {
        self.connecting.waker()
    }

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
            self.go_on();
            self.close();
            if !connected.is_empty() {
                self.take_connected();
            }
            for (listener, ready) in [hidden, in_tmp].into_iter().enumerate() {
                if !ready.is_empty() {
                    self.accept(listener);
                }
            }
            let closing = self.clients.iter().filter(|proxied| proxied.client.program_is_gone).count();
            let (connecting, mut state) = (self.connecting.clients, lock(&self.state));
            (state.open, state.waiting) = (self.clients.len() + connecting, closing + connecting);
            state.passes += 1;
        }
        self.end();
        Ok(())
    }

    /// Polls, in this order: the stop socket, established connections, listeners, font connections, both ends of each
    /// client, and the scout.
    fn wait(&mut self, stop: &UnixStream) -> io::Result<Vec<PollFlags>> {
        let is_holding = self.clients.iter().any(|proxied| proxied.client.near.is_holding());
        let listen =
            if self.clients.len() + self.connecting.clients < MAX_CLIENTS { PollFlags::IN } else { PollFlags::empty() };
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
            lock(&self.state).has_lost_server = true;
        }
    }

    fn begin_scout(&mut self, Connected { socket, cookie }: Connected) {
        let mut scout = Scout::new(&cookie, &mut self.store);
        for (questions, source) in self.early.take().unwrap_or_default() {
            scout.ask(&questions, source, &mut self.store);
        }
        self.scout = Some(ScoutConnection::new(socket, scout));
    }

    /// Sends the queries that a program is likely to send, and those for fonts on connections of their own.
    fn ask_ahead(&mut self, questions: &Arc<Questions>, is_profile: bool) {
        let parts = questions.fonts(FONT_CONNECTIONS, |font| self.store.knows_font(font));
        let source = Source { is_profile, has_font_connections: !parts.is_empty() };
        match (&mut self.scout, &mut self.early) {
            (Some(scout), _) => {
                scout.state.ask(questions, source, &mut self.store);
                scout.send();
            }
            (None, Some(early)) => early.push((Arc::clone(questions), source)),
            (None, None) => return,
        }
        let begun = parts.into_iter().map(|part| self.connecting.begin(Purpose::Fonts(part)));
        self.fonts_to_come += begun.filter(|has_begun| *has_begun).count();
    }

    /// Answers held requests if the replies to our own queries have arrived. Does not wait for late or impossible ones.
    fn go_on(&mut self) {
        if let Some(scout) = &mut self.scout {
            scout.state.create_missing(&mut self.store);
            scout.send();
        }
        let is_connecting = self.early.is_some() || self.fonts_to_come > 0 || !self.fonts.is_empty();
        let is_ready = !is_connecting && self.scout.as_ref().is_none_or(|scout| scout.state.is_ready());
        let is_holding = self.clients.iter().any(|proxied| proxied.client.near.is_holding());
        self.held_since = self.held_since.or_else(|| Some(Instant::now())).filter(|_| is_holding);
        let last_heard = self.scout.iter().chain(self.fonts.iter().map(|fonts| &fonts.connection));
        let last_heard = last_heard.map(|scout| scout.last_heard).max();
        let is_late = self.held_since.is_some_and(|since| {
            let is_silent = since.max(last_heard.unwrap_or(since)).elapsed() > HOLD_IN_SILENCE;
            is_silent || since.elapsed() > HOLD_AT_MOST
        });
        if is_ready || is_late {
            self.store.expect_nothing();
        }
        let now_ns = self.began.elapsed().as_nanos() as u64;
        self.clients.iter_mut().for_each(|proxied| proxied.client.go_on(now_ns, &mut self.store));
    }

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
        let (program, cache) = match (own, &self.caches) {
            (Some((program, cache)), _) => (&program[..], Some(cache)),
            (None, Caches::One(program, _)) => (&program[..], None),
            (None, Caches::Each(_)) => ("", None),
        };
        let questions = client.near.questions(program, &self.store);
        match cache {
            Some(cache) if !questions.is_empty() => cache.write(&questions),
            Some(_) => {}
            None => self.learned.merge(&questions),
        }
        let report = &mut lock(&self.state).report;
        report.counts.add(client.near.report());
        for &opcodes in client.near.report().by_request.keys() {
            if !report.names.iter().any(|(known, _)| *known == opcodes) {
                report.names.push((opcodes, self.store.opcodes.names.request(opcodes.0, opcodes.1).to_owned()));
            }
        }
    }

    fn accept(&mut self, listener: usize) {
        match self.display.accept(listener) {
            Ok((program, pid)) => {
                let (own, questions) = self.likely_questions(pid);
                let pending = Pending { program: program.into(), own, questions };
                self.connecting.begin(Purpose::Client(pending.into()));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                note("a client of another user was refused");
            }
            // The client has already disconnected, or no descriptor is left for it.
            Err(_) => {}
        }
    }

    /// The queries that a client is likely to send: those of its program's last start, or else of its toolkit. The
    /// scout sends them now. If each program has its own file, also returns its name and file.
    fn likely_questions(&mut self, pid: i32) -> (Option<(String, Cache)>, Arc<Questions>) {
        let own = match &self.caches {
            Caches::One(..) => None,
            Caches::Each(display) => profiles::program(pid).map(|name| (name.clone(), Cache::of(display, &name))),
        };
        let last_start = own.as_ref().map_or_else(|| Arc::clone(&self.last_start), |(_, cache)| cache.read().into());
        if !last_start.is_empty() {
            if own.is_some() {
                self.ask_ahead(&last_start, false);
            }
            return (own, last_start);
        }
        let (name, profile) = profiles::of_process(pid).unwrap_or_default();
        let profile = Arc::new(profile);
        if !self.profiles.contains(&name) {
            self.profiles.push(name);
            self.ask_ahead(&profile, true);
        }
        (own, profile)
    }

    /// Starts serving clients that are now connected to the server. If the server could not be reached, the client is
    /// disconnected, as happens when a server exits.
    fn take_connected(&mut self) {
        while let Some((purpose, result)) = self.connecting.next() {
            match (purpose, result) {
                (Purpose::Scout, Ok(connected)) => self.begin_scout(connected),
                (Purpose::Scout | Purpose::Client(_), Err(error)) => self.fail(&error),
                (Purpose::Client(pending), Ok(Connected { socket, cookie })) => {
                    let Pending { program, own, questions } = *pending;
                    let mut near = Near::new(NearSettings { server_cookie: cookie, ..self.settings.clone() });
                    near.ask_ahead(&questions);
                    self.clients.push(ProxiedClient { client: ClientSockets::new(program, socket, near), own });
                }
                (Purpose::Fonts(fonts), result) => {
                    self.fonts_to_come -= 1;
                    self.fonts.extend(result.ok().map(|connected| Fonts::new(connected, fonts)));
                }
            }
        }
    }

    /// Reports that the server cannot be reached, unless it was reached before: clients notice that it has exited.
    fn fail(&mut self, error: &RelayError) {
        if self.early.take().is_some() {
            note(&error.to_string());
            let mut state = lock(&self.state);
            (state.is_unreachable, state.has_lost_server) = (true, true);
        }
    }

    fn end(&mut self) {
        for mut guest in std::mem::take(&mut self.clients) {
            guest.client.near.log_lines().iter().for_each(|line| note(line));
            self.conclude(&mut guest);
        }
        if let (Caches::One(_, cache), false) = (&self.caches, self.learned.is_empty()) {
            cache.write(&self.learned);
        }
        lock(&self.state).report.questions = std::mem::take(&mut self.learned);
    }
}
