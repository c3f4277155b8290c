// SPDX-License-Identifier: MIT
//! Tests which replies count as waits.

use super::super::tests::{Spec, make};
use super::*;

const MS: u64 = 1_000_000;

#[derive(Default)]
struct TestClient {
    waits: Waits,
    names: NameTable,
    found: Vec<(String, u64, u64)>,
}

impl TestClient {
    fn say(&mut self, spec: Spec<'_>) {
        let name = self.names.id(spec.name);
        if let Some(wait) = self.waits.message(&make(&spec), name, &mut self.names) {
            self.found.push((self.names.name(wait.name).to_owned(), wait.from_ns / MS, wait.to_ns / MS));
        }
    }

    fn ask(&mut self, at_ms: u64, sequence: u64, name: &str, has_reply: bool) {
        self.say(Spec { name, sequence, has_reply, at_ns: at_ms * MS, ..Spec::default() });
    }

    fn reply(&mut self, at_ms: u64, sequence: u64, name: &str) {
        self.say(Spec { kind: Kind::Reply, name, sequence, at_ns: at_ms * MS, ..Spec::default() });
    }

    fn found(&self) -> Vec<(&str, u64, u64)> {
        self.found.iter().map(|(name, from, to)| (name.as_str(), *from, *to)).collect()
    }
}

#[test]
fn consecutive_requests_are_separate_waits() {
    let mut test = TestClient::default();
    for number in 0..46 {
        test.ask(number * 100, number + 1, "InternAtom", true);
        test.reply(number * 100 + 90, number + 1, "InternAtom");
    }
    assert_eq!(test.found.len(), 46);
    assert_eq!(test.found()[1], ("InternAtom", 100, 190));
    let total = test.waits.by_name.values().next().unwrap();
    assert_eq!((total.count, total.ns), (46, 46 * 90 * MS));
    assert_eq!(test.waits.spans.total_ns(), 46 * 90 * MS);
}

#[test]
fn a_batch_is_one_wait_named_after_its_last_request() {
    let mut test = TestClient::default();
    (1..=46).for_each(|number| test.ask(0, number, "InternAtom", true));
    test.ask(0, 47, "GetProperty", true);
    (1..=46).for_each(|number| test.reply(90, number, "InternAtom"));
    test.reply(91, 47, "GetProperty");
    assert_eq!(test.found(), [("GetProperty", 0, 91)]);
    assert_eq!(test.waits.pipelined, 45, "the replies to the last atom and the property arrived in one silence");
}

#[test]
fn a_client_that_keeps_sending_does_not_wait() {
    let mut test = TestClient::default();
    for number in 0..100u64 {
        test.ask(number * 10, number + 1, "GetProperty", true);
        if number >= 9 {
            test.reply(number * 10 + 5, number - 8, "GetProperty");
        }
    }
    assert_eq!(test.found(), []);
    assert_eq!(test.waits.pipelined, 90);
}

#[test]
fn one_way_requests_after_a_question_do_not_hide_its_wait() {
    let mut test = TestClient::default();
    test.ask(0, 1, "GetProperty", true);
    test.ask(1, 2, "MapWindow", false);
    test.reply(90, 1, "GetProperty");
    test.ask(92, 3, "CreateGC", false);
    assert_eq!(test.found(), [("GetProperty", 1, 90)]);
}

#[test]
fn a_reply_that_is_read_much_later_was_not_waited_for() {
    let mut test = TestClient::default();
    test.ask(0, 1, "GetProperty", true);
    test.ask(1, 2, "MapWindow", false);
    test.reply(90, 1, "GetProperty");
    test.ask(500, 3, "CreateGC", false);
    assert_eq!(test.found(), []);
}

#[test]
fn an_error_ends_a_wait_as_a_reply_does() {
    let mut test = TestClient::default();
    test.ask(0, 1, "GetProperty", true);
    test.say(Spec { kind: Kind::Error, name: "Window", sequence: 1, at_ns: 50 * MS, ..Spec::default() });
    assert_eq!(test.found(), [("GetProperty", 0, 50)]);
}

#[test]
fn unrequested_events_and_errors_do_not_end_a_wait() {
    let mut test = TestClient::default();
    test.ask(0, 1, "MapWindow", false);
    test.say(Spec { kind: Kind::Event, name: "Expose", sequence: 1, at_ns: MS, ..Spec::default() });
    test.say(Spec { kind: Kind::Error, name: "Window", sequence: 1, at_ns: MS, ..Spec::default() });
    test.ask(2, 2, "CreateGC", false);
    assert_eq!(test.found(), []);
}

#[test]
fn the_last_of_many_replies_ends_the_wait() {
    let mut test = TestClient::default();
    test.ask(0, 1, "ListFontsWithInfo", true);
    for at_ms in [50, 60, 70] {
        let name = "ListFontsWithInfo";
        test.say(Spec { kind: Kind::Reply, name, sequence: 1, has_reply: true, at_ns: at_ms * MS, ..Spec::default() });
    }
    test.reply(80, 1, "ListFontsWithInfo");
    assert_eq!(test.found(), [("ListFontsWithInfo", 0, 80)]);
}

#[test]
fn the_connection_setup_is_a_wait() {
    let mut test = TestClient::default();
    test.say(Spec { kind: Kind::Setup, name: "Setup", sequence: 0, at_ns: MS, ..Spec::default() });
    test.say(Spec { kind: Kind::SetupReply, name: "Setup", sequence: 0, at_ns: 9 * MS, ..Spec::default() });
    assert_eq!(test.found(), [("Setup", 1, 9)]);
}

#[test]
fn no_wait_is_reported_across_a_gap() {
    let mut test = TestClient::default();
    test.ask(0, 1, "InternAtom", true);
    test.waits.gap();
    test.reply(90, 1, "InternAtom");
    assert_eq!(test.found(), []);
}

#[test]
fn unanswered_requests_take_bounded_memory() {
    let mut test = TestClient::default();
    for number in 0..100_000 {
        test.ask(number, number + 1, "InternAtom", true);
    }
    assert!(test.waits.pending.len() <= MAX_PENDING);
    test.reply(100_000, 100_000, "InternAtom");
    assert_eq!(test.found.len(), 1);
}
