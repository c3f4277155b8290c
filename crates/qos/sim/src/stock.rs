// SPDX-License-Identifier: MIT
//! A model of the scheduler of today's X servers, for policy `stock`.
//!
//! Modelled on the behaviour of the dispatcher in server 21.1, with a test for each row.
//!
//! | part | rule |
//! |---|---|
//! | clock | counts ticks of 5 ms; it stops while no client is ready and restarts with a whole tick |
//! | choice | the highest SYNC priority, then the highest dynamic priority, then the next in turn |
//! | turn | client index minus the index last served at that dynamic priority, modulo 256: the largest wins |
//! | slice | ends at the tick that completes its length; it can start within a tick, so it may be shorter |
//! | penalty | -1 for a slice that was used up, down to -20 |
//! | bonus | +1 at each choice for a ready client that has not *run* for two slices, up to 0 |
//! | input | +1 for each delivered key, button or motion event, up to 20 |
//! | alone | a client that was the only ready one for a second gets 5 ms more per slice, up to 15 ms |
//!
//! Because of the bonus at each choice, three or more busy clients stay near priority 0: while one runs, the others are
//! ready and gain their bonus.

use std::collections::BTreeMap;
use xqos_core::{ClientId, Time};

const INTERVAL_NS: u64 = 5_000_000;
const MAX_SLICE_TICKS: u64 = 3;
const ALONE_TICKS: u64 = 200;
const LOWEST: i8 = -20;
const HIGHEST: i8 = 20;
/// The number of dynamic priorities, from -20 to 20.
const LEVELS: usize = 41;

#[derive(Clone, Copy, Debug, Default)]
struct ClientState {
    sync_priority: i32,
    dynamic: i8,
    stopped: u64,
    /// Key in the map of ready clients.
    ready: Option<u64>,
}

/// All clients of a server with their priorities.
#[derive(Debug)]
pub(crate) struct Stock {
    clients: Vec<ClientState>,
    /// In the order in which they became ready.
    ready: BTreeMap<u64, ClientId>,
    arrivals: u64,
    served_last: [u16; LEVELS],
    last: Option<ClientId>,
    /// The tick since which `last` has been the last client to run.
    last_since: u64,
    slice_ticks: u64,
    clock: TickClock,
}

impl Stock {
    pub(crate) fn new() -> Stock {
        Stock {
            clients: Vec::new(),
            ready: BTreeMap::new(),
            arrivals: 0,
            served_last: [0; LEVELS],
            last: None,
            last_since: 0,
            slice_ticks: 1,
            clock: TickClock::default(),
        }
    }

    pub(crate) fn connected(&mut self, client: ClientId, sync_priority: i32) {
        let slot = usize::from(client.0);
        if self.clients.len() <= slot {
            self.clients.resize(slot + 1, ClientState::default());
        }
        self.clients[slot] = ClientState { sync_priority, ..ClientState::default() };
    }

    pub(crate) fn arrived(&mut self, client: ClientId) {
        let key = self.arrivals;
        let state = self.state(client);
        if state.ready.is_none() {
            state.ready = Some(key);
            self.ready.insert(key, client);
            self.arrivals += 1;
        }
    }

    /// A key, button or motion event was delivered to the client.
    pub(crate) fn input(&mut self, client: ClientId) {
        let state = self.state(client);
        state.dynamic = (state.dynamic + 1).min(HIGHEST);
    }

    /// No client is ready: the clock stops until a client runs.
    pub(crate) fn sleeps(&mut self, now: Time) {
        self.clock.stop(now);
    }

    pub(crate) fn choose(&mut self, now: Time, may_run: impl Fn(ClientId) -> bool) -> Option<ClientId> {
        let tick = self.clock.start(now);
        let rested = 2 * self.slice_ticks;
        let (mut best, mut ready) = (None, 0);
        for &client in self.ready.values().filter(|&&client| may_run(client)) {
            ready += 1;
            let state = &mut self.clients[usize::from(client.0)];
            if tick - state.stopped >= rested && state.dynamic < 0 {
                state.dynamic += 1;
            }
            let turn = client.0.wrapping_sub(self.served_last[level(state.dynamic)]) & 0xff;
            let rank = (state.sync_priority, state.dynamic, turn);
            // Among equals, whose indices are 256 apart, the first one wins.
            if best.is_none_or(|(best, _)| rank > best) {
                best = Some((rank, client));
            }
        }
        let ((_, dynamic, _), client) = best?;
        self.served_last[level(dynamic)] = client.0;
        self.runs(client, tick, ready == 1);
        Some(client)
    }

    /// The time at which the server itself would end a slice that starts now.
    pub(crate) fn slice_end(&mut self, now: Time) -> Time {
        let tick = self.clock.start(now);
        self.clock.at(tick + self.slice_ticks)
    }

    /// The client's slice, which started at `start`, is over.
    pub(crate) fn served(&mut self, client: ClientId, start: Time, end: Time, still_ready: bool) {
        let (from, tick) = (self.clock.tick(start), self.clock.tick(end));
        let used_up = tick - from >= self.slice_ticks;
        let state = self.state(client);
        state.stopped = tick;
        if used_up {
            state.dynamic = (state.dynamic - 1).max(LOWEST);
        }
        if !still_ready {
            let key = state.ready.take();
            key.and_then(|key| self.ready.remove(&key));
        }
    }

    fn state(&mut self, client: ClientId) -> &mut ClientState {
        &mut self.clients[usize::from(client.0)]
    }

    fn runs(&mut self, client: ClientId, tick: u64, alone: bool) {
        if self.last != Some(client) {
            (self.last, self.last_since) = (Some(client), tick);
        }
        if !alone {
            self.slice_ticks = 1;
        } else if tick - self.last_since > ALONE_TICKS && self.slice_ticks < MAX_SLICE_TICKS {
            self.slice_ticks += 1;
        }
    }
}

fn level(dynamic: i8) -> usize {
    (dynamic - LOWEST) as usize
}

/// Counts ticks: those before the last start, and the time since then.
#[derive(Debug, Default)]
struct TickClock {
    before: u64,
    since: Option<Time>,
}

impl TickClock {
    fn start(&mut self, now: Time) -> u64 {
        self.since.get_or_insert(now);
        self.tick(now)
    }

    /// Discards the incomplete tick.
    fn stop(&mut self, now: Time) {
        self.before = self.tick(now);
        self.since = None;
    }

    fn tick(&self, now: Time) -> u64 {
        self.before + self.since.map_or(0, |since| now.since(since) / INTERVAL_NS)
    }

    fn at(&self, tick: u64) -> Time {
        let since = self.since.unwrap_or_default();
        since.after((tick - self.before).saturating_mul(INTERVAL_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ClientId = ClientId(1);
    const B: ClientId = ClientId(2);

    fn at(ms: u64) -> Time {
        Time(1_000_000_000 + ms * 1_000_000)
    }

    fn with(clients: u16) -> Stock {
        let mut stock = Stock::new();
        for client in (1..=clients).map(ClientId) {
            stock.connected(client, 0);
            stock.arrived(client);
        }
        stock
    }

    /// Serves whole slices one after the other and returns the clients that ran.
    fn slices(stock: &mut Stock, count: u64) -> Vec<u16> {
        let mut now = at(0);
        let slice = |_| {
            let client = stock.choose(now, |_| true).unwrap();
            let end = stock.slice_end(now);
            stock.served(client, now, end, true);
            now = end;
            client.0
        };
        (0..count).map(slice).collect()
    }

    #[test]
    fn equal_clients_take_turns() {
        let mut ran = slices(&mut with(3), 3);
        ran.sort_unstable();
        assert_eq!(ran, [1, 2, 3]);
    }

    #[test]
    fn two_busy_clients_lose_priority_and_three_do_not() {
        let mut two = with(2);
        slices(&mut two, 200);
        assert!(two.clients[1].dynamic <= -19 && two.clients[2].dynamic <= -19, "{:?}", two.clients);
        let mut four = with(4);
        slices(&mut four, 200);
        assert!(four.clients[1..].iter().all(|state| state.dynamic >= -1), "{:?}", four.clients);
    }

    #[test]
    fn a_slice_ends_at_a_tick() {
        let mut stock = with(2);
        assert_eq!(stock.choose(at(0), |_| true), Some(B));
        stock.served(B, at(0), at(3), false);
        assert_eq!(stock.choose(at(3), |_| true), Some(A));
        assert_eq!(stock.slice_end(at(3)), at(5), "2 ms are left of this tick");
        stock.served(A, at(3), at(4), false);
        stock.sleeps(at(4));
        stock.arrived(A);
        stock.choose(at(7), |_| true);
        assert_eq!(stock.slice_end(at(7)), at(12), "the clock restarted");
    }

    #[test]
    fn sync_priority_precedes_input_and_input_precedes_turns() {
        let mut stock = with(3);
        stock.input(A);
        assert_eq!(stock.choose(at(0), |_| true), Some(A));
        stock.clients[2].sync_priority = 1;
        assert_eq!(stock.choose(at(5), |_| true), Some(B));
        assert_eq!(stock.choose(at(10), |client| client != B), Some(A), "a client that is held back is not chosen");
    }

    #[test]
    fn a_client_alone_for_a_second_gets_a_triple_slice() {
        let mut stock = with(1);
        slices(&mut stock, 200);
        assert_eq!(stock.slice_ticks, 1);
        stock.choose(at(1005), |_| true);
        stock.choose(at(1010), |_| true);
        assert_eq!(stock.slice_end(at(1015)), at(1030));
        stock.connected(B, 0);
        stock.arrived(B);
        stock.choose(at(1030), |_| true);
        assert_eq!(stock.slice_ticks, 1);
    }
}
