// SPDX-License-Identifier: MIT
//! A server with xqos in it, watched from outside: its times are those that it tells.
//!
//! The kernel shows reads, and from one read to the next the server works for whom it read from. With xqos it changes clients
//! between two reads, for it has read their requests before: then some time would be put down to the wrong one.

use super::Client;
use crate::client::{connection, printable};
use crate::sample::{Readings, Server};
use std::time::{Duration, Instant};
use xqos_abi::ClientEntry;
use xqos_client::Control;

/// What a server that hangs is given.
const PATIENCE: Duration = Duration::from_millis(500);

/// `None`: it is not served.
pub fn ask(display: Option<u32>) -> Option<Readings> {
    let control = Control::at_socket(display?, Some(Instant::now() + PATIENCE)).ok()??;
    Readings::of(&control).ok().filter(|told| told.info.armed)
}

/// Puts the server's own times in the place of those that reads show. How long it was busy, ns.
pub fn correct(clients: &mut Vec<Client>, before: &Readings, now: &Readings, elapsed: Duration) -> u64 {
    let cpu_ns = now.list.server_cpu_ns.saturating_sub(before.list.server_cpu_ns);
    let slices_ns = now.info.busy_ns.saturating_sub(before.info.busy_ns);
    let running = Server::new(now, Some(before)).running;
    for client in clients.iter_mut() {
        (client.share, client.busy_ms) = (0.0, 0.0);
    }
    let share = |ms: f64| ms / (elapsed.as_secs_f64() * 1e3).max(1e-6);
    let mut add = |pid: Option<i32>, program: &str, ms: f64| {
        let at = clients.iter().position(|client| client.pid == pid && (pid.is_some() || client.program == program));
        if at.is_none() && ms == 0.0 {
            return;
        }
        let at = at.unwrap_or_else(|| {
            clients.push(Client::new(pid, program.to_owned(), false));
            clients.len() - 1
        });
        clients[at].busy_ms += ms;
        clients[at].share += share(ms);
    };
    for entry in &now.list.clients {
        let ms = spent_ns(entry, before) as f64 * running / 1e6;
        add(Some(entry.pid).filter(|&pid| pid > 0), &printable(&entry.name), ms);
    }
    add(None, super::peers::SERVER, cpu_ns.saturating_sub(slices_ns) as f64 / 1e6);
    clients.retain(|client| client.busy_ms > 0.0 || client.pid.is_some());
    cpu_ns
}

fn spent_ns(entry: &ClientEntry, before: &Readings) -> u64 {
    let is_same = |other: &&ClientEntry| connection(other) == connection(entry);
    let earlier = before.list.clients.iter().find(is_same).map_or(0, |other| other.server_time_ns);
    entry.server_time_ns.saturating_sub(earlier)
}
