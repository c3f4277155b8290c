// SPDX-License-Identifier: MIT
//! Which clients are the load: those whose waits do not end `xqos trace record --until-wait`.
//!
//! A client that always has work waits for its turn by design, while the others have theirs. It is part of the load when
//! the server is busy most of the time, and the client is served at least a third as long as the client that is served most.
//! What was two seconds ago counts half, and so on. During the first two seconds nobody can be told from the load.

use std::collections::BTreeMap;
use xqos_core::Time;

const HALF_LIFE_NS: u64 = 2_000_000_000;
/// After so many half-lives nothing is left.
const ALL_GONE: u64 = 64;

/// How long each client, by its key in the model, was served lately.
#[derive(Debug, Default)]
pub struct Load {
    served_ns: BTreeMap<usize, u64>,
    /// The time before `halved`, as `served_ns` counts it.
    elapsed_ns: u64,
    halved: Option<Time>,
}

impl Load {
    /// The clock went on.
    pub fn pass(&mut self, now: Time) {
        let halved = self.halved.get_or_insert(now);
        let passed = now.since(*halved) / HALF_LIFE_NS;
        *halved = Time(halved.0 + passed * HALF_LIFE_NS);
        for _ in 0..passed.min(ALL_GONE) {
            self.elapsed_ns = (self.elapsed_ns + HALF_LIFE_NS) / 2;
            self.served_ns.retain(|_, ns| {
                *ns /= 2;
                *ns > 0
            });
        }
    }

    /// A client was served until now.
    pub fn add(&mut self, key: usize, ns: u64) {
        let served_ns = self.served_ns.entry(key).or_default();
        *served_ns = served_ns.saturating_add(ns);
    }

    /// Whether a client that is there since `connected` is part of the load.
    pub fn has(&self, key: usize, connected: Time, now: Time) -> bool {
        let Some(halved) = self.halved.filter(|_| self.elapsed_ns > 0) else { return true };
        let window_ns = (self.elapsed_ns + now.since(halved)) as f64;
        // A client that has just come has had less time.
        let there_ns = (now.since(connected) as f64).clamp(1.0, window_ns);
        let all_ns = self.served_ns.values().sum::<u64>() as f64;
        let most_ns = self.served_ns.values().max().copied().unwrap_or(0) as f64;
        let own_ns = self.served_ns.get(&key).copied().unwrap_or(0) as f64;
        all_ns / window_ns >= 0.5 && 3.0 * own_ns / there_ns >= most_ns / window_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const BEGAN: Time = Time(5_000 * MS);

    /// Turns of these lengths, one after the other and with these gaps, for some seconds.
    fn after(seconds: u64, turns: &[(usize, u64)], gap_ns: u64) -> (Load, Time) {
        let (mut load, mut now) = (Load::default(), BEGAN);
        while now.since(BEGAN) < seconds * 1000 * MS {
            for &(key, ns) in turns {
                load.pass(now);
                now = Time(now.0 + ns + gap_ns);
                load.pass(now);
                load.add(key, ns);
            }
        }
        (load, now)
    }

    #[test]
    fn clients_that_share_a_busy_server_are_the_load_and_a_bystander_is_not() {
        // Three that always have work, one of them with a lower weight, and one that asks for little.
        let (load, now) = after(7, &[(0, 8 * MS), (1, 8 * MS), (2, 5 * MS), (3, MS / 10)], 0);
        let load = [0, 1, 2, 3, 4].map(|key| load.has(key, BEGAN, now));
        assert_eq!(load, [true, true, true, false, false]);
    }

    #[test]
    fn a_busy_client_that_is_kept_from_its_turn_is_none_of_the_load() {
        let (load, now) = after(3, &[(0, 9 * MS), (1, MS)], 0);
        assert!(load.has(0, BEGAN, now) && !load.has(1, BEGAN, now));
    }

    #[test]
    fn nobody_is_the_load_of_a_server_that_is_mostly_idle() {
        let (load, now) = after(3, &[(0, MS)], 9 * MS);
        assert!(!load.has(0, BEGAN, now));
    }

    #[test]
    fn the_first_two_seconds_tell_nothing_and_the_load_is_forgotten_when_it_ends() {
        let (mut load, now) = after(0, &[], 0);
        load.pass(now);
        assert!(load.has(7, BEGAN, now), "not known yet");
        let (mut load, now) = after(5, &[(0, 5 * MS), (1, 5 * MS)], 0);
        let later = Time(now.0 + 20_000 * MS);
        load.pass(later);
        assert!(!load.has(0, BEGAN, later));
        load.pass(Time(u64::MAX / 2));
    }

    #[test]
    fn a_busy_client_that_has_just_come_is_judged_by_the_time_that_it_had() {
        let (mut load, came) = after(3, &[(0, 5 * MS), (1, 5 * MS)], 0);
        load.add(0, 5 * MS);
        load.add(2, 5 * MS);
        let now = Time(came.0 + 10 * MS);
        assert!(load.has(2, came, now) && !load.has(3, came, now));
    }
}
