// SPDX-License-Identifier: MIT
//! Clients as their sockets come and go in the server's epoll.

use super::Libc;
use super::output::Output;
use crate::host::Connection;
use crate::host::identity::Identity;
use crate::mechanism::engine::Engine;
use std::os::fd::RawFd;
use xqos_core::{ClientId, Rank, Time};

/// What a byte of a new client takes, picoseconds: its first requests are read by a few kilobytes.
const FIRST_COST_PS: u64 = 100_000;
/// Bytes of the setup's answer up to the mask of resource ids.
const SETUP_BYTES: usize = 20;

/// A connected client.
#[derive(Debug, Default)]
pub struct Known {
    pub descriptor: RawFd,
    /// What the server finds it by in an event.
    pub data: u64,
    /// It has data, or its last read did not say that there are none.
    pub pending: bool,
    pub held: bool,
    /// The server does not listen to it: somebody else has grabbed the server.
    pub muted: bool,
    /// Event bits besides EPOLLIN that the server was not told of.
    pub saved: u32,
    pub watched: Option<Rank>,
    pub arrived: Option<Time>,
    /// When it closed its connection, if it did.
    pub hung_up_at: Time,
    pub is_queued: bool,
    pub is_swapped: bool,
    /// Its last read began with a request.
    pub begins_request: bool,
    /// What it has sent up to now ends with a request.
    pub at_boundary: bool,
    /// Bytes of a request that are still to come.
    pub rest_bytes: usize,
    /// When its last read returned; none where that was measured.
    pub reading: Option<Time>,
    pub last_bytes: usize,
    /// What a byte takes, picoseconds.
    cost: u64,
    setup: Setup,
}

/// How far the connection setup is.
#[derive(Debug, Default)]
enum Setup {
    /// It has sent nothing.
    #[default]
    Awaited,
    /// The server's answer, as far as it was written.
    Answered(Vec<u8>),
    /// It is over, and the server writes messages.
    Done(Output),
}

impl Known {
    fn new(descriptor: RawFd, data: u64) -> Known {
        let (hung_up_at, cost) = (Time::NEVER, FIRST_COST_PS);
        Known { descriptor, data, hung_up_at, cost, ..Known::default() }
    }

    /// Whether the server could serve it. A connection that is being set up is never held.
    pub fn is_ready(&self) -> bool {
        self.pending && !self.muted && (!self.held || !self.is_set_up())
    }

    /// The epoll told this of it.
    pub fn has(&mut self, bits: u32) {
        self.pending |= bits & libc::EPOLLIN as u32 != 0;
        self.saved |= bits & !(libc::EPOLLIN as u32);
        if bits & (libc::EPOLLERR as u32) != 0 {
            self.pending = false;
        }
    }

    /// What the bytes of its last read took.
    pub fn measure(&mut self, now: Time) {
        let Some(began) = self.reading.take() else { return };
        let bytes = std::mem::take(&mut self.last_bytes) as u64;
        let Some(cost) = now.since(began).saturating_mul(1000).checked_div(bytes) else { return };
        // Up at once, for a chunk that takes too long is what others wait for; but one hiccup is not believed.
        let cost = cost.clamp(1, self.cost.saturating_mul(4));
        self.cost = if cost > self.cost { cost } else { self.cost.saturating_mul(4).saturating_add(cost) / 5 + 1 };
    }

    /// How many bytes take this time.
    pub fn bytes_in(&self, ns: u64) -> usize {
        let bytes = ns.saturating_mul(1000).checked_div(self.cost).unwrap_or(u64::MAX);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    pub fn is_set_up(&self) -> bool {
        matches!(self.setup, Setup::Done(_))
    }

    /// Its first byte has come: the byte order.
    pub fn begin_setup(&mut self, order: u8) {
        self.is_swapped = (order == b'B') != cfg!(target_endian = "big");
        if matches!(self.setup, Setup::Awaited) {
            self.setup = Setup::Answered(Vec::new());
        }
    }

    /// The server has written this to it. Its resource ids, once they are known: the first, and how many.
    fn set_up_by(&mut self, bytes: &[u8]) -> Option<(u32, u32)> {
        let Setup::Answered(answer) = &mut self.setup else { return None };
        let taken = bytes.len().min(SETUP_BYTES - answer.len());
        answer.extend_from_slice(&bytes[..taken]);
        if answer.len() < SETUP_BYTES {
            return None;
        }
        let word = |at: usize| u32::from_ne_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]]);
        let words = u16::from_ne_bytes([answer[6], answer[7]]);
        let words = if self.is_swapped { words.swap_bytes() } else { words };
        let (base, mask, is_success) = (word(12), word(16), answer[0] == 1);
        let mut output = Output::after((8 + 4 * usize::from(words)).saturating_sub(SETUP_BYTES));
        output.written(&bytes[taken..], self.is_swapped);
        self.setup = Setup::Done(output);
        // The other byte order has the mask's low bits at the top.
        let (base, mask) = if mask & 1 == 0 { (base.swap_bytes(), mask.swap_bytes()) } else { (base, mask) };
        is_success.then(|| (base, mask.saturating_add(1)))
    }
}

impl Libc {
    /// The client of a descriptor.
    pub fn of_descriptor(&self, fd: RawFd) -> Option<ClientId> {
        *self.by_descriptor.get(usize::try_from(fd).ok()?)?
    }

    fn free_id(&self) -> Option<ClientId> {
        let free = (1..ClientId::LIMIT).find(|&index| self.clients.get(index).is_none_or(Option::is_none));
        free.map(|index| ClientId(index as u16))
    }
}

impl Engine<Libc> {
    /// The server has added a client's socket to its epoll.
    pub fn added(&mut self, fd: RawFd, data: u64) {
        if let Some(id) = self.host.of_descriptor(fd) {
            self.gone(id);
        }
        let (Some(id), Ok(place)) = (self.host.free_id(), usize::try_from(fd)) else { return };
        let index = usize::from(id.0);
        let host = &mut self.host;
        if host.clients.len() <= index {
            host.clients.resize_with(index + 1, || None);
        }
        if host.by_descriptor.len() <= place {
            host.by_descriptor.resize(place + 1, None);
        }
        host.clients[index] = Some(Known::new(fd, data));
        host.by_descriptor[place] = Some(id);
        host.by_data.insert(data, id);
        let identity = Identity::of_peer(fd);
        self.connected(id, Connection { identity, base: 0, ids: 0, descriptor: fd as u32 });
    }

    /// It listens to it, or does not.
    pub fn changed(&mut self, fd: RawFd, data: u64, events: u32) {
        let Some(id) = self.host.of_descriptor(fd) else { return };
        let Some(known) = self.host.known_mut(id) else { return };
        let (before, muted) = (known.data, events & libc::EPOLLIN as u32 == 0);
        let was_muted = std::mem::replace(&mut known.muted, muted);
        known.data = data;
        self.host.muted = self.host.muted + usize::from(muted) - usize::from(was_muted);
        if before != data {
            self.host.by_data.remove(&before);
            self.host.by_data.insert(data, id);
        }
        self.see_grab();
    }

    /// The server has taken it out, or closed it.
    pub fn removed(&mut self, fd: RawFd) {
        if let Some(id) = self.host.of_descriptor(fd) {
            self.gone(id);
            self.see_grab();
        }
    }

    /// The server has written this to it.
    pub fn written(&mut self, id: ClientId, bytes: &[u8]) {
        let Some(known) = self.host.known_mut(id) else { return };
        if let Setup::Done(output) = &mut known.setup {
            let seen = output.written(bytes, known.is_swapped);
            if seen.exposed {
                self.noticed(id, false);
            }
            if seen.input {
                self.noticed(id, true);
            }
        } else if let Some((base, ids)) = known.set_up_by(bytes) {
            self.named(id, base, ids);
        }
    }

    /// Where the server listens to one client alone, and does not to others, that one has grabbed it.
    fn see_grab(&mut self) {
        let (muted, all) = (self.host.muted, self.host.by_data.len());
        let is_heard = |known: &Option<Known>| known.as_ref().is_some_and(|known| !known.muted);
        let heard = || self.host.clients.iter().position(is_heard).map(|at| ClientId(at as u16));
        let holder = if muted > 0 && muted + 1 == all { heard() } else { None };
        if holder != self.scheduler.grab() {
            match (holder, self.scheduler.grab()) {
                (Some(id), _) => self.grabbed(id, true),
                (None, Some(id)) => self.grabbed(id, false),
                (None, None) => {}
            }
        }
    }

    /// Everybody's edge that the server was not told of, for a server that goes on without us. Whom it does not listen to it
    /// is told of by the kernel, when it does so again.
    pub fn untold(&self) -> Vec<(RawFd, libc::epoll_event)> {
        let known = self.host.clients.iter().flatten();
        let event = |known: &Known| {
            let events = known.saved | if known.pending && !known.muted { libc::EPOLLIN as u32 } else { 0 };
            (known.descriptor, libc::epoll_event { events, u64: known.data })
        };
        known.map(event).filter(|(_, event)| event.events != 0).collect()
    }
}
