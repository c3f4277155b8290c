// SPDX-License-Identifier: MIT
//! Tests which client is served and for how long, and what ends a slice early.

use super::mock::{Effect, MS, at_us};
use super::{clients, keep_busy, reserve, server};
use xqos_abi::{ByteOrder, ClientList, LongestRequests, Request, Setting, Subject};
use xqos_core::{ClientId, PolicyKind, Time};

#[test]
fn fair_shares_time_in_proportion_to_the_weights() {
    let mut server = server(PolicyKind::Fair);
    let [first, second, third] = clients(&mut server);
    for (weight, shares) in [(100, [100, 100, 100]), (200, [150, 75, 75])] {
        server.ask(first, Subject::Client(0).set(Setting::Weight(weight))).unwrap();
        let start = server.now();
        [first, second, third].into_iter().for_each(|id| keep_busy(&mut server, id, 400));
        server.run_until(start.after(300 * MS));
        for (id, share) in [first, second, third].into_iter().zip(shares) {
            let got = server.time_of(id, start, start.after(300 * MS)) / MS;
            assert!(got.abs_diff(share) <= 8, "weight {weight}: {id:?} got {got} ms, not {share}");
        }
        server.run_until(start.after(2000 * MS));
    }
}

#[test]
fn an_idle_client_is_served_after_the_request_in_progress() {
    let mut server = server(PolicyKind::Fair);
    let [busy, light] = clients(&mut server);
    server.send(busy, 300, MS / 3);
    // Each request arrives in the middle of another client's request, long after the client's own last request.
    (1..4).for_each(|nth| server.send_at(at_us(20_000 * nth + 100), light, 1000, Effect::Nothing));
    server.run_until(at_us(100_000));
    let served: Vec<_> = server.done.iter().filter(|done| done.client == light).copied().collect();
    assert_eq!(served.len(), 3);
    for (nth, done) in (1..4).zip(served) {
        let waited = done.start.since(at_us(20_000 * nth + 100));
        assert!(waited <= MS / 3, "it waited for {waited} ns");
    }
}

#[test]
fn each_arrival_of_a_light_client_among_busy_ones_ends_the_running_slice() {
    const TURNS: u64 = 60;
    for is_reserved in [false, true] {
        let mut server = server(PolicyKind::Fair);
        let busy: [ClientId; 6] = clients(&mut server);
        let [light] = clients(&mut server);
        if is_reserved {
            reserve(&mut server, light, 3, 10, false);
        }
        busy.into_iter().for_each(|id| server.send(id, 1000, MS / 3));
        // After 0.1 s, each client has been served. Each arrival is at a different point of a slice and of a request.
        let arrivals: Vec<Time> = (1..=TURNS).map(|nth| at_us(100_000 + 5_123 * nth)).collect();
        arrivals.iter().for_each(|&at| server.send_at(at, light, 1000, Effect::Nothing));
        server.run_until(arrivals[arrivals.len() - 1].after(10 * MS));
        let served: Vec<_> = server.done.iter().filter(|done| done.client == light).collect();
        assert_eq!(served.len(), arrivals.len());
        for (done, at) in served.into_iter().zip(arrivals) {
            let waited = done.start.since(at);
            assert!(waited <= MS / 3, "reserved {is_reserved}: it arrived at {at:?} and waited for {waited} ns");
        }
    }
}

#[test]
fn the_stock_policy_leaves_all_decisions_to_the_server() {
    let mut server = server(PolicyKind::Stock);
    let [busy, light] = clients(&mut server);
    server.send(busy, 300, MS / 3);
    server.send_at(at_us(20_100), light, 1000, Effect::Nothing);
    server.run_until(at_us(30_000));
    let done = server.done.iter().find(|done| done.client == light).copied();
    // The server polls again only when the single busy client has no requests left.
    assert_eq!(done, None);
}

#[test]
fn fixed_priorities_are_strict() {
    let mut server = server(PolicyKind::Fixed);
    let [low, high] = clients(&mut server);
    server.ask(high, Subject::Client(0).set(Setting::Priority(5))).unwrap();
    [low, high].into_iter().for_each(|id| keep_busy(&mut server, id, 50));
    server.run_until(Time(200 * MS));
    let last_of_high = server.done.iter().rposition(|done| done.client == high);
    let first_of_low = server.done.iter().position(|done| done.client == low);
    assert!(last_of_high < first_of_low);
}

#[test]
fn a_higher_sync_priority_keeps_the_server_under_every_policy() {
    for policy in [PolicyKind::Fair, PolicyKind::Fixed, PolicyKind::Classic] {
        let mut server = server(policy);
        let [low, high] = clients(&mut server);
        server.send_at(at_us(1), low, 1000, Effect::Prioritize(high, 10));
        server.run_until(at_us(100));
        let start = server.now();
        [low, high].into_iter().for_each(|id| keep_busy(&mut server, id, 50));
        server.run_until(start.after(200 * MS));
        let done: Vec<_> = server.done.iter().filter(|done| done.start >= start).collect();
        let last_of_high = done.iter().rposition(|done| done.client == high);
        assert!(last_of_high < done.iter().position(|done| done.client == low), "{policy:?}");
    }
}

#[test]
fn a_soft_reservation_is_first_within_its_budget_and_competes_beyond() {
    let mut server = server(PolicyKind::Fair);
    let [reserved, one, two] = clients(&mut server);
    reserve(&mut server, reserved, 3, 10, false);
    [reserved, one, two].into_iter().for_each(|id| keep_busy(&mut server, id, 400));
    server.run_until(Time(300 * MS));
    let got = server.time_of(reserved, Time(0), Time(300 * MS)) / MS;
    // The reserved client also gets a third of the remaining time, but never all of the time.
    assert!((90..200).contains(&got), "{got} ms of 300");
    for period in 1..29 {
        let (from, to) = (Time(10 * MS * period), Time(10 * MS * (period + 1)));
        let in_period = server.time_of(reserved, from, to);
        assert!(in_period >= 3 * MS - MS / 20, "{in_period} ns in period {period}");
    }
}

#[test]
fn the_holder_of_a_server_grab_is_the_only_one_served() {
    let mut server = server(PolicyKind::Fair);
    let [holder, other] = clients(&mut server);
    keep_busy(&mut server, other, 20);
    server.send_at(at_us(10), holder, 1000, Effect::Grab);
    server.send_at(at_us(30_000), holder, 1000, Effect::Ungrab);
    server.run_until(at_us(60_000));
    let grabbed = server.done.iter().find(|done| done.client == holder).unwrap().end;
    let meanwhile = server.time_of(other, grabbed, at_us(30_000));
    assert_eq!((meanwhile, server.left(other)), (0, 0), "grabbed at {grabbed:?}");
}

#[test]
fn the_longest_request_is_the_one_with_the_most_processor_time() {
    let mut server = server(PolicyKind::Fair);
    let [one, other] = clients(&mut server);
    // The server gets a tenth of the processor, so 20 ms of wall-clock time contain 2 ms of work.
    server.host().processor_shared_with = 9;
    server.send(one, 1, 20 * MS);
    server.run_until(at_us(100_000));
    server.host().processor_shared_with = 0;
    let later = server.now().after(200 * MS);
    server.send_at(later, other, 5 * MS, Effect::Nothing);
    server.run_until(later.after(50 * MS));
    let reply = server.ask(one, Request::ListClients).unwrap().unwrap();
    let clients = ClientList::decode(&reply, ByteOrder::NATIVE).unwrap().clients;
    let longest = clients.iter().map(|entry| entry.longest_request_ns / 1_000_000).collect::<Vec<_>>();
    assert!(longest[0] < 5 && longest[1] == 5, "{longest:?}");
    let reply = server.ask(one, Request::ListLongestRequests).unwrap().unwrap();
    let first = &LongestRequests::decode(&reply, ByteOrder::NATIVE).unwrap().requests[0];
    assert_eq!(first.client, clients[1].client, "the second client did more work");
}

#[test]
fn the_longest_part_may_be_of_a_request_that_is_not_the_longest() {
    let mut server = server(PolicyKind::Fair);
    // As many long requests as the server's list has entries.
    let all: [ClientId; 17] = clients(&mut server);
    let mut execute = |client, ns, effect| {
        let now = server.now();
        server.send_at(now, client, ns, effect);
        server.run_until(now.after(100 * MS));
        let reply = server.ask(client, Request::ListClients).unwrap().unwrap();
        let entries = ClientList::decode(&reply, ByteOrder::NATIVE).unwrap().clients;
        (entries[0].longest_request_ns / MS, entries[0].longest_part_us)
    };
    for client in all {
        assert_eq!(execute(client, 20 * MS, Effect::Parts(300_000)), (20, 300));
    }
    assert_eq!(execute(all[0], 5 * MS, Effect::Nothing), (20, 5000), "executed whole");
}
