// SPDX-License-Identifier: MIT
//! The loop of the relay: whoever is ready is served, and all that happens is recorded, in one order.
//!
//! Bytes go on before they are recorded, with the time at which they came. So the recording's own work delays nobody
//! but whoever comes next.

use super::connection::{Connection, PIECE_BYTES};
use super::display::Display;
use super::upstream::{Socket, Upstream};
use super::{Relayed, Settings};
use crate::background::Clock;
use crate::capture::conversation::Conversation;
use crate::capture::record::{Recorder, Watch};
use crate::capture::{Link, Record};
use crate::observe::Direction;
use rustix::event::PollFlags;
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use xqos_sys::ready;

/// After this time with nothing to do, what is buffered goes into the file.
const REST: Duration = Duration::from_millis(100);
/// Open files of ours that are not for clients.
const OWN_FILES: u64 = 64;
/// Where clients' ports begin, as Linux counts.
const FIRST_CLIENT_PORT: u16 = 32_768;

/// All that runs in the relay's thread.
#[derive(Debug)]
pub struct Loop {
    display: Arc<Display>,
    upstream: Upstream,
    open: Arc<AtomicUsize>,
    connections: Vec<Connection>,
    /// At once; each needs two open files.
    most_connections: usize,
    relayed: Relayed,
    clock: Clock,
}

impl Loop {
    /// `open` tells others how many connections there are.
    pub fn new(display: Arc<Display>, upstream: Upstream, open: Arc<AtomicUsize>) -> Loop {
        let (connections, relayed) = (Vec::new(), Relayed::default());
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most_connections = (files.saturating_sub(OWN_FILES) / 2) as usize;
        Loop { display, upstream, open, connections, most_connections, relayed, clock: Clock::new() }
    }

    /// Until `stop` is readable.
    pub fn run(mut self, file: File, settings: &Settings, stop: &UnixStream) -> io::Result<Relayed> {
        let mut watch = Watch::new(settings);
        let mut recorder = Recorder::new(file, Some((Link::RAW, "xqos relay")), settings, &mut watch)?;
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let ready = self.wait(stop, &mut recorder)?;
            let [stop, hidden, in_tmp, ends @ ..] = ready.as_slice() else { break };
            if !stop.is_empty() {
                break;
            }
            for (connection, ready) in self.connections.iter_mut().zip(ends.chunks_exact(2)) {
                let ready = [ready[0], ready[1]];
                connection.work(ready, &mut buffer, &self.clock, &mut self.relayed, &mut recorder);
            }
            self.close(&mut recorder);
            for (listener, ready) in [hidden, in_tmp].into_iter().enumerate() {
                if !ready.is_empty() {
                    self.accept(listener, &mut recorder);
                }
            }
            // A number to look at; nothing else depends on it.
            self.open.store(self.connections.len(), Ordering::Relaxed);
        }
        let recorded = recorder.finish();
        Ok(Relayed { recorded, ..self.relayed })
    }

    /// What the other end, the listeners and the clients' ends are ready for.
    fn wait(&self, stop: &UnixStream, recorder: &mut Recorder<'_>) -> io::Result<Vec<PollFlags>> {
        let has_room = self.connections.len() < self.most_connections;
        let listen = if has_room { PollFlags::IN } else { PollFlags::empty() };
        let mut wanted = vec![(stop.as_fd(), PollFlags::IN)];
        wanted.extend(self.display.listeners.iter().map(|listener| (listener.as_fd(), listen)));
        wanted.extend(self.connections.iter().flat_map(Connection::interests));
        let ready = ready(&wanted, Some(REST))?;
        if ready.iter().all(PollFlags::is_empty) {
            recorder.pass(self.clock.now_ns());
            recorder.flush();
        }
        Ok(ready)
    }

    /// Forgets those that are over; an end that could not be said is one that broke.
    fn close(&mut self, recorder: &mut Recorder<'_>) {
        let at_ns = self.clock.now_ns();
        self.connections.retain_mut(|connection| {
            let is_over = connection.is_over();
            if let Some(way) = connection.unsaid().filter(|_| is_over) {
                recorder.take(&connection.talk.reset(way, at_ns));
            }
            !is_over
        });
    }

    /// Takes a client that waits, and connects it.
    fn accept(&mut self, listener: usize, recorder: &mut Recorder<'_>) {
        // One that is gone already, or for which there is no file left, is as good as none.
        let Ok((client, pid)) = self.display.accept(listener) else { return };
        let (client, program) = (Socket { fd: client.into(), takes_files: true }, xqos_sys::program(pid));
        let at_ns = self.clock.now_ns();
        let Ok(server) = self.upstream.connect() else {
            // Dropped at once, as a server that is gone would.
            self.relayed.refused += 1;
            return;
        };
        let port = FIRST_CLIENT_PORT + (self.relayed.connections % u64::from(FIRST_CLIENT_PORT)) as u16;
        let mut talk = Conversation::new(port, self.upstream.port());
        let program = Some(program.as_str()).filter(|name| !name.is_empty());
        recorder.take(&Record { program, ..talk.open(Direction::Requests, at_ns) });
        let connected_ns = self.clock.now_ns();
        recorder.take(&talk.open(Direction::Replies, connected_ns));
        recorder.take(&talk.acknowledge(Direction::Replies, connected_ns, true));
        self.relayed.connections += 1;
        self.connections.push(Connection::new(client, server, talk));
    }
}
