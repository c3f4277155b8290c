// SPDX-License-Identifier: MIT
//! What the mechanism needs of a server, and the servers that give it.
//!
//! The mechanism decides; a host carries it out. A host calls [`Engine`](crate::mechanism::engine::Engine) when something
//! happens, all on the server's thread: `block` when a slice is over, `wakeup` when the next one is to be decided,
//! `connected`, `established` and `gone` as clients come and go, `grabbed`, `noticed` and `delivered` for what it sees of
//! grabs and events. It answers the calls below, which name clients by [`ClientId`] alone.
//!
//! | a host | chooses | ends a slice | holds a client back |
//! |---|---|---|---|
//! | [`dix`]: exported symbols | raises `ClientRec.priority` | sets `isItTimeToYield` | IgnoreClient |
//! | [`libc`](self::libc): calls of libc | tells the server of its data | answers EAGAIN | does not tell of it |
//! | `mechanism/tests/mock`, in virtual time | serves it first | after the request | skips it |
//!
//! | file | what all hosts have |
//! |---|---|
//! | `entry`, `wanted` | how the server finds us, what it was started with, and which host is to serve it |
//! | `place` | the engine of this process; each call a panic boundary |
//! | `identity` | who a client is |
//! | `control` | the control socket |
//! | `behind`, `descriptors` | libc's own calls, and which descriptors are clients' and ours |
//! | `kernel`, `cpu` | clocks, timers and threads; what we ask of the kernel's scheduler |

pub mod behind;
pub mod control;
pub mod cpu;
pub mod descriptors;
pub mod dix;
pub mod entry;
pub mod identity;
pub mod kernel;
pub mod libc;
pub mod place;
pub mod wanted;

use cpu::Loan;
use identity::Identity;
use std::io;
use std::os::fd::OwnedFd;
use xqos_abi::Notify;
use xqos_core::{ClientId, Contest, Rank, Slice, Supply, Time};

/// A client that has just connected.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    pub identity: Identity,
    /// First of its resource ids.
    pub base: u32,
    /// How many resource ids it has: all clients of a server have the same number.
    pub ids: u32,
    /// Its socket; clients that share one stand one behind the other in the trace.
    pub descriptor: u32,
}

/// What was done in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub client: ClientId,
    /// Requests that were executed; 0 where the client was only set up or read from.
    pub requests: u32,
    /// Bytes of those requests, where they are counted.
    pub bytes: u64,
    /// Major opcode + 65536 x minor opcode.
    pub last_request: u32,
    /// It has more.
    pub still_ready: bool,
}

/// Which requests a host has to look at one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenRequests {
    /// Counts them, and ends a slice after a number of them: the policy `classic`.
    pub counted: bool,
    /// Writes the time of each into the trace.
    pub timed: bool,
}

/// A server as the mechanism sees it.
pub trait Host {
    /// Why a server cannot be served, or no longer.
    type Error: std::error::Error;

    // Clocks and the log. What the kernel says of the server's thread, except where time is virtual.

    /// CLOCK_MONOTONIC.
    fn now(&self) -> Time {
        kernel::now()
    }
    /// Processor time of the server's thread, nanoseconds.
    fn cpu_ns(&self) -> u64 {
        kernel::thread_cpu_ns()
    }
    /// One line in the server's log.
    fn log(&self, line: &str);

    // The server.

    /// Looks whether the server is sound. The server's name, the first time that it is known.
    fn check(&mut self) -> Result<Option<String>, Self::Error>;
    /// The user that the server runs as.
    fn user(&self) -> u32 {
        kernel::user()
    }
    /// How many screens it has; 0 until that is known.
    fn screens(&self) -> usize;
    /// A resource of the client that redirects the top-level windows of this screen, if anybody does.
    fn redirector(&self, screen: usize) -> Option<u32>;
    /// Resources of the clients that have grabbed the pointer and the keyboard; 0: nobody, or it cannot be seen.
    fn device_grabs(&self) -> [u32; 2] {
        [0; 2]
    }
    /// What the kernel reserves for the server's thread.
    fn supply(&self) -> Supply {
        cpu::supply()
    }
    /// Memory that the host takes, bytes, about.
    fn memory_bytes(&self) -> usize;

    // Clients.

    /// False once its connection is closed, even where `gone` was not called yet.
    fn is_open(&self, client: ClientId) -> bool;
    /// The engine forgets this client.
    fn forget(&mut self, client: ClientId);
    /// Serves nothing of this client until [`resume`](Self::resume).
    fn hold(&mut self, client: ClientId);
    fn resume(&mut self, client: ClientId);
    /// Who is at the other end of a control connection that is no client's. Those have ids from [`ClientId::LIMIT`] on.
    fn identity_of_control(&self, _asker: ClientId) -> Option<Identity> {
        None
    }
    /// The control group of a client's application, where it has one.
    fn application(&self, identity: &Identity) -> Option<String> {
        identity.application()
    }
    /// The address from which a client of another machine connected.
    fn address(&self, _client: ClientId) -> Option<String> {
        None
    }
    /// Sends an event to a client that selected it.
    fn notify(&self, listener: ClientId, event: &Notify);
    /// Gives a client a descriptor, with the next reply to it.
    fn hand_over(&mut self, client: ClientId, fd: OwnedFd) -> io::Result<()>;

    // Slices.

    /// Whether requests can be counted and timed one by one.
    fn sees_each_request(&self) -> bool {
        true
    }
    /// Whether the server's own timer ends a slice of one interval while others wait.
    fn ends_slices_itself(&self) -> bool {
        true
    }
    /// Adds the clients that have requests, in the order in which they came.
    fn ready(&mut self, ready: &mut Vec<ClientId>) -> Result<(), Self::Error>;
    /// Has the server serve whom the slice names; `ready`: whom it may choose from where that is the server.
    fn begin(&mut self, slice: &Slice, ready: &[ClientId], now: Time);
    /// Who ran since [`begin`](Self::begin), and what it did; none where nobody executed anything.
    fn finish(&mut self) -> Option<Work>;
    /// Whose request is being executed, where the server chose.
    fn who_runs(&self) -> Option<ClientId>;
    /// Ends the running slice after the request in progress.
    fn end_slice(&self);
    /// How requests are looked at from now on.
    fn see_requests(&mut self, seen: SeenRequests);
    /// Whether somebody reads a trace, and the requests of a slice are to be counted exactly.
    fn see_all_slices(&mut self, _is_traced: bool) {}

    // Arrivals within a slice.

    /// Ends the slice for watched clients that win this contest, and at that time.
    fn watch(&mut self, contest: &Contest, until: Time);
    /// The slice is over. Where it was ended early: processor time of the request in progress since then, nanoseconds.
    fn unwatch(&mut self) -> Option<u64>;
    /// Watches an idle client; it would have this rank on arrival. `loan_ns`: how long the server may be raised for it.
    fn watch_client(&mut self, client: ClientId, rank: Rank, loan_ns: u64);
    /// When a watched client's data were seen, if they were.
    fn arrival(&self, client: ClientId) -> Option<Time>;
    /// What the server polls for itself (input, say) may end the slice, too.
    fn server_fds_may_preempt(&mut self, now: Time);
    /// Calls `wakeup` at that time, even where nothing else happens; [`Time::NEVER`]: not.
    fn wake_at(&mut self, at: Time);
    /// Waits until one of these clients has sent something, or until that time.
    fn wait_for(&self, clients: impl Iterator<Item = ClientId>, until: Time);

    // What the kernel gives the server's thread.

    /// Short slices of a processor, or those that every thread has.
    fn ask_for_short_slices(&mut self, _is_wanted: bool) {}

    // A real-time priority for the server's thread, lent by a client.

    fn begin_loan(&mut self) -> io::Result<()>;
    /// `limit_before`: the process's limit of real-time priorities, to be set again.
    fn end_loan(&mut self, limit_before: u32);
    fn loan(&self) -> Option<&Loan> {
        None
    }
    /// The thread has the priority, until that time at the latest.
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
    /// How often it was raised.
    fn raises(&self) -> u32 {
        self.loan().map_or(0, Loan::raises)
    }

    /// Undoes everything that the server would notice. Works from any state.
    fn step_back(&mut self);
}
