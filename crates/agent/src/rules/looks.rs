// SPDX-License-Identifier: MIT
//! When those who changed are looked at: at once, but at most 20 times a second, so that a client which changes without end costs
//! no more than that.
//!
//! Pure: times are counted from some beginning and given by whoever asks.

use std::collections::BTreeSet;
use std::time::Duration;

/// The shortest time between two looks, and so the longest that a change waits. Half of what a change of rules may take until the
/// server has it.
pub const REST: Duration = Duration::from_millis(50);

/// Whom to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    These(BTreeSet<u32>),
    Everybody,
}

/// Who changed since the last look, and when that was.
#[derive(Debug)]
pub struct Looks {
    changed: Changed,
    last: Option<Duration>,
}

impl Looks {
    /// At the beginning everybody is new.
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

    /// How long until the next look; `None`: nobody has changed.
    pub fn until(&self, now: Duration) -> Option<Duration> {
        match &self.changed {
            Changed::These(clients) if clients.is_empty() => None,
            _ => Some(self.last.map_or(Duration::ZERO, |last| (last + REST).saturating_sub(now))),
        }
    }

    /// It is looked now: at whom?
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
    /// What a change of rules may take until the server has it.
    const RELOAD: Duration = Duration::from_millis(100);

    #[test]
    fn who_changes_on_a_quiet_display_is_looked_at_at_once() {
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

    /// An hour in which clients change, and rules, at any times.
    #[test]
    fn rules_that_change_wait_for_half_of_what_they_may_take_at_most() {
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
            // As the daemon sleeps: until the next look, or until something happens.
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
