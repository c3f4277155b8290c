// SPDX-License-Identifier: MIT
//! Decisions allocate nothing: memory is allocated when a client connects. An overloaded server then does not slow down
//! further and cannot run out of memory at a decision.
//!
//! This test counts the allocations of its own thread with a counting allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use xqos_core::{
    Choice, ClientId, Fact, FactOutcome, GroupId, Pacing, Parameters, PolicyKind, Reservation, ReservationKind, Role,
    Scheduler, Service, Time,
};

const CLIENTS: u16 = 200;
const MS: u64 = 1_000_000;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    // A thread that is ending no longer has a counter; nothing is measured there.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is forwarded to the system's allocator with the same arguments. Counting allocates nothing, since
// the counter is a constant-initialized thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller fulfils the contract of `alloc`, which is also that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` came from `alloc` or `realloc` above, and thus from the system's allocator with this layout.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as in `dealloc`; the caller fulfils the contract for `size`.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A server with clients of all kinds: best effort, hard and soft, with different weights and priorities.
fn full_server(policy: PolicyKind) -> Scheduler {
    let mut scheduler = Scheduler::new(policy, Parameters::default());
    scheduler.handle(Time(0), Fact::Pacing(Pacing { limit_ns: 25 * MS, floor_ns: 50 * MS }));
    for id in 0..CLIENTS {
        let (client, now) = (ClientId(id), Time(0));
        scheduler.handle(now, Fact::Connected { client, descriptor: u32::from(id) + 10 });
        scheduler.handle(now, Fact::Weight { holder: client.into(), weight: 50 + u32::from(id) });
        scheduler.handle(now, Fact::FixedPriority { client, priority: i32::from(id % 5) });
        scheduler.handle(now, Fact::SyncPriority { client, priority: i32::from(id % 3) });
        if id % 5 < 3 {
            scheduler.handle(now, Fact::Group { client, group: GroupId(id % 5) });
        }
        if id % 31 == 5 {
            scheduler.handle(now, Fact::Role { client, role: Role { compositor: true, window_manager: false } });
        }
        if id % 8 == 0 {
            let reservation = Reservation {
                budget_ns: MS / 5,
                period_ns: 10 * MS,
                kind: ReservationKind::ALL[usize::from(id) / 16 % 3],
            };
            let outcome = scheduler.handle(now, Fact::Reserve { holder: client.into(), reservation });
            assert!(outcome.is_admitted(), "{reservation:?} is admissible");
        }
    }
    for (group, kind) in [(1, ReservationKind::Hard), (2, ReservationKind::Soft)] {
        let reservation = Reservation { budget_ns: MS, period_ns: 10 * MS, kind };
        assert!(scheduler.handle(Time(0), Fact::Reserve { holder: GroupId(group).into(), reservation }).is_admitted());
    }
    scheduler
}

fn serve(scheduler: &mut Scheduler, client: ClientId, start: Time, length_ns: u64, still_ready: bool) -> Time {
    let (end, requests) = (start.after(length_ns), 7);
    scheduler
        .handle(end, Fact::Served(Service { requests, bytes: 512, still_ready, ..Service::new(client, start, end) }));
    end
}

/// Runs thousands of turns of the server's main loop, with all events between connecting and disconnecting.
fn run(scheduler: &mut Scheduler) {
    let mut now = Time(MS);
    for turn in 0..20_000u32 {
        while scheduler.handle(now, Fact::Replenish) != FactOutcome::None {}
        for step in 0..3 {
            scheduler
                .handle(now, Fact::Arrived { client: ClientId(((turn * 7 + step * 61) % u32::from(CLIENTS)) as u16) });
        }
        let other = ClientId((turn % u32::from(CLIENTS)) as u16);
        match turn % 2 {
            0 => scheduler.handle(now, Fact::Input { client: other }),
            _ => scheduler.handle(now, Fact::Exposed { client: other, cause: Some(ClientId(1)) }),
        };
        match turn % 100 {
            40 => scheduler.handle(now, Fact::Grabbed { by: Some(other) }),
            43 => scheduler.handle(now, Fact::Grabbed { by: None }),
            60 => scheduler.handle(now, Fact::Withdrawn { client: other }),
            80 => scheduler.handle(Time(0), Fact::Overran { ns: 3_000 }),
            _ => FactOutcome::None,
        };
        let Some(slice) = scheduler.decide(now) else {
            now = now.after(MS);
            continue;
        };
        while let Some((_, rank)) = scheduler.next_to_watch(now) {
            assert!(slice.contest.ends_for(rank) >= now);
        }
        let length_ns = if turn % 9 == 0 { 6 * MS } else { MS / 10 };
        now = match slice.choice {
            Choice::Client(client, _) => serve(scheduler, client, now, length_ns, turn % 4 != 0),
            Choice::Server => serve(scheduler, other, now, length_ns, false),
        };
        scheduler.handle(Time(0), Fact::CausedWork { client: other });
        scheduler.next_request_of(other, now);
    }
}

#[test]
fn decisions_allocate_nothing_under_any_policy() {
    for policy in PolicyKind::ALL {
        let mut scheduler = full_server(policy);
        let before = ALLOCATIONS.get();
        run(&mut scheduler);
        let allocations = ALLOCATIONS.get() - before;
        assert_eq!(allocations, 0, "policy {}: 20,000 decisions allocated {allocations} times", policy.name());
    }
}

/// Reallocating for each client of a group would fragment memory, which costs several times the memory in use.
#[test]
fn many_clients_of_one_group_connect_with_few_allocations() {
    for policy in PolicyKind::ALL {
        let mut scheduler = Scheduler::new(policy, Parameters::default());
        let reservation = Reservation { budget_ns: MS, period_ns: 10 * MS, kind: ReservationKind::Soft };
        assert!(scheduler.handle(Time(0), Fact::Reserve { holder: GroupId(1).into(), reservation }).is_admitted());
        let before = ALLOCATIONS.get();
        for id in 0..1000 {
            let client = ClientId(id);
            scheduler.handle(Time(0), Fact::Connected { client, descriptor: u32::from(id) + 10 });
            scheduler.handle(Time(0), Fact::Group { client, group: GroupId(1) });
        }
        let allocations = ALLOCATIONS.get() - before;
        assert!(allocations < 250, "policy {}: {allocations} allocations for 1,000 clients", policy.name());
    }
}

#[test]
fn allocations_are_counted() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Vec::<u64>::with_capacity(100)));
    assert_eq!(ALLOCATIONS.get() - before, 1, "otherwise the other test proves nothing");
}
