// SPDX-License-Identifier: MIT
//! Tests which waits remain with each kind of proxy.

use super::super::names::NameTable;
use super::super::tests::{Spec, greeting, make};
use super::super::waits::Waits;
use super::*;

const ROOT: u32 = 0x50;
const OWN: u32 = 0x40_0000;
const FOREIGN: u32 = 0x60_0001;

#[test]
fn one_request_asks_for_many_atoms_extensions_or_properties_in_a_row() {
    let mut client = Client::new(Remedy::Batch);
    assert_eq!((client.ask("InternAtom", &[1]), client.ask_for("InternAtom", &[2], 0)), (1, 1), "an atom is missing");
    assert_eq!((client.ask("QueryExtension", &[1]), client.ask("RENDER::QueryVersion", &[0])), (2, 2));
    assert_eq!((client.ask("GetProperty", &[OWN, 1]), client.ask("GetProperty", &[OWN, 2])), (3, 3));
    client.tell("MapWindow", &[OWN]);
    assert_eq!(client.ask("GetProperty", &[OWN, 3]), 3, "a batch without a wait in between");
    assert_eq!((client.ask("InternAtom", &[3]), client.ask("GetInputFocus", &[])), (3, 4));
    assert_eq!((client.ask("GetProperty", &[OWN, 1]), client.ask("GetGeometry", &[OWN])), (5, 6));
}

/// A client and its server, which answers each request 1 ms later.
struct Client {
    waits: Waits,
    names: NameTable,
    proxied: Proxied,
    sequence: u64,
    at_ns: u64,
}

impl Client {
    fn new(remedy: Remedy) -> Client {
        let mut client = Client {
            waits: Waits::default(),
            names: NameTable::default(),
            proxied: Proxied::new(remedy),
            sequence: 0,
            at_ns: 0,
        };
        let mut bytes = greeting(4, true);
        for (place, value) in [(12, OWN), (16, 0x1f_ffff), (56, ROOT)] {
            bytes[place..place + 4].copy_from_slice(&value.to_le_bytes());
        }
        client.say(Kind::SetupReply, "SetupReply", false, &bytes);
        client
    }

    fn say(&mut self, kind: Kind, name: &str, has_reply: bool, bytes: &[u8]) {
        self.at_ns += 1_000_000;
        let Client { sequence, at_ns, .. } = *self;
        let message = make(&Spec { kind, name, sequence, has_reply, at_ns, bytes, ..Spec::default() });
        let id = self.names.id(name);
        let wait = self.waits.message(&message, id, &mut self.names);
        self.proxied.message(&message, wait.as_ref());
    }

    fn tell(&mut self, name: &str, fields: &[u32]) {
        self.sequence += 1;
        self.say(Kind::Request, name, false, &bytes(fields));
    }

    fn event(&mut self, name: &str, fields: &[u32]) {
        self.say(Kind::Event, name, false, &bytes(fields));
    }

    /// Sends a request and waits. Returns the number of waits that would remain so far.
    fn ask(&mut self, name: &str, fields: &[u32]) -> u64 {
        self.ask_for(name, fields, 7)
    }

    fn ask_for(&mut self, name: &str, fields: &[u32], answer: u32) -> u64 {
        self.sequence += 1;
        self.say(Kind::Request, name, true, &bytes(fields));
        self.say(Kind::Reply, name, false, &bytes(&[0, answer]));
        self.left()
    }

    fn left(&self) -> u64 {
        self.proxied.by_name.values().map(|left| left.left).sum()
    }
}

/// The fields after a header of four bytes.
fn bytes(fields: &[u32]) -> Vec<u8> {
    [0].iter().chain(fields).flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn strict_answers_only_after_a_request_with_a_reply() {
    let mut client = Client::new(Remedy::Strict);
    assert_eq!(client.ask("InternAtom", &[0]), 0);
    client.tell("CreateGC", &[OWN + 1, OWN]);
    assert_eq!(client.ask("InternAtom", &[0]), 0, "CreateGC causes no event or error");
    client.tell("ChangeProperty", &[OWN + 1, 5]);
    client.tell("CreateGC", &[OWN + 2, OWN]);
    assert_eq!(client.ask("InternAtom", &[0]), 1, "events of ChangeProperty must come first");
    assert_eq!(client.ask("InternAtom", &[0]), 1);
}

#[test]
fn relaxed_answers_after_one_way_requests_except_barriers() {
    let mut client = Client::new(Remedy::Relaxed);
    client.tell("CreateWindow", &[OWN + 1, ROOT]);
    client.tell("ChangeProperty", &[OWN + 1, 5]);
    assert_eq!(client.ask("InternAtom", &[0]), 0);
    for (name, fields) in [("SendEvent", [OWN + 2, 0]), ("ChangeProperty", [ROOT, 5]), ("MapWindow", [FOREIGN, 0])] {
        let before = client.left();
        client.tell(name, &fields);
        assert_eq!(client.ask("InternAtom", &[0]), before + 1, "{name}");
        assert_eq!(client.ask("InternAtom", &[0]), before + 1, "the reply shows that {name} was executed");
    }
}

#[test]
fn lbx_answers_only_its_own_requests() {
    let mut client = Client::new(Remedy::Lbx);
    client.tell("CreateGC", &[OWN + 1, OWN]);
    for name in ["InternAtom", "QueryExtension", "GetAtomName"] {
        assert_eq!(client.ask(name, &[0]), 0, "{name}");
    }
    assert_eq!(client.ask("AllocColor", &[0x20]), 0);
    for (count, name) in ["GetProperty", "QueryFont", "GetKeyboardMapping", "RENDER::QueryVersion"].iter().enumerate() {
        assert_eq!(client.ask(name, &[ROOT, 5]), count as u64 + 1, "{name}");
    }
}

#[test]
fn sync_and_a_missing_atom_wait_for_the_server() {
    let mut client = Client::new(Remedy::Strict);
    assert_eq!(client.ask("GetInputFocus", &[]), 1);
    assert_eq!(client.ask_for("InternAtom", &[0], 0), 2);
    assert_eq!(client.ask("AllocColor", &[0x99]), 3, "that colormap is unknown");
    assert_eq!(client.ask("AllocColor", &[0x20]), 3);
}

#[test]
fn one_forwarded_request_keeps_the_wait_of_its_batch() {
    let mut client = Client::new(Remedy::Strict);
    for name in ["InternAtom", "GetSelectionOwner", "InternAtom"] {
        client.sequence += 1;
        client.say(Kind::Request, name, true, &bytes(&[0]));
    }
    client.say(Kind::Reply, "InternAtom", false, &bytes(&[0, 7]));
    assert_eq!(client.left(), 1);
}

#[test]
fn an_event_invalidates_a_watched_answer() {
    let mut client = Client::new(Remedy::Strict);
    assert_eq!(client.ask("GetKeyboardMapping", &[]), 0);
    client.event("MappingNotify", &[]);
    assert_eq!(client.ask("GetKeyboardMapping", &[]), 1);
    assert_eq!(client.ask("GetKeyboardMapping", &[]), 1);
    assert_eq!(client.ask("GetProperty", &[ROOT, 5]), 1);
    client.event("PropertyNotify", &[ROOT, 5]);
    assert_eq!(client.ask("GetProperty", &[ROOT, 6]), 1);
    assert_eq!(client.ask("GetProperty", &[ROOT, 5]), 2);
}

#[test]
fn foreign_properties_are_read_once_and_own_changes_are_known() {
    let mut client = Client::new(Remedy::Relaxed);
    assert_eq!(client.ask("GetProperty", &[FOREIGN, 5]), 1);
    assert_eq!(client.ask("GetProperty", &[FOREIGN, 5]), 1);
    client.tell("ChangeProperty", &[OWN + 1, 5]);
    client.event("PropertyNotify", &[OWN + 1, 5]);
    assert_eq!(client.ask("GetProperty", &[OWN + 1, 5]), 1, "the client's own change");
    client.event("PropertyNotify", &[OWN + 1, 5]);
    assert_eq!(client.ask("GetProperty", &[OWN + 1, 5]), 2, "another client's change");
}

#[test]
fn watched_answers_are_forwarded_during_a_server_grab() {
    let mut client = Client::new(Remedy::Relaxed);
    client.tell("GrabServer", &[]);
    assert_eq!(client.ask("GetInputFocus", &[]), 1);
    assert_eq!(client.ask("GetProperty", &[ROOT, 5]), 2);
    assert_eq!(client.ask("InternAtom", &[0]), 2);
}

#[test]
fn own_windows_are_known_until_they_are_mapped_and_pixmaps_always() {
    let mut client = Client::new(Remedy::Relaxed);
    client.tell("CreateWindow", &[OWN + 1, ROOT]);
    client.tell("CreateWindow", &[OWN + 3, OWN + 1]);
    client.tell("CreatePixmap", &[OWN + 2, ROOT]);
    assert_eq!(client.ask("GetGeometry", &[OWN + 1]), 0);
    assert_eq!(client.ask("TranslateCoordinates", &[OWN + 3, ROOT]), 0);
    assert_eq!(client.ask("GetWindowAttributes", &[OWN + 1]), 0);
    client.tell("MapSubwindows", &[OWN + 1]);
    client.tell("MapWindow", &[OWN + 1]);
    for (name, fields) in [
        ("GetGeometry", [OWN + 2, 0]),
        ("GetGeometry", [ROOT, 0]),
        ("GetGeometry", [OWN + 3, 0]),
        ("TranslateCoordinates", [OWN + 3, OWN + 1]),
    ] {
        assert_eq!(client.ask(name, &fields), 0, "{name} {fields:x?}");
    }
    assert_eq!(client.ask("GetGeometry", &[OWN + 1]), 1, "a window manager may have moved it");
    assert_eq!(client.ask("TranslateCoordinates", &[OWN + 3, ROOT]), 2);
    assert_eq!(client.ask("GetWindowAttributes", &[OWN + 1]), 3);
}

#[test]
fn the_number_of_tracked_windows_is_bounded() {
    let mut client = Client::new(Remedy::Strict);
    for number in 0..20_000 {
        client.tell("CreateWindow", &[OWN + number, ROOT]);
    }
    client.ask("GetInputFocus", &[]);
    assert_eq!(client.ask("GetGeometry", &[OWN + 19_999]), 2, "a window beyond the limit is unknown");
}
