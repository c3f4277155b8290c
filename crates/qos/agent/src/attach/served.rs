// SPDX-License-Identifier: MIT
//! For a server that runs xqos, takes the times from the server itself.
//!
//! The kernel's trace attributes the time between two reads to one client. With xqos, the server also switches clients
//! between reads, because it has read their requests earlier. The trace would then attribute some time to the wrong
//! client.

use super::TracedClient;
use super::watch::Usage;
use crate::client::connection;
use crate::sample::departed::since;
use crate::sample::{Readings, ServerSample};
use std::time::{Duration, Instant};
use xqos_abi::ClientEntry;
use xqos_client::Control;
use xqos_text::escape::printable;

/// Time limit for a reply, in case the server hangs.
const PATIENCE: Duration = Duration::from_millis(500);

/// Queries the server; `None` if it does not run xqos.
pub fn ask(display: Option<u32>) -> Option<Readings> {
    let control = Control::at_socket(display?, Some(Instant::now() + PATIENCE)).ok()??;
    Readings::of(&control).ok().filter(|readings| readings.info.armed)
}

/// Replaces the times from the trace with the server's own. Returns how long the server was busy, in nanoseconds.
pub fn correct(clients: &mut Vec<TracedClient>, before: &Readings, now: &Readings, elapsed: Duration) -> u64 {
    let cpu_ns = now.list.server_cpu_ns.saturating_sub(before.list.server_cpu_ns);
    let slices_ns = now.info.busy_ns.saturating_sub(before.info.busy_ns);
    let running = ServerSample::new(now, Some(before)).running;
    clients.iter_mut().for_each(|client| client.used.ns = 0);
    let mut add = |pid: Option<i32>, program: &str, departed: bool, ns: u64| {
        let is_it = |client: &TracedClient| {
            (client.pid, client.departed) == (pid, departed) && (pid.is_some() || client.program == program)
        };
        match clients.iter().position(is_it) {
            Some(at) => clients[at].used.ns += ns,
            None if ns == 0 => {}
            None => {
                let (program, used) = (program.to_owned(), Usage { ns, ..Usage::default() });
                clients.push(TracedClient { pid, program, departed, connections: 0, used, elapsed });
            }
        }
    };
    for entry in &now.list.clients {
        let ns = (spent_ns(entry, before) as f64 * running) as u64;
        add(Some(entry.pid).filter(|&pid| pid > 0), &printable(&entry.name), false, ns);
    }
    for (earlier, sum) in since(&before.client_lists(), &now.client_lists()) {
        let ns = (sum.server_time_ns.saturating_sub(earlier.server_time_ns) as f64 * running) as u64;
        let program = if sum.name.is_empty() { "other".to_owned() } else { printable(&sum.name) };
        add(None, &program, true, ns);
    }
    add(None, super::peers::SERVER, false, cpu_ns.saturating_sub(slices_ns));
    clients.retain(|client| client.used.ns > 0 || client.pid.is_some());
    cpu_ns
}

fn spent_ns(entry: &ClientEntry, before: &Readings) -> u64 {
    let is_same = |other: &&ClientEntry| connection(other) == connection(entry);
    let earlier = before.list.clients.iter().find(is_same).map_or(0, |other| other.server_time_ns);
    entry.server_time_ns.saturating_sub(earlier)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::{ClientList, ServerInfo};

    fn readings(busy_ns: u64, departed: Vec<ClientEntry>) -> Readings {
        let info = ServerInfo { armed: true, busy_ns, ..ServerInfo::default() };
        let list = ClientList { server_cpu_ns: busy_ns, now_ns: busy_ns, clients: Vec::new() };
        Readings { info, list, departed, limit_ppm: 0 }
    }

    #[test]
    fn departed_clients_keep_their_time() {
        let left = |server_time_ns| ClientEntry { name: "xwd".into(), server_time_ns, ..ClientEntry::default() };
        let (before, now) = (readings(1000, vec![left(100)]), readings(2000, vec![left(700)]));
        let elapsed = Duration::from_secs(1);
        let used = Usage { ns: 5, calls: 3, longest_ns: 4 };
        let mut clients =
            vec![TracedClient { pid: None, program: "xwd".to_owned(), departed: true, connections: 2, used, elapsed }];
        assert_eq!(correct(&mut clients, &before, &now, elapsed), 1000);
        assert_eq!((clients.len(), clients[0].used.ns, clients[0].connections), (1, 600, 2));
    }
}
