// SPDX-License-Identifier: MIT
//! Decides when changed clients are evaluated: immediately, but at most 20 times a second, which bounds the cost of a
//! client that changes constantly.
//!
//! This module reads no clock: the caller passes the time since an arbitrary start.

use std::collections::BTreeSet;
use std::time::Duration;

/// Shortest time between two evaluations: half the time in which a change of rules must reach the server.
pub const MIN_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Clients(BTreeSet<u32>),
    All,
}

/// Clients that have changed since the last evaluation, and the time of that evaluation.
#[derive(Debug)]
pub struct Schedule {
    changed: Changed,
    last: Option<Duration>,
}

impl Schedule {
    /// Initially all clients count as changed.
    pub fn with_all_changed() -> Schedule {
        Schedule { changed: Changed::All, last: None }
    }

    pub fn add(&mut self, clients: impl IntoIterator<Item = u32>) {
        if let Changed::Clients(changed) = &mut self.changed {
            changed.extend(clients);
        }
    }

    pub fn add_all(&mut self) {
        self.changed = Changed::All;
    }

    /// Time until the next evaluation; `None` if no client has changed.
    pub fn delay(&self, now: Duration) -> Option<Duration> {
        match &self.changed {
            Changed::Clients(clients) if clients.is_empty() => None,
            _ => Some(self.last.map_or(Duration::ZERO, |last| (last + MIN_INTERVAL).saturating_sub(now))),
        }
    }

    /// Starts an evaluation; returns the clients to evaluate.
    pub fn start(&mut self, now: Duration) -> Changed {
        self.last = Some(now);
        std::mem::replace(&mut self.changed, Changed::Clients(BTreeSet::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_sim::Dice;

    const MS: Duration = Duration::from_millis(1);
    /// Time in which a change of rules must reach the server.
    const RELOAD: Duration = Duration::from_millis(100);

    #[test]
    fn a_change_on_a_quiet_display_is_evaluated_immediately() {
        let mut schedule = Schedule::with_all_changed();
        assert_eq!((schedule.delay(MS), schedule.start(MS)), (Some(Duration::ZERO), Changed::All));
        assert_eq!(schedule.delay(2 * MS), None, "no client has changed");
        schedule.add([7]);
        assert_eq!(schedule.delay(2 * MS), Some(49 * MS), "the last evaluation was just now");
        assert_eq!(schedule.delay(80 * MS), Some(Duration::ZERO));
        schedule.add([8]);
        assert_eq!(schedule.start(80 * MS), Changed::Clients([7, 8].into()));
        schedule.add([7]);
        schedule.add_all();
        schedule.add([9]);
        assert_eq!(schedule.start(200 * MS), Changed::All);
    }

    /// Clients and rules change at random times during an hour.
    #[test]
    fn changed_rules_wait_at_most_half_of_the_reload_time() {
        let (mut schedule, mut dice) = (Schedule::with_all_changed(), Dice::new(1));
        let (mut now, mut waiting, mut last, mut longest, mut count) = (MS, None, None, Duration::ZERO, 0);
        while now < Duration::from_secs(3600) {
            match dice.below(10) {
                0 => {
                    schedule.add_all();
                    waiting = waiting.or(Some(now));
                }
                _ => schedule.add([dice.below(5) as u32]),
            }
            let next = now + Duration::from_micros(dice.below(30_000));
            // Like the daemon, sleep until the next evaluation or the next event.
            if let Some(at) = schedule.delay(now).map(|left| now + left).filter(|&at| at < next) {
                assert!(last.is_none_or(|last| at >= last + MIN_INTERVAL), "two evaluations within {MIN_INTERVAL:?}");
                if schedule.start(at) == Changed::All {
                    longest = longest.max(at - waiting.take().unwrap_or(at));
                }
                (last, count) = (Some(at), count + 1);
            }
            now = next;
        }
        assert!(longest <= MIN_INTERVAL && MIN_INTERVAL <= RELOAD / 2, "{longest:?}");
        assert!(count > 60_000, "{count} evaluations");
    }
}
