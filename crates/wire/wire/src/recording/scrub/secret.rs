// SPDX-License-Identifier: MIT
//! Rules for the bytes of a message that show what a user reads, types or sees: text, key codes and pixels.
//!
//! Bytes that determine the length or meaning of other messages are kept: names of atoms, extensions and fonts,
//! positions, sizes, colours and times. Unknown messages keep only their first bytes.

use crate::observe::{Kind, Message};
use crate::x11::xproto::{KEY_PRESS_EVENT, KEY_RELEASE_EVENT};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

/// Up to the end of the message.
const END: u64 = u64::MAX;
/// Length of the head: opcode or kind, sequence number and message length, which framing needs.
pub const HEAD_BYTES: u64 = 8;

const DESCRIBED: &str = include_str!("../../../data/secret.txt");

/// The rules, by the letter of the kind of message and by its name.
static RULES: LazyLock<HashMap<(&str, &str), Range<u64>>> =
    LazyLock::new(|| DESCRIBED.lines().filter_map(rule).collect());

fn rule(line: &'static str) -> Option<((&'static str, &'static str), Range<u64>)> {
    let mut words = line.split_whitespace().take_while(|word| *word != "#");
    let (letter, name, (start, end)) = (words.next()?, words.next()?, words.next()?.split_once("..")?);
    let end = if end.is_empty() { END } else { end.parse().ok()? };
    Some(((letter, name), start.parse().ok()?..end))
}

fn known(letter: &str, name: &str) -> Option<Range<u64>> {
    RULES.get(&(letter, name)).cloned()
}

/// The security extension's request that creates a cookie. The library has no name for it.
const COOKIES: &str = "SECURITY::request 1";

/// The authorization data in a message.
pub fn cookie(message: &Message<'_>) -> Option<Range<u64>> {
    match message.kind {
        // The data follows the protocol name, which is kept.
        Kind::Setup => {
            let order = xqos_x11::ByteOrder::of_setup(*message.bytes.first()?)?;
            let name_bytes = u64::from(order.u16(message.bytes, 6)?).next_multiple_of(4);
            Some(12 + name_bytes..END)
        }
        Kind::Reply if message.name == COOKIES => Some(HEAD_BYTES..END),
        _ => None,
    }
}

/// The range of a message to overwrite, including its cookie; offsets are relative to the message.
pub fn secret(message: &Message<'_>) -> Option<Range<u64>> {
    cookie(message).or_else(|| match message.kind {
        Kind::Request => request(message),
        Kind::Reply => known("r", message.name).or_else(|| is_unknown(message.name).then_some(HEAD_BYTES..END)),
        Kind::Event => known("e", message.name).or_else(|| is_unknown(message.name).then_some(HEAD_BYTES + 2..END)),
        Kind::Setup | Kind::SetupReply | Kind::Error => None,
    })
}

fn request(message: &Message<'_>) -> Option<Range<u64>> {
    // BIG-REQUESTS inserts four bytes between head and fields.
    let is_big = message.bytes.get(2..4) == Some(&[0, 0]);
    let shift = if is_big { 4 } else { 0 };
    let range = match message.name {
        "SendEvent" => sent_event(message)?,
        "XTEST::FakeInput" => faked(message)?,
        name if is_unknown(name) => HEAD_BYTES - 4..END,
        name => known("q", name)?,
    };
    Some(range.start + shift..range.end.saturating_add(shift))
}

/// A simulated key press: event type and key code follow the head.
fn faked(message: &Message<'_>) -> Option<Range<u64>> {
    matches!(message.bytes.get(4)?, &KEY_PRESS_EVENT | &KEY_RELEASE_EVENT).then_some(5..6)
}

/// The bytes to overwrite in a SendEvent request, whose event begins at byte 12.
fn sent_event(message: &Message<'_>) -> Option<Range<u64>> {
    const AT: u64 = 12;
    let code = message.bytes.get(AT as usize)? & 0x7f;
    Some(match code {
        KEY_PRESS_EVENT | KEY_RELEASE_EVENT => AT + 1..AT + 2,
        // The content of other events is unknown.
        _ => AT + 12..END,
    })
}

/// True for messages named by number, whose meaning is unknown.
fn is_unknown(name: &str) -> bool {
    ["request ", "event ", "extension ", "unknown "]
        .iter()
        .any(|word| name.starts_with(word) || name.split_once("::").is_some_and(|(_, own)| own.starts_with(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_x11::names::{NameKind, all};

    #[test]
    fn every_rule_names_an_existing_message() {
        let lines = DESCRIBED.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(RULES.len(), lines, "a line is damaged or repeated");
        for (letter, name) in RULES.keys() {
            let is_event = *letter == "e";
            let exists = all().any(|(kind, known)| match kind {
                NameKind::Event | NameKind::GenericEvent => is_event && known == *name,
                NameKind::Request => !is_event && known == *name,
                NameKind::Reply | NameKind::Error => false,
            });
            assert!(exists, "there is no message {letter} {name}");
        }
    }

    #[test]
    fn unnamed_messages_are_not_trusted() {
        for name in ["request 125", "extension 139 request 23", "NOBODYS::request 3", "unknown request", "event 85"] {
            assert!(is_unknown(name), "{name}");
        }
        for name in ["MapWindow", "RENDER::QueryVersion", "RECORD::EnableContext"] {
            assert!(!is_unknown(name), "{name}");
        }
    }
}
