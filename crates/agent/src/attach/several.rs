// SPDX-License-Identifier: MIT
//! Several servers watched by one trace of the kernel.

use super::account::{Account, is_closed};
use super::instance::Instance;
use super::peers::Peers;
use anyhow::Result;
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub use super::account::Use;

/// The kernel's buffer is emptied so often. Who comes and goes meanwhile has no name.
pub const EMPTY: Duration = Duration::from_millis(10);

/// Servers that are watched until this is dropped.
#[derive(Debug)]
pub struct Watch {
    instance: Instance,
    servers: HashMap<i32, (Account, Peers)>,
}

/// What a server did for the program at the other end of a descriptor.
#[derive(Clone, Debug)]
pub struct Seen {
    pub pid: Option<i32>,
    pub program: String,
    /// The connection was closed meanwhile.
    pub departed: bool,
    pub used: Use,
}

impl Watch {
    /// One that has gone has nothing.
    pub fn start(pids: &[i32]) -> Result<Watch> {
        let server = |&pid: &i32| Some((pid, (Account::default(), Peers::of(pid).ok()?)));
        Ok(Watch { instance: Instance::start(pids)?, servers: pids.iter().filter_map(server).collect() })
    }

    /// Takes what has happened.
    pub fn read(&mut self) -> Result<()> {
        self.instance.read(|event| {
            if let Some((account, peers)) = self.servers.get_mut(&event.pid) {
                peers.take(event, account);
            }
        })?;
        self.servers.values_mut().for_each(|(_, peers)| peers.look_at_new());
        Ok(())
    }

    /// What a server did since this was asked the last time.
    pub fn seen(&mut self, pid: i32) -> Vec<Seen> {
        let Some((account, peers)) = self.servers.get_mut(&pid) else { return Vec::new() };
        let seen = account.finish().into_iter().map(|(descriptor, used)| {
            let (pid, program) = peers.name(descriptor);
            Seen { pid, program, departed: is_closed(descriptor), used }
        });
        seen.collect()
    }

    /// Events that the kernel had no room for.
    pub fn lost(&self) -> u64 {
        self.instance.lost()
    }
}

/// Watches for this time; tells how long that was.
pub fn look(pids: &[i32], time: Duration) -> Result<(Watch, u64)> {
    let mut watch = Watch::start(pids)?;
    let (begin, mut left) = (Instant::now(), time);
    while !left.is_zero() {
        std::thread::sleep(left.min(EMPTY));
        watch.read()?;
        left = time.saturating_sub(begin.elapsed());
    }
    Ok((watch, begin.elapsed().as_nanos() as u64))
}
