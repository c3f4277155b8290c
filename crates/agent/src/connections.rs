// SPDX-License-Identifier: MIT
//! Lists the programs connected to a display from the kernel's socket table. The server is not queried, so this works
//! even if it accepts no clients or does not answer.

use std::collections::{BTreeMap, HashMap};
use xqos_abi::control::display_of_socket;
use xqos_text::table::{Column, Table};

/// The programs connected to a display of this machine, most connections first; `None` if there are none.
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
    for (pid, connections) in holders {
        let (pid, program) = match pid {
            0 => (String::new(), "(of other users or in containers: run this as root)".to_owned()),
            pid => (pid.to_string(), xqos_text::escape::printable(&xqos_sys::program(pid))),
        };
        table.row(vec![connections.to_string(), pid, program]);
    }
    Some(table)
}

/// Connected processes with their number of connections; pid 0 stands for all processes that we may not inspect.
fn holders(peers: &[u32]) -> Vec<(i32, usize)> {
    let mut by_inode: HashMap<u64, i32> = HashMap::new();
    for pid in xqos_sys::pids() {
        // A child that inherits a socket is listed later than the process that has opened it.
        xqos_sys::proc::sockets(pid).into_iter().for_each(|inode| _ = by_inode.entry(inode).or_insert(pid));
    }
    let mut counts: BTreeMap<i32, usize> = BTreeMap::new();
    for &inode in peers {
        *counts.entry(by_inode.get(&u64::from(inode)).copied().unwrap_or(0)).or_default() += 1;
    }
    let mut holders: Vec<(i32, usize)> = counts.into_iter().collect();
    holders.sort_by_key(|&(_, connections)| std::cmp::Reverse(connections));
    holders
}

/// Inodes of the sockets of a display's clients.
fn peers(display: u32) -> Vec<u32> {
    let connected = xqos_sys::sockets::connected_unix().unwrap_or_default().into_iter();
    connected.filter(|(name, _)| display_of_socket(name) == Some(display)).map(|(_, peer)| peer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn connections_are_found_without_asking_the_server() {
        let folder = std::env::temp_dir().join(format!("xqos-connections-{}", std::process::id())).join(".X11-unix");
        std::fs::create_dir_all(&folder).unwrap();
        let display = 200_000 + std::process::id();
        let listener = UnixListener::bind(folder.join(format!("X{display}"))).unwrap();
        let clients = [0, 1].map(|_| UnixStream::connect(folder.join(format!("X{display}"))).unwrap());
        let servers = [0, 1].map(|_| listener.accept().unwrap());
        assert_eq!(peers(display).len(), 2);
        let own = std::process::id() as i32;
        assert_eq!(holders(&peers(display)), [(own, 2)]);
        drop((clients, servers));
        assert!(peers(display).is_empty());
        std::fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    }
}
