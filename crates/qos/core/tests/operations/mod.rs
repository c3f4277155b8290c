// SPDX-License-Identifier: MIT
//! Random sequences of all facts and of turns of the server's main loop.
//!
//! Few clients and round numbers make interesting coincidences frequent: equal deadlines, a grab by a depleted client,
//! a reservation that ends during a slice.

use proptest::prelude::*;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use xqos_core::{ClientId, Fact, GroupId, Pacing, Parameters, PolicyKind, Reservation, ReservationKind, Role};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Client ids are smaller than this.
pub const CLIENTS: u16 = 6;

/// A fact, or a turn of the server's main loop.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Tell(Fact),
    /// One decision and its slice. If the server chooses, `index` selects one of the ready clients.
    DecideAndServe {
        length_ns: u64,
        requests: u32,
        still_ready: bool,
        index: usize,
    },
    /// A decision without a slice.
    Decide,
    /// A slice of a client that was not chosen.
    ServeUnchosen {
        client: ClientId,
        length_ns: u64,
    },
    TimePasses {
        ns: u64,
    },
}

fn client() -> impl Strategy<Value = ClientId> {
    (0..CLIENTS).prop_map(ClientId)
}

fn policy() -> impl Strategy<Value = PolicyKind> {
    prop::sample::select(PolicyKind::ALL.as_slice())
}

fn kind() -> impl Strategy<Value = ReservationKind> {
    prop::sample::select(ReservationKind::ALL.as_slice())
}

/// A reservation with 0 < Q <= T, as callers of the scheduler must ensure.
fn reservation() -> impl Strategy<Value = Reservation> {
    let period = prop::sample::select(vec![2 * MS, 5 * MS, 10 * MS, 10 * MS + 1, 40 * MS]);
    (period, prop_oneof![Just(50), 1..=60u64], kind()).prop_map(|(period_ns, percent, kind)| {
        let budget_ns = period_ns * percent / 100;
        Reservation { budget_ns, period_ns, kind }
    })
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let slice = prop::sample::select(vec![0, MS, 5 * MS, 20 * MS]);
    let interval = prop::sample::select(vec![1, 2 * MS, 5 * MS]);
    let blocking = prop::sample::select(vec![0, 100 * US, 2 * MS]);
    (slice, interval, 500_000..=1_000_000u32, blocking).prop_map(|(slice_ns, interval_ns, limit, blocking_ns)| {
        Parameters {
            slice_ns,
            timer_interval_ns: interval_ns,
            maximum_slice_ns: 3 * interval_ns,
            max_utilization_ppm: limit,
            blocking_ns,
        }
    })
}

fn pacing() -> impl Strategy<Value = Pacing> {
    let limit_ns = prop::sample::select(vec![0, 2 * MS, 25 * MS]);
    let floor_ns = prop::sample::select(vec![MS, 25 * MS, 50 * MS]);
    (limit_ns, floor_ns).prop_map(|(limit_ns, floor_ns)| Pacing { limit_ns, floor_ns })
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(MS), 1..100 * US, 100 * US..7 * MS, Just(5 * MS), 20 * MS..200 * MS]
}

fn decide_and_serve() -> impl Strategy<Value = Op> {
    let requests = prop_oneof![Just(1u32), 1..=20u32, Just(3000u32)];
    (length(), requests, any::<bool>(), any::<prop::sample::Index>()).prop_map(
        |(length_ns, requests, still_ready, index)| Op::DecideAndServe {
            length_ns,
            requests,
            still_ready,
            index: index.index(usize::from(CLIENTS)),
        },
    )
}

/// Caps in millionths.
fn cap() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0, 1, 10_000, 100_000, 500_000, 1_000_000])
}

fn weight() -> impl Strategy<Value = u32> {
    prop::sample::select(vec![0, 1, 50, 100, 200, 1000])
}

fn fact() -> impl Strategy<Value = Fact> {
    let sync_priority = prop::sample::select(vec![i32::MIN, -1, 0, 0, 0, 10, i32::MAX]);
    let desktop_share = prop::sample::select(vec![0, 100_000, 666_667, 900_000]);
    prop_oneof![
        3 => (client(), 3..20u32).prop_map(|(client, descriptor)| Fact::Connected { client, descriptor }),
        2 => client().prop_map(|client| Fact::Disconnected { client }),
        30 => client().prop_map(|client| Fact::Arrived { client }),
        3 => client().prop_map(|client| Fact::Withdrawn { client }),
        2 => client().prop_map(|client| Fact::Input { client }),
        3 => (client(), prop::option::of(client())).prop_map(|(client, cause)| Fact::Exposed { client, cause }),
        4 => client().prop_map(|client| Fact::CausedWork { client }),
        4 => (client(), client()).prop_map(|(client, payer)| Fact::WorksFor { client, payer }),
        2 => prop::option::of(client()).prop_map(|by| Fact::Grabbed { by }),
        1 => (0..10 * MS).prop_map(|ns| Fact::Overran { ns }),
        4 => Just(Fact::Replenish),
        1 => policy().prop_map(Fact::Policy),
        1 => parameters().prop_map(Fact::Parameters),
        1 => pacing().prop_map(Fact::Pacing),
        1 => desktop_share.prop_map(|ppm| Fact::DesktopShare { ppm }),
        2 => any::<bool>().prop_map(|is_on| Fact::Contention { is_on }),
        3 => (client(), sync_priority).prop_map(|(client, priority)| Fact::SyncPriority { client, priority }),
        2 => (client(), weight()).prop_map(|(client, weight)| Fact::Weight { holder: client.into(), weight }),
        6 => (client(), 0..3u16).prop_map(|(client, group)| Fact::Group { client, group: GroupId(group) }),
        1 => (0..3u16, weight()).prop_map(|(group, weight)| Fact::Weight { holder: GroupId(group).into(), weight }),
        1 => (1..3u16, cap()).prop_map(|(group, ppm)| Fact::GroupCap { group: GroupId(group), ppm }),
        4 => (1..3u16, reservation())
            .prop_map(|(group, reservation)| Fact::Reserve { holder: GroupId(group).into(), reservation }),
        1 => (1..3u16).prop_map(|group| Fact::Release { holder: GroupId(group).into() }),
        2 => (client(), -3..=3).prop_map(|(client, priority)| Fact::FixedPriority { client, priority }),
        1 => (client(), 0..3000u32).prop_map(|(client, us)| Fact::Slice { client, us }),
        4 => (client(), 0..4u8).prop_map(|(client, bits)| Fact::Role { client, role: Role::from_bits(bits) }),
        6 => (client(), reservation()).prop_map(|(client, reservation)| Fact::Reserve { holder: client.into(), reservation }),
        2 => client().prop_map(|client| Fact::Release { holder: client.into() }),
    ]
}

/// The weights produce busy servers: most operations are arrivals and slices.
fn op() -> impl Strategy<Value = Op> {
    let time = prop_oneof![Just(1), Just(MS), 1..3 * MS, Just(5 * MS), 10 * MS..100 * MS, Just(3_000 * MS)];
    prop_oneof![
        75 => fact().prop_map(Op::Tell),
        40 => decide_and_serve(),
        2 => Just(Op::Decide),
        1 => (client(), length()).prop_map(|(client, length_ns)| Op::ServeUnchosen { client, length_ns }),
        12 => time.prop_map(|ns| Op::TimePasses { ns }),
    ]
}

/// A policy, and up to `most` operations under it. Most clients are connected at the beginning.
pub fn sequence(most: usize) -> impl Strategy<Value = (PolicyKind, Vec<Op>)> {
    let connected = (0..CLIENTS - 2).map(|id| Fact::Connected { client: ClientId(id), descriptor: 20 - u32::from(id) });
    let connected: Vec<Op> = connected.map(Op::Tell).collect();
    let all =
        prop::collection::vec(op(), 1..=most - connected.len()).prop_map(move |ops| [&connected[..], &ops].concat());
    (policy(), all)
}

/// Generates new sequences in each run. A failing sequence is shrunk and printed; nothing is written to disk.
pub fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(xqos_testkit::seed()),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::with_cases(cases)
    }
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a sequence and turns a failed assertion into an error. While a failure is shrunk, the run fails thousands of
/// times, and only the last message matters.
pub fn report(run: impl FnOnce()) -> Result<(), TestCaseError> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|panic| PANIC.set(panic.to_string())));
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    panic::set_hook(hook);
    outcome.map_err(|_| TestCaseError::fail(PANIC.take()))
}
