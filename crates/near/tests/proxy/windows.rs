// SPDX-License-Identifier: MIT
//! The program's windows and the root window: properties, and selections of events.

use crate::harness::{
    BASE, Harness, PROPERTY_CHANGE, ROOT, STRUCTURE_NOTIFY, SUBSTRUCTURE_REDIRECT, messages, request,
};
use xqos_near::{Questions, Settings, Store};
use xqos_wire::x11::bytes::ByteOrder;

const ORDER: ByteOrder = ByteOrder::Little;
const ATOM: u32 = 7;

fn open() -> Harness {
    let mut proxy = Harness::new(ORDER, Settings::default(), Store::default());
    proxy.open(&Questions::default());
    proxy
}

fn settle(proxy: &mut Harness, bytes: &[u8]) {
    proxy.say(bytes);
    proxy.settle();
}

/// GetProperty of the root window; 1 as `delete` also deletes the property.
fn read(delete: u8) -> Vec<u8> {
    request(ORDER, 20, delete, &[ROOT, ATOM, 31, 0, 1])
}

fn change(value: u32) -> Vec<u8> {
    request(ORDER, 18, 0, &[ROOT, ATOM, 31, 32, 1, value])
}

#[test]
fn a_property_that_the_program_deletes_is_not_answered_from_memory() {
    let mut proxy = open();
    settle(&mut proxy, &change(5));
    for _ in 0..3 {
        settle(&mut proxy, &read(0));
    }
    assert!(proxy.near.report().total().answered > 0, "the property is known");
    proxy.heard.clear();
    settle(&mut proxy, &[read(1), read(0)].concat());
    let values: Vec<u8> = messages(ORDER, &proxy.heard).iter().map(|reply| reply.rest[5]).collect();
    assert_eq!((values, proxy.near.report().differences), (vec![5, 0], 0));
}

/// ChangeWindowAttributes that selects these events of the root window.
fn select(events: u32) -> Vec<u8> {
    request(ORDER, 2, 0, &[ROOT, 1 << 11, events])
}

#[test]
fn a_refused_selection_leaves_the_selection_before_it() {
    let mut proxy = open();
    settle(&mut proxy, &select(PROPERTY_CHANGE));
    settle(&mut proxy, &select(SUBSTRUCTURE_REDIRECT));
    settle(&mut proxy, &change(5));
    let codes: Vec<u8> = messages(ORDER, &proxy.heard).iter().map(|message| message.code).collect();
    assert_eq!(codes, [0, 28], "the error, and the PropertyNotify that is still selected");
}

#[test]
fn a_refused_selection_reports_no_changes() {
    let mut proxy = open();
    settle(&mut proxy, &select(SUBSTRUCTURE_REDIRECT | PROPERTY_CHANGE));
    settle(&mut proxy, &read(0));
    assert!(proxy.server.executed.contains(&select(PROPERTY_CHANGE)), "the proxy selects the changes itself");
    settle(&mut proxy, &change(5));
    let codes: Vec<u8> = messages(ORDER, &proxy.heard).iter().map(|message| message.code).collect();
    assert_eq!(codes, [0, 1], "no event");
}

const WINDOW: u32 = BASE + 1;
const SIZE: u32 = 0x0020_0010;

/// CreateWindow of a child of the root that selects these events.
fn create(size: u32, events: u32) -> Vec<u8> {
    request(ORDER, 1, 24, &[WINDOW, ROOT, 0, size, 0x1_0000, 0, 1 << 11, events])
}

#[test]
fn the_server_says_which_window_is_at_a_position() {
    let mut proxy = open();
    settle(&mut proxy, &create(SIZE, STRUCTURE_NOTIFY));
    for _ in 0..3 {
        // No event reports another client's window there.
        settle(&mut proxy, &request(ORDER, 40, 0, &[WINDOW, ROOT, 0]));
    }
    assert_eq!(proxy.near.report().total().answered, 0);
}
