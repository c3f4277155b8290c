// SPDX-License-Identifier: MIT
//! Tests which round trips count as avoidable.

use super::super::tests::{Spec, greeting, make};
use super::*;

#[derive(Default)]
struct Client {
    judge: Judge,
    sequence: u16,
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Client {
    fn tell(&mut self, kind: Kind, name: &str, bytes: &[u8]) {
        self.judge.message(&make(&Spec { kind, name, bytes, ..Spec::default() }));
    }

    /// Sends one request alone, waits for the answer, and returns the verdict.
    fn wait(&mut self, name: &str, request: &[u32], answer: &[u32]) -> Option<Reason> {
        self.wait_with(name, request, answer, true)
    }

    fn wait_with(&mut self, name: &str, request: &[u32], answer: &[u32], is_alone: bool) -> Option<Reason> {
        let bytes = words(request);
        let question = self.judge.question(&make(&Spec { name, bytes: &bytes, has_reply: true, ..Spec::default() }))?;
        let mut bytes = words(answer);
        self.sequence += 1;
        bytes[2..4].copy_from_slice(&self.sequence.to_le_bytes());
        let reply = make(&Spec { kind: Kind::Reply, name, bytes: &bytes, ..Spec::default() });
        let is_repeated = self.judge.answer(&question, &reply);
        self.judge.verdict(&question, is_repeated, is_alone)
    }
}

#[test]
fn only_the_first_of_several_atoms_is_needed() {
    let mut client = Client::default();
    assert_eq!(client.wait("InternAtom", &[1, 10], &[1, 300]), None);
    assert_eq!(client.wait("InternAtom", &[1, 11], &[1, 301]), Some(Reason::AtomsOneByOne));
    assert_eq!(client.wait_with("InternAtom", &[1, 12], &[1, 302], false), None, "the client awaits other replies too");
    assert_eq!(client.wait("InternAtom", &[1, 10], &[1, 300]), Some(Reason::SameAnswer));
}

#[test]
fn extensions_and_their_versions_can_be_batched() {
    let mut client = Client::default();
    assert_eq!(client.wait("QueryExtension", &[98, 1], &[1, 1]), None);
    assert_eq!(client.wait("RENDER::QueryVersion", &[138, 1], &[1, 1]), None);
    assert_eq!(client.wait("QueryExtension", &[98, 2], &[1, 2]), Some(Reason::ExtensionsOneByOne));
    assert_eq!(client.wait("QueryExtension", &[98, 2], &[1, 2]), Some(Reason::SameAnswer));
    assert_eq!(client.wait("XFIXES::QueryVersion", &[139, 1], &[1, 1]), Some(Reason::VersionsOneByOne));
}

#[test]
fn a_property_is_unchanged_until_a_change_is_reported() {
    const READ: [u32; 6] = [20, 0x100, 39, 31, 0, 100];
    let mut client = Client::default();
    assert_eq!(client.wait("GetProperty", &READ, &[1, 7, 7]), None);
    assert_eq!(client.wait("GetProperty", &READ, &[1, 7, 7]), Some(Reason::UnchangedProperty));
    assert_eq!(client.wait("GetProperty", &READ, &[1, 8, 8]), None, "another answer");
    client.tell(Kind::Event, "PropertyNotify", &words(&[28, 0x100, 39, 0]));
    assert_eq!(client.wait("GetProperty", &READ, &[1, 8, 8]), None, "an event has reported a change");
    client.tell(Kind::Event, "PropertyNotify", &words(&[28, 0x100, 40, 0]));
    assert_eq!(client.wait("GetProperty", &READ, &[1, 8, 8]), Some(Reason::UnchangedProperty), "another property");
    client.tell(Kind::Request, "ChangeProperty", &words(&[18, 0x100, 39, 31]));
    assert_eq!(client.wait("GetProperty", &READ, &[1, 8, 8]), None, "the client itself has changed the property");
    let further = [20, 0x100, 39, 31, 100, 100];
    assert_eq!(client.wait("GetProperty", &further, &[1, 8, 8]), None, "another part of the property");
}

#[test]
fn colour_requests_are_avoidable_on_true_color_only() {
    for (class, expected) in [(4, Some(Reason::TrueColor)), (3, None)] {
        let mut client = Client::default();
        client.tell(Kind::SetupReply, "Setup", &greeting(class, true));
        assert_eq!(client.wait("AllocColor", &[84, 0x20, 0], &[1, 0]), expected);
        assert_eq!(client.wait("AllocNamedColor", &[85, 0x20, 0], &[1, 0]), expected);
    }
    let mut joined = Client::default();
    assert_eq!(joined.wait("AllocColor", &[84, 0x20, 0], &[1, 0]), None, "the visual is not known");
}

#[test]
fn synchronisation_and_core_fonts_are_always_avoidable() {
    let mut client = Client::default();
    assert_eq!(client.wait("GetInputFocus", &[43], &[1, 0]), Some(Reason::Sync));
    assert_eq!(client.wait("QueryFont", &[47, 5], &[1, 0]), Some(Reason::CoreFont));
}

#[test]
fn geometry_is_known_until_a_window_moves() {
    let mut client = Client::default();
    assert_eq!(client.wait("GetGeometry", &[14, 0x100], &[1, 5]), None);
    assert_eq!(client.wait("GetGeometry", &[14, 0x100], &[1, 5]), Some(Reason::SameAnswer));
    client.tell(Kind::Event, "ConfigureNotify", &words(&[22, 0x100]));
    assert_eq!(client.wait("GetGeometry", &[14, 0x100], &[1, 5]), None);
}

#[test]
fn values_that_change_on_their_own_may_be_asked_again() {
    let mut client = Client::default();
    for name in ["QueryPointer", "SYNC::QueryCounter", "MIT-SHM::GetImage", "GetSelectionOwner", "Made::Up"] {
        for _ in 0..2 {
            assert_eq!(client.wait(name, &[1, 2], &[1, 2]), None, "{name}");
        }
    }
    assert_eq!(client.wait("RANDR::GetOutputInfo", &[1, 2], &[1, 2]), None);
    assert_eq!(client.wait("RANDR::GetOutputInfo", &[1, 2], &[1, 2]), Some(Reason::SameAnswer));
}

#[test]
fn a_truncated_request_is_not_judged() {
    let mut message = make(&Spec { name: "InternAtom", bytes: &[16, 0, 0, 0], ..Spec::default() });
    message.length = 20;
    assert!(Judge::default().question(&message).is_none());
}

#[test]
fn endless_answers_take_bounded_memory() {
    let mut client = Client::default();
    for window in 0..3 * MAX_ANSWERS as u32 {
        client.wait("GetProperty", &[20, window, 39, 31], &[1, 2]);
        client.tell(Kind::Event, "PropertyNotify", &words(&[28, window, 39, 0]));
    }
    assert!(client.judge.answers.len() <= MAX_ANSWERS && client.judge.changes.len() <= MAX_ANSWERS);
}
