// SPDX-License-Identifier: MIT
//! Waits by looking again and again, for what gives no notice.

use anyhow::Result;
use std::time::{Duration, Instant};

/// Looks every `pause` until there is something, but not after `limit`.
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
