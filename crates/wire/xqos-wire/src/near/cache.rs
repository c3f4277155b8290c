// SPDX-License-Identifier: MIT
//! Saves the queries of each program's last start in the user's cache: `~/.cache/xqos/near/DISPLAY/PROGRAM`.
//!
//! The cache only saves time. A cache failure prints one line and never makes the program fail.

use rustix::process::geteuid;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use xqos_cli::output::{self, note};
use xqos_near::Questions;
use xqos_near::questions::MAX_FILE_BYTES;

/// Maximum number of files per display; the oldest are removed first.
const MAX_FILES: usize = 200;
const MAX_NAME_LETTERS: usize = 64;

/// The files that a proxy reads and writes.
#[derive(Clone, Debug)]
pub enum Caches {
    /// The proxy was started for one program: its name and its file.
    One(String, Cache),
    /// One file for each program that connects, in the folder of the display with this name.
    Each(String),
}

/// The file of one program, or none.
#[derive(Clone, Debug, Default)]
pub struct Cache(Option<PathBuf>);

impl Cache {
    /// The file of the named program on the named display.
    pub fn of(display: &str, name: &str) -> Cache {
        let Some(root) = root() else { return Cache(None) };
        // The folder of a display's socket may change with each session, as with `xqos ssh`.
        let display = display.rsplit('/').next().unwrap_or(display);
        let folder = root.join("xqos/near").join(plain(display));
        match make_private(&folder) {
            Ok(()) => Cache(Some(folder.join(plain(name)))),
            Err(error) => {
                note(&format!("this start will not be remembered: {}: {error}", folder.display()));
                Cache(None)
            }
        }
    }

    /// A cache that reads and writes nothing.
    pub fn none() -> Cache {
        Cache(None)
    }

    pub fn read(&self) -> Questions {
        let Some(path) = &self.0 else { return Questions::default() };
        match read(path, libc::O_NOFOLLOW) {
            Ok(text) => Questions::read(&text).unwrap_or_else(|_| {
                note(&format!("{} is damaged or from another version of xqos; it is rebuilt", path.display()));
                let _ = fs::remove_file(path);
                Questions::default()
            }),
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    note(&format!("cannot read the queries of the last start: {}: {error}", path.display()));
                }
                Questions::default()
            }
        }
    }

    /// Replaces the file atomically, because another process may be reading it.
    pub fn write(&self, questions: &Questions) {
        let Some(path) = &self.0 else { return };
        if let Err(error) = output::write(path, 0o600, questions.write().as_bytes()) {
            note(&format!("cannot save the queries of this start: {}: {error}", path.display()));
        }
        let _ = path.parent().map(forget_oldest);
    }
}

pub fn name(program: &OsStr) -> String {
    Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned()
}

fn root() -> Option<PathBuf> {
    let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    named.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".cache")))
}

/// Creates a folder that only the user can access, or checks that an existing folder is private.
pub fn make_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let about = fs::symlink_metadata(folder)?;
    if !about.is_dir() || about.uid() != geteuid().as_raw() || about.mode() & 0o077 != 0 {
        return Err(io::Error::other("others may write there: remove it, and xqos creates it again"));
    }
    Ok(())
}

pub fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '+');
    let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '.' }).collect();
    let plain = plain.trim_start_matches('.');
    let name: String = plain.chars().take(MAX_NAME_LETTERS).collect();
    if name.is_empty() { "display".to_owned() } else { name }
}

/// Reads a file as text. Invalid UTF-8 becomes a character that no valid file contains. `flags` are for `open`.
pub fn read(path: &Path, flags: i32) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = OpenOptions::new().read(true).custom_flags(flags | libc::O_NONBLOCK).open(path)?;
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn forget_oldest(folder: &Path) -> io::Result<()> {
    let mut files = fs::read_dir(folder)?
        .filter_map(|entry| Some((entry.as_ref().ok()?.metadata().ok()?.modified().ok()?, entry.ok()?.path())))
        .collect::<Vec<_>>();
    files.sort();
    let surplus = files.len().saturating_sub(MAX_FILES);
    files.drain(..surplus).for_each(|(_, path)| _ = fs::remove_file(path));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_cannot_leave_the_folder() {
        assert_eq!(plain("gtk3-demo"), "gtk3-demo");
        assert_eq!(plain("../../etc/passwd"), "etc.passwd");
        assert_eq!(plain("localhost:10.0"), "localhost.10.0");
        assert_eq!(plain(":0"), "0");
        assert_eq!((plain(""), plain("..")), ("display".to_owned(), "display".to_owned()));
        assert_eq!(plain(&"x".repeat(500)).len(), MAX_NAME_LETTERS);
    }
}
