// SPDX-License-Identifier: MIT
//! Rules for the bytes of a message that show what a user reads, types or sees: text, key codes and pixels.
//!
//! Bytes that determine the length or meaning of other messages are kept: names of atoms, extensions and fonts,
//! positions, sizes, colours and times. Unknown messages keep only their first bytes.

use crate::observe::{Kind, Message};
use std::ops::Range;

/// Up to the end of the message.
const END: u64 = u64::MAX;
/// Length of the head: opcode or kind, sequence number and message length, which framing needs.
pub const HEAD_BYTES: u64 = 8;

/// Requests and the offset from which all bytes are confidential.
const REQUESTS: [(&str, u64); 30] = [
    ("ChangeProperty", 24),
    ("PutImage", 24),
    // xdotool sends this request to type characters that no key produces.
    ("ChangeKeyboardMapping", 8),
    ("PolyText8", 16),
    ("PolyText16", 16),
    ("ImageText8", 16),
    ("ImageText16", 16),
    ("QueryTextExtents", 8),
    // The server ignores its content, which can be anything.
    ("NoOperation", 4),
    ("RENDER::AddGlyphs", 12),
    ("RENDER::FreeGlyphs", 8),
    // Text can be reconstructed from glyph numbers.
    ("RENDER::CompositeGlyphs8", 28),
    ("RENDER::CompositeGlyphs16", 28),
    ("RENDER::CompositeGlyphs32", 28),
    // Large letters are drawn as polygons.
    ("RENDER::Trapezoids", 24),
    ("RENDER::Triangles", 24),
    ("RENDER::TriStrip", 24),
    ("RENDER::TriFan", 24),
    ("RENDER::AddTraps", 12),
    ("XVideo::PutImage", 40),
    ("GLX::Render", 8),
    ("GLX::RenderLarge", 16),
    ("GLX::VendorPrivate", 12),
    ("GLX::VendorPrivateWithReply", 12),
    ("XInputExtension::SendExtensionEvent", 16),
    ("XInputExtension::ChangeDeviceProperty", 20),
    ("XInputExtension::XIChangeProperty", 20),
    ("RANDR::ChangeOutputProperty", 24),
    ("RANDR::ChangeProviderProperty", 24),
    ("XFIXES::SetCursorName", 12),
];

/// Replies by the name of their request, with the offset as in [`REQUESTS`].
const REPLIES: [(&str, u64); 12] = [
    ("GetProperty", 32),
    ("GetImage", 32),
    // One bit for each pressed key.
    ("QueryKeymap", 8),
    ("RECORD::EnableContext", 32),
    ("XInputExtension::QueryDeviceState", 32),
    ("XInputExtension::GetDeviceProperty", 32),
    ("XInputExtension::XIGetProperty", 32),
    ("XFIXES::GetCursorImage", 32),
    ("XFIXES::GetCursorImageAndName", 32),
    ("GLX::ReadPixels", 32),
    ("GLX::GetTexImage", 32),
    ("GLX::VendorPrivateWithReply", 32),
];

/// Events and the byte range that reveals a key or a text.
const EVENTS: [(&str, Range<u64>); 15] = [
    ("KeyPress", 1..2),
    ("KeyRelease", 1..2),
    ("KeymapNotify", 1..32),
    // Input methods and drag and drop send text in client messages.
    ("ClientMessage", 12..32),
    ("XInputExtension::DeviceKeyPress", 1..2),
    ("XInputExtension::DeviceKeyRelease", 1..2),
    ("XInputExtension::DeviceStateNotify", 8..32),
    ("XInputExtension::DeviceKeyStateNotify", 4..32),
    ("XInputExtension::KeyPress", 16..20),
    ("XInputExtension::KeyRelease", 16..20),
    ("XInputExtension::RawKeyPress", 16..20),
    ("XInputExtension::RawKeyRelease", 16..20),
    ("XKEYBOARD::StateNotify", 28..29),
    ("XKEYBOARD::AccessXNotify", 9..10),
    ("XKEYBOARD::ActionMessage", 9..20),
];

/// The security extension's request that creates a cookie. The library has no name for it.
const COOKIES: &str = "SECURITY::request 1";

/// The authorization data in a message.
pub fn cookie(message: &Message<'_>) -> Option<Range<u64>> {
    match message.kind {
        // The data follows the protocol name, which is kept.
        Kind::Setup => {
            let order = crate::x11::bytes::ByteOrder::of_setup(*message.bytes.first()?)?;
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
        Kind::Reply => from(&REPLIES, message.name).or_else(|| is_unknown(message.name).then_some(HEAD_BYTES..END)),
        Kind::Event => event(message.name),
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
        name => from(&REQUESTS, name)?,
    };
    Some(range.start + shift..range.end.saturating_add(shift))
}

const KEY_PRESS: u8 = 2;
const KEY_RELEASE: u8 = 3;

/// A simulated key press: event type and key code follow the head.
fn faked(message: &Message<'_>) -> Option<Range<u64>> {
    matches!(message.bytes.get(4)?, &KEY_PRESS | &KEY_RELEASE).then_some(5..6)
}

/// The event at byte 12 of the request.
fn sent_event(message: &Message<'_>) -> Option<Range<u64>> {
    const AT: u64 = 12;
    let code = message.bytes.get(AT as usize)? & 0x7f;
    Some(match code {
        KEY_PRESS | KEY_RELEASE => AT + 1..AT + 2,
        // The content of other events is unknown.
        _ => AT + 12..END,
    })
}

fn event(name: &str) -> Option<Range<u64>> {
    let known = EVENTS.iter().find(|(known, _)| *known == name).map(|(_, range)| range.clone());
    known.or_else(|| is_unknown(name).then_some(HEAD_BYTES + 2..END))
}

fn from(rules: &[(&str, u64)], name: &str) -> Option<Range<u64>> {
    rules.iter().find(|(known, _)| *known == name).map(|&(_, start)| start..END)
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
    use crate::x11::library::{CORE, EXTENSIONS};

    fn has(name: &str, list: impl Fn(&crate::x11::library::Table) -> Vec<&Option<&'static str>>) -> bool {
        let own = name.split_once("::").map(|(extension, _)| extension);
        let table = own.map_or(Some(&*CORE), |extension| EXTENSIONS.get(extension));
        table.is_some_and(|table| list(table).iter().any(|known| **known == Some(name)))
    }

    #[test]
    fn every_rule_names_an_existing_message() {
        for (name, _) in REQUESTS.iter().chain(&REPLIES) {
            assert!(has(name, |table| table.requests.iter().collect()), "no request is called {name}");
        }
        for (name, _) in &EVENTS {
            assert!(
                has(name, |table| table.events.iter().chain(&table.generic).collect()),
                "no event is called {name}"
            );
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
