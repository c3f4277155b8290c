// SPDX-License-Identifier: MIT
//! A short look at several servers at once, by one trace of the kernel.

use super::account::Account;
use super::instance::Instance;
use super::peers::Peers;
use anyhow::Result;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub use super::account::Use;

/// What was seen in a look.
#[derive(Debug)]
pub struct Looked {
    pub elapsed_ns: u64,
    /// Events that the kernel had no room for.
    pub lost: u64,
    servers: HashMap<i32, Vec<Seen>>,
}

/// What a server did for the program at the other end of a descriptor.
#[derive(Clone, Debug)]
pub struct Seen {
    pub pid: Option<i32>,
    pub program: String,
    pub used: Use,
}

/// Looks at these processes for this time. One that has gone has nothing.
pub fn look(pids: &[i32], time: Duration) -> Result<Looked> {
    let mut servers: HashMap<i32, (Account, Peers)> =
        pids.iter().filter_map(|&pid| Some((pid, (Account::default(), Peers::of(pid).ok()?)))).collect();
    let mut instance = Instance::start(pids)?;
    let (begin, mut left) = (Instant::now(), time);
    while !left.is_zero() {
        std::thread::sleep(left.min(super::EMPTY));
        instance.read(|event| {
            if let Some((account, peers)) = servers.get_mut(&event.pid) {
                peers.take(event, account);
            }
        })?;
        servers.values_mut().for_each(|(_, peers)| peers.look_at_new());
        left = time.saturating_sub(begin.elapsed());
    }
    let (elapsed_ns, lost) = (begin.elapsed().as_nanos() as u64, instance.lost());
    drop(instance);
    let servers = servers.into_iter().map(|(pid, (account, peers))| (pid, seen(account, peers))).collect();
    Ok(Looked { elapsed_ns, lost, servers })
}

impl Looked {
    pub fn take(&mut self, pid: i32) -> Vec<Seen> {
        self.servers.remove(&pid).unwrap_or_default()
    }
}

fn seen(mut account: Account, mut peers: Peers) -> Vec<Seen> {
    let seen = account.finish().into_iter().map(|(descriptor, used)| {
        let (pid, program) = peers.name(descriptor);
        Seen { pid, program, used }
    });
    seen.collect()
}
