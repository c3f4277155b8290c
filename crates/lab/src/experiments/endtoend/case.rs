// SPDX-License-Identifier: MIT
//! What the light client has.

use crate::order::in_turn;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Case {
    Unreserved,
    /// Of server time.
    Reserved,
    /// That, and the server has the priority that the helper lends it while it works for the client.
    Inherited,
    /// That, and processor time for the client itself.
    Both,
}

impl Case {
    pub const ALL: [Case; 4] = [Case::Unreserved, Case::Reserved, Case::Inherited, Case::Both];

    /// Also the name of its colour in a page.
    pub fn name(self) -> &'static str {
        match self {
            Case::Unreserved => "fair",
            Case::Reserved => "reserved",
            Case::Inherited => "boost",
            Case::Both => "both",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Case::Unreserved => "unreserved",
            Case::Reserved => "X 3/10",
            Case::Inherited => "X 3/10, CPU lent",
            Case::Both => "X 3/10, CPU lent and 2/10",
        }
    }

    pub fn is_boosted(self) -> bool {
        matches!(self, Case::Inherited | Case::Both)
    }

    pub fn has_processor(self) -> bool {
        self == Case::Both
    }

    /// Every other turn the other way round, so that none is always the first.
    pub fn in_turn(turn: u32) -> Vec<Case> {
        in_turn(Case::ALL, turn)
    }
}
