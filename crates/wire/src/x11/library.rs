// SPDX-License-Identifier: MIT
//! Names of messages by their numbers, from the protocol's own description: naming a message costs no more than an index.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::LazyLock;

/// The names of an extension's messages, each after its own: `RENDER::CompositeGlyphs8`.
#[derive(Debug)]
pub struct Table {
    pub requests: Named,
    pub with_reply: [bool; 256],
    /// Of XKB they have their kinds as numbers.
    pub events: Named,
    pub generic: Named,
    pub errors: Named,
}

type Named = [Option<&'static str>; 256];

const NONE: Named = [None; 256];
const EMPTY: Table = Table { requests: NONE, with_reply: [false; 256], events: NONE, generic: NONE, errors: NONE };

/// Messages of the protocol, a line each (`data/fields.py`).
pub const DESCRIBED: &str = include_str!("../../data/fields.txt");

/// XQOS, which the description does not have, in the same form.
static OURS: LazyLock<String> = LazyLock::new(|| {
    let extension = xqos_abi::EXTENSION_NAME;
    let mut lines = format!("e\t0\t{extension}::Notify\nx\t0\t{extension}::Admission\n");
    for (number, (name, has_reply)) in xqos_abi::REQUESTS.iter().enumerate() {
        let letters: &[char] = if *has_reply { &['q', 'r'] } else { &['q'] };
        letters.iter().for_each(|letter| _ = writeln!(lines, "{letter}\t{number}\t{extension}::{name}"));
    }
    lines
});

pub static EXTENSIONS: LazyLock<HashMap<&'static str, Table>> = LazyLock::new(|| {
    let mut tables = tables();
    tables.remove(CORE_NAME);
    tables
});

pub static CORE: LazyLock<Table> = LazyLock::new(|| tables().remove(CORE_NAME).unwrap_or(EMPTY));

const CORE_NAME: &str = "";

fn tables() -> HashMap<&'static str, Table> {
    let mut tables = HashMap::new();
    for line in DESCRIBED.lines().chain(OURS.lines()) {
        let _ = add(&mut tables, line);
    }
    tables
}

/// Takes a line; one whose number is none, such as GLX's -1 for an error that never comes, has no place.
fn add(tables: &mut HashMap<&'static str, Table>, line: &'static str) -> Option<()> {
    let mut words = line.split('\t');
    let (letter, number, name) = (words.next()?, words.next()?.parse::<u8>().ok()?, words.next()?);
    let table = tables.entry(name.split_once("::").map_or(CORE_NAME, |(extension, _)| extension)).or_insert(EMPTY);
    let place = usize::from(number);
    match letter {
        "q" => table.requests[place] = Some(name),
        "r" => table.with_reply[place] = true,
        "e" => table.events[place] = Some(name),
        "g" => table.generic[place] = Some(name),
        "x" => table.errors[place] = Some(name),
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_every_kind_are_named() {
        let table = |name: &str| &EXTENSIONS[name];
        let is = |name: Option<&str>, expected: &str| assert_eq!(name, Some(expected));
        is(table("XInputExtension").generic[32], "XInputExtension::GestureSwipeEnd");
        is(table("XInputExtension").errors[3], "XInputExtension::DeviceBusy");
        is(table("XKEYBOARD").events[11], "XKEYBOARD::ExtensionDeviceNotify");
        is(table("MIT-SHM").events[0], "MIT-SHM::Completion");
        is(table("MIT-SCREEN-SAVER").events[0], "MIT-SCREEN-SAVER::Notify");
        is(table("XFree86-VidModeExtension").errors[0], "XFree86-VidModeExtension::BadClock");
        is(table("RANDR").requests[8], "RANDR::GetScreenResources");
        is(table("XQOS").requests[6], "XQOS::ListClients");
        assert!(table("XQOS").with_reply[6] && !table("XQOS").with_reply[2]);
        is(table("DPMS").generic[0], "DPMS::InfoNotify");
        is(CORE.events[34], "MappingNotify");
        is(CORE.errors[14], "IDChoice");
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
