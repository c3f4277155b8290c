// SPDX-License-Identifier: MIT
//! The proxy's own connection: it prefetches the answers that a program needed at its last start, and receives change
//! events. While the connection is open, the server does not reset; a reset would reassign all atoms and opcodes.
//!
//! | round trip | requests |
//! |---|---|
//! | 1 | setup |
//! | 2 | QueryExtension, and all questions of the core protocol |
//! | 3 | versions, then the selection of change events, then all questions of extensions |
//!
//! Round trip 3 selects the events before it asks questions, so the answers are valid until an event arrives. Replies
//! on the program's own connection can be stored only after the server has confirmed the selection.
//!
//! Most of the bytes are font metrics, and ssh allows only 64 kB in flight per channel (320 kB/s with a round trip of
//! 200 ms). Font metrics are therefore requested on separate connections.

use crate::bytes::{NATIVE, named_request, put_u16, request, text_at};
use crate::connection::MAX_REPLY_BYTES;
use crate::context::{ConnectionContext, close_font, open_font};
use crate::memory::{Entry, Memory};
use crate::opcodes::{HIDDEN, Watch, op};
use crate::setup::Cookie;
use crate::shared::Outbox;
use crate::store::{Changes, Question, Store};
use std::collections::VecDeque;
use xqos_wire::x11::framing::{Framer, Phase, Piece};
use xqos_wire::x11::greeting::Greeting;

/// Extensions that report changes.
const WATCHED: [(&str, Watch); 3] =
    [("XKEYBOARD", Watch::Keys), ("XInputExtension", Watch::Devices), ("RANDR", Watch::Screens)];

/// A request from the scout that has not been answered.
#[derive(Debug)]
struct PendingQuery {
    number: u64,
    query: Query,
}

#[derive(Debug)]
enum Query {
    Extension(Vec<u8>),
    Question {
        question: Question,
        watch: Option<Watch>,
        changes: Changes,
    },
    /// Sent after the event selections: its reply confirms them.
    SelectionDone,
    /// Sent after a font is opened: its reply confirms that the font is open.
    FontOpened,
    Ignored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Setup,
    Extensions,
    Watching,
    Ended,
}

/// The proxy's own connection.
#[derive(Debug)]
pub struct Scout {
    stage: Stage,
    /// The framing of the server's messages; `None` while [`Scout::from_server`] runs.
    server: Option<Framer>,
    out: Outbox,
    context: ConnectionContext,
    number: u64,
    pending: VecDeque<PendingQuery>,
    /// Questions that wait until their extension is known.
    deferred: Vec<Entry>,
    /// Event selections, with the number of their request.
    selected: Vec<(u64, Watch)>,
    /// Whether this connection only fetches fonts; another connection receives changes.
    is_for_fonts: bool,
    /// Other connections fetch the font metrics once this connection has opened the fonts.
    fonts_are_elsewhere: bool,
}

impl Scout {
    /// Starts a connection with a cookie and the questions to ask first.
    pub fn new(cookie: &Cookie, memory: &Memory) -> Scout {
        let mut out = Outbox::default();
        out.push(&cookie.setup(NATIVE));
        Scout {
            stage: Stage::Setup,
            server: Some(Framer::with_limit(Phase::SetupReply, NATIVE, MAX_REPLY_BYTES)),
            out,
            context: ConnectionContext::new(NATIVE, Greeting::default()),
            number: 0,
            pending: VecDeque::new(),
            deferred: memory.entries().to_vec(),
            selected: Vec::new(),
            is_for_fonts: false,
            fonts_are_elsewhere: false,
        }
    }

    /// Like [`Scout::new`], but opens the fonts and leaves their metrics to other connections.
    pub fn with_font_connections(cookie: &Cookie, memory: &Memory) -> Scout {
        Scout { fonts_are_elsewhere: true, ..Scout::new(cookie, memory) }
    }

    /// Starts a font connection. It fetches fonts ([`Memory::fonts`]) when [`Scout::ask`] is called.
    pub fn for_fonts(cookie: &Cookie) -> Scout {
        Scout { is_for_fonts: true, ..Scout::new(cookie, &Memory::default()) }
    }

    /// Whether the server has opened the fonts in the program's order. Opening a font creates atoms, and the program
    /// may use their numbers.
    pub fn has_loaded_fonts(&self) -> bool {
        let is_loading = self.pending.iter().any(|pending| matches!(pending.query, Query::FontOpened));
        self.stage == Stage::Ended || self.stage != Stage::Setup && !is_loading
    }

    pub fn to_server(&mut self) -> &mut Outbox {
        &mut self.out
    }

    /// Whether all requests have been answered or can no longer be answered.
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ended || self.stage == Stage::Watching && self.pending.is_empty()
    }

    /// Ends the connection. Also forgets the server's answers, unless this is a font connection, which may be refused.
    pub fn end(&mut self, store: &mut Store) {
        self.stage = Stage::Ended;
        if !self.is_for_fonts {
            store.forget();
        }
    }

    pub fn has_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Asks the questions of another program.
    pub fn ask(&mut self, memory: &Memory, store: &mut Store) {
        match self.stage {
            Stage::Setup => self.deferred.extend(memory.entries().iter().cloned()),
            Stage::Ended => {}
            // Known answers are not requested again.
            Stage::Extensions | Stage::Watching => self.ask_core(memory.entries().to_vec(), store),
        }
        if self.stage == Stage::Watching {
            self.ask_extensions(store);
        }
    }

    pub fn from_server(&mut self, bytes: &[u8], store: &mut Store) {
        let (mut input, Some(mut server)) = (bytes, self.server.take()) else { return };
        while self.stage != Stage::Ended {
            match server.piece(&mut input) {
                Ok(None) => break,
                Ok(Some(Piece::Whole(bytes))) if self.stage == Stage::Setup => {
                    self.greeted(bytes, store);
                    server.phase = Phase::Replies;
                }
                Ok(Some(Piece::Whole(bytes))) => self.hear(bytes, true, store),
                Ok(Some(Piece::Head(bytes))) if self.stage != Stage::Setup => self.hear(bytes, false, store),
                Ok(Some(Piece::More(_))) => {}
                Ok(Some(Piece::Head(_))) | Err(_) => self.end(store),
            }
        }
        self.server = Some(server);
    }

    fn greeted(&mut self, bytes: &[u8], store: &mut Store) {
        let Some(greeting) = Greeting::of(NATIVE, bytes) else { return self.end(store) };
        self.context = ConnectionContext::new(NATIVE, greeting);
        self.stage = if self.is_for_fonts { Stage::Watching } else { Stage::Extensions };
        if !self.is_for_fonts {
            WATCHED.iter().for_each(|(name, _)| self.query(name));
        }
        let entries = std::mem::take(&mut self.deferred);
        self.ask_core(entries, store);
    }

    fn query(&mut self, name: &str) {
        let bytes = named_request(NATIVE, op::QUERY_EXTENSION_REQUEST, 0, name.as_bytes());
        self.send(&bytes, Some(Query::Extension(name.as_bytes().to_vec())));
    }

    /// Asks questions that need no extension, and defers the others.
    fn ask_core(&mut self, entries: Vec<Entry>, store: &mut Store) {
        let mut queried: Vec<String> = WATCHED.iter().map(|(name, _)| (*name).to_owned()).collect();
        for entry in entries {
            let major = entry.request[0];
            if !entry.extension.is_empty() {
                if !queried.contains(&entry.extension) && store.opcodes.major(&entry.extension).is_none() {
                    self.query(&entry.extension);
                    queried.push(entry.extension.clone());
                }
                self.deferred.push(entry);
            } else if major == op::OPEN_FONT_REQUEST {
                self.ask_font(&entry.request, store);
            } else if !matches!(major, op::GET_PROPERTY_REQUEST | op::LIST_EXTENSIONS_REQUEST)
                && !self.names_hidden(&entry.request)
            {
                self.ask_one(&entry.request, store);
            }
        }
    }

    /// Opens a font by its name, queries it, and closes it.
    fn ask_font(&mut self, open: &[u8], store: &Store) {
        let (Some(name), Some(question)) = (text_at(NATIVE, open, 8, 12), self.context.font_question(open)) else {
            return;
        };
        if store.answer(NATIVE, &question).is_some() {
            return;
        }
        let id = self.context.greeting.id_base;
        self.send(&open_font(NATIVE, id, name), None);
        if self.fonts_are_elsewhere {
            self.send(&request(NATIVE, op::GET_INPUT_FOCUS_REQUEST, 0, &[]), Some(Query::FontOpened));
        } else {
            let query = Query::Question { question, watch: Some(Watch::Fonts), changes: store.changes() };
            self.send(&request(NATIVE, op::QUERY_FONT_REQUEST, 0, &[id]), Some(query));
        }
        self.send(&close_font(NATIVE, id), None);
    }

    fn names_hidden(&self, request: &[u8]) -> bool {
        let name = text_at(NATIVE, request, 4, 8).unwrap_or_default();
        request[0] == op::QUERY_EXTENSION_REQUEST && HIDDEN.iter().any(|hidden| hidden.as_bytes() == name)
    }

    fn ask_one(&mut self, request: &[u8], store: &Store) {
        let Some(known) = store.opcodes.request(request[0], request[1]).copied() else { return };
        let Some(question) = self.context.question(request, &known) else { return };
        if request.len() != 4 * usize::from(NATIVE.u16(request, 2).unwrap_or(0)) {
            return;
        }
        if store.answer(NATIVE, &question).is_none() {
            let query = Query::Question { question, watch: known.watch, changes: store.changes() };
            self.send(request, Some(query));
            self.context.hear(request, Some(&known));
        }
    }

    /// Sends version requests first, as the program did; then selects change events; then asks the other questions.
    fn ask_extensions(&mut self, store: &mut Store) {
        let is_first = self.stage == Stage::Extensions;
        let mut rest = Vec::new();
        for mut entry in std::mem::take(&mut self.deferred) {
            let Some(major) = store.opcodes.major(&entry.extension) else { continue };
            entry.request[0] = major;
            let tells = store.opcodes.request(major, entry.request[1]).is_some_and(|known| known.watch.is_none());
            match tells {
                true => self.ask_of_extension(&entry, store),
                false => rest.push(entry),
            }
        }
        if is_first {
            self.watch(store);
            self.stage = Stage::Watching;
        }
        rest.iter().for_each(|entry| self.ask_of_extension(entry, store));
    }

    fn ask_of_extension(&mut self, entry: &Entry, store: &Store) {
        // Skip a question if the program had set the extension to another state when it asked.
        if self.context.state(entry.request[0]) == entry.state {
            self.ask_one(&entry.request, store);
        }
    }

    /// Selects all events that report changes.
    fn watch(&mut self, store: &mut Store) {
        let roots: Vec<u32> = self.context.greeting.screens.iter().map(|screen| screen.root).collect();
        for (name, watch) in WATCHED {
            let Some(major) = store.opcodes.major(name) else { continue };
            // The program sent no version request, so the proxy must send one.
            if self.context.state(major) == 0 {
                let version = match watch {
                    Watch::Keys => request(NATIVE, major, 0, &[1]),
                    Watch::Devices => request(NATIVE, major, 47, &[0x0002_0002]),
                    _ => request(NATIVE, major, 0, &[1, 5]),
                };
                self.send(&version, Some(Query::Ignored));
            }
            for select in selections(watch, major, &roots) {
                self.send(&select, None);
                self.selected.push((self.number, watch));
            }
        }
        self.send(&request(NATIVE, op::GET_INPUT_FOCUS_REQUEST, 0, &[]), Some(Query::SelectionDone));
    }

    fn send(&mut self, bytes: &[u8], query: Option<Query>) {
        self.number += 1;
        self.out.push(bytes);
        let number = self.number;
        self.pending.extend(query.map(|query| PendingQuery { number, query }));
    }

    fn hear(&mut self, message: &[u8], is_whole: bool, store: &mut Store) {
        let low = NATIVE.u16(message, 2).unwrap_or(0);
        match message[0] {
            0 => {
                self.selected.retain(|(number, _)| *number as u16 != low);
                self.take(low);
            }
            1 => {
                if let Some(pending) = self.take(low) {
                    self.answered(pending.query, message, is_whole, store);
                }
            }
            code => {
                let kind = NATIVE.u16(message, 8).unwrap_or(0);
                if let Some(watch) = store.opcodes.changed_by(code, message[1], kind) {
                    store.change(watch);
                }
            }
        }
        let is_waiting = self.pending.iter().any(|pending| matches!(pending.query, Query::Extension(_)));
        if self.stage == Stage::Extensions && !is_waiting {
            self.ask_extensions(store);
        }
    }

    /// Removes and returns the request with this number. Earlier requests can no longer be answered.
    fn take(&mut self, low: u16) -> Option<PendingQuery> {
        let index = self.pending.iter().position(|pending| pending.number as u16 == low)?;
        self.pending.drain(..=index).next_back()
    }

    fn answered(&mut self, query: Query, message: &[u8], is_whole: bool, store: &mut Store) {
        match query {
            Query::Extension(name) => {
                store.learn_extension(&name, message);
                let question = Question([&[op::QUERY_EXTENSION_REQUEST], &name[..]].concat().into());
                store.keep(NATIVE, question, message, None, store.changes());
            }
            Query::Question { question, watch, changes } => {
                if question.0[0] == op::QUERY_EXTENSION_REQUEST {
                    store.learn_extension(&question.0[1..], message);
                }
                let is_none = question.0[0] == op::INTERN_ATOM_REQUEST && NATIVE.u32(message, 8) == Some(0);
                if is_whole && !is_none {
                    store.keep(NATIVE, question, message, watch, changes);
                }
            }
            Query::SelectionDone => {
                let kinds: Vec<Watch> = self.selected.drain(..).map(|(_, watch)| watch).collect();
                WATCHED.iter().filter(|(_, watch)| kinds.contains(watch)).for_each(|(_, watch)| store.watch(*watch));
            }
            Query::FontOpened | Query::Ignored => {}
        }
    }
}

/// The requests that select an extension's change events.
fn selections(watch: Watch, major: u8, roots: &[u32]) -> Vec<Vec<u8>> {
    match watch {
        Watch::Keys => vec![keyboard_events(major)],
        Watch::Devices => roots.iter().map(|&root| device_events(major, root)).collect(),
        // The events are ScreenChange, CrtcChange, OutputChange and OutputProperty.
        Watch::Screens => roots.iter().map(|&root| screen_events(major, root)).collect(),
        Watch::Fonts => Vec::new(),
    }
}

fn screen_events(major: u8, root: u32) -> Vec<u8> {
    let mut bytes = request(NATIVE, major, 4, &[root, 0]);
    put_u16(NATIVE, &mut bytes, 8, 0xf);
    bytes
}

fn device_events(major: u8, root: u32) -> Vec<u8> {
    /// The events DeviceChanged, Hierarchy and Property, for all devices.
    const EVENTS: u32 = (1 << 1) | (1 << 11) | (1 << 12);
    let mut bytes = request(NATIVE, major, 46, &[root, 0, 0, EVENTS]);
    put_u16(NATIVE, &mut bytes, 8, 1);
    put_u16(NATIVE, &mut bytes, 14, 1);
    // The mask is an array of bytes, independent of the byte order.
    bytes[16..20].copy_from_slice(&EVENTS.to_le_bytes());
    bytes
}

/// Selects all events of the core keyboard except state changes.
fn keyboard_events(major: u8) -> Vec<u8> {
    const CORE_KEYBOARD: u16 = 0x100;
    /// The events NewKeyboard, Map, Controls, IndicatorMap, Names, CompatMap and ExtensionDevice.
    const KINDS: u16 = 1 | (1 << 1) | (1 << 3) | (1 << 5) | (1 << 6) | (1 << 7) | (1 << 11);
    const ALL_MAP_PARTS: u16 = 0xff;
    let mut bytes = request(NATIVE, major, 1, &[0, 0, 0]);
    for (at, value) in [(4, CORE_KEYBOARD), (6, KINDS), (8, 0), (10, KINDS), (12, ALL_MAP_PARTS), (14, ALL_MAP_PARTS)] {
        put_u16(NATIVE, &mut bytes, at, value);
    }
    bytes
}
