// SPDX-License-Identifier: MIT
//! Finds the program at the other end of a server's descriptor.

use super::account::{DescriptorAccount, UNKNOWN, is_closed};
use super::events::{Call, Event};
use crate::error::{Result, asking, refused};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use xqos_sys::{self as sys, proc};
use xqos_text::escape::printable;

/// Work that is not for a client: input, viewers, timers.
pub const SERVER: &str = "(the server itself)";
/// The process had ended when its connection was looked up.
const GONE: &str = "(gone)";
/// The client connected and disconnected between two lookups.
const SHORT_LIVED: &str = "(short-lived)";

/// Peers of one server. A descriptor is looked up soon after its first use, so a client that disconnects before the
/// table is printed is still named. Only a client that connects and disconnects between two lookups has no name.
#[derive(Debug)]
pub struct Peers {
    pid: i32,
    process: OwnedFd,
    known: HashMap<i32, Peer>,
    /// Descriptors used since the last lookup.
    unseen: Vec<i32>,
    /// Files that the server has opened. Reading one of them is work for the current client.
    files: HashSet<i32>,
}

#[derive(Clone, Debug)]
struct Peer {
    pid: Option<i32>,
    program: String,
}

impl Peers {
    pub fn of(pid: i32) -> Result<Peers> {
        let process = Pid::from_raw(pid).ok_or_else(|| refused!("0 is not a process"))?;
        let process = pidfd_open(process, PidfdFlags::empty()).map_err(asking(format!("there is no process {pid}")))?;
        Ok(Peers { pid, process, known: HashMap::new(), unseen: Vec::new(), files: HashSet::new() })
    }

    /// Takes an event of the server and passes it on to the account.
    pub fn take(&mut self, event: Event, account: &mut DescriptorAccount) {
        match event.call {
            Call::Opened(descriptor) => _ = self.files.insert(descriptor),
            Call::Read(descriptor) if self.files.contains(&descriptor) => return,
            Call::Close(descriptor) if self.files.remove(&descriptor) => return,
            Call::Close(descriptor) => {
                self.unseen.retain(|&one| one != descriptor);
                let peer = self.known.remove(&descriptor).filter(|peer| peer.program != GONE);
                let number = account.close(descriptor);
                if let (Some(peer), Some(number)) = (peer, number) {
                    self.known.insert(number, Peer { pid: None, ..peer });
                }
            }
            Call::Read(descriptor) if !self.known.contains_key(&descriptor) && !self.unseen.contains(&descriptor) => {
                self.unseen.push(descriptor);
            }
            _ => {}
        }
        account.take(event);
    }

    /// Looks up the open descriptors that were first used since the last call.
    pub fn look_up_new(&mut self) {
        for descriptor in std::mem::take(&mut self.unseen) {
            let peer = self.look_up(descriptor);
            self.known.insert(descriptor, peer);
        }
    }

    /// Returns process and name for a table. Removes the entry, because the next client may get the same descriptor.
    pub fn name(&mut self, descriptor: i32) -> (Option<i32>, String) {
        let peer = self.known.remove(&descriptor).unwrap_or_else(|| self.look_up(descriptor));
        (peer.pid, peer.program)
    }

    fn look_up(&self, descriptor: i32) -> Peer {
        if is_closed(descriptor) {
            return Peer { pid: None, program: SHORT_LIVED.to_owned() };
        }
        if descriptor == UNKNOWN {
            return Peer { pid: None, program: "(unknown, read earlier)".to_owned() };
        }
        let Some(file) = proc::open_file(self.pid, descriptor) else {
            return Peer { pid: None, program: SHORT_LIVED.to_owned() };
        };
        if !file.display().to_string().starts_with("socket:") {
            return Peer { pid: None, program: SERVER.to_owned() };
        }
        // Duplicate the socket briefly, because the kernel reports the peer to any process that has the socket.
        let socket = pidfd_getfd(&self.process, descriptor, PidfdGetfdFlags::empty());
        match socket.ok().as_ref().and_then(sys::peer_pid) {
            Some(pid) => Peer { pid: Some(pid), program: program_of(pid) },
            None => Peer { pid: None, program: format!("(remote, descriptor {descriptor})") },
        }
    }
}

fn program_of(pid: i32) -> String {
    let program = xqos_sys::program(pid);
    // Cut the name to the length that a server with xqos reports, so that both report the same name.
    let printable = printable(xqos_abi::cut(&program));
    if printable.is_empty() { GONE.to_owned() } else { printable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_a_file_counts_for_the_current_client() {
        let mut peers = Peers::of(std::process::id() as i32).unwrap();
        let mut account = DescriptorAccount::default();
        // The calls of a server that looks up the program of a new client.
        let calls =
            [Call::Read(900), Call::Opened(901), Call::Read(901), Call::Close(901), Call::Close(900), Call::Wait];
        for (at_ns, call) in (0..).step_by(10).zip(calls) {
            peers.take(Event { pid: 1, at_ns, call }, &mut account);
        }
        let uses = account.finish();
        let [(client, used)] = &uses[..] else { panic!("{uses:?}") };
        assert_eq!((used.ns, used.calls, is_closed(*client)), (50, 1, true));
        assert_eq!(peers.name(*client), (None, SHORT_LIVED.to_owned()));
    }
}
