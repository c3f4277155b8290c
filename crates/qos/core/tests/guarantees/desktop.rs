// SPDX-License-Identifier: MIT
//! The desktop rule: low latency for compositors and window managers, a share for others, fairness, intact
//! reservations.

use crate::server::{Behaviour, Load, MS, Run, SECOND, Server, US};
use xqos_core::{
    ClientId, FRAME_NS, Fact, MANAGERS_NS, Mode, Parameters, PolicyKind, Reservation, ReservationKind, Role, Time,
    WAIT_NS,
};
use xqos_testkit::Random;

const COMPOSITOR: Role = Role { compositor: true, window_manager: false };
const MANAGER: Role = Role { compositor: false, window_manager: true };

/// A compositor with this load, and busy clients with requests of up to `longest_ns`.
fn desktop(seed: u64, compositor: Load, busy: usize, longest_ns: u64) -> (Server, ClientId) {
    let mut server = Server::new(PolicyKind::Fair, Parameters::default(), seed);
    let id = server.connect(compositor);
    server.scheduler.handle(Time(0), Fact::Role { client: id, role: COMPOSITOR });
    for _ in 0..busy {
        server.connect(Load::backlogged(longest_ns / 5..=longest_ns));
    }
    (server, id)
}

/// A load that always has another request.
fn endless() -> Load {
    Load::backlogged(20 * US..=400 * US)
}

/// The largest excess of a client's service over `share` of any window.
fn most_above_share(server: &Server, client: ClientId, share: f64) -> f64 {
    // `level` is the client's service minus `share` of the elapsed time; the result is its largest rise.
    let (mut level, mut lowest, mut most): (f64, f64, f64) = (0.0, 0.0, 0.0);
    let mut at_ns = server.runs.first().map_or(0, |run| run.start_ns);
    for run in &server.runs {
        level -= share * (run.start_ns - at_ns) as f64;
        lowest = lowest.min(level);
        let length = (run.end_ns - run.start_ns) as f64;
        level += if run.client == client { length } else { 0.0 } - share * length;
        (lowest, most) = (lowest.min(level), most.max(level - lowest));
        at_ns = run.end_ns;
    }
    most
}

#[test]
fn a_compositor_in_its_turn_waits_for_at_most_one_request_of_others() {
    for seed in 0..40 {
        let mut random = Random(seed);
        let longest_ns = random.one_of(&[20 * US, 300 * US, 3 * MS, 12 * MS]);
        // The pauses are longer than two frames, so that each arrival can begin a turn.
        let behaviour = Behaviour::RoundTrip { think_ns: random.within(40 * MS..=70 * MS) };
        let (mut server, compositor) = desktop(seed, Load::new(behaviour, 50 * US..=MS), 6, longest_ns);
        server.run_until(2 * SECOND);
        let (own, others): (Vec<&Run>, Vec<&Run>) = server.runs.iter().partition(|run| run.client == compositor);
        assert!(own.len() >= 25);
        for run in own {
            let begun = others.iter().filter(|other| (run.arrived_ns..run.start_ns).contains(&other.start_ns)).count();
            assert_eq!(begun, 0, "seed {seed}: requests of others were begun after the arrival of {run:?}");
        }
    }
}

#[test]
fn no_other_client_is_served_between_the_requests_of_a_turn() {
    // Round trips, as when a compositor queries the damage of many windows.
    let think_ns = WAIT_NS / 2;
    let load = Load::new(Behaviour::RoundTrip { think_ns }, 10 * US..=20 * US);
    let (mut server, compositor) = desktop(1, load, 12, 500 * US);
    server.run_until(SECOND);
    let mut turns = vec![0];
    for pair in server.runs.windows(2) {
        match (pair[0].client == compositor, pair[1].client == compositor) {
            (_, true) => *turns.last_mut().expect("there is one") += 1,
            (true, false) => turns.push(0),
            _ => {}
        }
    }
    turns.pop();
    let expected = FRAME_NS * 2 / 3 / (20 * US + think_ns) - 1;
    // The last request of a turn may arrive when less than `WAIT_NS` of it is left; other clients then run first.
    assert!(turns.len() > 20 && turns.iter().all(|&turn| turn == 1 || turn >= expected), "requests in each: {turns:?}");
}

#[test]
fn an_endlessly_busy_compositor_leaves_others_their_share_of_any_window() {
    for (seed, share_ppm) in (0..40).flat_map(|seed| [(seed, 200_000), (seed, 666_667), (seed, 900_000)]) {
        let mut random = Random(seed);
        let longest_ns = random.one_of(&[100 * US, MS, 9 * MS]);
        let load = Load::backlogged(10 * US..=random.one_of(&[50 * US, MS, 30 * MS]));
        let (busy, longest_of_mad_ns) = (random.within(1..=8) as usize, *load.cost_ns.end());
        let (mut server, compositor) = desktop(seed, load, busy, longest_ns);
        server.scheduler.handle(Time(0), Fact::DesktopShare { ppm: share_ppm });
        server.run_until(2 * SECOND);
        let share = f64::from(share_ppm) / 1e6;
        let bound = FRAME_NS as f64 * share + longest_of_mad_ns as f64;
        let above = most_above_share(&server, compositor, share);
        assert!(above <= bound, "seed {seed}, share {share}: {above} ns above it in some window, {bound} allowed");
        let got = server.service_ns(compositor, None) as f64 / server.now_ns as f64;
        assert!(got >= share * 0.5, "seed {seed}, share {share}: the compositor got only {got}");
    }
}

/// 80 servers, and more than 10,000 requests in total.
#[test]
fn clients_stay_fair_within_a_slice_and_a_request_despite_a_compositor() {
    let mut requests = 0;
    for seed in 0..80 {
        let mut random = Random(seed);
        let longest_ns = random.one_of(&[50 * US, 500 * US, 4 * MS]);
        let behaviour = match random.within(0..=2) {
            0 => Behaviour::Backlogged,
            1 => Behaviour::RoundTrip { think_ns: random.within(10 * US..=2 * MS) },
            _ => Behaviour::Periodic { period_ns: FRAME_NS, requests: 30 },
        };
        let noticed_every_ns = random.one_of(&[0, 3 * MS]);
        let compositor = Load { noticed_every_ns, ..Load::new(behaviour, 10 * US..=300 * US) };
        let (mut server, _) = desktop(seed, compositor, 5, longest_ns);
        server.run_until(800 * MS);
        requests += server.runs.len();
        let bound = server.scheduler.parameters().slice_ns + longest_ns + server.slices.len() as u64;
        let mut got_ns = [0; 7];
        for (place, run) in server.runs.iter().enumerate() {
            got_ns[usize::from(run.client.0)] += run.end_ns - run.start_ns;
            if server.runs.get(place + 1).is_none_or(|next| next.slice != run.slice) {
                let of_payers = || got_ns[2..].iter().copied();
                let apart = of_payers().max().unwrap_or(0) - of_payers().min().unwrap_or(0);
                assert!(apart <= bound, "seed {seed}: {got_ns:?} are further apart than {bound}");
            }
        }
    }
    assert!(requests > 10_000, "{requests}");
}

#[test]
fn a_reserved_client_keeps_its_budget_despite_an_endlessly_busy_compositor() {
    for seed in 0..20 {
        let (mut server, _) = desktop(seed, endless(), 4, 500 * US);
        let reserved = server.connect(Load::backlogged(50 * US..=100 * US));
        let (budget_ns, period_ns) = (3 * MS, 10 * MS);
        assert!(server.try_reserve(reserved, Reservation { budget_ns, period_ns, kind: ReservationKind::Hard }));
        server.run_until(SECOND);
        for period in 1..(SECOND / period_ns - 1) {
            let (from_ns, to_ns) = (period * period_ns, (period + 1) * period_ns);
            let of_it = server.runs.iter().filter(|run| run.client == reserved && run.mode == Mode::Reserved);
            let got_ns: u64 = of_it.map(|run| run.within(from_ns, to_ns)).sum();
            // A request of another client may be running when the period begins, and an overrun of the client itself is
            // paid back.
            assert!(got_ns + 600 * US >= budget_ns, "seed {seed}: {got_ns} ns of its budget in period {period}");
        }
    }
}

#[test]
fn a_compositor_with_a_higher_sync_priority_is_limited_too() {
    let (mut server, compositor) = desktop(3, endless(), 3, MS);
    server.scheduler.handle(Time(0), Fact::SyncPriority { client: compositor, priority: 10 });
    server.run_until(2 * SECOND);
    let got = server.service_ns(compositor, None) as f64 / server.now_ns as f64;
    assert!((0.5..0.69).contains(&got), "others keep a third: {got}");
}

/// The average time from the end of a request of `light` to the end of the compositor's next request, in ms.
fn shown_after_ms(calls: bool) -> f64 {
    // The compositor draws for 2 ms per frame, so its turns are 20 ms apart while other clients draw all the time.
    let behaviour = Behaviour::RoundTrip { think_ns: 400 * US };
    let (mut server, compositor) = desktop(5, Load::new(behaviour, 2 * MS..=2 * MS), 4, 200 * US);
    let light = Load::new(Behaviour::Periodic { period_ns: 101 * MS, requests: 1 }, 10 * US..=10 * US);
    let light = server.connect(Load { causes_work: calls, ..light });
    let is_of = |server: &Server, client| server.runs.last().is_some_and(|run| run.client == client);
    let mut shown_ns = Vec::new();
    while server.now_ns < 4 * SECOND {
        server.run_until(server.now_ns + 1);
        if !is_of(&server, light) {
            continue;
        }
        let drawn_ns = server.now_ns;
        while !is_of(&server, compositor) {
            server.run_until(server.now_ns + 1);
        }
        shown_ns.push(server.now_ns - drawn_ns);
    }
    shown_ns.iter().sum::<u64>() as f64 / shown_ns.len() as f64 / 1e6
}

#[test]
fn drawing_after_a_rest_lets_the_next_turn_begin_early() {
    let (called, not_called) = (shown_after_ms(true), shown_after_ms(false));
    assert!(called < 5.0 && not_called > 2.0 * called, "{called} ms with calls, {not_called} ms without");
}

#[test]
fn without_desktop_clients_the_rule_changes_no_slice() {
    let run = |share_ppm| {
        let mut server = Server::new(PolicyKind::Fair, Parameters::default(), 9);
        server.scheduler.handle(Time(0), Fact::DesktopShare { ppm: share_ppm });
        for longest_us in [30, 300, 3000] {
            server.connect(Load { noticed_every_ns: 7 * MS, ..Load::backlogged(10 * US..=longest_us * US) });
        }
        server.connect(Load::new(Behaviour::RoundTrip { think_ns: MS }, 10 * US..=100 * US));
        server.run_until(SECOND);
        server.slices
    };
    assert_eq!(run(0), run(666_667));
}

#[test]
fn an_endlessly_busy_window_manager_delays_others_by_no_more_than_its_part_of_a_turn() {
    for seed in 0..20 {
        let mut server = Server::new(PolicyKind::Fair, Parameters::default(), seed);
        let manager = server.connect(endless());
        server.scheduler.handle(Time(0), Fact::Role { client: manager, role: MANAGER });
        let bystander = server.connect(Load::new(Behaviour::RoundTrip { think_ns: 7 * MS }, 10 * US..=50 * US));
        server.run_until(2 * SECOND);
        let of_it = server.runs.iter().filter(|run| run.client == bystander);
        let longest_ns = of_it.map(|run| run.start_ns - run.arrived_ns).max().expect("it was served");
        assert!((500 * US..=MANAGERS_NS + 400 * US).contains(&longest_ns), "seed {seed}: it waited {longest_ns} ns");
    }
}

/// While a client and the window manager answer each other, others get as much as with one busy client.
#[test]
fn a_client_pays_for_the_work_of_a_window_manager_that_it_causes() {
    for (others, seed) in [(1, 1), (3, 2), (8, 3)] {
        let mut server = Server::new(PolicyKind::Fair, Parameters::default(), seed);
        let id = server.connect(Load::new(Behaviour::RoundTrip { think_ns: 100 * US }, 100 * US..=400 * US));
        let [culprit, bystander] = [(); 2].map(|()| server.connect(Load::backlogged(100 * US..=400 * US)));
        for _ in 1..others {
            server.connect(Load::backlogged(100 * US..=400 * US));
        }
        server.scheduler.handle(Time(0), Fact::Role { client: id, role: MANAGER });
        server.scheduler.handle(Time(0), Fact::WorksFor { client: id, payer: culprit });
        server.run_until(4 * SECOND);
        let [managed, paid, got] = [id, culprit, bystander].map(|id| server.service_ns(id, None));
        assert!(managed > SECOND / 4, "{others} others: the window manager ran for only {managed} ns");
        let charged = [id, culprit, bystander].map(|id| server.scheduler.usage(id).expect("connected").charged_ns);
        assert_eq!(charged, [0, managed + paid, got], "the window manager's time is charged to the client");
        assert!(paid + 20 * MS < got, "{others} others: the client that pays got {paid} ns, another client {got} ns");
        // The bound does not hold if the window manager's work alone exceeds one client's share.
        let part = (managed + paid).saturating_sub(got);
        assert!(part < 20 * MS || paid < 20 * MS, "{others} others: {managed} + {paid} ns, another client {got} ns");
    }
}
