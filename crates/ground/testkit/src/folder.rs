// SPDX-License-Identifier: MIT
//! A folder of one test.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty folder that is removed after the test.
#[derive(Debug)]
pub struct Folder {
    pub path: PathBuf,
}

impl Folder {
    pub fn new(name: &str) -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("xqos-{name}-{}-{count}", std::process::id()));
        // A killed process with the same id may have left this folder behind.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Folder { path }
    }

    /// The path of a file in it, as an argument.
    pub fn file(&self, name: &str) -> String {
        self.path.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_distinct_and_removed() {
        let folders = [(); 2].map(|()| Folder::new("folder"));
        fs::write(folders[0].file("file"), "").unwrap();
        let paths = folders.each_ref().map(|folder| folder.path.clone());
        assert!(paths[0] != paths[1] && paths.iter().all(|path| path.is_dir()));
        drop(folders);
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
