// SPDX-License-Identifier: MIT
//! What the server reads or draws without a request, because a request of Present or DAMAGE has asked for it earlier.
//!
//! Present copies a pixmap to a window at a later frame. A Damage object of any level but NonEmpty reports the area of
//! each single operation. A request that touches what such a request has named is not cut. The names are kept until
//! their drawables are gone, since nothing tells when the server is done with them.

use super::guard::{Footprint, word_at};
use super::server::CutServer;
use super::{Majors, with};
use crate::host::dix::client::{Client, Head};
use crate::host::dix::order_of;

/// If more drawables are named, no request is cut.
const MAX_NOTED: usize = 512;
/// The level at which DAMAGE reports only that there is damage.
const NON_EMPTY: u8 = 3;

/// A drawable that the server uses by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    id: u32,
    is_written: bool,
    has_inferiors: bool,
}

/// Remembers the drawables of PresentPixmap and of DAMAGE Create.
pub(super) fn note(client: Client, head: &Head, majors: Majors) {
    let (major, minor) = (head.request as u8, head.request >> 16);
    if minor != 1 || major == 0 || (major != majors.present && major != majors.damage) {
        return;
    }
    // SAFETY: the request is being dispatched, and the slice is used before its procedure runs.
    let request = unsafe { client.request_bytes() };
    let order = order_of(client);
    let noted = |at, is_written, has_inferiors| {
        let id = word_at(request, at, order)?;
        Some(Noted { id, is_written, has_inferiors })
    };
    let names = if major == majors.present {
        [noted(4, true, false), noted(8, false, false)]
    } else {
        [noted(8, false, true).filter(|_| request.get(12) != Some(&NON_EMPTY)), None]
    };
    with(|state| {
        for one in names.into_iter().flatten() {
            if !state.noted.contains(&one) {
                state.noted.push(one);
            }
        }
    });
}

/// Returns true if the server may use what this request touches.
pub(super) fn touches(server: &CutServer, footprint: &Footprint) -> bool {
    let Some(mut noted) = with(|state| std::mem::take(&mut state.noted)) else { return true };
    // A number of a drawable that is gone may be used again, which costs no more than a cut.
    let mut is_touched = false;
    noted.retain(|one| {
        let used = server.drawable(one.id);
        if let Some(used) = used {
            is_touched |= Footprint::of(used, one.is_written, one.has_inferiors).touches(footprint);
        }
        used.is_some()
    });
    is_touched |= noted.len() > MAX_NOTED;
    with(|state| state.noted = noted);
    is_touched
}
