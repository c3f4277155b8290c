// SPDX-License-Identifier: MIT
//! The state that both directions of a connection share, and the queues of outgoing bytes.

pub mod verify;

use crate::context::ConnectionContext;
use crate::memory::AskedQuestions;
use crate::pending::{AnswerQueue, Learn, Pending, PendingQueue, Recipient};
use crate::questions::Line;
use crate::report::NearReport;
use crate::sequence::SequenceNumbers;
use crate::setup::Cookie;
use crate::store::Store;
use crate::windows::Windows;
use std::collections::BTreeSet;
use verify::{Cells, Deferred};
use xqos_wire::answerable::Class;
use xqos_x11::ByteOrder;

/// Maximum number of bytes queued for one side. At this limit, the proxy stops reading from the other side.
pub const MAX_QUEUED_BYTES: usize = 1 << 20;
/// Maximum number of log lines, so that a faulty server cannot fill the disk.
const MAX_LOG_LINES: usize = 100;

#[derive(Clone, Debug, Default)]
pub struct NearSettings {
    /// The cookie that programs must present; `None` accepts any cookie.
    pub own_cookie: Option<Cookie>,
    pub server_cookie: Cookie,
    /// Relaxed order: also answer after one-way requests that affect only the program's own resources.
    pub relaxed: bool,
    /// Compare each early answer with the server's reply, and check that colours allocated here can be freed.
    pub verify: bool,
    /// Answer nothing.
    pub passive: bool,
}

#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    gone: usize,
}

impl Outbox {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.gone..]
    }

    /// Removes `count` bytes that were sent.
    pub fn advance(&mut self, count: usize) {
        self.gone = (self.gone + count).min(self.bytes.len());
        if self.gone == self.bytes.len() {
            self.clear();
        } else if 2 * self.gone >= self.bytes.len() {
            // Drop sent bytes even if the queue never becomes empty.
            self.bytes.drain(..self.gone);
            self.gone = 0;
        }
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.gone = 0;
        // Release the memory that a large amount of queued data needed.
        self.bytes.shrink_to(64 << 10);
    }

    pub fn push(&mut self, bytes: &[u8]) -> &mut [u8] {
        let at = self.bytes.len();
        self.bytes.extend(bytes);
        &mut self.bytes[at..]
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() - self.gone >= MAX_QUEUED_BYTES
    }
}

#[derive(Debug, Default)]
pub struct SharedState {
    pub settings: NearSettings,
    pub order: ByteOrder,
    pub context: ConnectionContext,
    pub windows: Windows,
    pub sequence: SequenceNumbers,
    pub pending: PendingQueue,
    pub answers: AnswerQueue,
    pub to_server: Outbox,
    pub to_program: Outbox,
    /// Whether the order of requests allows an early answer now.
    pub may_answer: bool,
    pub holds_server: bool,
    pub has_long_requests: bool,
    /// Classes that are no longer answered here, because the server contradicted an answer.
    pub off: BTreeSet<Class>,
    /// Whether to drop the rest of a long server message.
    pub drops_rest: bool,
    /// The program's last request, if it was answered here.
    pub last_answered: Option<(u8, u8)>,
    pub report: NearReport,
    /// Comparisons deferred until the program has disconnected.
    pub deferred: Vec<Deferred>,
    pub cells: Cells,
    pub memory: AskedQuestions,
    pub log_lines: Vec<String>,
}

impl SharedState {
    pub fn new(settings: NearSettings) -> SharedState {
        let report = NearReport { connections: 1, ..NearReport::default() };
        SharedState { settings, may_answer: true, report, ..SharedState::default() }
    }

    pub fn log(&mut self, line: String) {
        if self.log_lines.len() < MAX_LOG_LINES {
            self.log_lines.push(line);
        }
    }

    /// Records that the program is waiting. If its last request was answered here, the answer saved a round trip.
    pub fn rest(&mut self) {
        if let Some((major, minor)) = self.last_answered.take().filter(|_| self.answers.is_empty()) {
            self.report.of(major, minor).saved += 1;
        }
    }

    /// Sends one of the proxy's own requests.
    pub fn ask_of_our_own(&mut self, bytes: &[u8], learn: Option<Learn>) {
        let number = self.sequence.next_own();
        self.to_server.push(bytes);
        if let Some(learn) = learn {
            let (opcodes, recipient) = ((bytes[0], 0), Recipient::Proxy);
            self.pending.push(Pending { number, opcodes, edit: None, learn: Some(learn), recipient, is_certain: true });
        }
    }

    /// Asks for properties of the root window, and for the events that report their changes.
    pub fn ask_ahead(&mut self, properties: &[Line], store: &Store) {
        let screen = self.context.greeting.screens.first().copied();
        for asked in properties.iter().filter_map(|line| line.build(screen, &|name| store.atom(name))) {
            let window = self.order.u32(&asked.request, 4).unwrap_or(0);
            if let Some(select) = self.windows.watch_properties(window) {
                self.ask_of_our_own(&select, None);
            }
            let request = asked.request[..].into();
            let learn = self.windows.read(window).map(|reading| Learn::Property { request, reading });
            self.ask_of_our_own(&asked.request, learn);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_never_empty_drops_sent_bytes() {
        let mut outbox = Outbox::default();
        outbox.push(&[0; 1000]);
        for number in 1..100_000_u32 {
            outbox.push(&[number as u8; 1000]);
            outbox.advance(1000);
            assert_eq!(outbox.bytes(), [number as u8; 1000]);
            assert!(outbox.bytes.len() <= 2000, "{} bytes after {number} thousand", outbox.bytes.len());
        }
    }
}
