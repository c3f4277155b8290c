// SPDX-License-Identifier: MIT
//! Tests messages as real clients and servers send them: both byte orders, any length and position in packets, replies
//! and errors matched by sequence number, extension names learned from any connection.

mod packets;

use packets::*;
use xqos_wire::observe::{KEPT_BYTES, Kind};

const L: Order = Order::Little;
const GET_INPUT_FOCUS: u8 = 43;
const MAP_WINDOW: u8 = 8;
const PUT_IMAGE: u8 = 72;
const LIST_FONTS_WITH_INFO: u8 = 50;

fn opened(order: Order) -> Talk {
    let mut talk = Talk::new();
    talk.open_x(order);
    talk
}

/// Sends the next request, a QueryExtension, and its reply.
fn learn(talk: &mut Talk, sequence: u64, name: &str, codes: [u8; 3]) {
    talk.client(&query_extension(L, name)).server(&extension_reply(L, sequence, codes));
}

#[test]
fn both_byte_orders_are_decoded() {
    for order in [Order::Little, Order::Big] {
        let mut talk = opened(order);
        talk.client(&request(order, 98, 0, 300)).server(&reply(order, 1, 0, 3)).server(&event(order, 12, 0, 1));
        let (seen, counts) = observe(&talk.packets);
        assert_eq!(seen.lines(), ["Request 1 QueryExtension", "Reply 1 QueryExtension", "Event 1 Expose"]);
        let lengths: Vec<u64> = seen.messages.iter().map(|(_, received)| received.length).collect();
        assert_eq!((lengths.as_slice(), counts.skipped_bytes), ([48, 408, 1200, 44, 32].as_slice(), 0), "{order:?}");
    }
}

#[test]
fn messages_may_span_packets() {
    let requests =
        [request(L, MAP_WINDOW, 0, 2), request(L, GET_INPUT_FOCUS, 0, 1), request(L, PUT_IMAGE, 0, 9)].concat();
    let replies = [event(L, 19, 0, 1), reply(L, 2, 0, 5), event(L, 12, 0, 3)].concat();
    let expected = |seen: Observed| {
        let (mut lines, count) = (seen.lines(), seen.messages.len());
        lines.sort();
        assert_eq!(count, 2 + lines.len());
        lines
    };
    let mut whole = opened(L);
    whole.client(&requests).server(&replies);
    let whole = expected(observe(&whole.packets).0);
    assert_eq!(whole.len(), 6);
    let mut bytes = Talk::new();
    bytes.open();
    setup(L).iter().for_each(|byte| _ = bytes.client(&[*byte]));
    setup_reply(L).iter().for_each(|byte| _ = bytes.server(&[*byte]));
    requests.iter().for_each(|byte| _ = bytes.client(&[*byte]));
    replies.iter().for_each(|byte| _ = bytes.server(&[*byte]));
    let (seen, _) = observe(&bytes.packets);
    let reply = &seen.messages.iter().find(|(_, received)| received.kind == Kind::Reply).unwrap().1;
    assert_eq!(reply.last_ns - reply.first_ns, 51 * STEP_NS, "one packet per byte");
    assert_eq!(expected(seen), whole);
}

#[test]
fn a_request_of_16_megabytes_takes_little_memory() {
    let mut talk = opened(L);
    talk.client(&enable_big_requests(L));
    let image = big_request(L, PUT_IMAGE, 4 << 20);
    image.chunks(60_000).for_each(|part| _ = talk.client(part));
    talk.client(&request(L, GET_INPUT_FOCUS, 0, 1)).server(&reply(L, 3, 0, 0));
    let (seen, _) = observe(&talk.packets);
    let received = &seen.messages[3].1;
    assert_eq!((received.name.as_str(), received.length, received.kept), ("PutImage", 16 << 20, KEPT_BYTES));
    assert_eq!(seen.lines()[3], "Reply 3 GetInputFocus");
}

#[test]
fn a_length_of_zero_is_an_error_of_four_bytes_until_big_requests_are_enabled() {
    for order in [Order::Little, Order::Big] {
        let mut talk = opened(order);
        let mut zero = request(order, MAP_WINDOW, 0, 1);
        zero[2..4].fill(0);
        // The server continues after four bytes, even if the next request is in the same packet.
        talk.client(&zero).server(&error(order, 16, 1, MAP_WINDOW));
        talk.client(&[zero.clone(), request(order, GET_INPUT_FOCUS, 0, 1)].concat());
        talk.server(&[error(order, 16, 2, MAP_WINDOW), reply(order, 3, 0, 0)].concat());
        talk.client(&query_extension(order, "BIG-REQUESTS")).server(&extension_reply(order, 4, [BIG_REQUESTS, 0, 0]));
        // Another length or minor opcode does not enable BIG-REQUESTS.
        talk.client(&[request(order, BIG_REQUESTS, 0, 2), request(order, BIG_REQUESTS, 1, 1), zero].concat());
        talk.client(&enable_big_requests(order)).server(&reply(order, 8, 0, 0));
        talk.client(&big_request(order, PUT_IMAGE, 9)).client(&request(order, GET_INPUT_FOCUS, 0, 1));
        talk.server(&reply(order, 10, 0, 0));
        let (seen, counts) = observe(&talk.packets);
        let expected = [
            "Request 1 MapWindow",
            "Error 1 Length",
            "Request 2 MapWindow",
            "Request 3 GetInputFocus",
            "Error 2 Length",
            "Reply 3 GetInputFocus",
            "Request 4 QueryExtension",
            "Reply 4 QueryExtension",
            "Request 5 BIG-REQUESTS::Enable",
            "Request 6 BIG-REQUESTS::request 1",
            "Request 7 MapWindow",
            "Request 8 BIG-REQUESTS::Enable",
            "Reply 8 BIG-REQUESTS::Enable",
            "Request 9 PutImage",
            "Request 10 GetInputFocus",
            "Reply 10 GetInputFocus",
        ];
        assert_eq!((seen.lines(), counts.skipped_bytes), (expected.map(str::to_owned).to_vec(), 0), "{order:?}");
    }
}

#[test]
fn all_kinds_of_events_are_reported() {
    let mut talk = opened(L);
    learn(&mut talk, 1, "XInputExtension", [131, 66, 129]);
    let mut motion = reply(L, 1, 131, 17);
    (motion[0], motion[8], motion[9]) = (35, 6, 0);
    let mut keymap = event(L, 11, 0xff, 0xffff);
    keymap[4..].fill(0xff);
    talk.server(&[motion, keymap, event(L, 33 | 0x80, 32, 1), event(L, 12, 0, 1)].concat());
    let (seen, _) = observe(&talk.packets);
    let events = ["XInputExtension::Motion", "KeymapNotify", "ClientMessage", "Expose"];
    assert_eq!(seen.lines()[2..], events.map(|name| format!("Event 1 {name}")));
}

#[test]
fn some_requests_have_many_replies() {
    let mut talk = opened(L);
    talk.client(&[request(L, LIST_FONTS_WITH_INFO, 0, 3), request(L, GET_INPUT_FOCUS, 0, 1)].concat());
    talk.server(&[reply(L, 1, 9, 8), reply(L, 1, 4, 7), reply(L, 1, 0, 7), reply(L, 2, 0, 0)].concat());
    learn(&mut talk, 3, "RECORD", [146, 0, 150]);
    talk.client(&request(L, 146, 5, 2)).server(&[reply(L, 4, 4, 0), reply(L, 4, 0, 20), reply(L, 4, 5, 0)].concat());
    let (seen, _) = observe(&talk.packets);
    let replies = seen.messages.iter().filter(|(_, received)| received.kind == Kind::Reply);
    let replies: Vec<(u64, &str, bool)> =
        replies.map(|(_, received)| (received.sequence, received.name.as_str(), received.has_reply)).collect();
    let fonts = |more| (1, "ListFontsWithInfo", more);
    let record = |more| (4, "RECORD::EnableContext", more);
    let others = [(2, "GetInputFocus", false), (3, "QueryExtension", false)];
    let expected =
        [fonts(true), fonts(true), fonts(false), others[0], others[1], record(true), record(true), record(false)];
    assert_eq!(replies, expected);
}

#[test]
fn an_error_does_not_shift_later_replies() {
    let mut talk = opened(L);
    (0..4).for_each(|_| _ = talk.client(&request(L, 14, 0, 2)));
    talk.client(&request(L, GET_INPUT_FOCUS, 0, 1));
    talk.server(&[reply(L, 1, 0, 0), error(L, 9, 2, 14), reply(L, 4, 0, 0), reply(L, 5, 0, 0)].concat());
    let (seen, _) = observe(&talk.packets);
    let expected = ["Reply 1 GetGeometry", "Error 2 Drawable", "Reply 4 GetGeometry", "Reply 5 GetInputFocus"];
    assert_eq!(seen.lines()[5..], expected, "the third request's reply never comes");
}

#[test]
fn extension_names_apply_to_all_connections_to_a_server() {
    let mut first = opened(L);
    learn(&mut first, 1, "RENDER", [139, 0, 142]);
    learn(&mut first, 2, "XKEYBOARD", [135, 85, 137]);
    learn(&mut first, 3, "NOBODYS", [149, 0, 0]);
    let words = |talk: &mut Talk| {
        talk.client(
            &[request(L, 139, 23, 7), request(L, 135, 8, 7), request(L, 149, 3, 2), request(L, 131, 7, 1)].concat(),
        );
        talk.server(&[error(L, 143, 1, 139), event(L, 85, 2, 2), event(L, 90, 0, 2)].concat());
    };
    let mut second = Talk::between("10.0.0.1:40001", "10.0.0.2:6000");
    second.open_x(L);
    words(&mut second);
    let mut elsewhere = Talk::between("10.0.0.1:40001", "10.0.0.3:6000");
    elsewhere.open_x(L);
    words(&mut elsewhere);
    let (seen, _) = observe(first.packets.iter().chain(&second.packets).chain(&elsewhere.packets));
    let lines = seen.lines();
    let known = [
        "Request 1 RENDER::CompositeGlyphs8",
        "Request 2 XKEYBOARD::GetMap",
        "Request 3 NOBODYS::request 3",
        "Request 4 extension 131 request 7",
        "Error 1 RENDER::Picture",
        "Event 2 XKEYBOARD::StateNotify",
        // The event type is in the event, not in its code.
        "Event 2 XKEYBOARD::NewKeyboardNotify",
    ];
    assert_eq!(lines[6..13], known);
    let unknown = ["Request 1 extension 139 request 23", "Error 1 error 143", "Event 2 event 85"];
    assert_eq!([&lines[13], &lines[17], &lines[18]], unknown.each_ref());
}

#[test]
fn a_refused_setup_is_reported() {
    let mut talk = Talk::new();
    let mut refusal = setup_reply(L);
    refusal[0] = 0;
    talk.open().client(&setup(L)).server(&refusal).close();
    let (seen, _) = observe(&talk.packets);
    assert_eq!((seen.last().name.as_str(), seen.last().length), ("SetupFailed", 408));
}
