// SPDX-License-Identifier: MIT
//! Tests of requests that are cut. The server with xqos cuts each request that has parts after each part; clients must
//! see the same as on a stock server that executes whole requests in the same order.

mod drawing;
mod random;
mod replies;
mod shared;
mod sheet;
mod survival;
mod traced;
mod whole;
mod world;

use crate::fixture::{Fixture, in_parallel, is_missing, setup, uses_libc_host};
use crate::wire::{Wire, opcode};
use random::Requests;
use std::collections::BTreeMap;
use std::ffi::OsString;
use world::{CLIENTS, World, half, message};
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_client::Control;
use xqos_core::ClientId;
use xqos_lab::server::{ServerKind, Setup};
use xqos_testkit::Random;

const OF_A_ROUND: usize = 200;
/// Requests in an ordinary run; XQOS_CUT_REQUESTS sets another number, and XQOS_CUT_SEED another seed.
const REQUESTS: u64 = 100_000;

/// The settings for a server that cuts each request after each part.
fn cutting_setup() -> Setup {
    let mut setup = setup(ServerKind::Xvfb);
    setup.environment.push((OsString::from("XQOS_TEST_CUT"), OsString::from("always")));
    setup
}

fn cutting() -> Fixture {
    Fixture::start(&cutting_setup())
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// The messages that one client has received, each with the number of the request. Events get the number 0, because
/// cutting a request can change the number of an event.
type Received = Vec<Vec<u8>>;

/// Reads everything before the reply to the request at this distance from the first sequence number. `each`: the number
/// of sequence numbers per request.
fn receive(wire: &mut Wire, first: u16, each: u16, end: u16) -> Received {
    let (mut received, mut last) = (Received::new(), 0);
    loop {
        let mut bytes = wire.message_of_any_kind().expect("a message");
        let distance = half(&bytes, 2).wrapping_sub(first);
        assert!(distance >= last, "the sequence numbers went back from {last} to {distance}");
        last = distance;
        if bytes[0] == 1 && distance == end {
            return received;
        }
        let number = if bytes[0] > 1 { 0 } else { distance.div_ceil(each) };
        bytes[2..4].copy_from_slice(&number.to_ne_bytes());
        if bytes[0] == 1 && bytes.len() > 32 {
            // The fourth byte of a pixel is unused. Drawing may leave any value in it.
            bytes[32..].chunks_exact_mut(4).for_each(|pixel| pixel[3] = 0);
        }
        received.push(bytes);
    }
}

/// All clients send their requests at the same time.
fn send_together(world: &mut World, requests: &[Vec<Vec<u8>>]) -> Vec<Received> {
    let mut received: Vec<Received> = std::thread::scope(|scope| {
        let send = |(wire, requests): (&'_ mut Wire, &'_ Vec<Vec<u8>>)| {
            let (first, count) = (wire.sequence(), requests.len() as u16);
            wire.send_many(&requests.concat(), count);
            wire.send(&message(opcode::GET_INPUT_FOCUS, 0).finish());
            receive(wire, first, 1, count + 1)
        };
        let pairs = world.clients.iter_mut().zip(requests);
        let threads: Vec<_> = pairs.map(|pair| scope.spawn(move || send(pair))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    // One more round trip of each client, for events that others caused.
    for (wire, received) in world.clients.iter_mut().zip(&mut received) {
        let first = wire.sequence();
        wire.send(&message(opcode::GET_INPUT_FOCUS, 0).finish());
        received.extend(receive(wire, first, 1, 1));
    }
    received
}

/// Sends one request after another in this order, and waits until each is executed.
fn send_in_order(world: &mut World, requests: &[Vec<Vec<u8>>], order: &[usize]) -> Vec<Received> {
    let mut received = vec![Received::new(); CLIENTS];
    let mut sent = [0; CLIENTS];
    let first: Vec<u16> = world.clients.iter().map(Wire::sequence).collect();
    // At the end, each client makes one more round trip, for events that others caused.
    for client in order.iter().copied().chain(0..CLIENTS) {
        let wire = &mut world.clients[client];
        if let Some(request) = requests[client].get(sent[client]) {
            wire.send(request);
        } else {
            wire.send(&message(opcode::NO_OPERATION, 0).finish());
        }
        wire.send(&message(opcode::GET_INPUT_FOCUS, 0).finish());
        sent[client] += 1;
        received[client].extend(receive(wire, first[client], 2, 2 * sent[client] as u16));
    }
    received
}

/// Reads from a trace in which order requests ended.
struct Ends {
    reader: RingReader,
    bases: BTreeMap<ClientId, u32>,
    _control: Control,
}

impl Ends {
    fn of(fixture: &Fixture) -> Ends {
        let control = fixture.control().unwrap();
        let reader = control.start_trace(Level::Requests, 1 << 16).unwrap();
        Ends { reader, bases: BTreeMap::new(), _control: control }
    }

    /// The clients whose requests have ended since the last call, each by its position in `bases`. Waits until this
    /// many have: the server may send a reply before it records the request.
    fn order(&mut self, bases: &[u32], count: usize) -> Vec<usize> {
        let mut order = Vec::new();
        loop {
            match self.reader.read() {
                Next::Record(words) => match Event::decode(words).expect("a record").what {
                    Entry::Identity { client, base, .. } => _ = self.bases.insert(client, base),
                    Entry::Request { client, .. } => {
                        let of = self.bases.get(&client).and_then(|base| bases.iter().position(|one| one == base));
                        order.extend(of);
                    }
                    _ => {}
                },
                Next::Lost(records) => panic!("{records} records of the trace were overwritten"),
                Next::Nothing if order.len() < count => std::thread::yield_now(),
                Next::Nothing | Next::Ended => return order,
            }
        }
    }
}

#[test]
fn cut_requests_have_the_effects_of_whole_ones_executed_in_the_order_in_which_they_ended() {
    let _turn = in_parallel();
    if uses_libc_host() {
        return;
    }
    let cutting = cutting();
    let stock = Fixture::start(&Setup::stock(ServerKind::Xvfb));
    let [mut cut, mut whole] = [&cutting, &stock].map(World::new);
    let bases: Vec<u32> = cut.clients.iter().map(|wire| wire.base).collect();
    assert_eq!(bases, whole.clients.iter().map(|wire| wire.base).collect::<Vec<_>>(), "the same ids on both servers");
    let mut ends = Ends::of(&cutting);
    ends.order(&bases, 0);
    let (seed, mut left) = (number("XQOS_CUT_SEED", 1), number("XQOS_CUT_REQUESTS", REQUESTS));
    let mut round = 0;
    while left > 0 {
        let requests: Vec<Vec<Vec<u8>>> = (0..CLIENTS as u64)
            .map(|client| {
                let random = Random(seed.wrapping_mul(1 << 40) + round * CLIENTS as u64 + client);
                let mut of = Requests { world: &cut, random };
                (0..OF_A_ROUND).map(|_| of.next()).collect()
            })
            .collect();
        let is = send_together(&mut cut, &requests);
        let mut order = ends.order(&bases, CLIENTS * (OF_A_ROUND + 2));
        order.truncate(order.len() - CLIENTS);
        assert_eq!(order.len(), CLIENTS * (OF_A_ROUND + 1), "seed {seed}, round {round}: each request ends once");
        let wanted = send_in_order(&mut whole, &requests, &order);
        for client in 0..CLIENTS {
            for (at, (is, wanted)) in is[client].iter().zip(&wanted[client]).enumerate() {
                let number = usize::from(half(is, 2));
                let request = requests[client].get(number.wrapping_sub(1));
                assert_eq!(is, wanted, "seed {seed}, round {round}, client {client}, message {at}, to {request:x?}");
            }
            assert_eq!(
                is[client].len(),
                wanted[client].len(),
                "seed {seed}, round {round}, messages to client {client}"
            );
        }
        for (what, (is, wanted)) in cut.contents().iter().zip(whole.contents()).enumerate() {
            let differs = is.iter().zip(&wanted).position(|(is, wanted)| is != wanted);
            assert_eq!(differs, None, "seed {seed}, round {round}, contents {what}");
        }
        // Reading the contents took requests of the first client.
        ends.order(&bases, 4);
        left = left.saturating_sub((CLIENTS * OF_A_ROUND) as u64);
        round += 1;
    }
    let report = cutting.control().unwrap().cut().unwrap();
    assert!(report.cuts > 1000 && report.finished > 100, "{report:?}");
    eprintln!("{report:?}");
}

/// The rules for requests of other clients name each extension that these servers have. Requests of all other
/// extensions finish the pending rests.
#[test]
fn the_rules_cover_the_extensions_of_all_servers() {
    let _turn = in_parallel();
    let rules = include_str!("../../src/host/dix/cutting/requests.txt");
    let named: Vec<&str> = rules.lines().filter_map(|line| line.split('\t').next()).collect();
    for kind in [ServerKind::Xvfb, ServerKind::Xephyr, ServerKind::Xtigervnc, ServerKind::Xorg] {
        if is_missing(kind) {
            continue;
        }
        let server = Fixture::start(&Setup::stock(kind));
        let reply = server.native().ask(&message(99, 0).finish()).unwrap();
        let mut names = &reply[32..];
        for _ in 0..reply[1] {
            let (name, rest) = names[1..].split_at(usize::from(names[0]));
            let name = std::str::from_utf8(name).unwrap();
            assert!(named.contains(&name), "{kind:?} has the extension {name}");
            names = rest;
        }
    }
}
