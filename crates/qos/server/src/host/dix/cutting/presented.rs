// SPDX-License-Identifier: MIT
//! The drawables that Present may use without a request: it copies a pixmap to a window at a later frame. A request
//! that uses one of them is not cut. The end of this use is unknown, so a drawable stays until it is destroyed.

use super::server::Used;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;

/// If more pixmaps of windows are presented, each window counts as presented.
const MAX_BACKINGS: usize = 256;

/// Resource ids with the records that they had. An id with another record belongs to a new resource.
pub type PresentedIds = HashMap<u32, *const c_void>;

#[derive(Debug, Default)]
pub struct Presented {
    ids: PresentedIds,
    /// If there are more names, those of destroyed drawables are removed. This limit grows with the number of names, so
    /// the average cost per name is constant.
    sweep_at: usize,
    /// Pixmaps that hold the pixels of windows. They may be used when they no longer have a name.
    backings: HashSet<*const c_void>,
}

impl Presented {
    pub fn contains(&self, used: &Used) -> bool {
        let is_backing = self.backings.contains(&used.backing) || self.backings.len() > MAX_BACKINGS;
        self.ids.get(&used.id) == Some(&used.drawable) || is_backing && used.drawable != used.backing
    }

    /// Remembers a drawable under its name. Returns the names if they are to be swept.
    pub fn add(&mut self, id: u32, used: &Used) -> Option<PresentedIds> {
        if used.is_backing != 0 && self.backings.len() <= MAX_BACKINGS {
            self.backings.insert(used.backing);
        }
        self.ids.insert(id, used.drawable);
        (self.ids.len() > self.sweep_at).then(|| std::mem::take(&mut self.ids))
    }

    /// Puts back the names that still have the same records.
    pub fn swept(&mut self, names: PresentedIds) {
        (self.sweep_at, self.ids) = (2 * names.len() + 64, names);
    }
}
