// SPDX-License-Identifier: MIT
//! Which programs are connected to a display, from the kernel's table of sockets: no server is asked, so it works where a server
//! takes no further client, or answers nobody.

use crate::displays::sockets_of;
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};
use std::collections::{BTreeMap, HashMap};
use xqos_abi::control::display_of_socket;
use xqos_cli::table::{Column, Table};

/// SOCK_DIAG_BY_FAMILY (linux/sock_diag.h), and its flags: a request, and all that there are.
const BY_FAMILY: u16 = 20;
const DUMP: u16 = 0x301;
const UNIX: u8 = 1;
const ESTABLISHED: u8 = 1;
/// What is to be told of a socket (linux/unix_diag.h): its name and its peer.
const SHOW: u32 = 0x1 | 0x4;
const NAME: u16 = 0;
const PEER: u16 = 2;
const HEADER_BYTES: usize = 16;
const SOCKET_BYTES: usize = 16;

/// A process that is connected.
#[derive(Debug, PartialEq, Eq)]
struct Holder {
    /// 0: nobody whom we may look at.
    pid: i32,
    program: String,
    connections: usize,
}

/// The programs connected to a display of this machine, those with most connections first; `None` where there are none.
pub fn table(display: u32) -> Option<Table> {
    let holders = holders(&peers(display));
    if holders.is_empty() {
        return None;
    }
    let mut table = Table::new(vec![
        Column::number("CONNECTIONS", 0),
        Column::number("PID", 0),
        Column::words("PROGRAM", 0).elastic(),
    ]);
    for Holder { pid, program, connections } in holders {
        let pid = if pid > 0 { pid.to_string() } else { String::new() };
        table.row(vec![connections.to_string(), pid, program]);
    }
    Some(table)
}

fn holders(peers: &[u32]) -> Vec<Holder> {
    let mut by_inode: HashMap<u64, i32> = HashMap::new();
    for pid in xqos_sys::pids() {
        by_inode.extend(sockets_of(pid).into_iter().map(|inode| (inode, pid)));
    }
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for &inode in peers {
        *counts.entry(by_inode.get(&u64::from(inode)).copied().unwrap_or(0)).or_default() += 1;
    }
    let program = |pid| match pid {
        0 => "(of other users, or in containers: ask as root)".to_owned(),
        pid => crate::client::printable(&xqos_sys::program(pid)),
    };
    let mut holders: Vec<Holder> =
        counts.into_iter().map(|(pid, connections)| Holder { pid, program: program(pid), connections }).collect();
    holders.sort_by_key(|holder| std::cmp::Reverse(holder.connections));
    holders
}

/// Inodes of the sockets at the other ends of a display's connections.
fn peers(display: u32) -> Vec<u32> {
    ask().unwrap_or_default().into_iter().filter(|(of, _)| *of == display).map(|(_, peer)| peer).collect()
}

/// The display and the peer of each connection to a display.
fn ask() -> rustix::io::Result<Vec<(u32, u32)>> {
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

/// All connected sockets of this machine, with names and peers.
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

/// Takes what is told of sockets. False: there is no more.
fn take(mut bytes: &[u8], found: &mut Vec<(u32, u32)>) -> bool {
    while let Some((kind, socket, rest)) = message(bytes) {
        if kind != BY_FAMILY {
            return false;
        }
        let (mut display, mut peer) = (None, None);
        let mut attributes = socket.get(SOCKET_BYTES..).unwrap_or_default();
        while let Some((kind, value, rest)) = attribute(attributes) {
            match kind {
                NAME => display = display_of_socket(String::from_utf8_lossy(value).trim_matches('\0')),
                PEER => peer = value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes)),
                _ => {}
            }
            attributes = rest;
        }
        found.extend(display.zip(peer));
        bytes = rest;
    }
    true
}

/// Cuts the first message off: its kind, what is in it, and what follows.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    Some((kind, bytes.get(HEADER_BYTES..length)?, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The same of an attribute.
fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let kind = u16::from_ne_bytes(*bytes.get(2..)?.first_chunk()?);
    Some((kind, bytes.get(4..length)?, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn connections_to_a_display_are_found_without_asking_its_server() {
        let folder = std::env::temp_dir().join(format!("xqos-connections-{}", std::process::id())).join(".X11-unix");
        std::fs::create_dir_all(&folder).unwrap();
        let display = 200_000 + std::process::id();
        let listener = UnixListener::bind(folder.join(format!("X{display}"))).unwrap();
        let clients = [0, 1].map(|_| UnixStream::connect(folder.join(format!("X{display}"))).unwrap());
        let servers = [0, 1].map(|_| listener.accept().unwrap());
        assert_eq!(peers(display).len(), 2);
        let own = std::process::id() as i32;
        let found = holders(&peers(display));
        assert_eq!(found.iter().map(|holder| (holder.pid, holder.connections)).collect::<Vec<_>>(), [(own, 2)]);
        drop((clients, servers));
        assert!(peers(display).is_empty());
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }

    #[test]
    fn damaged_answers_of_the_kernel_are_read_without_a_panic() {
        let whole = request();
        for length in 0..whole.len() {
            take(&whole[..length], &mut Vec::new());
        }
        assert!(attribute(&[1, 0, 0, 0]).is_none() && message(&[0; 16]).is_none());
    }
}
