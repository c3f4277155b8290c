// SPDX-License-Identifier: MIT
//! Finds the cookie for a server of another user, in the file that the server's command line names.
//!
//! Anybody may listen on a free display and name any file. A file is used only if it belongs to the user that runs the
//! server, or if root runs the server.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use xqos_client::{Authority, Peer};
use xqos_sys::proc;

/// Longer than any cookie file.
const MAX_BYTES: u64 = 1 << 20;

/// Returns an empty cookie if the server names no file. Such a server admits every user of this machine, or nobody.
pub fn find(peer: Peer, display: u32) -> Authority {
    let file = named(&proc::command_line(peer.pid)).and_then(|name| open(peer, &name));
    let mut bytes = Vec::new();
    if let Some(file) = file {
        // The part before a read error may contain the entry.
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    }
    entry(&bytes, display).unwrap_or_default()
}

/// The argument of `-auth` in a server's command line.
fn named(command: &[u8]) -> Option<String> {
    let mut words = command.split(|&byte| byte == 0);
    words.find(|word| *word == b"-auth")?;
    String::from_utf8(words.next()?.to_vec()).ok().filter(|name| !name.is_empty())
}

fn open(peer: Peer, name: &str) -> Option<File> {
    // A relative path is relative to the server's working directory.
    let path = proc::working_folder(peer.pid).join(name);
    // Opening a pipe must not block.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path).ok()?;
    let is = file.metadata().ok()?;
    (is.is_file() && (is.uid() == peer.uid || peer.uid == 0)).then_some(file)
}

/// Name and data of the first entry for the display. The entry's family does not matter, because the server is local.
fn entry(mut bytes: &[u8], display: u32) -> Option<Authority> {
    const FAMILY_BYTES: usize = 2;
    let number = display.to_string();
    loop {
        bytes = bytes.get(FAMILY_BYTES..)?;
        let [_, of, name, data] = [field(&mut bytes)?, field(&mut bytes)?, field(&mut bytes)?, field(&mut bytes)?];
        if of.is_empty() || of == number.as_bytes() {
            return Some((name.to_vec(), data.to_vec()));
        }
    }
}

/// Reads a length (two bytes, most significant first), and then a field of this length.
fn field<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let (field, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    *bytes = rest;
    Some(field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(display: &str, data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![1, 0];
        for field in [b"host", display.as_bytes(), b"MIT-MAGIC-COOKIE-1", data] {
            bytes.extend((field.len() as u16).to_be_bytes());
            bytes.extend(field);
        }
        bytes
    }

    #[test]
    fn the_entry_of_the_display_is_used() {
        let file = [cookie("1", b"one"), cookie("2", b"two"), cookie("", b"any")].concat();
        let data = |display| entry(&file, display).unwrap().1;
        assert_eq!((data(1), data(2), data(3)), (b"one".to_vec(), b"two".to_vec(), b"any".to_vec()));
        let one = cookie("1", b"one");
        assert_eq!(entry(&one, 2), None);
        for length in 0..one.len() {
            assert_eq!(entry(&one[..length], 1), None, "cut at {length}");
        }
    }

    #[test]
    fn the_file_is_named_on_the_command_line() {
        assert_eq!(named(b"/usr/bin/Xvfb\0:7\0-auth\0/run/a\0").as_deref(), Some("/run/a"));
        for other in [&b""[..], b"Xvfb\0-auth\0", b"Xvfb\0-auth", b"Xvfb\0-author\0/run/a\0", b"Xvfb\0-auth\0\xff\0"] {
            assert_eq!(named(other), None);
        }
    }

    #[test]
    fn a_file_of_another_user_is_not_read() {
        let own = proc::owner(std::process::id() as i32).unwrap();
        let peer = |uid| Peer { pid: std::process::id() as i32, uid };
        assert!(open(peer(own), "Cargo.toml").is_some(), "the tests run in the folder of the package");
        assert!(open(peer(own.wrapping_add(4711)), "Cargo.toml").is_none());
        assert!(open(peer(own), "src").is_none(), "a folder is no file");
    }
}
