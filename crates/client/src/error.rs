// SPDX-License-Identifier: MIT
//! Why something that was asked of the server did not happen.

use std::fmt;
use std::io;
use x11rb::errors::{ConnectError, ConnectionError};
use x11rb::protocol::ErrorKind;
use xqos_abi::ADMISSION_ERROR;

/// What a program that speaks to a server can meet. The text is for its user.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// No display was named, and DISPLAY is not set.
    NoDisplay,
    /// There is no server on this display, or it does not let this user in.
    Unreachable { display: String, why: ConnectError },
    /// The server's extension is of another major version.
    Version { major: u32, minor: u32 },
    /// The admission test fails; the resource base of the client whose term fails.
    Admission { failing_client: u32 },
    /// Not for this client to do.
    Access,
    /// A value out of its range, or no such client.
    Value(u32),
    /// It needs to see each request, and the server is served by the calls of libc that it makes.
    NotFromBelow,
    /// Any other error that the server answered.
    Answer(ErrorKind),
    /// The connection broke.
    Connection(ConnectionError),
    /// The server answers on its control socket alone.
    NoConnection,
    /// The control socket broke.
    Socket(io::Error),
    /// The server did not answer in the time that it had.
    Late,
    /// A reply is shorter than this version of the protocol says.
    ShortReply,
    /// The trace is of another version.
    TraceVersion,
    /// A trace is handed over by file descriptor, which a remote connection cannot carry.
    NoDescriptor,
    /// The ring of a trace cannot be mapped.
    Ring(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoDisplay => write!(out, "no X server is named: set DISPLAY or give --display"),
            Error::Unreachable { display, why } => write!(
                out,
                "cannot reach the X server {display} ({why}): check that it runs and that this user may connect to it"
            ),
            Error::Version { major, minor } => {
                let (own_major, own_minor) = xqos_abi::VERSION;
                write!(
                    out,
                    "the server speaks XQOS {major}.{minor}, this program {own_major}.{own_minor}: use programs and \
                     module of one version"
                )
            }
            Error::Admission { failing_client } => {
                write!(out, "the admission test fails for client {failing_client:#x}")
            }
            Error::Access => write!(out, "the server does not allow it to this user"),
            Error::Value(value) => write!(out, "the server refuses the value {value} ({value:#x})"),
            Error::NotFromBelow => write!(
                out,
                "xqos serves this server through its calls of libc, which do not show single requests: the policy classic \
                 and traces of requests need the host dix (xqos doctor says why it was not taken)"
            ),
            Error::Answer(kind) => write!(out, "the server answered {kind:?}"),
            Error::Connection(why) => write!(out, "the connection to the X server broke: {why}"),
            Error::NoConnection => write!(
                out,
                "the X server answers its control socket only: a client holds the server grab, or there is no place for \
                 another client (`xqos list` names it); try again when that is over"
            ),
            Error::Socket(why) => write!(out, "the control socket of the X server broke: {why}"),
            Error::Late => write!(
                out,
                "the X server did not answer in time: it is busy or stopped, or a client holds the server grab"
            ),
            Error::ShortReply => {
                write!(out, "the server's reply is too short: use programs and module of one version")
            }
            Error::TraceVersion => {
                write!(out, "the server's trace is of another version: use programs and module of one version")
            }
            Error::NoDescriptor => {
                write!(out, "the server sent no descriptor: a trace needs a local connection")
            }
            Error::Ring(why) => write!(out, "the server's trace cannot be read: {why}"),
        }
    }
}

impl Error {
    /// What a server has answered in place of a reply; `kind`: as x11rb knows it.
    pub(crate) fn of_answer(code: u8, value: u32, first_error: u8, kind: ErrorKind) -> Error {
        match code {
            2 => Error::Value(value),
            10 => Error::Access,
            code if code == first_error + ADMISSION_ERROR => Error::Admission { failing_client: value },
            _ => Error::Answer(kind),
        }
    }
}

/// Each message names its cause already, so no source is given: it would be said twice.
impl std::error::Error for Error {}

impl From<ConnectionError> for Error {
    fn from(why: ConnectionError) -> Error {
        Error::Connection(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// XQOS_HOST=libc takes that way into a server that exports all symbols, too.
    #[test]
    fn a_server_that_is_served_through_libc_is_not_said_to_export_no_symbols() {
        let text = Error::NotFromBelow.to_string();
        assert!(text.contains("through its calls of libc") && !text.contains("symbols"), "{text}");
    }
}
