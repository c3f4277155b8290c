// SPDX-License-Identifier: MIT
//! Words to the user: results on standard output, everything else on standard error; and files that are whole or not there.
//!
//! A reader that goes away (`xqos list | head`) is no error: whatever is left to say is dropped quietly.
//!
//! A file ([`NewFile`]) is written beside its place and renamed when it is complete, in place of one of the same name. So a
//! full disk, an error or a signal leaves what was there before. Whether it may be written is known at once, before any work
//! is done for it. What is no file but a pipe or a device is written as it is.
//!
//! A recording cannot be made again. So it ([`recording`]) replaces no file, and it grows at its place, where it can be read
//! after a crash.

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use xqos_sys as sys;

/// Writes `text` as it is.
pub fn print(text: &str) -> Result<()> {
    is_read(text).map(|_| ())
}

/// Writes `text` as it is. False: the reader has gone away.
pub fn is_read(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true).context("cannot write to standard output"),
    }
}

/// One line on standard output.
pub fn line(text: &str) -> Result<()> {
    print(&format!("{text}\n"))
}

/// A value as JSON, indented: it is read by people as well.
pub fn json(value: &impl Serialize) -> Result<()> {
    line(&serde_json::to_string_pretty(value)?)
}

/// As wide as the terminal, or as COLUMNS; `None`, any width, for a file or a pipe.
pub fn width() -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|&columns| columns > 0).or_else(sys::terminal_columns)
}

/// One line on standard error, marked as ours among those of a program that we started.
pub fn note(text: &str) {
    // Nobody is left to be told when even this fails.
    let _ = writeln!(std::io::stderr().lock(), "xqos: {text}");
}

/// Begins the file of a recording. Pipes and devices are written to; any file that is there is refused.
pub fn recording(path: &Path, mode: u32) -> Result<File> {
    let is_special = fs::metadata(path).is_ok_and(|about| !about.is_file());
    let file = OpenOptions::new().write(true).create_new(!is_special).mode(mode).open(path);
    file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            anyhow!("{} is there already: remove it, or name another file for the recording", path.display())
        }
        _ => anyhow!(error).context(format!("cannot write {}", path.display())),
    })
}

/// Takes the file of a recording away: nothing was recorded.
pub fn discard(path: &Path) {
    if fs::metadata(path).is_ok_and(|about| about.is_file()) {
        let _ = fs::remove_file(path);
    }
}

/// Writes a whole file, or leaves what was there ([`NewFile`]).
pub fn write(path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut new = NewFile::create(path, mode)?;
    new.file.write_all(bytes)?;
    new.finish()
}

/// Whether two names lead to one file.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    identity(one).is_some_and(|one| identity(other) == Some(one))
}

/// A file that is being written, and is at its place once it is whole.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    path: PathBuf,
    /// Where it is until then; nothing for pipes and devices.
    part: Option<PathBuf>,
}

impl NewFile {
    /// Begins a file with these permissions, or with those of the one that it takes the place of.
    pub fn create(path: &Path, mode: u32) -> io::Result<NewFile> {
        // What a link leads to is replaced, and not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let old = match fs::metadata(&path) {
            Ok(about) if !about.is_file() => {
                let file = OpenOptions::new().write(true).open(&path)?;
                return Ok(NewFile { file, path, part: None });
            }
            // It may be written only if it could be changed as it is.
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

    /// The file, for others to write to.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Puts the file at its place: all that it is to have is written.
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
    fn a_recording_replaces_no_file_and_is_discarded_only_where_it_is_one() {
        let folder = std::env::temp_dir().join(format!("xqos-recording-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a");
        recording(&path, 0o600).unwrap().write_all(b"one").unwrap();
        let again = recording(&path, 0o600).unwrap_err().to_string();
        assert!(again.contains("is there already: remove it"), "{again}");
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
    fn a_file_is_there_when_it_is_whole_and_not_before() {
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
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("one", 2), "what was there before");
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
