// SPDX-License-Identifier: MIT
//! Decides when changed clients are evaluated: immediately, but at most 20 times a second, which bounds the cost of a
//! client that changes all the time.
//!
//! Pure: the caller passes the time since some start.

use std::collections::BTreeSet;
use std::time::Duration;

/// Shortest time between two evaluations, and so the longest delay of a change. It is half of the time in which a
/// change of rules must reach the server.
pub const REST: Duration = Duration::from_millis(50);

/// Clients to evaluate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    These(BTreeSet<u32>),
    Everybody,
}

/// Clients that have changed since the last evaluation, and its time.
#[derive(Debug)]
pub struct Looks {
    changed: Changed,
    last: Option<Duration>,
}

impl Looks {
    /// Initially all clients count as changed.
    pub fn everywhere() -> Looks {
        Looks { changed: Changed::Everybody, last: None }
    }

    pub fn note(&mut self, clients: impl IntoIterator<Item = u32>) {
        if let Changed::These(changed) = &mut self.changed {
            changed.extend(clients);
        }
    }

    pub fn note_everybody(&mut self) {
        self.changed = Changed::Everybody;
    }

    /// Time until the next evaluation; `None` if no client has changed.
    pub fn until(&self, now: Duration) -> Option<Duration> {
        match &self.changed {
            Changed::These(clients) if clients.is_empty() => None,
            _ => Some(self.last.map_or(Duration::ZERO, |last| (last + REST).saturating_sub(now))),
        }
    }

    /// Starts an evaluation; returns the clients to evaluate.
    pub fn begin(&mut self, now: Duration) -> Changed {
        self.last = Some(now);
        std::mem::replace(&mut self.changed, Changed::These(BTreeSet::new()))
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
        let mut looks = Looks::everywhere();
        assert_eq!((looks.until(MS), looks.begin(MS)), (Some(Duration::ZERO), Changed::Everybody));
        assert_eq!(looks.until(2 * MS), None, "nobody has changed");
        looks.note([7]);
        assert_eq!(looks.until(2 * MS), Some(49 * MS), "it has just been looked");
        assert_eq!(looks.until(80 * MS), Some(Duration::ZERO));
        looks.note([8]);
        assert_eq!(looks.begin(80 * MS), Changed::These([7, 8].into()));
        looks.note([7]);
        looks.note_everybody();
        looks.note([9]);
        assert_eq!(looks.begin(200 * MS), Changed::Everybody);
    }

    /// Clients and rules change at random times during an hour.
    #[test]
    fn changed_rules_wait_at_most_half_of_the_reload_time() {
        let (mut looks, mut dice) = (Looks::everywhere(), Dice::new(1));
        let (mut now, mut waiting, mut last, mut longest, mut count) = (MS, None, None, Duration::ZERO, 0);
        while now < Duration::from_secs(3600) {
            match dice.below(10) {
                0 => {
                    looks.note_everybody();
                    waiting = waiting.or(Some(now));
                }
                _ => looks.note([dice.below(5) as u32]),
            }
            let next = now + Duration::from_micros(dice.below(30_000));
            // Like the daemon, sleep until the next evaluation or the next event.
            if let Some(at) = looks.until(now).map(|left| now + left).filter(|&at| at < next) {
                assert!(last.is_none_or(|last| at >= last + REST), "two looks within {REST:?}");
                if looks.begin(at) == Changed::Everybody {
                    longest = longest.max(at - waiting.take().unwrap_or(at));
                }
                (last, count) = (Some(at), count + 1);
            }
            now = next;
        }
        assert!(longest <= REST && REST <= RELOAD / 2, "{longest:?}");
        assert!(count > 60_000, "{count} looks");
    }
}
