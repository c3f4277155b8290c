// SPDX-License-Identifier: MIT
//! The relay's own X display: a free number, its lock file, and the sockets where clients look for it.
//!
//! Clients try the abstract socket first, then the one in /tmp. Like X servers, we listen on both. Otherwise another
//! user could take the socket that we leave free.

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;

/// First display number to try. X servers use numbers from 0, and ssh uses numbers from 10.
const FIRST: u16 = 64;
const LAST: u16 = 999;
const FOLDER: &str = "/tmp/.X11-unix";

/// The relay's display. Its files are removed on drop.
#[derive(Debug)]
pub struct Display {
    pub number: u16,
    screen: u16,
    pub listeners: [UnixListener; 2],
    // Field order matters: the lock file must be removed last.
    _socket: TemporaryFile,
    _lock: TemporaryFile,
}

#[derive(Debug)]
pub(super) struct TemporaryFile(pub(super) PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Display {
    /// Takes the first free display number. `screen` becomes the program's default screen.
    pub fn make(screen: u16) -> io::Result<Display> {
        make_folder()?;
        for number in FIRST..=LAST {
            match take(number, screen) {
                Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::AddrInUse) => {}
                made => return made,
            }
        }
        Err(io::Error::other(format!("displays :{FIRST} to :{LAST} are in use: remove stale /tmp/.X*-lock files")))
    }

    /// Accepts a client on this listener and returns its pid. Fails if no client waits or no file descriptor is left.
    /// Fails with PermissionDenied if the client belongs to another user, because the server would treat it as ours.
    pub fn accept(&self, listener: usize) -> io::Result<(UnixStream, i32)> {
        let (stream, _) = self.listeners[listener].accept()?;
        let peer = socket_peercred(&stream)?;
        if peer.uid != geteuid() && !peer.uid.is_root() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        stream.set_nonblocking(true)?;
        Ok((stream, peer.pid.as_raw_nonzero().get()))
    }

    pub fn name(&self) -> String {
        match self.screen {
            0 => format!(":{}", self.number),
            screen => format!(":{}.{screen}", self.number),
        }
    }
}

/// Creates the folder as an X server does: any user may add a socket, but not remove those of others.
fn make_folder() -> io::Result<()> {
    match fs::create_dir(FOLDER) {
        Ok(()) => fs::set_permissions(FOLDER, Permissions::from_mode(0o1777)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn take(number: u16, screen: u16) -> io::Result<Display> {
    let lock = PathBuf::from(format!("/tmp/.X{number}-lock"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o444).open(&lock)?;
    let lock = TemporaryFile(lock);
    // X servers read exactly ten digits.
    writeln!(file, "{:>10}", std::process::id())?;
    let path = PathBuf::from(format!("{FOLDER}/X{number}"));
    let in_tmp = UnixListener::bind(&path)?;
    let socket = TemporaryFile(path.clone());
    let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(path.as_os_str().as_encoded_bytes())?)?;
    let listeners = [hidden, in_tmp];
    listeners.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
    Ok(Display { number, screen, listeners, _socket: socket, _lock: lock })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    #[test]
    fn displays_get_distinct_numbers_and_remove_their_files() {
        let (one, other) = (Display::make(0).unwrap(), Display::make(2).unwrap());
        assert_ne!(one.number, other.number);
        assert_eq!(other.name(), format!(":{}.2", other.number));
        let files = [format!("/tmp/.X{}-lock", one.number), format!("{FOLDER}/X{}", one.number)];
        let lock = fs::read_to_string(&files[0]).unwrap();
        assert_eq!((lock.len(), lock.trim().parse()), (11, Ok(std::process::id())));
        assert!(Path::new(&files[1]).exists());
        // Other processes can take the number as soon as it is free.
        let identity =
            |file: &String| fs::symlink_metadata(file).map(|of| (of.ino(), of.ctime(), of.ctime_nsec())).ok();
        let made = files.each_ref().map(identity);
        drop(one);
        assert!(files.iter().zip(made).all(|(file, made)| identity(file) != made));
    }
}
