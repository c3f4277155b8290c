// SPDX-License-Identifier: MIT
//! Watches several servers with one kernel trace.

use super::account::{DescriptorAccount, is_closed};
use super::events::{Event, WAITS};
use super::peers::Peers;
use crate::error::{Error, Result, bail, refused};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use xqos_cli::program::one_line;
use xqos_trace::tracefs;

pub use super::account::Usage;

/// System calls to trace in addition to the waits.
const CALLS: [&str; 6] = ["enter_recvmsg", "enter_recvfrom", "enter_read", "enter_readv", "enter_close", "exit_openat"];
/// Buffer for each processor. A busy server makes around 100,000 calls per second, each of less than 64 bytes.
const BUFFER_KB: &str = "8192";
/// How often the kernel's buffer is read. A client that connects and disconnects between two reads has no name.
pub const READ_INTERVAL: Duration = Duration::from_millis(10);

/// Servers under observation, until this value is dropped.
#[derive(Debug)]
pub struct ServerWatch {
    pub trace: tracefs::Instance,
    servers: HashMap<i32, (DescriptorAccount, Peers)>,
}

/// Work of a server for the program at the other end of a descriptor.
#[derive(Clone, Debug)]
pub struct PeerUse {
    pub pid: Option<i32>,
    pub program: String,
    pub departed: bool,
    pub used: Usage,
}

impl ServerWatch {
    /// Starts the trace. Processes that have ended are skipped.
    pub fn start(pids: &[i32]) -> Result<ServerWatch> {
        let server = |&pid: &i32| Some((pid, (DescriptorAccount::default(), Peers::of(pid).ok()?)));
        let mut watch = ServerWatch { trace: trace_of(pids)?, servers: pids.iter().filter_map(server).collect() };
        // Discard what was traced while the events were enabled one by one: the caller's time begins now.
        watch.read()?;
        watch.servers.values_mut().for_each(|(account, _)| _ = account.finish());
        Ok(watch)
    }

    /// Reads all events up to now.
    pub fn read(&mut self) -> Result<()> {
        let servers = &mut self.servers;
        let take = |line: &str| {
            let event = Event::parse(line);
            if let Some((event, (account, peers))) = event.and_then(|event| Some((event, servers.get_mut(&event.pid)?)))
            {
                peers.take(event, account);
            }
            true
        };
        self.trace.read(take).map_err(|error| untraced(one_line(&error)))?;
        self.servers.values_mut().for_each(|(_, peers)| peers.look_up_new());
        Ok(())
    }

    /// Work of a server since the last call.
    pub fn take_usage(&mut self, pid: i32) -> Vec<PeerUse> {
        let Some((account, peers)) = self.servers.get_mut(&pid) else { return Vec::new() };
        let seen = account.finish().into_iter().map(|(descriptor, used)| {
            let (pid, program) = peers.name(descriptor);
            PeerUse { pid, program, departed: is_closed(descriptor), used }
        });
        seen.collect()
    }
}

/// Starts a kernel trace of the system calls that the main threads of these processes make.
fn trace_of(pids: &[i32]) -> Result<tracefs::Instance> {
    let trace = tracefs::Instance::create().map_err(|error| refused!("{}", one_line(&error)))?;
    trace.write("buffer_size_kb", BUFFER_KB).map_err(|error| untraced(one_line(&error)))?;
    let watched: Vec<String> = pids.iter().map(i32::to_string).collect();
    trace.write("set_event_pid", &watched.join(" ")).map_err(|error| untraced(one_line(&error)))?;
    let waits = WAITS.iter().flat_map(|call| [format!("enter_{call}"), format!("exit_{call}")]);
    for call in CALLS.map(str::to_owned).into_iter().chain(waits) {
        let event = format!("events/syscalls/sys_{call}/enable");
        // Not every architecture has all of these calls.
        if trace.folder().join(&event).exists() {
            trace.write(&event, "1").map_err(|error| untraced(one_line(&error)))?;
        } else if call == CALLS[0] {
            bail!("{UNTRACED}: this kernel has no system call events (CONFIG_FTRACE_SYSCALLS)");
        }
    }
    Ok(trace)
}

const UNTRACED: &str = "cannot trace system calls";

fn untraced(why: String) -> Error {
    refused!("{UNTRACED}: {why}")
}

/// Watches these servers for `time`. Also returns the actual time in nanoseconds.
pub fn watch_for(pids: &[i32], time: Duration) -> Result<(ServerWatch, u64)> {
    let mut watch = ServerWatch::start(pids)?;
    let (begin, mut left) = (Instant::now(), time);
    while !left.is_zero() {
        std::thread::sleep(left.min(READ_INTERVAL));
        watch.read()?;
        left = time.saturating_sub(begin.elapsed());
    }
    Ok((watch, begin.elapsed().as_nanos() as u64))
}
