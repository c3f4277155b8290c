// SPDX-License-Identifier: MIT
//! Displays of this machine: which ones have a server, and which have clients. The data come from the kernel's tables:
//! no server is woken, and servers that hang or refuse clients are found too.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::Path;
use xqos_abi::control::display_of_socket;
use xqos_sys::proc::{name, sockets};
use xqos_sys::sockets::{TcpSocket, UnixSocket, tcp, unix};
use xqos_text::table::{Column, TextTable};

#[derive(Debug, Default)]
pub struct Displays {
    /// Inodes of listening sockets with their displays.
    listening: Vec<(u64, u32)>,
    /// Number of connections for each display, including those that the server has not accepted yet.
    connections: BTreeMap<u32, usize>,
    /// Inodes of listening sockets of Wayland compositors.
    wayland: HashSet<u64>,
}

impl Displays {
    pub fn read() -> Displays {
        let own = std::process::id() as i32;
        let mut displays = Displays::of(unix(own).unwrap_or_default());
        displays.keep_servers(|display, inodes| owner(Path::new("/tmp"), display, inodes));
        displays.add_tcp(&tcp(own).unwrap_or_default());
        displays
    }

    /// Numbers of the displays, sorted and without duplicates.
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.listening.iter().map(|&(_, display)| display).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    pub fn has_clients(&self, display: u32) -> bool {
        self.connections.contains_key(&display)
    }

    /// True if a test connection does not affect the display's server. Without -noreset, a server with no other client
    /// resets or exits when a connection ends, even one that it has refused. Systemd and Wayland compositors start a
    /// server when a client connects.
    pub fn can_be_checked(&self, display: u32) -> bool {
        let lock = fs::read_to_string(format!("/tmp/.X{display}-lock")).ok();
        let owner = lock.and_then(|lock| lock.trim().parse().ok()).filter(|&pid| is_server(pid));
        let listeners = owner.map_or_else(|| self.listeners(display), |pid| vec![pid]);
        let starts_servers = |&pid: &i32| {
            let is_starter = name(pid).is_none_or(|name| name == "systemd" || name.starts_with("xwayland"));
            is_starter || !sockets(pid).is_disjoint(&self.wayland)
        };
        match listeners.iter().find(|&&pid| is_server(pid)) {
            Some(&server) => stays_after_a_connection(server),
            None => !listeners.is_empty() && !listeners.iter().any(starts_servers),
        }
    }

    /// Processes that have the display's socket, except those whose sockets this user may not inspect.
    pub fn listeners(&self, display: u32) -> Vec<i32> {
        let inodes: HashSet<u64> = self.inodes(display).into_iter().collect();
        xqos_sys::pids().into_iter().filter(|&pid| !sockets(pid).is_disjoint(&inodes)).collect()
    }

    fn inodes(&self, display: u32) -> Vec<u64> {
        self.listening.iter().filter(|&&(_, of)| of == display).map(|&(inode, _)| inode).collect()
    }

    /// Drops a forwarder's displays: its clients belong to another display, and its capture would show our queries.
    fn keep_servers(&mut self, owner: impl Fn(u32, &[u64]) -> Option<String>) {
        for display in self.numbers() {
            if owner(display, &self.inodes(display)).is_some_and(|program| passes_on(&program)) {
                self.listening.retain(|&(_, of)| of != display);
            }
        }
    }

    fn of(unix: Vec<UnixSocket>) -> Displays {
        let mut displays = Displays::default();
        for UnixSocket { listens, is_connected, inode, path } in unix {
            match display_of_socket(path.strip_prefix('@').unwrap_or(&path)) {
                Some(display) if listens => displays.listening.push((inode, display)),
                Some(display) if is_connected => *displays.connections.entry(display).or_default() += 1,
                None if listens && path.contains("/wayland-") => _ = displays.wayland.insert(inode),
                _ => {}
            }
        }
        displays
    }

    fn add_tcp(&mut self, tcp: &[TcpSocket]) {
        const FIRST_PORT: u16 = 6000;
        let of_connected = tcp.iter().filter(|socket| socket.is_connected).map(|socket| socket.port);
        for display in of_connected.filter_map(|port| port.checked_sub(FIRST_PORT)).map(u32::from) {
            if self.listening.iter().any(|&(_, of)| of == display) {
                *self.connections.entry(display).or_default() += 1;
            }
        }
    }
}

pub fn is_server_name(program: &str) -> bool {
    program.starts_with('X') || program == "nxagent"
}

fn is_server(pid: i32) -> bool {
    name(pid).is_some_and(|name| is_server_name(&name))
}

fn stays_after_a_connection(server: i32) -> bool {
    let command = xqos_sys::proc::command_line(server);
    let has = |option: &[u8]| command.split(|&byte| byte == 0).any(|argument| argument == option);
    has(b"-noreset") && !has(b"-terminate")
}

/// Returns true for programs that forward X connections: xqos-wire (`near`, `cap`) and sshd.
fn passes_on(program: &str) -> bool {
    program == "xqos-wire" || program.starts_with("sshd")
}

/// The program that listens on a display. Servers and our forwarders write their pid to a lock file that every user can
/// read. Without a lock file, look for a forwarder that has the socket, as far as permissions allow.
fn owner(folder: &Path, display: u32, inodes: &[u64]) -> Option<String> {
    if let Ok(lock) = fs::read_to_string(folder.join(format!(".X{display}-lock"))) {
        return name(lock.trim().parse().ok()?);
    }
    let relays = xqos_sys::pids().into_iter().filter(|&pid| name(pid).is_some_and(|name| passes_on(&name)));
    let has_it = |pid: &i32| sockets(*pid).iter().any(|inode| inodes.contains(inode));
    relays.filter(has_it).find_map(name)
}

/// The programs connected to a display of this machine, most connections first; `None` if there are none.
pub fn connections(display: u32) -> Option<TextTable> {
    let holders = holders(&peers(display));
    if holders.is_empty() {
        return None;
    }
    let mut table = TextTable::new(vec![
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
    use xqos_sys::sockets::{parse_tcp, parse_unix};

    const UNIX: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n\
        0: 00000002 00000000 00010000 0001 01 623435 @/tmp/.X11-unix/X44\n\
        0: 00000002 00000000 00010000 0001 01 623436 /tmp/.X11-unix/X44\n\
        0: 00000003 00000000 00000000 0001 03 623437 /tmp/.X11-unix/X44\n\
        0: 00000002 00000000 00010000 0001 01 623438 @/tmp/.X11-unix/X5\n\
        0: 00000003 00000000 00000000 0001 02     0 /tmp/.X11-unix/X6\n\
        0: 00000002 00000000 00010000 0001 01 8 /run/user/1000/wayland-0\n\
        0: 00000002 00000000 00010000 0001 01 7 /run/other\n\
        0: 00000003 00000000 00000000 0001 03 9\nnonsense\n";

    #[test]
    fn display_sockets_are_recognized() {
        let displays = Displays::of(parse_unix(UNIX));
        assert_eq!(displays.listening, [(623_435, 44), (623_436, 44), (623_438, 5)]);
        assert_eq!(displays.numbers(), [5, 44]);
        assert!(displays.has_clients(44) && !displays.has_clients(5));
        assert!(displays.has_clients(6), "one connection is not accepted yet");
        assert_eq!(displays.wayland, HashSet::from([8]));
    }

    #[test]
    fn a_display_is_not_checked_if_a_connection_might_start_its_server() {
        let folder = std::env::temp_dir().join(format!("xqos-started-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let listen = |name: &str| UnixListener::bind(folder.join(name)).unwrap();
        let (_x11, _wayland) = (listen("x11"), listen("wayland"));
        let inode = |name: &str| {
            let all = unix(std::process::id() as i32).unwrap();
            all.iter().find(|socket| Path::new(&socket.path) == folder.join(name)).unwrap().inode
        };
        let mut displays = Displays { listening: vec![(inode("x11"), 44), (u64::MAX, 5)], ..Displays::default() };
        assert!(displays.can_be_checked(44) && !displays.can_be_checked(5), "display 5 has no known listener");
        displays.wayland.insert(inode("wayland"));
        assert!(!displays.can_be_checked(44), "a Wayland compositor listens");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn remote_clients_count() {
        let mut displays = Displays::of(parse_unix(UNIX));
        displays.add_tcp(&parse_tcp(
            "  sl  local_address rem_address   st tx_queue\n\
             0: 0100007F:1775 0100007F:A0F2 0A 0\n1: 0100007F:1771 0100007F:A0F2 01 0\nnonsense\n",
        ));
        assert!(!displays.has_clients(5), "one only listens, and the other belongs to no display");
        displays.add_tcp(&parse_tcp(" 0: 0100007F:1775 0100007F:A0F2 01 0\n"));
        assert!(displays.has_clients(5));
    }

    #[test]
    fn a_forwarder_is_no_server() {
        for (program, left) in [("xqos-wire", vec![5]), ("sshd-session", vec![5]), ("Xorg", vec![5, 44])] {
            let mut displays = Displays::of(parse_unix(UNIX));
            displays.keep_servers(|display, inodes| {
                assert_eq!(inodes.len(), if display == 44 { 2 } else { 1 });
                (display == 44).then(|| program.to_owned())
            });
            assert_eq!(displays.numbers(), left, "{program}");
        }
    }

    #[test]
    fn a_display_belongs_to_the_process_in_its_lock() {
        let own = std::process::id();
        let folder = std::env::temp_dir().join(format!("xqos-displays-{own}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(".X7-lock"), format!("{own:>10}\n")).unwrap();
        let owners = [7, 8].map(|display| owner(&folder, display, &[]));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(owners, [name(own as i32), None], "without a lock and a process with the socket");
    }

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
