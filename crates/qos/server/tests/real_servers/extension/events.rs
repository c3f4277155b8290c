// SPDX-License-Identifier: MIT
//! Tests of events about clients that connect and disconnect, reservations, depletions and missed deadlines.

use super::*;

/// Returns the next XQOS event after checking its format.
fn event(wire: &mut Wire, within: Duration) -> Option<Notify> {
    let code = wire.xqos().first_event;
    let bytes = wire.event(within)?;
    assert_eq!((bytes.len(), bytes[0]), (32, code), "{bytes:02x?}");
    Some(Notify::decode(&bytes, wire.order).unwrap())
}

#[test]
fn events_report_connections_and_reservations() {
    let _turn = in_parallel();
    for order in ORDERS {
        let fixture = xvfb();
        let mut wire = fixture.wire(order);
        wire.tell_xqos(Request::SetPolicy { change: fixed_blocking() }).unwrap();
        wire.tell_xqos(Request::SelectEvents { mask: event_mask::CLIENTS | event_mask::RESERVATIONS }).unwrap();
        let own = wire.base;
        let mut other = fixture.native();
        let came = event(&mut wire, SOON).unwrap();
        assert_eq!((came.kind, came.client), (NotifyKind::ClientConnected, other.base));
        assert_eq!((came.pid, came.budget_us, came.count), (std::process::id() as i32, 0, 0));

        other.tell_xqos(reserve(0, 2000, 20_000, true)).unwrap();
        let set = event(&mut wire, SOON).unwrap();
        assert_eq!((set.kind, set.client, set.flags), (NotifyKind::ReservationSet, other.base, 1));
        assert_eq!((set.budget_us, set.period_us), (2000, 20_000));
        // A listener also gets events about itself, and replacing a reservation counts as setting it.
        wire.tell_xqos(reserve(own, 3000, 30_000, false)).unwrap();
        let set = event(&mut wire, SOON).unwrap();
        assert_eq!((set.kind, set.client, set.budget_us, set.flags), (NotifyKind::ReservationSet, own, 3000, 0));
        other.tell_xqos(Subject::Client(own).clear(SettingKind::Reservation)).unwrap();
        let cleared = event(&mut wire, SOON).unwrap();
        assert_eq!((cleared.kind, cleared.client), (NotifyKind::ReservationCleared, own));

        let base = other.base;
        drop(other);
        let gone = event(&mut wire, SOON).unwrap();
        assert_eq!((gone.kind, gone.client, gone.budget_us), (NotifyKind::ClientGone, base, 2000));
        assert!(gone.time_ms.wrapping_sub(came.time_ms) < 10_000);

        // Refused requests and requests that change nothing cause no events. Events that a client has not selected
        // are not sent.
        let request = wire.xqos_bytes(reserve(0, 9999, 10_000, false));
        assert!(wire.tell(&request).is_err());
        wire.tell_xqos(Subject::Client(0).clear(SettingKind::Reservation)).unwrap();
        wire.tell_xqos(Request::SelectEvents { mask: event_mask::RESERVATIONS }).unwrap();
        drop(fixture.native());
        wire.tell_xqos(Request::SelectEvents { mask: 0 }).unwrap();
        wire.tell_xqos(reserve(0, 1000, 10_000, false)).unwrap();
        assert_eq!(event(&mut wire, Duration::from_millis(100)), None);
    }
}

#[test]
fn depletions_are_reported_ten_times_a_second_and_none_is_lost() {
    let _turn = alone();
    let fixture = xvfb();
    for order in ORDERS {
        let mut wire = fixture.wire(order);
        wire.tell_xqos(Request::SelectEvents { mask: event_mask::DEPLETIONS }).unwrap();
        let busy = Busy::start_with(fixture.native(), &[reserve(0, 500, 5000, true)]);
        let (mut times_ms, mut sum, mut depletions) = (Vec::new(), 0, 0);
        while times_ms.len() < 30 || depletions <= 50 {
            let next = wire.event(SOON);
            wire.events.extend(next);
            // The server sends all earlier events before this reply.
            depletions = reservation(&mut wire, busy.base).depletions;
            while !wire.events.is_empty() {
                let depleted = event(&mut wire, SOON).unwrap();
                assert_eq!((depleted.kind, depleted.client, depleted.flags), (NotifyKind::Depleted, busy.base, 1));
                assert!(depleted.count > 0);
                times_ms.push(depleted.time_ms);
                sum += depleted.count;
            }
        }
        // A stall of the server before it reads the clock for the first event makes that event late.
        let elapsed_ms = times_ms[times_ms.len() - 1] - times_ms[0];
        assert!(elapsed_ms + 1000 >= 99 * (times_ms.len() as u32 - 1), "{} events in {elapsed_ms} ms", times_ms.len());
        // There are 200 periods a second.
        assert!(sum <= depletions && depletions - sum <= 30, "only {sum} of {depletions}");
    }
}

#[test]
fn missed_deadlines_are_counted_and_reported() {
    let _turn = alone();
    let fixture = xvfb_with(PolicyKind::Fair);
    let mut wire = fixture.native();
    wire.tell_xqos(Request::SelectEvents { mask: event_mask::MISSES }).unwrap();
    // On a fast machine, no deadline passes before the end of a part.
    wire.tell_xqos(Subject::Server.set(Setting::Cut(0))).unwrap();
    let mut reserved = fixture.native();
    reserved.tell_xqos(reserve(0, 500, 1000, false)).unwrap();
    // Meanwhile another client sends requests that each take many milliseconds, longer than this period.
    let mut blocking = fixture.native();
    let long = blocking.canvas(1000, 1000).fill(50);
    for _ in 0..20 {
        blocking.send(&long);
        std::thread::sleep(Duration::from_millis(1));
        reserved.sync();
    }
    let missed = event(&mut wire, SOON).expect("a miss");
    assert_eq!((missed.kind, missed.client, missed.budget_us), (NotifyKind::Missed, reserved.base, 500));
    let report = reservation(&mut wire, reserved.base);
    assert!(report.misses >= missed.count && missed.count > 0, "{report:?} {missed:?}");
    // The admission test now includes the blocking that was observed.
    assert!(info(&mut wire).blocking_observed_us > 1000, "{:?}", info(&mut wire));
}

#[test]
fn a_listener_that_leaves_or_vanishes_is_forgotten() {
    let _turn = in_parallel();
    let mut fixture = xvfb();
    for _ in 0..50 {
        let mut listener = fixture.native();
        listener.tell_xqos(Request::SelectEvents { mask: event_mask::ALL }).unwrap();
        drop(listener);
        let mut other = fixture.native();
        other.tell_xqos(reserve(0, 1000, 10_000, false)).unwrap();
    }
    fixture.assert_armed();
}
