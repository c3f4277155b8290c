// SPDX-License-Identifier: MIT
//! Tests which replies count as waited for.

use super::super::tests::{Said, said};
use super::*;

const MS: u64 = 1_000_000;

#[derive(Default)]
struct Talk {
    waits: Waits,
    names: Names,
    told: Vec<(String, u64, u64)>,
}

impl Talk {
    fn say(&mut self, said_: Said<'_>) {
        let name = self.names.id(said_.name);
        if let Some(wait) = self.waits.message(&said(&said_), name, &mut self.names) {
            self.told.push((self.names.name(wait.name).to_owned(), wait.from_ns / MS, wait.to_ns / MS));
        }
    }

    fn ask(&mut self, at_ms: u64, sequence: u64, name: &str, has_reply: bool) {
        self.say(Said { name, sequence, has_reply, at_ns: at_ms * MS, ..Said::default() });
    }

    fn reply(&mut self, at_ms: u64, sequence: u64, name: &str) {
        self.say(Said { kind: Kind::Reply, name, sequence, at_ns: at_ms * MS, ..Said::default() });
    }

    fn told(&self) -> Vec<(&str, u64, u64)> {
        self.told.iter().map(|(name, from, to)| (name.as_str(), *from, *to)).collect()
    }
}

#[test]
fn one_question_after_the_other_waits_for_each() {
    let mut talk = Talk::default();
    for number in 0..46 {
        talk.ask(number * 100, number + 1, "InternAtom", true);
        talk.reply(number * 100 + 90, number + 1, "InternAtom");
    }
    assert_eq!(talk.told.len(), 46);
    assert_eq!(talk.told()[1], ("InternAtom", 100, 190));
    let total = talk.waits.by_name.values().next().unwrap();
    assert_eq!((total.count, total.ns), (46, 46 * 90 * MS));
    assert_eq!(talk.waits.spans.total_ns(), 46 * 90 * MS);
}

#[test]
fn a_batch_is_one_wait_named_after_its_last() {
    let mut talk = Talk::default();
    (1..=46).for_each(|number| talk.ask(0, number, "InternAtom", true));
    talk.ask(0, 47, "GetProperty", true);
    (1..=46).for_each(|number| talk.reply(90, number, "InternAtom"));
    talk.reply(91, 47, "GetProperty");
    assert_eq!(talk.told(), [("GetProperty", 0, 91)]);
    assert_eq!(talk.waits.pipelined, 45, "the last atom and the property came in one silence");
}

#[test]
fn who_goes_on_sending_does_not_wait() {
    let mut talk = Talk::default();
    for number in 0..100u64 {
        talk.ask(number * 10, number + 1, "GetProperty", true);
        if number >= 9 {
            talk.reply(number * 10 + 5, number - 8, "GetProperty");
        }
    }
    assert_eq!(talk.told(), []);
    assert_eq!(talk.waits.pipelined, 90);
}

#[test]
fn requests_without_reply_after_the_question_do_not_hide_the_wait() {
    let mut talk = Talk::default();
    talk.ask(0, 1, "GetProperty", true);
    talk.ask(1, 2, "MapWindow", false);
    talk.reply(90, 1, "GetProperty");
    talk.ask(92, 3, "CreateGC", false);
    assert_eq!(talk.told(), [("GetProperty", 1, 90)]);
}

#[test]
fn a_reply_that_is_read_much_later_was_not_waited_for() {
    let mut talk = Talk::default();
    talk.ask(0, 1, "GetProperty", true);
    talk.ask(1, 2, "MapWindow", false);
    talk.reply(90, 1, "GetProperty");
    talk.ask(500, 3, "CreateGC", false);
    assert_eq!(talk.told(), []);
}

#[test]
fn an_error_ends_a_wait_as_a_reply_does() {
    let mut talk = Talk::default();
    talk.ask(0, 1, "GetProperty", true);
    talk.say(Said { kind: Kind::Error, name: "Window", sequence: 1, at_ns: 50 * MS, ..Said::default() });
    assert_eq!(talk.told(), [("GetProperty", 0, 50)]);
}

#[test]
fn events_and_errors_that_nobody_asked_for_end_nothing() {
    let mut talk = Talk::default();
    talk.ask(0, 1, "MapWindow", false);
    talk.say(Said { kind: Kind::Event, name: "Expose", sequence: 1, at_ns: MS, ..Said::default() });
    talk.say(Said { kind: Kind::Error, name: "Window", sequence: 1, at_ns: MS, ..Said::default() });
    talk.ask(2, 2, "CreateGC", false);
    assert_eq!(talk.told(), []);
}

#[test]
fn the_last_of_many_replies_ends_the_wait() {
    let mut talk = Talk::default();
    talk.ask(0, 1, "ListFontsWithInfo", true);
    for at_ms in [50, 60, 70] {
        let name = "ListFontsWithInfo";
        talk.say(Said { kind: Kind::Reply, name, sequence: 1, has_reply: true, at_ns: at_ms * MS, ..Said::default() });
    }
    talk.reply(80, 1, "ListFontsWithInfo");
    assert_eq!(talk.told(), [("ListFontsWithInfo", 0, 80)]);
}

#[test]
fn the_greeting_is_waited_for() {
    let mut talk = Talk::default();
    talk.say(Said { kind: Kind::Setup, name: "Setup", sequence: 0, at_ns: MS, ..Said::default() });
    talk.say(Said { kind: Kind::SetupReply, name: "Setup", sequence: 0, at_ns: 9 * MS, ..Said::default() });
    assert_eq!(talk.told(), [("Setup", 1, 9)]);
}

#[test]
fn nothing_is_concluded_over_a_gap() {
    let mut talk = Talk::default();
    talk.ask(0, 1, "InternAtom", true);
    talk.waits.gap();
    talk.reply(90, 1, "InternAtom");
    assert_eq!(talk.told(), []);
}

#[test]
fn questions_that_are_never_answered_take_little_memory() {
    let mut talk = Talk::default();
    for number in 0..100_000 {
        talk.ask(number, number + 1, "InternAtom", true);
    }
    assert!(talk.waits.due.len() <= MAX_DUE);
    talk.reply(100_000, 100_000, "InternAtom");
    assert_eq!(talk.told.len(), 1);
}
