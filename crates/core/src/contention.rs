// SPDX-License-Identifier: MIT
//! Contention: whether a server is so busy that somebody would be served late.
//!
//! Most servers are idle most of the time. There the server's own order is as good as any, and each slice that is ended early,
//! each wait for a compositor and each short slice of the kernel only costs. So `fair` decides under contention alone; below
//! it the choice is the server's own, and only reservations, caps and pacing are kept.
//!
//! The rule: contention begins when the server has been busy for [`BEGINS_AFTER_NS`] without a rest, and sooner or later
//! wherever it is busy for more than [`BUSY_PERCENT`] % of the time. It ends when rests have made up for that. The measure is a level that
//! rises while the server is busy, falls while it rests, and stays still at that share; so bursts that are as
//! long as a frame begin nothing, and two loads that differ by little do not make it flap.

use crate::Time;

/// A server that is busy for a larger part of the time has contention.
pub const BUSY_PERCENT: u64 = 85;
/// So long a busy server without contention may be so at a stretch: longer than a frame, short for a person.
pub const BEGINS_AFTER_NS: u64 = 20_000_000;
/// The level at which contention begins.
const FULL: u64 = BEGINS_AFTER_NS * (100 - BUSY_PERCENT);

/// The measure. Whoever drives a scheduler has one, and tells its changes as [`Fact::Contention`](crate::Fact::Contention).
#[derive(Clone, Copy, Debug)]
pub struct Contention {
    /// Hundredths of a nanosecond.
    level: u64,
    is_on: bool,
    /// The end of the last slice, or of a wait.
    since: Time,
}

impl Contention {
    /// Of a server that has rested until now.
    pub fn new(now: Time) -> Contention {
        Contention { level: 0, is_on: false, since: now }
    }

    /// Whether there is contention.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Clients were served in this time. Whether contention begins or ends with it.
    pub fn served(&mut self, start: Time, end: Time) -> Option<bool> {
        let rest_ns = start.since(self.since);
        self.level = self.level.saturating_sub(rest_ns.saturating_mul(BUSY_PERCENT));
        let was_on = self.is_on && self.level > 0;
        let busy_ns = end.since(start.max(self.since));
        self.level = self.level.saturating_add(busy_ns.saturating_mul(100 - BUSY_PERCENT)).min(FULL);
        self.since = self.since.max(end);
        let is_on = was_on || self.level == FULL;
        let has_changed = is_on != core::mem::replace(&mut self.is_on, is_on);
        has_changed.then_some(is_on)
    }

    /// The server waited until then for one client while others were ready: that is no rest.
    pub fn waited(&mut self, until: Time) {
        self.since = self.since.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const MS: u64 = 1_000_000;

    /// Busy for the first part of each period. When contention began and ended, milliseconds.
    fn changes(contention: &mut Contention, busy_us: u64, period_us: u64, until_ms: u64) -> Vec<(u64, bool)> {
        let begin = contention.since.0 / 1000;
        let bursts = (begin..until_ms * 1000).step_by(period_us as usize);
        let told = bursts.filter_map(|at| {
            let (start, end) = (Time(at * 1000), Time((at + busy_us) * 1000));
            contention.served(start, end).map(|is_on| (end.0 / MS, is_on))
        });
        told.collect()
    }

    #[test]
    fn it_begins_after_twenty_busy_milliseconds_and_ends_with_a_rest_of_a_few() {
        let mut contention = Contention::new(Time(0));
        assert_eq!(changes(&mut contention, 1000, 1000, 500), [(20, true)]);
        assert_eq!(contention.served(Time(503 * MS), Time(504 * MS)), None, "it rested for 3 ms");
        assert_eq!(contention.served(Time(508 * MS), Time(509 * MS)), Some(false));
    }

    #[test]
    fn frames_and_loads_below_the_share_are_none_whatever_the_length_of_their_bursts() {
        for (busy_us, period_us) in [(15_000, 18_000), (10_000, 16_667), (800, 1000), (40, 50), (15_000, 100_000)] {
            let told = changes(&mut Contention::new(Time(0)), busy_us, period_us, 5000);
            assert_eq!(told, [], "{busy_us} us of {period_us}");
        }
    }

    #[test]
    fn a_load_above_the_share_has_it_for_good_and_sooner_the_larger_it_is() {
        let began = |busy_us| changes(&mut Contention::new(Time(0)), busy_us, 1000, 5000);
        assert_eq!((began(900), began(950)), (vec![(58, true)], vec![(29, true)]));
    }

    #[test]
    fn a_wait_for_one_client_is_no_rest() {
        let mut contention = Contention::new(Time(0));
        for ms in 0..200 {
            contention.served(Time(ms * MS), Time(ms * MS + MS / 2));
            contention.waited(Time((ms + 1) * MS));
        }
        assert!(contention.is_on());
        assert_eq!(contention.served(Time::NEVER, Time::NEVER), Some(false), "no overflow");
    }
}
