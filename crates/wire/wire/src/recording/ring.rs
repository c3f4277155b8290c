// SPDX-License-Identifier: MIT
//! Files of a recording: none, one, or numbered ones, of which the last are kept.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum Target {
    /// Nowhere: only the messages are wanted.
    Nowhere,
    One(File),
    Ring(Ring),
}

/// Numbered files: `name-0001.pcapng`, `name-0002.pcapng`. Numbers of existing files are left out, so no file is
/// replaced, and only files of this recording are removed.
#[derive(Debug)]
pub struct Ring {
    path: PathBuf,
    keep: Option<NonZeroUsize>,
    number: u32,
    paths: VecDeque<PathBuf>,
    /// The first file, until something is recorded.
    unused: Option<File>,
}

impl Ring {
    /// Creates the first file, so that a folder that cannot be written is noticed early.
    pub fn new(path: &Path, keep: Option<NonZeroUsize>) -> io::Result<Ring> {
        let mut ring = Ring { path: path.to_owned(), keep, number: 0, paths: VecDeque::new(), unused: None };
        ring.unused = Some(ring.create()?);
        Ok(ring)
    }

    /// The next file. Removes the oldest one if there are too many.
    pub fn next_file(&mut self) -> io::Result<File> {
        match self.unused.take() {
            Some(first) => Ok(first),
            None => self.create(),
        }
    }

    /// The file that was created last, or that could not be created.
    pub fn current(&self) -> PathBuf {
        numbered(&self.path, self.number)
    }

    fn create(&mut self) -> io::Result<File> {
        loop {
            self.number = self.number.checked_add(1).ok_or(ErrorKind::Other)?;
            let path = self.current();
            // Only the user can read the file, because it may contain what people type.
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    self.paths.push_back(path);
                    self.remove_oldest();
                    return Ok(file);
                }
            }
        }
    }

    fn remove_oldest(&mut self) {
        while self.keep.is_some_and(|keep| self.paths.len() > keep.get()) {
            let Some(oldest) = self.paths.pop_front() else { return };
            // Another program may have moved or removed the file.
            let _ = fs::remove_file(oldest);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let (Some(_), Some(path)) = (&self.unused, self.paths.front()) {
            let _ = fs::remove_file(path);
        }
    }
}

/// `name.pcapng` and 7: `name-0007.pcapng`.
pub fn numbered(path: &Path, number: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number:04}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn the_last_files_are_kept_and_files_of_others_stay() {
        let folder = std::env::temp_dir().join(format!("xqos-ring-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a-0003.pcapng"), "older").unwrap();
        let mut ring = Ring::new(&folder.join("a.pcapng"), NonZeroUsize::new(2)).unwrap();
        assert_eq!(names(&folder), ["a-0001.pcapng", "a-0003.pcapng"]);
        for text in ["one", "two", "four", "five"] {
            ring.next_file().unwrap().write_all(text.as_bytes()).unwrap();
        }
        drop(ring);
        assert_eq!(names(&folder), ["a-0003.pcapng", "a-0004.pcapng", "a-0005.pcapng"]);
        assert_eq!(fs::read_to_string(folder.join("a-0003.pcapng")).unwrap(), "older");
        assert_eq!(fs::read_to_string(folder.join("a-0005.pcapng")).unwrap(), "five");
        // A ring without a recording leaves no file.
        drop(Ring::new(&folder.join("b"), None).unwrap());
        assert_eq!(names(&folder).len(), 3);
        fs::remove_dir_all(&folder).unwrap();
        assert!(Ring::new(&folder.join("a.pcapng"), None).is_err());
    }
}
