// SPDX-License-Identifier: MIT
//! The schedulers that the papers compare, on one server.
//!
//! A server with xqos can follow any of them and switches immediately. They are therefore measured in turn on the same
//! server, so that drift affects all of them equally. Under [`Scheduler::Stock`] xqos only observes, and the server's
//! own scheduler decides.

use crate::light::Reservation;
use crate::order::in_turn;
use crate::server::{Server, Setup};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use xqos_abi::PolicyChange;
use xqos_client::Control;
use xqos_core::{Parameters, PolicyKind, ReservationKind};

/// Reservation of a measured client under [`Scheduler::Cbs`], as in the paper of 2008: 3 ms in every 10 ms, soft.
const RESERVATION: Reservation = Reservation { budget_us: 3000, period_us: 10_000, kind: ReservationKind::Soft };
/// Blocking time that admission assumes for that reservation.
const BLOCKING_US: u32 = 1000;

/// The scheduler that decides which client the server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// The scheduler of 1987 (Packard 3.1).
    Classic,
    /// The scheduler of 2000, as the paper describes it (Packard 5).
    Smart,
    /// The current X server's own scheduler.
    Stock,
    /// xqos with its default settings.
    Fair,
    /// xqos, with a reservation for the measured client (Manica et al. 3).
    Cbs,
}

impl Scheduler {
    pub const ALL: [Scheduler; 5] =
        [Scheduler::Classic, Scheduler::Smart, Scheduler::Stock, Scheduler::Fair, Scheduler::Cbs];

    /// The name, which is also the name of the scheduler's colour in a page.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Classic => "classic",
            Scheduler::Smart => "smart",
            Scheduler::Stock => "stock",
            Scheduler::Fair => "fair",
            Scheduler::Cbs => "cbs",
        }
    }

    /// Name with year or origin, for readers.
    pub fn title(self) -> &'static str {
        match self {
            Scheduler::Classic => "classic (1987)",
            Scheduler::Smart => "smart (2000)",
            Scheduler::Stock => "stock (today)",
            Scheduler::Fair => "fair (xqos)",
            Scheduler::Cbs => "cbs (xqos, reserved)",
        }
    }

    /// The measured client's reservation.
    pub fn reservation(self) -> Option<Reservation> {
        (self == Scheduler::Cbs).then_some(RESERVATION)
    }

    pub fn policy(self) -> PolicyKind {
        match self {
            Scheduler::Classic => PolicyKind::Classic,
            Scheduler::Smart => PolicyKind::Smart,
            Scheduler::Stock => PolicyKind::Stock,
            Scheduler::Fair | Scheduler::Cbs => PolicyKind::Fair,
        }
    }

    /// All schedulers, in reverse order every other turn, so that none is always first.
    pub fn in_turn(turn: u32) -> Vec<Scheduler> {
        in_turn(Scheduler::ALL, turn)
    }
}

/// A server that follows the schedulers one after the other.
#[derive(Debug)]
pub struct Stage {
    server: Server,
    control: Control,
}

impl Stage {
    /// Fails if xqos has stepped aside, because xqos would then not be measured.
    pub fn of(setup: Setup) -> Result<Stage> {
        let server = setup.start()?;
        let control = server.armed()?;
        Ok(Stage { server, control })
    }

    pub fn server(&self) -> &Server {
        &self.server
    }

    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Lets the server follow this scheduler with its default intervals.
    pub fn follow(&self, scheduler: Scheduler) -> Result<()> {
        follow(&self.control, scheduler.policy(), [None; 2], scheduler == Scheduler::Cbs)
    }
}

/// Makes the server follow this policy, with these slices or the policy's own: the maximum, and the limit to which
/// `smart` lets slices grow if a client runs alone. `reserves` is true if a measured client has a reservation.
pub(crate) fn follow(
    control: &Control,
    policy: PolicyKind,
    [slice_us, maximum_us]: [Option<u32>; 2],
    reserves: bool,
) -> Result<()> {
    let usual = Parameters::default();
    let us = |ns: u64| Some((ns / 1000) as u32);
    // Send a single request, because with slices of 5 ms a second one would wait for the server's own timer.
    Ok(control.set_policy(PolicyChange {
        policy: Some(policy),
        slice_us: slice_us.or(us(usual.slice_ns)),
        timer_interval_us: slice_us.or(us(usual.timer_interval_ns)),
        maximum_slice_us: maximum_us.or(us(usual.maximum_slice_ns)),
        // Otherwise admission might refuse the reservation because of a long request that another client has made.
        blocking_us: Some(if reserves { BLOCKING_US } else { 0 }),
        ..PolicyChange::default()
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_scheduler_is_always_the_first() {
        let firsts: Vec<Scheduler> = (0..4).map(|turn| Scheduler::in_turn(turn)[0]).collect();
        assert_eq!(firsts, [Scheduler::Classic, Scheduler::Cbs, Scheduler::Classic, Scheduler::Cbs]);
    }
}
