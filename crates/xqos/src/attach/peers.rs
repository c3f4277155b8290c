// SPDX-License-Identifier: MIT
//! Which program is at the other end of a server's descriptor.

use super::account::UNKNOWN;
use crate::client::printable;
use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::collections::HashMap;
use std::fs;
use std::os::fd::OwnedFd;
use xqos_cli::sys;

/// Work for nobody: input, viewers, timers.
pub const SERVER: &str = "(the server itself)";

/// Of one server. A descriptor is looked at when it is seen first, and again when another file is behind it: who has gone
/// by the time of the table has a name all the same.
#[derive(Debug)]
pub struct Peers {
    pid: i32,
    process: OwnedFd,
    known: HashMap<i32, Peer>,
}

#[derive(Clone, Debug)]
struct Peer {
    pid: Option<i32>,
    program: String,
}

impl Peers {
    pub fn of(pid: i32) -> Result<Peers> {
        let process = Pid::from_raw(pid).context("0 is no process")?;
        let process = pidfd_open(process, PidfdFlags::empty()).with_context(|| format!("there is no process {pid}"))?;
        Ok(Peers { pid, process, known: HashMap::new() })
    }

    /// The server reads from this descriptor.
    pub fn see(&mut self, descriptor: Option<i32>) {
        if let Some(descriptor) = descriptor.filter(|descriptor| !self.known.contains_key(descriptor)) {
            let peer = self.look(descriptor);
            self.known.insert(descriptor, peer);
        }
    }

    /// Its name, for a table; forgotten then, since the next client may get the same descriptor.
    pub fn name(&mut self, descriptor: i32) -> (Option<i32>, String) {
        let peer = self.known.remove(&descriptor).unwrap_or_else(|| self.look(descriptor));
        (peer.pid, peer.program)
    }

    fn look(&self, descriptor: i32) -> Peer {
        if descriptor == UNKNOWN {
            return Peer { pid: None, program: "(read before, not known)".to_owned() };
        }
        let file = fs::read_link(format!("/proc/{}/fd/{descriptor}", self.pid));
        let file = file.map(|path| path.display().to_string()).unwrap_or_default();
        if !file.starts_with("socket:") {
            return Peer { pid: None, program: SERVER.to_owned() };
        }
        // A copy for a moment: the kernel tells who is at the other end to whoever has the socket.
        let socket = pidfd_getfd(&self.process, descriptor, PidfdGetfdFlags::empty());
        match socket.ok().as_ref().and_then(sys::peer_pid) {
            Some(pid) => Peer { pid: Some(pid), program: program_of(pid) },
            None => Peer { pid: None, program: format!("(not on this machine, descriptor {descriptor})") },
        }
    }
}

fn program_of(pid: i32) -> String {
    let program = xqos_proc::program(pid);
    // As long as a server that carries xqos gives it, so that both have one name for a program.
    let printable = printable(xqos_abi::cut(&program));
    if printable.is_empty() { "(gone)".to_owned() } else { printable }
}
