// SPDX-License-Identifier: MIT
//! The control socket of a server, as its clients see it.

use crate::{Error, Result};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use xqos_abi::control::{EVENT, FIRST_ERROR, paths};
use xqos_abi::{ADMISSION_ERROR, Notify, Order, Request};

/// A server that does not answer within this time hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an event, an error, and the fixed part of a reply.
const RECORD_BYTES: usize = 32;

/// An open connection.
#[derive(Debug)]
pub struct Socket {
    stream: UnixStream,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    input: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    events: VecDeque<Notify>,
}

/// The answer to a request: the reply, with the descriptors that came.
pub struct Answer {
    pub reply: Vec<u8>,
    pub descriptors: Vec<OwnedFd>,
}

impl Socket {
    /// The socket of the server at the other end of an X connection to this display. None where there is none, or it is
    /// another user's, who pretends to be the server. The process may be another one: a Wayland compositor listens before
    /// it starts Xwayland.
    pub fn of_server(connection: impl AsFd, display: u32) -> Option<Socket> {
        Socket::of_user(display, socket_peercred(connection).ok()?.uid.as_raw())
    }

    /// The same without an X connection: the server's user is the one whose socket of the display it is.
    pub fn of_display(display: u32) -> Option<Socket> {
        Socket::of_user(display, std::fs::metadata(format!("/tmp/.X11-unix/X{display}")).ok()?.uid())
    }

    fn of_user(display: u32, user: u32) -> Option<Socket> {
        let is_the_server = |stream: &UnixStream| socket_peercred(stream).is_ok_and(|peer| peer.uid.as_raw() == user);
        let mut streams = paths(display, user).into_iter().filter_map(|path| UnixStream::connect(path).ok());
        let stream = streams.find(is_the_server)?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(Socket { stream, state: Mutex::default() })
    }

    pub fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    pub fn ask(&self, request: Request) -> Result<Answer> {
        self.send(request)?;
        self.answer()
    }

    /// Sends a request whose answer is taken later: answers come in the order of requests.
    pub fn send(&self, request: Request) -> Result<()> {
        (&self.stream).write_all(&request.encode(0)).map_err(Error::Socket)
    }

    /// Waits for the next answer.
    pub fn answer(&self) -> Result<Answer> {
        let state = &mut *self.state();
        loop {
            if let Some(answer) = state.next_record()? {
                return Ok(answer);
            }
            self.receive(state, RecvFlags::empty()).map_err(Error::Socket)?;
        }
    }

    /// An event that has come, if one has.
    pub fn next_event(&self) -> Result<Option<Notify>> {
        let state = &mut *self.state();
        loop {
            state.take_events();
            if let Some(event) = state.events.pop_front() {
                return Ok(Some(event));
            }
            match self.receive(state, RecvFlags::DONTWAIT) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(Error::Socket(error)),
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn receive(&self, state: &mut State, flags: RecvFlags) -> io::Result<()> {
        let (mut chunk, mut space) =
            ([0; 16_384], [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))]);
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.stream, &mut [IoSliceMut::new(&mut chunk)], &mut control, flags)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                state.descriptors.extend(descriptors);
            }
        }
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        state.input.extend_from_slice(&chunk[..received.bytes]);
        Ok(())
    }
}

impl State {
    /// The answer to the last request, once it is there. Events before it are kept.
    fn next_record(&mut self) -> Result<Option<Answer>> {
        self.take_events();
        let Some(record) = self.input.get(..RECORD_BYTES) else { return Ok(None) };
        let word = |at: usize| u32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        if record[0] == 0 {
            let (code, value) = (record[1], word(4));
            self.input.drain(..RECORD_BYTES);
            return Err(refusal(code, value));
        }
        let (bytes, descriptors) = (RECORD_BYTES + 4 * word(4) as usize, usize::from(record[1]));
        if self.input.len() < bytes {
            return Ok(None);
        }
        let reply: Vec<u8> = self.input.drain(..bytes).collect();
        // Only the reply to StartTrace brings any, and in others the byte may mean something else.
        let descriptors = self.descriptors.drain(..descriptors.min(self.descriptors.len())).collect();
        Ok(Some(Answer { reply, descriptors }))
    }

    fn take_events(&mut self) {
        while self.input.len() >= RECORD_BYTES && self.input[0] == EVENT {
            let record: Vec<u8> = self.input.drain(..RECORD_BYTES).collect();
            self.events.extend(Notify::decode(&record, Order::Native).ok());
        }
    }
}

fn refusal(code: u8, value: u32) -> Error {
    match code {
        2 => Error::Value(value),
        10 => Error::Access,
        17 => Error::NotFromBelow,
        code if code == FIRST_ERROR + ADMISSION_ERROR => Error::Admission { failing_client: value },
        code => Error::Answer(x11rb::protocol::ErrorKind::Unknown(code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::NotifyKind;
    use xqos_abi::control::{done, error};

    fn event(client: u32) -> Vec<u8> {
        let (kind, pid, budget_us, period_us, flags) = (NotifyKind::Settings, 0, 0, 0, 0);
        let event = Notify { kind, client, pid, budget_us, period_us, flags, count: 0, time_ms: 0 };
        event.encode(EVENT, 0, Order::Native).to_vec()
    }

    fn reply(words: u8) -> Vec<u8> {
        let mut reply = done(1).to_vec();
        reply[4..8].copy_from_slice(&u32::from(words).to_ne_bytes());
        reply.extend(vec![7; 4 * usize::from(words)]);
        reply
    }

    #[test]
    fn answers_come_whole_and_events_are_kept_however_the_bytes_are_cut() {
        let said = [event(1), reply(3), event(2), error(2, 2, 99).to_vec(), reply(0)].concat();
        for cut in (1..said.len()).step_by(if cfg!(miri) { 16 } else { 1 }) {
            let (mut state, mut answers) = (State::default(), Vec::new());
            for part in said.chunks(cut) {
                state.input.extend_from_slice(part);
                while let Some(answer) = state.next_record().transpose() {
                    answers.push(answer.map(|answer| answer.reply.len()));
                }
            }
            assert!(matches!(answers[..], [Ok(44), Err(Error::Value(99)), Ok(32)]), "{cut}: {answers:?}");
            let clients: Vec<u32> = state.events.iter().map(|event| event.client).collect();
            assert_eq!((clients, state.input.len()), (vec![1, 2], 0), "{cut}");
        }
    }
}
