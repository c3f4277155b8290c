// SPDX-License-Identifier: MIT
//! Faulty servers and programs: the proxy logs the fault or closes the connection, and stops giving wrong answers.

use crate::world::{COLORMAP, World, greeting, messages, named, request, setup};
use xqos_near::setup::Cookie;
use xqos_near::{Fault, Memory, Near, Settings, Store};
use xqos_wire::x11::bytes::ByteOrder;

const ORDER: ByteOrder = ByteOrder::Little;

fn open(store: Store, settings: Settings) -> World {
    let mut world = World::new(ORDER, settings, store);
    world.open(&Memory::default());
    world
}

/// The store after a program queried RENDER, its version, and an atom.
fn learned() -> Store {
    let mut world = open(Store::default(), Settings::default());
    for bytes in [named(ORDER, 98, 0, "RENDER"), request(ORDER, 139, 0, &[0, 11]), named(ORDER, 16, 0, "NAME")] {
        world.say(&bytes);
        world.settle();
    }
    assert_eq!(world.near.report().total().answered, 0, "nothing was known");
    world.store
}

#[test]
fn what_was_learned_is_answered_without_the_server() {
    let mut world = open(learned(), Settings::default());
    world.say(&[named(ORDER, 98, 0, "RENDER"), named(ORDER, 16, 0, "NAME")].concat());
    world.hear();
    let heard = messages(ORDER, &world.heard);
    assert_eq!(heard.iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2]);
    world.settle();
    assert!(
        world.server.executed.iter().all(|it| it[..] == request(ORDER, 127, 0, &[])),
        "{:?}",
        world.server.executed
    );
    assert_eq!(world.near.report().total().saved, 1, "both at once: one wait");
}

#[test]
fn an_answer_that_the_server_gives_otherwise_is_the_last_of_its_kind() {
    let mut world = open(learned(), Settings::default());
    // The server's state has changed: version 15 was negotiated before.
    world.server.take(&request(ORDER, 139, 0, &[0, 15]));
    world.server.out.clear();
    world.server.executed.clear();
    world.say(&named(ORDER, 98, 0, "RENDER"));
    world.say(&request(ORDER, 139, 0, &[0, 11]));
    world.hear();
    assert_eq!(messages(ORDER, &world.heard).len(), 2, "both at once");
    // The mock counts one request more, because of the earlier one.
    world.forward(usize::MAX);
    world.server.out.chunks_mut(32).for_each(|message| message[2] -= 1);
    world.settle();
    let log_lines = world.near.log_lines();
    assert!(log_lines.len() == 1 && log_lines[0].contains("RENDER::QueryVersion"), "{log_lines:?}");
    assert_eq!(world.near.report().differences, 1);
    let answered = world.near.report().total().answered;
    world.say(&request(ORDER, 139, 0, &[0, 11]));
    assert_eq!(world.near.report().total().answered, answered, "no more of these");
}

#[test]
fn with_verify_every_answer_is_compared() {
    let mut world = open(learned(), Settings { verify: true, ..Settings::default() });
    world.server.take(&[named(ORDER, 16, 0, "OTHER"), request(ORDER, 43, 0, &[])].concat());
    world.server.out.clear();
    world.say(&named(ORDER, 16, 0, "NAME"));
    world.settle();
    assert!(!world.near.is_verifying(), "the server hears what it would hear without");
    assert!(world.near.send_deferred(&world.store) && world.near.is_verifying());
    world.forward(usize::MAX);
    world.server.out.chunks_mut(32).for_each(|message| message[2] -= 2);
    world.settle();
    assert!(!world.near.is_verifying() && !world.near.send_deferred(&world.store));
    assert_eq!((world.near.report().differences, messages(ORDER, &world.heard).len()), (1, 1));
}

#[test]
fn with_verify_a_colour_that_the_server_does_not_keep_is_a_difference() {
    let (alloc, free) = (request(ORDER, 84, 0, &[COLORMAP, 7, 5]), request(ORDER, 88, 0, &[COLORMAP, 0, 7]));
    let mut world = open(learned(), Settings { verify: true, ..Settings::default() });
    for (is_lost, differences) in [(false, 0), (false, 0), (true, 1)] {
        world.say(&alloc);
        world.settle();
        if is_lost {
            world.server.cells.clear();
        }
        world.say(&free);
        world.say(&request(ORDER, 43, 0, &[]));
        world.settle();
        assert_eq!(world.near.report().differences, differences);
    }
    assert_eq!(world.near.report().total().answered, 2, "all but the first, which nobody knew");
    // An error that the program itself caused is no difference.
    world.say(&free);
    world.settle();
    assert_eq!(world.near.report().differences, 1);
    assert!(world.near.log_lines()[0].contains("FreeColors"));
}

#[test]
fn a_reply_that_nobody_asked_for_goes_by_and_ends_the_answers() {
    let mut world = open(learned(), Settings::default());
    world.say(&request(ORDER, 127, 0, &[]));
    world.forward(usize::MAX);
    world.server.out.extend([&[1, 0, 1, 0][..], &[0; 28]].concat());
    world.deliver(usize::MAX);
    assert_eq!(messages(ORDER, &world.heard)[0].number, 1);
    assert!(world.near.log_lines()[0].contains("nobody asked for"));
    world.say(&request(ORDER, 43, 0, &[]));
    world.settle();
    world.say(&named(ORDER, 16, 0, "NAME"));
    assert_eq!(world.near.report().total().answered, 0);
}

#[test]
fn a_number_from_the_future_is_lowered_to_what_was_asked() {
    let mut world = open(Store::default(), Settings::default());
    world.say(&request(ORDER, 43, 0, &[]));
    world.settle();
    // An event with sequence number 500 after one request.
    world.server.out.extend([&[12, 0, 0xf4, 1][..], &[0; 28]].concat());
    world.settle();
    assert_eq!(messages(ORDER, &world.heard).last().unwrap().number, 1);
}

#[test]
fn bytes_that_begin_nothing_close_the_connection() {
    let mut world = open(Store::default(), Settings::default());
    world.near.from_server(&[&[50][..], &[0; 31]].concat(), 0, &mut world.store);
    assert_eq!(world.near.fault(), Some(Fault::Server));
    let mut world = open(Store::default(), Settings::default());
    // A BIG-REQUESTS length shorter than its own header. Before BIG-REQUESTS is enabled, the bytes are two invalid
    // requests.
    let wrong = [72, 2, 0, 0, 1, 0, 0, 0];
    world.say(&wrong);
    world.settle();
    assert_eq!(
        messages(ORDER, &world.heard).iter().map(|it| (it.code, it.number)).collect::<Vec<_>>(),
        [(0, 1), (0, 2)]
    );
    world.store.learn_extension(b"BIG-REQUESTS", &[&[0; 8][..], &[1, 133, 0, 0], &[0; 20]].concat());
    world.say(&request(ORDER, 133, 0, &[]));
    world.say(&wrong);
    assert_eq!(world.near.fault(), Some(Fault::Program));
    assert!(!world.near.takes_from_program());
}

#[test]
fn who_has_another_cookie_or_speaks_something_else_is_turned_away() {
    let own_cookie = Some(Cookie::magic([7; 16]));
    for (words, fault) in [(setup(ORDER), Fault::Cookie), (b"GET / HTTP/1.1\r\n\r\n".to_vec(), Fault::NotX)] {
        let (mut near, mut store) =
            (Near::new(Settings { own_cookie: own_cookie.clone(), ..Settings::default() }), Store::default());
        near.from_program(&words, 0, &mut store);
        assert_eq!(near.fault(), Some(fault));
        assert!(near.to_server().bytes().is_empty(), "the server hears nothing of it");
        assert_eq!(near.to_program().bytes().first(), (fault == Fault::Cookie).then_some(&0), "a refusal");
    }
    let (mut near, mut store) = (Near::new(Settings { own_cookie, ..Settings::default() }), Store::default());
    near.from_program(&Cookie::magic([7; 16]).setup(ORDER), 0, &mut store);
    near.from_server(&greeting(ORDER), 0, &mut store);
    assert!(near.is_holding() && near.fault().is_none());
}

#[test]
fn who_reads_nothing_is_not_read_without_end() {
    let mut world = open(learned(), Settings::default());
    let bytes = named(ORDER, 16, 0, "NAME").repeat(1000);
    let mut said = 0;
    while world.near.takes_from_program() {
        world.near.from_program(&bytes, 0, &mut world.store);
        world.near.to_server().clear();
        said += 1;
        assert!(said < 1000 && world.near.to_program().bytes().len() < 2 << 20);
    }
    // Reading continues once there is room.
    world.settle();
    assert_eq!(messages(ORDER, &world.heard).len(), 1000 * said);
}
