// SPDX-License-Identifier: MIT
//! Output: results on standard output, messages on standard error, and files that are either complete or absent.
//!
//! If the reader exits early (`xqos list | head`), the rest of the output is dropped without an error.
//!
//! A [`NewFile`] is written next to its final path and renamed when it is complete. A full disk, an error or a signal
//! thus leaves any previous file unchanged. If the path cannot be written, creation fails immediately, before any work
//! is done. Pipes and devices are written to directly.
//!
//! A [`recording`] cannot be repeated, so it never replaces a file. It is written directly to its final path, where it
//! can be read after a crash.

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use xqos_sys as sys;

pub fn print(text: &str) -> Result<()> {
    try_print(text).map(|_| ())
}

/// Prints `text` unchanged. Returns false if the reader has closed the pipe.
pub fn try_print(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).context("cannot write to standard output"),
    }
}

pub fn line(text: &str) -> Result<()> {
    print(&format!("{text}\n"))
}

/// Prints a value as JSON, indented for human readers.
pub fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// Width of the output: COLUMNS, or else the terminal's width; `None` (unlimited) for a file or a pipe.
pub fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|&columns| columns > 0).or_else(sys::terminal_columns)
}

/// Prints one line to standard error, with a prefix that distinguishes it from the output of programs that we started.
pub fn note(text: &str) {
    // A failure here cannot be reported anywhere.
    let _ = writeln!(std::io::stderr().lock(), "xqos: {text}");
}

/// Creates the file of a recording. Pipes and devices are opened for writing; an existing file is an error.
pub fn recording(path: &Path, mode: u32) -> Result<File> {
    let is_special = fs::metadata(path).is_ok_and(|about| !about.is_file());
    let file = OpenOptions::new().write(true).create_new(!is_special).mode(mode).open(path);
    file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            anyhow!("{} already exists: remove it, or choose another file for the recording", path.display())
        }
        _ => anyhow!(error).context(format!("cannot write {}", path.display())),
    })
}

/// Removes the file of a recording if nothing was recorded.
pub fn discard(path: &Path) {
    if fs::metadata(path).is_ok_and(|about| about.is_file()) {
        let _ = fs::remove_file(path);
    }
}

/// Writes a whole file, or keeps the previous one ([`NewFile`]).
pub fn write(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut new = NewFile::create(path, mode)?;
    new.file.write_all(bytes)?;
    new.finish()
}

/// Returns true if two paths lead to the same file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// A file that appears at its path only when it is complete.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    /// Temporary path; `None` for pipes and devices.
    part: Option<PathBuf>,
}

impl NewFile {
    /// Creates the file with this mode, or with the permissions of the file that it replaces.
    pub fn create(path: &Path, mode: u32) -> io::Result<NewFile> {
        // Replace the target of a symbolic link, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let old = match fs::metadata(&path) {
            Ok(about) if !about.is_file() => {
                let file = OpenOptions::new().write(true).open(&path)?;
                return Ok(NewFile { file, path, part: None });
            }
            // Refuse to replace a file without write permission, too.
            Ok(about) => OpenOptions::new().write(true).open(&path).map(|_| Some(about.permissions()))?,
            Err(_) => None,
        };
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_string_lossy();
        let part = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&part)?;
        let new = NewFile { file, path, part: Some(part) };
        if let Some(old) = old {
            new.file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))?;
        }
        Ok(new)
    }

    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Moves the complete file to its path.
    pub fn finish(mut self) -> io::Result<()> {
        if let Some(part) = &self.part {
            fs::rename(part, &self.path)?;
            self.part = None;
        }
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            let _ = fs::remove_file(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_replaces_no_file_and_discard_keeps_devices() {
        let folder = std::env::temp_dir().join(format!("xqos-recording-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a");
        recording(&path, 0o600).unwrap().write_all(b"one").unwrap();
        let again = recording(&path, 0o600).unwrap_err().to_string();
        assert!(again.contains("already exists: remove it"), "{again}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        discard(&path);
        assert!(!path.exists());
        assert!(recording(&folder, 0o600).is_err());
        let null = Path::new("/dev/null");
        recording(null, 0o600).unwrap();
        discard(null);
        assert!(null.exists() && is_same(null, null) && !is_same(null, &folder) && !is_same(&path, &path));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_file_appears_when_it_is_complete() {
        let folder = std::env::temp_dir().join(format!("xqos-output-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, link) = (folder.join("a"), folder.join("link"));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let names = || fs::read_dir(&folder).unwrap().count();
        let write = |path: &Path, text: &str| {
            let file = NewFile::create(path, 0o600).unwrap();
            file.file().unwrap().write_all(text.as_bytes()).unwrap();
            file
        };
        write(&path, "one").finish().unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        drop(write(&path, "half"));
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("one", 2), "the previous contents");
        write(&link, "two").finish().unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(), mode), ("two", 2, 0o640));
        assert!(link.is_symlink());
        for path in [folder.clone(), folder.join("no/where"), "/".into()] {
            assert!(NewFile::create(&path, 0o600).is_err(), "{}", path.display());
        }
        let null = write("/dev/null".as_ref(), "nothing");
        assert!(null.part.is_none() && null.finish().is_ok());
        fs::remove_dir_all(&folder).unwrap();
    }
}
