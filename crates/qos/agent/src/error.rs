// SPDX-License-Identifier: MIT
//! Errors of this crate. The text is for the user: one sentence that names the cause and, if there is one, the next
//! step.

use std::borrow::Cow;
use std::io;
use x11rb::errors::{ConnectionError, ReplyError, ReplyOrIdError};
use xqos_text::escape::in_one_line;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Server(#[from] xqos_client::Error),
    /// A request of the core protocol failed.
    #[error(transparent)]
    X(#[from] ReplyOrIdError),
    /// A system call failed: the purpose of the call, and the error.
    #[error("{0}: {1}")]
    System(Cow<'static, str>, io::Error),
    /// The action is impossible here or now; the text is the reason.
    #[error("{0}")]
    Refused(String),
}

/// For `map_err`: adds the purpose of the failed call.
pub(crate) fn asking<E: Into<io::Error>>(what: impl Into<Cow<'static, str>>) -> impl FnOnce(E) -> Error {
    move |error| Error::System(what.into(), error.into())
}

macro_rules! refused {
    ($($text:tt)*) => { $crate::Error::Refused(format!($($text)*)) };
}
macro_rules! bail {
    ($($text:tt)*) => { return Err($crate::error::refused!($($text)*)) };
}
pub(crate) use {bail, refused};

impl Error {
    /// The message as one line for a log.
    pub fn in_one_line(&self) -> String {
        in_one_line(&self.to_string())
    }

    /// Returns true if the server did not answer in time. It may still execute the request.
    pub fn is_late(&self) -> bool {
        matches!(self, Error::Server(xqos_client::Error::Late))
    }
}

impl From<ConnectionError> for Error {
    fn from(why: ConnectionError) -> Error {
        Error::X(why.into())
    }
}

impl From<ReplyError> for Error {
    fn from(why: ReplyError) -> Error {
        Error::X(why.into())
    }
}
