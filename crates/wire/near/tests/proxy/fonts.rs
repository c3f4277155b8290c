// SPDX-License-Identifier: MIT
//! Tests that fonts are fetched on separate connections.

use crate::harness::{BASE, Harness, greeting, request};
use xqos_near::scout::Source;
use xqos_near::setup::Cookie;
use xqos_near::store::Question;
use xqos_near::{NearSettings, Questions, Scout, Store};
use xqos_x11::ByteOrder;

const ORDER: ByteOrder = ByteOrder::Little;
const OPEN_FONT: u8 = 45;
const QUERY_FONT: u8 = 47;

fn opened(id: u32, name: u8) -> Vec<u8> {
    let mut open = request(ORDER, OPEN_FONT, 0, &[id, 0, u32::from(name)]);
    ORDER.put_u16(&mut open, 8, 1);
    open
}

fn fonts(names: &[u8]) -> Questions {
    let lines = names.iter().map(|&name| format!("1 OpenFont {}\n", char::from(name))).collect::<Vec<_>>().concat();
    Questions::read(&format!("xqos near questions 2\nprograms program\n{lines}end\n")).unwrap()
}

fn known(store: &Store, name: u8) -> bool {
    store.answer(ORDER, &Question([QUERY_FONT, name].into())).is_some()
}

/// Returns a scout that the server has accepted, and the bytes that the scout then sent.
fn let_in(names: &[u8], store: &mut Store) -> (Scout, Vec<u8>) {
    let mut scout = Scout::for_fonts(&Cookie::default());
    scout.to_server().clear();
    scout.from_server(&greeting(ORDER), store);
    assert_eq!(scout.to_server().bytes().len(), 0, "no request before it is asked");
    scout.ask(&fonts(names), Source::default(), store);
    let said = scout.to_server().bytes().to_vec();
    (scout, said)
}

fn majors(mut said: &[u8]) -> Vec<u8> {
    let mut majors = Vec::new();
    while let [major, ..] = said {
        majors.push(*major);
        said = &said[4 * usize::from(ORDER.u16(said, 2).unwrap())..];
    }
    majors
}

fn metrics(number: u16) -> [u8; 32] {
    let mut reply = [0; 32];
    reply[0] = 1;
    ORDER.put_u16(&mut reply, 2, number);
    reply
}

#[test]
fn a_font_connection_fetches_only_its_fonts() {
    let mut store = Store::default();
    let (mut scout, said) = let_in(b"ab", &mut store);
    assert_eq!(majors(&said), [45, 47, 46, 45, 47, 46], "each font is opened, queried and closed");
    scout.from_server(&metrics(2), &mut store);
    assert!(known(&store, b'a') && !known(&store, b'b') && !scout.is_ready());
    scout.from_server(&metrics(5), &mut store);
    assert!(known(&store, b'b') && scout.is_ready());
}

#[test]
fn the_first_connection_opens_all_fonts_in_order() {
    let mut store = Store::default();
    let mut scout = Scout::new(&Cookie::default(), &mut store);
    let source = Source { has_font_connections: true, ..Source::default() };
    scout.ask(&fonts(b"ab"), source, &mut store);
    scout.to_server().clear();
    scout.from_server(&greeting(ORDER), &mut store);
    let said = scout.to_server().bytes().to_vec();
    assert_eq!(majors(&said), [45, 43, 46, 45, 43, 46], "two fonts");
    assert!(store.knows_font(b"a"), "the font's metrics are expected");
    let extensions = scout.asked() as u16 - 6;
    for number in (1..=extensions).chain([extensions + 2]) {
        scout.from_server(&metrics(number), &mut store);
        assert!(!scout.has_loaded_fonts(), "{number}");
    }
    scout.from_server(&metrics(extensions + 5), &mut store);
    assert!(scout.has_loaded_fonts() && !known(&store, b'a'));
}

#[test]
fn a_refused_font_connection_keeps_known_answers() {
    let mut store = Store::default();
    let (mut scout, _) = let_in(b"a", &mut store);
    scout.from_server(&metrics(2), &mut store);
    let mut refused = Scout::for_fonts(&Cookie::default());
    refused.ask(&fonts(b"b"), Source::default(), &mut store);
    refused.from_server(&[0, 0, 11, 0, 0, 0, 0, 0], &mut store);
    assert!(refused.is_ready() && refused.has_ended());
    assert!(known(&store, b'a') && !known(&store, b'b'), "the program queries the other one itself");
}

#[test]
fn a_font_is_remembered_once_by_its_name() {
    let mut proxy = Harness::new(ORDER, NearSettings::default(), Store::default());
    proxy.open(&Questions::default());
    for (id, name) in [(BASE + 1, b'a'), (BASE + 2, b'a'), (BASE + 3, b'b')] {
        proxy.say(&opened(id, name));
    }
    proxy.settle();
    assert_eq!(proxy.near.questions("program", &proxy.store), fonts(b"ab"));
}

#[test]
fn splitting_fonts_leaves_out_known_fonts_and_keeps_all_others() {
    let parts = |names, known: u8| fonts(names).fonts(4, |name| name == [known]);
    assert!(parts(b"a", 0).is_empty() && parts(b"ab", b'a').is_empty(), "a single font is not split off");
    let asked = |part: &Questions| part.usual().map(|line| line.font().unwrap()).collect::<Vec<_>>().concat();
    assert_eq!(parts(b"abcdefg", b'b').iter().map(asked).collect::<Vec<_>>(), [&b"af"[..], b"cg", b"d", b"e"]);
}
