// SPDX-License-Identifier: MIT
//! The known answers of one server, shared by all programs of the proxy.
//!
//! A watched answer is stored with the change count at the time of its request, and the next change makes it invalid.
//! All answers are forgotten when the proxy's own connection closes, because the server may have reset.

use crate::bytes::{NATIVE, request};
pub use crate::opcodes::Watch;
use crate::opcodes::{Opcodes, WATCHES, op};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use xqos_wire::x11::names::extension_of;
use xqos_x11::ByteOrder;

/// Maximum total size of all answers. A program's start adds 50 kB to 3 MB, mostly keyboard maps and font metrics.
const MAX_BYTES: usize = 32 << 20;
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Memory that an entry uses in addition to its bytes.
const ENTRY_BYTES: usize = 128;

/// The content of a request, independent of its connection. Equal questions have equal answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question(pub Box<[u8]>);

impl Question {
    /// The question of a request that asks only for a name.
    pub fn named(major: u8, name: &[u8]) -> Question {
        Question([&[major], name].concat().into())
    }
}

/// A reply with sequence number zero.
pub type Answer = Arc<[u8]>;

/// Converts a reply to an answer.
pub fn answer_of(reply: &[u8]) -> Answer {
    let mut answer = reply.to_vec();
    answer[2..4].fill(0);
    answer.into()
}

/// The change counts when a question was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes([u32; WATCHES]);

#[derive(Debug)]
struct StoredAnswer {
    answer: Answer,
    watch: Option<(Watch, u32)>,
}

#[derive(Debug, Default)]
pub struct Store {
    pub opcodes: Opcodes,
    /// One map for each byte order, because answers are stored as the server sent them.
    answers: [HashMap<Question, StoredAnswer>; 2],
    bytes: usize,
    changes: [u32; WATCHES],
    is_watched: [bool; WATCHES],
    /// Questions that the proxy has asked, in native byte order, and whose replies are pending.
    expected: HashSet<Question>,
    /// Names of atoms, by their numbers.
    atoms: HashMap<u32, Box<[u8]>>,
    /// Missing atoms that programs of this kind create when they start.
    missing: Vec<Question>,
    creates_missing: bool,
}

impl Store {
    /// The answer to a question, if it is still valid.
    pub fn answer(&self, order: ByteOrder, question: &Question) -> Option<&Answer> {
        let stored = self.answers[order as usize].get(question)?;
        match stored.watch {
            Some((watch, changes)) => {
                (self.is_watching(watch) && self.changes[watch as usize] == changes).then_some(&stored.answer)
            }
            None => Some(&stored.answer),
        }
    }

    /// Stores a reply; `asked` holds the change counts from when the question was sent.
    pub fn keep(&mut self, order: ByteOrder, question: Question, reply: &[u8], watch: Option<Watch>, asked: Changes) {
        if order == NATIVE {
            self.expected.remove(&question);
        }
        if question.0[0] == op::QUERY_EXTENSION_REQUEST {
            self.learn_extension(&question.0[1..], reply);
        }
        // A missing atom may be created at any time.
        if question.0[0] == op::INTERN_ATOM_REQUEST && order.u32(reply, 8) == Some(0) {
            return;
        }
        let changes = watch.map(|watch| (watch, asked.0[watch as usize]));
        if changes.is_some_and(|(watch, changes)| self.changes[watch as usize] != changes) {
            return;
        }
        let bytes = question.0.len() + reply.len() + ENTRY_BYTES;
        if bytes > MAX_ANSWER_BYTES + (64 << 10) {
            return;
        }
        if self.bytes + bytes > MAX_BYTES {
            self.forget();
        }
        self.learn_atom(order, &question, reply);
        let stored = StoredAnswer { answer: answer_of(reply), watch: changes };
        self.bytes += bytes;
        if let Some(before) = self.answers[order as usize].insert(question, stored) {
            self.bytes = self.bytes.saturating_sub(before.answer.len() + ENTRY_BYTES);
        }
    }

    /// Learns the number of an atom, which also answers the request for its name.
    fn learn_atom(&mut self, order: ByteOrder, question: &Question, reply: &[u8]) {
        if question.0[0] == op::GET_ATOM_NAME_REQUEST {
            let name = order.u16(reply, 8).and_then(|length| reply.get(32..32 + usize::from(length)));
            self.atoms.extend(order.u32(&question.0, 4).zip(name.map(Into::into)));
        }
        if question.0[0] != op::INTERN_ATOM_REQUEST {
            return;
        }
        let (name, number) = (&question.0[1..], order.u32(reply, 8).unwrap_or(0));
        let mut answer = vec![0; 32];
        answer[0] = 1;
        order.put_u16(&mut answer, 8, name.len() as u16);
        answer.extend(name);
        answer.resize(answer.len().next_multiple_of(4), 0);
        let words = (answer.len() - 32) as u32 / 4;
        order.put_u32(&mut answer, 4, words);
        self.atoms.insert(number, name.into());
        let question = Question(request(order, op::GET_ATOM_NAME_REQUEST, 0, &[number]).into());
        self.keep(order, question, &answer, None, self.changes());
    }

    pub fn atom_name(&self, number: u32) -> Option<&[u8]> {
        self.atoms.get(&number).map(|name| &name[..])
    }

    pub fn atom(&self, name: &[u8]) -> Option<u32> {
        NATIVE.u32(self.answer(NATIVE, &Question::named(op::INTERN_ATOM_REQUEST, name))?, 8)
    }

    /// Records that the proxy has asked this question on a connection of its own.
    pub fn expect(&mut self, question: &Question) {
        self.expected.insert(question.clone());
    }

    /// Whether a reply to this question is pending, which will arrive sooner than a reply to the program's request.
    pub fn is_expected(&self, order: ByteOrder, question: &Question) -> bool {
        order == NATIVE && self.expected.contains(question)
    }

    /// Whether the metrics of a font are known or on their way.
    pub fn knows_font(&self, name: &[u8]) -> bool {
        let question = Question::named(op::QUERY_FONT_REQUEST, name);
        self.is_expected(NATIVE, &question) || self.answer(NATIVE, &question).is_some()
    }

    pub fn expects_any(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Records that a question will not be answered.
    pub fn give_up(&mut self, question: &Question) {
        self.expected.remove(question);
    }

    /// Stops waiting for all expected replies.
    pub fn expect_nothing(&mut self) {
        self.expected.clear();
    }

    /// Records a missing atom that programs of this kind create.
    pub fn miss(&mut self, atom: Question) {
        self.missing.push(atom);
    }

    /// Records that a program creates an atom. If it was missing, the program is creating the atoms of its toolkit, and
    /// the proxy creates the others in the same round trip.
    pub fn create(&mut self, atom: &Question) {
        self.creates_missing |= self.missing.contains(atom);
    }

    /// The missing atoms, once a program has started to create them.
    pub fn take_missing(&mut self) -> Vec<Question> {
        if std::mem::take(&mut self.creates_missing) { std::mem::take(&mut self.missing) } else { Vec::new() }
    }

    pub fn forget(&mut self) {
        self.answers = Default::default();
        self.atoms.clear();
        self.missing.clear();
        self.bytes = 0;
    }

    pub fn changes(&self) -> Changes {
        Changes(self.changes)
    }

    /// Records a change, or a request that causes one.
    pub fn change(&mut self, watch: Watch) {
        self.changes[watch as usize] = self.changes[watch as usize].wrapping_add(1);
    }

    /// Records that the server reports changes of this kind from now on.
    pub fn watch(&mut self, watch: Watch) {
        self.is_watched[watch as usize] = true;
    }

    /// Records that the server no longer reports changes.
    pub fn unwatch(&mut self) {
        self.is_watched = Default::default();
    }

    pub fn is_watching(&self, watch: Watch) -> bool {
        // No event reports a new font path, so early answers about fonts are compared with the server's replies.
        watch == Watch::Fonts || self.is_watched[watch as usize]
    }

    /// Records what the server reported about an extension.
    pub fn learn_extension(&mut self, name: &[u8], reply: &[u8]) {
        if let Some([major, first_event, first_error]) = extension_of(reply) {
            self.opcodes.learn(&String::from_utf8_lossy(name), major, first_event, first_error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(number: u32) -> Question {
        Question(number.to_le_bytes().into())
    }

    const ORDER: ByteOrder = ByteOrder::Little;

    #[test]
    fn a_watched_answer_is_valid_until_a_reported_change() {
        let mut store = Store::default();
        let asked = store.changes();
        store.keep(ORDER, question(1), &[1; 32], Some(Watch::Keys), asked);
        assert_eq!(store.answer(ORDER, &question(1)), None, "changes are not received");
        store.watch(Watch::Keys);
        assert!(store.answer(ORDER, &question(1)).is_some());
        assert_eq!(store.answer(ByteOrder::Big, &question(1)), None);
        store.change(Watch::Screens);
        assert!(store.answer(ORDER, &question(1)).is_some());
        store.change(Watch::Keys);
        assert_eq!(store.answer(ORDER, &question(1)), None);
        store.keep(ORDER, question(1), &[1; 32], Some(Watch::Keys), asked);
        assert_eq!(store.answer(ORDER, &question(1)), None, "the answer was requested before the change");
    }

    #[test]
    fn memory_is_bounded() {
        let mut store = Store::default();
        for number in 0..2000 {
            store.keep(ORDER, question(number), &[1; 60_000], None, store.changes());
            assert!(store.bytes <= MAX_BYTES);
        }
        assert!(store.answer(ORDER, &question(1999)).is_some());
        store.keep(ORDER, question(1), &[1; 2 << 20], None, store.changes());
        assert_eq!(store.answer(ORDER, &question(1)), None, "one answer exceeds its limit");
    }
}
