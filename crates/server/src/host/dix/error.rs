// SPDX-License-Identifier: MIT
//! Why the dix host cannot serve a server, or cannot continue to serve it.

use std::fmt;
use std::io;

#[derive(Debug)]
pub enum Error {
    /// The extension was set up before the module was registered.
    NotRegistered,
    /// The server has no opcode left for another extension.
    NoRoom,
    Timer(io::Error),
    Watcher(io::Error),
    WatcherEnded,
    /// The server does not poll our timer.
    NotPolled,
    NoRing,
    BrokenRing,
    /// The vendor and release of an unknown server.
    UnknownServer(String, u32),
    UnknownRecord,
    ClientIndex(usize),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::NotRegistered => f.write_str("the module was not registered"),
            Error::NoRoom => f.write_str("the server has no room for another extension"),
            Error::Timer(error) => write!(f, "a timer could not be created: {error}"),
            Error::Watcher(error) => write!(f, "the watcher thread could not be started: {error}"),
            Error::WatcherEnded => f.write_str("the watcher thread ended because of a fault"),
            Error::NotPolled => f.write_str("the server does not poll the timer of xqos"),
            Error::NoRing => f.write_str("the server's list of ready clients was not found"),
            Error::BrokenRing => f.write_str("the server's list of ready clients has an unexpected form"),
            Error::UnknownServer(vendor, release) => {
                write!(f, "this build does not know the client record of the server \"{vendor}\" {release}")
            }
            Error::UnknownRecord => f.write_str("the server's client record differs from what this build expects"),
            Error::ClientIndex(index) => write!(f, "a client has the invalid index {index}"),
        }
    }
}

impl std::error::Error for Error {}
