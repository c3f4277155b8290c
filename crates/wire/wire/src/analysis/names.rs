// SPDX-License-Identifier: MIT
//! Message names as small integers, so that a message costs one lookup and no allocation.
//!
//! A hostile capture can invent any number of names. Names beyond [`MAX_NAMES`] share one id.

use super::bandwidth::ByteUse;
use crate::x11::fields::Layout;
use std::collections::HashMap;

/// The protocol and all its extensions have about 1,500 names.
const MAX_NAMES: usize = 2_048;
const OTHER: &str = "(other)";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(pub u32);

/// Size of the cache of recent names. A program uses a few dozen.
const RECENT: usize = 64;

#[derive(Debug)]
pub struct NameTable {
    ids: HashMap<String, NameId>,
    list: Vec<(String, ByteUse, Layout)>,
    /// Ids, indexed by [`slot`]. Hashing every name with the default hasher took a fifth of the analysis time.
    recent: [usize; RECENT],
}

impl Default for NameTable {
    fn default() -> NameTable {
        NameTable { ids: HashMap::new(), list: Vec::new(), recent: [0; RECENT] }
    }
}

fn slot(name: &str) -> usize {
    let bytes = name.as_bytes();
    let at = |slot: usize| bytes.get(slot).copied().map_or(0, usize::from);
    (bytes.len() + 5 * at(bytes.len() / 2) + 11 * at(bytes.len().wrapping_sub(1))) % RECENT
}

impl NameTable {
    pub fn id(&mut self, name: &str) -> NameId {
        let slot = slot(name);
        if self.list.get(self.recent[slot]).is_none_or(|(recent, ..)| recent != name) {
            self.recent[slot] = self.find(name).0 as usize;
        }
        NameId(self.recent[slot] as u32)
    }

    fn find(&mut self, name: &str) -> NameId {
        let name = if self.list.len() < MAX_NAMES || self.ids.contains_key(name) { name } else { OTHER };
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = NameId(self.list.len() as u32);
        self.list.push((name.to_owned(), ByteUse::of(name), Layout::of(name)));
        self.ids.insert(name.to_owned(), id);
        id
    }

    pub fn name(&self, id: NameId) -> &str {
        self.list.get(id.0 as usize).map_or(OTHER, |(name, ..)| name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|(name, ..)| name.as_str())
    }

    pub fn used_for(&self, id: NameId) -> ByteUse {
        self.list.get(id.0 as usize).map_or(ByteUse::Rest, |(_, usage, _)| *usage)
    }

    pub fn layout(&self, id: NameId) -> Layout {
        self.list.get(id.0 as usize).map_or(Layout::of(OTHER), |(.., layout)| *layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_names_share_one_id() {
        let mut names = NameTable::default();
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
