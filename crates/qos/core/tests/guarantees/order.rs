// SPDX-License-Identifier: MIT
//! The order in which `classic`, `smart` and `fixed` serve clients.

use crate::server::{Behaviour, Load, MS, SECOND, Server, US};
use xqos_core::{Choice, ClientId, Fact, Parameters, PolicyKind, Time};

/// Each slice so far: its client and number of requests.
fn turns(server: &Server) -> Vec<(u16, usize)> {
    let mut turns: Vec<(u16, usize)> = Vec::new();
    let mut last_slice = usize::MAX;
    for run in &server.runs {
        if run.slice != last_slice {
            turns.push((run.client.0, 0));
            last_slice = run.slice;
        }
        turns.last_mut().expect("a slice has begun").1 += 1;
    }
    turns
}

/// Requests of 16 bytes: a buffer of 4 KB holds 256 of them, 25 turns of ten and one of six.
fn busy(cost_ns: u64) -> Load {
    Load::backlogged(cost_ns..=cost_ns)
}

fn alternating(clients: &[u16], turns: usize, requests: usize) -> Vec<(u16, usize)> {
    (0..turns).flat_map(|_| clients.iter().map(move |&client| (client, requests))).collect()
}

#[test]
fn classic_gives_turns_of_ten_requests_smallest_descriptor_first() {
    let mut server = Server::new(PolicyKind::Classic, Parameters::default(), 1);
    for descriptor in [30, 10, 20] {
        server.connect_as(busy(10 * US), descriptor);
    }
    server.run_until(2 * 3 * 256 * 10 * US);
    let pass = [alternating(&[2, 3, 1], 25, 10), alternating(&[2, 3, 1], 1, 6)].concat();
    assert_eq!(turns(&server), [pass.clone(), pass].concat(), "two passes of three buffers of 256 requests");
}

#[test]
fn classic_makes_an_arrival_wait_for_the_end_of_the_pass() {
    let mut server = Server::new(PolicyKind::Classic, Parameters::default(), 1);
    server.connect_as(busy(10 * US), 20);
    server.connect_as(busy(10 * US), 30);
    // The third client has the smallest descriptor and arrives early in the first pass.
    server.connect_as(Load { start_ns: 200 * US, ..busy(10 * US) }, 10);
    server.run_until((2 + 3) * 256 * 10 * US);
    let first_pass = [alternating(&[1, 2], 25, 10), alternating(&[1, 2], 1, 6)].concat();
    let second_pass = [alternating(&[3, 1, 2], 25, 10), alternating(&[3, 1, 2], 1, 6)].concat();
    assert_eq!(turns(&server), [first_pass, second_pass].concat(), "the new client is first in the second pass");
}

#[test]
fn classic_ends_a_clients_part_of_the_pass_when_its_buffer_is_empty() {
    let mut server = Server::new(PolicyKind::Classic, Parameters::default(), 1);
    server.connect_as(busy(10 * US), 20);
    // This client sends fifteen requests together; the next fifteen arrive during the pass of the busy client.
    let behaviour = Behaviour::Periodic { period_ns: MS, requests: 15 };
    server.connect_as(Load::new(behaviour, 10 * US..=10 * US), 10);
    server.run_until((15 + 256) * 10 * US);
    let expected = [vec![(2, 10), (1, 10), (2, 5)], alternating(&[1], 24, 10), alternating(&[1], 1, 6)].concat();
    assert_eq!(turns(&server), expected, "one pass: fifteen requests of the light client, 256 of the busy one");
}

#[test]
fn classic_never_repeats_passes_for_a_client_of_lower_sync_priority() {
    let mut server = Server::new(PolicyKind::Classic, Parameters::default(), 1);
    let high = server.connect(busy(20 * US));
    server.scheduler.handle(Time(0), Fact::SyncPriority { client: high, priority: 10 });
    server.connect(busy(20 * US));
    let late = server.connect(Load { start_ns: 990 * MS, ..busy(20 * US) });
    server.run_until(SECOND);
    server.disconnect(high);
    server.run_until(2 * SECOND);
    let waited_ns = server.longest_wait_ns(late);
    // The bound: 10 ms for the client of high priority, then the current pass of the older client.
    assert!(
        waited_ns <= 10 * MS + 2 * 256 * 20 * US,
        "it waited {waited_ns} ns: the older client repeated the passes of the client of high priority"
    );
}

fn slice_lengths_ns(server: &Server, from_ns: u64) -> Vec<u64> {
    let chosen = server.slices.iter().filter(|slice| slice.contest.start >= Time(from_ns));
    chosen.map(|slice| slice.until.since(slice.contest.start)).collect()
}

#[test]
fn smart_lengthens_slices_only_while_a_client_is_alone() {
    let mut server = Server::new(PolicyKind::Smart, Parameters::default(), 1);
    server.connect(busy(50 * US));
    server.connect(Load { start_ns: 1500 * MS, ..busy(50 * US) });
    server.run_until(SECOND - 10 * MS);
    assert!(slice_lengths_ns(&server, 0).iter().all(|&ns| ns == 5 * MS), "not before a second is over");
    server.run_until(1400 * MS);
    assert_eq!(slice_lengths_ns(&server, 1300 * MS)[0], 15 * MS, "the maximum slice");
    server.run_until(1600 * MS);
    assert_eq!(slice_lengths_ns(&server, 1530 * MS)[0], 5 * MS, "the timer interval, with two clients");
}

#[test]
fn smart_does_not_confuse_a_new_client_with_an_earlier_one_of_the_same_id() {
    let mut server = Server::new(PolicyKind::Smart, Parameters::default(), 1);
    let first = server.connect(busy(50 * US));
    server.run_until(3 * SECOND);
    let now = Time(server.now_ns);
    server.scheduler.handle(now, Fact::Connected { client: first, descriptor: 11 });
    server.scheduler.handle(now, Fact::Arrived { client: first });
    let slice = server.scheduler.decide(now).expect("the newcomer is ready");
    assert_eq!(slice.until.since(now), 5 * MS, "it was not alone for a second");
}

#[test]
fn smart_serves_a_mostly_idle_client_before_any_number_of_busy_ones() {
    for hogs in [1, 3, 12] {
        let mut server = Server::new(PolicyKind::Smart, Parameters::default(), 1);
        for _ in 0..hogs {
            server.connect(busy(50 * US));
        }
        let behaviour = Behaviour::Periodic { period_ns: 20 * MS, requests: 4 };
        let light = server.connect(Load { start_ns: SECOND, ..Load::new(behaviour, 100 * US..=200 * US) });
        server.run_until(3 * SECOND);
        let longest_ns = server.responses_ns(light).into_iter().max().unwrap_or(0);
        let slice_ns = if hogs == 1 { 15 * MS } else { 5 * MS };
        assert!(
            longest_ns <= slice_ns + 50 * US + 4 * 200 * US,
            "{hogs} busy clients: a response took {longest_ns} ns, more than the slice in progress and its own requests"
        );
    }
}

#[test]
fn fixed_ends_a_slice_for_higher_priority_at_the_next_request() {
    let mut server = Server::new(PolicyKind::Fixed, Parameters::default(), 1);
    let low = server.connect(busy(100 * US));
    let behaviour = Behaviour::Periodic { period_ns: 7 * MS, requests: 3 };
    let high = server.connect(Load { start_ns: 20 * MS, ..Load::new(behaviour, 100 * US..=100 * US) });
    server.scheduler.handle(Time(0), Fact::FixedPriority { client: high, priority: 5 });
    server.run_until(SECOND);
    let longest_ns = server.responses_ns(high).into_iter().max().unwrap_or(0);
    assert!(longest_ns <= 4 * 100 * US, "a burst of three requests took {longest_ns} ns among requests of 0.1 ms");
    assert!(server.service_ns(low, None) > 900 * MS, "the client of low priority gets the rest");
}

#[test]
fn fixed_lets_equals_take_turns_and_keeps_lower_ones_out() {
    let mut server = Server::new(PolicyKind::Fixed, Parameters::default(), 1);
    let clients = [5, 5, -5].map(|priority| {
        let client = server.connect(busy(100 * US));
        server.scheduler.handle(Time(0), Fact::FixedPriority { client, priority });
        client
    });
    server.run_until(100 * MS);
    let order: Vec<Choice> = server.slices.iter().map(|slice| slice.choice).collect();
    assert!(order.windows(2).all(|pair| pair[0] != pair[1]), "two in a row: {order:?}");
    let got_ns: Vec<u64> = clients.iter().map(|&client: &ClientId| server.service_ns(client, None)).collect();
    assert_eq!(got_ns, [50 * MS, 50 * MS, 0]);
}
