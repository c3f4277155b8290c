// SPDX-License-Identifier: MIT
//! Errors of requests to an X server.

use std::fmt;
use std::io;
use x11rb::errors::{ConnectError, ConnectionError};
use x11rb::protocol::ErrorKind;
use xqos_abi::ADMISSION_ERROR;

/// An error of a request to a server. The text is for the user of the program.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No display was given, and DISPLAY is not set.
    NoDisplay,
    /// No server runs on this display, or it refuses this user.
    Unreachable { display: String, why: ConnectError },
    /// The server's extension has another major version.
    Version { major: u32, minor: u32 },
    /// The admission test failed; `failing_client` is the resource base of the client whose term failed.
    Admission { failing_client: u32 },
    /// This client has no permission.
    Access,
    /// A value is out of range, or a client is unknown.
    Value(u32),
    /// This request works only if xqos sees each X request, but xqos serves this server through libc.
    NeedsSingleRequests,
    /// Any other error from the server.
    Answer(ErrorKind),
    /// The connection broke.
    Connection(ConnectionError),
    /// There is no X connection: the server answers only on its control socket.
    NoConnection,
    /// The control socket failed.
    Socket(io::Error),
    /// The server did not answer before the deadline.
    Late,
    /// A reply is shorter than this protocol version requires.
    ShortReply,
    /// The trace has another version.
    TraceVersion,
    /// A trace is passed as a file descriptor, which a remote connection cannot carry.
    NoDescriptor,
    /// The ring of a trace cannot be mapped.
    Ring(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoDisplay => write!(out, "no X server was given: set DISPLAY or use --display"),
            Error::Unreachable { display, why } => write!(
                out,
                "cannot connect to the X server {display} ({why}): check that it runs and that this user may use it"
            ),
            Error::Version { major, minor } => {
                let (own_major, own_minor) = xqos_abi::VERSION;
                write!(
                    out,
                    "the server has XQOS {major}.{minor}, this program has {own_major}.{own_minor}: use programs and \
                     module of the same version"
                )
            }
            Error::Admission { failing_client } => {
                write!(out, "the reservation was refused: the admission test fails for client {failing_client:#x}")
            }
            Error::Access => write!(out, "the server denies this to this user: run it as the server's user or root"),
            Error::Value(value) => write!(out, "the server rejects {value} ({value:#x}): out of range or not a client"),
            Error::NeedsSingleRequests => write!(
                out,
                "xqos serves this server through libc and cannot see single requests: the policy classic and traces of \
                 requests need the host dix (run xqos doctor to see why it was not chosen)"
            ),
            Error::Answer(kind) => write!(out, "the server answered with the error {kind:?}"),
            Error::Connection(why) => write!(out, "the connection to the X server failed: {why}"),
            Error::NoConnection => write!(
                out,
                "the X server answers only on its control socket: a client holds the server grab, or no client slot \
                 is free (`xqos list` shows which); try again later"
            ),
            Error::Socket(why) => write!(out, "the control socket of the X server failed: {why}"),
            Error::Late => write!(
                out,
                "the X server did not answer in time: it is busy or stopped, or a client holds the server grab"
            ),
            Error::ShortReply => {
                write!(out, "the server's reply is too short: use programs and module of the same version")
            }
            Error::TraceVersion => {
                write!(out, "the server's trace has another version: use programs and module of the same version")
            }
            Error::NoDescriptor => {
                write!(out, "the server sent no file descriptor: a trace needs a local connection")
            }
            Error::Ring(why) => write!(out, "the server's trace cannot be read: {why}"),
        }
    }
}

impl Error {
    /// The error that a server sent instead of a reply; `kind`: the error as x11rb names it.
    pub(crate) fn of_answer(code: u8, value: u32, first_error: u8, kind: ErrorKind) -> Error {
        match code {
            2 => Error::Value(value),
            10 => Error::Access,
            code if code == first_error + ADMISSION_ERROR => Error::Admission { failing_client: value },
            _ => Error::Answer(kind),
        }
    }
}

/// Each message already names its cause. With a source, the cause would be printed twice.
impl std::error::Error for Error {}

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
