// SPDX-License-Identifier: MIT
//! The control socket: XQOS requests without the extension, for servers that cannot have extensions.
//!
//! Requests, replies, errors and events are those of the extension, in this machine's byte order, with the codes below.
//! Each request gets an answer: an empty one if the extension defines no reply. Requests name a client by any of its
//! resource ids; 0 is not a client.

use std::path::PathBuf;
use xqos_x11::ByteOrder;
use xqos_x11::codes::{ERROR, FIRST_EXTENSION_ERROR, FIRST_EXTENSION_EVENT, REPLY};
use xqos_x11::length::UNIT_BYTES;

/// The code of XqosNotify.
pub const EVENT: u8 = FIRST_EXTENSION_EVENT;
/// The code of the extension's first error.
pub const FIRST_ERROR: u8 = FIRST_EXTENSION_ERROR;
pub const MAX_REQUEST_BYTES: usize = 256;

/// Paths of the control socket of a display, in order of preference; `user`: the user that runs the server.
pub fn paths(display: u32, user: u32) -> Vec<PathBuf> {
    let name = format!("{display}.socket");
    vec![
        PathBuf::from(format!("/run/user/{user}/xqos")).join(&name),
        PathBuf::from("/run/xqos").join(&name),
        PathBuf::from(format!("/tmp/.xqos-{user}")).join(&name),
    ]
}

/// The display number in the path of an X server's socket.
pub fn display_of_socket(path: &str) -> Option<u32> {
    path.rsplit_once("/.X11-unix/X")?.1.parse().ok()
}

/// Encodes an error record: 0, the code, the sequence number and the value.
pub fn error(code: u8, sequence: u16, value: u32) -> [u8; UNIT_BYTES] {
    record([ERROR, code], sequence, value)
}

/// The answer to a request without a reply.
pub fn done(sequence: u16) -> [u8; UNIT_BYTES] {
    record([REPLY, 0], sequence, 0)
}

fn record(begin: [u8; 2], sequence: u16, word: u32) -> [u8; UNIT_BYTES] {
    let mut record = [0; UNIT_BYTES];
    record[..2].copy_from_slice(&begin);
    ByteOrder::NATIVE.put_u16(&mut record, 2, sequence);
    ByteOrder::NATIVE.put_u32(&mut record, 4, word);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_numbers_are_read_from_socket_paths() {
        assert_eq!(display_of_socket("/tmp/.X11-unix/X12"), Some(12));
        assert_eq!(display_of_socket("\0/tmp/.X11-unix/X0"), Some(0));
        for other in ["/tmp/.X11-unix/X", "/tmp/X12", "/tmp/.X11-unix/X1a"] {
            assert_eq!(display_of_socket(other), None, "{other}");
        }
    }
}
