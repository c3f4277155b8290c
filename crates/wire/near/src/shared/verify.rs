// SPDX-License-Identifier: MIT
//! `--verify`: checks that the server agrees with the answers that the proxy gave in its place.
//!
//! A check must not hide the fault that it looks for: a question sent immediately could set the very state in the
//! server that the early answer assumed. The server therefore gets a NoOperation, as without `--verify`, and gets the
//! question only after the program has disconnected.
//!
//! State that the server keeps for a client is checked when the client frees it: FreeColors for a colour cell that was
//! allocated here must succeed.

use super::SharedState;
use crate::context::{close_font, open_font};
use crate::edit::Edit;
use crate::opcodes::op;
use crate::pending::{Pending, Recipient};
use crate::store::{Answer, Question, Store};
use std::collections::{HashMap, VecDeque};
use std::mem;
use xqos_wire::answerable::Class;
use xqos_x11::ByteOrder;

/// Maximum number of comparisons deferred until the program has disconnected. At this limit, all are sent immediately.
const MAX_DEFERRED: usize = 4096;
const MAX_CELLS: usize = 16_384;

/// An early answer whose question has not been sent to the server.
#[derive(Debug)]
pub struct Deferred {
    pub request: Box<[u8]>,
    /// `None` if the meaning of the request depends only on its bytes.
    pub question: Option<Question>,
    pub given: Answer,
    pub class: Class,
    pub edit: Option<Edit>,
}

/// Colour cells whose allocation was answered here.
#[derive(Debug, Default)]
pub struct Cells {
    /// Number of allocations by the program, for each colormap and pixel.
    given: HashMap<(u32, u32), u32>,
    /// FreeColors requests that free only these cells, as the server's sequence numbers.
    freed: VecDeque<u64>,
}

impl Cells {
    /// Records an answer.
    pub fn give(&mut self, order: ByteOrder, request: &[u8], answer: &[u8]) {
        let pixel_at = match request[0] {
            op::ALLOC_COLOR_REQUEST => 16,
            op::ALLOC_NAMED_COLOR_REQUEST => 8,
            _ => return,
        };
        if let (Some(colormap), Some(pixel)) = (order.u32(request, 4), order.u32(answer, pixel_at)) {
            if self.given.len() < MAX_CELLS {
                *self.given.entry((colormap, pixel)).or_default() += 1;
            }
        }
    }

    /// Records a request that is sent to the server.
    pub fn free(&mut self, order: ByteOrder, request: &[u8], number: u64) {
        let Some(colormap) = order.u32(request, 4) else { return };
        match request[0] {
            op::FREE_COLORMAP_REQUEST => self.given.retain(|&(of, _), _| of != colormap),
            // With a plane mask, the request would also free other cells.
            op::FREE_COLORS_REQUEST if order.u32(request, 8) == Some(0) => {
                let pixels = (12..request.len()).step_by(4).filter_map(|at| order.u32(request, at));
                let is_ours = pixels.map(|pixel| self.take((colormap, pixel))).fold(true, |all, one| all & one);
                self.freed.extend(is_ours.then_some(number));
            }
            _ => {}
        }
    }

    fn take(&mut self, cell: (u32, u32)) -> bool {
        match self.given.get_mut(&cell) {
            Some(1) => self.given.remove(&cell).is_some(),
            Some(count) => {
                *count -= 1;
                true
            }
            None => false,
        }
    }

    /// Whether an error for this request means that the server never had the cells.
    pub fn is_missing(&mut self, number: u64) -> bool {
        while self.freed.front().is_some_and(|&freed| freed < number) {
            self.freed.pop_front();
        }
        self.freed.front() == Some(&number)
    }
}

impl SharedState {
    /// Defers the comparison of an early answer.
    pub fn defer(&mut self, deferred: Deferred, store: &Store) {
        if self.deferred.len() >= MAX_DEFERRED {
            self.send_deferred(store);
        }
        self.deferred.push(deferred);
    }

    /// Sends the deferred questions and returns whether there were any. A question is skipped if later requests of the
    /// program have changed its meaning.
    pub fn send_deferred(&mut self, store: &Store) -> bool {
        let deferred = mem::take(&mut self.deferred);
        for one in &deferred {
            let known = store.opcodes.request(one.request[0], one.request[1]);
            let now = known.and_then(|known| self.context.question(&one.request, known));
            let is_same = one.question.is_none() || one.question == now;
            match &one.question {
                _ if is_same => self.ask_for_comparison(one),
                Some(Question(bytes)) if bytes[0] == op::QUERY_FONT_REQUEST => {
                    // The program has closed this font, so its ID is free.
                    let id = self.order.u32(&one.request, 4).unwrap_or(0);
                    self.ask_of_our_own(&open_font(self.order, id, &bytes[1..]), None);
                    self.ask_for_comparison(one);
                    self.ask_of_our_own(&close_font(self.order, id), None);
                }
                _ => {}
            }
        }
        !deferred.is_empty()
    }

    fn ask_for_comparison(&mut self, Deferred { request, given, class, edit, .. }: &Deferred) {
        let number = self.sequence.next_own();
        self.to_server.push(request);
        let (opcodes, given) = ((request[0], request[1]), given.clone());
        let recipient = Recipient::Comparison { given, class: *class };
        self.pending.push(Pending { number, opcodes, edit: *edit, learn: None, recipient, is_certain: true });
    }
}
