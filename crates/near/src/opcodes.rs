// SPDX-License-Identifier: MIT
//! What is known of a server's opcodes: names, which requests have replies, what can be answered, what tells of a change.
//!
//! Which opcodes an extension has the server says in its reply to QueryExtension; what it said on one connection holds for
//! all of them. Everything is looked up once for an opcode, so that a request costs an index.

use xqos_wire::answerable::{Barrier, Class, Condition, Row, TABLE, barrier, is_silent, row};
use xqos_wire::x11::codes::FIRST_EXTENSION;
use xqos_wire::x11::names::Names;
pub use xqos_wire::x11::xproto as op;

/// Extensions that are no use over a link: they pass descriptors or memory.
pub const HIDDEN: [&str; 3] = ["MIT-SHM", "DRI2", "DRI3"];

/// Core requests that say something of windows, pixmaps, colormaps, colours or fonts, or that hold the server.
const FOLLOWED: [u8; 24] = [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 18, 19, 36, 37, 45, 46, 53, 54, 78, 79, 88, 114];

/// What an answer can depend on that changes while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    /// Keyboards and their maps.
    Keys,
    /// XInput's devices.
    Devices,
    /// Outputs and their modes.
    Screens,
    /// The path on which fonts are found.
    Fonts,
}

pub const WATCHES: usize = 4;

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub row: Row,
    pub watch: Option<Watch>,
    /// What it changes itself.
    pub changes: Option<Watch>,
    pub barrier: Barrier,
    /// Without a reply, an event or, of what the program has made itself, an error.
    pub is_silent: bool,
    /// One-way, and nothing follows from it that is kept here: it goes on as it is.
    pub is_plain: bool,
    pub has_reply: Option<bool>,
}

/// All opcodes of a server.
#[derive(Debug)]
pub struct Opcodes {
    names: Names,
    core: Box<[Known]>,
    /// The requests of each extension.
    extensions: [Option<Box<[Known]>>; 128],
}

impl Default for Opcodes {
    fn default() -> Opcodes {
        let mut names = Names::default();
        let core = (0..FIRST_EXTENSION).map(|major| Known::of(&mut names, major, 0)).collect();
        Opcodes { names, core, extensions: [const { None }; 128] }
    }
}

impl Known {
    fn of(names: &mut Names, major: u8, minor: u8) -> Known {
        let has_reply = names.has_reply(major, minor);
        let name = names.request(major, minor);
        let mut row = row(name);
        let watch = watch_of(&row);
        // Nobody listens for the states that change with every key.
        if row.class == Class::Watched && watch.is_none() && row.request != "GetProperty" {
            row.class = Class::Never;
        }
        let (changes, barrier, is_silent) = (changed_by(name), barrier(name), is_silent(name));
        let is_followed = FOLLOWED.contains(&major) || changes.is_some() || barrier != Barrier::None;
        let is_plain = has_reply == Some(false) && !is_followed;
        Known { row, watch, changes, barrier, is_silent, is_plain, has_reply }
    }

    pub fn is_answerable(&self) -> bool {
        self.row.class != Class::Never && self.has_reply == Some(true)
    }
}

fn watch_of(row: &Row) -> Option<Watch> {
    match row.until.first() {
        None if row.when == Condition::SameFontPath => Some(Watch::Fonts),
        Some(&"XKEYBOARD::StateNotify" | &"XKEYBOARD::IndicatorStateNotify" | &"PropertyNotify") | None => None,
        Some(event) if event.starts_with("RANDR::") => Some(Watch::Screens),
        Some(event) if event.starts_with("XInputExtension::") => Some(Watch::Devices),
        Some(_) => Some(Watch::Keys),
    }
}

/// What a request may change, by its name.
fn changed_by(name: &str) -> Option<Watch> {
    const VERBS: [&str; 10] =
        ["Set", "Change", "XIChange", "XIDelete", "Create", "Destroy", "Delete", "Configure", "Add", "GetKbdByName"];
    let of_verb = |request: &str, watch| VERBS.iter().any(|verb| request.starts_with(verb)).then_some(watch);
    match name.split_once("::") {
        None => match name {
            "ChangeKeyboardMapping" | "SetModifierMapping" | "SetPointerMapping" | "ChangeKeyboardControl" => {
                Some(Watch::Keys)
            }
            "SetFontPath" => Some(Watch::Fonts),
            _ => None,
        },
        Some(("XKEYBOARD", request)) => of_verb(request, Watch::Keys),
        Some(("RANDR", request)) => of_verb(request, Watch::Screens),
        Some(("XInputExtension", request)) => of_verb(request, Watch::Devices),
        Some(_) => None,
    }
}

impl Opcodes {
    /// Takes what the server said of an extension.
    pub fn learn(&mut self, name: &str, major: u8, first_event: u8, first_error: u8) {
        let Some(slot) = major.checked_sub(FIRST_EXTENSION) else { return };
        if self.names.learn(name, major, first_event, first_error) {
            let requests = (0..=u8::MAX).map(|minor| Known::of(&mut self.names, major, minor)).collect();
            self.extensions[usize::from(slot)] = Some(requests);
        }
    }

    /// What is known of a request; nothing of an extension that the server was not asked for.
    pub fn request(&self, major: u8, minor: u8) -> Option<&Known> {
        match major.checked_sub(FIRST_EXTENSION) {
            None => self.core.get(usize::from(major)),
            Some(slot) => self.extensions[usize::from(slot)].as_deref()?.get(usize::from(minor)),
        }
    }

    /// Of a request that is answered by many replies, the second byte of the last of them.
    pub fn last_of_many(&self, major: u8, minor: u8) -> Option<u8> {
        self.names.last_of_many(major, minor)
    }

    pub fn name(&mut self, major: u8, minor: u8) -> &str {
        self.names.request(major, minor)
    }

    /// The name of an extension; empty of the core.
    pub fn extension(&self, major: u8) -> Option<&str> {
        if major < FIRST_EXTENSION { Some("") } else { self.names.extension_name(major) }
    }

    pub fn major(&self, extension: &str) -> Option<u8> {
        self.names.major(extension)
    }

    /// What an event says to have changed: that which any answer that ends with it depends on.
    pub fn told_by(&mut self, code: u8, second_byte: u8, kind: u16) -> Option<Watch> {
        let event = self.names.event(code, second_byte, kind);
        TABLE.iter().filter(|row| row.until.contains(&event)).find_map(watch_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_known_once_the_server_has_named_their_extension() {
        let mut opcodes = Opcodes::default();
        assert!(opcodes.request(131, 0).is_none());
        opcodes.learn("RANDR", 131, 89, 147);
        opcodes.learn("XKEYBOARD", 135, 85, 137);
        let of = |major, minor| opcodes.request(major, minor).unwrap();
        assert_eq!((of(131, 0).row.class, of(131, 9).watch), (Class::ConstantSetsState, Some(Watch::Screens)));
        assert_eq!(of(131, 21).changes, Some(Watch::Screens), "SetCrtcConfig");
        assert_eq!((of(135, 8).watch, of(135, 9).changes), (Some(Watch::Keys), Some(Watch::Keys)));
        assert_eq!(of(135, 4).row.class, Class::Never, "GetState changes with each key");
        assert_eq!(of(47, 0).watch, Some(Watch::Fonts));
        assert_eq!((opcodes.major("RANDR"), opcodes.extension(135)), (Some(131), Some("XKEYBOARD")));
    }

    #[test]
    fn events_tell_what_has_changed() {
        let mut opcodes = Opcodes::default();
        assert_eq!(opcodes.told_by(85, 1, 0), None, "nobody has asked yet what event 85 is");
        opcodes.learn("RANDR", 131, 89, 147);
        opcodes.learn("XKEYBOARD", 135, 85, 137);
        opcodes.learn("XInputExtension", 132, 66, 129);
        assert_eq!(opcodes.told_by(34, 0, 0), Some(Watch::Keys));
        assert_eq!(opcodes.told_by(85, 1, 0), Some(Watch::Keys));
        assert_eq!(opcodes.told_by(85, 2, 0), None, "StateNotify");
        assert_eq!(
            (opcodes.told_by(89, 0, 0), opcodes.told_by(90, 0, 0)),
            (Some(Watch::Screens), Some(Watch::Screens))
        );
        assert_eq!((opcodes.told_by(35, 132, 11), opcodes.told_by(35, 132, 6)), (Some(Watch::Devices), None));
        assert_eq!(opcodes.told_by(12, 0, 0), None);
    }
}
