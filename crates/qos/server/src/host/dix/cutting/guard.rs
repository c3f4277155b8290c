// SPDX-License-Identifier: MIT
//! Decides which requests of other clients may run while the rest of a cut request is pending: those that neither see
//! nor change anything that it touches. `requests.txt` says what each request touches.

use super::server::{CutServer, Used};
use crate::host::dix::symbols::Symbols;
use std::collections::HashMap;
use std::ffi::CString;
use xqos_abi::ByteOrder;

const TABLE: &str = include_str!("requests.txt");

/// One way in which a request uses something; the number is the position of the id or of the mask in the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Write(usize),
    Read(usize),
    ReadAll(usize),
    Context(usize),
    ContextChange(usize),
    NameChange(usize),
    PictureWrite(usize),
    PictureRead(usize),
    Background(usize),
    ClipMask(usize),
    PictureMask(usize),
}

/// The table's rule for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Free,
    Finish,
    Uses(Box<[Use]>),
}

impl Rule {
    fn parse(text: &str) -> Option<Rule> {
        match text {
            "free" => return Some(Rule::Free),
            "finish" => return Some(Rule::Finish),
            _ => {}
        }
        let uses = text.split(',').map(|part| {
            let (name, at) = part.split_once('@').unwrap_or((part, "0"));
            let at = at.parse().ok()?;
            Some(match name {
                "write" => Use::Write(at),
                "read" => Use::Read(at),
                "readall" => Use::ReadAll(at),
                "gc" => Use::Context(at),
                "gc-change" => Use::ContextChange(at),
                "id" => Use::NameChange(at),
                "picture-write" => Use::PictureWrite(at),
                "picture-read" => Use::PictureRead(at),
                "background" => Use::Background(at),
                "clip-mask" => Use::ClipMask(at),
                "picture-mask" => Use::PictureMask(at),
                _ => return None,
            })
        });
        uses.collect::<Option<_>>().map(Rule::Uses)
    }
}

struct Line<'a> {
    extension: &'a str,
    /// `None` for all opcodes that no other line names.
    opcodes: Option<Vec<u16>>,
    rule: Rule,
}

fn lines() -> impl Iterator<Item = Option<Line<'static>>> {
    TABLE.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [extension, opcodes, rule, _names, reason] = fields[..] else { return None };
        let range = |part: &str| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            Some(from.parse().ok()?..=to.parse().ok()?)
        };
        let opcodes = match opcodes {
            "*" => None,
            list => Some(list.split(',').map(range).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect()),
        };
        // Each rule has a reason.
        (!reason.is_empty()).then_some(Line { extension, opcodes, rule: Rule::parse(rule)? })
    })
}

/// The table with the opcodes of this server. A request without a rule finishes all rests.
#[derive(Debug)]
pub struct Guard {
    rules: HashMap<(u8, u16), Rule>,
    others: HashMap<u8, Rule>,
}

impl Guard {
    pub fn new(symbols: &Symbols) -> Guard {
        let mut guard = Guard { rules: HashMap::new(), others: HashMap::new() };
        for line in lines().flatten() {
            if line.extension == "core" {
                for opcode in line.opcodes.into_iter().flatten() {
                    guard.rules.insert((opcode as u8, 0), line.rule.clone());
                }
                continue;
            }
            let entry = CString::new(line.extension).ok().and_then(|name| symbols.extension(&name));
            let Some(major) = entry.and_then(|entry| u8::try_from(entry.base).ok()) else { continue };
            match line.opcodes {
                Some(opcodes) => guard.rules.extend(opcodes.iter().map(|&minor| ((major, minor), line.rule.clone()))),
                None => _ = guard.others.insert(major, line.rule),
            }
        }
        guard
    }

    fn rule(&self, major: u8, minor: u16) -> &Rule {
        let minor = if major < 128 { 0 } else { minor };
        self.rules.get(&(major, minor)).or_else(|| self.others.get(&major)).unwrap_or(&Rule::Finish)
    }

    /// The drawables and contexts that a request touches; `None` if none of them matters.
    pub fn footprint(&self, server: &CutServer, request: u32, bytes: &[u8], order: ByteOrder) -> Option<Footprint> {
        let mut footprint = Footprint::default();
        match self.rule(request as u8, (request >> 16) as u16) {
            Rule::Free => return None,
            Rule::Finish => footprint.is_unknown = true,
            Rule::Uses(uses) => uses.iter().for_each(|&one| footprint.add(server, one, bytes, order)),
        }
        if footprint.has_inferiors {
            footprint.drawables.iter_mut().for_each(|one| one.used.has_inferiors = 1);
        }
        Some(footprint)
    }
}

#[derive(Debug, Default)]
pub struct Footprint {
    drawables: Vec<Drawable>,
    contexts: Vec<u32>,
    changed_contexts: Vec<u32>,
    names: Vec<u32>,
    changed_names: Vec<u32>,
    has_inferiors: bool,
    is_unknown: bool,
}

#[derive(Clone, Copy, Debug)]
struct Drawable {
    used: Used,
    is_written: bool,
}

impl Footprint {
    pub fn is_unknown(&self) -> bool {
        self.is_unknown
    }

    /// The drawables that are read or written; true for those that are written.
    pub fn used(&self) -> impl Iterator<Item = (&Used, bool)> {
        self.drawables.iter().map(|one| (&one.used, one.is_written))
    }

    fn add(&mut self, server: &CutServer, one: Use, request: &[u8], order: ByteOrder) {
        // The server will refuse a request that is too short.
        let word = |at: usize| order.u32(request, at).unwrap_or(0);
        match one {
            Use::Write(at) => self.add_drawable(word(at), server.drawable(word(at)), true, false),
            Use::Read(at) => self.add_drawable(word(at), server.drawable(word(at)), false, false),
            Use::ReadAll(at) => self.add_drawable(word(at), server.drawable(word(at)), false, true),
            Use::PictureWrite(at) => self.add_drawable(word(at), server.picture(word(at)), true, false),
            // RENDER reads a window's area of the screen, including the parts that other windows cover.
            Use::PictureRead(at) => self.add_drawable(word(at), server.picture(word(at)), false, true),
            Use::Background(at) => self.add_drawable(0, server.background(word(at)), false, false),
            Use::Context(at) => {
                self.contexts.push(word(at));
                if let Some(context) = server.context(word(at)) {
                    self.has_inferiors |= context.has_inferiors != 0;
                    self.add_drawable(0, Some(context.pattern), false, false);
                }
            }
            Use::ContextChange(at) => self.changed_contexts.push(word(at)),
            Use::NameChange(at) => self.changed_names.push(word(at)),
            Use::ClipMask(at) => self.is_unknown |= word(at) & (1 << 19) != 0,
            Use::PictureMask(at) => self.is_unknown |= word(at) & ((1 << 1) | (1 << 6)) != 0,
        }
    }

    fn add_drawable(&mut self, name: u32, used: Option<Used>, is_written: bool, has_inferiors: bool) {
        let Some(mut used) = used else { return };
        self.is_unknown |= used.unknown != 0;
        self.names.extend((name != 0).then_some(name));
        if !used.drawable.is_null() {
            used.has_inferiors |= u8::from(has_inferiors);
            self.drawables.push(Drawable { used, is_written });
        }
    }

    /// Returns false only if this request and the rest of a cut request cannot affect each other.
    pub fn touches(&self, rest: &Footprint) -> bool {
        let common = |these: &[u32], those: &[u32]| these.iter().any(|one| those.contains(one));
        self.is_unknown
            || rest.is_unknown
            || common(&self.changed_contexts, &rest.contexts)
            || common(&self.changed_names, &rest.names)
            || self.drawables.iter().any(|one| rest.drawables.iter().any(|other| one.touches(other)))
    }
}

impl Drawable {
    fn touches(&self, other: &Drawable) -> bool {
        if !self.is_written && !other.is_written {
            return false;
        }
        if self.used.drawable == other.used.drawable {
            return true;
        }
        if self.used.is_window == 0 || other.used.is_window == 0 {
            return self.used.backing == other.used.backing;
        }
        // Without their inferiors, two windows have no pixel in common: the server clips each to its visible part.
        self.used.has_inferiors != 0 || other.used.has_inferiors != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_core_request_has_one_rule_and_each_rule_a_reason() {
        let mut rules = vec![0; 128];
        for line in lines() {
            let line = line.expect("a line has five fields, and a reason");
            if line.extension == "core" {
                line.opcodes
                    .expect("core requests are named")
                    .iter()
                    .for_each(|&opcode| rules[usize::from(opcode)] += 1);
            }
        }
        assert!(rules[1..].iter().all(|&count| count == 1), "{rules:?}");
    }

    fn address(number: usize) -> *const std::ffi::c_void {
        std::ptr::without_provenance(number)
    }

    fn drawable(number: usize, is_window: bool) -> Drawable {
        let (drawable, backing) = (address(number), address(if is_window { 1 } else { number }));
        Drawable { used: Used { drawable, backing, is_window: is_window.into(), ..Used::default() }, is_written: true }
    }

    fn touch(one: Drawable, other: Drawable) -> bool {
        assert_eq!(one.touches(&other), other.touches(&one));
        one.touches(&other)
    }

    #[test]
    fn two_drawables_touch_if_they_can_share_a_pixel_and_one_is_drawn() {
        let (window, sibling, pixmap) = (drawable(10, true), drawable(11, true), drawable(12, false));
        let read = |of: Drawable| Drawable { is_written: false, ..of };
        let with = |mut of: Drawable, change: fn(&mut Used)| {
            change(&mut of.used);
            of
        };
        assert!(touch(window, window) && touch(window, read(window)));
        assert!(!touch(read(window), read(window)));
        assert!(!touch(window, sibling), "each is clipped to its visible part");
        assert!(!touch(window, pixmap) && !touch(drawable(13, false), pixmap));
        assert!(touch(window, with(sibling, |used| used.has_inferiors = 1)));
        assert!(touch(window, with(pixmap, |used| used.backing = address(1))), "the pixmap of the window");
    }
}
