// SPDX-License-Identifier: MIT
//! Tests of the end of a client's stream, of its connection, of a generation of the server, and of the server itself.

use crate::busy::{Busy, Worker, send_before_any_is_served};
use crate::fixture::{Fixture, SOON, in_parallel, setup, try_entry, uses_libc_host, wait_for, xvfb};
use crate::survival::connect_after_reset;
use crate::wire::opcode;
use xqos_abi::{ByteOrder, ClientList, Request, ServerInfo, Setting, Subject};
use xqos_core::ReservationKind;
use xqos_lab::server::{ServerKind, Setup};

fn reserve(budget_us: u32, period_us: u32) -> Request {
    Subject::Client(0).set(Setting::reservation(budget_us, period_us, ReservationKind::Hard))
}

/// A client that closes only its sending side still gets all replies, even if they take a long time.
#[test]
fn requests_before_the_end_of_a_stream_are_answered() {
    const REQUESTS: u16 = 3000;
    let _turn = in_parallel();
    let mut server = xvfb();
    let _busy = [Busy::start(&server), Busy::start(&server)];
    for order in [ByteOrder::NATIVE, ByteOrder::SWAPPED] {
        let mut wire = server.wire(order);
        let canvas = wire.canvas(500, 500);
        let work = [canvas.fill(1).repeat(REQUESTS.into()), wire.message(opcode::GET_INPUT_FOCUS, 0).finish()].concat();
        send_before_any_is_served(&server, || {
            wire.send_many(&work, REQUESTS + 1);
            wire.end_stream();
        });
        wire.set_patience(SOON);
        assert!(wire.answer().is_some_and(|answer| answer.is_ok()), "{order:?}: not all requests were served");
    }
    server.assert_armed();
}

/// The kernel reports a hangup together with the requests before it. The libc host still serves these requests in
/// order, for up to 0.1 s by the server's clock; a stock server drops them.
#[test]
fn unread_requests_of_a_client_that_hung_up_are_served_in_order() {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
    const TURNS: usize = 8;
    let _turn = in_parallel();
    let mut server = xvfb();
    let control = server.control().unwrap();
    let mut reader = Worker::start(&server);
    let mut whole = 0;
    for turn in 0..TURNS {
        let others = if turn % 2 == 0 { Vec::new() } else { vec![Busy::start(&server), Busy::start(&server)] };
        let mut client = Worker::start(&server);
        client.finish();
        let base = client.base();
        server.while_stopped(|| {
            LETTERS.iter().for_each(|&letter| client.sign(letter));
            drop(client);
        });
        wait_for("the client is gone", SOON, || try_entry(&control, base).is_none());
        let signed = reader.take_signatures();
        assert!(LETTERS.starts_with(signed.as_bytes()), "turn {turn}: {signed}");
        whole += usize::from(signed.len() == LETTERS.len());
        let sent: Vec<u64> = others.iter().map(Busy::sent).collect();
        let are_served = || others.iter().zip(&sent).all(|(busy, sent)| busy.sent() > sent + 100);
        wait_for("the others are served", SOON, are_served);
    }
    println!("all requests were executed in {whole} of {TURNS} turns");
    assert!(whole > 0 || !uses_libc_host(), "requests sent before a hangup were dropped");
    server.assert_armed();
}

/// The server continues as the same process at the same display and knows none of its earlier clients.
#[test]
fn a_server_that_resets_forgets_all_clients_and_is_served_again() {
    const RESETS: usize = 20;
    let _turn = in_parallel();
    let mut server = Fixture::start(&Setup { resets: true, ..setup(ServerKind::Xvfb) });
    let mut kept = Vec::new();
    for turn in 0..RESETS {
        let mut wire = connect_after_reset(&server);
        let list = ClientList::decode(&wire.ask_xqos(Request::ListClients).unwrap(), ByteOrder::NATIVE).unwrap();
        let info = ServerInfo::decode(&wire.ask_xqos(Request::GetServerInfo).unwrap(), ByteOrder::NATIVE).unwrap();
        assert_eq!((list.clients.len(), info.reservations), (1, 0), "turn {turn}: {list:?}");
        assert!(info.armed && info.server_pid == server.pid(), "turn {turn}: {info:?}");
        kept.push((server.threads(), server.open_files()));
        // The last client disconnects with something unfinished: half a request, a grab, or a hold.
        match turn % 3 {
            0 => wire.send_raw(&[127]),
            1 => wire.set_grab(true),
            _ => drop(Busy::start_with(wire, &[reserve(1000, 10_000_000)])),
        }
    }
    // Later generations reuse files that the first ones opened. xqos opens one or two more when a client stays busy.
    let grown = |part: fn(&(usize, usize)) -> usize| part(&kept[RESETS - 1]).saturating_sub(part(&kept[2]));
    assert!(grown(|kept| kept.0) < 3 && grown(|kept| kept.1) < RESETS / 2, "threads and files: {kept:?}");
    connect_after_reset(&server).sync();
    let said = server.xqos_log();
    assert!(!said.contains("stepped aside") && server.is_running(), "{said}");
}

#[test]
fn a_server_started_with_terminate_ends_with_its_last_client() {
    let _turn = in_parallel();
    let mut wanted = Setup { resets: true, ..setup(ServerKind::Xvfb) };
    wanted.arguments.push("-terminate".into());
    let mut server = Fixture::start(&wanted);
    let (mut wire, busy) = (server.native(), Busy::start(&server));
    wire.tell_xqos(reserve(1000, 10_000)).unwrap();
    wire.sync();
    drop(busy);
    wire.sync();
    assert!(server.is_running(), "a client is left");
    drop(wire);
    wait_for("the server has ended", SOON, || !server.is_running());
    let log = server.log();
    assert!(["stepped aside", "Fatal", "Backtrace"].iter().all(|trouble| !log.contains(trouble)), "{log}");
}
