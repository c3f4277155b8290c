// SPDX-License-Identifier: MIT
//! Tests of the mechanism in virtual time, on a mock server with its own clock. Tests on real servers
//! (tests/real_servers) check the assumptions about the host's calls.

mod actions;
mod contention;
mod control;
mod dormant;
mod engine_cell;
mod faults;
mod holds;
mod memory;
mod mock;
mod origins;
mod random;
mod slices;
mod unwatched;

use crate::mechanism::settings::{ContentionMode, Settings};
use mock::{MS, Server};
use xqos_abi::{Setting, Subject};
use xqos_core::{ClientId, PolicyKind};

/// The user of all clients, unless a test says otherwise.
const USER: u32 = 1000;

fn server(policy: PolicyKind) -> Server {
    Server::new(&Settings { policy, contention: ContentionMode::Always, ..Settings::default() })
}

/// Connects N clients.
fn clients<const N: usize>(server: &mut Server) -> [ClientId; N] {
    [(); N].map(|()| server.connect(USER))
}

/// Makes a client reserve server time for itself.
fn reserve(server: &mut Server, id: ClientId, budget_ms: u32, period_ms: u32, hard: bool) {
    let request = Subject::Client(0).set(Setting::reservation(budget_ms * 1000, period_ms * 1000, hard));
    server.ask(id, request).unwrap();
}

/// Sends enough short requests to keep a client busy for this time.
fn keep_busy(server: &mut Server, id: ClientId, ms: u64) {
    server.send(id, (ms * 20) as usize, MS / 20);
}
