// SPDX-License-Identifier: MIT
//! One program's connection, which takes bytes from both sides and produces bytes for both sides.
//!
//! | phase | what arrives | ends when |
//! |---|---|---|
//! | setup | the program's setup request, with the proxy's cookie | it is complete; the server gets its own cookie |
//! | greeting | the server's setup reply | the reply is complete |
//! | open | requests; replies, events and errors | either side closes |
//!
//! If the proxy has already asked a program's question itself, it holds the program's request until that reply arrives,
//! which is sooner than a reply to a new request. Call [`Near::go_on`] when the scout has received data.
//!
//! Order of calls: pass received bytes to [`Near::from_program`] and [`Near::from_server`] while
//! [`Near::takes_from_program`] and [`Near::takes_from_server`] allow it; then send the bytes in [`Near::to_program`]
//! and [`Near::to_server`]; call [`Near::go_on`] once some of these bytes are sent. On a [`Near::fault`], send what is
//! queued and close both ends.

use crate::bytes::NATIVE;
use crate::context::ConnectionContext;
use crate::questions::{Line, Questions};
use crate::report::NearReport;
use crate::setup::{Cookie, refusal};
use crate::shared::{MAX_QUEUED_BYTES, NearSettings, Outbox, SharedState};
use crate::store::Store;
use crate::windows::Windows;
use std::mem;
use xqos_wire::x11::framing::{Framer, Piece};
use xqos_wire::x11::greeting::Greeting;
use xqos_x11::ByteOrder;
use xqos_x11::length::Phase as Framing;

const MAX_PENDING: usize = 8192;
/// Maximum length of a request that is parsed as a whole.
const MAX_REQUEST_BYTES: usize = 4096;
/// Maximum length of a stored reply, enough for the metrics of a core font with 65,536 glyphs.
pub const MAX_REPLY_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    #[error("a client was refused: it does not speak X11")]
    NotX,
    #[error("a client was refused: it does not have this display's cookie")]
    Cookie,
    #[error("the X server refused a client; the client shows the reason")]
    Refused,
    #[error("a client was disconnected: it sent an invalid request")]
    Program,
    #[error("a client was disconnected: the server sent an invalid message")]
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionPhase {
    Setup,
    Greeting,
    Open,
    Closed,
}

#[derive(Debug)]
pub struct Near {
    phase: ConnectionPhase,
    program: Framer,
    server: Framer,
    /// A question of the program, held until the proxy's own query is answered.
    held: Vec<u8>,
    /// Bytes from the program that have not been processed, because queues were full or a question is held.
    unread: Vec<u8>,
    /// Properties of the root window that the proxy queries before the program does.
    properties: Vec<Line>,
    fault: Option<Fault>,
    pub(crate) shared: SharedState,
}

impl Near {
    pub fn new(settings: NearSettings) -> Near {
        let shared = SharedState::new(settings);
        Near {
            phase: ConnectionPhase::Setup,
            program: Framer::with_limit(Framing::Setup, shared.order, MAX_REQUEST_BYTES),
            server: Framer::with_limit(Framing::SetupReply, shared.order, MAX_REPLY_BYTES),
            held: Vec::new(),
            unread: Vec::new(),
            properties: Vec::new(),
            fault: None,
            shared,
        }
    }

    pub fn from_program(&mut self, bytes: &[u8], now_ns: u64, store: &mut Store) {
        if self.unread.is_empty() && self.held.is_empty() {
            let taken = self.read_program(bytes, now_ns, store);
            self.unread.extend(&bytes[taken..]);
        } else {
            self.unread.extend(bytes);
            self.go_on(now_ns, store);
        }
    }

    /// Processes the held question if its answer is now known, then as many of the program's unread bytes as the queues
    /// have room for.
    pub fn go_on(&mut self, now_ns: u64, store: &mut Store) {
        if !self.held.is_empty() {
            let held = mem::take(&mut self.held);
            if self.shared.must_wait(&held, store) {
                self.held = held;
                return;
            }
            self.shared.ask(&held, true, now_ns, store);
            if self.unread.is_empty() {
                self.shared.rest();
            }
        }
        if !self.unread.is_empty() {
            let mut unread = mem::take(&mut self.unread);
            let taken = self.read_program(&unread, now_ns, store);
            unread.drain(..taken);
            self.unread = unread;
        }
    }

    pub fn from_server(&mut self, bytes: &[u8], now_ns: u64, store: &mut Store) {
        let mut input = bytes;
        while !matches!(self.phase, ConnectionPhase::Closed | ConnectionPhase::Setup) {
            let is_greeting = self.phase == ConnectionPhase::Greeting;
            match self.server.piece(&mut input) {
                Ok(None) => break,
                Ok(Some(Piece::Whole(bytes))) if is_greeting => {
                    let greeting = bytes.to_vec();
                    self.greeted(&greeting, store);
                }
                Ok(Some(Piece::Whole(bytes))) => self.shared.hear(bytes, true, now_ns, store),
                Ok(Some(Piece::Head(bytes))) if !is_greeting => self.shared.hear(bytes, false, now_ns, store),
                Ok(Some(Piece::More(bytes))) if !self.shared.drops_rest => _ = self.shared.to_program.push(bytes),
                Ok(Some(Piece::More(_))) => {}
                Ok(Some(Piece::Head(_))) | Err(_) => return self.close(Fault::Server),
            }
        }
        self.go_on(now_ns, store);
    }

    /// Whether more bytes from the program are accepted.
    pub fn takes_from_program(&self) -> bool {
        self.unread.is_empty() && self.held.is_empty() && self.phase != ConnectionPhase::Closed && self.has_room()
    }

    pub fn takes_from_server(&self) -> bool {
        self.phase != ConnectionPhase::Closed && !self.shared.to_program.is_full()
    }

    pub fn to_program(&mut self) -> &mut Outbox {
        &mut self.shared.to_program
    }

    pub fn to_server(&mut self) -> &mut Outbox {
        &mut self.shared.to_server
    }

    /// Whether everything for the program has been sent.
    pub fn has_flushed_program(&self) -> bool {
        self.shared.to_program.bytes().is_empty()
    }

    /// The reason to close both ends, if there is one.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Sets the properties of the root window that the proxy queries as soon as the server has accepted the program.
    pub fn ask_ahead(&mut self, questions: &Questions) {
        self.properties = questions.usual().filter(|line| line.is_property()).cloned().collect();
    }

    /// Whether a question is held until the proxy's own query is answered.
    pub fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// After the program has disconnected, sends the deferred comparison requests. Returns whether there were any.
    pub fn send_deferred(&mut self, store: &Store) -> bool {
        self.shared.send_deferred(store)
    }

    /// Whether comparisons are pending. If so, the connection to the server outlives the program's connection.
    pub fn is_verifying(&self) -> bool {
        self.shared.settings.verify && self.phase == ConnectionPhase::Open && self.shared.pending.has_comparisons()
    }

    pub fn report(&self) -> &NearReport {
        &self.shared.report
    }

    /// The questions whose answers the proxy can prefetch at the next start of this program.
    pub fn questions(&self, program: &str, store: &Store) -> Questions {
        Questions::of(program, &self.shared.memory, &self.shared.context, store)
    }

    pub fn log_lines(&mut self) -> Vec<String> {
        mem::take(&mut self.shared.log_lines)
    }

    fn has_room(&self) -> bool {
        let shared = &self.shared;
        let is_full = shared.to_server.is_full() || shared.to_program.is_full();
        !is_full && shared.pending.len() < MAX_PENDING && shared.answers.ready_bytes < MAX_QUEUED_BYTES
    }

    fn close(&mut self, fault: Fault) {
        self.phase = ConnectionPhase::Closed;
        self.fault.get_or_insert(fault);
        (self.held, self.unread) = (Vec::new(), Vec::new());
    }

    /// Returns the number of bytes that were processed.
    fn read_program(&mut self, bytes: &[u8], now_ns: u64, store: &mut Store) -> usize {
        let mut input = bytes;
        if self.phase == ConnectionPhase::Setup {
            self.set_up(&mut input);
        }
        self.shared.last_answered = None;
        while self.phase == ConnectionPhase::Open && self.held.is_empty() && self.has_room() {
            if self.shared.has_long_requests {
                self.program.phase = Framing::Requests;
            }
            match self.program.piece(&mut input) {
                Ok(None) => break,
                Ok(Some(Piece::Whole(request))) if self.shared.must_wait(request, store) => {
                    self.held = request.to_vec()
                }
                Ok(Some(Piece::Whole(request))) => self.shared.ask(request, true, now_ns, store),
                Ok(Some(Piece::Head(head))) => self.shared.ask(head, false, now_ns, store),
                Ok(Some(Piece::More(more))) => _ = self.shared.to_server.push(more),
                Err(_) => self.close(Fault::Program),
            }
        }
        if self.phase == ConnectionPhase::Closed {
            return bytes.len();
        }
        if input.is_empty() && self.held.is_empty() {
            self.shared.rest();
        }
        bytes.len() - input.len()
    }

    fn set_up(&mut self, input: &mut &[u8]) {
        let Some(&first) = input.first() else { return };
        if !self.program.is_within() {
            let Some(order) = ByteOrder::of_setup(first) else { return self.close(Fault::NotX) };
            self.program.order = order;
            self.shared.order = order;
        }
        let order = self.shared.order;
        let setup = match self.program.piece(input) {
            Ok(None) => return,
            Ok(Some(Piece::Whole(setup))) => setup,
            _ => return self.close(Fault::NotX),
        };
        let cookie = Cookie::of_setup(order, setup).unwrap_or_default();
        if self.shared.settings.own_cookie.as_ref().is_some_and(|own| !own.is(&cookie)) {
            self.shared.to_program.push(&refusal(order, "xqos near: wrong cookie for this display, check XAUTHORITY"));
            return self.close(Fault::Cookie);
        }
        self.shared.to_server.push(&self.shared.settings.server_cookie.setup(order));
        self.program.phase = Framing::ShortRequests;
        self.server.order = order;
        self.phase = ConnectionPhase::Greeting;
    }

    fn greeted(&mut self, reply: &[u8], store: &Store) {
        self.server.phase = Framing::Replies;
        let shared = &mut self.shared;
        shared.to_program.push(reply);
        match Greeting::of(shared.order, reply) {
            Some(greeting) => {
                shared.context = ConnectionContext::new(shared.order, greeting);
                shared.windows = Windows::new(&shared.context);
                self.phase = ConnectionPhase::Open;
                if shared.order == NATIVE && !shared.settings.passive {
                    shared.ask_ahead(&mem::take(&mut self.properties), store);
                }
            }
            None => self.close(if reply.first() == Some(&1) { Fault::Server } else { Fault::Refused }),
        }
    }
}
