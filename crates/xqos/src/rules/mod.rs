//! Rules on a display: what is known of its clients, what is set, and the daemon that keeps it so.
//!
//! What rules come to is decided in `xqos-rules`; here are its two ends, the facts and the requests.

pub mod apply;
pub mod auto;
pub mod daemon;
pub mod folders;
pub mod process;
pub mod seat;
pub mod sight;
pub mod told;

use crate::session::Session;
use anyhow::Result;
use sight::Sight;
use std::path::{Path, PathBuf};
use xqos_abi::ClientEntry;
use xqos_cli::sys;
use xqos_rules::facts::ClientFacts;
use xqos_rules::files::{Folder, Loader, usual};

/// The usual places, for the user who runs this.
pub fn loader() -> Loader {
    Loader::new(places(), sys::effective_ids().0)
}

fn places() -> Vec<Folder> {
    let folder = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let program = std::env::current_exe().ok();
    let installed = program.as_deref().and_then(Path::parent).and_then(Path::parent);
    let packages = installed.map(|prefix| prefix.join("lib/xqos/rules.d")).filter(|rules| rules.is_dir());
    usual(packages, folder("XDG_CONFIG_HOME"), folder("HOME"))
}

/// The clients of a display but those of this process, with what is known of each.
pub fn survey(session: &Session, sight: &Sight) -> Result<Vec<(ClientEntry, ClientFacts)>> {
    let users = process::Users::read();
    let own = std::process::id() as i32;
    let others = session.others()?.into_iter().filter(|entry| entry.pid != own);
    Ok(others.map(|entry| (facts(&entry, &users, sight), entry)).map(|(facts, entry)| (entry, facts)).collect())
}

/// What is known of one client.
pub fn facts(entry: &ClientEntry, users: &process::Users, sight: &Sight) -> ClientFacts {
    let mut facts = process::facts(entry, users);
    sight.add_to(entry.client, &mut facts);
    facts
}
