// SPDX-License-Identifier: MIT
//! Handles a request from the program: answers it here or passes it on.
//!
//! | the answer is known, the order allows it, and | the server gets | the server's reply |
//! |---|---|---|
//! | it is constant | NoOperation, to keep sequence numbers in step | none; `--verify` sends the request at the end |
//! | the request sets state in the server, or the answer can change | the request | compared and dropped |
//!
//! [`SharedState::may_answer`] says whether the order allows an answer. In strict order, the previous request must be
//! one that has a reply, or one that cannot cause an error or event. In relaxed order, it may also be a one-way request
//! on the program's own resources (`answerable::Barrier`).

use crate::bytes::{self, NATIVE, text_at};
use crate::context::open_font;
use crate::edit::{Edit, absent};
use crate::opcodes::{HIDDEN, Opcode, op};
use crate::pending::{Learn, Pending, Recipient};
use crate::shared::SharedState;
use crate::shared::verify::Deferred;
use crate::store::{Answer, Question, Store};
use xqos_wire::answerable::{Barrier, Class, Condition};

/// Maximum number of requests in a row to which the server sends no reply.
const MAX_WITHOUT_REPLY: u64 = 1 << 15;

/// The result of a look-up: an answer, and how to use the server's reply.
#[derive(Debug, Default)]
struct Lookup {
    answer: Option<Answer>,
    learn: Option<Learn>,
    edit: Option<Edit>,
    /// Whether the server gets a NoOperation instead of the request.
    is_stateless: bool,
}

impl SharedState {
    /// Handles a request, or the beginning of a long request.
    pub fn ask(&mut self, request: &[u8], is_whole: bool, now_ns: u64, store: &mut Store) {
        self.require_reply();
        let (major, minor) = (request[0], request[1]);
        let is_long = self.order.u16(request, 2) == Some(0);
        self.last_answered = None;
        // If BIG-REQUESTS is not enabled, the server answers BadLength and continues after these four bytes.
        if is_long && !self.has_long_requests {
            self.sequence.next_program();
            self.to_server.push(request);
            self.may_answer = false;
            return;
        }
        if let Some(known) = store.opcodes.request(major, minor).filter(|known| known.is_plain && !is_long) {
            self.sequence.next_program();
            self.to_server.push(request);
            self.may_answer = self.may_answer && (self.settings.relaxed || self.is_silent(request, known, store));
            return;
        }
        let known = store.opcodes.request(major, minor).copied();
        let has_reply = known.and_then(|known| known.has_reply);
        if let Some(watch) = known.and_then(|known| known.changes) {
            store.change(watch);
        }
        let lookup = match known {
            Some(known) if is_whole && !is_long => self.look_up(request, &known, store),
            _ => Lookup::default(),
        };
        let is_here = self.may_answer && lookup.answer.is_some();
        if has_reply == Some(true) {
            self.report.of(major, minor).asked += 1;
        }
        match lookup.answer.filter(|_| is_here).zip(known) {
            Some((answer, known)) => {
                self.answer_here(request, &known, answer, Lookup { answer: None, ..lookup }, store);
            }
            None => self.send_on(request, lookup.learn, lookup.edit, has_reply, now_ns, store),
        }
        self.note(request, known.as_ref(), is_long, has_reply, store);
    }

    /// Requests a reply before too many requests without one make the server's 16-bit sequence numbers ambiguous. The
    /// program's library does not do so, because it counts the answers that were given here.
    fn require_reply(&mut self) {
        if self.sequence.sent - self.pending.last_certain < MAX_WITHOUT_REPLY {
            return;
        }
        let number = self.sequence.next_own();
        self.to_server.push(&bytes::request(self.order, op::GET_INPUT_FOCUS_REQUEST, 0, &[]));
        let (opcodes, recipient) = ((op::GET_INPUT_FOCUS_REQUEST, 0), Recipient::Proxy);
        self.pending.push(Pending { number, opcodes, edit: None, learn: None, recipient, is_certain: true });
    }

    /// Whether the proxy has already asked this question, so that the reply arrives sooner than a reply to the
    /// program's request. While the program holds the server grab, no other connection gets replies.
    pub fn must_wait(&self, request: &[u8], store: &Store) -> bool {
        let is_property = request[0] == op::GET_PROPERTY_REQUEST;
        if !self.may_answer || self.settings.passive || self.holds_server || !is_property && !store.expects_any() {
            return false;
        }
        let Some(known) = store.opcodes.request(request[0], request[1]) else { return false };
        let question = match request[0] {
            _ if known.is_plain => return false,
            op::GET_PROPERTY_REQUEST => return self.pending.reads(request),
            op::OPEN_FONT_REQUEST => self.context.font_question(request),
            _ => self.context.question(request, known),
        };
        !self.off.contains(&known.row.class) && question.is_some_and(|it| store.is_expected(self.order, &it))
    }

    fn look_up(&mut self, request: &[u8], known: &Opcode, store: &Store) -> Lookup {
        let major = request[0];
        let hidden = self.hidden(request);
        let mut lookup = if hidden.is_some() {
            Lookup { answer: Some(absent()[..].into()), is_stateless: true, ..Lookup::default() }
        } else if major == op::GET_PROPERTY_REQUEST {
            self.property(request)
        } else if major == op::GET_GEOMETRY_REQUEST {
            self.geometry(request)
        } else {
            self.stored_answer(request, known, store)
        };
        lookup.edit = match major {
            op::QUERY_EXTENSION_REQUEST if hidden.is_some() => Some(Edit::Absent),
            op::LIST_EXTENSIONS_REQUEST => Some(Edit::List),
            op::GET_WINDOW_ATTRIBUTES_REQUEST => {
                let added = self.order.u32(request, 4).map_or(0, |window| self.windows.added(window));
                (added != 0).then_some(Edit::Attributes { added })
            }
            _ => None,
        };
        let class = known.row.class;
        // A program that holds the server grab must read current state, so use no watched or shadowed answers.
        let is_stale = self.holds_server && matches!(class, Class::Watched | Class::Shadowed);
        if is_stale || self.settings.passive || self.off.contains(&class) {
            lookup.answer = None;
        }
        lookup
    }

    /// Returns `Some` if the request queries a hidden extension.
    fn hidden(&self, request: &[u8]) -> Option<()> {
        let name = text_at(self.order, request, 4, 8).filter(|_| request[0] == op::QUERY_EXTENSION_REQUEST)?;
        HIDDEN.iter().any(|hidden| hidden.as_bytes() == name).then_some(())
    }

    fn stored_answer(&mut self, request: &[u8], known: &Opcode, store: &Store) -> Lookup {
        let Some(question) = self.context.question(request, known) else { return Lookup::default() };
        self.remember(request, known, store);
        let answer = store.answer(self.order, &question).cloned();
        let is_watched = known.watch.is_none_or(|watch| store.is_watching(watch));
        let learn = is_watched.then(|| Learn::Answer { question, watch: known.watch, asked: store.changes() });
        let is_stateless = known.row.class == Class::Constant;
        Lookup { answer, learn, edit: None, is_stateless }
    }

    fn property(&mut self, request: &[u8]) -> Lookup {
        let window = self.order.u32(request, 4).filter(|_| request.len() == 24);
        let Some(window) = window else { return Lookup::default() };
        if request[1] != 0 {
            // The request may delete the property, so an earlier reply is no longer valid.
            self.windows.change(window, self.order.u32(request, 8));
            return Lookup::default();
        }
        if self.context.greeting.screen(window).is_some() && self.order == NATIVE {
            self.memory.add("", 0, request);
        }
        if let Some(answer) = self.windows.property(request) {
            return Lookup { answer: Some(answer.clone()), ..Lookup::default() };
        }
        if self.settings.passive {
            return Lookup::default();
        }
        if let Some(select) = self.windows.watch_properties(window) {
            self.ask_of_our_own(&select, None);
        }
        let reading = self.windows.read(window);
        let learn = reading.map(|reading| Learn::Property { request: request.into(), reading });
        Lookup { learn, ..Lookup::default() }
    }

    /// Geometry of the program's pixmaps, and of its windows until a change is reported.
    fn geometry(&mut self, request: &[u8]) -> Lookup {
        let Some(id) = self.order.u32(request, 4).filter(|_| request.len() == 8) else { return Lookup::default() };
        if let Some(answer) = self.windows.geometry(id, self.sequence.current()) {
            return Lookup { answer: Some(answer), ..Lookup::default() };
        }
        if self.settings.passive {
            return Lookup::default();
        }
        if let Some(select) = self.windows.watch_geometry(id) {
            self.ask_of_our_own(&select, None);
        }
        let learn = self.windows.ask_geometry(id).map(Learn::Geometry);
        Lookup { learn, ..Lookup::default() }
    }

    /// Remembers a question for the program's next start, if another connection can ask it.
    fn remember(&mut self, request: &[u8], known: &Opcode, store: &Store) {
        let is_foreign_color = known.row.when == Condition::FixedColormap
            && !self.order.u32(request, 4).is_some_and(|id| self.context.greeting.is_default_colormap(id));
        let major = request[0];
        // A font was already remembered by name when it was opened.
        if self.order != NATIVE || is_foreign_color || major == op::QUERY_FONT_REQUEST {
            return;
        }
        if let Some(extension) = store.opcodes.extension(major) {
            self.memory.add(extension, self.context.state(major), &self.context.canonical(known, request));
        }
    }

    fn answer_here(&mut self, request: &[u8], known: &Opcode, answer: Answer, lookup: Lookup, store: &Store) {
        let opcodes = (request[0], request[1]);
        let (number, at_server) = self.sequence.next_program();
        let (edit, class, given) = (lookup.edit, known.row.class, answer.clone());
        if lookup.is_stateless {
            self.to_server.push(&bytes::request(self.order, op::NO_OPERATION_REQUEST, 0, &[]));
        } else {
            self.to_server.push(request);
            let recipient = Recipient::Comparison { given: given.clone(), class };
            self.pending.push(Pending { number: at_server, opcodes, edit, learn: None, recipient, is_certain: true });
        }
        if self.settings.verify {
            self.cells.give(self.order, request, &answer);
            if lookup.is_stateless {
                let question = match lookup.learn {
                    Some(Learn::Answer { question, .. }) => Some(question),
                    _ => None,
                };
                self.defer(Deferred { request: request.into(), question, given, class, edit }, store);
            }
        }
        self.report.of(opcodes.0, opcodes.1).answered += 1;
        self.answers.ready(number, answer);
        self.last_answered = Some(opcodes);
        self.give_ready_answers();
    }

    fn send_on(
        &mut self,
        request: &[u8],
        learn: Option<Learn>,
        edit: Option<Edit>,
        has_reply: Option<bool>,
        now_ns: u64,
        store: &mut Store,
    ) {
        if let Some(Learn::Answer { question, .. }) = &learn {
            if request[..2] == [op::INTERN_ATOM_REQUEST, 0] {
                store.create(question);
            }
        }
        let (number, at_server) = self.sequence.next_program();
        let sent = self.to_server.push(request);
        if matches!(request[0], 0..=19 | 53 | 54 | 114) {
            if self.order.u16(sent, 2) == Some(0) {
                self.windows.hear_long(sent, &self.context);
            } else {
                self.windows.hear(sent, number, &self.context);
            }
        }
        if has_reply == Some(false) {
            if self.settings.verify {
                self.cells.free(self.order, request, at_server);
            }
            return;
        }
        let opcodes = (request[0], request[1]);
        let last_of_many = store.opcodes.names.last_of_many(opcodes.0, opcodes.1);
        let recipient = Recipient::Program { number, last_of_many, asked_ns: now_ns };
        // For a request that no table lists, a reply is possible but not certain.
        let is_certain = has_reply == Some(true);
        self.pending.push(Pending { number: at_server, opcodes, edit, learn, recipient, is_certain });
        self.answers.wait(number);
    }

    /// Updates the state that later requests depend on.
    fn note(&mut self, request: &[u8], known: Option<&Opcode>, is_long: bool, has_reply: Option<bool>, store: &Store) {
        self.context.hear(request, known);
        match request[0] {
            // Remember each font, including cursor fonts, which are never queried: opening a known font is silent.
            op::OPEN_FONT_REQUEST if self.order == NATIVE && !is_long => {
                let name = text_at(self.order, request, 8, 12);
                name.into_iter().for_each(|name| self.memory.add("", 0, &open_font(self.order, 0, name)));
            }
            op::GRAB_SERVER_REQUEST => self.holds_server = true,
            op::UNGRAB_SERVER_REQUEST => self.holds_server = false,
            _ => {}
        }
        // The server refuses Enable with any other length.
        let enables = known.is_some_and(|known| known.row.request == "BIG-REQUESTS::Enable") && request.len() == 4;
        self.has_long_requests |= enables;
        self.may_answer = match (has_reply, known) {
            (Some(true), _) => true,
            (Some(false), Some(known)) if self.may_answer && !is_long => {
                self.is_silent(request, known, store) || self.settings.relaxed && self.is_harmless(request, known)
            }
            _ => false,
        };
    }

    /// Whether a one-way request can cause neither an error nor an event.
    fn is_silent(&self, request: &[u8], known: &Opcode, store: &Store) -> bool {
        let is_own = || self.order.u32(request, 4).is_some_and(|id| self.context.greeting.is_own(id));
        let is_there = |font: &Question| store.answer(self.order, font).is_some();
        match request[0] {
            _ if !known.is_silent => false,
            op::NO_OPERATION_REQUEST => true,
            op::OPEN_FONT_REQUEST => is_own() && self.context.font_question(request).as_ref().is_some_and(is_there),
            _ => is_own(),
        }
    }

    /// Whether a one-way request affects only the program's own resources.
    fn is_harmless(&self, request: &[u8], known: &Opcode) -> bool {
        let is_own = |at| self.order.u32(request, at).is_some_and(|id| self.context.greeting.is_own(id));
        match known.barrier {
            Barrier::Always => false,
            Barrier::None => true,
            Barrier::ForeignWindow => match request[0] {
                // The parent may belong to another client; only the new window must be the program's own.
                op::CREATE_WINDOW_REQUEST => is_own(4),
                op::COPY_AREA_REQUEST | op::COPY_PLANE_REQUEST | op::REPARENT_WINDOW_REQUEST => is_own(4) && is_own(8),
                _ => is_own(4),
            },
        }
    }

    pub fn name(&self, opcodes: (u8, u8), store: &mut Store) -> String {
        store.opcodes.names.request(opcodes.0, opcodes.1).to_owned()
    }
}
