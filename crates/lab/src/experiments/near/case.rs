// SPDX-License-Identifier: MIT
//! What is started, over which link, and which way X goes.

use crate::experiments::far::{Job, Line, Program, delay_title};
use crate::order::in_turn;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How X gets from the program to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Way {
    Raw,
    Ssh,
    Nx,
    Strict,
    Relaxed,
    /// `xqos ssh`: near in strict order, over ssh -C -Y.
    ThroughSsh,
}

impl Way {
    pub const ALL: [Way; 6] = [Way::Raw, Way::Ssh, Way::Nx, Way::Strict, Way::Relaxed, Way::ThroughSsh];

    pub fn title(self) -> &'static str {
        match self {
            Way::Raw => "raw X",
            Way::Ssh => "ssh -C -Y",
            Way::Nx => "nxproxy taint",
            Way::Strict => "near, strict",
            Way::Relaxed => "near, relaxed",
            Way::ThroughSsh => "xqos ssh",
        }
    }

    /// A line's look in the page.
    pub fn look(self) -> &'static str {
        match self {
            Way::Raw => "stock",
            Way::Ssh => "smart",
            Way::Nx => "classic",
            Way::Strict => "fair",
            Way::Relaxed => "reserved",
            Way::ThroughSsh => "cbs",
        }
    }

    pub fn is_near(self) -> bool {
        matches!(self, Way::Strict | Way::Relaxed | Way::ThroughSsh)
    }

    /// Whether there is a process beside the server that X comes from.
    pub fn has_far_proxy(self) -> bool {
        matches!(self, Way::Ssh | Way::Nx | Way::ThroughSsh)
    }

    /// Programs without which there is none.
    fn needs(self) -> &'static [&'static str] {
        match self {
            Way::Raw | Way::Strict | Way::Relaxed => &[],
            Way::Ssh | Way::ThroughSsh => &["sshd", "ssh", "ssh-keygen", "xauth"],
            Way::Nx => &["nxproxy"],
        }
    }
}

/// In the order of the goals; xterm -fa differs from xterm by what it draws, not by what it waits for.
pub(super) const PROGRAMS: [Program; 4] = [Program::Gtk, Program::Emacs, Program::Qt, Program::Xterm];

/// Where the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Place {
    /// Beside its server: nothing is to be gained.
    Local,
    /// Over 10 Mb/s with this delay one way.
    Far { delay_us: u64 },
}

impl Place {
    pub fn far() -> [Place; 4] {
        Line::DELAYS.map(|delay_us| Place::Far { delay_us })
    }

    pub fn title(self) -> String {
        match self {
            Place::Local => "local".to_owned(),
            Place::Far { delay_us } => delay_title(delay_us),
        }
    }
}

/// The far end of the goals.
pub(super) const FARTHEST: Place = Place::Far { delay_us: 100_000 };
const QUICK: Place = Place::Far { delay_us: 10_000 };
/// Local starts differ by little, and so are measured in pairs.
const LOCAL_TURNS: u32 = 5;

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Case {
    pub program: Program,
    pub way: Way,
    pub place: Place,
    pub turn: u32,
}

impl Case {
    pub fn is_local(self) -> bool {
        self.place == Place::Local
    }

    pub fn line(self) -> Line {
        let delay_us = if let Place::Far { delay_us } = self.place { delay_us } else { Line::DELAYS[0] };
        Line { kbit_per_s: 10_000, delay_us }
    }

    /// Waits of programs are felt from here on; below, all answers come within a frame.
    pub fn has_steady(self) -> bool {
        self.way != Way::Nx && matches!(self.place, Place::Far { delay_us: 10_000.. })
    }
}

impl Job for Case {
    fn title(self) -> String {
        format!("{}, {}, {}", self.program.title(), self.way.title(), self.place.title())
    }

    fn is_slow(self) -> bool {
        self.line().is_slow()
    }

    fn estimate(self, limit: Duration) -> Duration {
        const START_S: f64 = 6.0;
        const STEADY_S: f64 = 15.0;
        let waits = if self.way.is_near() { 40.0 } else { 200.0 };
        let waiting_s = (waits * 2.0 * self.line().delay_us as f64 / 1e6).min(limit.as_secs_f64());
        Duration::from_secs_f64(START_S + waiting_s + if self.has_steady() { STEADY_S } else { 0.0 })
    }

    fn needs(self) -> impl Iterator<Item = &'static str> {
        self.program.command().iter().take(1).chain(self.way.needs()).copied()
    }
}

/// All cells: those with goals first, then ever shorter delays.
pub(super) fn all(quick: bool) -> Vec<Case> {
    let far = |program, way, place| Case { program, way, place, turn: 0 };
    if quick {
        let ways = [Way::Raw, Way::Ssh, Way::Strict, Way::Relaxed];
        return ways.map(|way| far(Program::Gtk, way, QUICK)).into();
    }
    let at = |place| PROGRAMS.into_iter().flat_map(move |program| Way::ALL.map(|way| far(program, way, place)));
    let mut cells: Vec<Case> = at(FARTHEST).collect();
    for turn in 0..LOCAL_TURNS {
        let pair = |program| in_turn([Way::Raw, Way::Strict], turn).into_iter().map(move |way| (program, way));
        let local = |(program, way)| Case { program, way, place: Place::Local, turn };
        cells.extend(PROGRAMS.into_iter().flat_map(pair).map(local));
    }
    cells.extend(Place::far().into_iter().rev().filter(|&place| place != FARTHEST).flat_map(at));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_full_run_has_each_cell_once_and_the_farthest_first() {
        let cells = all(false);
        assert_eq!(cells.len(), 4 * 6 * 4 + 4 * 2 * LOCAL_TURNS as usize);
        assert_eq!(cells.iter().collect::<BTreeSet<_>>().len(), cells.len());
        assert!(cells[..24].iter().all(|case| case.place == FARTHEST && case.is_slow()), "{:?}", &cells[..24]);
    }

    #[test]
    fn the_quick_run_takes_a_minute_or_two() {
        let seconds: u64 = all(true).iter().map(|case| case.estimate(super::super::LIMIT).as_secs()).sum();
        assert!(seconds <= 120, "{seconds} s");
    }
}
