// SPDX-License-Identifier: MIT
//! Many clients on one server, with a real admission test at each step.

use crate::load::{Distributions, Frame, MS, SECOND, US, is_near, player};
use std::collections::BTreeMap;
use xqos_core::{ClientId, Fact, Parameters, PolicyKind, Reservation, ReservationKind, Scheduler, Time};
use xqos_testkit::Random;
use xqos_tune::{Advice, Burst, Room, Tuner};

/// A server with manual reservations.
struct Server {
    scheduler: Scheduler,
    tuner: Tuner<u16>,
    room: Room,
    changes: usize,
}

impl Server {
    fn new(fixed: &[Reservation]) -> Server {
        let parameters = Parameters::default();
        let mut scheduler = Scheduler::new(PolicyKind::Fair, parameters);
        for (client, &reservation) in (1000..).map(ClientId).zip(fixed) {
            scheduler.handle(Time(0), Fact::Connected { client, descriptor: u32::from(client.0) });
            assert!(scheduler.handle(Time(0), Fact::Reserve { holder: client.into(), reservation }).is_admitted());
        }
        let room = Room {
            limit_ppm: parameters.max_utilization_ppm,
            blocking_ns: 0,
            fixed: fixed.to_vec(),
            auto_limit_ppm: None,
        };
        Server { scheduler, tuner: Tuner::default(), room, changes: 0 }
    }

    fn connect(&mut self, key: u16, now: Time) {
        self.scheduler.handle(now, Fact::Connected { client: ClientId(key), descriptor: u32::from(key) });
        self.tuner.add(key, now);
    }

    /// Follows the tuner's advice. Each step must be admitted.
    fn follow(&mut self, now: Time) {
        for (key, advice) in self.tuner.advise(now, &self.room) {
            self.changes += 1;
            let client = ClientId(key);
            match advice {
                Advice::Reserve(reservation) | Advice::Change(reservation) => {
                    let outcome = self.scheduler.handle(now, Fact::Reserve { holder: client.into(), reservation });
                    assert!(outcome.is_admitted(), "{now:?}: {reservation:?} for {key}: {outcome:?}");
                }
                Advice::Release => {
                    self.scheduler.handle(now, Fact::Release { holder: client.into() });
                }
            }
            self.check();
        }
    }

    fn check(&self) {
        for (client, fixed) in (1000..).map(ClientId).zip(&self.room.fixed) {
            let now = self.scheduler.reservation(client).map(|state| state.reservation);
            assert_eq!(now.as_ref(), Some(fixed), "manual reservations stay");
        }
    }

    /// Plays all frames and updates the tuner ten times per second, as the live feed does.
    fn run(&mut self, frames: &[(u16, Frame)]) {
        let mut bursts: Vec<(u16, Burst)> = frames
            .iter()
            .flat_map(|(key, frame)| frame.bursts().map(|burst| (*key, burst)).collect::<Vec<_>>())
            .collect();
        bursts.sort_by_key(|(key, burst)| (burst.end, *key));
        let mut look = Time(0);
        for (key, burst) in bursts {
            while look <= burst.end {
                self.follow(look);
                look = look.after(100 * MS);
            }
            self.tuner.take(key, burst);
        }
        self.follow(look);
    }

    fn granted(&self) -> BTreeMap<u16, Reservation> {
        self.tuner.reports().filter_map(|(key, _)| Some((key, self.tuner.granted(key)?))).collect()
    }
}

fn ms(budget_us: u64, period_ms: u64) -> Reservation {
    Reservation { budget_ns: budget_us * US, period_ns: period_ms * MS, kind: ReservationKind::Soft }
}

/// Video at 25 frames per second, each frame with this demand.
fn films(count: u16, demand: impl Fn(&mut Random) -> u64) -> Vec<(u16, Frame)> {
    let of_one = |key: u16| {
        let mut random = Random(key.into());
        let from = SECOND + random.below_u64(40 * MS);
        let film = player(25.0, (from, from + 12 * SECOND), 0.05, &mut random, &demand);
        film.into_iter().map(|frame| (key, frame)).collect::<Vec<_>>()
    };
    (1..=count).flat_map(of_one).collect()
}

#[test]
fn seventy_two_players_get_at_least_their_median() {
    let fixed = [ms(1000, 10), ms(500, 8)];
    let mut server = Server::new(&fixed);
    (1..=72).for_each(|key| server.connect(key, Time(0)));
    // The median demand is below 1 %, the mean above. The floors add up to 0.54 of the server, and 0.6 is available.
    server.run(&films(72, |random| if random.below_u64(4) == 0 { 1000 * US } else { 300 * US }));
    let granted = server.granted();
    assert_eq!(granted.len(), 72);
    for (key, reservation) in &granted {
        assert!(is_near(reservation.period_ns, 40e6, 3.0), "{key}: {reservation:?}");
        assert!(reservation.budget_ns >= 300 * US, "{key}: {reservation:?} is below its median demand");
    }
    let sum: f64 = granted.values().map(|all| all.budget_ns as f64 / all.period_ns as f64).sum();
    println!("72 players: {sum:.3} in sum, {} changes", server.changes);
    assert!((0.58..=0.6).contains(&sum), "{sum}");
}

#[test]
fn the_newest_players_get_no_reservation() {
    let mut server = Server::new(&[]);
    (1..=72).for_each(|key| server.connect(key, Time(u64::from(key))));
    server.run(&films(72, |random| random.between(300, 600) * US));
    let granted = server.granted();
    println!("72 larger players: {} have a reservation", granted.len());
    assert!(granted.len() >= 45 && granted.len() < 72, "{}", granted.len());
    assert!(granted.keys().copied().eq(1..=granted.len() as u16), "{:?}", granted.keys());
}

#[test]
fn clients_that_exit_make_room_for_others() {
    let mut server = Server::new(&[]);
    (1..=4).for_each(|key| server.connect(key, Time(0)));
    let mut frames = Vec::new();
    for key in 1..=4 {
        let until = if key > 2 { 6 * SECOND } else { 12 * SECOND };
        let mut random = Random(key.into());
        let demand = |random: &mut Random| random.between(5_000, 9_000) * US;
        let film = player(25.0, (SECOND, until), 0.05, &mut random, demand);
        frames.extend(film.into_iter().map(|frame| (key, frame)));
    }
    server.run(&frames);
    let granted = server.granted();
    assert_eq!(granted.keys().copied().collect::<Vec<_>>(), [1, 2], "{granted:?}");
    assert!(granted.values().all(|all| all.budget_ns >= 9_000 * US), "they get all that they need: {granted:?}");
}

#[test]
fn a_refused_reservation_is_retried_once_with_twice_the_period() {
    let mut tuner = Tuner::default();
    tuner.add(1, Time(0));
    let room = Room { limit_ppm: 900_000, ..Room::default() };
    let frames = player(25.0, (SECOND, 4 * SECOND), 0.0, &mut Random(1), |_| 2 * MS);
    frames.iter().flat_map(Frame::bursts).for_each(|burst| tuner.take(1, burst));
    let now = frames[frames.len() - 1].start;
    assert_eq!(tuner.advise(now, &room), [(1, Advice::Reserve(ms(2240, 40)))]);
    assert_eq!(tuner.refused(1, now), Some(ms(4480, 80)));
    assert_eq!(tuner.advise(now, &room), [], "there is no further advice");
    assert_eq!(tuner.refused(1, now), None);
    assert_eq!((tuner.advise(now.after(100 * MS), &room), tuner.granted(1)), (vec![], None));
}
