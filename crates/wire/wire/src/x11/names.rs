// SPDX-License-Identifier: MIT
//! Names of messages, and whether a request has a reply: for the core protocol and the extensions of one server.
//!
//! Only the server's replies to QueryExtension contain the opcodes of extensions. They apply to all connections to that
//! server. An unknown message is named by its numbers: `extension 131 request 7`.

use super::xproto::LIST_FONTS_WITH_INFO_REQUEST;
use std::collections::HashMap;
use xqos_x11::codes::{
    BIG_REQUESTS, FIRST_EXTENSION, FIRST_EXTENSION_ERROR, FIRST_EXTENSION_EVENT, GENERIC_EVENT, SENT_BY_CLIENT, XKB,
};
use xqos_x11::names::{CORE, ExtensionNames, NameKind, table};

/// Name of a reply whose request was not captured.
pub const UNKNOWN_REQUEST: &str = "unknown request";
/// Maximum number of cached names of unknown messages.
const MAX_UNNAMED: usize = 4096;
/// Maximum length of an extension name. Only hostile captures have longer ones.
const MAX_NAME_LETTERS: usize = 64;

#[derive(Debug)]
pub struct Names {
    /// Indexed by major opcode - [`FIRST_EXTENSION`].
    extensions: [Option<Box<Extension>>; 128],
    unnamed: HashMap<Numbers, String>,
}

/// Major opcode, first event and first error in a reply to QueryExtension; `None` if the extension is absent.
pub fn extension_of(reply: &[u8]) -> Option<[u8; 3]> {
    let &[present, major, first_event, first_error] = reply.get(8..)?.first_chunk()?;
    (present != 0).then_some([major, first_event, first_error])
}

#[derive(Debug)]
struct Extension {
    name: String,
    table: Option<&'static ExtensionNames>,
    first_event: u8,
    first_error: u8,
}

/// A message by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Numbers {
    /// Major and minor opcode.
    Request(u8, u8),
    /// Code and second byte.
    Event(u8, u8),
    /// Major opcode of the extension, and the type.
    Generic(u8, u16),
    Error(u8),
}

impl Default for Names {
    fn default() -> Names {
        Names { extensions: [const { None }; 128], unnamed: HashMap::new() }
    }
}

impl Names {
    /// Records a reply to QueryExtension. Returns true if it is new. A first code of 0 means that there are none.
    pub fn learn(&mut self, name: &str, major: u8, first_event: u8, first_error: u8) -> bool {
        let Some(slot) = major.checked_sub(FIRST_EXTENSION) else { return false };
        let name: String = name.chars().filter(|letter| !letter.is_control()).take(MAX_NAME_LETTERS).collect();
        let is_known = |known: &Extension| known.name == name && known.first_event == first_event;
        if self.extensions[usize::from(slot)].as_deref().is_some_and(is_known) {
            return false;
        }
        let table = table(&name).filter(|table| !table.extension.is_empty());
        self.extensions[usize::from(slot)] = Some(Box::new(Extension { name, table, first_event, first_error }));
        self.unnamed.clear();
        true
    }

    /// Name, major opcode, first event and first error of each known extension.
    pub fn extensions(&self) -> impl Iterator<Item = (&str, u8, u8, u8)> {
        let known = (FIRST_EXTENSION..=u8::MAX)
            .zip(&self.extensions)
            .filter_map(|(major, known)| Some((major, known.as_ref()?)));
        known.map(|(major, known)| (known.name.as_str(), major, known.first_event, known.first_error))
    }

    pub fn extension_name(&self, major: u8) -> Option<&str> {
        self.extension(major).map(|extension| extension.name.as_str())
    }

    pub fn major(&self, extension: &str) -> Option<u8> {
        let slot = self.extensions.iter().position(|known| known.as_ref().is_some_and(|known| known.name == extension));
        slot.map(|slot| FIRST_EXTENSION + slot as u8)
    }

    /// True if a request has a reply; `None` if the request is unknown.
    pub fn has_reply(&self, major: u8, minor: u8) -> Option<bool> {
        match self.extension(major) {
            Some(extension) => {
                let table = extension.table?;
                table.name(NameKind::Request, minor)?;
                Some(table.has_reply(minor))
            }
            None if major < FIRST_EXTENSION => Some(CORE.has_reply(major)),
            None => None,
        }
    }

    /// True if an extension with this major opcode is known and can have this request.
    pub fn is_extension_request(&self, major: u8, minor: u8) -> bool {
        let has_request =
            |extension: &Extension| extension.table.is_none_or(|table| table.name(NameKind::Request, minor).is_some());
        self.extension(major).is_some_and(has_request)
    }

    pub fn knows_extensions(&self) -> bool {
        self.extensions.iter().any(Option::is_some)
    }

    /// True if a request enables BIG-REQUESTS, or may do so because its extension is unknown.
    pub fn may_enable_big_requests(&self, bytes: &[u8], length: u64) -> bool {
        const ENABLE: u8 = 0;
        let &[major, ENABLE, ..] = bytes else { return false };
        length == 4 && major >= FIRST_EXTENSION && self.extension(major).is_none_or(|known| known.name == BIG_REQUESTS)
    }

    /// For a request with several replies, returns the second byte of the last reply.
    pub fn last_of_many(&self, major: u8, minor: u8) -> Option<u8> {
        /// Length of an empty name.
        const NO_NAME: u8 = 0;
        const ENABLE_CONTEXT: u8 = 5;
        const END_OF_DATA: u8 = 5;
        if major == LIST_FONTS_WITH_INFO_REQUEST {
            return Some(NO_NAME);
        }
        let is_record = minor == ENABLE_CONTEXT && self.extension(major).is_some_and(|known| known.name == "RECORD");
        is_record.then_some(END_OF_DATA)
    }

    pub fn request(&mut self, major: u8, minor: u8) -> &str {
        self.name(Numbers::Request(major, minor))
    }

    /// Returns the name of an event. XKB events also need the second byte, generic events the second byte and the type.
    pub fn event(&mut self, code: u8, second_byte: u8, kind: u16) -> &str {
        self.name(match code & !SENT_BY_CLIENT {
            GENERIC_EVENT => Numbers::Generic(second_byte, kind),
            code => Numbers::Event(code, second_byte),
        })
    }

    pub fn error(&mut self, code: u8) -> &str {
        self.name(Numbers::Error(code))
    }

    fn known(&self, numbers: Numbers) -> Option<&'static str> {
        let table = |major| self.extension(major)?.table;
        match numbers {
            Numbers::Request(major, _) if major < FIRST_EXTENSION => CORE.name(NameKind::Request, major),
            Numbers::Request(major, minor) => table(major)?.name(NameKind::Request, minor),
            Numbers::Generic(major, kind) => table(major)?.name(NameKind::GenericEvent, kind),
            Numbers::Event(code, _) if code < FIRST_EXTENSION_EVENT => CORE.name(NameKind::Event, code),
            Numbers::Event(code, second_byte) => {
                let (extension, number) = self.by_first(code, |extension| extension.first_event)?;
                let number = if extension.name == XKB { second_byte } else { number };
                extension.table?.name(NameKind::Event, number)
            }
            Numbers::Error(code) if code < FIRST_EXTENSION_ERROR => CORE.name(NameKind::Error, code),
            Numbers::Error(code) => {
                let (extension, number) = self.by_first(code, |extension| extension.first_error)?;
                extension.table?.name(NameKind::Error, number)
            }
        }
    }

    fn extension(&self, major: u8) -> Option<&Extension> {
        self.extensions[usize::from(major.checked_sub(FIRST_EXTENSION)?)].as_deref()
    }

    /// The extension with the highest first code that is at most `code`, and `code` minus that first code.
    fn by_first(&self, code: u8, first: impl Fn(&Extension) -> u8) -> Option<(&Extension, u8)> {
        let begun = self.extensions.iter().flatten().filter(|extension| (1..=code).contains(&first(extension)));
        let extension = begun.max_by_key(|extension| first(extension))?;
        Some((extension, code - first(extension)))
    }

    /// Returns the known name, or one made of numbers.
    fn name(&mut self, numbers: Numbers) -> &str {
        if let Some(known) = self.known(numbers) {
            return known;
        }
        if !self.unnamed.contains_key(&numbers) {
            if self.unnamed.len() >= MAX_UNNAMED {
                self.unnamed.clear();
            }
            self.unnamed.insert(numbers, self.by_numbers(numbers));
        }
        &self.unnamed[&numbers]
    }

    fn by_numbers(&self, numbers: Numbers) -> String {
        let of_extension = |major, kind: &str| match self.extension_name(major) {
            Some(extension) => format!("{extension}::{kind}"),
            None => format!("extension {major} {kind}"),
        };
        match numbers {
            Numbers::Request(major, _) if major < FIRST_EXTENSION => format!("request {major}"),
            Numbers::Request(major, minor) => of_extension(major, &format!("request {minor}")),
            Numbers::Generic(major, kind) => of_extension(major, &format!("event {kind}")),
            Numbers::Event(code, _) => format!("event {code}"),
            Numbers::Error(code) => format!("error {code}"),
        }
    }
}
