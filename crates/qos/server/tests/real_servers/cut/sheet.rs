// SPDX-License-Identifier: MIT
//! A pixmap that shows whether each part of a request was executed exactly once.

use super::cutting_setup;
use crate::fixture::{Fixture, SOON, entry, in_parallel, uses_libc_host, wait_for};
use crate::wire::{Wire, opcode};
use std::sync::RwLockReadGuard;
use xqos_abi::entry_flag;
use xqos_client::Control;
use xqos_lab::server::Setup;

const ROWS: usize = 256;
/// The parts of a request that takes some tenths of a second if it is cut after each, and little if it is not cut.
pub const LONG: usize = 62 * ROWS + ROWS / 2;

/// Starts a server that cuts each request after each part; `None` if requests are not cut on this host.
pub fn start(change: impl FnOnce(&mut Setup)) -> Option<(RwLockReadGuard<'static, ()>, Fixture)> {
    let turn = in_parallel();
    let mut setup = cutting_setup();
    change(&mut setup);
    (!uses_libc_host()).then(|| (turn, Fixture::start(&setup)))
}

/// A pixmap that begins black, and a context that inverts it.
pub struct Sheet {
    pub pixmap: u32,
    context: u32,
}

impl Sheet {
    pub const WIDTH: u16 = 100;

    pub fn new(wire: &mut Wire) -> Sheet {
        const CLEAR: u32 = 0;
        const XOR: u32 = 6;
        wire.set_patience(SOON);
        let (pixmap, context) = (wire.new_id(), wire.new_id());
        let size = [Sheet::WIDTH, ROWS as u16];
        let request = wire.message(opcode::CREATE_PIXMAP, 24).u32(pixmap).u32(wire.root).u16(size[0]).u16(size[1]);
        wire.tell(&request.finish()).unwrap();
        let request = wire.message(opcode::CREATE_GC, 0).u32(context).u32(pixmap).u32(1 | (1 << 2));
        wire.tell(&request.u32(CLEAR).u32(0x00ff_ffff).finish()).unwrap();
        let request = wire.message(opcode::POLY_FILL_RECTANGLE, 0).u32(pixmap).u32(context).u32(0);
        wire.tell(&request.u16(size[0]).u16(size[1]).finish()).unwrap();
        wire.tell(&wire.message(56, 0).u32(context).u32(1).u32(XOR).finish()).unwrap();
        Sheet { pixmap, context }
    }

    /// The same pixmap, drawn with a context of another client.
    pub fn with_context_of(&self, other: &Sheet) -> Sheet {
        Sheet { pixmap: self.pixmap, context: other.context }
    }

    /// A request of this many parts, each of which inverts the next row.
    pub fn invert(&self, wire: &Wire, parts: usize) -> Vec<u8> {
        let request = wire.message(opcode::POLY_FILL_RECTANGLE, 0).u32(self.pixmap).u32(self.context);
        let row = |part: usize| (part % ROWS) as u16;
        (0..parts).fold(request, |request, part| request.u16(0).u16(row(part)).u16(Sheet::WIDTH).u16(1)).finish()
    }

    pub fn read(&self, wire: &Wire) -> Vec<u8> {
        let request = wire.message(opcode::GET_IMAGE, 2).u32(self.pixmap).u32(0);
        request.u16(Sheet::WIDTH).u16(ROWS as u16).u32(!0).finish()
    }

    /// Checks that requests with these numbers of parts, and no others, were executed.
    pub fn assert_inverted(&self, wire: &mut Wire, requests: &[usize]) {
        let reply = wire.ask(&self.read(wire)).unwrap();
        assert_eq!(rows(&reply), rows_after(requests));
    }
}

/// For each row of the image in this reply: true if it is inverted.
pub fn rows(reply: &[u8]) -> Vec<bool> {
    let is_white = |row: &[u8]| {
        let mut bytes = row.chunks(4).flat_map(|pixel| &pixel[..3]);
        let first = bytes.next() == Some(&0xff);
        assert!(bytes.all(|&byte| byte == if first { 0xff } else { 0 }), "a row is inverted in part");
        first
    };
    reply[32..].chunks(4 * usize::from(Sheet::WIDTH)).map(is_white).collect()
}

pub fn rows_after(requests: &[usize]) -> Vec<bool> {
    let times = |row: usize| requests.iter().map(|&parts| (parts + ROWS - 1 - row) / ROWS).sum::<usize>();
    (0..ROWS).map(|row| times(row) % 2 == 1).collect()
}

/// Sends a long request, and waits until its rest is pending. The client is held from then on, until its reservation is
/// released, so the rest stays pending even if this process gets no processor for a while.
pub fn begin(control: &Control, owner: &mut Wire, sheet: &Sheet) {
    let before = entry(control, owner.base);
    // The use of earlier budgets still counts, including time in which the server had no processor.
    let mut budget_us = 500;
    wait_for("the client has budget", SOON, || {
        control.reserve(owner.base, budget_us, 10_000_000, true).unwrap();
        let missing_us = 500 - control.reservation(owner.base).unwrap().budget_left_ns / 1000;
        budget_us += u32::try_from(missing_us).unwrap_or(0);
        missing_us <= 100
    });
    owner.send(&sheet.invert(owner, LONG));
    wait_for("the request is cut", SOON, || {
        let now = entry(control, owner.base);
        now.cuts > before.cuts && now.flags & entry_flag::HELD_BACK != 0
    });
}
