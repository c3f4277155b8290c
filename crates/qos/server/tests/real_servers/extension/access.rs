// SPDX-License-Identifier: MIT
//! Tests which client may change what.

use super::*;

fn requests_for(client: u32) -> [Request; 4] {
    [
        reserve(client, 1000, 10_000, false),
        Subject::Client(client).clear(SettingKind::Reservation),
        Subject::Client(client).set(Setting::Weight(120)),
        Subject::Client(client).set(Setting::Priority(3)),
    ]
}

/// Checks that a client may read everything and change only itself.
fn assert_stranger(wire: &mut Wire, other: u32) {
    for request in requests_for(0) {
        wire.tell_xqos(request).unwrap();
    }
    for request in requests_for(other) {
        let request = wire.xqos_bytes(request);
        assert_refused(wire, &request, code::BAD_ACCESS, other);
    }
    for change in [
        PolicyChange { policy: Some(PolicyKind::Stock), ..PolicyChange::default() },
        PolicyChange { blocking_us: Some(1), ..PolicyChange::default() },
        PolicyChange::default(),
    ] {
        let request = wire.xqos_bytes(Request::SetPolicy { change });
        assert_refused(wire, &request, code::BAD_ACCESS, 0);
    }
    assert!(!reservation(wire, other).active);
    assert!(admission(wire, check(other, 1000, 10_000)).admitted);
    assert!(list(wire).iter().any(|entry| entry.client == other && entry.weight == 100));
    wire.tell_xqos(Request::SelectEvents { mask: event_mask::ALL }).unwrap();
}

#[test]
fn another_user_may_only_change_itself() {
    let _turn = in_parallel();
    if is_not_root() {
        return;
    }
    let mut wanted = setup(ServerKind::Xvfb);
    wanted.arguments.push("-ac".into());
    let fixture = Fixture::start(&wanted);
    let mut own = fixture.native();
    for order in ORDERS {
        let mut stranger = as_nobody(|| fixture.wire(order));
        assert_stranger(&mut stranger, own.base);
        let mut friend = as_nobody(|| fixture.native());
        for request in requests_for(friend.base) {
            stranger.tell_xqos(request).expect("the same user's client");
        }
        for request in requests_for(stranger.base).into_iter().chain(requests_for(friend.base)) {
            own.tell_xqos(request).expect("the server's user");
        }
        let base = stranger.base;
        let found = list(&mut friend).into_iter().find(|entry| entry.client == base).unwrap();
        assert_eq!((found.uid, found.flags & entry_flag::LOCAL), (65534, entry_flag::LOCAL));
    }
}

#[test]
fn a_remote_client_may_only_change_itself() {
    let _turn = in_parallel();
    let mut wanted = setup(ServerKind::Xvfb);
    wanted.arguments.extend(["-ac", "-listen", "tcp"].map(Into::into));
    let fixture = Fixture::start(&wanted);
    let mut own = fixture.native();
    for order in ORDERS {
        let mut remote = Wire::connect_by_tcp(fixture.display(), order);
        assert_stranger(&mut remote, own.base);
        let other = Wire::connect_by_tcp(fixture.display(), order);
        let request = remote.xqos_bytes(reserve(other.base, 1000, 10_000, false));
        // Two remote clients do not count as the same user.
        assert_refused(&mut remote, &request, code::BAD_ACCESS, other.base);
        own.tell_xqos(reserve(remote.base, 1000, 10_000, false)).expect("the server's user");
        let found = list(&mut own).into_iter().find(|entry| entry.client == remote.base).unwrap();
        assert_eq!((found.pid, found.uid, found.name.as_str()), (0, u32::MAX, ""));
        assert_eq!(found.flags & entry_flag::LOCAL, 0);
    }
}

#[test]
fn an_untrusted_client_does_not_see_the_extension() {
    let _turn = in_parallel();
    let file = std::env::temp_dir().join(format!("xqos-server-test-{}-security", std::process::id()));
    std::fs::write(&file, authority_entry(COOKIE, &[9; 16])).unwrap();
    let mut wanted = setup(ServerKind::Xvfb);
    wanted.arguments.extend(["+extension".into(), "SECURITY".into(), "-auth".into(), file.clone().into()]);
    let fixture = Fixture::start(&wanted);
    std::fs::remove_file(file).unwrap();
    let connect = |order, authorization: &Authorization| {
        Wire::try_connect(local_socket(fixture.display()), order, authorization).unwrap()
    };
    let mut trusted = connect(ByteOrder::NATIVE, &Authorization::cookie(&[9; 16]));
    let Some(cookie) = trusted.untrusted_cookie() else {
        return xqos_testkit::left_out("this server has no SECURITY");
    };
    let (xqos, own) = (trusted.xqos(), trusted.base);
    for order in ORDERS {
        let mut untrusted = connect(order, &cookie);
        assert_eq!(untrusted.extension("XQOS"), None);
        for request in requests_for(own).into_iter().chain(requests_for(0)).chain([Request::ListClients]) {
            let bytes = request.encode_as(xqos.major, order);
            let error = untrusted.tell_or_ask(&bytes).unwrap_err();
            assert!([code::BAD_REQUEST, code::BAD_ACCESS].contains(&error.code), "{request:?}: {error:?}");
        }
        untrusted.sync();
    }
    let clients = list(&mut trusted);
    assert!(clients.iter().all(|entry| entry.flags & entry_flag::RESERVED == 0 && entry.weight == 100), "{clients:?}");
}
