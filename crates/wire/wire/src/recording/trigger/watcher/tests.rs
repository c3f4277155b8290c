// SPDX-License-Identifier: MIT
//! Tests each event on messages in virtual time.

use super::*;
use crate::analysis::tests::{Spec, make};

const MS: u64 = 1_000_000;
const ONE: ConnectionId = ConnectionId(1);
const OTHER: ConnectionId = ConnectionId(2);

fn watcher(start: TriggerEvent, stop: TriggerEvent) -> EventWatcher {
    EventWatcher::new(&TriggerSettings {
        start: Start::On(start),
        stop: Some(Stop::On(stop)),
        ..TriggerSettings::default()
    })
}

/// Whether a message is the event.
fn is_seen(watcher: &mut EventWatcher, id: ConnectionId, kind: Kind, name: &str) -> bool {
    watcher.message(id, &make(&Spec { kind, name, ..Spec::default() }));
    let seen = watcher.take();
    assert!(seen.message);
    seen.start
}

#[test]
fn each_event_is_seen_only_in_its_own_messages() {
    use Kind::{Error, Event, Reply, Request};
    let message = |name: &str| TriggerEvent::Message(name.parse().unwrap());
    let all = [
        (Event, "KeyPress"),
        (Event, "XInputExtension::KeyPress"),
        (Event, "XInputExtension::DeviceKeyPress"),
        (Event, "KeyRelease"),
        (Event, "XInputExtension::RawKeyPress"),
        (Event, "ButtonPress"),
        (Event, "XInputExtension::ButtonPress"),
        (Event, "MotionNotify"),
        (Request, "MapWindow"),
        (Request, "MapSubwindows"),
        (Request, "SetSelectionOwner"),
        (Request, "ConvertSelection"),
        (Request, "QueryExtension"),
        (Reply, "QueryExtension"),
        (Event, "MapNotify"),
        (Error, "Window"),
    ];
    for (event, wanted) in [
        (TriggerEvent::Key, &all[..3]),
        (TriggerEvent::Button, &all[5..7]),
        (TriggerEvent::Window(None), &all[8..9]),
        (TriggerEvent::Selection, &all[10..12]),
        (message("QueryExtension"), &all[12..14]),
        (message("MapNotify"), &all[14..15]),
        (message("BadWindow"), &all[15..]),
        (TriggerEvent::Signal, &all[..0]),
        // A button was pressed earlier.
        (TriggerEvent::Drag, &all[7..8]),
    ] {
        let mut watcher = watcher(event.clone(), TriggerEvent::Signal);
        let seen: Vec<_> = all.into_iter().filter(|(kind, name)| is_seen(&mut watcher, ONE, *kind, name)).collect();
        assert_eq!(seen, wanted, "{event:?}");
    }
}

#[test]
fn a_drag_is_a_move_of_the_pointer_while_a_button_is_pressed() {
    let mut watcher = watcher(TriggerEvent::Drag, TriggerEvent::Key);
    let mut see = |id, name| is_seen(&mut watcher, id, Kind::Event, name);
    assert!(!see(ONE, "MotionNotify"));
    assert!(!see(ONE, "ButtonPress"));
    assert!(!see(OTHER, "MotionNotify"), "no button is pressed on this connection");
    assert!(see(ONE, "MotionNotify") && see(ONE, "XInputExtension::Motion"));
    assert!(!see(ONE, "ButtonRelease") && !see(ONE, "MotionNotify"));
    assert!(!see(ONE, "XInputExtension::ButtonPress") && see(ONE, "XInputExtension::Motion"));
    watcher.ended(ONE, 0, Ending::Finished);
    assert!(!is_seen(&mut watcher, ONE, Kind::Event, "MotionNotify"));
}

/// A request with a window, and for ChangeProperty an atom and a text.
fn request(watcher: &mut EventWatcher, name: &str, window: u32, property: u32, text: &[u8]) -> bool {
    let mut bytes = vec![0; 24];
    for (at, word) in [(4, window), (8, property), (20, text.len() as u32)] {
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    bytes[16] = 8;
    bytes.extend(text);
    watcher.message(ONE, &make(&Spec { kind: Kind::Request, name, bytes: &bytes, ..Spec::default() }));
    watcher.take().start
}

#[test]
fn a_window_is_found_by_its_name_and_by_its_class() {
    for wanted in ["xterm", "XTerm", "a title"] {
        let mut watcher = watcher(TriggerEvent::Window(Some(wanted.to_owned())), TriggerEvent::Key);
        for (window, property, text) in [
            (1, WM_NAME, &b"another"[..]),
            (2, WM_CLASS, b"xterm\0XTerm\0"),
            (2, WM_NAME, b"A title"),
            (3, 1, b"xterm"),
            (4, WM_NAME, b"\xff\xfe"),
        ] {
            assert!(!request(&mut watcher, "ChangeProperty", window, property, text));
        }
        let mapped = [1, 2, 3, 4, 5].map(|window| request(&mut watcher, "MapWindow", window, 0, b""));
        assert_eq!(mapped, [false, true, false, false, false], "{wanted}");
    }
}

#[test]
fn a_wait_is_seen_once_when_it_becomes_too_long() {
    let (limit, longer) = (TriggerEvent::Wait { ns: 100 * MS }, TriggerEvent::Wait { ns: 300 * MS });
    let mut watcher = watcher(limit, longer);
    let say = |watcher: &mut EventWatcher, kind, sequence, at_ns| {
        watcher.advance_to(at_ns);
        let spec = Spec { kind, name: "GetImage", sequence, has_reply: true, at_ns, ..Spec::default() };
        watcher.message(ONE, &make(&spec));
        let seen = watcher.take();
        (seen.start, seen.stop)
    };
    let none = (false, false);
    assert_eq!(say(&mut watcher, Kind::Request, 1, 0), none);
    assert_eq!(say(&mut watcher, Kind::Reply, 1, 100 * MS), none, "exactly the limit");
    assert_eq!(say(&mut watcher, Kind::Request, 2, 200 * MS), none);
    assert_eq!(say(&mut watcher, Kind::Reply, 2, 301 * MS), (true, false), "answered too late");
    assert_eq!(say(&mut watcher, Kind::Request, 3, 400 * MS), none);
    let later = |watcher: &mut EventWatcher, at_ns| {
        watcher.advance_to(at_ns);
        let seen = watcher.take();
        (seen.start, seen.stop)
    };
    let waits = [500, 501, 502, 700, 701, 702].map(|ms| later(&mut watcher, ms * MS));
    assert_eq!(waits, [none, (true, false), none, none, (false, true), none], "not answered at all");
    assert_eq!(say(&mut watcher, Kind::Error, 3, 800 * MS), none);
    assert_eq!(later(&mut watcher, 9000 * MS), none);
}

#[test]
fn a_signal_is_seen_once() {
    let settings = TriggerSettings { start: Start::On(TriggerEvent::Signal), ..TriggerSettings::default() };
    let mut watcher = EventWatcher::new(&settings);
    let mut seen = || {
        watcher.advance_to(1);
        watcher.take().start
    };
    assert!(!seen());
    settings.signal.store(true, Ordering::Relaxed);
    assert!(seen() && !seen());
}
