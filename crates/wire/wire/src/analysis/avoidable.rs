// SPDX-License-Identifier: MIT
//! Finds round trips that a program could avoid, and why.
//!
//! | the client waited for | avoidable | reason |
//! |---|---|---|
//! | one atom at a time, repeatedly | all but the first | it can send all requests, then read the replies |
//! | one extension or version at a time, repeatedly | all but the first | likewise (`xcb_prefetch_extension_data`) |
//! | the same answer as before, with no change reported since | all but the first | it can cache the answer |
//! | an unchanged property | all but the first | it can cache the value; PropertyNotify reports changes |
//! | a colour on a TrueColor visual | all | the pixel can be computed from red, green and blue |
//! | GetInputFocus, which XSync uses | all | requests are executed in order even without it |
//! | core fonts | all | client-side fonts need no round trip |
//! | anything else | none | the next request may depend on the reply |
//!
//! The last row is conservative. Many of those requests could be sent together, but a capture does not show whether a
//! request was computed from the reply before it.

use super::colors::Colormaps;
use crate::observe::{KEPT_BYTES, Kind, Message};
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Maximum number of remembered answers. A session asks a few hundred different questions. A full table is cleared,
/// so an avoidable round trip can be missed, but no other round trip is ever reported as avoidable.
const MAX_ANSWERS: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    AtomsOneByOne,
    ExtensionsOneByOne,
    VersionsOneByOne,
    SameAnswer,
    UnchangedProperty,
    TrueColor,
    Sync,
    CoreFont,
}

impl Reason {
    /// Each reason with its name (in tables and JSON) and the advice.
    pub const ALL: [(Reason, &str, &str); 8] = [
        (Reason::AtomsOneByOne, "atoms-one-by-one", "atoms one by one: send all requests, then read the replies"),
        (
            Reason::ExtensionsOneByOne,
            "extensions-one-by-one",
            "extensions one by one: send all requests, then read the replies",
        ),
        (
            Reason::VersionsOneByOne,
            "versions-one-by-one",
            "versions one by one: send all requests, then read the replies",
        ),
        (Reason::SameAnswer, "same-answer", "same answer as before: cache it"),
        (Reason::UnchangedProperty, "unchanged-property", "unchanged property: cache it, and watch for PropertyNotify"),
        (Reason::TrueColor, "true-color", "TrueColor: compute the pixel from red, green and blue"),
        (Reason::Sync, "sync", "synchronisation: requests are executed in order without it"),
        (Reason::CoreFont, "core-font", "core fonts: use client-side fonts, which need no round trip"),
    ];

    pub fn name(self) -> &'static str {
        Reason::ALL[self as usize].1
    }

    pub fn advice(self) -> &'static str {
        Reason::ALL[self as usize].2
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Atom,
    Extension,
    Version,
    Property,
    Color,
    Sync,
    Font,
    Fact,
}

/// A request whose round trip may be avoidable.
#[derive(Clone, Copy, Debug)]
pub struct AvoidableQuestion {
    family: Family,
    hash: u64,
    /// For a property, its window and name; for a colour, its colormap.
    subject: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
struct KnownAnswer {
    hash: u64,
    change: u64,
}

/// Remembers one client's answers and judges its waits.
#[derive(Debug, Default)]
pub struct Judge {
    colormaps: Colormaps,
    answers: HashMap<u64, KnownAnswer>,
    /// Number of the last reported change to each property, and to the geometry of any window.
    changes: HashMap<(u32, u32), u64>,
    change: u64,
    has_waited_for: [bool; 3],
}

/// Subject for the geometry of all windows, which changes when any window is moved, mapped or reparented.
const GEOMETRY: (u32, u32) = (0, 0);

impl Judge {
    /// Records changes that a message in either direction reports.
    pub fn message(&mut self, message: &Message<'_>) {
        self.colormaps.message(message);
        let property = |window, name| message.word(window).zip(message.word(name));
        let changed = match (message.kind, message.name) {
            (Kind::Event, "PropertyNotify") => property(4, 8),
            (Kind::Request, "ChangeProperty" | "DeleteProperty") => property(4, 8),
            (Kind::Event, "ConfigureNotify" | "ReparentNotify" | "MapNotify" | "UnmapNotify" | "CreateNotify") => {
                Some(GEOMETRY)
            }
            (Kind::Request, "ConfigureWindow" | "ReparentWindow" | "MapWindow" | "UnmapWindow" | "CreateWindow") => {
                Some(GEOMETRY)
            }
            _ => None,
        };
        if let Some(what) = changed {
            self.changed(what);
        }
    }

    fn changed(&mut self, what: (u32, u32)) {
        if self.changes.len() >= MAX_ANSWERS {
            self.forget();
        }
        self.change += 1;
        self.changes.insert(what, self.change);
    }

    fn forget(&mut self) {
        self.answers.clear();
        self.changes.clear();
    }

    /// Returns the question that a request asks; `None` for a truncated request, which cannot be compared.
    pub fn question(&self, message: &Message<'_>) -> Option<AvoidableQuestion> {
        let family = family(message.name).filter(|_| !is_cut(message))?;
        let subject = match family {
            Family::Property => (message.word(4)?, message.word(8)?),
            Family::Color => (message.word(4)?, 0),
            _ => GEOMETRY,
        };
        let mut hasher = DefaultHasher::new();
        (message.name, message.length, message.bytes).hash(&mut hasher);
        Some(AvoidableQuestion { family, hash: hasher.finish(), subject })
    }

    /// Records an answer. Returns true if it equals the previous one and no change was reported since. A truncated
    /// answer proves nothing.
    pub fn answer(&mut self, question: &AvoidableQuestion, message: &Message<'_>) -> bool {
        if is_cut(message) {
            self.answers.remove(&question.hash);
            return false;
        }
        let mut hasher = DefaultHasher::new();
        // Skip bytes 2 and 3, the sequence number.
        (message.kind, message.length, message.bytes.get(..2), message.bytes.get(4..)).hash(&mut hasher);
        let hash = hasher.finish();
        if self.answers.len() >= MAX_ANSWERS && !self.answers.contains_key(&question.hash) {
            self.forget();
        }
        let before = self.answers.insert(question.hash, KnownAnswer { hash, change: self.change });
        let changed = self.changes.get(&question.subject).copied().unwrap_or(0);
        before.is_some_and(|before| before.hash == hash && before.change >= changed)
    }

    /// Returns the reason if the wait was avoidable. `is_alone`: no other reply was requested at the same time.
    pub fn verdict(&mut self, question: &AvoidableQuestion, is_repeated: bool, is_alone: bool) -> Option<Reason> {
        match question.family {
            Family::Color => self.colormaps.is_true_color(question.subject.0).then_some(Reason::TrueColor),
            Family::Sync => Some(Reason::Sync),
            Family::Font => Some(Reason::CoreFont),
            Family::Property => is_repeated.then_some(Reason::UnchangedProperty),
            _ if is_repeated => Some(Reason::SameAnswer),
            Family::Atom => self.another(0, is_alone).then_some(Reason::AtomsOneByOne),
            Family::Extension => self.another(1, is_alone).then_some(Reason::ExtensionsOneByOne),
            Family::Version => self.another(2, is_alone).then_some(Reason::VersionsOneByOne),
            Family::Fact => None,
        }
    }

    /// True for each wait of this kind after the first, if its request was sent alone.
    fn another(&mut self, kind: usize, is_alone: bool) -> bool {
        std::mem::replace(&mut self.has_waited_for[kind], true) && is_alone
    }
}

/// True if the capture lacks some of the message's first [`KEPT_BYTES`] bytes.
fn is_cut(message: &Message<'_>) -> bool {
    message.bytes.len() < usize::try_from(message.length).unwrap_or(usize::MAX).min(KEPT_BYTES)
}

/// Core requests whose answers are facts, which rarely change.
#[rustfmt::skip]
const FACTS: [&str; 15] = [
    "GetGeometry", "TranslateCoordinates", "QueryTree", "GetWindowAttributes", "GetAtomName", "ListExtensions",
    "ListProperties", "GetKeyboardMapping", "GetModifierMapping", "GetPointerMapping", "GetKeyboardControl",
    "GetPointerControl", "GetScreenSaver", "QueryBestSize", "ListInstalledColormaps",
];

pub(super) fn family(name: &str) -> Option<Family> {
    Some(match name {
        "InternAtom" => Family::Atom,
        "QueryExtension" => Family::Extension,
        "GetProperty" => Family::Property,
        "AllocColor" | "AllocNamedColor" | "LookupColor" => Family::Color,
        "GetInputFocus" => Family::Sync,
        "QueryFont" | "ListFonts" | "ListFontsWithInfo" | "QueryTextExtents" => Family::Font,
        _ if FACTS.contains(&name) => Family::Fact,
        _ => return family_of_extension(name.split_once("::")?.1),
    })
}

/// Family of an extension's request. Values that change on their own (pointer, counters) are not a `Fact`.
fn family_of_extension(request: &str) -> Option<Family> {
    const MOVING: [&str; 6] = ["Counter", "Pointer", "Alarm", "Fence", "MSC", "State"];
    if matches!(
        request,
        "QueryVersion" | "XIQueryVersion" | "GetVersion" | "UseExtension" | "GetExtensionVersion" | "Enable"
    ) {
        return Some(Family::Version);
    }
    let is_fact = ["Get", "Query", "List"].iter().any(|verb| request.starts_with(verb))
        || request.starts_with("XI") && (request.contains("Query") || request.contains("Get"));
    let is_moving = MOVING.iter().any(|word| request.contains(word));
    let is_property = request.contains("Property") || request.contains("Image");
    (is_fact && !is_moving && !is_property).then_some(Family::Fact)
}

#[cfg(test)]
mod tests;
