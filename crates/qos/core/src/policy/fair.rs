// SPDX-License-Identifier: MIT
//! `fair`, the default: virtual time on two levels (after start-time fair queueing, with EEVDF's treatment of
//! sleepers).
//!
//! Each group of clients pays for the server time of its clients, divided by its weight. The group that has paid least
//! runs, for at most one slice. The payments of two busy groups therefore never differ by more than a slice and a
//! request, regardless of what their requests cost; counting requests or turns cannot give this bound. Within a group
//! the same rule applies to what each client has paid (hierarchical start-time fair queueing: Goyal, Guo and Vin, OSDI
//! 1996). A client in no group is a group of one. The rules below apply to groups and clients alike.
//!
//! - **Contention** ([`crate::Contention`]): the policy decides only under contention. Otherwise the server chooses,
//!   but clients still pay for their server time.
//! - **Return from idleness.** An idle client re-enters at most [`CREDIT_NS`] behind the virtual clock, which is the
//!   payment of the last picked client. It is served soon but cannot save up time by sleeping. If two clients return
//!   with the same payment, the one that was idle longer goes first, because a client that was idle only while it
//!   waited for a reply uses more of the server. (Such ties are common if requests take longer than the credit.)
//! - **Arrivals.** An arrival that has paid at least [`MARGIN_NS`] less than the running client ends the slice at the
//!   next request boundary. The margin keeps two busy synchronous clients from preempting each other all the time. An
//!   arrival from the running client's own group ends the slice after the margin; the payments of the two clients then
//!   decide which of them runs.
//! - **Input and Expose** improve latency, never bandwidth: a client that receives one moves half a slice ahead until
//!   it is picked; its slice is then half as long. It still pays for the time that it uses.
//! - **SYNC priorities** are strict, so each has its own virtual clock. With a common clock, clients of low priority
//!   would wait for the time used at higher priorities. For the same reason a group has one account per priority.

use super::accounts::{Account, Accounts};
use super::{Allowance, Defence, Facts, Policy, PolicyKind, QueueKey, Served};
use crate::words::Words;
use crate::{ClientId, Parameters, Time};
use alloc::vec::Vec;

/// Enough for a burst of drawing after idleness; less than a slice, so that other clients notice no delay.
pub(crate) const CREDIT_NS: i64 = 3_000_000;
/// Well above the cost of a decision (about 2 us), well below what a user notices.
const MARGIN_NS: i64 = 1_000_000;

/// The virtual clock of the clients of one SYNC priority.
#[derive(Clone, Copy, Debug, Default)]
struct VirtualClock {
    sync_priority: i32,
    now: i64,
}

#[derive(Debug)]
pub(crate) struct Fair {
    accounts: Accounts,
    /// The clocks, sorted by SYNC priority; usually there is one.
    clocks: Vec<VirtualClock>,
    slice_ns: u64,
}

impl Fair {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Fair { accounts: Accounts::default(), clocks: Vec::new(), slice_ns: parameters.slice_ns }
    }

    fn clock(&self, sync_priority: i32) -> i64 {
        match self.clocks.binary_search_by_key(&sync_priority, |clock| clock.sync_priority) {
            Ok(at) => self.clocks[at].now,
            Err(_) => 0,
        }
    }

    /// Moves a client that was idle, and its group, to at most the credit behind the clocks.
    fn re_enter(&mut self, client: ClientId) {
        let clock = self.clock(self.accounts.group(client).sync_priority);
        let Some(group) = self.accounts.group_mut(client) else { return };
        group.paid = group.paid.max(clock - CREDIT_NS);
        let least = group.clock - CREDIT_NS;
        if let Some(account) = self.accounts.account_mut(client) {
            account.paid = account.paid.max(least);
        }
    }

    /// Advances the clocks to what the client and its group have paid.
    fn advance_to(&mut self, client: ClientId) {
        let paid = self.accounts.account(client).paid;
        if let Some(group) = self.accounts.group_mut(client) {
            group.clock = group.clock.max(paid);
        }
        let group = self.accounts.group(client);
        if let Ok(at) = self.clocks.binary_search_by_key(&group.sync_priority, |clock| clock.sync_priority) {
            self.clocks[at].now = self.clocks[at].now.max(group.paid);
        }
    }

    /// Adds the clock of a SYNC priority and drops clocks that no client uses.
    fn use_clock(&mut self, sync_priority: i32) {
        let accounts = &self.accounts;
        self.clocks
            .retain(|clock| clock.sync_priority == sync_priority || accounts.has_sync_priority(clock.sync_priority));
        if let Err(at) = self.clocks.binary_search_by_key(&sync_priority, |clock| clock.sync_priority) {
            self.clocks.insert(at, VirtualClock { sync_priority, now: 0 });
        }
    }

    /// Half a slice for a client that has received input or an Expose, otherwise 0.
    fn head_start_ns(&self, account: &Account) -> u64 {
        if account.noticed { self.slice_ns / 2 } else { 0 }
    }

    /// The position of a client's group if it has paid `paid`, including the client's head start.
    fn group_standing(&self, client: ClientId, paid: i64) -> i64 {
        let head_start_ns = self.head_start_ns(&self.accounts.account(client));
        paid.saturating_sub(price(head_start_ns, self.accounts.group(client).weight))
    }

    /// Maps the signed order to an unsigned key. Among equals, the client that was idle longer comes first.
    fn ordered(standing: i64, account: &Account, client: ClientId) -> QueueKey {
        QueueKey(standing as u64 ^ (1 << 63), (u64::from(u32::MAX - account.rested_us) << 32) | u64::from(client.0))
    }
}

impl Policy for Fair {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Fair
    }

    fn favours_desktop(&self) -> bool {
        true
    }

    fn needs_contention(&self) -> bool {
        true
    }

    fn join(&mut self, client: ClientId, facts: &Facts) {
        self.accounts.leave(client);
        self.use_clock(facts.sync_priority);
        self.accounts.enter(client, facts, self.clock(facts.sync_priority));
    }

    fn left(&mut self, client: ClientId) {
        self.accounts.leave(client);
    }

    fn changed(&mut self, client: ClientId, facts: &Facts) {
        let group = self.accounts.group(client);
        if group.is_for(facts) {
            self.accounts.set_weights(client, facts);
            return;
        }
        let lag = group.paid.saturating_sub(self.clock(group.sync_priority));
        let account = self.accounts.leave(client);
        self.use_clock(facts.sync_priority);
        let paid = self.clock(facts.sync_priority).saturating_add(lag.max(-CREDIT_NS));
        self.accounts.enter(client, facts, paid);
        if let Some(entered) = self.accounts.account_mut(client) {
            (entered.noticed, entered.rested_us) = (account.noticed, account.rested_us);
        }
    }

    fn ready(&mut self, client: ClientId, idle_ns: u64) {
        self.re_enter(client);
        if let Some(account) = self.accounts.account_mut(client) {
            account.rested_us = u32::try_from(idle_ns / 1000).unwrap_or(u32::MAX);
        }
    }

    fn noticed(&mut self, client: ClientId, _is_input: bool) {
        if let Some(account) = self.accounts.account_mut(client) {
            account.noticed = true;
        }
    }

    fn has_head_start(&self, client: ClientId) -> bool {
        self.accounts.account(client).noticed
    }

    fn key(&self, client: ClientId) -> QueueKey {
        let account = self.accounts.account(client);
        let standing = account.paid.saturating_sub(price(self.head_start_ns(&account), account.weight));
        Self::ordered(standing, &account, client)
    }

    fn group(&self, client: ClientId) -> usize {
        self.accounts.group_number(client)
    }

    fn members(&self, client: ClientId) -> Option<usize> {
        Some(self.accounts.group(client).members)
    }

    fn group_key(&self, first: ClientId) -> QueueKey {
        let standing = self.group_standing(first, self.accounts.group(first).paid);
        Self::ordered(standing, &self.accounts.account(first), first)
    }

    fn picked(&mut self, client: ClientId, _ready: usize, _now: Time) -> Allowance {
        let account = self.accounts.account(client);
        if let Some(open) = self.accounts.account_mut(client) {
            open.noticed = false;
        }
        self.advance_to(client);
        Allowance { slice_ns: self.slice_ns - self.head_start_ns(&account), ..Allowance::default() }
    }

    fn served(&mut self, client: ClientId, served: &Served) {
        if let Some(group) = self.accounts.group_mut(client) {
            group.paid = group.paid.saturating_add(price(served.length_ns, group.weight));
        }
        if let Some(account) = self.accounts.account_mut(client) {
            account.paid = account.paid.saturating_add(price(served.length_ns, account.weight));
        }
    }

    fn served_freely(&mut self, client: ClientId, ns: u64) {
        self.re_enter(client);
        self.served(client, &Served { length_ns: ns, requests: 0, bytes: 0 });
        self.advance_to(client);
    }

    fn challenge(&self, client: ClientId) -> Option<i64> {
        let group = self.accounts.group(client);
        let paid = group.paid.max(self.clock(group.sync_priority) - CREDIT_NS);
        Some(self.group_standing(client, paid))
    }

    fn defence(&self, client: ClientId) -> Defence {
        let group = self.accounts.group(client);
        Defence { key: group.paid, growth: 10_000 / group.weight.max(1), margin: MARGIN_NS }
    }

    fn carry(&mut self, clients: &[ClientId], words: &mut Words<'_>) -> Option<()> {
        self.clocks = words.list(&self.clocks, ClientId::LIMIT + 1, |clock: VirtualClock, words| {
            Some(VirtualClock { sync_priority: words.i32(clock.sync_priority)?, now: words.signed(clock.now)? })
        })?;
        self.clocks.sort_by_key(|clock| clock.sync_priority);
        for &client in clients {
            let group = self.accounts.group_mut(client)?;
            group.paid = words.signed(group.paid)?;
            let account = self.accounts.account_mut(client)?;
            (account.noticed, account.rested_us) = (words.flag(account.noticed)?, words.u32(account.rested_us)?);
        }
        Some(())
    }

    fn carry_groups(&mut self, clients: &[ClientId], words: &mut Words<'_>) -> Option<()> {
        for &client in clients {
            let group = self.accounts.group_mut(client)?;
            (group.paid, group.clock) = (words.signed(group.paid)?, words.signed(group.clock)?);
            let account = self.accounts.account_mut(client)?;
            account.paid = words.signed(account.paid)?;
        }
        Some(())
    }
}

/// The price of server time for a client of this weight.
pub(crate) fn price(ns: u64, weight: u32) -> i64 {
    i64::try_from(u128::from(ns) * 100 / u128::from(weight.max(1))).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(weight: u32, sync_priority: i32) -> Facts {
        Facts { weight, sync_priority, ..Facts::new(4) }
    }

    fn serve(fair: &mut Fair, client: ClientId, ns: u64) {
        fair.picked(client, 2, Time(0));
        fair.served(client, &Served { length_ns: ns, requests: 1, bytes: 4 });
    }

    #[test]
    fn a_sleeper_returns_at_most_the_credit_behind() {
        let mut fair = Fair::new(&Parameters::default());
        let (busy, sleeper) = (ClientId(1), ClientId(2));
        fair.join(busy, &facts(100, 0));
        fair.join(sleeper, &facts(100, 0));
        for _ in 0..100 {
            serve(&mut fair, busy, 5_000_000);
        }
        fair.ready(sleeper, 500_000_000);
        assert_eq!(fair.accounts.group(sleeper).paid, fair.clock(0) - CREDIT_NS);
        assert!(fair.group_key(sleeper) < fair.group_key(busy));
    }

    #[test]
    fn among_equal_returning_clients_the_longer_idle_one_goes_first() {
        let mut fair = Fair::new(&Parameters::default());
        let (asker, busy, sleeper) = (ClientId(1), ClientId(2), ClientId(3));
        for client in [asker, busy, sleeper] {
            fair.join(client, &facts(100, 0));
        }
        serve(&mut fair, busy, 10_000_000);
        serve(&mut fair, busy, 10_000_000);
        fair.ready(asker, 100_000);
        fair.ready(sleeper, 9_000_000);
        assert_eq!(fair.accounts.group(asker).paid, fair.accounts.group(sleeper).paid);
        assert!(fair.group_key(sleeper) < fair.group_key(asker));
        fair.served(sleeper, &Served { length_ns: 1, requests: 1, bytes: 4 });
        assert!(fair.group_key(asker) < fair.group_key(sleeper), "idle time only decides ties");
    }

    #[test]
    fn weight_divides_the_price() {
        let mut fair = Fair::new(&Parameters::default());
        let (single, double) = (ClientId(1), ClientId(2));
        fair.join(single, &facts(100, 0));
        fair.join(double, &facts(200, 0));
        serve(&mut fair, single, 1000);
        serve(&mut fair, double, 2000);
        assert_eq!(fair.accounts.group(single).paid, fair.accounts.group(double).paid);
    }

    #[test]
    fn input_improves_latency_but_not_bandwidth() {
        let parameters = Parameters::default();
        let mut fair = Fair::new(&parameters);
        let (a, b) = (ClientId(1), ClientId(2));
        fair.join(a, &facts(100, 0));
        fair.join(b, &facts(100, 0));
        fair.served(a, &Served { length_ns: 1000, requests: 1, bytes: 4 });
        assert!(fair.group_key(b) < fair.group_key(a));
        fair.noticed(a, true);
        assert!(fair.group_key(a) < fair.group_key(b));
        assert_eq!(fair.picked(a, 2, Time(0)).slice_ns, parameters.slice_ns / 2);
        assert!(fair.group_key(b) < fair.group_key(a), "the head start is spent");
    }

    #[test]
    fn a_high_sync_priority_does_not_affect_the_clock_of_others() {
        let mut fair = Fair::new(&Parameters::default());
        let (high, low) = (ClientId(1), ClientId(2));
        fair.join(high, &facts(100, 10));
        fair.join(low, &facts(100, 0));
        for _ in 0..1000 {
            serve(&mut fair, high, 5_000_000);
        }
        assert_eq!(fair.clock(0), 0);
        fair.changed(high, &facts(100, 0));
        assert!(fair.accounts.group(high).paid <= fair.clock(0) + 5_000_000, "its past use is forgotten");
        assert_eq!(fair.clocks.len(), 1);
    }
}
