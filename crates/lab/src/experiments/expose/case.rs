// SPDX-License-Identifier: MIT
//! The circumstances that are compared: what helps the exposed program, and what is played.

use crate::boost::Boost;
use crate::order::in_turn;
use crate::processor::{Pinned, SCENE};
use crate::server::Server;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use xqos_client::Control;

/// N of the message of 2005: for so long at most an exposed program is waited for, or gets the processor. More than the
/// message's 25 ms, which is just what the redraw takes: who is let go a moment too early uncovers what it does not know of.
pub(super) const LIMIT: Duration = Duration::from_millis(40);
/// Nobody waits for longer than this from one move to the next: 20 frames a second.
const FLOOR: Duration = Duration::from_millis(50);

/// What helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Case {
    /// A server without xqos.
    Stock,
    /// xqos as it comes.
    Without,
    /// Who exposes others waits for them at the server.
    Pacing,
    /// Who is exposed gets the processor.
    Boost,
    Both,
}

impl Case {
    pub const ALL: [Case; 5] = [Case::Stock, Case::Without, Case::Pacing, Case::Boost, Case::Both];

    /// Also the name of its colour in a page.
    pub fn name(self) -> &'static str {
        match self {
            Case::Stock => "stock",
            Case::Without => "without",
            Case::Pacing => "pacing",
            Case::Boost => "boost",
            Case::Both => "both",
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Case::Stock => "stock server",
            Case::Without => "without help",
            Case::Pacing => "pacing",
            Case::Boost => "boost (CPU)",
            Case::Both => "both",
        }
    }

    /// Every other turn the other way round, so that none is always the first.
    pub fn in_turn(turn: u32) -> Vec<Case> {
        in_turn(Case::ALL, turn)
    }

    /// Sets the server so, until the result is dropped.
    pub fn begin(self, server: &Server, control: Option<&Control>) -> Result<Help> {
        let paces = matches!(self, Case::Pacing | Case::Both);
        if let Some(control) = control {
            control.set_pacing(if paces { LIMIT.as_micros() as u32 } else { 0 }, FLOOR.as_micros() as u32)?;
        }
        if !matches!(self, Case::Boost | Case::Both) {
            return Ok(Help(None));
        }
        let _pinned = Pinned::to(SCENE)?;
        Ok(Help(Some(Boost::start(server.display(), LIMIT)?)))
    }
}

/// What runs only while a case is measured.
#[derive(Debug)]
pub(super) struct Help(#[expect(dead_code, reason = "it serves until it is dropped")] Option<Boost>);

/// Who moves what over whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Play {
    /// twm drags a clock over a program of ours.
    Drag,
    /// twm drags a clock over a GTK program.
    Toolkit,
    /// The first with the program on a processor of its own, as one on another machine is.
    Elsewhere,
    /// A window that moves itself.
    Mover,
    /// The same, which works for each move.
    Working,
    /// The same, which waits for an answer to each move.
    Waiting,
}

impl Play {
    pub const ALL: [Play; 6] = [Play::Drag, Play::Toolkit, Play::Elsewhere, Play::Mover, Play::Working, Play::Waiting];
    /// Where it is to be quick.
    pub const QUICK: [Play; 3] = [Play::Drag, Play::Toolkit, Play::Mover];

    pub fn title(self) -> &'static str {
        match self {
            Play::Drag => "a clock dragged over a redraw of 25 ms",
            Play::Toolkit => "a clock dragged over gtk3-icon-browser",
            Play::Elsewhere => "a clock dragged over a redraw of 25 ms elsewhere",
            Play::Mover => "a window moved every 1-5 ms",
            Play::Working => "a window moved after 4 ms of work each time",
            Play::Waiting => "a window moved once the last move was answered",
        }
    }

    /// Where there is little room.
    pub fn short(self) -> &'static str {
        match self {
            Play::Drag => "Clock over 25 ms",
            Play::Toolkit => "Clock over gtk3-icon-browser",
            Play::Elsewhere => "Clock over 25 ms elsewhere",
            Play::Mover => "Moved every 1-5 ms",
            Play::Working => "Moved after 4 ms of work",
            Play::Waiting => "Moved once answered",
        }
    }

    /// What has to be installed; Xvfb, twm and xclock are needed by all or most.
    pub fn program(self) -> Option<&'static str> {
        (self == Play::Toolkit).then_some("gtk3-icon-browser")
    }

    /// By twm, which the pointer tells where to.
    pub fn is_drag(self) -> bool {
        matches!(self, Play::Drag | Play::Toolkit | Play::Elsewhere)
    }

    /// The goals are about drags on one processor; what is elsewhere nobody can set aside, and what
    /// moves by itself shows when pacing suffices, and when it does not.
    pub fn has_goals(self) -> bool {
        matches!(self, Play::Drag | Play::Toolkit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Help and documents recommend what was measured.
    #[test]
    fn the_limit_is_the_one_that_is_recommended() {
        let flag = format!("--expose-pacing {}ms", LIMIT.as_millis());
        let documents = [
            include_str!("../../../../../README.md"),
            include_str!("../../../../../docs/exposing.md"),
            include_str!("../../../../../docs/experiments/expose.md"),
            include_str!("../../../../xqos/src/commands/policy.rs"),
            include_str!("../../../../xqos/src/commands/boost.rs"),
        ];
        assert!(documents.iter().all(|text| text.contains(&flag)), "{flag}");
        assert!(documents[4].contains(&format!("default_value = \"{}ms\"", LIMIT.as_millis())));
    }

    #[test]
    fn no_case_is_always_the_first() {
        let firsts: Vec<Case> = (0..4).map(|turn| Case::in_turn(turn)[0]).collect();
        assert_eq!(firsts, [Case::Stock, Case::Both, Case::Stock, Case::Both]);
    }
}
