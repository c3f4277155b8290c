// SPDX-License-Identifier: MIT
//! The kernel's tables of sockets: TCP and Unix sockets from /proc, and connected Unix sockets from netlink, because
//! /proc does not show their peers.

use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::{fs, io};

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    pub port: u16,
    pub listens: bool,
    pub is_connected: bool,
    /// 0 if no process has it any more.
    pub inode: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixSocket {
    pub listens: bool,
    /// Also true if the server has not accepted the connection yet.
    pub is_connected: bool,
    /// 0 if no process has it yet.
    pub inode: u64,
    /// Begins with `@` in the abstract namespace. The server's end of a connection has the path of its listener.
    pub path: String,
}

/// The TCP sockets in the network namespace of a process.
pub fn tcp(pid: i32) -> io::Result<Vec<TcpSocket>> {
    let mut sockets = parse_tcp(&table(pid, "tcp")?);
    // Without IPv6, this table is missing.
    sockets.extend(table(pid, "tcp6").iter().flat_map(|table| parse_tcp(table)));
    Ok(sockets)
}

/// The Unix sockets with a path in the network namespace of a process.
pub fn unix(pid: i32) -> io::Result<Vec<UnixSocket>> {
    Ok(parse_unix(&table(pid, "unix")?))
}

fn table(pid: i32, name: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{pid}/net/{name}"))
}

/// Parses /proc/net/tcp: sl, local_address, rem_address, st, queues, timer, retransmissions, uid, timeout, inode.
pub fn parse_tcp(table: &str) -> Vec<TcpSocket> {
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        let inode = fields.get(9).and_then(|inode| inode.parse().ok()).unwrap_or(0);
        let state = *fields.get(3)?;
        Some(TcpSocket { port, listens: state == "0A", is_connected: state == "01", inode })
    };
    table.lines().filter_map(socket).collect()
}

/// Parses /proc/net/unix: Num, RefCount, Protocol, Flags, Type, St, Inode, Path.
pub fn parse_unix(table: &str) -> Vec<UnixSocket> {
    /// SO_ACCEPTCON.
    const LISTENS: &str = "00010000";
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, flags, _, state, inode, path] = fields[..] else { return None };
        let (listens, is_connected) = (flags == LISTENS, ["02", "03"].contains(&state));
        Some(UnixSocket { listens, is_connected, inode: inode.parse().ok()?, path: path.to_owned() })
    };
    table.lines().filter_map(socket).collect()
}

/// The name of each connected Unix socket that has a name (a server's end), and the inode of its peer.
pub fn connected_unix() -> io::Result<Vec<(String, u32)>> {
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
    fn only_listening_sockets_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr\n   \
                     0: 0100000A:1771 00000000:0000 0A 00000000:00000000 00:0\n   \
                     1: 0100000A:1772 0200000A:8000 01 00000000:00000000 00:0\n";
        let has_listener = |port| parse_tcp(table).iter().any(|socket| socket.listens && socket.port == port);
        assert!(has_listener(6001));
        assert!(!has_listener(6002), "connected, not listening");
        assert!(!has_listener(0x8000));
    }

    #[test]
    fn truncated_kernel_answers_cause_no_panic() {
        let whole = request();
        for length in 0..whole.len() {
            take(&whole[..length], &mut Vec::new());
        }
        assert!(attribute(&[1, 0, 0, 0]).is_none() && message(&[0; 16]).is_none());
    }
}
