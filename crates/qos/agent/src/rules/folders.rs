// SPDX-License-Identifier: MIT
//! Detects changes of rule files with inotify, without polling.
//!
//! If a folder does not exist, its nearest existing ancestor is watched. A file counts as changed when it is closed, so
//! it is never read while it is written.

use crate::error::{Result, asking};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Longer than the event with the longest name.
const BUFFER: usize = 4096;
const UNWATCHED: &str = "cannot watch the rules folders";

#[derive(Debug)]
pub struct Folders {
    paths: Vec<PathBuf>,
    inotify: OwnedFd,
    watches: Vec<FolderWatch>,
}

#[derive(Debug)]
struct FolderWatch {
    id: i32,
    path: PathBuf,
    /// Name of the next folder that does not exist yet; `None` if the folder itself is watched.
    missing: Option<OsString>,
}

impl Folders {
    pub fn watch(paths: Vec<PathBuf>) -> Result<Folders> {
        let (inotify, watches) = watching(&paths)?;
        Ok(Folders { paths, inotify, watches })
    }

    /// Returns true if anything has changed since the last call, and renews the watches. Call it before reading files.
    pub fn have_changed(&mut self) -> Result<bool> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut is_changed = false;
        loop {
            match reader.next() {
                Ok(event) => {
                    let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                    let mut watches = self.watches.iter().filter(|watch| watch.id == event.wd());
                    // After an overflow, anything may have changed.
                    let is_lost = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                    is_changed |= is_lost || watches.any(|watch| watch.counts(event.events(), name));
                }
                Err(Errno::WOULDBLOCK) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(asking(UNWATCHED)(error)),
            }
        }
        if is_changed {
            (self.inotify, self.watches) = watching(&self.paths)?;
        }
        Ok(is_changed)
    }
}

impl AsRawFd for Folders {
    fn as_raw_fd(&self) -> RawFd {
        self.inotify.as_raw_fd()
    }
}

impl FolderWatch {
    fn counts(&self, events: ReadFlags, name: Option<&OsStr>) -> bool {
        // An event without a name is about the folder itself, which no longer exists.
        let Some(name) = name else { return !events.contains(ReadFlags::IGNORED) };
        match &self.missing {
            Some(missing) => missing == name,
            // A new regular file is still empty; closing it causes another event.
            None => !events.contains(ReadFlags::CREATE) || !is_plain(&self.path.join(name)),
        }
    }
}

fn is_plain(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

fn watching(paths: &[PathBuf]) -> Result<(OwnedFd, Vec<FolderWatch>)> {
    let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(asking(UNWATCHED))?;
    let watches = paths.iter().filter_map(|path| watch(&inotify, path)).collect();
    Ok((inotify, watches))
}

/// Watches the folder or its nearest existing ancestor.
fn watch(inotify: &OwnedFd, path: &Path) -> Option<FolderWatch> {
    let of_files = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_FROM | WatchFlags::DELETE | WatchFlags::ATTRIB;
    let of_folders = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    // Two paths may share a watched folder, so their flags are combined.
    let add =
        |path: &Path, flags| inotify::add_watch(inotify, path, flags | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD).ok();
    if let Some(id) = add(path, of_files | of_folders) {
        return Some(FolderWatch { id, path: path.to_owned(), missing: None });
    }
    path.ancestors().zip(path.ancestors().skip(1)).find_map(|(missing, above)| {
        let id = add(above, of_folders)?;
        Some(FolderWatch { id, path: above.to_owned(), missing: Some(missing.file_name()?.to_owned()) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_changes_of_rule_files_are_reported() {
        let top = std::env::temp_dir().join(format!("xqos-folders-{}", std::process::id()));
        let rules = top.join("xqos/rules.d");
        fs::create_dir_all(&top).unwrap();
        let mut folders = Folders::watch(vec![rules.clone(), top.join("other/rules.d")]).unwrap();
        let mut has_changed = || folders.have_changed().unwrap();
        assert!(!has_changed());
        fs::write(top.join("unrelated"), "").unwrap();
        assert!(!has_changed(), "not an ancestor of a rules folder");
        fs::create_dir(top.join("xqos")).unwrap();
        assert!(has_changed());
        fs::create_dir(&rules).unwrap();
        assert!(has_changed());
        let file = fs::File::create(rules.join("a.toml")).unwrap();
        assert!(!has_changed(), "it is being written");
        drop(file);
        assert!(has_changed());
        fs::rename(rules.join("a.toml"), rules.join("b.toml")).unwrap();
        assert!(has_changed());
        std::os::unix::fs::symlink("b.toml", rules.join("c.toml")).unwrap();
        assert!(has_changed());
        fs::remove_file(rules.join("b.toml")).unwrap();
        assert!(has_changed());
        fs::remove_dir_all(top.join("xqos")).unwrap();
        assert!(has_changed());
        fs::create_dir_all(&rules).unwrap();
        assert!(has_changed(), "the missing folder is watched for");
        fs::write(rules.join("a.toml"), "").unwrap();
        assert!(has_changed());
        fs::remove_dir_all(&top).unwrap();
    }
}
