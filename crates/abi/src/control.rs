// SPDX-License-Identifier: MIT
//! The control socket: requests of XQOS without the extension, for servers that cannot have one.
//!
//! Requests, replies, errors and events are those of the extension, in this machine's byte order, with the codes below. Each
//! request is answered: one that has no reply by an empty one. A request names clients by a resource of theirs; 0 is nobody.

use std::path::PathBuf;

/// Code of XqosNotify.
pub const EVENT: u8 = 64;
/// Code of the extension's first error.
pub const FIRST_ERROR: u8 = 128;
/// Longest request, bytes.
pub const MAX_REQUEST_BYTES: usize = 256;

/// Where the socket of a display is, the best place first; `user`: whom the server runs as.
pub fn paths(display: u32, user: u32) -> Vec<PathBuf> {
    let name = format!("{display}.socket");
    vec![
        PathBuf::from(format!("/run/user/{user}/xqos")).join(&name),
        PathBuf::from("/run/xqos").join(&name),
        PathBuf::from(format!("/tmp/.xqos-{user}")).join(&name),
    ]
}

/// Number of the display in the path of an X server's socket.
pub fn display_of_socket(path: &str) -> Option<u32> {
    path.rsplit_once("/.X11-unix/X")?.1.parse().ok()
}

/// An error record: 0, code, sequence, value.
pub fn error(code: u8, sequence: u16, value: u32) -> [u8; 32] {
    let mut record = [0; 32];
    record[1] = code;
    record[2..4].copy_from_slice(&sequence.to_ne_bytes());
    record[4..8].copy_from_slice(&value.to_ne_bytes());
    record
}

/// The answer to a request that has no reply.
pub fn done(sequence: u16) -> [u8; 32] {
    let mut record = [0; 32];
    record[0] = 1;
    record[2..4].copy_from_slice(&sequence.to_ne_bytes());
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_are_told_by_their_sockets() {
        assert_eq!(display_of_socket("/tmp/.X11-unix/X12"), Some(12));
        assert_eq!(display_of_socket("\0/tmp/.X11-unix/X0"), Some(0));
        for other in ["/tmp/.X11-unix/X", "/tmp/X12", "/tmp/.X11-unix/X1a"] {
            assert_eq!(display_of_socket(other), None, "{other}");
        }
    }
}
