// SPDX-License-Identifier: MIT
//! Facts as records, and records as facts again.
//!
//! Each fact is one record but [`Fact::Parameters`], which are two; a reservation's record tells besides whether it was
//! admitted, and that of a slice whether it was ended early. Intervals stand in microseconds.

use super::What;
use crate::us;
use xqos_core::{Fact, Pacing, Parameters, Service, Supply};

impl What {
    /// The record of a fact; before it the first one, where there are two.
    pub fn of_fact(fact: &Fact) -> (Option<What>, What) {
        let what = match *fact {
            Fact::Connected { client, descriptor } => What::Creation { client, descriptor },
            Fact::Gone { client } => What::Destruction { client },
            Fact::Arrived { client } => What::Activation { client },
            Fact::Withdrawn { client } => What::Withdrawal { client },
            Fact::Input { client } => What::Input { client },
            Fact::Exposed { client, cause } => What::Exposed { client, cause },
            Fact::MadeWork { client } => What::MadeWork { client },
            Fact::WorksFor { client, whom } => What::WorksFor { client, whom },
            Fact::Grabbed { by } => What::Grab { client: by },
            Fact::Overran { ns } => What::Overran { ns },
            Fact::Served(Service {
                client, start, requests, bytes, last_request, still_ready, ended_early, ..
            }) => {
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                What::Served { client, still_ready, ended_early, requests, last_request, bytes, start }
            }
            Fact::Replenish => What::Replenish,
            Fact::Policy(kind) => What::Policy { kind },
            Fact::Parameters(parameters) => {
                let (intervals, limits) = parameter_records(&parameters);
                return (Some(intervals), limits);
            }
            Fact::Pacing(Pacing { limit_ns, floor_ns }) => {
                What::Pacing { limit_us: us(limit_ns), floor_us: us(floor_ns) }
            }
            Fact::Supply(Supply { budget_ns, period_ns }) => What::Supply { budget_ns, period_ns },
            Fact::DesktopShare { ppm } => What::Desktop { share_ppm: ppm },
            Fact::Contention { is_on } => What::Contention { is_on },
            Fact::SyncPriority { client, priority } => What::SyncPriority { client, priority },
            Fact::Weight { client, weight } => What::Weight { client, weight },
            Fact::Group { client, group } => What::Group { client, group },
            Fact::GroupWeight { group, weight } => What::GroupWeight { group, weight },
            Fact::GroupCap { group, ppm } => What::GroupCap { group, ppm },
            Fact::FixedPriority { client, priority } => What::FixedPriority { client, priority },
            Fact::Role { client, role } => What::Role { client, role },
            Fact::Reserve { client, reservation } => What::Reserve { client, reservation, admitted: false },
            Fact::Release { client } => What::Clear { client },
            Fact::GroupReserve { group, reservation } => What::GroupReserve { group, reservation, admitted: false },
            Fact::GroupRelease { group } => What::GroupRelease { group },
        };
        (None, what)
    }
}

fn parameter_records(parameters: &Parameters) -> (What, What) {
    let &Parameters { slice_ns, timer_interval_ns, maximum_slice_ns, max_utilization_ppm, blocking_ns } = parameters;
    let (slice_us, timer_interval_us, maximum_slice_us) = (us(slice_ns), us(timer_interval_ns), us(maximum_slice_ns));
    let limits = What::Limits { max_utilization_ppm, blocking_us: us(blocking_ns) };
    (What::Intervals { slice_us, timer_interval_us, maximum_slice_us }, limits)
}

/// Reads the facts of a trace, record by record.
#[derive(Debug, Default)]
pub struct FactReader {
    /// The first half of parameters, microseconds.
    intervals: (u32, u32, u32),
}

impl FactReader {
    /// The fact that a record of this time encodes; `None`: it is none, or the first half of one.
    pub fn take(&mut self, at: xqos_core::Time, what: &What) -> Option<Fact> {
        Some(match *what {
            What::Creation { client, descriptor } => Fact::Connected { client, descriptor },
            What::Destruction { client } => Fact::Gone { client },
            What::Activation { client } => Fact::Arrived { client },
            What::Withdrawal { client } => Fact::Withdrawn { client },
            What::Input { client } => Fact::Input { client },
            What::Exposed { client, cause } => Fact::Exposed { client, cause },
            What::MadeWork { client } => Fact::MadeWork { client },
            What::WorksFor { client, whom } => Fact::WorksFor { client, whom },
            What::Grab { client } => Fact::Grabbed { by: client },
            What::Overran { ns } => Fact::Overran { ns },
            What::Served { client, still_ready, ended_early, requests, last_request, bytes, start } => {
                let (end, bytes) = (at, bytes.into());
                Fact::Served(Service { client, start, end, requests, bytes, last_request, still_ready, ended_early })
            }
            What::Replenish => Fact::Replenish,
            What::Policy { kind } => Fact::Policy(kind),
            What::Intervals { slice_us, timer_interval_us, maximum_slice_us } => {
                self.intervals = (slice_us, timer_interval_us, maximum_slice_us);
                return None;
            }
            What::Limits { max_utilization_ppm, blocking_us } => {
                let (slice_us, timer_interval_us, maximum_slice_us) = self.intervals;
                Fact::Parameters(Parameters {
                    slice_ns: ns(slice_us),
                    timer_interval_ns: ns(timer_interval_us),
                    maximum_slice_ns: ns(maximum_slice_us),
                    max_utilization_ppm,
                    blocking_ns: ns(blocking_us),
                })
            }
            What::Pacing { limit_us, floor_us } => {
                Fact::Pacing(Pacing { limit_ns: ns(limit_us), floor_ns: ns(floor_us) })
            }
            What::Supply { budget_ns, period_ns } => Fact::Supply(Supply { budget_ns, period_ns }),
            What::Desktop { share_ppm } => Fact::DesktopShare { ppm: share_ppm },
            What::Contention { is_on } => Fact::Contention { is_on },
            What::SyncPriority { client, priority } => Fact::SyncPriority { client, priority },
            What::Weight { client, weight } => Fact::Weight { client, weight },
            What::Group { client, group } => Fact::Group { client, group },
            What::GroupWeight { group, weight } => Fact::GroupWeight { group, weight },
            What::GroupCap { group, ppm } => Fact::GroupCap { group, ppm },
            What::FixedPriority { client, priority } => Fact::FixedPriority { client, priority },
            What::Role { client, role } => Fact::Role { client, role },
            What::Reserve { client, reservation, .. } => Fact::Reserve { client, reservation },
            What::Clear { client } => Fact::Release { client },
            What::GroupReserve { group, reservation, .. } => Fact::GroupReserve { group, reservation },
            What::GroupRelease { group } => Fact::GroupRelease { group },
            _ => return None,
        })
    }
}

fn ns(us: u32) -> u64 {
    u64::from(us) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::{ClientId, GroupId, PolicyKind, Reservation, ReservationKind, Role, Time};

    fn one_of_each() -> Vec<Fact> {
        let (client, at) = (ClientId(9), Time(7_000));
        let reservation = Reservation { budget_ns: 1_000_000, period_ns: 9_000_000, kind: ReservationKind::Hard };
        let role = Role { compositor: true, window_manager: false };
        let service =
            Service { requests: 3, bytes: 40, last_request: 9, ended_early: true, ..Service::of(client, Time(5), at) };
        vec![
            Fact::Connected { client, descriptor: 12 },
            Fact::Gone { client },
            Fact::Arrived { client },
            Fact::Withdrawn { client },
            Fact::Input { client },
            Fact::Exposed { client, cause: Some(ClientId(1)) },
            Fact::MadeWork { client },
            Fact::WorksFor { client, whom: ClientId(7) },
            Fact::Grabbed { by: None },
            Fact::Overran { ns: 77 },
            Fact::Served(service),
            Fact::Replenish,
            Fact::Policy(PolicyKind::Smart),
            Fact::Parameters(Parameters { slice_ns: 2_000_000, blocking_ns: 3_000, ..Parameters::default() }),
            Fact::Pacing(Pacing { limit_ns: 25_000_000, floor_ns: 50_000_000 }),
            Fact::Supply(Supply { budget_ns: 8, period_ns: 10 }),
            Fact::DesktopShare { ppm: 500_000 },
            Fact::Contention { is_on: true },
            Fact::SyncPriority { client, priority: -3 },
            Fact::Weight { client, weight: 250 },
            Fact::Group { client, group: GroupId(3) },
            Fact::GroupWeight { group: GroupId(3), weight: 250 },
            Fact::GroupCap { group: GroupId(3), ppm: 200_000 },
            Fact::FixedPriority { client, priority: 4 },
            Fact::Role { client, role },
            Fact::Reserve { client, reservation },
            Fact::Release { client },
            Fact::GroupReserve { group: GroupId(3), reservation },
            Fact::GroupRelease { group: GroupId(3) },
        ]
    }

    #[test]
    fn every_fact_is_read_back_from_its_records() {
        let mut reader = FactReader::default();
        for fact in one_of_each() {
            let (first, what) = What::of_fact(&fact);
            assert_eq!(first.and_then(|first| reader.take(Time(7_000), &first)), None);
            assert_eq!(reader.take(Time(7_000), &what), Some(fact));
        }
    }
}
