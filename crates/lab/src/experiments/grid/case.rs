// SPDX-License-Identifier: MIT
//! What the grid is made of: programs, ways to carry X, and links; and the order in which cells are measured.

use crate::experiments::far::{Job, Line, Program};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How X gets from the program to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Transport {
    Raw,
    Ssh,
    SshC,
    // Renamed when what they measure changed: cells of earlier runs are not taken for these.
    #[serde(rename = "NxProxy")]
    Nx,
    #[serde(rename = "NxProxyTaint")]
    NxTaint,
}

impl Transport {
    pub const ALL: [Transport; 5] =
        [Transport::Raw, Transport::SshC, Transport::Nx, Transport::NxTaint, Transport::Ssh];

    pub fn title(self) -> &'static str {
        match self {
            Transport::Raw => "raw X",
            Transport::Ssh => "ssh -Y",
            Transport::SshC => "ssh -C -Y",
            Transport::Nx => "nxproxy",
            Transport::NxTaint => "nxproxy taint",
        }
    }

    /// A line's look in the page.
    pub fn look(self) -> &'static str {
        match self {
            Transport::Raw => "stock",
            Transport::Ssh => "classic",
            Transport::SshC => "smart",
            Transport::Nx => "fair",
            Transport::NxTaint => "cbs",
        }
    }

    /// Programs without which there is none.
    pub fn needs(self) -> &'static [&'static str] {
        match self {
            Transport::Raw => &[],
            Transport::Ssh | Transport::SshC => &["sshd", "ssh", "ssh-keygen", "xauth"],
            Transport::Nx | Transport::NxTaint => &["nxproxy"],
        }
    }
}

/// Everything is relative to this one, with raw X.
pub(super) const BASE: Line = Line { kbit_per_s: 10_000, delay_us: 100 };

/// One cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Case {
    pub program: Program,
    pub transport: Transport,
    pub line: Line,
}

impl Job for Case {
    fn title(self) -> String {
        format!("{}, {}, {}", self.program.title(), self.transport.title(), self.line.title())
    }

    fn is_slow(self) -> bool {
        self.line.is_slow()
    }

    /// Of its kind, about: what is started, what xterm says and waits for, and the silence at its end.
    fn estimate(self, limit: Duration) -> Duration {
        const START_S: f64 = 3.0;
        const ROUND_TRIPS: f64 = 250.0;
        const BYTES: f64 = 60_000.0;
        let Line { kbit_per_s, delay_us } = self.line;
        let waiting_s = ROUND_TRIPS * 2.0 * delay_us as f64 / 1e6;
        let sending_s = BYTES * 8.0 / (kbit_per_s as f64 * 1e3);
        let shown_s = (waiting_s + sending_s).min(limit.as_secs_f64());
        Duration::from_secs_f64(START_S + shown_s + self.line.silence().as_secs_f64())
    }

    fn needs(self) -> impl Iterator<Item = &'static str> {
        self.program.command().iter().take(1).chain(self.transport.needs()).copied()
    }
}

/// All cells: what everything is relative to, then slow lines, then fast ones, so that a crew is seldom broken up; of each
/// kind those that say most first.
pub(super) fn all(quick: bool) -> Vec<Case> {
    if quick {
        return quick_cells();
    }
    let mut cells = Vec::new();
    for kbit_per_s in Line::RATES {
        for delay_us in Line::DELAYS {
            for program in Program::ALL {
                cells.extend(Transport::ALL.map(|transport| {
                    let line = Line { kbit_per_s, delay_us };
                    Case { program, transport, line }
                }));
            }
        }
    }
    // Stable: within a stage, as they stand here.
    cells.sort_by_key(|&case| (case.line != BASE, !case.line.is_slow(), stage(case)));
    cells
}

fn stage(Case { transport, line, .. }: Case) -> usize {
    let Line { kbit_per_s, delay_us } = line;
    match (kbit_per_s, delay_us) {
        (10, 100) if transport == Transport::SshC => 0,
        (1_000 | 10_000, 10_000) => 1,
        (100 | 1_000, 100) => 2,
        (10_000, 100_000) if matches!(transport, Transport::Raw | Transport::SshC | Transport::NxTaint) => 3,
        (10, 100) => 4,
        (100, 10_000) => 5,
        (100 | 1_000 | 10_000, _) => 6,
        (100_000, _) => 7,
        _ => 8,
    }
}

/// Corners of the fast end: xterm in UTF-8 asks for 3 MB of font metrics, and waits 260 times.
fn quick_cells() -> Vec<Case> {
    let mut cells = Vec::new();
    for (kbit_per_s, delay_us) in [(10_000, 100), (1_000, 100), (10_000, 1_000), (1_000, 1_000)] {
        for transport in [Transport::Raw, Transport::SshC] {
            let line = Line { kbit_per_s, delay_us };
            cells.push(Case { program: Program::Xterm, transport, line });
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_full_grid_has_each_cell_once_and_the_base_first() {
        let cells = all(false);
        assert_eq!(cells.len(), 500);
        assert_eq!(cells.iter().collect::<BTreeSet<_>>().len(), 500);
        assert!(cells[..25].iter().all(|case| case.line == BASE), "{:?}", &cells[..25]);
        assert_eq!(cells[0].transport, Transport::Raw);
        let turns = cells[25..].windows(2).filter(|two| two[0].line.is_slow() != two[1].line.is_slow()).count();
        assert_eq!((cells[25].line.is_slow(), turns), (true, 1), "one stretch for the crew");
    }

    #[test]
    fn the_quick_grid_fits_a_minute() {
        let cells = all(true);
        assert!(cells.contains(&Case { program: Program::Xterm, transport: Transport::Raw, line: BASE }));
        let seconds: u64 = cells.iter().map(|case| case.estimate(Duration::from_secs(12)).as_secs()).sum();
        assert!(seconds <= 60, "{seconds} s");
    }
}
