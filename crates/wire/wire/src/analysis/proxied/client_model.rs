// SPDX-License-Identifier: MIT
//! Tracks what a proxy knows about one client: its own resources, and which answers may have changed.

use super::super::colors::Colormaps;
use crate::answerable::{Class, Condition, Row, TABLE};
use crate::observe::{Kind, Message};
use std::collections::HashMap;

/// Maximum number of remembered windows and changes. A program's start has a few hundred. Others count as unknown.
const MAX_REMEMBERED: usize = 4_096;
const MAX_NESTED: usize = 32;

/// Subject of an answer: window and name of a property, [`ANY`] for everything else.
type Subject = (u32, u32);
const ANY: Subject = (0, 0);

/// Atom in a reply to InternAtom; 0 if no such atom exists.
pub fn atom(message: &Message<'_>) -> Option<u32> {
    message.word(8)
}

#[derive(Clone, Copy, Debug)]
struct Window {
    parent: u32,
    is_mapped: bool,
    is_reparented: bool,
}

#[derive(Debug, Default)]
pub struct ClientModel {
    colormaps: Colormaps,
    windows: HashMap<u32, Window>,
    /// Number of changes so far. For each subject, `changes` and `read` keep its value at the last change and read.
    change: u64,
    changes: HashMap<(&'static str, Subject), u64>,
    read: HashMap<(&'static str, Subject), u64>,
    /// Property changes by the client itself whose events have not arrived yet.
    own_changes: HashMap<Subject, u32>,
    has_grab: bool,
    has_set_font_path: bool,
}

impl ClientModel {
    pub fn learn(&mut self, message: &Message<'_>) {
        self.colormaps.message(message);
        match message.kind {
            Kind::Request => _ = self.request(message),
            Kind::Event => self.event(message),
            _ => {}
        }
    }

    fn request(&mut self, message: &Message<'_>) -> Option<()> {
        match message.name {
            "GrabServer" => self.has_grab = true,
            "UngrabServer" => self.has_grab = false,
            "SetFontPath" => self.has_set_font_path = true,
            "CreateWindow" if self.windows.len() < MAX_REMEMBERED => {
                let window = Window { parent: message.word(8)?, is_mapped: false, is_reparented: false };
                self.windows.insert(message.word(4)?, window);
            }
            "MapWindow" => self.windows.get_mut(&message.word(4)?)?.is_mapped = true,
            "ReparentWindow" => self.windows.get_mut(&message.word(4)?)?.is_reparented = true,
            "MapSubwindows" => {
                let parent = message.word(4)?;
                let children = self.windows.values_mut().filter(|window| window.parent == parent);
                children.for_each(|window| window.is_mapped = true);
            }
            "DestroyWindow" => _ = self.windows.remove(&message.word(4)?),
            "ChangeProperty" | "DeleteProperty" if self.own_changes.len() < MAX_REMEMBERED => {
                *self.own_changes.entry((message.word(4)?, message.word(8)?)).or_default() += 1;
            }
            _ => {}
        }
        Some(())
    }

    fn event(&mut self, message: &Message<'_>) {
        let mut events = TABLE.iter().flat_map(|row| row.until);
        let Some(&event) = events.find(|event| **event == message.name) else { return };
        let subject = match event {
            "PropertyNotify" => message.word(4).zip(message.word(8)).unwrap_or(ANY),
            // Only the ConfigureNotify of a root window reports monitors.
            "ConfigureNotify" if !message.word(8).is_some_and(|window| self.is_root(window)) => return,
            _ => ANY,
        };
        if let Some(own) = self.own_changes.get_mut(&subject).filter(|own| **own > 0 && subject != ANY) {
            *own -= 1;
            return;
        }
        if self.changes.len() < MAX_REMEMBERED {
            self.change += 1;
            self.changes.insert((event, subject), self.change);
        }
    }

    /// True if the proxy knows the answer. If not, this request is recorded as the last read of the answer.
    pub fn can_answer(&mut self, row: &Row, message: &Message<'_>) -> bool {
        if !self.is_met(row.when, message).unwrap_or(false) {
            return false;
        }
        row.class != Class::Watched || (!self.has_grab && self.is_current(row, message))
    }

    fn is_met(&self, when: Condition, message: &Message<'_>) -> Option<bool> {
        Some(match when {
            // The reply shows whether the atom exists.
            Condition::Always | Condition::AtomFound => true,
            Condition::FixedColormap => self.colormaps.is_true_color(message.word(4)?),
            Condition::SameFontPath => !self.has_set_font_path,
            Condition::Undeleted => match message.name {
                "GetProperty" => *message.bytes.get(1)? == 0,
                "XInputExtension::XIGetProperty" => *message.bytes.get(6)? == 0,
                "RANDR::GetOutputProperty" => *message.bytes.get(24)? == 0,
                _ => false,
            },
            Condition::OwnDrawable => {
                let drawable = message.word(4)?;
                match message.name {
                    "GetGeometry" => self.is_root(drawable) || self.has_fixed_position(drawable),
                    "TranslateCoordinates" => self.top(drawable)? == self.top(message.word(8)?)?,
                    // Visibility and children are known only below a root.
                    _ => self.is_own(drawable) && self.top(drawable).is_some_and(|top| self.is_root(top)),
                }
            }
        })
    }

    /// True if no other client could have moved it: a pixmap, an unmapped window, or a child of the client's window.
    fn has_fixed_position(&self, drawable: u32) -> bool {
        match self.windows.get(&drawable) {
            Some(window) => !window.is_reparented && (!window.is_mapped || self.is_own(window.parent)),
            None => self.is_own(drawable) && self.windows.len() < MAX_REMEMBERED,
        }
    }

    /// Outermost window with a known position relative to this one: a root, or a window that another client may have
    /// moved.
    fn top(&self, window: u32) -> Option<u32> {
        let mut top = window;
        for _ in 0..MAX_NESTED {
            match self.windows.get(&top) {
                Some(known) if self.has_fixed_position(top) => top = known.parent,
                Some(_) => return Some(top),
                None => return self.is_root(top).then_some(top),
            }
        }
        None
    }

    fn is_own(&self, resource: u32) -> bool {
        self.colormaps.greeting.is_own(resource)
    }

    fn is_root(&self, window: u32) -> bool {
        self.colormaps.greeting.screen(window).is_some()
    }

    /// True if no change was reported since the last read. Properties of other clients' windows must be read first.
    fn is_current(&mut self, row: &Row, message: &Message<'_>) -> bool {
        let (subject, is_foreign) = match (message.name, message.word(4), message.word(8)) {
            ("GetProperty", Some(window), Some(name)) => {
                ((window, name), !self.is_own(window) && !self.is_root(window))
            }
            _ => (ANY, false),
        };
        let read = self.read.get(&(row.request, subject)).copied();
        let changed = row.until.iter().filter_map(|event| self.changes.get(&(*event, subject))).max().copied();
        let is_current = (read.is_some() || !is_foreign) && changed.unwrap_or(0) <= read.unwrap_or(0);
        if !is_current && self.read.len() < MAX_REMEMBERED {
            self.read.insert((row.request, subject), self.change);
        }
        is_current
    }

    /// True if the request names another client's window, as its first or second window.
    pub fn names_foreign_window(&self, message: &Message<'_>) -> bool {
        let places: &[usize] = match message.name {
            // These requests name a second window at byte 8.
            "CreateWindow" | "ReparentWindow" | "CopyArea" | "CopyPlane" => &[4, 8],
            _ => &[4],
        };
        places.iter().any(|&place| {
            let window = message.word(place);
            // A new top-level window sends no event to others until it is mapped.
            let is_new = message.name == "CreateWindow" && window.is_some_and(|window| self.is_root(window));
            !is_new && !window.is_some_and(|window| self.is_own(window))
        })
    }
}
