// SPDX-License-Identifier: MIT
//! The drawables that Present may use without a request: it copies a pixmap to a window at a later frame. A request
//! that uses one of them is not cut. Nothing tells when Present is done, so a drawable stays until it is gone.

use super::guard::word_at;
use super::server::{CutServer, Used};
use super::with;
use crate::host::dix::client::Client;
use crate::host::dix::order_of;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;

/// If more pixmaps of windows are presented, each window counts as presented.
const MAX_BACKINGS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Presented {
    /// Names with the records that they had. A name with another record belongs to something new.
    ids: HashMap<u32, *const c_void>,
    /// When there are more, those that are gone are removed. It grows with their number, so that each name costs the
    /// same on average.
    sweep_at: usize,
    /// Pixmaps that hold the pixels of windows. They may be used when they no longer have a name.
    backings: HashSet<*const c_void>,
}

impl Presented {
    pub fn contains(&self, used: &Used) -> bool {
        let is_backing = self.backings.contains(&used.backing) || self.backings.len() > MAX_BACKINGS;
        self.ids.get(&used.id) == Some(&used.drawable) || is_backing && used.drawable != used.backing
    }
}

/// Remembers the drawables of the PresentPixmap that is being dispatched.
pub(super) fn note(server: &CutServer, client: Client) {
    // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
    let request = unsafe { client.request_bytes() };
    for at in [4, 8] {
        let Some(id) = word_at(request, at, order_of(client)) else { return };
        let Some(used) = server.drawable(id) else { continue };
        let sweep = with(|state| {
            let presented = &mut state.presented;
            if used.is_backing != 0 && presented.backings.len() <= MAX_BACKINGS {
                presented.backings.insert(used.backing);
            }
            presented.ids.insert(id, used.drawable);
            (presented.ids.len() > presented.sweep_at).then(|| std::mem::take(&mut presented.ids))
        });
        if let Some(mut ids) = sweep.flatten() {
            ids.retain(|&id, &mut record| server.drawable(id).is_some_and(|used| used.drawable == record));
            with(|state| (state.presented.sweep_at, state.presented.ids) = (2 * ids.len() + 64, ids));
        }
    }
}
