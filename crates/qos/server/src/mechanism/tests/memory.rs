// SPDX-License-Identifier: MIT
//! Tests how many bytes the mechanism allocates for each client, and that the end of a connection stays quick with many
//! groups.
//!
//! Unlike resident memory, which the experiment `memory` reads, the number of allocated bytes does not depend on the
//! machine, on its page size or on memory that the server has freed before.

use super::*;
use crate::host::kernel;
use crate::mechanism::access::Identity;
use crate::mechanism::host::{Established, NewConnection};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use xqos_abi::Grouping;

/// The maximum for each of 500 clients, as stated in README and docs/figures.md.
const MOST_BYTES: usize = 1024;
/// Process ids from here on do not exist (PID_MAX_LIMIT); a real process would have a control group.
const NOBODY: i32 = 1 << 22;

thread_local! {
    /// Bytes that this thread has allocated and not freed. May be negative if it frees another thread's memory.
    static BYTES: Cell<isize> = const { Cell::new(0) };
    /// How often this thread has allocated memory.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn add(bytes: isize) {
    // A thread that is ending no longer has a counter, and nothing is measured in it.
    let _ = BYTES.try_with(|sum| sum.set(sum.get().wrapping_add(bytes)));
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + usize::from(bytes > 0)));
}

// SAFETY: every call is passed on to the system's allocator with the same arguments; counting allocates nothing, since
// the counter is a constant-initialized thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size() as isize);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        add(-(layout.size() as isize));
        // SAFETY: `place` came from `alloc` or `realloc` above, and thus from the system's allocator with this layout.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size as isize - layout.size() as isize);
        // SAFETY: as for `dealloc`, and the caller keeps the contract for `size`.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes allocated per connected client, without the mock server's own records.
fn bytes_per_client(settings: &Settings, clients: u16) -> usize {
    let mut server = Server::new(settings);
    let before = BYTES.get();
    connect(&mut server, clients);
    (BYTES.get() - before) as usize / usize::from(clients)
}

/// Connects clients, each of which has a process of its own.
fn connect(server: &mut Server, clients: u16) {
    let engine = server.engine();
    for index in 1..=clients {
        let identity = Identity { pid: NOBODY + i32::from(index), uid: USER };
        let base = u32::from(index) << 21;
        engine.connected(
            ClientId(index),
            NewConnection { identity, base, ids: 1 << 21, descriptor: u32::from(index) + 10 },
        );
        engine.established(ClientId(index), Established { program: "xterm".into(), ..Established::default() });
        // A host would carry out these actions.
        engine.actions.clear();
    }
}

#[test]
fn a_connection_ends_as_quickly_with_a_thousand_groups_as_with_none() {
    const CONTROL: ClientId = ClientId(ClientId::LIMIT as u16);
    // The processor time of this thread does not depend on other processes.
    let used_ns = |grouping| {
        let mut server = Server::new(&Settings { grouping, ..Settings::default() });
        connect(&mut server, 1000);
        let before = kernel::thread_cpu_ns();
        (0..100).for_each(|_| server.engine().control_gone(CONTROL));
        kernel::thread_cpu_ns() - before
    };
    let [none, each] = [Grouping::None, Grouping::Application].map(used_ns);
    println!("{none} ns without groups, {each} ns with one for each client");
    assert!(each < 20 * none, "{none} ns without groups, {each} ns with one for each client");
}

#[test]
fn a_decision_allocates_nothing() {
    let mut server = server(PolicyKind::Fair);
    let [one, two] = clients(&mut server);
    reserve(&mut server, one, 5, 20, true);
    for id in [one, two] {
        keep_busy(&mut server, id, 200);
    }
    let start = server.now();
    server.run_until(start.after(100 * MS));
    let before = ALLOCATIONS.get();
    let engine = server.engine();
    for step in 0..1000 {
        engine.at(start.after(100 * MS + step * MS / 2));
        engine.block().and_then(|()| engine.wakeup()).and_then(|()| engine.decide()).unwrap();
        assert!(!engine.actions.is_empty());
        engine.actions.clear();
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
}

#[test]
fn a_client_takes_at_most_a_kilobyte_under_any_policy_and_grouping() {
    for policy in PolicyKind::ALL {
        for grouping in Grouping::ALL {
            let settings = Settings { policy, grouping, ..Settings::default() };
            let bytes = bytes_per_client(&settings, 500);
            println!("{} {grouping:?}: {bytes}", policy.name());
            assert!(bytes <= MOST_BYTES, "policy {}, {grouping:?}: {bytes} bytes for each client", policy.name());
            assert!(bytes > size_of::<crate::mechanism::engine::Slot>(), "nothing was counted");
            // With this number of clients, all vectors have just doubled their capacity.
            let most = bytes_per_client(&settings, 513);
            println!("{most} just above 512");
            assert!(most <= 2 * MOST_BYTES, "policy {}, {grouping:?}: {most} just above 512", policy.name());
        }
    }
}
