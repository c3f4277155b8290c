// SPDX-License-Identifier: MIT
//! Divides the server's capacity among the needs of clients whose reservations are measured.
//!
//! 1. Measured reservations may use U_auto = min(0.6 or the configured limit, U - sum of fixed - B / shortest T).
//!    Manual reservations are fixed: they are counted and never changed.
//! 2. If B/T alone exceeds half of the share that the fixed reservations leave, the need becomes (2Q, 2T): the same
//!    share, half the blocking.
//! 3. Each need gets at least its floor, the median demand. If the floors do not fit, the lightest needs are dropped,
//!    newest first.
//! 4. The remaining capacity raises the clients from their floors toward their needs, in proportion to weight. No
//!    client gets more than its need; the excess goes to the others.
//!
//! Source: the admission test of Manica et al. 2008, section 3.3 (`admission` in `xqos_core`). The formula for
//! compression is that of AQuoSA, b = g + (r - g) * factor, with a factor for each weight.
//!
//! Invariant: sum(Q/T) of the result is at most U_auto, each ratio rounded up to a millionth as in admission.

use crate::client::Need;
use crate::jobs::LONGEST_NS;
use xqos_core::{Reservation, ReservationKind, Time};

/// Maximum for all measured reservations. The remaining capacity stays available for manual reservations.
pub const AUTO_LIMIT_PPM: u32 = 600_000;
const US: u64 = 1_000;

#[derive(Clone, Debug, Default)]
pub struct Room {
    /// Limit U in millionths.
    pub limit_ppm: u32,
    /// Blocking time B.
    pub blocking_ns: u64,
    pub fixed: Vec<Reservation>,
    /// Maximum for all measured reservations, in millionths. `None`: [`AUTO_LIMIT_PPM`].
    pub auto_limit_ppm: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub struct WeightedNeed {
    pub need: Need,
    /// Weight of the client in hundredths; 100 is the default.
    pub weight: u32,
    /// The time at which the client was first seen; newer clients are dropped first.
    pub since: Time,
}

impl Room {
    /// The part of U that fixed reservations leave, before blocking.
    fn free_ppm(&self) -> u64 {
        let fixed: u64 = self.fixed.iter().map(|fixed| ppm(fixed.budget_ns, fixed.period_ns)).sum();
        u64::from(self.limit_ppm).saturating_sub(fixed)
    }

    /// U_auto, given the shortest period of all needs.
    pub fn auto_ppm(&self, shortest_ns: u64) -> u64 {
        let unblocked = self.free_ppm().saturating_sub(ppm(self.blocking_ns, shortest_ns));
        unblocked.min(self.auto_limit_ppm.unwrap_or(AUTO_LIMIT_PPM).into())
    }

    /// Whether these reservations can be admitted together.
    pub fn fits(&self, reservations: &[Reservation]) -> bool {
        let shortest_ns = reservations.iter().map(|reservation| reservation.period_ns).min();
        let sum: u64 = reservations.iter().map(|all| ppm(all.budget_ns, all.period_ns)).sum();
        shortest_ns.is_none_or(|shortest_ns| sum <= self.auto_ppm(shortest_ns))
    }
}

/// The reservation for each need, in whole microseconds. `None` if there is no capacity for it.
pub fn divide(room: &Room, asked: &[WeightedNeed]) -> Vec<Option<Reservation>> {
    let mut shares: Vec<Share> =
        asked.iter().enumerate().map(|(index, asked)| Share::new(index, asked, room)).collect();
    shares.retain(Share::is_possible);
    // The heaviest come first; among equals, the oldest.
    shares.sort_by_key(|share| (std::cmp::Reverse(share.weight), share.since, share.index));
    while !shares.is_empty() && extra_ppm(room, &shares).is_none() {
        shares.pop();
    }
    let extra = extra_ppm(room, &shares).unwrap_or(0).saturating_sub(shares.len() as u64);
    let mut given = vec![None; asked.len()];
    for (share, factor) in shares.iter().zip(factors(&shares, extra)) {
        given[share.index] = Some(share.at(factor));
    }
    given
}

#[derive(Clone, Copy, Debug)]
struct Share {
    index: usize,
    weight: u32,
    since: Time,
    period_ns: u64,
    floor_ns: u64,
    need_ns: u64,
}

impl Share {
    fn new(index: usize, asked: &WeightedNeed, room: &Room) -> Share {
        let &WeightedNeed { need, weight, since } = asked;
        let is_blocked = ppm(room.blocking_ns, need.period_ns) > room.free_ppm() / 2;
        let times = if is_blocked && need.period_ns <= LONGEST_NS / 2 { 2 } else { 1 };
        let period_ns = need.period_ns * times / US * US;
        let whole = |ns: u64| (ns.saturating_mul(times).div_ceil(US) * US).min(period_ns / 2 / US * US);
        let need_ns = whole(need.budget_ns);
        let floor_ns = whole(need.floor_ns).min(need_ns);
        Share { index, weight: weight.max(1), since, period_ns, floor_ns, need_ns }
    }

    fn is_possible(&self) -> bool {
        self.period_ns > 0 && self.floor_ns > 0
    }

    fn at(&self, factor: f64) -> Reservation {
        let more_ns = ((self.need_ns - self.floor_ns) as f64 * factor) as u64 / US * US;
        Reservation { budget_ns: self.floor_ns + more_ns, period_ns: self.period_ns, kind: ReservationKind::Soft }
    }
}

/// The part of U_auto that the floors leave. `None` if they do not fit.
fn extra_ppm(room: &Room, shares: &[Share]) -> Option<u64> {
    let shortest_ns = shares.iter().map(|share| share.period_ns).min()?;
    let floors: u64 = shares.iter().map(|share| ppm(share.floor_ns, share.period_ns)).sum();
    room.auto_ppm(shortest_ns).checked_sub(floors)
}

/// The fraction of its gap that each need gets. The heaviest come first, because they are satisfied first.
fn factors(shares: &[Share], extra_ppm: u64) -> Vec<f64> {
    let gap = |share: &Share| (ppm(share.need_ns, share.period_ns) - ppm(share.floor_ns, share.period_ns)) as f64;
    let mut weighed: f64 = shares.iter().map(|share| gap(share) * f64::from(share.weight)).sum();
    let mut left = extra_ppm as f64;
    let each = |share: &Share| {
        let by_weight = if weighed > 0.0 { left / weighed * f64::from(share.weight) } else { 1.0 };
        let factor = by_weight.clamp(0.0, 1.0);
        if by_weight >= 1.0 {
            left -= gap(share);
            weighed -= gap(share) * f64::from(share.weight);
        }
        factor
    };
    shares.iter().map(each).collect()
}

/// The ratio in millionths, rounded up.
fn ppm(part_ns: u64, whole_ns: u64) -> u64 {
    u64::try_from((u128::from(part_ns) * 1_000_000).div_ceil(u128::from(whole_ns.max(1)))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn asked(floor_us: u64, budget_us: u64, period_ms: u64, weight: u32, since: u64) -> WeightedNeed {
        let need = Need { budget_ns: budget_us * US, period_ns: period_ms * MS, floor_ns: floor_us * US };
        WeightedNeed { need, weight, since: Time(since) }
    }

    fn room(blocking_ms: u64, fixed_ms: &[(u64, u64)]) -> Room {
        let fixed = fixed_ms.iter().map(|&(budget, period)| Reservation {
            budget_ns: budget * MS,
            period_ns: period * MS,
            kind: ReservationKind::Soft,
        });
        Room { limit_ppm: 900_000, blocking_ns: blocking_ms * MS, fixed: fixed.collect(), auto_limit_ppm: None }
    }

    fn given_us(room: &Room, asked: &[WeightedNeed]) -> Vec<Option<(u64, u64)>> {
        let given = divide(room, asked);
        let all: Vec<Reservation> = given.iter().copied().flatten().collect();
        assert!(room.fits(&all), "{all:?}");
        given.into_iter().map(|given| given.map(|given| (given.budget_ns / US, given.period_ns / US))).collect()
    }

    #[test]
    fn small_needs_are_met() {
        let all = [asked(2000, 2300, 40, 100, 0), asked(1000, 3000, 20, 100, 1)];
        assert_eq!(given_us(&room(0, &[]), &all), [Some((2300, 40_000)), Some((3000, 20_000))]);
    }

    #[test]
    fn needs_are_compressed_by_weight_and_never_below_their_floor() {
        let all = [asked(2000, 4000, 10, 200, 0), asked(2000, 4000, 10, 100, 1)];
        // The floors leave 0.2 of the server, of which the heavier client gets two thirds.
        assert_eq!(given_us(&room(0, &[]), &all), [Some((3333, 10_000)), Some((2666, 10_000))]);
        let all = [asked(2000, 2600, 10, 1000, 0), asked(2000, 4000, 10, 100, 1)];
        assert_eq!(
            given_us(&room(0, &[]), &all),
            [Some((2600, 10_000)), Some((3399, 10_000))],
            "the excess goes to the other client"
        );
    }

    #[test]
    fn the_lightest_and_newest_need_is_dropped_if_floors_do_not_fit() {
        let all = [asked(3000, 3000, 10, 100, 5), asked(3000, 3000, 10, 100, 9), asked(2000, 3000, 10, 300, 20)];
        assert_eq!(given_us(&room(0, &[]), &all), [Some((3000, 10_000)), None, Some((2999, 10_000))]);
        let all = [asked(4000, 4000, 10, 50, 0), asked(4000, 4000, 10, 100, 9)];
        assert_eq!(given_us(&room(0, &[]), &all), [None, Some((4000, 10_000))]);
    }

    #[test]
    fn fixed_reservations_and_blocking_reduce_the_capacity() {
        let all = [asked(2000, 4000, 10, 100, 0)];
        assert_eq!(given_us(&room(1, &[(5, 10)]), &all), [Some((2999, 10_000))], "0.9 - 0.5 - 0.1");
        assert_eq!(given_us(&room(0, &[(8, 10)]), &all), [None]);
        let limited = Room { auto_limit_ppm: Some(250_000), ..room(0, &[]) };
        assert_eq!(given_us(&limited, &all), [Some((2499, 10_000))]);
        assert_eq!(given_us(&Room::default(), &all), [None]);
        assert!(divide(&room(0, &[]), &[]).is_empty());
    }

    #[test]
    fn blocking_by_long_requests_doubles_the_period() {
        let player = asked(1500, 1700, 16, 100, 0);
        assert_eq!(given_us(&room(13, &[]), &[player]), [Some((3400, 32_000))]);
        assert_eq!(given_us(&room(40, &[]), &[player]), [None], "even twice the period is too short");
    }
}
