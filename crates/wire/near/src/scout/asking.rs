// SPDX-License-Identifier: MIT
//! Sends the questions that a program is likely to ask, as soon as the data that they need is known.

use super::{Deferred, Query, Scout, ScoutStage, Source};
use crate::bytes::{NATIVE, named_request, request, text_at};
use crate::context::{close_font, next_state, open_font};
use crate::opcodes::{HIDDEN, Watch, op};
use crate::questions::Questions;
use crate::store::{Question, Store};
use std::collections::HashMap;
use xqos_wire::answerable::Class;
use xqos_x11::codes::FIRST_EXTENSION;

impl Scout {
    /// Asks the questions that a program is likely to ask. Known answers are not requested again.
    pub fn ask(&mut self, questions: &Questions, source: Source, store: &mut Store) {
        let mut states: HashMap<String, u64> = HashMap::new();
        let mut planned = Vec::new();
        for line in questions.usual() {
            let state = states.entry(line.extension()).or_default();
            let creates = source.is_profile && questions.is_of_all(line);
            planned.push(Deferred { line: line.clone(), source, creates, state: *state });
            if line.sets_state() {
                let asked = line.build(None, &|_| None);
                *state = asked.map_or(*state, |asked| next_state(*state, &asked.request));
            }
        }
        self.has_questions = true;
        if self.stage != ScoutStage::Ended {
            self.ask_core(planned, store);
        }
        self.ask_extensions(store);
    }

    /// Creates the atoms that programs of this kind create, after a program has started to do so.
    pub fn create_missing(&mut self, store: &mut Store) {
        for question in store.take_missing() {
            let request = named_request(NATIVE, op::INTERN_ATOM_REQUEST, 0, &question.0[1..]);
            self.ask_one(&request, false, store);
        }
    }

    pub(super) fn query(&mut self, name: &str, store: &mut Store) {
        if HIDDEN.contains(&name) || !self.queried.insert(name.to_owned()) || store.opcodes.names.major(name).is_some()
        {
            return;
        }
        let question = Question::named(op::QUERY_EXTENSION_REQUEST, name.as_bytes());
        store.expect(&question);
        let bytes = named_request(NATIVE, op::QUERY_EXTENSION_REQUEST, 0, name.as_bytes());
        let query = Query::Question { question, watch: None, changes: store.changes(), creates: false };
        self.send(&bytes, Some(query));
    }

    /// Asks core questions; before the setup's reply arrives, only those that do not need it. Defers the others.
    pub(super) fn ask_core(&mut self, questions: Vec<Deferred>, store: &mut Store) {
        let screen = self.context.greeting.screens.first().copied();
        for deferred in questions {
            let Deferred { line, source, creates, .. } = &deferred;
            if line.is_property() {
                continue;
            }
            if !line.extension().is_empty() {
                self.query(&line.extension(), store);
                self.deferred.push(deferred);
                continue;
            }
            let Some(mut asked) = line.build(screen, &|name| store.atom(name)) else {
                self.deferred.extend(screen.is_none().then_some(deferred));
                continue;
            };
            match asked.request[0] {
                op::OPEN_FONT_REQUEST => self.ask_font(&asked.request, *source, store),
                op::LIST_EXTENSIONS_REQUEST => {}
                op::QUERY_EXTENSION_REQUEST => {
                    let name = text_at(NATIVE, &asked.request, 4, 8).unwrap_or_default();
                    self.query(&String::from_utf8_lossy(name), store);
                }
                op::INTERN_ATOM_REQUEST if source.is_profile => {
                    let creates = *creates && asked.request[1] == 0;
                    asked.request[1] = 1;
                    self.ask_one(&asked.request, creates, store);
                }
                _ => self.ask_one(&asked.request, false, store),
            }
        }
    }

    /// Opens a font by its name, queries it, and closes it.
    fn ask_font(&mut self, open: &[u8], source: Source, store: &mut Store) {
        let (Some(name), Some(question)) = (text_at(NATIVE, open, 8, 12), self.context.font_question(open)) else {
            return;
        };
        if store.answer(NATIVE, &question).is_some() || !self.is_for_fonts && store.is_expected(NATIVE, &question) {
            return;
        }
        store.expect(&question);
        let id = self.context.greeting.id_base;
        self.send(&open_font(NATIVE, id, name), None);
        if source.has_font_connections {
            self.send(&request(NATIVE, op::GET_INPUT_FOCUS_REQUEST, 0, &[]), Some(Query::FontOpened));
        } else {
            let (watch, changes) = (Some(Watch::Fonts), store.changes());
            let query = Query::Question { question, watch, changes, creates: false };
            self.send(&request(NATIVE, op::QUERY_FONT_REQUEST, 0, &[id]), Some(query));
        }
        self.send(&close_font(NATIVE, id), None);
    }

    fn ask_one(&mut self, request: &[u8], creates: bool, store: &mut Store) {
        let Some(known) = store.opcodes.request(request[0], request[1]).copied() else { return };
        let Some(question) = self.context.question(request, &known) else { return };
        // A request that sets state in an extension also prepares later questions of this connection.
        let prepares = request[0] >= FIRST_EXTENSION && known.row.class == Class::ConstantSetsState;
        if (prepares || store.answer(NATIVE, &question).is_none()) && !store.is_expected(NATIVE, &question) {
            store.expect(&question);
            let query = Query::Question { question, watch: known.watch, changes: store.changes(), creates };
            self.send(request, Some(query));
            self.context.hear(request, Some(&known));
        }
    }

    /// Waits until all extensions are known, then asks the questions of existing ones in the program's order. The
    /// change events of all extensions are selected before the first question whose answer can change. Skips questions
    /// that a program asked in another state of the extension.
    pub(super) fn ask_extensions(&mut self, store: &mut Store) {
        let is_waiting = self.pending.iter().any(|(_, query)| {
            matches!(query, Query::Question { question, .. } if question.0[0] == op::QUERY_EXTENSION_REQUEST)
        });
        if is_waiting || !self.has_questions || !matches!(self.stage, ScoutStage::Extensions | ScoutStage::Watching) {
            return;
        }
        let (screen, mut rest) = (self.context.greeting.screens.first().copied(), Vec::<(Vec<u8>, u64)>::new());
        for Deferred { line, state, .. } in std::mem::take(&mut self.deferred) {
            let Some(major) = store.opcodes.names.major(&line.extension()) else { continue };
            let Some(mut asked) = line.build(screen, &|name| store.atom(name)) else { continue };
            asked.request[0] = major;
            let is_watched = store.opcodes.request(major, asked.request[1]).is_some_and(|known| known.watch.is_some());
            if is_watched || rest.iter().any(|(other, _)| other[0] == major) {
                rest.push((asked.request, state));
            } else {
                self.ask_of_extension(&asked.request, state, store);
            }
        }
        if self.stage == ScoutStage::Extensions {
            self.watch(store);
            self.stage = ScoutStage::Watching;
        }
        rest.iter().for_each(|(request, state)| self.ask_of_extension(request, *state, store));
    }

    fn ask_of_extension(&mut self, request: &[u8], state: u64, store: &mut Store) {
        if self.context.state(request[0]) == state {
            self.ask_one(request, false, store);
        }
    }
}
