// SPDX-License-Identifier: MIT
//! The proxy's own connection: it prefetches the answers that a program is likely to need, and receives change events.
//! While the connection is open, the server does not reset; a reset would reassign all atoms and opcodes.
//!
//! | round trip | requests |
//! |---|---|
//! | 1 | setup, QueryExtension, and all questions of the core protocol that need nothing from the setup's reply |
//! | 2 | the other questions of the core protocol |
//! | 2 | versions, then the selection of change events, then all questions of extensions |
//!
//! Round trip 2 selects the events before it asks questions, so the answers are valid until an event arrives. Replies
//! on the program's own connection can be stored only after the server has confirmed the selection.
//!
//! Most of the bytes are font metrics, and ssh allows only 64 kB in flight per channel (320 kB/s with a round trip of
//! 200 ms). Font metrics are therefore requested on separate connections.

mod asking;
mod selections;

use crate::bytes::{NATIVE, request};
use crate::connection::MAX_REPLY_BYTES;
use crate::context::ConnectionContext;
use crate::opcodes::{Watch, op};
use crate::questions::Line;
use crate::setup::Cookie;
use crate::shared::Outbox;
use crate::store::{Changes, Question, Store};
use selections::selections;
use std::collections::{HashSet, VecDeque};
use xqos_wire::x11::framing::{Framer, Piece};
use xqos_wire::x11::greeting::Greeting;
use xqos_x11::length::Phase;

const WATCHED: [(&str, Watch); 3] =
    [("XKEYBOARD", Watch::Keys), ("XInputExtension", Watch::Devices), ("RANDR", Watch::Screens)];

/// Extensions that today's programs query, besides [`WATCHED`]. Early queries save a round trip at each start.
#[rustfmt::skip]
const COMMON: [&str; 17] = [
    "BIG-REQUESTS", "Composite", "DAMAGE", "DOUBLE-BUFFER", "DPMS", "GLX", "Generic Event Extension",
    "MIT-SCREEN-SAVER", "Present", "RECORD", "RENDER", "SHAPE", "SYNC", "XC-MISC", "XFIXES", "XINERAMA", "XTEST",
];

/// The source of questions, which determines how they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The questions are those of other programs. Atoms are not created.
    pub is_profile: bool,
    /// Other connections fetch the font metrics once this connection has opened the fonts.
    pub has_font_connections: bool,
}

/// A question that waits for the setup's reply or until its extension is known.
#[derive(Debug)]
struct Deferred {
    line: Line,
    source: Source,
    /// Whether all programs of this kind create this atom.
    creates: bool,
    /// The state that the program had set in the extension when it asked.
    state: u64,
}

#[derive(Debug)]
enum Query {
    Question {
        question: Question,
        watch: Option<Watch>,
        changes: Changes,
        /// Whether programs create this atom.
        creates: bool,
    },
    /// Sent after the event selections: its reply confirms them.
    SelectionDone,
    /// Sent after a font is opened: its reply confirms that the font is open.
    FontOpened,
    Ignored,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ScoutStage {
    #[default]
    Setup,
    Extensions,
    Watching,
    Ended,
}

#[derive(Debug, Default)]
pub struct Scout {
    stage: ScoutStage,
    /// The framing of the server's messages; `None` while [`Scout::from_server`] runs.
    server: Option<Framer>,
    out: Outbox,
    context: ConnectionContext,
    number: u64,
    /// Requests that have not been answered, with their numbers.
    pending: VecDeque<(u64, Query)>,
    deferred: Vec<Deferred>,
    /// Whether any program's questions were sent. They precede the proxy's own, because the server may keep the first
    /// version that a client requests.
    has_questions: bool,
    queried: HashSet<String>,
    /// Event selections, with the number of their request.
    selected: Vec<(u64, Watch)>,
    /// Whether this connection only fetches fonts; another connection receives changes.
    is_for_fonts: bool,
}

impl Scout {
    /// Starts a connection with a cookie, and asks for the extensions that most programs use.
    pub fn new(cookie: &Cookie, store: &mut Store) -> Scout {
        let mut scout = Scout::for_fonts(cookie);
        scout.is_for_fonts = false;
        let names = WATCHED.iter().map(|(name, _)| *name).chain(COMMON);
        names.for_each(|name| scout.query(name, store));
        scout
    }

    /// Starts a font connection. It fetches fonts ([`Questions::fonts`]) when [`Scout::ask`] is called.
    pub fn for_fonts(cookie: &Cookie) -> Scout {
        let mut out = Outbox::default();
        out.push(&cookie.setup(NATIVE));
        Scout {
            server: Some(Framer::with_limit(Phase::SetupReply, NATIVE, MAX_REPLY_BYTES)),
            out,
            is_for_fonts: true,
            ..Scout::default()
        }
    }

    /// Whether the server has opened the fonts in the program's order. Opening a font creates atoms, and the program
    /// may use their numbers.
    pub fn has_loaded_fonts(&self) -> bool {
        let is_loading = self.pending.iter().any(|(_, query)| matches!(query, Query::FontOpened));
        let is_waiting = self.deferred.iter().any(|deferred| deferred.line.font().is_some());
        self.stage == ScoutStage::Ended || self.stage != ScoutStage::Setup && !is_loading && !is_waiting
    }

    pub fn asked(&self) -> u64 {
        self.number
    }

    pub fn to_server(&mut self) -> &mut Outbox {
        &mut self.out
    }

    /// Whether all requests have been answered or can no longer be answered.
    pub fn is_ready(&self) -> bool {
        self.stage == ScoutStage::Ended || self.stage == ScoutStage::Watching && self.pending.is_empty()
    }

    /// Ends the connection. Also forgets the server's answers, unless this is a font connection, which may be refused.
    pub fn end(&mut self, store: &mut Store) {
        self.stage = ScoutStage::Ended;
        for (_, query) in self.pending.drain(..) {
            if let Query::Question { question, .. } = query {
                store.give_up(&question);
            }
        }
        if !self.is_for_fonts {
            store.forget();
            store.unwatch();
        }
    }

    pub fn has_ended(&self) -> bool {
        self.stage == ScoutStage::Ended
    }

    pub fn from_server(&mut self, bytes: &[u8], store: &mut Store) {
        let (mut input, Some(mut server)) = (bytes, self.server.take()) else { return };
        while self.stage != ScoutStage::Ended {
            match server.piece(&mut input) {
                Ok(None) => break,
                Ok(Some(Piece::Whole(bytes))) if self.stage == ScoutStage::Setup => {
                    self.greeted(bytes, store);
                    server.phase = Phase::Replies;
                }
                Ok(Some(Piece::Whole(bytes))) => self.hear(bytes, true, store),
                Ok(Some(Piece::Head(bytes))) if self.stage != ScoutStage::Setup => self.hear(bytes, false, store),
                Ok(Some(Piece::More(_))) => {}
                Ok(Some(Piece::Head(_))) | Err(_) => self.end(store),
            }
        }
        self.server = Some(server);
    }

    fn greeted(&mut self, bytes: &[u8], store: &mut Store) {
        let Some(greeting) = Greeting::of(NATIVE, bytes) else { return self.end(store) };
        self.context = ConnectionContext::new(NATIVE, greeting);
        self.stage = if self.is_for_fonts { ScoutStage::Watching } else { ScoutStage::Extensions };
        let deferred = std::mem::take(&mut self.deferred);
        self.ask_core(deferred, store);
    }

    /// Selects all events that report changes.
    fn watch(&mut self, store: &mut Store) {
        let roots: Vec<u32> = self.context.greeting.screens.iter().map(|screen| screen.root).collect();
        for (name, watch) in WATCHED {
            let Some(major) = store.opcodes.names.major(name) else { continue };
            // The program sent no version request, so the proxy must send one.
            if self.context.state(major) == 0 {
                let version = match watch {
                    Watch::Keys => request(NATIVE, major, 0, &[1]),
                    Watch::Devices => request(NATIVE, major, 47, &[0x0002_0002]),
                    _ => request(NATIVE, major, 0, &[1, 5]),
                };
                self.send(&version, Some(Query::Ignored));
                self.context.hear(&version, store.opcodes.request(major, version[1]));
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
        self.pending.extend(query.map(|query| (self.number, query)));
    }

    fn hear(&mut self, message: &[u8], is_whole: bool, store: &mut Store) {
        let low = NATIVE.u16(message, 2).unwrap_or(0);
        match message[0] {
            0 => {
                self.selected.retain(|(number, _)| *number as u16 != low);
                if let Some(Query::Question { question, .. }) = self.take(low) {
                    store.give_up(&question);
                }
            }
            1 => {
                if let Some(query) = self.take(low) {
                    self.answered(query, message, is_whole, store);
                }
            }
            code => {
                let kind = NATIVE.u16(message, 8).unwrap_or(0);
                if let Some(watch) = store.opcodes.changed_by(code, message[1], kind) {
                    store.change(watch);
                }
            }
        }
        self.ask_extensions(store);
    }

    /// Removes and returns the request with this number. Earlier requests can no longer be answered.
    fn take(&mut self, low: u16) -> Option<Query> {
        let index = self.pending.iter().position(|(number, _)| *number as u16 == low)?;
        self.pending.drain(..=index).next_back().map(|(_, query)| query)
    }

    fn answered(&mut self, query: Query, message: &[u8], is_whole: bool, store: &mut Store) {
        match query {
            Query::Question { question, watch, changes, creates } => {
                let is_none = question.0[0] == op::INTERN_ATOM_REQUEST && NATIVE.u32(message, 8) == Some(0);
                store.give_up(&question);
                if is_none && creates {
                    store.miss(question);
                } else if is_whole {
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
