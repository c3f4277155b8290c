// SPDX-License-Identifier: MIT
//! The schedulers that the papers compare, beside each other on one server.
//!
//! A server with xqos in it can follow any of them, and changes in an instant: so all are measured on the same server,
//! in turn, and what drifts hits all alike. Under [`Scheduler::Stock`] xqos only observes, and the server's own scheduler
//! chooses.

use crate::light::Reservation;
use crate::order::in_turn;
use crate::server::{Server, Setup};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use xqos_abi::PolicyChange;
use xqos_client::Control;
use xqos_core::{Parameters, PolicyKind};

/// What a measured client reserves under [`Scheduler::Cbs`], as in the paper of 2008: 3 ms in 10 ms; soft.
const RESERVATION: Reservation = Reservation { budget_us: 3000, period_us: 10_000, hard: false };
/// Blocking time that admission is told to reckon with then.
const BLOCKING_US: u32 = 1000;

/// Who decides whom the server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheduler {
    /// The one of 1987 (Packard 3.1).
    Classic,
    /// The one of 2000, as the paper describes it (Packard 5).
    Smart,
    /// The server's own, of today.
    Stock,
    /// xqos as it comes.
    Fair,
    /// The same, with a reservation for the client that is measured (Manica et al. 3).
    Cbs,
}

impl Scheduler {
    pub const ALL: [Scheduler; 5] =
        [Scheduler::Classic, Scheduler::Smart, Scheduler::Stock, Scheduler::Fair, Scheduler::Cbs];

    /// Also the name of its colour in a page.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Classic => "classic",
            Scheduler::Smart => "smart",
            Scheduler::Stock => "stock",
            Scheduler::Fair => "fair",
            Scheduler::Cbs => "cbs",
        }
    }

    /// For people: which one that is.
    pub fn title(self) -> &'static str {
        match self {
            Scheduler::Classic => "classic (1987)",
            Scheduler::Smart => "smart (2000)",
            Scheduler::Stock => "stock (today)",
            Scheduler::Fair => "fair (xqos)",
            Scheduler::Cbs => "cbs (xqos, reserved)",
        }
    }

    /// What the measured client asks for.
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

    /// All of them; every other turn the other way round, so that none is always the first.
    pub fn in_turn(turn: u32) -> Vec<Scheduler> {
        in_turn(Scheduler::ALL, turn)
    }
}

/// A server that follows one scheduler after the other.
#[derive(Debug)]
pub struct Stage {
    server: Server,
    control: Control,
}

impl Stage {
    /// An error when xqos stepped aside, for then nothing of it would be measured.
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

    /// From now on the server follows this scheduler, with the intervals that it comes with.
    pub fn follow(&self, scheduler: Scheduler) -> Result<()> {
        follow(&self.control, scheduler.policy(), scheduler == Scheduler::Cbs)
    }
}

/// The server follows this policy from now on, with the intervals that it comes with; `reserves`: a measured client does.
pub(crate) fn follow(control: &Control, policy: PolicyKind, reserves: bool) -> Result<()> {
    let usual = Parameters::default();
    let us = |ns: u64| Some((ns / 1000) as u32);
    Ok(control.set_policy(PolicyChange {
        policy: Some(policy),
        slice_us: us(usual.slice_ns),
        timer_interval_us: us(usual.timer_interval_ns),
        maximum_slice_us: us(usual.maximum_slice_ns),
        // The longest request that the other clients have made may refuse the reservation, which is none of it.
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
