// SPDX-License-Identifier: MIT
//! Why the dix host cannot serve a server, or cannot continue to serve it.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The extension was set up before the module was registered.
    #[error("the module was not registered")]
    NotRegistered,
    /// No opcode is left.
    #[error("the server has no room for another extension")]
    NoRoom,
    #[error("a timer could not be created: {0}")]
    Timer(io::Error),
    #[error("the watcher thread could not be started: {0}")]
    Watcher(io::Error),
    #[error("the watcher thread ended because of a fault, or could not be started")]
    WatcherEnded,
    #[error("the server does not poll the timer of xqos")]
    NotPolled,
    #[error("the server's list of ready clients was not found")]
    NoRing,
    #[error("the server's list of ready clients has an unexpected form")]
    BrokenRing,
    /// The vendor and release.
    #[error("this build does not know the client record of the server \"{0}\" {1}")]
    UnknownServer(String, u32),
    #[error("the server's client record differs from what this build expects")]
    UnknownRecord,
    #[error("a client has the invalid index {0}")]
    ClientIndex(usize),
}
