// SPDX-License-Identifier: MIT
//! What in a message tells what a user reads, types or sees: text, key codes and pixels.
//!
//! Overwritten is what these rules name, and nothing that another message's meaning or length depends on: names of
//! atoms, extensions and fonts stay, as do places, sizes, colours and times. Of messages that no table knows only the
//! first bytes stay.

use crate::observe::{Kind, Message};
use std::ops::Range;

/// All bytes from there to the end of the message.
const END: u64 = u64::MAX;
/// Opcode or kind, number, length: without these nothing can be framed.
pub const HEAD_BYTES: u64 = 8;

/// Requests with something secret from a byte on, up to the end.
const REQUESTS: [(&str, u64); 30] = [
    ("ChangeProperty", 24),
    ("PutImage", 24),
    // So xdotool types what is on no key.
    ("ChangeKeyboardMapping", 8),
    ("PolyText8", 16),
    ("PolyText16", 16),
    ("ImageText8", 16),
    ("ImageText16", 16),
    ("QueryTextExtents", 8),
    // Its bytes mean nothing, so they may be anything.
    ("NoOperation", 4),
    ("RENDER::AddGlyphs", 12),
    ("RENDER::FreeGlyphs", 8),
    // By the numbers of its glyphs, text can be read.
    ("RENDER::CompositeGlyphs8", 28),
    ("RENDER::CompositeGlyphs16", 28),
    ("RENDER::CompositeGlyphs32", 28),
    // Large letters are drawn so.
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

/// Replies, by the names of their requests.
const REPLIES: [(&str, u64); 12] = [
    ("GetProperty", 32),
    ("GetImage", 32),
    // One bit for each key that is down.
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

/// Events, each with the bytes of its own that tell a key or a text.
const EVENTS: [(&str, Range<u64>); 15] = [
    ("KeyPress", 1..2),
    ("KeyRelease", 1..2),
    ("KeymapNotify", 1..32),
    // Input methods and drag and drop send text so.
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

/// The security extension hands out cookies; the library has no names for it.
const COOKIES: &str = "SECURITY::request 1";

/// The bytes of a message that say who may connect.
pub fn cookie(message: &Message<'_>) -> Option<Range<u64>> {
    match message.kind {
        // The name of the protocol stays; the data comes behind it.
        Kind::Setup => {
            let order = crate::x11::bytes::ByteOrder::of_setup(*message.bytes.first()?)?;
            let name_bytes = u64::from(order.u16(message.bytes, 6)?).next_multiple_of(4);
            Some(12 + name_bytes..END)
        }
        Kind::Reply if message.name == COOKIES => Some(HEAD_BYTES..END),
        _ => None,
    }
}

/// The bytes of a message that are to be overwritten, its cookie too; places are those in the message.
pub fn secret(message: &Message<'_>) -> Option<Range<u64>> {
    cookie(message).or_else(|| match message.kind {
        Kind::Request => request(message),
        Kind::Reply => from(&REPLIES, message.name).or_else(|| is_unknown(message.name).then_some(HEAD_BYTES..END)),
        Kind::Event => event(message.name),
        Kind::Setup | Kind::SetupReply | Kind::Error => None,
    })
}

fn request(message: &Message<'_>) -> Option<Range<u64>> {
    // BIG-REQUESTS puts four bytes between head and fields.
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

/// A key that a program pretends was pressed: kind and key follow the head.
fn faked(message: &Message<'_>) -> Option<Range<u64>> {
    matches!(message.bytes.get(4)?, &KEY_PRESS | &KEY_RELEASE).then_some(5..6)
}

/// The event within, at byte 12 of the request.
fn sent_event(message: &Message<'_>) -> Option<Range<u64>> {
    const AT: u64 = 12;
    let code = message.bytes.get(AT as usize)? & 0x7f;
    Some(match code {
        KEY_PRESS | KEY_RELEASE => AT + 1..AT + 2,
        // Of others it is not known here what they are.
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

/// Called by its numbers, or not called at all: its meaning is not known.
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
    fn every_rule_is_for_a_message_that_there_is() {
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
    fn what_no_table_names_is_not_trusted() {
        for name in ["request 125", "extension 139 request 23", "NOBODYS::request 3", "unknown request", "event 85"] {
            assert!(is_unknown(name), "{name}");
        }
        for name in ["MapWindow", "RENDER::QueryVersion", "RECORD::EnableContext"] {
            assert!(!is_unknown(name), "{name}");
        }
    }
}
