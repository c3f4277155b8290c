// SPDX-License-Identifier: MIT
//! Floods a server with bad input for a limited time: random bytes, random requests, random XQOS requests.

use crate::fixture::{Fixture, SOON, alone, as_nobody, is_not_root, served, setup, wait_for};
use crate::libc_host::control_socket;
use crate::tracing::{Wait, id_of, read, waits};
use crate::wire::{Wire, opcode};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use xqos_abi::trace::{Event, Level};
use xqos_abi::{ByteOrder, Request, SettingKind, Subject};
use xqos_lab::server::ServerKind;
use xqos_testkit::Random;

const DURATION: Duration = Duration::from_millis(2400);

/// The kind of data that a connection sends.
#[derive(Clone, Copy, Debug)]
enum Flood {
    /// Random bytes without any structure.
    Bytes,
    /// Requests of plausible lengths with random content, except those that may legitimately block other clients.
    Requests,
    /// XQOS requests with random content.
    Xqos,
}

impl Flood {
    fn chunk(self, random: &mut Random, xqos_major: u8, order: ByteOrder, ids: &[u32]) -> Vec<u8> {
        match self {
            Flood::Bytes => {
                let length = 1 + random.below(3000);
                random.bytes(length)
            }
            Flood::Requests => {
                // A server grab would block all other clients on any server.
                const LEFT_OUT: [u8; 3] = [opcode::GRAB_SERVER, opcode::KILL_CLIENT, opcode::SET_CLOSE_DOWN_MODE];
                let major = random.next() as u8;
                let major = if LEFT_OUT.contains(&major) { opcode::NO_OPERATION } else { major };
                request(random, major, order, ids)
            }
            Flood::Xqos => request(random, xqos_major, order, ids),
        }
    }
}

/// A request with a mostly valid header and some meaningful words.
fn request(random: &mut Random, major: u8, order: ByteOrder, ids: &[u32]) -> Vec<u8> {
    const LENGTHS: [usize; 30] =
        [3, 1, 5, 2, 2, 5, 1, 8, 3, 3, 2, 3, 1, 1, 3, 3, 1, 1, 2, 1, 10, 3, 1, 10, 3, 3, 5, 2, 3, 1];
    let minor = random.below(LENGTHS.len() + 2);
    let right = LENGTHS.get(minor).copied().unwrap_or(2);
    let units = if random.below(8) == 0 { 1 + random.below(12) } else { right };
    let mut message = crate::wire::Message::new(order, major, minor as u8);
    for _ in 1..units {
        message = message.u32(match random.below(6) {
            0 => 0,
            1 => ids[random.below(ids.len())],
            2 => random.next() as u32,
            3 => random.below(64) as u32,
            4 => 100 + random.below(1000) as u32,
            _ => 1000 + random.below(30_000) as u32,
        });
    }
    message.finish()
}

/// Floods the server through one connection after another until `stop` is set. Adds up the bytes in `sent`.
fn flood(fixture: &Fixture, kind: Flood, seed: u64, ids: &[u32], stop: &AtomicBool, sent: &AtomicUsize) {
    let mut random = Random(seed);
    while !stop.load(Ordering::Relaxed) {
        let order = if random.below(2) == 0 { ByteOrder::NATIVE } else { ByteOrder::SWAPPED };
        let mut wire = Wire::connect(fixture.display(), order);
        let major = wire.xqos().major;
        let mut stream = wire.into_stream();
        stream.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
        let end = Instant::now() + Duration::from_millis(60);
        while Instant::now() < end {
            let chunk = kind.chunk(&mut random, major, order, ids);
            if stream.write_all(&chunk).is_err() {
                // The server waits for the rest of a long request, or has closed the connection. Both are allowed.
                break;
            }
            sent.fetch_add(chunk.len(), Ordering::Relaxed);
            throw_away_answers(&mut stream);
        }
    }
}

fn throw_away_answers(stream: &mut UnixStream) {
    stream.set_nonblocking(true).unwrap();
    while matches!(stream.read(&mut [0; 16_384]), Ok(1..)) {}
    stream.set_nonblocking(false).unwrap();
}

/// Runs floods of all kinds at the same time, while `light` sends a request and waits for its answer every 2 ms.
/// Continues until there are enough of both. Returns the trace.
fn endure(fixture: &Fixture, light: &mut Wire, ids: &[u32], as_stranger: bool) -> Vec<Event> {
    let control = fixture.control().unwrap();
    let mut reader = control.start_trace(Level::Slices, 0).unwrap();
    let stop = AtomicBool::new(false);
    let sent = [const { AtomicUsize::new(0) }; 4];
    std::thread::scope(|scope| {
        let kinds = [Flood::Bytes, Flood::Requests, Flood::Xqos, Flood::Xqos];
        let stop = &stop;
        let start = |(seed, (kind, sent))| {
            scope.spawn(move || {
                let run = || flood(fixture, kind, seed, ids, stop, sent);
                if as_stranger { as_nobody(run) } else { run() }
            })
        };
        let threads: Vec<_> = xqos_testkit::seeds(4).zip(kinds.into_iter().zip(&sent)).map(start).collect();
        let (began, mut answers, mut events) = (Instant::now(), 0, Vec::new());
        let is_enough = |answers| answers > 50 && sent.iter().all(|sent| sent.load(Ordering::Relaxed) > 10_000);
        while began.elapsed() < DURATION || began.elapsed() < SOON && !is_enough(answers) {
            if threads.iter().any(|thread| thread.is_finished()) {
                break;
            }
            light.sync();
            answers += 1;
            events.extend(read(&mut reader));
            std::thread::sleep(Duration::from_millis(2));
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        println!("flooded with {sent:?} bytes");
        assert!(is_enough(answers), "a flood sent too little: {sent:?}, or {answers} answers are too few");
        events
    })
}

/// Clients of another user may not change settings of other clients, so the flood must not affect their service.
#[test]
fn a_flood_from_another_user_harms_neither_the_server_nor_other_clients() {
    let _turn = alone();
    if is_not_root() {
        return;
    }
    let mut wanted = setup(ServerKind::Xvfb);
    wanted.arguments.push("-ac".into());
    let mut fixture = Fixture::start(&wanted);
    let mut light = fixture.native();
    let ids = [light.base, light.base + 1, light.root, u32::MAX];
    let events = endure(&fixture, &mut light, &ids, true);
    let waits = waits(&events, id_of(&events, light.base));
    let median = |of: fn(&Wait) -> u64| {
        let mut all: Vec<u64> = waits.iter().map(of).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let (slices, processor_ns) = (median(|wait| wait.slices as u64), median(|wait| wait.processor_ns));
    println!("{} answers, half of them after {slices} slices and {processor_ns} ns of a processor", waits.len());
    assert!(waits.len() > 20 && slices <= 1 && processor_ns < 5_000_000, "{waits:?}");
    // Each flood may have as much time as was stolen in the light client's own slices.
    let is_short = |wait: &Wait| wait.processor_ns < 500_000_000 + 4 * wait.stolen_ns;
    let longest = waits.iter().max_by_key(|wait| wait.processor_ns);
    println!("the longest wait: {longest:?}");
    assert!(waits.iter().all(is_short), "{longest:?}");
    let control = fixture.control().unwrap();
    assert_eq!(control.server_info().unwrap().policy, xqos_core::PolicyKind::Fair);
    let entry = crate::fixture::entry(&control, light.base);
    assert_eq!((entry.weight, entry.budget_us, entry.fixed_priority), (100, 0, 0));
    wait_for("the flood is gone", SOON, || control.clients().unwrap().clients.len() == 2);
    fixture.assert_armed();
}

/// The server's own user may change everything, but must not be able to break anything.
#[test]
fn a_flood_from_the_servers_own_user_does_not_harm_the_server() {
    let _turn = alone();
    let mut fixture = Fixture::start(&setup(ServerKind::Xvfb));
    let mut light = fixture.native();
    let ids = [light.base, light.base + 0x20_0000, light.base + 0x40_0000, u32::MAX];
    endure(&fixture, &mut light, &ids, false);
    light.tell_xqos(Subject::Client(0).clear(SettingKind::Reservation)).unwrap();
    light.sync();
    let control = fixture.control().unwrap();
    wait_for("the flood is gone", SOON, || control.clients().unwrap().clients.len() == 2);
    assert_eq!(control.server_info().unwrap().reservations, 0);
    fixture.assert_armed();
}

#[test]
fn control_requests_whose_replies_are_not_read_take_little_memory() {
    const CLIENTS: usize = 100;
    const PEERS: usize = 30;
    let (mut fixture, control) = served();
    let _clients: Vec<Wire> = (0..CLIENTS).map(|_| fixture.native()).collect();
    let before = fixture.private_kb();
    let mut peers: Vec<UnixStream> = (0..PEERS).map(|_| control_socket(&fixture)).collect();
    let requests = Request::ListClients.encode(0).repeat(64);
    fixture.while_stopped(|| peers.iter_mut().for_each(|peer| peer.write_all(&requests).unwrap()));
    (0..10).for_each(|_| _ = control.server_info().unwrap());
    let grown = fixture.private_kb().saturating_sub(before);
    println!("{grown} KB more for {PEERS} peers");
    assert!(grown < 10_000, "{grown} KB more for {PEERS} peers");
    // A peer that reads gets all of its replies.
    let mut first = peers.swap_remove(0);
    let reply_bytes = 32 + 392 * control.clients().unwrap().clients.len();
    let mut replies = vec![0; 64 * reply_bytes];
    first.set_read_timeout(Some(SOON)).unwrap();
    first.read_exact(&mut replies).unwrap();
    assert!(replies.chunks(reply_bytes).zip(1_u16..).all(|(reply, number)| reply[2..4] == number.to_ne_bytes()));
    fixture.assert_armed();
}
