// SPDX-License-Identifier: MIT
//! The actions that the mechanism requests. Each call of the engine adds actions to [`Engine::actions`], and the host
//! carries them out in their order before the engine is called again.
//!
//! [`Engine::actions`]: crate::mechanism::engine::Engine::actions

use crate::mechanism::host::ObservedRequests;
use xqos_abi::Notify;
use xqos_core::{ClientId, Contest, Rank, Slice, Time};

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    // Slices.
    /// Makes the server carry out the slice's choice. For `Choice::Server`, the server chooses a ready client. A server
    /// that ends its slices itself goes on choosing until the next `Serve`.
    Serve {
        slice: Slice,
        at: Time,
    },
    /// Ends the running slice after the request in progress.
    EndSlice,
    /// Ends the slice when a watched client wins this contest, or at the time `until`.
    Watch {
        contest: Contest,
        until: Time,
    },
    /// From `at` on, the server's own descriptors (such as input) may also end the slice.
    WatchServer {
        at: Time,
    },
    /// Watches an idle client, which has this rank on arrival. `loan_ns`: how long its arrival may raise the server.
    WatchClient {
        client: ClientId,
        rank: Rank,
        loan_ns: u64,
    },

    // Clients.
    /// Stops serving this client until `Resume`.
    Hold(ClientId),
    Resume(ClientId),
    /// Sends an event to a client that selected it.
    Notify {
        listener: ClientId,
        event: Notify,
    },

    // Time.
    /// Wakes the server at this time even if nothing else happens; [`Time::NEVER`] cancels it.
    WakeAt(Time),
    /// Data from this client end the next wait.
    Await(ClientId),
    /// Waits for the clients of the preceding `Await` actions, at most until this time.
    WaitUntil(Time),

    // The server's thread.
    /// Asks the kernel for short slices, or for slices of its default length.
    ShortSlices(bool),
    /// Gives the thread the lent real-time priority, at most until this time.
    Raise(Time),
    Lower,
    /// Ends the loan and restores `limit_before`, the process's limit on real-time priorities.
    EndLoan {
        limit_before: u32,
    },

    // Requests.
    /// Sets what is observed about each request from now on.
    Observe(ObservedRequests),
    /// Cuts long requests after this time, to serve other clients; 0: never. Ignored if requests cannot be cut.
    Cut {
        part_ns: u64,
    },

    /// Writes a line into the server's log.
    Log(String),
}
