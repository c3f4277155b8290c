// SPDX-License-Identifier: MIT
//! What this process was started with: which host is to serve it, and its settings.
//!
//! `entry` writes it down when the server loads us, and `hooks` reads it at each start of a generation, also to go on with the
//! other host where the records of this server are not those that we know.

use crate::host::libc::{place, slots};
use crate::mechanism::settings::Settings;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The variable that names the host.
pub const HOST: &str = "XQOS_HOST";

static IS_PRELOADED: AtomicBool = AtomicBool::new(false);
static IS_DIX_FORCED: AtomicBool = AtomicBool::new(false);
static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Which host is wanted, by [`HOST`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Any,
    Dix,
    Libc,
}

impl Wanted {
    pub fn read() -> Wanted {
        match std::env::var(HOST).as_deref() {
            Ok("dix") => {
                IS_DIX_FORCED.store(true, Ordering::Relaxed);
                Wanted::Dix
            }
            Ok("libc") => Wanted::Libc,
            Ok(other) => {
                eprintln!("xqos: {HOST}={other} is neither dix nor libc; the one that fits is taken");
                Wanted::Any
            }
            Err(_) => Wanted::Any,
        }
    }
}

/// The object stands before libc by itself.
pub fn set_preloaded() {
    IS_PRELOADED.store(true, Ordering::Relaxed);
}

/// Takes the settings that `read` gives, unless there are some.
pub fn set_settings(read: impl FnOnce() -> Settings) {
    SETTINGS.get_or_init(read);
}

/// What the server was started with.
pub fn settings() -> Option<&'static Settings> {
    SETTINGS.get()
}

/// Serves the server by its calls of libc, because its symbols were not enough. False: that is not wanted, or cannot be.
pub fn serve_from_below() -> bool {
    let Some(settings) = SETTINGS.get().filter(|_| !IS_DIX_FORCED.load(Ordering::Relaxed)) else { return false };
    let stands_before = IS_PRELOADED.load(Ordering::Relaxed) || slots::take().is_ok();
    if stands_before {
        place::want(settings.clone());
    }
    stands_before
}
