// SPDX-License-Identifier: MIT
//! A private folder for files of a server: configuration, log, sockets.

use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of folders created by this process.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder of our own, removed when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn create() -> Result<Folder> {
        // Only uniqueness matters, so relaxed ordering is enough.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = place(count);
        // A killed process with the same id may have left this folder behind.
        let _ = fs::remove_dir_all(&path);
        // The folder is private, because an Xtigervnc accepts everyone who can reach its socket.
        let created = fs::DirBuilder::new().mode(0o700).create(&path);
        created.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Folder(path))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// Removes this process's folders when the process ends without dropping them. No server may still be using them.
pub(crate) fn remove_all() {
    for count in 0..COUNT.load(Ordering::Relaxed) {
        let _ = fs::remove_dir_all(place(count));
    }
}

fn place(count: u32) -> PathBuf {
    std::env::temp_dir().join(format!("xqos-lab-{}-{count}", std::process::id()))
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
