// SPDX-License-Identifier: MIT
//! A private folder for what a server reads and writes: configuration, log, sockets.

use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many were made.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder of our own, removed when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    pub fn create() -> Result<Folder> {
        // Only uniqueness is asked for, so no ordering with anything else.
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = place(count);
        // Left behind by a process of the same id that was killed.
        let _ = fs::remove_dir_all(&path);
        // For us alone: an Xtigervnc lets everyone in who reaches its socket.
        let created = fs::DirBuilder::new().mode(0o700).create(&path);
        created.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Folder(path))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// For an end without drops: those of this process, once no server uses them.
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
