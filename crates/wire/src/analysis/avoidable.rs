// SPDX-License-Identifier: MIT
//! Which round trips a program could do without, and why.
//!
//! | the client waited for | avoidable | because |
//! |---|---|---|
//! | one atom, again and again | all but the first | all of them can be asked for at once |
//! | one extension, or one version, again and again | all but the first | likewise (`xcb_prefetch_extension_data`) |
//! | an answer that it has had before, and nothing was told to have changed since | all but the first | it can keep it |
//! | a property that is the same as when it was read | all but the first | likewise; PropertyNotify tells of changes |
//! | a colour on a TrueColor visual | all | the pixel follows from red, green and blue |
//! | GetInputFocus, which is how XSync waits | all | no answer is needed: requests are served in order anyway |
//! | core fonts | all | fonts on the client's side need no round trip |
//! | anything else | none | the answer may be needed before the next request can be written |
//!
//! The last line is on the safe side: much of it can be asked for at once too, but a capture does not show whether a
//! request was computed from the reply before it.

use super::colors::Colormaps;
use crate::observe::{KEPT_BYTES, Kind, Message};
use serde::Serialize;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Answers that are remembered; a session asks for some hundreds of different things. Beyond, all are forgotten, so that
/// something avoidable may be missed and nothing is accused wrongly.
const MAX_ANSWERS: usize = 4_096;

/// Why a round trip can be avoided.
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
    /// Each with its name, as in tables and in JSON, and what to do instead.
    pub const ALL: [(Reason, &str, &str); 8] = [
        (Reason::AtomsOneByOne, "atoms-one-by-one", "atoms one by one: ask for all of them, then read the replies"),
        (
            Reason::ExtensionsOneByOne,
            "extensions-one-by-one",
            "extensions one by one: ask for all of them, then read the replies",
        ),
        (
            Reason::VersionsOneByOne,
            "versions-one-by-one",
            "versions one by one: ask all extensions, then read the replies",
        ),
        (Reason::SameAnswer, "same-answer", "asked before, same answer: keep it"),
        (
            Reason::UnchangedProperty,
            "unchanged-property",
            "property unchanged since it was read: keep it, follow PropertyNotify",
        ),
        (Reason::TrueColor, "true-color", "TrueColor: the pixel follows from red, green and blue"),
        (Reason::Sync, "sync", "synchronisation: requests are served in order without it"),
        (Reason::CoreFont, "core-font", "core fonts: fonts on the client's side need no round trip"),
    ];

    pub fn name(self) -> &'static str {
        Reason::ALL[self as usize].1
    }

    pub fn advice(self) -> &'static str {
        Reason::ALL[self as usize].2
    }
}

/// What kind of question a request is, as far as it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Atom,
    Extension,
    Version,
    Property,
    Color,
    Sync,
    Font,
    Fact,
}

/// A request that is judged.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    family: Family,
    /// Of the request as a whole.
    hash: u64,
    /// A property's window and name; of a colour, its colormap.
    subject: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    hash: u64,
    change: u64,
}

/// What one client has been told.
#[derive(Debug, Default)]
pub struct Judge {
    colormaps: Colormaps,
    answers: HashMap<u64, Answer>,
    /// When a property, or any window's geometry, was last told to have changed.
    changes: HashMap<(u32, u32), u64>,
    change: u64,
    has_waited_for: [bool; 3],
}

/// Any window was moved, mapped or put elsewhere.
const GEOMETRY: (u32, u32) = (0, 0);

impl Judge {
    /// Learns from a message of either side what may have changed.
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

    /// What is asked, if it is something that can be judged. Only the captured bytes can be compared, so that a request
    /// of which some are missing is not.
    pub fn question(&self, message: &Message<'_>) -> Option<Question> {
        let family = family(message.name).filter(|_| !is_cut(message))?;
        let subject = match family {
            Family::Property => (message.word(4)?, message.word(8)?),
            Family::Color => (message.word(4)?, 0),
            _ => GEOMETRY,
        };
        let mut hasher = DefaultHasher::new();
        (message.name, message.length, message.bytes).hash(&mut hasher);
        Some(Question { family, hash: hasher.finish(), subject })
    }

    /// Takes note of an answer; whether it was the same before, and nothing told of a change. Of one that was cut off, nobody
    /// knows.
    pub fn answer(&mut self, question: &Question, message: &Message<'_>) -> bool {
        if is_cut(message) {
            self.answers.remove(&question.hash);
            return false;
        }
        let mut hasher = DefaultHasher::new();
        // Bytes 2 and 3 are the number of the request.
        (message.kind, message.length, message.bytes.get(..2), message.bytes.get(4..)).hash(&mut hasher);
        let hash = hasher.finish();
        if self.answers.len() >= MAX_ANSWERS && !self.answers.contains_key(&question.hash) {
            self.forget();
        }
        let before = self.answers.insert(question.hash, Answer { hash, change: self.change });
        let changed = self.changes.get(&question.subject).copied().unwrap_or(0);
        before.is_some_and(|before| before.hash == hash && before.change >= changed)
    }

    /// Could the client have done without waiting for this? `is_alone`: nothing else was asked for at the same time.
    pub fn verdict(&mut self, question: &Question, is_repeated: bool, is_alone: bool) -> Option<Reason> {
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

    /// One more of a kind of which one round trip would do.
    fn another(&mut self, kind: usize, is_alone: bool) -> bool {
        std::mem::replace(&mut self.has_waited_for[kind], true) && is_alone
    }
}

/// Whether bytes are missing that would have been kept.
fn is_cut(message: &Message<'_>) -> bool {
    message.bytes.len() < usize::try_from(message.length).unwrap_or(usize::MAX).min(KEPT_BYTES)
}

fn family(name: &str) -> Option<Family> {
    Some(match name {
        "InternAtom" => Family::Atom,
        "QueryExtension" => Family::Extension,
        "GetProperty" => Family::Property,
        "AllocColor" | "AllocNamedColor" | "LookupColor" => Family::Color,
        "GetInputFocus" => Family::Sync,
        "QueryFont" | "ListFonts" | "ListFontsWithInfo" | "QueryTextExtents" => Family::Font,
        "GetGeometry"
        | "TranslateCoordinates"
        | "QueryTree"
        | "GetWindowAttributes"
        | "GetAtomName"
        | "ListExtensions"
        | "ListProperties"
        | "GetKeyboardMapping"
        | "GetModifierMapping"
        | "GetPointerMapping"
        | "GetKeyboardControl"
        | "GetPointerControl"
        | "GetScreenSaver"
        | "QueryBestSize"
        | "ListInstalledColormaps" => Family::Fact,
        _ => return family_of_extension(name.split_once("::")?.1),
    })
}

/// Extensions ask for their version, and for facts; what counts or moves (a pointer, a counter, a buffer's age) is none.
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
