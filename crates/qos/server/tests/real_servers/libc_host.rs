// SPDX-License-Identifier: MIT
//! Tests of servers that are served through libc. The tests that `with-libc` lists also run for such servers, with
//! XQOS_HOST=libc.

use crate::busy::{Busy, X11perf};
use crate::fixture::{
    Fixture, SOON, alone, as_nobody, entry, fix_blocking, in_parallel, is_held_back, is_missing, is_not_root, setup,
    try_entry, wait_for,
};
use crate::wire::{Wire, opcode};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use xqos_abi::ring::{Next, RingReader};
use xqos_abi::trace::{Entry, Event, Level};
use xqos_abi::{ByteOrder, PolicyChange, entry_flag};
use xqos_client::{Control, Error};
use xqos_core::{ClientId, Fact, PolicyKind, Time};
use xqos_lab::server::{ServerKind, Setup};
use xqos_testkit::Random;

fn setup_with_libc(kind: ServerKind) -> Setup {
    let mut setup = setup(kind);
    setup.environment.push(("XQOS_HOST".into(), "libc".into()));
    setup
}

fn start_with_libc(kind: ServerKind) -> Fixture {
    Fixture::start(&setup_with_libc(kind))
}

pub fn control_socket(server: &Fixture) -> UnixStream {
    let display = server.display().trim_start_matches(':').parse().unwrap();
    // SAFETY: the call takes no arguments and cannot fail.
    let paths = xqos_abi::control::paths(display, unsafe { libc::geteuid() });
    paths.iter().find_map(|path| UnixStream::connect(path).ok()).expect("the server listens for control")
}

#[test]
fn every_kind_of_server_can_be_served_through_libc() {
    let _turn = in_parallel();
    for kind in ServerKind::ALL {
        if is_missing(kind) {
            continue;
        }
        let mut server = start_with_libc(kind);
        server.assert_armed();
        assert!(server.control().unwrap().is_served_through_libc() == Some(true), "{kind:?}");
        assert_eq!(server.info().server_pid, server.pid());
        let mut wire = server.native();
        wire.sync();
        assert!(entry(&server.control().unwrap(), wire.base).requests > 0, "{kind:?}: its requests are counted");
    }
}

#[test]
fn requests_that_need_single_requests_are_refused() {
    let _turn = in_parallel();
    let server = start_with_libc(ServerKind::Xvfb);
    let control = server.control().unwrap();
    let classic = PolicyChange { policy: Some(PolicyKind::Classic), ..PolicyChange::default() };
    assert!(matches!(control.set_policy(classic), Err(Error::NeedsSingleRequests)));
    assert!(server.info().policy == PolicyKind::Fair, "the policy is unchanged");
}

/// The request is longer than the server's buffer and needs BIG-REQUESTS. Another client draws meanwhile.
#[test]
fn a_request_of_sixteen_megabytes_arrives_whole() {
    const SIDE: u16 = 1990;
    const Z_PIXMAP: u8 = 2;
    let _turn = in_parallel();
    for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
        let mut server = start_with_libc(ServerKind::Xvfb);
        let _busy = Busy::start(&server);
        let mut wire = server.wire(order);
        let big = wire.extension("BIG-REQUESTS").expect("the server has BIG-REQUESTS");
        let enabled = wire.ask(&wire.message(big.major, 0).finish()).unwrap();
        assert!(wire.u32_in(&enabled, 8) >= 4_000_000);
        let canvas = wire.canvas(SIDE, SIDE);
        let pixels: Vec<u8> =
            (0..4 * u32::from(SIDE) * u32::from(SIDE)).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let put = wire.message(opcode::PUT_IMAGE, Z_PIXMAP).u32(canvas.pixmap).u32(canvas.context);
        wire.send(&put.u16(SIDE).u16(SIDE).u32(0).raw(&[0, 24, 0, 0]).raw(&pixels).finish());
        let get = wire
            .message(opcode::GET_IMAGE, Z_PIXMAP)
            .u32(canvas.pixmap)
            .u16(0)
            .u16(0)
            .u16(SIDE)
            .u16(SIDE)
            .u32(!0)
            .finish();
        let image = wire.ask(&get).unwrap();
        let differs = image[32..].chunks(4).zip(pixels.chunks(4)).position(|(is, was)| is[..3] != was[..3]);
        assert_eq!(differs, None, "the first pixel that differs");
        server.assert_armed();
    }
}

#[test]
fn random_bytes_at_the_control_socket_harm_no_client() {
    let _turn = alone();
    let mut server = start_with_libc(ServerKind::Xvfb);
    let mut wire = server.native();
    wire.sync();
    let files = server.open_files();
    let mut random = Random(xqos_testkit::seed());
    for turn in 0..300 {
        let mut stream = control_socket(&server);
        stream.set_write_timeout(Some(SOON)).unwrap();
        let length = 1 + random.below(2000);
        let mut bytes = random.bytes(length);
        if turn % 2 == 0 {
            // Make most of the headers valid.
            for start in (0..length.saturating_sub(4)).step_by(16) {
                bytes[start..start + 4].copy_from_slice(&[0, random.next() as u8 % 24, 4, 0]);
            }
        }
        // The server disconnects a client whose requests it cannot parse.
        let _ = stream.write_all(&bytes);
        wire.sync();
    }
    // A client that sends requests and never reads.
    let mut greedy = control_socket(&server);
    greedy.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let list = xqos_abi::Request::ListClients.encode(0);
    while greedy.write_all(&list.repeat(64)).is_ok() && greedy.peer_addr().is_ok() {}
    wire.sync();
    drop(greedy);
    wait_for("all connections are closed", SOON, || {
        wire.sync();
        server.open_files() <= files
    });
    server.assert_armed();
}

/// Either the socket is in a folder that only its user can access, or the server checks the peer's user.
#[test]
fn another_user_changes_nothing_over_the_control_socket() {
    let _turn = in_parallel();
    if is_not_root() {
        return;
    }
    let server = start_with_libc(ServerKind::Xvfb);
    let display = server.display().to_owned();
    let changed = as_nobody(|| {
        let change = PolicyChange { policy: Some(PolicyKind::Stock), ..PolicyChange::default() };
        Control::connect(Some(&display)).ok().flatten().is_some_and(|control| control.set_policy(change).is_ok())
    });
    assert!(!changed);
    assert!(server.info().policy == PolicyKind::Fair);
}

/// Once xqos knows that a reserved client has work, it chooses no other client before the reserved one. The running
/// slice may still serve the rest of a chunk; docs/servers.md states how long that takes.
#[test]
fn no_other_client_is_chosen_between_the_arrival_of_a_reserved_client_and_its_slice() {
    const TURNS: usize = 250;
    let _turn = alone();
    let server = start_with_libc(ServerKind::Xvfb);
    for test in ["ellipse100", "noop", "getimagexy100", "putimage500"] {
        let _perfs = X11perf::start_many(&server, test, 12);
        let control = server.control().unwrap();
        let mut wire = server.native();
        wire.sync();
        fix_blocking(&control);
        control.reserve(wire.base, 3000, 10_000, false).unwrap();
        let mut reader = control.start_trace(Level::Slices, 0).unwrap();
        let mut turns = Turns { base: wire.base, ..Turns::default() };
        // A request that arrives before the server has seen the end of the data is not a new arrival.
        for _ in 0..4 * TURNS {
            if turns.served + turns.depleted >= TURNS {
                break;
            }
            wire.sync();
            // Read during the run: on a slow machine the ring would overflow before the end.
            turns.read(&mut reader);
            std::thread::sleep(Duration::from_millis(2));
        }
        control.stop_trace().unwrap();
        turns.read(&mut reader);
        println!("{test}: {turns:?}");
        assert!(turns.served + turns.depleted >= TURNS, "{test}: {turns:?}");
    }
}

/// Counts the outcomes of one client's arrivals.
#[derive(Debug, Default)]
struct Turns {
    base: u32,
    own: Option<ClientId>,
    arrived: Option<Time>,
    served: usize,
    /// No budget is left, because the kernel interrupted an earlier slice and so made it longer. The client is then
    /// served as best effort.
    is_depleted: bool,
    /// Arrivals with no budget left.
    depleted: usize,
    /// The longest time from an arrival to the client's slice.
    longest_ns: u64,
}

impl Turns {
    /// Fails if another client was chosen between an arrival and the client's slice.
    fn read(&mut self, reader: &mut RingReader) {
        while let Next::Record(words) = reader.read() {
            let event = Event::decode(words).unwrap();
            match event.what {
                Entry::Identity { client, base, .. } if base == self.base => self.own = Some(client),
                Entry::Fact(Fact::Arrived { client }) if Some(client) == self.own => {
                    self.arrived = Some(event.at).filter(|_| !self.is_depleted);
                    self.depleted += usize::from(self.is_depleted);
                }
                Entry::Budget { client, depleted, .. } if Some(client) == self.own => {
                    self.is_depleted = depleted;
                    self.depleted += usize::from(depleted && self.arrived.take().is_some());
                }
                Entry::Dispatch { client, .. } if client == self.own => {
                    if let Some(arrived) = self.arrived.take() {
                        self.served += 1;
                        self.longest_ns = self.longest_ns.max(event.at.since(arrived));
                    }
                }
                Entry::Dispatch { client: Some(other), .. } => {
                    assert!(
                        self.arrived.is_none(),
                        "{other:?} was chosen while the reserved client had work: {self:?}"
                    );
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_client_of_the_other_byte_order_is_served_through_libc_under_every_policy() {
    let _turn = in_parallel();
    let mut server = start_with_libc(ServerKind::Xvfb);
    let control = server.control().unwrap();
    let _busy = Busy::start(&server);
    for kind in PolicyKind::ALL.into_iter().filter(|&kind| kind != PolicyKind::Classic) {
        control.set_policy(PolicyChange { policy: Some(kind), ..PolicyChange::default() }).unwrap();
        let mut wire = server.wire(ByteOrder::SWAPPED);
        let canvas = wire.canvas(100, 100);
        for _ in 0..20 {
            wire.tell(&canvas.fill(3)).unwrap();
        }
        let before = entry(&control, wire.base);
        assert!(before.requests > 20 && before.pid as u32 == std::process::id(), "{kind:?}: {before:?}");
        wire.send_many(&canvas.fill(1).repeat(1000), 1000);
        wire.sync();
        let requests = entry(&control, wire.base).requests - before.requests;
        assert!((500..=2000).contains(&requests), "{kind:?}: {requests} of 1001, estimated by their lengths");
    }
    // xqos has read this client's id in the client's byte order. A hold works only if that id is correct.
    let held = Busy::start_on(server.wire(ByteOrder::SWAPPED));
    control.reserve(held.base, 1000, 10_000_000, true).unwrap();
    wait_for("the client is held back", SOON, || is_held_back(&control, held.base));
    server.assert_armed();
}

#[test]
fn remote_clients_are_served_and_have_no_name() {
    let _turn = in_parallel();
    let mut wanted = setup_with_libc(ServerKind::Xvfb);
    wanted.arguments.extend(["-ac", "-listen", "tcp"].map(Into::into));
    let mut server = Fixture::start(&wanted);
    let control = server.control().unwrap();
    let _busy = Busy::start(&server);
    for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
        let mut remote = Wire::connect_by_tcp(server.display(), order);
        let canvas = remote.canvas(100, 100);
        remote.send_many(&canvas.fill(1).repeat(2000), 2000);
        remote.sync();
        let found = entry(&control, remote.base);
        assert_eq!((found.pid, found.uid, found.name.as_str()), (0, u32::MAX, ""), "{order:?}");
        assert!(found.flags & entry_flag::LOCAL == 0 && found.requests > 500 && found.server_time_ns > 0, "{found:?}");
        // A remote client cannot use the control socket, but the server's user may change its settings.
        let held = Busy::start_on(Wire::connect_by_tcp(server.display(), order));
        control.reserve(held.base, 1000, 10_000_000, true).unwrap();
        wait_for("the client is held back", SOON, || is_held_back(&control, held.base));
        let base = held.base;
        let before = entry(&control, base).requests;
        control.release(base).unwrap();
        wait_for("the client is served again", SOON, || entry(&control, base).requests > before + 300);
        let base = remote.base;
        drop(remote);
        wait_for("the client is gone", SOON, || try_entry(&control, base).is_none());
    }
    server.assert_armed();
}
