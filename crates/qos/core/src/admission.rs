// SPDX-License-Identifier: MIT
//! The admission test: which reservations can be guaranteed together.
//!
//! Reservations pass if, for each i in order of period T, sum(Qj/Tj, j <= i) + B/Ti <= U (Manica et al., section 3.3,
//! after Baker). U is the server's limit, so best-effort clients always keep at least 1 - U.

use crate::{ClientId, GroupId, Reservation};

/// The ratio in millionths, rounded up so that rounding never admits too much.
fn ppm(part_ns: u64, whole_ns: u64) -> u32 {
    let parts = (u128::from(part_ns) * 1_000_000).div_ceil(u128::from(whole_ns.max(1)));
    u32::try_from(parts).unwrap_or(u32::MAX)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    Client(ClientId),
    /// A group: its clients share the reservation.
    Group(GroupId),
}

impl From<ClientId> for Holder {
    fn from(client: ClientId) -> Holder {
        Holder::Client(client)
    }
}

impl From<GroupId> for Holder {
    fn from(group: GroupId) -> Holder {
        Holder::Group(group)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// The holder of reservation i.
    pub holder: Holder,
    /// The period Ti.
    pub period_ns: u64,
    /// sum(Qj/Tj, j <= i), in millionths.
    pub sum_ppm: u32,
    /// B/Ti, in millionths.
    pub blocking_ppm: u32,
}

impl Term {
    fn total(&self) -> u32 {
        self.sum_ppm.saturating_add(self.blocking_ppm)
    }
}

/// The outcome of the test: admitted with the largest term, or refused with the first term above the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// All terms are within the limit. The value is the largest term.
    Admitted(Term),
    Refused(Term),
}

pub(crate) fn test(
    in_order_of_period: impl Iterator<Item = (Holder, Reservation)>,
    blocking_ns: u64,
    limit_ppm: u32,
) -> Option<Admission> {
    let mut sum_ppm = 0u32;
    let mut largest: Option<Term> = None;
    for (holder, reservation) in in_order_of_period {
        sum_ppm = sum_ppm.saturating_add(utilization_ppm(reservation));
        let blocking_ppm = ppm(blocking_ns, reservation.period_ns);
        let term = Term { holder, period_ns: reservation.period_ns, sum_ppm, blocking_ppm };
        if term.total() > limit_ppm {
            return Some(Admission::Refused(term));
        }
        if largest.is_none_or(|largest| term.total() > largest.total()) {
            largest = Some(term);
        }
    }
    largest.map(Admission::Admitted)
}

/// Q/T in millionths.
pub(crate) fn utilization_ppm(reservation: Reservation) -> u32 {
    ppm(reservation.budget_ns, reservation.period_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReservationKind;

    fn ms(budget: u64, period: u64) -> Reservation {
        Reservation { budget_ns: budget * 1_000_000, period_ns: period * 1_000_000, kind: ReservationKind::Soft }
    }

    fn run(set: &[Reservation], blocking_ms: u64, limit_ppm: u32) -> Option<Admission> {
        let clients =
            set.iter().enumerate().map(|(i, &reservation)| (Holder::Client(ClientId(i as u16 + 1)), reservation));
        test(clients, blocking_ms * 1_000_000, limit_ppm)
    }

    #[test]
    fn the_failing_term_is_reported() {
        // The first term is 0.3 + 0.2, the second 0.3 + 0.25 + 0.1.
        let set = [ms(3, 10), ms(5, 20)];
        assert!(matches!(run(&set, 2, 650_000), Some(Admission::Admitted(_))));
        let Some(Admission::Refused(term)) = run(&set, 2, 640_000) else { panic!("0.65 is above 0.64") };
        assert_eq!((term.holder, term.sum_ppm, term.blocking_ppm), (Holder::Client(ClientId(2)), 550_000, 100_000));
        let Some(Admission::Refused(term)) = run(&set, 7, 900_000) else { panic!("0.3 + 0.7 is above 0.9") };
        assert_eq!(term.holder, Holder::Client(ClientId(1)), "long requests affect the shortest period first");
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let set = [Reservation { budget_ns: u64::MAX, period_ns: 1, kind: ReservationKind::Hard }];
        assert!(matches!(run(&set, u64::MAX / 1_000_000, 900_000), Some(Admission::Refused(_))));
        assert_eq!(run(&[], 1, 1), None);
    }
}
