// SPDX-License-Identifier: MIT
//! Handles clients whose sockets enter or leave the server's epoll.

use super::Libc;
use super::output::Output;
use crate::host::kernel::now;
use crate::host::peer;
use crate::mechanism::engine::Engine;
use crate::mechanism::host::NewConnection;
use std::os::fd::RawFd;
use xqos_core::{ClientId, Rank, Time};
use xqos_x11::ByteOrder;
use xqos_x11::length::{Length, Phase, length};

/// The cost assumed for a new client, in picoseconds per byte. At this cost, a first read returns a few kilobytes.
const FIRST_COST_PS: u64 = 100_000;
/// The length of the setup reply up to the mask of resource ids.
const SETUP_BYTES: usize = 20;

#[derive(Debug, Default)]
pub struct LibcClient {
    pub descriptor: RawFd,
    /// The data by which the server identifies the client in an event.
    pub data: u64,
    /// The client has data, or its last read did not reach the end of the data.
    pub pending: bool,
    pub held: bool,
    /// The server does not listen to this client, because another client has grabbed the server.
    pub muted: bool,
    /// Event bits other than EPOLLIN that the server has not received yet.
    pub saved: u32,
    pub watched: Option<Rank>,
    pub arrived: Option<Time>,
    /// The time at which the client closed its connection; 0 while it is open.
    pub hung_up_at: Time,
    pub is_queued: bool,
    pub order: ByteOrder,
    /// The data of the client's last read began at the start of a request.
    pub begins_request: bool,
    /// The data read so far end with a complete request.
    pub at_boundary: bool,
    pub rest_bytes: usize,
    /// When the last read returned; `None` once its cost is measured.
    pub reading: Option<Time>,
    pub last_bytes: usize,
    /// The cost of the client's bytes in picoseconds per byte.
    cost: u64,
    setup: Setup,
}

#[derive(Debug, Default)]
enum Setup {
    /// The client has sent nothing yet.
    #[default]
    Awaited,
    /// The server's setup reply, as far as it has been written.
    Answered(Vec<u8>),
    /// The setup is complete, and the server writes messages.
    Done(Output),
}

impl LibcClient {
    fn new(descriptor: RawFd, data: u64) -> LibcClient {
        let (hung_up_at, cost) = (Time::NEVER, FIRST_COST_PS);
        LibcClient { descriptor, data, hung_up_at, cost, ..LibcClient::default() }
    }

    /// Returns true if the server could serve the client. A connection that is being set up is never held back.
    pub fn is_ready(&self) -> bool {
        self.pending && !self.muted && (!self.held || !self.is_set_up())
    }

    /// Records epoll events of this client.
    pub fn has(&mut self, bits: u32) {
        self.pending |= bits & libc::EPOLLIN as u32 != 0;
        self.saved |= bits & !(libc::EPOLLIN as u32);
        if bits & (libc::EPOLLERR as u32) != 0 {
            self.pending = false;
        }
    }

    /// Updates the cost per byte from the time since the last read.
    pub fn measure(&mut self, now: Time) {
        let Some(began) = self.reading.take() else { return };
        let bytes = std::mem::take(&mut self.last_bytes) as u64;
        let Some(cost) = now.since(began).saturating_mul(1000).checked_div(bytes) else { return };
        // Raise the estimate quickly, because other clients wait while a chunk takes too long. Raise it at most
        // fourfold, because a single read may have been delayed.
        let cost = cost.clamp(1, self.cost.saturating_mul(4));
        self.cost = if cost > self.cost { cost } else { self.cost.saturating_mul(4).saturating_add(cost) / 5 + 1 };
    }

    /// The estimated number of bytes that can be served in this time.
    pub fn bytes_in(&self, ns: u64) -> usize {
        let bytes = ns.saturating_mul(1000).checked_div(self.cost).unwrap_or(u64::MAX);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    pub fn is_set_up(&self) -> bool {
        matches!(self.setup, Setup::Done(_))
    }

    /// Reads the byte order from the client's first byte, but not from later pieces of its setup.
    pub fn begin_setup(&mut self, first: u8) {
        if !matches!(self.setup, Setup::Awaited) {
            return;
        }
        // With r or R instead, the server treats the client as one on another machine.
        let letter = match first {
            b'r' => b'l',
            b'R' => b'B',
            letter => letter,
        };
        self.order = ByteOrder::of_setup(letter).unwrap_or(ByteOrder::NATIVE);
        self.setup = Setup::Answered(Vec::new());
    }

    /// Parses the server's setup reply. Returns the client's first resource id and number of ids once they are known.
    fn set_up_by(&mut self, bytes: &[u8]) -> Option<(u32, u32)> {
        let Setup::Answered(answer) = &mut self.setup else { return None };
        let taken = bytes.len().min(SETUP_BYTES - answer.len());
        answer.extend_from_slice(&bytes[..taken]);
        if answer.len() < SETUP_BYTES {
            return None;
        }
        let Length::Known(length) = length(Phase::SetupReply, self.order, answer) else { return None };
        let (base, mask, is_success) = (self.order.u32(answer, 12)?, self.order.u32(answer, 16)?, answer[0] == 1);
        let mut output = Output::after((length as usize).saturating_sub(SETUP_BYTES), self.order);
        output.written(&bytes[taken..]);
        self.setup = Setup::Done(output);
        is_success.then(|| (base, mask.saturating_add(1)))
    }
}

impl Libc {
    pub fn of_descriptor(&self, fd: RawFd) -> Option<ClientId> {
        *self.by_descriptor.get(usize::try_from(fd).ok()?)?
    }

    fn free_id(&self) -> Option<ClientId> {
        let free = (1..ClientId::LIMIT).find(|&index| self.clients.get(index).is_none_or(Option::is_none));
        free.map(|index| ClientId(index as u16))
    }
}

/// The server has added a client's socket to its epoll.
pub fn added(engine: &mut Engine<Libc>, fd: RawFd, data: u64) {
    if let Some(id) = engine.host.of_descriptor(fd) {
        forget(engine, id);
    }
    let (Some(id), Ok(place)) = (engine.host.free_id(), usize::try_from(fd)) else { return };
    let index = usize::from(id.0);
    let host = &mut engine.host;
    if host.clients.len() <= index {
        host.clients.resize_with(index + 1, || None);
    }
    if host.by_descriptor.len() <= place {
        host.by_descriptor.resize(place + 1, None);
    }
    host.clients[index] = Some(LibcClient::new(fd, data));
    host.by_descriptor[place] = Some(id);
    host.by_data.insert(data, id);
    let identity = peer::identity_of(fd);
    engine.at(now()).connected(id, NewConnection { identity, base: 0, ids: 0, descriptor: fd as u32 });
}

/// The server listens to the client again, or stops listening to it.
pub fn changed(engine: &mut Engine<Libc>, fd: RawFd, data: u64, events: u32) {
    let Some(id) = engine.host.of_descriptor(fd) else { return };
    let Some(known) = engine.host.known_mut(id) else { return };
    let (before, muted) = (known.data, events & libc::EPOLLIN as u32 == 0);
    let was_muted = std::mem::replace(&mut known.muted, muted);
    known.data = data;
    engine.host.muted = engine.host.muted + usize::from(muted) - usize::from(was_muted);
    if before != data {
        engine.host.by_data.remove(&before);
        engine.host.by_data.insert(data, id);
    }
    infer_grab(engine);
}

/// The server has removed the client's socket or closed it.
pub fn removed(engine: &mut Engine<Libc>, fd: RawFd) {
    if let Some(id) = engine.host.of_descriptor(fd) {
        forget(engine, id);
        infer_grab(engine);
    }
}

pub fn written(engine: &mut Engine<Libc>, id: ClientId, bytes: &[u8]) {
    let Some(known) = engine.host.known_mut(id) else { return };
    if let Setup::Done(output) = &mut known.setup {
        let seen = output.written(bytes);
        if seen.exposed {
            engine.at(now()).input_or_expose(id, false);
        }
        if seen.input {
            engine.at(now()).input_or_expose(id, true);
        }
    } else if let Some((base, ids)) = known.set_up_by(bytes) {
        let fd = known.descriptor;
        engine.at(now()).ids_known(id, base, ids);
        if let Some(identity) = engine.identity(id) {
            engine.established(id, peer::established(identity, fd, None));
        }
    }
}

/// Infers a server grab if the server listens to only one of several clients.
fn infer_grab(engine: &mut Engine<Libc>) {
    let (muted, all) = (engine.host.muted, engine.host.by_data.len());
    let is_heard = |known: &Option<LibcClient>| known.as_ref().is_some_and(|known| !known.muted);
    let heard = || engine.host.clients.iter().position(is_heard).map(|at| ClientId(at as u16));
    let holder = if muted > 0 && muted + 1 == all { heard() } else { None };
    if holder != engine.scheduler.grab() {
        match (holder, engine.scheduler.grab()) {
            (Some(id), _) => engine.at(now()).grabbed(id, true),
            (None, Some(id)) => engine.at(now()).grabbed(id, false),
            (None, None) => {}
        }
    }
}

/// The events that the server has not received yet, for delivery when it continues without xqos. Clients that the
/// server does not listen to are excluded: the kernel reports their data when the server listens again.
pub fn pending_events(engine: &Engine<Libc>) -> Vec<(RawFd, libc::epoll_event)> {
    let known = engine.host.clients.iter().flatten();
    let event = |known: &LibcClient| {
        let events = known.saved | if known.pending && !known.muted { libc::EPOLLIN as u32 } else { 0 };
        (known.descriptor, libc::epoll_event { events, u64: known.data })
    };
    known.map(event).filter(|(_, event)| event.events != 0).collect()
}

fn forget(engine: &mut Engine<Libc>, id: ClientId) {
    engine.at(now()).gone(id);
    engine.host.forget(id);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of this byte order whose setup arrives in two pieces, of which the second begins with this byte.
    fn set_up(first: u8, second: u8, order: ByteOrder) -> Option<(u32, u32)> {
        let mut client = LibcClient::new(3, 0);
        [first, second].into_iter().for_each(|byte| client.begin_setup(byte));
        let mut reply = [0; SETUP_BYTES];
        reply[0] = 1;
        order.put_u32(&mut reply, 12, 0x20_0000);
        order.put_u32(&mut reply, 16, 0x1f_ffff);
        client.set_up_by(&reply)
    }

    #[test]
    fn only_the_first_byte_of_a_setup_is_its_byte_order() {
        let (little, big) = (ByteOrder::Little, ByteOrder::Big);
        for (first, order) in [(b'l', little), (b'B', big), (b'r', little), (b'R', big)] {
            for second in [b'l', b'B', 0] {
                assert_eq!(set_up(first, second, order), Some((0x20_0000, 0x20_0000)), "{first} {second}");
            }
        }
    }
}
