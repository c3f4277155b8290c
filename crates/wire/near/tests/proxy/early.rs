// SPDX-License-Identifier: MIT
//! Questions that the proxy asks before the program does: when they are sent, and how long the program waits for them.

use crate::harness::{Harness, greeting, messages, named, request};
use xqos_near::scout::Source;
use xqos_near::setup::Cookie;
use xqos_near::store::Watch;
use xqos_near::{NearSettings, Questions, Scout, Store};
use xqos_x11::ByteOrder;

const ORDER: ByteOrder = ByteOrder::Little;
const PROFILE: Source = Source { is_profile: true, has_font_connections: false };

/// Questions of two programs. Each line begins with the number of programs that asked the question.
fn questions(lines: &[&str]) -> Questions {
    Questions::read(&format!("xqos near questions 2\nprograms one two\n{}\nend\n", lines.join("\n"))).unwrap()
}

/// The proxy's own connection, and what it has sent so far.
struct OwnConnection {
    scout: Scout,
    store: Store,
}

impl OwnConnection {
    fn new(lines: &[&str], source: Source) -> OwnConnection {
        let mut store = Store::default();
        let mut scout = Scout::new(&Cookie::default(), &mut store);
        scout.ask(&questions(lines), source, &mut store);
        OwnConnection { scout, store }
    }

    /// The requests that were sent, without the queries for extensions.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let said = self.scout.to_server().bytes().to_vec();
        self.scout.to_server().clear();
        let mut rest = if said.first() == Some(&b'l') { &said[12..] } else { &said[..] };
        let mut all = Vec::new();
        while rest.len() >= 4 {
            let (request, behind) = rest.split_at(4 * usize::from(ORDER.u16(rest, 2).unwrap()));
            all.extend((request[0] != 98).then(|| request.to_vec()));
            rest = behind;
        }
        all
    }

    /// The server's reply, with one word of content, to a request.
    fn reply(&mut self, number: u64, word: u32) {
        let number = (number as u16).to_le_bytes();
        let reply = [&[1, 0, number[0], number[1], 0, 0, 0, 0][..], &word.to_le_bytes(), &[0; 20]].concat();
        self.scout.from_server(&reply, &mut self.store);
    }
}

#[test]
fn questions_that_need_no_setup_reply_follow_the_setup_request_immediately() {
    let color = "2 AllocColor 1111 2222 3333";
    let mut own =
        OwnConnection::new(&["2 InternAtom A", color, "2 OpenFont fixed", "2 RENDER::QueryPictFormats"], PROFILE);
    assert_eq!(own.sent(), [named(ORDER, 16, 1, "A")]);
    own.scout.from_server(&greeting(ORDER), &mut own.store);
    let sent: Vec<u8> = own.sent().iter().map(|request| request[0]).collect();
    assert_eq!(sent, [84, 45, 47, 46], "the colour, and the font, which is opened, queried and closed");
}

#[test]
fn no_answer_is_watched_after_the_proxys_connection_has_ended() {
    let mut own = OwnConnection::new(&["2 InternAtom A"], Source::default());
    own.scout.from_server(&greeting(ORDER), &mut own.store);
    own.store.watch(Watch::Keys);
    own.scout.end(&mut own.store);
    // GetModifierMapping of a program that is still connected.
    let mut proxy = Harness::new(ORDER, NearSettings::default(), std::mem::take(&mut own.store));
    proxy.open(&Questions::default());
    for _ in 0..2 {
        proxy.say(&request(ORDER, 119, 0, &[]));
        proxy.settle();
    }
    assert_eq!(proxy.near.report().total().answered, 0, "a change would not be noticed");
}

#[test]
fn the_program_waits_for_a_reply_that_is_on_its_way() {
    let mut own = OwnConnection::new(&["2 InternAtom A", "2 InternAtom B"], PROFILE);
    own.scout.from_server(&greeting(ORDER), &mut own.store);
    let last = own.scout.asked();
    let mut proxy = Harness::new(ORDER, NearSettings::default(), std::mem::take(&mut own.store));
    proxy.open(&Questions::default());
    let both = [named(ORDER, 16, 0, "A"), named(ORDER, 16, 0, "B"), request(ORDER, 43, 0, &[])].concat();
    proxy.say(&both);
    proxy.settle();
    assert!(proxy.near.is_holding() && proxy.server.executed.is_empty(), "nothing is sent twice");
    std::mem::swap(&mut own.store, &mut proxy.store);
    own.reply(last - 1, 300);
    std::mem::swap(&mut own.store, &mut proxy.store);
    proxy.near.go_on(0, &mut proxy.store);
    assert!(proxy.near.is_holding(), "the second reply is still missing");
    // The server has no atom of this name, so the program must ask for it.
    std::mem::swap(&mut own.store, &mut proxy.store);
    own.reply(last, 0);
    std::mem::swap(&mut own.store, &mut proxy.store);
    proxy.near.go_on(0, &mut proxy.store);
    proxy.settle();
    assert!(!proxy.near.is_holding());
    let heard = messages(ORDER, &proxy.heard);
    assert_eq!(heard.iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(proxy.server.executed.iter().map(|it| it[0]).collect::<Vec<_>>(), [127, 16, 43]);
    assert_eq!(proxy.near.report().total().answered, 1);
}

#[test]
fn requests_are_not_held_during_a_server_grab() {
    let own = OwnConnection::new(&["2 InternAtom A", "2 InternAtom B"], PROFILE);
    let mut proxy = Harness::new(ORDER, NearSettings::default(), own.store);
    proxy.open(&Questions::default());
    let focus = request(ORDER, 43, 0, &[]);
    proxy.say(&[request(ORDER, 36, 0, &[]), focus.clone(), named(ORDER, 16, 0, "A")].concat());
    proxy.settle();
    assert_eq!(messages(ORDER, &proxy.heard).len(), 2, "the server answers no other client during the grab");
    proxy.say(&[request(ORDER, 37, 0, &[]), focus, named(ORDER, 16, 0, "B")].concat());
    proxy.settle();
    assert!(proxy.near.is_holding());
    proxy.store.expect_nothing();
    proxy.near.go_on(0, &mut proxy.store);
    proxy.settle();
    assert_eq!(messages(ORDER, &proxy.heard).len(), 4, "the proxy no longer waits for the reply");
}

#[test]
fn atoms_are_created_only_after_the_program_creates_one_of_its_toolkit() {
    let mut own =
        OwnConnection::new(&["2 InternAtom A", "2 InternAtom B", "1 InternAtom C", "2 InternAtom/1 D"], PROFILE);
    assert!(own.sent().iter().all(|request| request[1] == 1), "a profile creates no atom");
    own.scout.from_server(&greeting(ORDER), &mut own.store);
    let last = own.scout.asked();
    (last - 3..=last).for_each(|number| own.reply(number, 0));
    own.sent();
    let mut proxy = Harness::new(ORDER, NearSettings::default(), std::mem::take(&mut own.store));
    proxy.open(&Questions::default());
    for (bytes, created) in
        [(named(ORDER, 16, 1, "A"), &[][..]), (named(ORDER, 16, 0, "X"), &[]), (named(ORDER, 16, 0, "A"), &["A", "B"])]
    {
        proxy.say(&bytes);
        own.scout.create_missing(&mut proxy.store);
        let expected: Vec<_> = created.iter().map(|name| named(ORDER, 16, 0, name)).collect();
        assert_eq!(own.sent(), expected, "only atoms that both programs create");
    }
    proxy.say(&named(ORDER, 16, 0, "B"));
    proxy.settle();
    assert!(proxy.near.is_holding(), "B is being created");
}

#[test]
fn questions_of_an_extension_are_sent_in_the_programs_order() {
    let lines = [
        "2 XKEYBOARD::UseExtension 01000000",
        "2 XKEYBOARD::GetControls 00010000",
        "2 XKEYBOARD::PerClientFlags 00010000 01000000 01000000 00000000 00000000 00000000",
        "2 XKEYBOARD::GetNames 00010000 ffff0000",
    ];
    let mut own = OwnConnection::new(&lines, PROFILE);
    own.scout.from_server(&greeting(ORDER), &mut own.store);
    own.sent();
    let extensions = own.scout.asked();
    // The first extension is XKEYBOARD; the others do not exist.
    own.reply(1, u32::from_le_bytes([1, 135, 85, 137]));
    (2..=extensions).for_each(|number| own.reply(number, 0));
    let minors: Vec<_> =
        own.sent().iter().map(|request| (request[0], if request[0] == 135 { request[1] } else { 0 })).collect();
    assert_eq!(
        minors,
        [(135, 0), (135, 1), (43, 0), (135, 6), (135, 21), (135, 17)],
        "version, events, then questions"
    );
}
