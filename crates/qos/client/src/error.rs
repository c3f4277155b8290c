// SPDX-License-Identifier: MIT
//! Errors of requests to an X server.

use std::io;
use x11rb::errors::{ConnectError, ConnectionError};
use x11rb::protocol::ErrorKind;
use xqos_abi::{ADMISSION_ERROR, VERSION};
use xqos_x11::codes::{BAD_ACCESS, BAD_VALUE};

/// An error of a request to a server. The text is for the user of the program. It already names the cause; a source
/// would print the cause twice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("no X server was given: set DISPLAY or use --display")]
    NoDisplay,
    #[error("cannot connect to the X server {display} ({why}): check that it runs and that this user may use it")]
    Unreachable { display: String, why: ConnectError },
    /// The server's extension has another major version.
    #[error(
        "the server has XQOS {major}.{minor}, this program has {}.{}: use programs and module of the same version",
        VERSION.0,
        VERSION.1
    )]
    Version { major: u32, minor: u32 },
    /// `failing_client` is the resource base of the client whose term failed.
    #[error("the reservation was refused: the admission test fails for client {failing_client:#x}")]
    Admission { failing_client: u32 },
    #[error("the server denies this to this user: run it as the server's user or root")]
    Access,
    #[error("the server rejects {0} ({0:#x}): out of range or not a client")]
    Value(u32),
    #[error(
        "xqos serves this server through libc and cannot see single requests: the policy classic and traces of requests \
         need the host dix (run xqos doctor to see why it was not chosen)"
    )]
    NeedsSingleRequests,
    /// Any other error from the server.
    #[error("the server answered with the error {0:?}")]
    Answer(ErrorKind),
    #[error("the connection to the X server failed: {0}")]
    Connection(ConnectionError),
    #[error(
        "the X server answers only on its control socket: a client holds the server grab, or no client slot is free \
         (`xqos list` shows which); try again later"
    )]
    NoConnection,
    #[error("the control socket of the X server failed: {0}")]
    Socket(io::Error),
    #[error("the X server did not answer in time: it is busy or stopped, or a client holds the server grab")]
    Late,
    #[error("the server's reply is too short: use programs and module of the same version")]
    ShortReply,
    #[error("the server's trace has another version: use programs and module of the same version")]
    TraceVersion,
    #[error("the server sent no file descriptor: a trace needs a local connection")]
    NoDescriptor,
    #[error("the server's trace cannot be read: {0}")]
    Ring(io::Error),
}

impl Error {
    /// The error that a server sent instead of a reply; `kind`: the error as x11rb names it.
    pub(crate) fn of_answer(code: u8, value: u32, first_error: u8, kind: ErrorKind) -> Error {
        match code {
            BAD_VALUE => Error::Value(value),
            BAD_ACCESS => Error::Access,
            code if code == first_error + ADMISSION_ERROR => Error::Admission { failing_client: value },
            _ => Error::Answer(kind),
        }
    }
}

impl From<ConnectionError> for Error {
    fn from(why: ConnectionError) -> Error {
        Error::Connection(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// XQOS_HOST=libc selects libc even for a server that exports all symbols.
    #[test]
    fn the_error_for_the_host_libc_does_not_blame_missing_symbols() {
        let text = Error::NeedsSingleRequests.to_string();
        assert!(text.contains("through libc") && !text.contains("symbols"), "{text}");
    }
}
