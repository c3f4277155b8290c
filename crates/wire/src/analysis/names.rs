// SPDX-License-Identifier: MIT
//! Names of messages as small numbers, so that a message costs one look-up and no allocation.
//!
//! A hostile capture can announce extensions and invent names without end; from [`MAX_NAMES`] on they are all one.

use super::bandwidth::Use;
use std::collections::HashMap;

/// The protocol and all its extensions have some 1,500.
const MAX_NAMES: usize = 2_048;
const OTHER: &str = "(other)";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// Names that were asked for last; a program uses some dozens.
const RECENT: usize = 64;

#[derive(Debug)]
pub struct Names {
    ids: HashMap<String, NameId>,
    list: Vec<(String, Use)>,
    /// Each at the place that its [`place`] says: a good hash of every message's name took a fifth of the time.
    recent: [usize; RECENT],
}

impl Default for Names {
    fn default() -> Names {
        Names { ids: HashMap::new(), list: Vec::new(), recent: [0; RECENT] }
    }
}

/// Where a name is among the recent ones.
fn place(name: &str) -> usize {
    let bytes = name.as_bytes();
    let at = |place: usize| bytes.get(place).copied().map_or(0, usize::from);
    (bytes.len() + 5 * at(bytes.len() / 2) + 11 * at(bytes.len().wrapping_sub(1))) % RECENT
}

impl Names {
    pub fn id(&mut self, name: &str) -> NameId {
        let place = place(name);
        if self.list.get(self.recent[place]).is_none_or(|(recent, _)| recent != name) {
            self.recent[place] = self.find(name).0 as usize;
        }
        NameId(self.recent[place] as u32)
    }

    fn find(&mut self, name: &str) -> NameId {
        let name = if self.list.len() < MAX_NAMES || self.ids.contains_key(name) { name } else { OTHER };
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = NameId(self.list.len() as u32);
        self.list.push((name.to_owned(), Use::of(name)));
        self.ids.insert(name.to_owned(), id);
        id
    }

    pub fn name(&self, id: NameId) -> &str {
        self.list.get(id.0 as usize).map_or(OTHER, |(name, _)| name)
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|(name, _)| name.as_str())
    }

    /// What such a message uses bandwidth for.
    pub fn used_for(&self, id: NameId) -> Use {
        self.list.get(id.0 as usize).map_or(Use::Rest, |(_, what)| *what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_end_become_one() {
        let mut names = Names::default();
        let first = names.id("CreateWindow");
        for number in 0..2 * MAX_NAMES {
            names.id(&format!("Made::Up{number}"));
        }
        assert_eq!(names.id("CreateWindow"), first);
        assert_eq!(names.name(first), "CreateWindow");
        let late = names.id("Made::UpLate");
        assert_eq!(names.name(late), OTHER);
        assert!(names.list.len() <= MAX_NAMES + 1);
    }
}
