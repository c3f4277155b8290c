//! The circumstances that are compared: who decides, and what ocbench has reserved.

use crate::control::Control;
use crate::light::Reservation;
use crate::order::in_turn;
use crate::scheduler::Scheduler;
use anyhow::Result;
use serde::{Deserialize, Serialize};

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
}

impl Case {
    pub const ALL: [Case; 4] = [Case::Stock, Case::Fair, Case::Soft, Case::Hard];
    /// Of the traces, in the order of the paper's figures.
    pub const TRACED: [Case; 3] = [Case::Stock, Case::Hard, Case::Soft];

    /// Also the name of its colour and dashes in a page.
    pub fn name(self) -> &'static str {
        match self {
            Case::Stock => "stock",
            Case::Fair => "fair",
            Case::Soft => "cbs",
            Case::Hard => "hard",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Case::Stock => "stock (today)",
            Case::Fair => "fair (xqos)",
            Case::Soft => "cbs soft",
            Case::Hard => "cbs hard",
        }
    }

    pub fn scheduler(self) -> Scheduler {
        match self {
            Case::Stock => Scheduler::Stock,
            Case::Fair => Scheduler::Fair,
            Case::Soft | Case::Hard => Scheduler::Cbs,
        }
    }

    /// Asks for the reservation on the client's own connection, if it has any.
    pub fn reserve(self, control: &Control) -> Result<()> {
        match self.scheduler().reservation() {
            Some(Reservation { budget_us, period_us, .. }) => {
                control.reserve(0, budget_us, period_us, self == Case::Hard)
            }
            None => Ok(()),
        }
    }

    /// Every other turn the other way round, so that none is always the first.
    pub fn in_turn(turn: u32) -> Vec<Case> {
        in_turn(Case::ALL, turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_case_is_always_the_first() {
        let firsts: Vec<Case> = (0..4).map(|turn| Case::in_turn(turn)[0]).collect();
        assert_eq!(firsts, [Case::Stock, Case::Hard, Case::Stock, Case::Hard]);
    }
}
