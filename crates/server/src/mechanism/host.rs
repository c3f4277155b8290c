// SPDX-License-Identifier: MIT
//! What the mechanism needs from a server, and what a host tells it.

use crate::host::cpu::Loan;
use crate::host::{cpu, kernel};
use crate::mechanism::identity::Identity;
use std::io;
use std::os::fd::OwnedFd;
use xqos_abi::Notify;
use xqos_core::{ClientId, Contest, Rank, Slice, Supply, Time};

#[derive(Clone, Copy, Debug)]
pub struct Connection {
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

/// What cutting long requests has done since the server started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CutTotals {
    pub requests: u64,
    pub parts: u64,
    /// How often another client was let in between two parts.
    pub cuts: u64,
    /// Requests whose rest was executed early, because another request would have seen the difference.
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
}

/// A server as the mechanism sees it.
pub trait Host {
    /// Why xqos cannot serve a server, or cannot continue to serve it.
    type Error: std::error::Error;

    // The processor and the log. The defaults query the kernel; a mock with virtual time overrides them.

    /// Processor time of the server's thread in nanoseconds.
    fn cpu_ns(&self) -> u64 {
        kernel::thread_cpu_ns()
    }
    /// How long the server's thread has been ready to run without a processor, if the kernel tells.
    fn delayed_ns(&self) -> Option<u64> {
        kernel::thread_delayed_ns()
    }
    fn log(&self, line: &str);

    // The server.

    /// Checks that the host can serve this server. Returns the server's name once, when it becomes known.
    fn check(&mut self) -> Result<Option<String>, Self::Error>;
    /// The user that the server runs as.
    fn user(&self) -> u32 {
        kernel::user()
    }
    /// The number of screens; 0 until it is known.
    fn screens(&self) -> usize;
    /// A resource id of the client that redirects the top-level windows of this screen, if any client does.
    fn redirector(&self, screen: usize) -> Option<u32>;
    /// Resource ids of the clients that have grabbed the pointer and the keyboard; 0 if not grabbed or not known.
    fn device_grabs(&self) -> [u32; 2] {
        [0; 2]
    }
    /// The processor reservation that the kernel grants the server's thread.
    fn supply(&self) -> Supply {
        cpu::supply()
    }
    /// The approximate memory of the host in bytes.
    fn memory_bytes(&self) -> usize;

    // Clients.

    /// False once the client's connection is closed, even before `gone` is called.
    fn is_open(&self, client: ClientId) -> bool;
    /// Drops all state of a client that has disconnected.
    fn forget(&mut self, client: ClientId);
    /// Stops serving this client until [`resume`](Self::resume).
    fn hold(&mut self, client: ClientId);
    fn resume(&mut self, client: ClientId);
    /// The identity of a control connection's peer. The ids of control connections start at [`ClientId::LIMIT`].
    fn identity_of_control(&self, _asker: ClientId) -> Option<Identity> {
        None
    }
    /// The control group of the client's application, if it has one.
    fn application(&self, identity: &Identity) -> Option<String> {
        identity.application()
    }
    /// The network address of a client on another machine.
    fn address(&self, _client: ClientId) -> Option<String> {
        None
    }
    /// Sends an event to a client that selected it.
    fn notify(&self, listener: ClientId, event: &Notify);
    /// Passes a descriptor to a client, together with the next reply.
    fn hand_over(&mut self, client: ClientId, fd: OwnedFd) -> io::Result<()>;

    // Slices.

    /// Returns true if requests can be counted and timed individually.
    fn sees_each_request(&self) -> bool {
        true
    }
    /// Returns true if the server's own timer ends a slice after one interval while other clients wait.
    fn ends_slices_itself(&self) -> bool {
        true
    }
    /// Appends the clients that have requests, in order of arrival.
    fn ready(&mut self, ready: &mut Vec<ClientId>) -> Result<(), Self::Error>;
    /// Makes the server carry out the slice's choice. For `Choice::Server`, the server chooses a client from `ready`.
    fn begin(&mut self, slice: &Slice, ready: &[ClientId], now: Time);
    /// The work done since [`begin`](Self::begin); `None` if nothing was executed.
    fn finish(&mut self) -> Option<Work>;
    /// The client whose request is being executed, if the server chose that client.
    fn running_client(&self) -> Option<ClientId>;
    /// Ends the running slice after the request in progress.
    fn end_slice(&self);
    /// Sets what is observed about each request from now on.
    fn observe_requests(&mut self, seen: ObservedRequests);
    /// Turns the exact count of each slice's requests on or off. It is on while a trace is being read.
    fn count_exactly(&mut self, _is_traced: bool) {}

    // Long requests.

    /// Lets other clients in after this time of a long request; 0: never. Ignored if requests cannot be cut.
    fn set_cut(&mut self, _part_ns: u64) {}
    /// `None` if the requests of this server cannot be cut.
    fn cut_totals(&self) -> Option<CutTotals> {
        None
    }
    /// The next rest that was executed in the slice that has just ended.
    fn take_finished(&mut self) -> Option<FinishedRest> {
        None
    }

    // Arrivals within a slice.

    /// Ends the slice when a watched client wins this contest, or at the time `until`.
    fn watch(&mut self, contest: &Contest, until: Time);
    /// The slice is over. If it ended early, returns the processor time (ns) that the last request took after that.
    fn unwatch(&mut self) -> Option<u64>;
    /// Watches an idle client, which has this rank on arrival. `loan_ns`: how long its arrival may raise the server.
    fn watch_client(&mut self, client: ClientId, rank: Rank, loan_ns: u64);
    /// The time at which data from a watched client arrived, if any have arrived.
    fn arrival(&self, client: ClientId) -> Option<Time>;
    /// From `now` on, the server's own descriptors (such as input) may also end the slice.
    fn server_fds_may_preempt(&mut self, now: Time);
    /// Calls `wakeup` at this time even if nothing else happens; [`Time::NEVER`] cancels it.
    fn wake_at(&mut self, at: Time);
    /// Waits until one of these clients has sent data, or until this time. Returns the time afterwards.
    fn wait_for(&self, clients: impl Iterator<Item = ClientId>, until: Time) -> Time;

    // The server's thread and the kernel's scheduler.

    /// Asks the kernel for short slices, or for slices of its default length.
    fn ask_for_short_slices(&mut self, _is_wanted: bool) {}

    // A real-time priority for the server's thread, lent by a client.

    fn begin_loan(&mut self) -> io::Result<()>;
    /// Ends the loan and restores `limit_before`, the process's limit on real-time priorities.
    fn end_loan(&mut self, limit_before: u32);
    fn loan(&self) -> Option<&Loan> {
        None
    }
    /// Gives the thread the real-time priority, at most until this time.
    fn raise(&self, until: Time) {
        if let Some(loan) = self.loan() {
            loan.raise(until);
        }
    }
    fn lower(&self) {
        if let Some(loan) = self.loan() {
            loan.lower();
        }
    }
    fn raises(&self) -> u32 {
        self.loan().map_or(0, Loan::raises)
    }

    /// Undoes every change that the server would notice. Can be called in any state.
    fn step_back(&mut self);
}
