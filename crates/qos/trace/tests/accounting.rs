// SPDX-License-Identifier: MIT
//! Shows the accounting of a reservation in a real Chromium: the recorded budget, and the original rule.

#[path = "../../../../web/chromium.rs"]
mod chromium;

use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Reservation, ReservationKind, Service, Time};
use xqos_trace::export::page;
use xqos_trace::file::Header;
use xqos_trace::names::Names;

const MS: u64 = 1_000_000;

/// A request of 5 ms on a reservation of 3 ms in 10 ms. Its budget is recharged at the deadline.
fn events() -> Vec<Event> {
    let (client, kind) = (ClientId(1), ReservationKind::Hard);
    let reservation = Reservation { budget_ns: 3 * MS, period_ns: 10 * MS, kind };
    let budget = |left_ms: i64, deadline_ms, depleted| {
        let (left_ns, deadline) = (left_ms * MS as i64, Time(deadline_ms * MS));
        Entry::Budget { client, kind, depleted, left_ns, deadline }
    };
    let served = Service { requests: 1, ..Service::new(client, Time(10 * MS), Time(15 * MS)) };
    let events = [
        (0, Entry::Fact(Fact::Connected { client, descriptor: 4 })),
        (0, Entry::Fact(Fact::Reserve { holder: client.into(), reservation })),
        (10, Entry::Fact(Fact::Arrived { client })),
        (10, budget(3, 20, false)),
        (15, Entry::Fact(Fact::Served(served))),
        (15, budget(-2, 20, true)),
        (20, budget(1, 30, false)),
        (40, Entry::End),
    ];
    events.into_iter().map(|(at, what)| Event { at: Time(at * MS), what }).collect()
}

const SCRIPT: &str = "
    const root = document.documentElement.dataset, paths = [], path = drawPath, before = canvas.clientHeight;
    drawPath = (points, colour, dashes) => { paths.push([colour, points.map(([px]) => Math.round(timeAt(px) / 1e5) / 10)]); path(points, colour, dashes); };
    document.getElementById('accounting').click(); draw();
    const of = name => paths.filter(([colour, times]) => colour === colours[name] && times.length !== 3).map(([, times]) => times.join(' ')).join('; ');
    root.taller = canvas.clientHeight - before === CHART;
    root.line = of('budget');
    root.deadlines = of('deadline');
    root.original = paths.filter(([colour, times]) => colour === colours.soft && new Set(times).size === 2).map(([, times]) => times.join(' ')).join('; ');
    const [, spent, recharged] = [0, 1, 2].map(k => k && account(lanes[0], k));
    root.spent = [spent.begin / 1e6, spent.end / 1e6, spent.spent / 1e6, recharged.spent].join(' ');
    document.getElementById('accounting').click(); draw(); root.back = canvas.clientHeight === before;";

#[test]
fn chromium_draws_the_accounting_of_an_overrun_and_the_original_rule() {
    let page =
        page::render(&Header::default(), events().into_iter(), &Names::default(), page::Additions::default()).unwrap();
    let Some(seen) = chromium::run_script(page.as_bytes(), SCRIPT) else { return };
    let root = chromium::root(&seen);
    for (attribute, expected) in [
        ("taller", "true"),
        ("spent", "10 15 5 0"),
        // The line falls during the slice, and rises when the budget is recharged.
        ("line", "10 10 15 15 15 20 20 20 20 40"),
        ("deadlines", "20 20; 30 30"),
        // The original rule recharges the budget after 3 ms, and the rest of the request uses 2 ms of it.
        ("original", "13 13 15"),
        ("back", "true"),
    ] {
        assert!(root.contains(&format!("data-{attribute}=\"{expected}\"")), "{attribute}: {root}");
    }
}
