// SPDX-License-Identifier: MIT
//! A server's opcodes: names, which requests have replies or can be answered here, and which events report changes.
//!
//! The server assigns an extension's opcodes and reports them in reply to QueryExtension; the opcodes are the same on
//! all connections. The properties of each opcode are computed once, so handling a request takes one array access.

use xqos_wire::answerable::{Barrier, Class, Condition, Row, TABLE, barrier, is_silent, row};
use xqos_wire::x11::fields::Layout;
use xqos_wire::x11::names::Names;
pub use xqos_wire::x11::xproto as op;
use xqos_x11::codes::FIRST_EXTENSION;

/// Extensions that do not work over a network link, because they pass file descriptors or shared memory.
pub const HIDDEN: [&str; 3] = ["MIT-SHM", "DRI2", "DRI3"];

/// Core requests that affect windows, pixmaps, colormaps, colours or fonts, or that grab the server.
const FOLLOWED: [u8; 24] = [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 18, 19, 36, 37, 45, 46, 53, 54, 78, 79, 88, 114];

/// State that answers depend on and that can change while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    /// Keyboards and their mappings.
    Keys,
    Devices,
    /// Outputs and their modes.
    Screens,
    Fonts,
}

pub const WATCHES: usize = 4;

#[derive(Clone, Copy, Debug)]
pub struct Opcode {
    pub row: Row,
    pub watch: Option<Watch>,
    /// State that the request itself changes.
    pub changes: Option<Watch>,
    pub barrier: Barrier,
    /// The request causes no reply and no event. If it names only the program's own resources, it causes no error.
    pub is_silent: bool,
    /// A one-way request that changes no tracked state and is passed on unchanged.
    pub is_plain: bool,
    pub has_reply: Option<bool>,
    /// The fields of requests that can be answered here.
    pub layout: Layout,
}

#[derive(Debug)]
pub struct Opcodes {
    pub names: Names,
    core: Box<[Opcode]>,
    extensions: [Option<Box<[Opcode]>>; 128],
}

impl Default for Opcodes {
    fn default() -> Opcodes {
        let mut names = Names::default();
        let core = (0..FIRST_EXTENSION).map(|major| Opcode::of(&mut names, major, 0)).collect();
        Opcodes { names, core, extensions: [const { None }; 128] }
    }
}

impl Opcode {
    fn of(names: &mut Names, major: u8, minor: u8) -> Opcode {
        let has_reply = names.has_reply(major, minor);
        let name = names.request(major, minor);
        let mut row = row(name);
        let watch = watch_of(&row);
        // Keyboard state changes with each key press, and the proxy does not select events that report it.
        if row.class == Class::Watched && watch.is_none() && row.request != "GetProperty" {
            row.class = Class::Never;
        }
        let (changes, barrier, is_silent) = (changed_by(name), barrier(name), is_silent(name));
        let is_followed = FOLLOWED.contains(&major) || changes.is_some() || barrier != Barrier::None;
        let is_plain = has_reply == Some(false) && !is_followed;
        let layout = if row.class == Class::Never { Layout::default() } else { Layout::of(name) };
        Opcode { row, watch, changes, barrier, is_silent, is_plain, has_reply, layout }
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

/// The state that a request of this name can change.
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
    pub fn learn(&mut self, name: &str, major: u8, first_event: u8, first_error: u8) {
        let Some(slot) = major.checked_sub(FIRST_EXTENSION) else { return };
        if self.names.learn(name, major, first_event, first_error) {
            let requests = (0..=u8::MAX).map(|minor| Opcode::of(&mut self.names, major, minor)).collect();
            self.extensions[usize::from(slot)] = Some(requests);
        }
    }

    /// Properties of a request. `None` if its extension has not been queried.
    pub fn request(&self, major: u8, minor: u8) -> Option<&Opcode> {
        match major.checked_sub(FIRST_EXTENSION) {
            None => self.core.get(usize::from(major)),
            Some(slot) => self.extensions[usize::from(slot)].as_deref()?.get(usize::from(minor)),
        }
    }

    /// The name of an extension; empty for the core protocol.
    pub fn extension(&self, major: u8) -> Option<&str> {
        if major < FIRST_EXTENSION { Some("") } else { self.names.extension_name(major) }
    }

    /// The state that an event reports as changed.
    pub fn changed_by(&mut self, code: u8, second_byte: u8, kind: u16) -> Option<Watch> {
        let event = self.names.event(code, second_byte, kind);
        TABLE.iter().filter(|row| row.until.contains(&event)).find_map(watch_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_known_after_their_extension_is_queried() {
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
        assert_eq!((opcodes.names.major("RANDR"), opcodes.extension(135)), (Some(131), Some("XKEYBOARD")));
    }

    #[test]
    fn events_report_changes() {
        let mut opcodes = Opcodes::default();
        assert_eq!(opcodes.changed_by(85, 1, 0), None, "event 85 is unknown before its extension is queried");
        opcodes.learn("RANDR", 131, 89, 147);
        opcodes.learn("XKEYBOARD", 135, 85, 137);
        opcodes.learn("XInputExtension", 132, 66, 129);
        assert_eq!(opcodes.changed_by(34, 0, 0), Some(Watch::Keys));
        assert_eq!(opcodes.changed_by(85, 1, 0), Some(Watch::Keys));
        assert_eq!(opcodes.changed_by(85, 2, 0), None, "StateNotify");
        assert_eq!(
            (opcodes.changed_by(89, 0, 0), opcodes.changed_by(90, 0, 0)),
            (Some(Watch::Screens), Some(Watch::Screens))
        );
        assert_eq!((opcodes.changed_by(35, 132, 11), opcodes.changed_by(35, 132, 6)), (Some(Watch::Devices), None));
        assert_eq!(opcodes.changed_by(12, 0, 0), None);
    }
}
