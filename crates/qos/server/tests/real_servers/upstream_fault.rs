// SPDX-License-Identifier: MIT
//! Shows the fault of stock servers that the fifth section of docs/upstream.md describes, with ordinary clients.

use crate::fixture::{Fixture, in_parallel, wait_for};
use crate::wire::{Message, Wire, code, opcode};
use std::time::Duration;
use xqos_abi::ByteOrder;
use xqos_lab::server::{ServerKind, Setup};

/// XTEST GrabControl.
const GRAB_CONTROL: u8 = 3;
/// The words of a request that is short enough for the core protocol, but sent in the form of BIG-REQUESTS.
const WORDS: usize = opcode::NO_OPERATION as usize;

const REPAIRED: &str = "\
if the request was executed, this server has the patch 5 of docs/upstream.md. xqos serves it well: xqos_return_request \
(shim/cut.c) writes the same length as the patch. Note the release in that page, and skip this test from there on";

/// A request of this many words in the form of BIG-REQUESTS, whose long length counts its own word.
fn long_form(order: ByteOrder, opcode: u8, words: usize) -> Vec<u8> {
    let mut request = Message::new(order, opcode, 0).u32(words as u32 + 1).raw(&vec![0; 4 * words - 4]).finish();
    request[2..4].fill(0);
    request
}

/// The client of `wire` sends GrabServer in the form of BIG-REQUESTS while `holder` has a grab, so that the server puts
/// the request back, and reads it again when the grab ends. XTEST makes the client impervious to grabs; otherwise the
/// server would not read the request during the grab.
fn wait_for_grab(holder: &mut Wire, wire: &mut Wire) {
    for (extension, minor, impervious) in [("BIG-REQUESTS", 0, None), ("XTEST", GRAB_CONTROL, Some(1))] {
        let major = wire.extension(extension).unwrap_or_else(|| panic!("the server has {extension}")).major;
        let request = impervious.iter().fold(wire.message(major, minor), |request, &on| request.raw(&[on, 0, 0, 0]));
        wire.tell_or_ask(&request.finish()).unwrap();
    }
    holder.tell(&holder.message(opcode::GRAB_SERVER, 0).finish()).unwrap();
    wire.send(&long_form(wire.order, opcode::GRAB_SERVER, 1));
    wait_for("the server reads the request", Duration::from_secs(60), || wire.unread_bytes() == 0);
    // Before it answers this, the server executes everything that it has read.
    holder.sync();
    holder.tell(&holder.message(opcode::UNGRAB_SERVER, 0).finish()).unwrap();
}

#[test]
fn a_big_request_that_is_read_again_is_a_word_short() {
    let _turn = in_parallel();
    for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
        let server = Fixture::start(&Setup::stock(ServerKind::Xvfb));
        let (mut holder, mut wire) = (server.native(), server.wire(order));
        wait_for_grab(&mut holder, &mut wire);
        let error = wire.answer().map(|answer| answer.map(drop).map_err(|error| (error.code, error.major)));
        assert_eq!(error, Some(Err((code::BAD_LENGTH, opcode::GRAB_SERVER))), "{order:?}: {REPAIRED}");
    }
}

/// The server has consumed only the header of the GrabServer request. It reads the header again, and takes the first
/// word of the next request for the long length.
#[test]
fn the_word_that_is_missing_is_taken_from_the_next_request() {
    if cfg!(target_endian = "big") {
        return;
    }
    let _turn = in_parallel();
    let server = Fixture::start(&Setup::stock(ServerKind::Xvfb));
    let (mut holder, mut wire) = (server.native(), server.native());
    wait_for_grab(&mut holder, &mut wire);
    // In this form, the first word is the opcode alone: the number of words that the server takes.
    wire.send(&long_form(ByteOrder::NATIVE, opcode::NO_OPERATION, WORDS - 2));
    let mut executed = || wire.answer().map(|answer| answer.expect_err("an error").major);
    assert_eq!([executed(), executed()], [Some(opcode::GRAB_SERVER); 2], "{REPAIRED}");
    // Both requests together had the right length, so the server finds the next request again.
    wire.sync();
}
