// SPDX-License-Identifier: MIT
//! Displays of this machine: who listens for clients, and whether anybody has come; from the kernel's tables, so that no server
//! is woken.

use std::collections::BTreeMap;
use std::fs;
use xqos_abi::control::display_of_socket;

/// Inodes of listening sockets, with their displays.
pub type Listening = Vec<(u64, u32)>;

/// Sockets of displays at an instant.
#[derive(Debug, Default)]
pub struct Displays {
    pub listening: Listening,
    /// Connections of each display.
    connections: BTreeMap<u32, usize>,
}

impl Displays {
    pub fn look() -> Displays {
        let table = |name: &str| fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        let mut displays = Displays::of(&table("unix"));
        for name in ["tcp", "tcp6"] {
            displays.add_tcp(&table(name));
        }
        displays
    }

    /// Each display once, in order.
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.listening.iter().map(|&(_, display)| display).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    pub fn has_clients(&self, display: u32) -> bool {
        self.connections.contains_key(&display)
    }

    /// By the kernel's table of Unix sockets. The server's end of a connection has the path at which it listens.
    fn of(unix: &str) -> Displays {
        const ACCEPTS: &str = "00010000";
        const CONNECTED: &str = "03";
        let mut displays = Displays::default();
        for line in unix.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, _, _, flags, _, state, inode, path] = fields[..] else { continue };
            let Some(display) = display_of_socket(path.strip_prefix('@').unwrap_or(path)) else { continue };
            match (flags, inode.parse()) {
                (ACCEPTS, Ok(inode)) => displays.listening.push((inode, display)),
                _ if state == CONNECTED => *displays.connections.entry(display).or_default() += 1,
                _ => {}
            }
        }
        displays
    }

    /// Clients of other machines, where a server lets them.
    fn add_tcp(&mut self, tcp: &str) {
        const FIRST_PORT: u32 = 6000;
        const ESTABLISHED: &str = "01";
        for line in tcp.lines() {
            let mut fields = line.split_whitespace().skip(1);
            let (Some(local), _, Some(ESTABLISHED)) = (fields.next(), fields.next(), fields.next()) else { continue };
            let port = local.rsplit_once(':').and_then(|(_, port)| u32::from_str_radix(port, 16).ok());
            let display = port.and_then(|port| port.checked_sub(FIRST_PORT));
            if let Some(display) = display.filter(|&display| self.listening.iter().any(|&(_, of)| of == display)) {
                *self.connections.entry(display).or_default() += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIX: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n\
        0: 00000002 00000000 00010000 0001 01 623435 @/tmp/.X11-unix/X44\n\
        0: 00000002 00000000 00010000 0001 01 623436 /tmp/.X11-unix/X44\n\
        0: 00000003 00000000 00000000 0001 03 623437 /tmp/.X11-unix/X44\n\
        0: 00000002 00000000 00010000 0001 01 623438 @/tmp/.X11-unix/X5\n\
        0: 00000002 00000000 00010000 0001 01 7 /run/other\n\
        0: 00000003 00000000 00000000 0001 03 9\nnonsense\n";

    #[test]
    fn sockets_of_displays_are_told_from_others() {
        let displays = Displays::of(UNIX);
        assert_eq!(displays.listening, [(623_435, 44), (623_436, 44), (623_438, 5)]);
        assert_eq!(displays.numbers(), [5, 44]);
        assert!(displays.has_clients(44) && !displays.has_clients(5));
    }

    #[test]
    fn clients_of_other_machines_count() {
        let mut displays = Displays::of(UNIX);
        displays.add_tcp(
            "  sl  local_address rem_address   st tx_queue\n\
             0: 0100007F:1775 0100007F:A0F2 0A 0\n1: 0100007F:1771 0100007F:A0F2 01 0\nnonsense\n",
        );
        assert!(!displays.has_clients(5), "it only listens, and the other is nobody's here");
        displays.add_tcp(" 0: 0100007F:1775 0100007F:A0F2 01 0\n");
        assert!(displays.has_clients(5));
    }
}
