// SPDX-License-Identifier: MIT
//! Replies contain only the requested data, although the server reuses memory that other clients have freed.

use super::drawing::scene::{DEPTHS, row_bytes};
use super::world::message;
use super::{cutting_setup, drawing};
use crate::fixture::{Fixture, in_parallel, uses_libc_host};
use crate::wire::{Wire, opcode};
use xqos_lab::server::{ServerKind, Setup};

/// The byte that the other client leaves in the server's memory.
const PATTERN: u8 = 0xa5;
const WIDTHS: [u16; 6] = [1, 3, 7, 17, 33, 61];
const HEIGHT: u16 = 9;

/// Makes a pixmap and a context, and draws this image to the pixmap.
fn draw(wire: &mut Wire, depth: u8, [width, height]: [u16; 2], byte: u8) -> [u32; 2] {
    let ids @ [pixmap, context] = [wire.new_id(), wire.new_id()];
    let request = message(opcode::CREATE_PIXMAP, depth).u32(pixmap).u32(wire.root).u16(width).u16(height);
    wire.send(&request.finish());
    wire.send(&message(opcode::CREATE_GC, 0).u32(context).u32(pixmap).u32(0).finish());
    let request = message(opcode::PUT_IMAGE, 2).u32(pixmap).u32(context).u16(width).u16(height).u32(0);
    let image = vec![byte; row_bytes(depth, width) * usize::from(height)];
    wire.tell(&request.raw(&[0, depth, 0, 0]).raw(&image).finish()).unwrap();
    ids
}

fn image(wire: &mut Wire, format: u8, pixmap: u32, [width, height]: [u16; 2]) -> Vec<u8> {
    let request = message(opcode::GET_IMAGE, format).u32(pixmap).u32(0).u16(width).u16(height).u32(!0);
    wire.ask(&request.finish()).unwrap()
}

fn change_property(wire: &mut Wire, format: u8, items: usize, byte: u8) {
    let bytes = vec![byte; items * usize::from(format) / 8];
    let request = message(opcode::CHANGE_PROPERTY, 0).u32(wire.root).u32(39).u32(31).raw(&[format, 0, 0, 0]);
    wire.tell(&request.u32(items as u32).raw(&bytes).finish()).unwrap();
}

fn property(wire: &mut Wire, deletes: bool) -> Vec<u8> {
    let request = message(opcode::GET_PROPERTY, u8::from(deletes)).u32(wire.root).u32(39).u32(31).u32(0).u32(10_000);
    wire.ask(&request.finish()).unwrap()
}

/// Fills memory of many sizes through another client, in pixmaps, properties, requests and replies, and frees it.
fn leave_pattern(wire: &mut Wire) {
    let sizes = [[3, 2], [17, 9], [61, 9], [100, 80], [300, 200]];
    let pixmaps = sizes.map(|size| {
        let [pixmap, context] = draw(wire, 32, size, PATTERN);
        image(wire, 1, pixmap, size);
        wire.send(&message(60, 0).u32(context).finish());
        pixmap
    });
    for items in [5, 31, 300, 5000] {
        change_property(wire, 8, items, PATTERN);
        property(wire, true);
    }
    pixmaps.iter().for_each(|pixmap| wire.send(&message(54, 0).u32(*pixmap).finish()));
    wire.sync();
}

/// Returns true if each row of this image has only zeros after its pixels.
fn ends_in_zeros(image: &[u8], row_bytes: usize, used_bits: usize) -> bool {
    let bit = |row: &[u8], at: usize| row[at / 8] & (1 << (at % 8)) != 0;
    image.chunks(row_bytes).all(|row| !(used_bits..8 * row_bytes).any(|at| bit(row, at)))
}

/// The replies of a server to a client that owns nothing with the pattern.
fn replies(fixture: &Fixture) -> Vec<Vec<u8>> {
    let [mut wire, mut other] = [fixture.native(), fixture.native()];
    let mut replies = Vec::new();
    for depth in DEPTHS {
        for width in WIDTHS {
            let size = [width, HEIGHT];
            leave_pattern(&mut other);
            // The rows of this image are parts. They end in ones, which the server must not copy.
            let [pixmap, context] = draw(&mut wire, depth, size, 0x5a);
            let request = message(opcode::POLY_FILL_RECTANGLE, 0).u32(pixmap).u32(context);
            let request = (0..5).fold(request, |request, at| request.u16(at).u16(at).u16(at).u16(2));
            wire.tell(&request.finish()).unwrap();
            let pixels = image(&mut wire, 2, pixmap, size);
            let row = row_bytes(depth, width);
            let bits = if depth == 1 { 1 } else { row_bytes(depth, 8) };
            assert!(ends_in_zeros(&pixels[32..], row, usize::from(width) * bits), "depth {depth}, width {width}");
            let planes = image(&mut wire, 1, pixmap, size);
            assert!(ends_in_zeros(&planes[32..], row_bytes(1, width), width.into()), "depth {depth}, width {width}");
            for reply in [pixels, planes] {
                assert_eq!(reply[12..32], [0; 20], "the unused fields");
                replies.push(reply);
            }
            wire.send(&message(54, 0).u32(pixmap).finish());
        }
    }
    for (format, items) in [(8, 1), (8, 5), (8, 30), (8, 4999), (16, 1), (16, 15), (16, 301), (32, 3)] {
        leave_pattern(&mut other);
        change_property(&mut wire, format, items, 0x5a);
        let reply = property(&mut wire, false);
        let used = items * usize::from(format) / 8;
        assert!(reply[32 + used..].iter().all(|&byte| byte == 0) && reply[20..32] == [0; 12], "{items} of {format}");
        replies.push(reply);
    }
    // GetWindowAttributes, GetGeometry, QueryTree, GetAtomName, ListProperties, QueryPointer.
    for major in [3, 14, 15, 17, 21, 38] {
        leave_pattern(&mut other);
        let id = if major == 17 { 39 } else { wire.root };
        replies.push(wire.ask(&message(major, 0).u32(id).finish()).unwrap());
    }
    replies
}

#[test]
fn replies_contain_nothing_that_another_client_has_freed() {
    let _turn = in_parallel();
    if uses_libc_host() {
        return;
    }
    let servers = [cutting_setup(), Setup::stock(ServerKind::Xvfb)].map(drawing::with_all_depths);
    let [is, wanted] = servers.each_ref().map(replies);
    for (at, (is, wanted)) in is.iter().zip(&wanted).enumerate() {
        assert!(is == wanted, "reply {at}, first byte {:?}", (0..is.len()).find(|&at| is.get(at) != wanted.get(at)));
        assert!(!is[32..].contains(&PATTERN), "reply {at} has the other client's bytes");
    }
    assert!(servers[0].control().unwrap().cut().unwrap().cuts > 1000, "the images were drawn in parts");
}
