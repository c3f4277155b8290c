// SPDX-License-Identifier: MIT
//! Benchmark of a decision: nanoseconds for an arrival, a choice and a service, by the number of ready clients.
//!
//! Each figure is the best of several rounds, because other activity on the machine can only add time. In each cycle
//! the picked client becomes idle and arrives again, so the number of ready clients stays constant and each cycle
//! includes a removal and an insertion. The last column shows the growth: from 10 to 2000 clients, O(log n) gives a
//! factor of log 2000 / log 10 = 3.3 plus cache effects; O(n) would give a factor of 200.
//!
//!     cargo bench -p xqos-core --bench decision

use std::hint::black_box;
use std::time::Instant;
use xqos_core::{
    Choice, ClientId, Fact, FactOutcome, Parameters, PolicyKind, Reservation, ReservationKind, Scheduler, Service, Time,
};

const READY: [u16; 4] = [10, 100, 1000, 2000];
const CYCLES: u32 = 100_000;
const ROUNDS: u32 = 7;
/// About the duration of a few small requests.
const SLICE_NS: u64 = 20_000;
const SECOND: u64 = 1_000_000_000;

/// A server with this many ready clients.
fn ready_server(policy: PolicyKind, reserved: bool, clients: u16) -> Scheduler {
    let mut scheduler = Scheduler::new(policy, Parameters::default());
    for id in 0..clients {
        let client = ClientId(id);
        scheduler.handle(Time(0), Fact::Connected { client, descriptor: u32::from(id) + 10 });
        if reserved {
            // The reservations add up to 80 %, with different periods so that the deadlines differ.
            let period_ns = SECOND + u64::from(id) * 1_000_000;
            let budget_ns = period_ns * 8 / 10 / u64::from(clients);
            scheduler
                .handle(
                    Time(0),
                    Fact::Reserve {
                        holder: client.into(),
                        reservation: Reservation {
                            budget_ns,
                            period_ns,
                            kind: ReservationKind::ALL[usize::from(id % 2)],
                        },
                    },
                )
                .admission();
        }
        scheduler.handle(Time(0), Fact::Arrived { client });
    }
    scheduler
}

/// One turn of the main loop. Returns the client that ran.
fn cycle(scheduler: &mut Scheduler, last: ClientId, now: Time) -> ClientId {
    while scheduler.handle(now, Fact::Replenish) != FactOutcome::None {}
    scheduler.handle(now, Fact::Arrived { client: last });
    let slice = black_box(scheduler.decide(now));
    let client = match slice.map(|slice| slice.choice) {
        Some(Choice::Client(client, _)) => client,
        _ => last,
    };
    let end = now.after(SLICE_NS);
    scheduler.handle(end, Fact::Served(Service { requests: 9, bytes: 200, ..Service::new(client, now, end) }));
    client
}

fn ns_per_cycle(policy: PolicyKind, reserved: bool, clients: u16) -> f64 {
    let mut scheduler = ready_server(policy, reserved, clients);
    let (mut last, mut now, mut best) = (ClientId(0), Time(0), f64::INFINITY);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..CYCLES {
            now = now.after(SLICE_NS);
            last = cycle(&mut scheduler, last, now);
        }
        best = best.min(started.elapsed().as_nanos() as f64 / f64::from(CYCLES));
    }
    best
}

fn print_row(name: &str, policy: PolicyKind, reserved: bool) {
    let costs = READY.map(|clients| ns_per_cycle(policy, reserved, clients));
    let columns = costs.map(|ns| format!("{ns:>9.0}")).concat();
    println!("{name:<18}{columns}{:>12.1}", costs[3] / costs[0]);
}

fn main() {
    let header = READY.map(|clients| format!("{:>9}", format!("n={clients}"))).concat();
    println!("ns per decision   {header}{:>12}", "2000 / 10");
    for policy in PolicyKind::ALL {
        print_row(policy.name(), policy, false);
    }
    print_row("fair, all reserved", PolicyKind::Fair, true);
}
