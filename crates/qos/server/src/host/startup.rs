// SPDX-License-Identifier: MIT
//! The start-up choices of this process: its host and its settings.
//!
//! `entry` records these choices when the server loads xqos. `hooks` reads them at the start of each generation, and
//! when it falls back to the libc host because the server's records are unknown.

use crate::host::libc::{instance, redirect};
use crate::mechanism::settings::Settings;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub const HOST: &str = "XQOS_HOST";

static IS_PRELOADED: AtomicBool = AtomicBool::new(false);
static IS_DIX_FORCED: AtomicBool = AtomicBool::new(false);
static SETTINGS: OnceLock<Settings> = OnceLock::new();

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HostChoice {
    Any,
    Dix,
    Libc,
}

impl HostChoice {
    pub fn read() -> HostChoice {
        match std::env::var(HOST).as_deref() {
            Ok("dix") => {
                IS_DIX_FORCED.store(true, Ordering::Relaxed);
                HostChoice::Dix
            }
            Ok("libc") => HostChoice::Libc,
            Ok(other) => {
                eprintln!("xqos: {HOST}={other} is neither dix nor libc, so xqos chooses the host");
                HostChoice::Any
            }
            Err(_) => HostChoice::Any,
        }
    }
}

/// Records that this object is preloaded, so that its functions come before libc's.
pub fn set_preloaded() {
    IS_PRELOADED.store(true, Ordering::Relaxed);
}

/// Stores the settings that `read` returns, unless settings have been stored before.
pub fn set_settings(read: impl FnOnce() -> Settings) {
    SETTINGS.get_or_init(read);
}

pub fn settings() -> Option<&'static Settings> {
    SETTINGS.get()
}

/// Serves the server through libc because the dix host cannot. Returns false if this is unwanted or impossible.
pub fn serve_through_libc() -> bool {
    let Some(settings) = SETTINGS.get().filter(|_| !IS_DIX_FORCED.load(Ordering::Relaxed)) else { return false };
    let is_interposed = IS_PRELOADED.load(Ordering::Relaxed) || redirect::install().is_ok();
    if is_interposed {
        instance::enable(settings.clone());
    }
    is_interposed
}
