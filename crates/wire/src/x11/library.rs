// SPDX-License-Identifier: MIT
//! The library's names, each looked up once and kept: naming a message then costs no more than an index.
//!
//! The library names a request by its numbers; an event or an error only as what it has parsed. So one of zeros is
//! given to it, of each number, and its Debug text begins with the name. Which requests have replies the library knows only
//! of one that it has parsed whole, which is no way to count five million of them and fails on one that was cut off: that
//! is taken from the protocol's own description.

use super::codes::{FIRST_EXTENSION, FIRST_EXTENSION_ERROR, FIRST_EXTENSION_EVENT, GENERIC_EVENT, XKB};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;
use x11rb_protocol::protocol::{ErrorKind, Event, get_request_name};
use x11rb_protocol::x11_utils::{ExtInfoProvider, ExtensionInformation};

/// No extension has more events, XKB's kinds and XInput's generic ones included, or more errors.
const MAX_EVENTS: u8 = 40;

/// The names of an extension's messages, each after its own: `RENDER::CompositeGlyphs8`.
#[derive(Debug)]
pub struct Table {
    pub requests: Vec<Option<String>>,
    pub with_reply: [bool; 256],
    pub events: Vec<Option<String>>,
    pub generic: Vec<Option<String>>,
    pub errors: Vec<Option<String>>,
}

/// Messages of the protocol, a line each (`data/fields.py`).
pub const DESCRIBED: &str = include_str!("../../data/fields.txt");

/// Names of requests with replies.
static ANSWERED: LazyLock<HashSet<&str>> = LazyLock::new(|| described("r").collect());

/// The names of what is described under this letter.
fn described(letter: &str) -> impl Iterator<Item = &'static str> {
    let words = DESCRIBED.lines().filter_map(|line| line.split_once('\t'));
    words.filter(move |(kind, _)| *kind == letter).filter_map(|(_, rest)| rest.split('\t').next())
}

/// One extension, for the library, at the first free opcodes.
struct Alone(&'static str);

const INFORMATION: ExtensionInformation = ExtensionInformation {
    major_opcode: FIRST_EXTENSION,
    first_event: FIRST_EXTENSION_EVENT,
    first_error: FIRST_EXTENSION_ERROR,
};

impl ExtInfoProvider for Alone {
    fn get_from_major_opcode(&self, _major_opcode: u8) -> Option<(&str, ExtensionInformation)> {
        Some((self.0, INFORMATION))
    }

    fn get_from_event_code(&self, _event_code: u8) -> Option<(&str, ExtensionInformation)> {
        Some((self.0, INFORMATION))
    }

    fn get_from_error_code(&self, _error_code: u8) -> Option<(&str, ExtensionInformation)> {
        Some((self.0, INFORMATION))
    }
}

pub static EXTENSIONS: LazyLock<HashMap<&'static str, Table>> = LazyLock::new(|| {
    let names: BTreeSet<_> = described("q").filter_map(|name| Some(name.split_once("::")?.0)).collect();
    names.into_iter().map(|name| (name, Table::of(name))).chain([Table::ours()]).collect()
});

pub static CORE: LazyLock<Table> = LazyLock::new(Table::of_core);

impl Table {
    fn of(name: &'static str) -> Table {
        let known = Alone(name);
        let requests: Vec<Option<String>> =
            (0..=255).map(|minor| request_name(&known, FIRST_EXTENSION, minor)).collect();
        let prefix = requests.iter().flatten().find_map(|name| name.split_once("::")).map_or("", |(prefix, _)| prefix);
        let own = |text: Option<String>| Some(format!("{name}::{}", without_prefix(&text?, prefix)?));
        let named = |text: &Option<String>| Some(format!("{name}::{}", text.as_ref()?.split_once("::")?.1));
        let requests: Vec<Option<String>> = requests.iter().map(named).collect();
        Table {
            with_reply: with_reply(&requests),
            requests,
            events: (0..MAX_EVENTS).map(|number| own(extension_event_name(&known, number))).collect(),
            generic: (0..MAX_EVENTS).map(|number| own(generic_event_name(&known, number))).collect(),
            errors: (0..MAX_EVENTS).map(|number| own(error_name(&known, FIRST_EXTENSION_ERROR + number))).collect(),
        }
    }

    /// XQOS, which the library does not know.
    fn ours() -> (&'static str, Table) {
        let name = xqos_abi::EXTENSION_NAME;
        let own = |text: &str| Some(format!("{name}::{text}"));
        let mut with_reply = [false; 256];
        for (place, &(_, has_reply)) in with_reply.iter_mut().zip(xqos_abi::REQUESTS) {
            *place = has_reply;
        }
        let mut requests: Vec<Option<String>> = xqos_abi::REQUESTS.iter().map(|(text, _)| own(text)).collect();
        requests.resize(256, None);
        let table = Table {
            requests,
            with_reply,
            events: vec![own("Notify")],
            generic: Vec::new(),
            errors: vec![own("Admission")],
        };
        (name, table)
    }

    fn of_core() -> Table {
        let none = Alone("");
        let requests: Vec<_> = (0..FIRST_EXTENSION).map(|major| request_name(&none, major, 0)).collect();
        Table {
            with_reply: with_reply(&requests),
            requests,
            events: (0..FIRST_EXTENSION_EVENT).map(|code| event_name(&none, code, 0)).collect(),
            generic: Vec::new(),
            errors: (0..FIRST_EXTENSION_ERROR).map(|code| error_name(&none, code)).collect(),
        }
    }
}

fn with_reply(requests: &[Option<String>]) -> [bool; 256] {
    std::array::from_fn(|number| {
        requests.get(number).into_iter().flatten().any(|name| ANSWERED.contains(name.as_str()))
    })
}

/// "Glyph" of "RenderGlyph", where requests are "Render::CreatePicture". XInput has "Input" there and "Xinput" here.
fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    [0, 1].into_iter().find_map(|skipped| {
        let (front, own) = text.split_at_checked(skipped + prefix.len())?;
        front.get(skipped..)?.eq_ignore_ascii_case(prefix).then_some(own)
    })
}

fn request_name(known: &Alone, major: u8, minor: u8) -> Option<String> {
    let name = get_request_name(known, major, minor);
    (!name.contains("opcode ")).then(|| name.into_owned())
}

/// Of an event of zeros: what comes before its fields.
fn event_name(known: &Alone, code: u8, second_byte: u8) -> Option<String> {
    let mut zeros = [0; 32];
    (zeros[0], zeros[1]) = (code, second_byte);
    // Errors and replies are no events.
    if code < 2 {
        return None;
    }
    before_fields(Event::parse(&zeros, known).ok()?)
}

fn extension_event_name(known: &Alone, number: u8) -> Option<String> {
    // Of XKB it is the kind.
    let (code, second_byte) = if known.0 == XKB { (0, number) } else { (number, 0) };
    event_name(known, FIRST_EXTENSION_EVENT + code, second_byte)
}

fn generic_event_name(known: &Alone, number: u8) -> Option<String> {
    // Long enough for the fixed part of all of them.
    const BYTES: u32 = 128;
    let mut zeros = [0; BYTES as usize];
    (zeros[0], zeros[1]) = (GENERIC_EVENT, FIRST_EXTENSION);
    zeros[4..8].copy_from_slice(&((BYTES - 32) / 4).to_ne_bytes());
    zeros[8..10].copy_from_slice(&u16::from(number).to_ne_bytes());
    before_fields(Event::parse(&zeros, known).ok()?)
}

fn before_fields(event: Event) -> Option<String> {
    let text = format!("{event:?}");
    let name = text.split('(').next()?;
    (name != "Unknown").then(|| name.to_owned())
}

fn error_name(known: &Alone, code: u8) -> Option<String> {
    match ErrorKind::from_wire_error_code(code, known) {
        ErrorKind::Unknown(_) => None,
        kind => Some(format!("{kind:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_name_has_lost_the_librarys_prefix() {
        let table = |name: &str| &EXTENSIONS[name];
        let is = |name: &Option<String>, expected: &str| assert_eq!(name.as_deref(), Some(expected));
        is(&table("XInputExtension").generic[32], "XInputExtension::GestureSwipeEnd");
        is(&table("XInputExtension").errors[3], "XInputExtension::DeviceBusy");
        is(&table("XKEYBOARD").events[11], "XKEYBOARD::ExtensionDeviceNotify");
        is(&table("MIT-SHM").events[0], "MIT-SHM::Completion");
        is(&table("MIT-SCREEN-SAVER").events[0], "MIT-SCREEN-SAVER::Notify");
        is(&table("XFree86-VidModeExtension").errors[0], "XFree86-VidModeExtension::BadClock");
        is(&table("RANDR").requests[8], "RANDR::GetScreenResources");
        is(&table("XQOS").requests[6], "XQOS::ListClients");
        assert!(table("XQOS").with_reply[6] && !table("XQOS").with_reply[2]);
        is(&CORE.events[34], "MappingNotify");
        is(&CORE.errors[14], "IDChoice");
        assert_eq!(CORE.requests.iter().flatten().count(), 120);
        assert_eq!(CORE.events.iter().flatten().count(), 33);
    }

    /// Extension and opcodes with replies of one of the protocol's files.
    fn description(text: &str) -> (String, Vec<u8>) {
        let attribute =
            |line: &str, name: &str| Some(line.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.to_owned());
        let (mut extension, mut opcode, mut opcodes) = (String::new(), None::<u8>, Vec::new());
        // What is only thought of stands in comments.
        let said: String =
            text.split("<!--").map(|part| part.split_once("-->").map_or(part, |(_, said)| said)).collect();
        for line in said.lines() {
            extension = attribute(line, "extension-xname").unwrap_or(extension);
            if line.contains("<request ") {
                opcode = attribute(line, "opcode").and_then(|opcode| opcode.parse().ok());
            }
            if line.contains("<reply>") {
                opcodes.extend(opcode);
            }
        }
        opcodes.sort();
        (extension, opcodes)
    }

    #[test]
    fn replies_come_to_the_requests_that_the_protocol_says() {
        let Ok(files) = std::fs::read_dir("/usr/share/xcb") else {
            return xqos_skip::left_out("the protocol's description is not installed (xcb-proto)");
        };
        let files =
            files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|it| it == "xml"));
        for path in files {
            let (extension, opcodes) = description(&std::fs::read_to_string(&path).unwrap());
            let table = if extension.is_empty() { Some(&*CORE) } else { EXTENSIONS.get(extension.as_str()) };
            let ours = table.map(|table| (0..=255).filter(|&it| table.with_reply[usize::from(it)]).collect());
            assert_eq!(ours, Some(opcodes), "{}", path.display());
        }
    }
}
