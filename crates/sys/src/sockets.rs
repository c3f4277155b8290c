// SPDX-License-Identifier: MIT
//! The kernel's table of Unix sockets, through netlink.

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::io;

/// SOCK_DIAG_BY_FAMILY (linux/sock_diag.h), and its flags NLM_F_REQUEST and NLM_F_DUMP.
const BY_FAMILY: u16 = 20;
const DUMP: u16 = 0x301;
const UNIX: u8 = 1;
const ESTABLISHED: u8 = 1;
/// Requested attributes of a socket (linux/unix_diag.h): name and peer.
const SHOW: u32 = 0x1 | 0x4;
const NAME: u16 = 0;
const PEER: u16 = 2;
const HEADER_BYTES: usize = 16;
const SOCKET_BYTES: usize = 16;

/// The name of each connected Unix socket that has a name (a server's end), and the inode of its peer.
pub fn connected_sockets() -> io::Result<Vec<(String, u32)>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(SOCK_DIAG))?;
    send(&socket, &request(), SendFlags::empty())?;
    let (mut found, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let (received, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if received == 0 || !take(&buffer[..received], &mut found) {
            return Ok(found);
        }
    }
}

/// A request for all connected sockets of this machine, with names and peers.
fn request() -> Vec<u8> {
    let mut request = Vec::new();
    request.extend(40u32.to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend(DUMP.to_ne_bytes());
    request.extend([0; 8]);
    request.extend([UNIX, 0, 0, 0]);
    request.extend((1u32 << ESTABLISHED).to_ne_bytes());
    request.extend([0; 4]);
    request.extend(SHOW.to_ne_bytes());
    request.extend([0xff; 8]);
    request
}

/// Reads the sockets of a message. Returns false after the last one.
fn take(mut bytes: &[u8], found: &mut Vec<(String, u32)>) -> bool {
    while let Some((kind, socket, rest)) = message(bytes) {
        if kind != BY_FAMILY {
            return false;
        }
        let (mut name, mut peer) = (None, None);
        let mut attributes = socket.get(SOCKET_BYTES..).unwrap_or_default();
        while let Some((kind, value, rest)) = attribute(attributes) {
            match kind {
                NAME => name = Some(String::from_utf8_lossy(value).trim_matches('\0').to_owned()),
                PEER => peer = value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes)),
                _ => {}
            }
            attributes = rest;
        }
        found.extend(name.zip(peer));
        bytes = rest;
    }
    true
}

/// Splits off the first message: its kind, its contents, and the rest.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    Some((kind, bytes.get(HEADER_BYTES..length)?, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// Splits off the first attribute: its kind, its value, and the rest.
fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
    Some((kind, bytes.get(4..length)?, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_kernel_answers_cause_no_panic() {
        let whole = request();
        for length in 0..whole.len() {
            take(&whole[..length], &mut Vec::new());
        }
        assert!(attribute(&[1, 0, 0, 0]).is_none() && message(&[0; 16]).is_none());
    }
}
