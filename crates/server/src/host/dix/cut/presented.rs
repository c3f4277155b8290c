// SPDX-License-Identifier: MIT
//! The drawables that Present may use without a request: it copies a pixmap to a window at a later frame. A request
//! that uses one of them is not cut. Nothing tells when Present is done, so a drawable stays until it is gone.

use super::guard::word_at;
use super::server::CutServer;
use super::with;
use crate::host::dix::client::Client;
use crate::host::dix::order_of;
use std::collections::HashSet;

#[derive(Debug, Default)]
pub(super) struct Presented {
    ids: HashSet<u32>,
    /// When there are more, those that are gone are removed. It grows with their number, so that each name costs the
    /// same on average.
    sweep_at: usize,
    /// A pixmap that holds the pixels of a window was presented. Its name may be gone before it is used.
    pub has_backing: bool,
}

impl Presented {
    pub fn contains(&self, id: u32) -> bool {
        self.ids.contains(&id)
    }
}

/// Remembers the drawables of the PresentPixmap that is being dispatched.
pub(super) fn note(server: &CutServer, client: Client) {
    // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
    let request = unsafe { client.request_bytes() };
    for at in [4, 8] {
        let Some(id) = word_at(request, at, order_of(client)) else { return };
        if with(|state| state.presented.contains(id)) != Some(false) {
            continue;
        }
        let Some(used) = server.drawable(id) else { continue };
        let sweep = with(|state| {
            let presented = &mut state.presented;
            presented.has_backing |= used.is_backing != 0;
            presented.ids.insert(id);
            (presented.ids.len() > presented.sweep_at).then(|| std::mem::take(&mut presented.ids))
        });
        if let Some(mut ids) = sweep.flatten() {
            ids.retain(|&id| server.drawable(id).is_some());
            with(|state| (state.presented.sweep_at, state.presented.ids) = (2 * ids.len() + 64, ids));
        }
    }
}
