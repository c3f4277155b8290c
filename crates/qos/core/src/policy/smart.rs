// SPDX-License-Identifier: MIT
//! `smart` and `smart-strict`: the scheduler of 2000 as its paper describes it (Packard 2000, section 5).
//!
//! - Each client has a base priority (0). The ready client with the highest priority runs; equals take turns (5.1).
//! - A turn is one timer interval of server time. A client that uses up its turn loses one level, down to a minimum. A
//!   client that was not *ready* for some time gains one level, up to the base (5.2). Here "some time" is two
//!   intervals, and the client gains one level for every two intervals. A shorter pause does not end the turn;
//!   otherwise synchronous clients would never lose a level and would keep a busy client from running.
//! - Delivered user input raises a client by one level, up to a maximum above the base (5.3).
//! - A client that was alone for a second gets a longer slice, up to the maximum slice (5.5).
//! - SYNC priorities come first (5.1); the scheduler ensures this for every policy.
//!
//! The released code differs from the paper: it rewards a client for "not having run" although it was ready and had to
//! wait. With three busy clients, all of them then stay at the base, as if they used little time. As in the original,
//! no arrival ends a running slice.
//!
//! Unlike the released code, the paper's rules can starve a client: clients that pause just long enough between long
//! turns stay at the base, and a busy client that has dropped to the minimum never runs. Two rules of `smart` prevent
//! this; `smart-strict` omits them:
//!
//! - A level is worth ten intervals, at most [`MOST_LEVEL_NS`]. A client precedes a client of higher priority once it
//!   has waited this much longer per level between them.
//! - A client that got less than half of an equal share since its previous turn regains the levels for which it waited,
//!   up to the base. This prevents repeated waits for the full 20 levels.

use super::{Allowance, Facts, Policy, PolicyKind, QueueKey, Served};
use crate::words::Words;
use crate::{ClientId, Parameters, Time};
use alloc::vec::Vec;

const BASE: i8 = 0;
/// The range of priorities in the released code.
const MINIMUM: i8 = -20;
const MAXIMUM: i8 = 20;
/// A level is worth ten intervals. This value scales with the interval, so that short intervals do not increase the
/// number of turns that a lost level costs.
const LEVEL_INTERVALS: u64 = 10;
/// A client 20 levels below the base therefore waits for at most a second of other clients' server time.
const MOST_LEVEL_NS: u64 = 50_000_000;
/// "An extended time (one second)", section 5.5.
const ALONE_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Standing {
    priority: i8,
    /// Position among equals: smaller if the last turn ended earlier.
    turn: u64,
    /// The service clock at the end of the last turn.
    turn_over_ns: u64,
    used_ns: u64,
}

#[derive(Debug)]
pub(crate) struct Smart {
    is_strict: bool,
    standings: Vec<Standing>,
    turns: u64,
    /// Server time that all clients used under this policy.
    service_clock_ns: u64,
    timer_interval_ns: u64,
    maximum_slice_ns: u64,
    slice_ns: u64,
    last: Option<ClientId>,
    alone_since: Time,
    /// Ready clients at the last choice.
    ready: u64,
}

impl Smart {
    pub(crate) fn new(kind: PolicyKind, parameters: &Parameters) -> Self {
        Smart {
            is_strict: kind == PolicyKind::SmartStrict,
            standings: Vec::new(),
            turns: 0,
            service_clock_ns: 0,
            timer_interval_ns: parameters.timer_interval_ns,
            maximum_slice_ns: parameters.maximum_slice_ns,
            slice_ns: parameters.timer_interval_ns,
            last: None,
            alone_since: Time(0),
            ready: 1,
        }
    }

    fn standing(&mut self, client: ClientId) -> &mut Standing {
        &mut self.standings[client.slot()]
    }

    fn level_ns(&self) -> u64 {
        self.timer_interval_ns.saturating_mul(LEVEL_INTERVALS).min(MOST_LEVEL_NS)
    }

    /// Levels that a starved client regains at the end of its turn.
    fn regained(&self, &Standing { used_ns, turn_over_ns, .. }: &Standing) -> i8 {
        let since_ns = self.service_clock_ns.saturating_sub(turn_over_ns);
        let is_starved = !self.is_strict && since_ns > (2 * self.ready).saturating_mul(used_ns);
        let levels = if is_starved { since_ns / self.level_ns().max(1) } else { 0 };
        i8::try_from(levels).unwrap_or(i8::MAX)
    }

    fn end_turn(&mut self, client: ClientId) {
        self.turns += 1;
        let (turn, turn_over_ns) = (self.turns, self.service_clock_ns);
        let standing = self.standing(client);
        (standing.turn, standing.turn_over_ns, standing.used_ns) = (turn, turn_over_ns, 0);
    }
}

impl Policy for Smart {
    fn kind(&self) -> PolicyKind {
        if self.is_strict { PolicyKind::SmartStrict } else { PolicyKind::Smart }
    }

    fn join(&mut self, client: ClientId, _facts: &Facts) {
        if self.standings.len() <= client.slot() {
            self.standings.resize(client.slot() + 1, Standing::default());
        }
        *self.standing(client) = Standing { priority: BASE, ..Standing::default() };
        if self.last == Some(client) {
            self.last = None;
        }
        self.end_turn(client);
    }

    fn ready(&mut self, client: ClientId, idle_ns: u64) {
        let rests = idle_ns / (2 * self.timer_interval_ns).max(1);
        if rests == 0 {
            return;
        }
        let standing = self.standing(client);
        if standing.priority < BASE {
            let praise = i8::try_from(rests).unwrap_or(i8::MAX);
            standing.priority = standing.priority.saturating_add(praise).min(BASE);
        }
        self.end_turn(client);
    }

    fn noticed(&mut self, client: ClientId, is_input: bool) {
        let standing = self.standing(client);
        if is_input && standing.priority < MAXIMUM {
            standing.priority += 1;
        }
    }

    fn key(&self, client: ClientId) -> QueueKey {
        let standing = &self.standings[client.slot()];
        let levels_down = (MAXIMUM - standing.priority) as u64;
        if self.is_strict {
            return QueueKey(levels_down, standing.turn);
        }
        QueueKey(standing.turn_over_ns.saturating_add(levels_down * self.level_ns()), standing.turn)
    }

    fn picked(&mut self, client: ClientId, ready: usize, now: Time) -> Allowance {
        self.ready = ready as u64;
        if self.last != Some(client) || ready > 1 {
            self.last = Some(client);
            self.alone_since = now;
            self.slice_ns = self.timer_interval_ns;
        } else if now.since(self.alone_since) > ALONE_NS && self.slice_ns < self.maximum_slice_ns {
            self.slice_ns = (self.slice_ns + self.timer_interval_ns).min(self.maximum_slice_ns);
        }
        let used_ns = self.standing(client).used_ns;
        Allowance { slice_ns: self.slice_ns.saturating_sub(used_ns).max(1), ..Allowance::default() }
    }

    fn served(&mut self, client: ClientId, served: &Served) {
        let slice_ns = self.slice_ns;
        self.service_clock_ns = self.service_clock_ns.saturating_add(served.length_ns);
        let standing = self.standing(client);
        standing.used_ns = standing.used_ns.saturating_add(served.length_ns);
        if standing.used_ns >= slice_ns {
            let before = *standing;
            let raised = before.priority.saturating_add(self.regained(&before)).min(BASE);
            self.standing(client).priority = (raised.max(before.priority) - 1).max(MINIMUM);
            self.end_turn(client);
        }
    }

    fn carry(&mut self, clients: &[ClientId], words: &mut Words<'_>) -> Option<()> {
        (self.turns, self.service_clock_ns) = (words.ns(self.turns)?, words.ns(self.service_clock_ns)?);
        (self.slice_ns, self.alone_since) = (words.ns(self.slice_ns)?, words.time(self.alone_since)?);
        self.ready = u32::try_from(words.next(self.ready)?).ok()?.into();
        self.last = words.client(self.last)?.filter(|client| !words.is_reading() || clients.contains(client));
        for &client in clients {
            let Standing { priority, turn, turn_over_ns, used_ns } = *self.standing(client);
            let priority = i8::try_from(words.signed(priority.into())?).ok();
            let priority = priority.filter(|at| (MINIMUM..=MAXIMUM).contains(at))?;
            let (turn, turn_over_ns, used_ns) = (words.ns(turn)?, words.ns(turn_over_ns)?, words.ns(used_ns)?);
            *self.standing(client) = Standing { priority, turn, turn_over_ns, used_ns };
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: u64 = 5_000_000;
    const FACTS: Facts = Facts::new(4);

    fn two_clients() -> (Smart, ClientId, ClientId) {
        let mut smart = Smart::new(PolicyKind::Smart, &Parameters::default());
        let (a, b) = (ClientId(1), ClientId(2));
        smart.join(a, &FACTS);
        smart.join(b, &FACTS);
        (smart, a, b)
    }

    fn use_a_slice(smart: &mut Smart, client: ClientId) {
        smart.picked(client, 2, Time(0));
        smart.served(client, &Served { length_ns: INTERVAL, requests: 9, bytes: 9 });
    }

    #[test]
    fn whole_slices_lower_the_priority_to_the_minimum_and_rest_restores_it() {
        let (mut smart, a, b) = two_clients();
        for _ in 0..50 {
            use_a_slice(&mut smart, a);
        }
        assert_eq!(smart.standing(a).priority, MINIMUM);
        assert!(smart.key(b) < smart.key(a));
        smart.ready(a, 2 * INTERVAL * 7);
        assert_eq!(smart.standing(a).priority, MINIMUM + 7);
        smart.ready(a, u64::MAX);
        assert_eq!(smart.standing(a).priority, BASE, "rest never lifts above the base");
    }

    #[test]
    fn a_ready_client_gains_nothing_by_waiting() {
        let (mut smart, a, b) = two_clients();
        use_a_slice(&mut smart, a);
        for _ in 0..9 {
            use_a_slice(&mut smart, b);
        }
        assert_eq!(smart.standing(a).priority, -1, "waiting is not resting");
    }

    #[test]
    fn a_level_is_worth_no_more_than_its_wait() {
        let (mut smart, a, b) = two_clients();
        for _ in 0..4 {
            use_a_slice(&mut smart, a);
        }
        let mut turns = 0;
        while smart.key(b) < smart.key(a) {
            use_a_slice(&mut smart, b);
            smart.ready(b, 2 * INTERVAL);
            turns += 1;
        }
        assert_eq!(smart.standing(b).priority, BASE);
        assert_eq!(turns, 4 * MOST_LEVEL_NS / INTERVAL, "the one at -4 waits for four levels");
    }

    /// Clients that pause for two intervals after each turn stay at the base. A frame takes 1.2 turns, so within each
    /// frame the animation drops a level below them. The rest of the frame must not wait until the next frames are due.
    #[test]
    fn an_animation_keeps_up_with_clients_that_pause_between_turns() {
        for interval_us in [250, 500, 1_000, 2_000, 5_000] {
            let interval = interval_us * 1_000;
            let parameters = Parameters { timer_interval_ns: interval, ..Parameters::default() };
            let mut smart = Smart::new(PolicyKind::Smart, &parameters);
            let (animation, others) = (ClientId(1), (2..14).map(ClientId).collect::<Vec<_>>());
            smart.join(animation, &FACTS);
            others.iter().for_each(|&one| smart.join(one, &FACTS));
            // A frame of 1.2 intervals every 30 intervals is 4 % of the server, half of an equal share.
            let (mut now, mut next_frame, mut left, mut rested, mut longest) = (0, 0, 0, 0, 0);
            while now < 2_000 * interval {
                while next_frame <= now {
                    if left == 0 {
                        smart.ready(animation, now - rested);
                    }
                    left += interval + interval / 5;
                    next_frame += 30 * interval;
                }
                longest = longest.max(left);
                let ready = others.iter().copied().chain((left > 0).then_some(animation));
                let client = ready.min_by_key(|&one| smart.key(one)).unwrap();
                let allowance = smart.picked(client, others.len() + 1, Time(now)).slice_ns;
                let length_ns = if client == animation { allowance.min(left) } else { allowance };
                now += length_ns;
                smart.served(client, &Served { length_ns, requests: 1, bytes: 1 });
                if client == animation {
                    (left, rested) = (left - length_ns, now);
                } else {
                    smart.ready(client, 2 * interval);
                }
            }
            assert!(
                longest <= 3 * interval,
                "{interval_us} us: {} frames queued up",
                longest / (interval + interval / 5)
            );
        }
    }

    #[test]
    fn input_raises_the_priority_above_the_base_and_equals_take_turns() {
        let (mut smart, a, b) = two_clients();
        assert!(smart.key(a) < smart.key(b));
        smart.noticed(b, true);
        assert!(smart.key(b) < smart.key(a));
        smart.noticed(a, true);
        assert!(smart.key(a) < smart.key(b));
        smart.noticed(b, false);
        assert_eq!(smart.standing(b).priority, 1, "an Expose is not user input");
    }

    #[test]
    fn a_client_alone_for_a_second_gets_the_maximum_slice() {
        let (mut smart, a, _) = two_clients();
        assert_eq!(smart.picked(a, 1, Time(0)).slice_ns, INTERVAL);
        smart.picked(a, 1, Time(ALONE_NS + 1));
        assert_eq!(smart.picked(a, 1, Time(ALONE_NS + 2)).slice_ns, 3 * INTERVAL);
        assert_eq!(smart.picked(a, 2, Time(ALONE_NS + 3)).slice_ns, INTERVAL);
    }
}
