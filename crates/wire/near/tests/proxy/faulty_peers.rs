// SPDX-License-Identifier: MIT
//! Faulty servers and programs: the proxy logs the fault or closes the connection, and stops giving wrong answers.

use crate::harness::{COLORMAP, Harness, greeting, messages, named, request, setup};
use xqos_near::setup::Cookie;
use xqos_near::{Fault, Near, NearSettings, Questions, Store};
use xqos_x11::ByteOrder;

const ORDER: ByteOrder = ByteOrder::Little;

fn open(store: Store, settings: NearSettings) -> Harness {
    let mut proxy = Harness::new(ORDER, settings, store);
    proxy.open(&Questions::default());
    proxy
}

/// The store after a program has queried RENDER, its version, and an atom.
fn learned() -> Store {
    let mut proxy = open(Store::default(), NearSettings::default());
    for bytes in [named(ORDER, 98, 0, "RENDER"), request(ORDER, 139, 0, &[0, 11]), named(ORDER, 16, 0, "NAME")] {
        proxy.say(&bytes);
        proxy.settle();
    }
    assert_eq!(proxy.near.report().total().answered, 0, "no answer is known yet");
    proxy.store
}

#[test]
fn learned_answers_need_no_server() {
    let mut proxy = open(learned(), NearSettings::default());
    proxy.say(&[named(ORDER, 98, 0, "RENDER"), named(ORDER, 16, 0, "NAME")].concat());
    proxy.hear();
    let heard = messages(ORDER, &proxy.heard);
    assert_eq!(heard.iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2]);
    proxy.settle();
    assert!(
        proxy.server.executed.iter().all(|it| it[..] == request(ORDER, 127, 0, &[])),
        "{:?}",
        proxy.server.executed
    );
    assert_eq!(proxy.near.report().total().saved, 1, "both together save one round trip");
}

#[test]
fn a_contradicted_answer_disables_its_class() {
    let mut proxy = open(learned(), NearSettings::default());
    // The server's state has changed: version 15 was negotiated before.
    proxy.server.take(&request(ORDER, 139, 0, &[0, 15]));
    proxy.server.out.clear();
    proxy.server.executed.clear();
    proxy.say(&named(ORDER, 98, 0, "RENDER"));
    proxy.say(&request(ORDER, 139, 0, &[0, 11]));
    proxy.hear();
    assert_eq!(messages(ORDER, &proxy.heard).len(), 2, "both are answered");
    // The mock's sequence numbers are one too high, because it executed the request above.
    proxy.forward(usize::MAX);
    proxy.server.out.chunks_mut(32).for_each(|message| message[2] -= 1);
    proxy.settle();
    let log_lines = proxy.near.log_lines();
    assert!(log_lines.len() == 1 && log_lines[0].contains("RENDER::QueryVersion"), "{log_lines:?}");
    assert_eq!(proxy.near.report().differences, 1);
    let answered = proxy.near.report().total().answered;
    proxy.say(&request(ORDER, 139, 0, &[0, 11]));
    assert_eq!(proxy.near.report().total().answered, answered, "this class is disabled");
}

#[test]
fn verify_compares_every_answer() {
    let mut proxy = open(learned(), NearSettings { verify: true, ..NearSettings::default() });
    proxy.server.take(&[named(ORDER, 16, 0, "OTHER"), request(ORDER, 43, 0, &[])].concat());
    proxy.server.out.clear();
    proxy.say(&named(ORDER, 16, 0, "NAME"));
    proxy.settle();
    assert!(!proxy.near.is_verifying(), "no comparison is sent yet");
    assert!(proxy.near.send_deferred(&proxy.store) && proxy.near.is_verifying());
    proxy.forward(usize::MAX);
    proxy.server.out.chunks_mut(32).for_each(|message| message[2] -= 2);
    proxy.settle();
    assert!(!proxy.near.is_verifying() && !proxy.near.send_deferred(&proxy.store));
    assert_eq!((proxy.near.report().differences, messages(ORDER, &proxy.heard).len()), (1, 1));
}

#[test]
fn verify_reports_a_colour_missing_in_the_server() {
    let (alloc, free) = (request(ORDER, 84, 0, &[COLORMAP, 7, 5]), request(ORDER, 88, 0, &[COLORMAP, 0, 7]));
    let mut proxy = open(learned(), NearSettings { verify: true, ..NearSettings::default() });
    for (is_lost, differences) in [(false, 0), (false, 0), (true, 1)] {
        proxy.say(&alloc);
        proxy.settle();
        if is_lost {
            proxy.server.cells.clear();
        }
        proxy.say(&free);
        proxy.say(&request(ORDER, 43, 0, &[]));
        proxy.settle();
        assert_eq!(proxy.near.report().differences, differences);
    }
    assert_eq!(proxy.near.report().total().answered, 2, "all except the first, which was unknown");
    // An error that the program itself caused does not count as a difference.
    proxy.say(&free);
    proxy.settle();
    assert_eq!(proxy.near.report().differences, 1);
    assert!(proxy.near.log_lines()[0].contains("FreeColors"));
}

#[test]
fn an_unexpected_reply_is_passed_on_and_stops_answers() {
    let mut proxy = open(learned(), NearSettings::default());
    proxy.say(&request(ORDER, 127, 0, &[]));
    proxy.forward(usize::MAX);
    proxy.server.out.extend([&[1, 0, 1, 0][..], &[0; 28]].concat());
    proxy.deliver(usize::MAX);
    assert_eq!(messages(ORDER, &proxy.heard)[0].number, 1);
    assert!(proxy.near.log_lines()[0].contains("unexpected reply"));
    proxy.say(&request(ORDER, 43, 0, &[]));
    proxy.settle();
    proxy.say(&named(ORDER, 16, 0, "NAME"));
    assert_eq!(proxy.near.report().total().answered, 0);
}

#[test]
fn an_error_after_many_requests_without_a_reply_has_the_right_number() {
    let mut proxy = open(learned(), NearSettings::default());
    let no_operation = request(ORDER, 127, 0, &[]).repeat(1000);
    for _ in 0..3 {
        for _ in 0..40 {
            proxy.say(&no_operation);
            proxy.settle();
        }
        proxy.say(&named(ORDER, 16, 0, "NAME"));
        proxy.settle();
    }
    assert_eq!(proxy.near.report().total().answered, 3);
    // MapWindow of a window that does not exist.
    proxy.say(&request(ORDER, 8, 0, &[0xfff]));
    proxy.settle();
    let last = messages(ORDER, &proxy.heard).pop().unwrap();
    assert_eq!((last.code, last.number), (0, 120_004_u32 as u16));
}

#[test]
fn an_impossible_sequence_number_is_lowered() {
    let mut proxy = open(Store::default(), NearSettings::default());
    proxy.say(&request(ORDER, 43, 0, &[]));
    proxy.settle();
    // Send an event with sequence number 500 after only one request.
    proxy.server.out.extend([&[12, 0, 0xf4, 1][..], &[0; 28]].concat());
    proxy.settle();
    assert_eq!(messages(ORDER, &proxy.heard).last().unwrap().number, 1);
}

#[test]
fn invalid_bytes_close_the_connection() {
    let mut proxy = open(Store::default(), NearSettings::default());
    proxy.near.from_server(&[&[50][..], &[0; 31]].concat(), 0, &mut proxy.store);
    assert_eq!(proxy.near.fault(), Some(Fault::Server));
    let mut proxy = open(Store::default(), NearSettings::default());
    // This BIG-REQUESTS length is shorter than the header itself. Until BIG-REQUESTS is enabled, the bytes are two
    // invalid requests.
    let wrong = [72, 2, 0, 0, 1, 0, 0, 0];
    proxy.say(&wrong);
    proxy.settle();
    assert_eq!(
        messages(ORDER, &proxy.heard).iter().map(|it| (it.code, it.number)).collect::<Vec<_>>(),
        [(0, 1), (0, 2)]
    );
    proxy.store.learn_extension(b"BIG-REQUESTS", &[&[0; 8][..], &[1, 133, 0, 0], &[0; 20]].concat());
    proxy.say(&request(ORDER, 133, 0, &[]));
    proxy.say(&wrong);
    assert_eq!(proxy.near.fault(), Some(Fault::Program));
    assert!(!proxy.near.takes_from_program());
}

#[test]
fn clients_with_a_wrong_cookie_or_protocol_are_refused() {
    let own_cookie = Some(Cookie::magic([7; 16]));
    for (words, fault) in [(setup(ORDER), Fault::Cookie), (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Fault::NotX)] {
        let (mut near, mut store) =
            (Near::new(NearSettings { own_cookie: own_cookie.clone(), ..NearSettings::default() }), Store::default());
        near.from_program(&words, 0, &mut store);
        assert_eq!(near.fault(), Some(fault));
        assert!(near.to_server().bytes().is_empty(), "nothing is sent to the server");
        assert_eq!(near.to_program().bytes().first(), (fault == Fault::Cookie).then_some(&0), "a refusal");
    }
    let (mut near, mut store) = (Near::new(NearSettings { own_cookie, ..NearSettings::default() }), Store::default());
    near.from_program(&Cookie::magic([7; 16]).setup(ORDER), 0, &mut store);
    near.from_server(&greeting(ORDER), 0, &mut store);
    assert!(near.fault().is_none() && !near.to_program().bytes().is_empty());
}

#[test]
fn reading_stops_for_a_program_that_does_not_read() {
    let mut proxy = open(learned(), NearSettings::default());
    let bytes = named(ORDER, 16, 0, "NAME").repeat(1000);
    let mut said = 0;
    while proxy.near.takes_from_program() {
        proxy.near.from_program(&bytes, 0, &mut proxy.store);
        proxy.forward(usize::MAX);
        said += 1;
        assert!(said < 1000 && proxy.near.to_program().bytes().len() < 2 << 20);
    }
    // Reading continues once there is room.
    proxy.settle();
    assert_eq!(messages(ORDER, &proxy.heard).len(), 1000 * said);
}
