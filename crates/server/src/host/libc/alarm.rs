// SPDX-License-Identifier: MIT
//! The server's own timer, which ends its slices: kept from it while we choose.
//!
//! A slice that the server ends leaves requests in its buffer, and the server goes on with those whomever we choose. The
//! calls that set the timer are answered without it; when the server is to choose, and when we step aside, it is set as the
//! server last wanted it.

use crate::host::behind;

#[derive(Debug)]
pub struct Alarm {
    wanted: Option<libc::itimerval>,
    is_kept: bool,
}

impl Alarm {
    pub fn new() -> Alarm {
        Alarm { wanted: None, is_kept: false }
    }

    /// The server sets its timer; true: it is not to be set.
    pub fn keeps(&mut self, value: libc::itimerval) -> bool {
        self.wanted = Some(value);
        self.is_kept
    }

    /// Keeps it from the server from now on, or lets it have it again.
    pub fn keep(&mut self, is_kept: bool) {
        if std::mem::replace(&mut self.is_kept, is_kept) == is_kept {
            return;
        }
        // SAFETY: zeroes are a timer that is off.
        let off = unsafe { std::mem::zeroed() };
        if let Some(wanted) = self.wanted {
            behind::set_alarm(if is_kept { &off } else { &wanted });
        }
    }
}
