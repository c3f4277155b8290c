// SPDX-License-Identifier: MIT
//! The relay's loop: serves ready sockets and records all traffic in one order.
//!
//! Bytes are forwarded first and recorded afterwards, with their arrival time. Recording therefore delays only later
//! data.

use super::connection::{Accounting, PIECE_BYTES, RelayedConnection};
use super::display::Display;
use super::upstream::{Socket, Upstream};
use super::{RecordingSettings, Relayed};
use crate::background::Clock;
use crate::capture::conversation::Conversation;
use crate::capture::{Link, Record};
use crate::observe::Direction;
use crate::recording::{Recorder, Target};
use rustix::event::PollFlags;
use rustix::process::{Resource, getrlimit};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use xqos_sys::ready;

/// Idle time after which buffered data is written to the file.
const REST: Duration = Duration::from_millis(100);
/// Number of file descriptors reserved for uses other than clients.
const OWN_FILES: u64 = 64;
/// First client port in the capture: the first of Linux's ephemeral ports.
const FIRST_CLIENT_PORT: u16 = 32_768;

#[derive(Debug)]
pub struct Loop {
    display: Arc<Display>,
    upstream: Upstream,
    open: Arc<[AtomicUsize; 2]>,
    connections: Vec<RelayedConnection>,
    /// Maximum open connections; each needs two file descriptors.
    most_connections: usize,
    relayed: Relayed,
    clock: Clock,
}

impl Loop {
    /// `open` publishes the number of connections, and of those that the client has closed.
    pub fn new(display: Arc<Display>, upstream: Upstream, open: Arc<[AtomicUsize; 2]>) -> Loop {
        let (connections, relayed) = (Vec::new(), Relayed::default());
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most_connections = (files.saturating_sub(OWN_FILES) / 2) as usize;
        Loop { display, upstream, open, connections, most_connections, relayed, clock: Clock::new() }
    }

    /// Runs until `stop` is readable.
    pub fn run(mut self, target: Target, settings: &RecordingSettings, stop: &UnixStream) -> io::Result<Relayed> {
        let mut recorder = Recorder::new(target, Some((Link::RAW, "xqos relay")), settings)?;
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let ready = self.wait(stop, &mut recorder)?;
            let [stop, hidden, in_tmp, ends @ ..] = ready.as_slice() else { break };
            if !stop.is_empty() {
                break;
            }
            let mut accounting = Accounting { clock: self.clock, relayed: &mut self.relayed, recorder: &mut recorder };
            for (connection, ready) in self.connections.iter_mut().zip(ends.chunks_exact(2)) {
                connection.serve([ready[0], ready[1]], &mut buffer, &mut accounting);
            }
            self.close(&mut recorder);
            for (listener, ready) in [hidden, in_tmp].into_iter().enumerate() {
                if !ready.is_empty() {
                    self.accept(listener, &mut recorder);
                }
            }
            // Informational only; nothing else depends on it.
            self.open[0].store(self.connections.len(), Ordering::Relaxed);
            let closing = self.connections.iter().filter(|connection| connection.is_closing()).count();
            self.open[1].store(closing, Ordering::Relaxed);
        }
        let recorded = recorder.finish();
        Ok(Relayed { recorded, ..self.relayed })
    }

    /// Waits, and returns the poll results for `stop`, the listeners and the connections' sockets.
    fn wait(&self, stop: &UnixStream, recorder: &mut Recorder) -> io::Result<Vec<PollFlags>> {
        let has_room = self.connections.len() < self.most_connections;
        let listen = if has_room { PollFlags::IN } else { PollFlags::empty() };
        let mut wanted = vec![(stop.as_fd(), PollFlags::IN)];
        wanted.extend(self.display.listeners.iter().map(|listener| (listener.as_fd(), listen)));
        wanted.extend(self.connections.iter().flat_map(RelayedConnection::poll_events));
        let ready = ready(&wanted, Some(REST))?;
        if ready.iter().all(PollFlags::is_empty) {
            recorder.advance_to(self.clock.now_ns());
            recorder.flush();
        }
        Ok(ready)
    }

    /// Removes ended connections. If the end of a direction was not recorded, records a reset.
    fn close(&mut self, recorder: &mut Recorder) {
        let at_ns = self.clock.now_ns();
        self.connections.retain_mut(|connection| {
            let is_over = connection.is_over();
            if let Some(direction) = connection.unrecorded_end().filter(|_| is_over) {
                recorder.take(&connection.packets.reset(direction, at_ns));
            }
            !is_over
        });
    }

    fn accept(&mut self, listener: usize, recorder: &mut Recorder) {
        // Ignore a client that has already disconnected, or for which no file descriptor is left.
        let Ok((client, pid)) = self.display.accept(listener) else { return };
        let (client, program) = (Socket { fd: client.into(), takes_files: true }, xqos_sys::program(pid));
        let at_ns = self.clock.now_ns();
        let Ok(server) = self.upstream.connect() else {
            // Disconnect the client, as if its server had exited.
            self.relayed.refused += 1;
            return;
        };
        let port = client_port(self.relayed.connections, |port| {
            self.connections.iter().any(|connection| connection.packets.ports[0] == port)
        });
        let mut packets = Conversation::new(port, self.upstream.port());
        let program = Some(program.as_str()).filter(|name| !name.is_empty());
        recorder.take(&Record { program, ..packets.open(Direction::Requests, at_ns) });
        let connected_ns = self.clock.now_ns();
        recorder.take(&packets.open(Direction::Replies, connected_ns));
        recorder.take(&packets.acknowledge(Direction::Replies, connected_ns, true));
        self.relayed.connections += 1;
        self.connections.push(RelayedConnection::new(client, server, packets));
    }
}

/// The port of the next client in the capture. Ports are reused, but not while a connection has them.
fn client_port(connections: u64, is_used: impl Fn(u16) -> bool) -> u16 {
    let port = |number: u64| FIRST_CLIENT_PORT + (number % u64::from(FIRST_CLIENT_PORT)) as u16;
    let mut ports = (connections..connections + u64::from(FIRST_CLIENT_PORT)).map(port);
    ports.find(|&port| !is_used(port)).unwrap_or(FIRST_CLIENT_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_open_connections_have_the_same_port() {
        assert_eq!([0, 1, 32_767].map(|number| client_port(number, |_| false)), [32_768, 32_769, 65_535]);
        let is_used = |port: u16| port < 32_770;
        assert_eq!([0, 1, 32_768, 32_769, 32_770].map(|number| client_port(number, is_used)), [32_770; 5]);
        assert_eq!(client_port(32_767, |port| port == 65_535), 32_768);
    }
}
