// SPDX-License-Identifier: MIT
//! The program's windows and the root window: properties, selections of events, and changes by other clients.

use crate::harness::{
    BASE, Harness, Heard, PROPERTY_CHANGE, RANDR, ROOT, STRUCTURE_NOTIFY, SUBSTRUCTURE_REDIRECT, messages, request,
};
use xqos_near::store::Watch;
use xqos_near::{NearSettings, Questions, Store};
use xqos_x11::ByteOrder;

const ORDER: ByteOrder = ByteOrder::Little;
const ATOM: u32 = 7;

fn open() -> Harness {
    let mut proxy = Harness::new(ORDER, NearSettings::default(), Store::default());
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
fn a_refused_selection_keeps_the_earlier_one() {
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

/// CreatePixmap of a bitmap.
fn create_pixmap(size: u32) -> Vec<u8> {
    request(ORDER, 53, 1, &[WINDOW, ROOT, size])
}

/// GetGeometry.
fn geometry() -> Vec<u8> {
    request(ORDER, 14, 0, &[WINDOW])
}

fn sync() -> Vec<u8> {
    request(ORDER, 43, 0, &[])
}

/// Codes of the messages that the program received, and the size in the last one.
fn heard(proxy: &mut Harness) -> (Vec<u8>, Option<u32>) {
    let heard = messages(ORDER, &std::mem::take(&mut proxy.heard));
    let size = |reply: &Heard| ORDER.u32(&reply.rest, 13).filter(|_| reply.code == 1);
    (heard.iter().map(|message| message.code).collect(), heard.last().and_then(size))
}

#[test]
fn a_refused_drawable_has_no_geometry() {
    for create in [create(0, STRUCTURE_NOTIFY), create_pixmap(0)] {
        for relaxed in [false, true] {
            let mut proxy = Harness::new(ORDER, NearSettings { relaxed, ..NearSettings::default() }, Store::default());
            proxy.open(&Questions::default());
            settle(&mut proxy, &sync());
            heard(&mut proxy);
            // The first question comes before the error of the creation.
            settle(&mut proxy, &[&create[..], &geometry(), &geometry()].concat());
            settle(&mut proxy, &geometry());
            let answered = proxy.near.report().total().answered;
            assert_eq!((heard(&mut proxy).0, answered), (vec![0, 0, 0, 0], 0), "relaxed {relaxed}");
        }
    }
}

#[test]
fn a_geometry_is_answered_once_the_creation_has_succeeded() {
    for create in [create(SIZE, STRUCTURE_NOTIFY), create_pixmap(SIZE)] {
        let mut proxy = open();
        settle(&mut proxy, &[create, sync()].concat());
        settle(&mut proxy, &geometry());
        let report = proxy.near.report();
        assert_eq!((report.total().answered, report.differences), (1, 0));
        assert_eq!(heard(&mut proxy).1, Some(SIZE));
    }
}

#[test]
fn translate_coordinates_goes_to_the_server() {
    let mut proxy = open();
    settle(&mut proxy, &create(SIZE, STRUCTURE_NOTIFY));
    for _ in 0..3 {
        // No event reports that another client's window is at this position.
        settle(&mut proxy, &request(ORDER, 40, 0, &[WINDOW, ROOT, 0]));
    }
    assert_eq!(proxy.near.report().total().answered, 0);
}

#[test]
fn changes_by_other_clients_are_noticed_with_any_event_selection() {
    const LARGER: u32 = 0x0040_0030;
    for (selects, events) in [(0, 0), (STRUCTURE_NOTIFY, 1)] {
        for relaxed in [false, true] {
            let mut proxy = Harness::new(ORDER, NearSettings { relaxed, ..NearSettings::default() }, Store::default());
            proxy.open(&Questions::default());
            settle(&mut proxy, &[create(SIZE, selects), sync()].concat());
            (0..2).for_each(|_| settle(&mut proxy, &geometry()));
            assert!(proxy.near.report().total().answered > 0, "the geometry is known");
            heard(&mut proxy);
            proxy.server.resize(WINDOW, LARGER);
            settle(&mut proxy, &sync());
            settle(&mut proxy, &geometry());
            let (codes, size) = heard(&mut proxy);
            assert_eq!((codes, size), ([vec![22; events], vec![1, 1]].concat(), Some(LARGER)));
            settle(&mut proxy, &request(ORDER, 20, 0, &[WINDOW, ATOM, 31, 0, 1]));
            proxy.server.destroy(WINDOW);
            settle(&mut proxy, &sync());
            settle(&mut proxy, &geometry());
            settle(&mut proxy, &request(ORDER, 20, 0, &[WINDOW, ATOM, 31, 0, 1]));
            let (codes, _) = heard(&mut proxy);
            assert_eq!(codes, [vec![1], vec![17; events], vec![1, 0, 0]].concat());
            assert_eq!(proxy.near.report().differences, 0);
        }
    }
}

#[test]
fn only_selected_events_report_that_the_program_destroyed_a_window() {
    for (selects, events) in [(0, 0), (STRUCTURE_NOTIFY, 1)] {
        let mut proxy = open();
        // The first query makes the proxy select StructureNotify.
        settle(&mut proxy, &[create(SIZE, selects), geometry()].concat());
        heard(&mut proxy);
        settle(&mut proxy, &[request(ORDER, 4, 0, &[WINDOW]), create(SIZE, 0), geometry()].concat());
        assert_eq!(heard(&mut proxy).0, [vec![17; events], vec![1]].concat());
    }
}

#[test]
fn configuring_the_root_window_invalidates_its_monitors() {
    let mut store = Store::default();
    store.opcodes.learn("RANDR", RANDR, 89, 147);
    store.watch(Watch::Screens);
    let mut proxy = Harness::new(ORDER, NearSettings::default(), store);
    proxy.open(&Questions::default());
    // Whether the query is answered here after this window has been configured.
    let mut is_known = |configured: u32| {
        proxy.server.monitors += u32::from(configured == ROOT);
        proxy.server.event(22, &[configured, configured]);
        proxy.settle();
        let before = proxy.near.report().total().answered;
        settle(&mut proxy, &request(ORDER, RANDR, 42, &[ROOT, 1]));
        proxy.near.report().total().answered > before
    };
    assert!(!is_known(WINDOW), "the first query goes to the server");
    assert!(is_known(WINDOW));
    assert!(!is_known(ROOT), "the monitors may have changed");
}
