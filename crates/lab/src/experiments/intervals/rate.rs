// SPDX-License-Identifier: MIT
//! Work done in some time, and what of the server's processor time it took.

use crate::load::Load;
use crate::process;
use crate::server::Server;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use xqos_client::Control;

/// The name of the thread, as the kernel tells it.
const WATCHER: &str = "xqos-watcher";

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Rate {
    pub elapsed_s: f64,
    /// Processor time of all threads of the server.
    pub server_cpu_s: f64,
    /// Of it, that of xqos's watcher; 0 without xqos.
    pub watcher_cpu_s: f64,
    /// Operations of all clients of the load, by their own count.
    pub operations: f64,
    /// Slices that xqos told the server to end; only where it was asked.
    pub told_to_end: Option<u64>,
}

impl Rate {
    /// Of the load, in the time that `meanwhile` takes. Asking `control` makes it a client that had to be served.
    pub fn during<T>(
        server: &Server,
        control: Option<&Control>,
        load: &mut Load,
        meanwhile: impl FnOnce() -> Result<T>,
    ) -> Result<(Rate, T)> {
        let told = || control.map(|control| anyhow::Ok(control.server_info()?.early_ends)).transpose();
        let told_before = told()?;
        let watcher = || process::cpu_time_of_threads(server.pid(), WATCHER);
        let (from, cpu_before, watcher_before) = (Instant::now(), server.cpu_time()?, watcher()?);
        let result = meanwhile()?;
        let (to, cpu_after, watcher_after) = (Instant::now(), server.cpu_time()?, watcher()?);
        let told_after = told()?;
        let rate = Rate {
            elapsed_s: to.duration_since(from).as_secs_f64(),
            server_cpu_s: (cpu_after - cpu_before).as_secs_f64(),
            watcher_cpu_s: (watcher_after - watcher_before).as_secs_f64(),
            operations: load.work(from, to)?.iter().sum(),
            told_to_end: told_before.zip(told_after).map(|(before, after)| after - before),
        };
        Ok((rate, result))
    }

    pub fn per_s(&self) -> f64 {
        self.operations / self.elapsed_s
    }

    pub fn per_cpu_s(&self) -> f64 {
        self.operations / self.server_cpu_s
    }
}
