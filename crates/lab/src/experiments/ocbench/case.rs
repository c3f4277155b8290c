// SPDX-License-Identifier: MIT
//! The circumstances that are compared: who decides, and what ocbench has reserved.

use crate::boost::ProcessorTime;
use crate::light::Reservation;
use crate::order::in_turn;
use crate::processor::Reserved;
use crate::scheduler::Scheduler;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use xqos_client::Control;

/// What ocbench reserves of a processor.
const PROCESSOR: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(10));

/// Who decides whom the server serves, and what ocbench has reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Case {
    Stock,
    Fair,
    /// 3 ms in 10 ms, as in the paper.
    Soft,
    /// The same, and never more.
    Hard,
    /// Soft, and processor time: a reservation of the kernel for ocbench, and a loan for the server. Needs the right.
    Both,
}

impl Case {
    pub const ALL: [Case; 5] = [Case::Stock, Case::Fair, Case::Soft, Case::Hard, Case::Both];
    /// Of the traces, in the order of the paper's figures.
    pub const TRACED: [Case; 3] = [Case::Stock, Case::Hard, Case::Soft];

    /// Also the name of its colour and dashes in a page.
    pub fn name(self) -> &'static str {
        match self {
            Case::Stock => "stock",
            Case::Fair => "fair",
            Case::Soft => "cbs",
            Case::Hard => "hard",
            Case::Both => "both",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Case::Stock => "stock (today)",
            Case::Fair => "fair (xqos)",
            Case::Soft => "cbs soft",
            Case::Hard => "cbs hard",
            Case::Both => "cbs soft and CPU",
        }
    }

    pub fn scheduler(self) -> Scheduler {
        match self {
            Case::Stock => Scheduler::Stock,
            Case::Fair => Scheduler::Fair,
            Case::Soft | Case::Hard | Case::Both => Scheduler::Cbs,
        }
    }

    /// Asks for the reservation on the client's own connection, if it has any.
    pub fn reserve(self, control: &Control) -> Result<()> {
        match self.scheduler().reservation() {
            Some(Reservation { budget_us, period_us, .. }) => {
                Ok(control.reserve(0, budget_us, period_us, self == Case::Hard)?)
            }
            None => Ok(()),
        }
    }

    /// For the calling thread, which is to be ocbench, and for the server.
    pub fn help(self, display: &str) -> Result<Option<ProcessorTime>> {
        (self == Case::Both).then(|| ProcessorTime::begin(display, PROCESSOR)).transpose()
    }

    /// Those that this user may have measured; every other turn the other way round, so that none is always the first.
    pub fn in_turn(turn: u32) -> Vec<Case> {
        let may = Reserved::is_allowed();
        in_turn(Case::ALL, turn).into_iter().filter(|&case| may || case != Case::Both).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_case_is_always_the_first() {
        let last = if Reserved::is_allowed() { Case::Both } else { Case::Hard };
        let firsts: Vec<Case> = (0..4).map(|turn| Case::in_turn(turn)[0]).collect();
        assert_eq!(firsts, [Case::Stock, last, Case::Stock, last]);
    }
}
