// SPDX-License-Identifier: MIT
//! Rules of a display: the facts of its clients, the settings, and the daemon that applies them.
//!
//! `xqos-rules` evaluates the rules. This module collects the facts and sends the requests.

pub mod apply;
pub mod auto;
pub mod boosted;
pub mod daemon;
pub mod effect;
pub mod folders;
pub mod limits;
pub mod process;
pub mod schedule;
pub mod selection_lock;
pub mod status;
pub mod viewers;
pub mod warnings;
pub mod window_facts;

use process::Users;
use std::path::{Path, PathBuf};
use window_facts::WindowFacts;
use xqos_abi::ClientEntry;
use xqos_rules::facts::{ClientFacts, State};
use xqos_rules::files::{Folder, Loader, default_folders};
use xqos_sys as sys;

/// A loader for the default folders and the current user.
pub fn loader() -> Loader {
    Loader::new(places(), sys::effective_ids().0)
}

/// Maximum sum of all measured reservations, from the system's rule files; users' files contain no limits.
pub fn auto_limit() -> Option<u32> {
    loader().load().limits.auto
}

fn places() -> Vec<Folder> {
    let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let program = std::env::current_exe().ok();
    let installed = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    let packages = installed.map(|prefix| prefix.join("lib/xqos/rules.d")).filter(|rules| rules.is_dir());
    default_folders(packages, folder("XDG_CONFIG_HOME"), folder("HOME"))
}

/// The facts of a client. `unwatched`: true if nobody is viewing the display; `None` if that is unknown.
pub fn facts(entry: &ClientEntry, users: &Users, windows: &WindowFacts, unwatched: Option<bool>) -> ClientFacts {
    let mut facts = process::facts(entry, users);
    windows.add_to(entry.client, &mut facts);
    unwatched.into_iter().for_each(|unwatched| facts.states.set(State::Unwatched, unwatched));
    facts
}
