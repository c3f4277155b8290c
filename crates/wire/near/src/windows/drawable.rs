// SPDX-License-Identifier: MIT
//! The proxy's record of one window or pixmap.

use super::{ADDED, PROPERTY_CHANGE};
use std::collections::VecDeque;

/// A drawable of the program, or a root window.
#[derive(Clone, Debug, Default)]
pub(super) struct Drawable {
    /// The program's last event selections: request number and events.
    pub selected: VecDeque<(u64, u32)>,
    /// The events among [`ADDED`] that the server reports.
    pub watched: u32,
    /// Number of property changes, reported or requested.
    pub changes: u32,
    /// Number of the request that created it.
    pub created: u64,
    /// Root and depth, which never change.
    pub origin: Option<(u32, u8)>,
    /// Position, size and border of a GetGeometry reply. `None` if another client could have changed them unreported.
    pub bounds: Option<[u16; 5]>,
    /// Number of times that `bounds` became invalid.
    pub moves: u32,
    /// `None` for roots and pixmaps.
    pub parent: Option<u32>,
    /// Whether the ID was already in use at creation, so the server has probably refused the request.
    pub is_doubtful: bool,
    /// Whether the program has destroyed it. The entry stays until the server reports this.
    pub is_gone: bool,
}

impl Drawable {
    /// Events that the program selects.
    pub fn mask(&self) -> u32 {
        self.selected.back().map_or(0, |&(_, events)| events)
    }

    pub fn unsettle(&mut self) {
        self.bounds = None;
        self.moves = self.moves.wrapping_add(1);
    }

    /// Whether the proxy can select events on it.
    pub fn is_usable(&self) -> bool {
        !self.is_doubtful && !self.is_gone
    }

    /// The events that report all changes of properties. Roots are never destroyed.
    pub fn property_events(&self) -> u32 {
        if self.parent.is_some() { ADDED } else { PROPERTY_CHANGE }
    }
}
