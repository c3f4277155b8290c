// SPDX-License-Identifier: MIT
//! The interface between the mechanism and a host.

use crate::mechanism::access::Identity;
use std::io;
use std::os::fd::OwnedFd;
use xqos_core::{ClientId, Supply, Time};

#[derive(Clone, Copy, Debug)]
pub struct NewConnection {
    pub identity: Identity,
    /// The first resource id of the client.
    pub base: u32,
    /// The number of resource ids per client. It is the same for all clients of a server.
    pub ids: u32,
    /// The client's socket. The policy `classic` serves clients in the order of their sockets.
    pub descriptor: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub client: ClientId,
    /// The number of requests executed; 0 if the server only set up the client or read from it.
    pub requests: u32,
    /// The total size of those requests, if the host counts bytes.
    pub bytes: u64,
    /// Major opcode + 65536 x minor opcode.
    pub last_request: u32,
    /// The client has more requests waiting.
    pub still_ready: bool,
    /// A request was executed in part and handed back, to be dispatched again.
    pub is_cut: bool,
    /// If a request that was executed in parts has ended: its processor time, and that of its longest part.
    pub in_parts_ns: Option<(u64, u64)>,
}

/// Totals of the cutting of long requests since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutTotals {
    pub requests: u64,
    pub parts: u64,
    /// How often another client was served between two parts.
    pub cuts: u64,
    /// Requests whose rest was executed early, because another request could have observed the difference.
    pub finished: u64,
}

/// The rest of a client's request was executed in another client's slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedRest {
    pub client: ClientId,
    pub request: u32,
    pub ns: u64,
}

/// What the mechanism needs to observe about each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObservedRequests {
    /// Requests are counted, and a slice ends after a fixed number of them (policy `classic`).
    pub counted: bool,
    /// The trace records the time of each request.
    pub timed: bool,
    /// A trace is being read, so the number of requests in each slice must be exact.
    pub exact: bool,
}

/// What the server and the kernel know about a client that is set up.
#[derive(Clone, Debug, Default)]
pub struct Established {
    pub program: String,
    /// The control group of the client's application, if it has one.
    pub control_group: Option<String>,
    /// The network address of a client on another machine.
    pub host: Option<String>,
}

/// The mechanism's queries to a server. Its commands are [`Action`](crate::mechanism::action::Action)s. The default
/// methods are for a server of which only the libc calls are known.
pub trait Host {
    /// Why xqos cannot serve a server, or cannot continue to serve it.
    type Error: std::error::Error;

    // The process and its thread. These readings cost a system call or more, so they are taken only when needed.

    /// The user that the server runs as.
    fn user(&self) -> u32;
    /// Processor time of the server's thread in nanoseconds.
    fn cpu_ns(&self) -> u64;
    /// How long the server's thread has run, and how long it has been ready to run without a processor, if the kernel
    /// reports it.
    fn run_times_ns(&self) -> Option<(u64, u64)>;
    /// The processor reservation that the kernel grants the server's thread.
    fn supply(&self) -> Supply;
    /// Prepares to raise the server's thread.
    fn begin_loan(&mut self) -> io::Result<()>;
    /// The number of times that the thread was raised.
    fn raises(&self) -> u32;

    // The server.

    /// The number of screens; 0 until it is known.
    fn screens(&self) -> usize {
        0
    }
    /// A resource id of the client that redirects the top-level windows of this screen, if any client does.
    fn redirector(&self, _screen: usize) -> Option<u32> {
        None
    }
    /// Resource ids of the clients that have grabbed the pointer and the keyboard; 0 if not grabbed or not known.
    fn device_grabs(&self) -> [u32; 2] {
        [0; 2]
    }
    /// The approximate memory of the host in bytes.
    fn memory_bytes(&self) -> usize;

    // Clients.

    /// False once the client's connection is closed, even before `gone` is called.
    fn is_open(&self, client: ClientId) -> bool;
    /// The identity of a control connection's peer. The ids of control connections start at [`ClientId::LIMIT`].
    fn identity_of_control(&self, asker: ClientId) -> Option<Identity>;
    /// Passes a descriptor to a client, together with the next reply.
    fn hand_over(&mut self, client: ClientId, fd: OwnedFd) -> io::Result<()>;

    // Slices.

    /// Returns true if requests can be counted and timed individually.
    fn sees_each_request(&self) -> bool;
    /// Returns true if the server's own timer ends a slice after one interval while other clients wait.
    fn ends_slices_itself(&self) -> bool;
    /// Appends the clients that have requests, in order of arrival.
    fn ready(&mut self, ready: &mut Vec<ClientId>) -> Result<(), Self::Error>;
    /// The time at which data from a watched client arrived, if any have arrived.
    fn arrival(&self, client: ClientId) -> Option<Time>;
    /// The client whose request is being executed, if the server chose that client.
    fn running_client(&self) -> Option<ClientId>;
    /// The slice is over. If it ended early, returns the processor time (ns) that the last request took after that.
    fn unwatch(&mut self) -> Option<u64>;
    /// The work done in the slice that has just ended; `None` if nothing was executed.
    fn finish(&mut self) -> Option<Work>;
    /// The next rest that was executed in that slice.
    fn take_finished(&mut self) -> Option<FinishedRest> {
        None
    }
    /// `None` if the requests of this server cannot be cut.
    fn cut_totals(&self) -> Option<CutTotals> {
        None
    }
}
