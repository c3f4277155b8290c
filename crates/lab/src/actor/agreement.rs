// SPDX-License-Identifier: MIT
//! Compares a capture with the log of the emulated link: the percentage of the time for which both agree on whether the
//! link was busy, in the worse direction.

use anyhow::Result;
use std::path::Path;
use xqos_wire::analysis::Analysis;
use xqos_wire::analysis::agreement::agreement;
use xqos_wire::link::log::Reader;
use xqos_wire::session::{self, Session};

/// Files in the working folder.
const CAPTURE: &str = "start.pcapng";
const LOG: &str = "queue.log";

pub(super) fn perform() -> Result<()> {
    let mut analysis = Analysis::default();
    session::read(Path::new(CAPTURE), Session::new(vec![&mut analysis]))?;
    if let Some(agreed) = agreement(&analysis, Reader::open(Path::new(LOG))?)? {
        println!("agreement {}", 100.0 * agreed.requests.min(agreed.replies));
    }
    Ok(())
}
