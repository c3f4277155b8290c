// SPDX-License-Identifier: MIT
//! Polls for conditions that no event reports.

use anyhow::Result;
use std::time::{Duration, Instant};

/// Calls `look` every `pause` until it returns a value, for at most `limit`.
pub fn poll<T>(limit: Duration, pause: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    let end = Instant::now() + limit;
    loop {
        let found = look()?;
        if found.is_some() || Instant::now() > end {
            return Ok(found);
        }
        std::thread::sleep(pause);
    }
}
