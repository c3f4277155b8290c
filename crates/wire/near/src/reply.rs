// SPDX-License-Identifier: MIT
//! Handles a message from the server: passes it to the program, compares it with an early answer, or stores it.
//!
//! | message | handling |
//! |---|---|
//! | reply or error to a program's request | passed on, followed by our own answers that were waiting for it |
//! | reply to a request that was answered here | compared and dropped; an error counts as a difference |
//! | error to FreeColors of a colour allocated here | passed on; counts as a difference with `--verify` |
//! | reply or error to the proxy's own request | stored and dropped |
//! | reply that matches no request | passed on; the counts are wrong, so no further request is answered here |
//! | event | passed on, with the last given sequence number if that is higher; dropped if only the proxy selected it |

use crate::edit::is_same;
use crate::opcodes::op;
use crate::pending::{Learn, Pending, Recipient};
use crate::shared::SharedState;
use crate::store::Store;
use xqos_wire::answerable::Class;
use xqos_x11::codes::{ERROR, REPLY};

impl SharedState {
    /// Handles a message, or the beginning of a long message.
    pub fn hear(&mut self, message: &[u8], is_whole: bool, now_ns: u64, store: &mut Store) {
        self.drops_rest = false;
        match message[0] {
            ERROR | REPLY => self.hear_answer(message, is_whole, now_ns, store),
            _ => self.hear_event(message, store),
        }
    }

    /// Gives the program our own answers, up to the next pending reply.
    pub fn give_ready_answers(&mut self) {
        while let Some((number, answer)) = self.answers.next() {
            self.give(&answer, number);
        }
    }

    /// Queues a message for the program with `number`, or with the last number if that is higher.
    fn give(&mut self, message: &[u8], number: u64) {
        let number = self.sequence.for_program(number);
        let order = self.order;
        order.put_u16(self.to_program.push(message), 2, number);
    }

    fn hear_answer(&mut self, message: &[u8], is_whole: bool, now_ns: u64, store: &mut Store) {
        let low = self.order.u16(message, 2).unwrap_or(0);
        // Prefer the number of a pending request, because more than 65,535 requests without replies may precede it.
        let number = self.pending.number_of(low).or_else(|| self.sequence.widen(low));
        let Some(number) = number else { return self.hear_unasked(message) };
        self.reach(number, store);
        let Some(pending) = self.pending.take(number) else {
            return match message[0] {
                // An error for a request without a reply, sent by the proxy or by the program.
                ERROR if self.sequence.is_own(number) => {
                    self.windows.give_up();
                    self.drops_rest = true;
                }
                ERROR => {
                    if self.cells.is_missing(number) {
                        let what = "an error, as if it had not allocated this colour";
                        self.differs((op::FREE_COLORS_REQUEST, 0), Class::ConstantSetsState, what, store);
                    }
                    self.windows.refuse(self.sequence.current());
                    self.give(message, self.sequence.current());
                }
                _ => self.hear_unasked(message),
            };
        };
        match pending.recipient {
            Recipient::Program { .. } => self.hear_for_program(pending, message, is_whole, now_ns, store),
            Recipient::Comparison { .. } => {
                self.drops_rest = true;
                self.compare(&pending, message, is_whole, store);
            }
            Recipient::Proxy => {
                self.drops_rest = true;
                self.learn(pending.learn, message, is_whole, store);
            }
        }
    }

    fn hear_for_program(&mut self, pending: Pending, message: &[u8], is_whole: bool, now_ns: u64, store: &mut Store) {
        let Recipient::Program { number, last_of_many, asked_ns } = pending.recipient else { return };
        let more_follow = message[0] == REPLY && last_of_many.is_some_and(|last| last != message[1]);
        // The program has sent nothing since this request, so it waited for the reply.
        if number == self.sequence.requests && !more_follow {
            self.report.took(now_ns.saturating_sub(asked_ns));
            if pending.is_certain {
                self.report.of(pending.opcodes.0, pending.opcodes.1).left += 1;
            }
        }
        match pending.edit.filter(|_| is_whole && message[0] == REPLY) {
            None => {
                self.give(message, number);
                if message[0] == REPLY {
                    self.learn(pending.learn, message, is_whole, store);
                }
            }
            Some(edit) => {
                let mut message = message.to_vec();
                edit.apply(self.order, &mut message);
                self.give(&message, number);
                self.learn(pending.learn, &message, is_whole, store);
            }
        }
        if more_follow {
            let recipient = Recipient::Program { number, last_of_many, asked_ns };
            return self.pending.put_back(Pending { recipient, learn: None, ..pending });
        }
        self.answers.end(number);
        self.give_ready_answers();
    }

    fn hear_unasked(&mut self, message: &[u8]) {
        if !self.settings.passive {
            self.settings.passive = true;
            self.log(
                "the server sent an unexpected reply: from now on all of this client's requests go to the server"
                    .to_owned(),
            );
        }
        self.give(message, self.sequence.current());
    }

    /// Records that the server has reached `number`, so earlier requests will not be answered.
    fn reach(&mut self, number: u64, store: &mut Store) {
        while let Some(pending) = self.pending.pass(number) {
            match pending.recipient {
                Recipient::Program { number, .. } => self.answers.end(number),
                Recipient::Comparison { class, .. } => self.differs(pending.opcodes, class, "no reply", store),
                Recipient::Proxy => {}
            }
        }
        self.sequence.reach(number);
        self.give_ready_answers();
    }

    fn compare(&mut self, pending: &Pending, message: &[u8], is_whole: bool, store: &mut Store) {
        let Recipient::Comparison { ref given, class } = pending.recipient else { return };
        let mut message = message.to_vec();
        if let Some(edit) = pending.edit.filter(|_| message[0] == REPLY && is_whole) {
            edit.apply(self.order, &mut message);
        }
        let has_valuators =
            store.opcodes.names.request(pending.opcodes.0, pending.opcodes.1).ends_with("::XIQueryDevice");
        if message[0] == ERROR {
            self.differs(pending.opcodes, class, "an error", store);
        } else if !is_whole || !is_same(self.order, given, &message, has_valuators) {
            self.differs(pending.opcodes, class, "a different reply", store);
        } else {
            self.report.confirmed += 1;
        }
    }

    fn differs(&mut self, opcodes: (u8, u8), class: Class, what: &str, store: &mut Store) {
        self.report.differences += 1;
        self.off.insert(class);
        store.forget();
        let name = self.name(opcodes, store);
        self.log(format!(
            "the server's answer to {name} is {what}, unlike the one given here: \
             from now on such requests of this client go to the server"
        ));
    }

    fn learn(&mut self, learn: Option<Learn>, message: &[u8], is_whole: bool, store: &mut Store) {
        if !is_whole || message[0] != REPLY {
            return;
        }
        match learn {
            Some(Learn::Answer { question, watch, asked }) => store.keep(self.order, question, message, watch, asked),
            Some(Learn::Geometry(query)) => self.windows.keep_geometry(query, message),
            Some(Learn::Property { request, reading }) => self.windows.keep(reading, &request, message),
            None => {}
        }
    }

    fn hear_event(&mut self, message: &[u8], store: &mut Store) {
        let order = self.order;
        let (code, kind) = (message[0], order.u16(message, 8).unwrap_or(0));
        // KeymapNotify is the only message without a sequence number.
        if code & 0x7f == op::KEYMAP_NOTIFY_EVENT {
            self.to_program.push(message);
            return;
        }
        // An event with an impossible sequence number gets the last valid number.
        if let Some(number) = order.u16(message, 2).and_then(|low| self.sequence.widen(low)) {
            self.reach(number, store);
        }
        let here = self.sequence.current();
        let is_of_root = || order.u32(message, 8).is_some_and(|id| self.context.greeting.screen(id).is_some());
        if let Some(watch) = store.opcodes.changed_by(code, message[1], kind) {
            if code != op::CONFIGURE_NOTIFY_EVENT || is_of_root() {
                store.change(watch);
            }
        }
        let is_selected = self.windows.is_selected(message, here);
        if (op::CREATE_NOTIFY_EVENT..=op::CIRCULATE_REQUEST_EVENT).contains(&(code & 0x7f)) {
            self.windows.hear_structure(message, here);
        }
        if code == op::PROPERTY_NOTIFY_EVENT {
            self.windows.change(order.u32(message, 4).unwrap_or(0), order.u32(message, 8));
        }
        if is_selected {
            self.give(message, here);
        }
    }
}
