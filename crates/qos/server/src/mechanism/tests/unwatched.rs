// SPDX-License-Identifier: MIT
//! Tests of the rule for a display without a viewer: until a viewer connects, all clients are in one group with a small
//! cap.

use super::mock::{Effect, MS, base};
use super::{clients, keep_busy, server};
use xqos_abi::{Grouping, Label, Request, Setting, Subject};
use xqos_core::{PolicyKind, Time};

const CAP_PPM: u32 = 50_000;

#[test]
fn capped_clients_share_five_percent_until_a_viewer_connects() {
    let mut server = server(PolicyKind::Fair);
    let [daemon, first, second, grabber] = clients(&mut server);
    server.ask(daemon, Request::SetOrigin { name: Label::new("rule unwatched"), lease: true }).unwrap();
    for id in [first, second, grabber] {
        let name = Label::new("unwatched");
        server.ask(daemon, Subject::Client(base(id)).set(Setting::Group(name))).unwrap();
        server.ask(daemon, Subject::Group(base(id)).set(Setting::Cap(CAP_PPM))).unwrap();
    }
    [first, second].into_iter().for_each(|id| keep_busy(&mut server, id, 2000));
    let mut at = Time(0);
    for _ in 0..10 {
        let next = at.after(400 * MS);
        server.run_until(next);
        let got = [first, second].map(|id| server.time_of(id, at, next));
        assert!(got.iter().sum::<u64>().abs_diff(20 * MS) <= 6 * MS, "{got:?} ns of 20 ms");
        assert!(got.iter().all(|&ns| ns >= 5 * MS), "{got:?}: one of them is stopped");
        at = next;
    }
    // The client gets its grab within the period and is then served immediately, even if the cap is used up.
    server.send_at(at, grabber, 1000, Effect::Grab);
    at = at.after(200 * MS);
    server.run_until(at);
    assert_eq!(server.left(grabber), 0);
    (0..20).for_each(|ms| server.send_at(at.after(ms * MS), grabber, MS / 2, Effect::Nothing));
    server.send_at(at.after(20 * MS), grabber, 1000, Effect::Ungrab);
    server.run_until(at.after(22 * MS));
    assert_eq!(server.left(grabber), 0);
    at = at.after(22 * MS);
    server.ask(daemon, Subject::Group(base(first)).set(Setting::Cap(0))).unwrap();
    server.run_until(at.after(100 * MS));
    let got: u64 = [first, second].map(|id| server.time_of(id, at, at.after(100 * MS))).into_iter().sum();
    assert!(got >= 95 * MS, "{got} ns of 100 ms with a viewer");
}

#[test]
fn a_client_that_joins_a_group_with_a_used_up_cap_is_served_in_the_next_period() {
    let mut server = server(PolicyKind::Fair);
    let root = server.connect(0);
    let busy = server.connect(1000);
    server.ask(root, Subject::Server.set(Setting::Grouping(Grouping::User))).unwrap();
    server.ask(root, Subject::Group(base(busy)).set(Setting::Cap(CAP_PPM))).unwrap();
    server.send(busy, 1, 10 * MS);
    server.run_until(Time(20 * MS));
    assert_eq!(server.left(busy), 0);
    let late = server.connect(1000);
    server.send_at(Time(30 * MS), late, MS, Effect::Nothing);
    server.run_until(Time(90 * MS));
    assert_eq!(server.left(late), 1, "the cap is used up");
    server.run_until(Time(400 * MS));
    assert_eq!(server.left(late), 0, "nothing woke the server");
}
