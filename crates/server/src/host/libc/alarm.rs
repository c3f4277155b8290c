// SPDX-License-Identifier: MIT
//! The server's own timer, which ends its slices. It is withheld while xqos chooses.
//!
//! A slice that the server ends leaves requests in its buffer, and the server serves those next, whichever client xqos
//! chooses. xqos therefore only records the server's calls to set the timer, and repeats the last call when the server
//! is to choose clients or xqos steps aside.

use crate::host::real_libc;

#[derive(Debug, Default)]
pub struct Alarm {
    wanted: Option<libc::itimerval>,
    is_kept: bool,
}

impl Alarm {
    /// Records the timer that the server sets. Returns true if it must not take effect.
    pub fn keeps(&mut self, value: libc::itimerval) -> bool {
        self.wanted = Some(value);
        self.is_kept
    }

    /// Withholds the timer from now on, or sets it again.
    pub fn keep(&mut self, is_kept: bool) {
        if std::mem::replace(&mut self.is_kept, is_kept) == is_kept {
            return;
        }
        // SAFETY: a timer of zeroes is off.
        let off = unsafe { std::mem::zeroed() };
        if let Some(wanted) = self.wanted {
            real_libc::set_alarm(if is_kept { &off } else { &wanted });
        }
    }
}
