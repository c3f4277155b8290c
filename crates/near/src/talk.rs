// SPDX-License-Identifier: MIT
//! What both directions of a connection have in common: what is known of it, what waits, and what goes out.

pub mod verify;

use crate::dialogue::Dialogue;
use crate::due::{Due, Dues, For, Learn, Turns};
use crate::memory::Memory;
use crate::numbers::Numbers;
use crate::opcodes::op;
use crate::report::Report;
use crate::setup::Cookie;
use crate::windows::Windows;
use std::collections::BTreeSet;
use verify::{Cells, Later};
use xqos_wire::answerable::Class;
use xqos_wire::x11::bytes::ByteOrder;
use xqos_wire::x11::greeting::Greeting;

/// What waits for one side at most before the other one is no longer read.
pub const MAX_QUEUED_BYTES: usize = 1 << 20;
/// Lines for the log; a server that lies could fill a disk.
const MAX_REMARKS: usize = 100;

/// How the proxy behaves.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What the program has to show; `None`: anybody is let in.
    pub own_cookie: Option<Cookie>,
    /// What the server wants to see.
    pub server_cookie: Cookie,
    /// Answers also come after one-way requests that concern the program's own resources.
    pub relaxed: bool,
    /// All answers are compared with the server's, and what it keeps for the program with what they promised.
    pub verify: bool,
    /// Nothing is answered here.
    pub passive: bool,
}

/// Bytes that go out.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    gone: usize,
}

impl Outbox {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.gone..]
    }

    /// So many of them went.
    pub fn advance(&mut self, count: usize) {
        self.gone = (self.gone + count).min(self.bytes.len());
        if self.gone == self.bytes.len() {
            self.clear();
        }
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.gone = 0;
        // What a burst needed is not kept for ever.
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

/// What both directions have in common.
#[derive(Debug)]
pub struct Talk {
    pub settings: Settings,
    pub order: ByteOrder,
    pub dialogue: Dialogue,
    pub windows: Windows,
    pub numbers: Numbers,
    pub dues: Dues,
    pub turns: Turns,
    pub to_server: Outbox,
    pub to_program: Outbox,
    /// What comes next may be answered here, as far as the order is concerned.
    pub is_clear: bool,
    pub holds_server: bool,
    pub has_long_requests: bool,
    /// Classes whose answers turned out to be wrong.
    pub off: BTreeSet<Class>,
    /// The rest of a long message of the server's is for nobody.
    pub drops_rest: bool,
    /// The last request was answered here, and the program has nothing else to say.
    pub last_answered: Option<(u8, u8)>,
    pub report: Report,
    /// To be verified.
    pub later: Vec<Later>,
    pub cells: Cells,
    pub memory: Memory,
    pub remarks: Vec<String>,
}

impl Talk {
    /// Before its first byte.
    pub fn new(settings: Settings) -> Talk {
        let order = ByteOrder::Little;
        let dialogue = Dialogue::new(order, Greeting::default());
        Talk {
            settings,
            order,
            windows: Windows::new(&dialogue),
            dialogue,
            numbers: Numbers::default(),
            dues: Dues::default(),
            turns: Turns::default(),
            to_server: Outbox::default(),
            to_program: Outbox::default(),
            is_clear: true,
            holds_server: false,
            has_long_requests: false,
            off: BTreeSet::new(),
            drops_rest: false,
            last_answered: None,
            report: Report { connections: 1, ..Report::default() },
            later: Vec::new(),
            cells: Cells::default(),
            memory: Memory::default(),
            remarks: Vec::new(),
        }
    }

    pub fn remark(&mut self, line: String) {
        if self.remarks.len() < MAX_REMARKS {
            self.remarks.push(line);
        }
    }

    /// The program has nothing else to say: it waits, or would have waited, for the last answer.
    pub fn rest(&mut self) {
        if let Some((major, minor)) = self.last_answered.take().filter(|_| self.turns.is_empty()) {
            self.report.of(major, minor).saved += 1;
        }
    }

    /// A request of the proxy's own.
    pub fn ask_of_our_own(&mut self, bytes: &[u8], learn: Option<Learn>) {
        let number = self.numbers.ask_of_our_own();
        self.to_server.push(bytes);
        if let Some(learn) = learn {
            let opcodes = (bytes[0], 0);
            let due = Due { number, opcodes, edit: None, learn: Some(learn), is_for: For::Us, is_certain: true };
            self.dues.push(due);
        }
    }

    pub fn ask_ahead(&mut self, memory: &Memory) {
        let order = self.order;
        for entry in
            memory.entries().iter().filter(|entry| entry.request[0] == op::GET_PROPERTY_REQUEST && entry.told == 0)
        {
            let Some(window) =
                order.u32(&entry.request, 4).filter(|&window| self.dialogue.greeting.screen(window).is_some())
            else {
                continue;
            };
            if !entry.extension.is_empty() || entry.request.len() != 24 || entry.request[1] != 0 {
                continue;
            }
            if let Some(select) = self.windows.watch(window, order) {
                self.ask_of_our_own(&select, None);
            }
            let learn =
                self.windows.read(window).map(|reading| Learn::Property { request: entry.request[..].into(), reading });
            self.ask_of_our_own(&entry.request, learn);
        }
    }
}
