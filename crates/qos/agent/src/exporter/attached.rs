// SPDX-License-Identifier: MIT
//! Figures of servers without xqos, from short kernel traces: the server's work for each program, and the total length
//! of the traces. The ratio of the two is the program's share, regardless of the number of traces.

use super::account::{Labelled, Labels};
use crate::attach::watch::PeerUse;
use std::time::Duration;

/// Covers a frame of a slow animation, and is short compared to the time between two scrapes.
pub const TRACE_TIME: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Watched {
    pub server_pid: i32,
    pub observed_ns: u64,
    pub totals: Labelled<TracedUsage>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracedUsage {
    pub busy_ns: u64,
    pub calls: u64,
    /// Longest stretch of work, in the last trace only.
    pub longest_ns: Option<u64>,
}

impl Watched {
    pub fn new(server_pid: i32, max_labels: usize) -> Watched {
        Watched { server_pid, observed_ns: 0, totals: Labelled::new(max_labels) }
    }

    /// `user`: names the user of a process.
    pub fn add(&mut self, seen: Vec<PeerUse>, elapsed_ns: u64, user: impl Fn(i32) -> String) {
        self.observed_ns += elapsed_ns;
        self.totals.all.values_mut().for_each(|used| used.longest_ns = None);
        let labels = |it: &PeerUse| Labels { user: it.pid.map(&user).unwrap_or_default(), program: it.program.clone() };
        let seen: Vec<(Labels, PeerUse)> = seen.into_iter().map(|one| (labels(&one), one)).collect();
        self.totals.start(seen.iter().map(|(labels, _)| labels));
        for (labels, one) in seen {
            let used = self.totals.of(labels);
            used.busy_ns += one.used.ns;
            used.calls += one.used.calls;
            used.longest_ns = Some(used.longest_ns.unwrap_or(0).max(one.used.longest_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attach::watch::Usage;

    #[test]
    fn traces_add_up_and_labels_are_limited() {
        let seen = |program: &str, ns| PeerUse {
            pid: Some(1),
            program: program.to_owned(),
            departed: false,
            used: Usage { ns, calls: 1, longest_ns: ns },
        };
        let mut watched = Watched::new(7, 2);
        let look = || vec![seen("a", 5), seen("b", 7), seen("c", 1), seen("d", 2)];
        watched.add(look(), 100, |_| "me".to_owned());
        watched.add(look().split_off(1), 100, |_| "me".to_owned());
        assert_eq!(watched.observed_ns, 200);
        let found: Vec<_> = watched.totals.all.iter().map(|(labels, used)| (labels.program.as_str(), *used)).collect();
        let used = |busy_ns, calls, longest_ns| TracedUsage { busy_ns, calls, longest_ns };
        assert_eq!(
            found,
            [("b", used(14, 2, Some(7))), ("c", used(1, 1, Some(1))), ("other", used(5, 3, Some(2)))],
            "c replaces a"
        );
    }
}
