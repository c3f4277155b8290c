//! `fair`, the default: virtual time (after start-time fair queueing, and EEVDF's treatment of sleepers).
//!
//! Each client pays the server time that it used, divided by its weight. The ready client that has paid least runs, for
//! one slice at most. So the time that two busy clients paid never differs by more than a slice and a request, whatever
//! their requests cost; counting requests or turns cannot give that.
//!
//! - **Coming back.** A client that was idle re-enters at most [`CREDIT_NS`] behind the virtual clock, the payment of
//!   the client that was picked last: it is served soon, and cannot save up time by sleeping. Of two who come back with
//!   the same payment, who rested longer is first: one that only waited for a reply uses more of the server. (Beside
//!   requests longer than the credit such ties are common.)
//! - **Arrivals.** An arrival that has paid less than the running client, by [`MARGIN_NS`], ends the slice at the next
//!   request boundary. The margin keeps two busy clients that wait for replies from cutting each other to pieces.
//! - **Input and Expose** earn latency, never bandwidth: a client to which they are delivered stands half a slice
//!   further ahead until it is picked, and then has only the other half; what it uses it pays.
//! - **SYNC priorities** are strict, so each of them has a virtual clock of its own: a low client is not made to wait
//!   for the time that the high ones used.

use super::{Allowance, Defence, Facts, Key, Policy, PolicyKind, Served};
use crate::words::Words;
use crate::{ClientId, Parameters, Time};
use alloc::vec::Vec;

/// Enough for a burst of drawing after idleness; less than a slice, so that nobody notices who came back.
const CREDIT_NS: i64 = 3_000_000;
/// Well above a decision's cost (about 2 us), well below what a user notices.
const MARGIN_NS: i64 = 1_000_000;

/// `paid` counts nanoseconds / weight, in hundredths of the weight; as signed numbers, since a client may be behind 0.
#[derive(Clone, Copy, Debug)]
struct Account {
    paid: i64,
    weight: u32,
    sync_priority: i32,
    noticed: bool,
    /// Idle for so many microseconds before it came back.
    rested_us: u32,
}

impl Account {
    fn new(paid: i64, weight: u32, sync_priority: i32) -> Account {
        Account { paid, weight, sync_priority, noticed: false, rested_us: 0 }
    }
}

/// The virtual clock of the clients of one SYNC priority.
#[derive(Clone, Copy, Debug)]
struct Clock {
    sync_priority: i32,
    now: i64,
}

#[derive(Debug)]
pub(crate) struct Fair {
    accounts: Vec<Option<Account>>,
    /// Ordered by SYNC priority; nearly always one.
    clocks: Vec<Clock>,
    slice_ns: u64,
}

impl Fair {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Fair { accounts: Vec::new(), clocks: Vec::new(), slice_ns: parameters.slice_ns }
    }

    fn account(&self, client: ClientId) -> Account {
        self.accounts[client.slot()].unwrap_or(Account::new(0, 100, 0))
    }

    fn set_account(&mut self, client: ClientId, account: Account) {
        self.accounts[client.slot()] = Some(account);
    }

    fn clock(&self, sync_priority: i32) -> i64 {
        match self.clocks.binary_search_by_key(&sync_priority, |clock| clock.sync_priority) {
            Ok(at) => self.clocks[at].now,
            Err(_) => 0,
        }
    }

    fn advance(&mut self, sync_priority: i32, to: i64) {
        if let Ok(at) = self.clocks.binary_search_by_key(&sync_priority, |clock| clock.sync_priority) {
            self.clocks[at].now = self.clocks[at].now.max(to);
        }
    }

    /// Adds the clock of a SYNC priority, and drops those that no client uses.
    fn use_clock(&mut self, sync_priority: i32) {
        let accounts = &self.accounts;
        self.clocks.retain(|clock| {
            clock.sync_priority == sync_priority
                || accounts.iter().flatten().any(|account| account.sync_priority == clock.sync_priority)
        });
        if let Err(at) = self.clocks.binary_search_by_key(&sync_priority, |clock| clock.sync_priority) {
            self.clocks.insert(at, Clock { sync_priority, now: 0 });
        }
    }

    /// Half a slice for who was noticed, in server time.
    fn head_start_ns(&self, account: &Account) -> u64 {
        if account.noticed { self.slice_ns / 2 } else { 0 }
    }

    /// How an account stands against others: what it paid, less its head start.
    fn standing(&self, account: &Account) -> i64 {
        account.paid.saturating_sub(price(self.head_start_ns(account), account.weight))
    }
}

impl Policy for Fair {
    fn kind(&self) -> PolicyKind {
        PolicyKind::Fair
    }

    fn favours_desktop(&self) -> bool {
        true
    }

    fn join(&mut self, client: ClientId, facts: &Facts) {
        if self.accounts.len() <= client.slot() {
            self.accounts.resize(client.slot() + 1, None);
        }
        self.accounts[client.slot()] = None;
        self.use_clock(facts.sync_priority);
        let paid = self.clock(facts.sync_priority);
        self.set_account(client, Account::new(paid, facts.weight, facts.sync_priority));
    }

    fn changed(&mut self, client: ClientId, facts: &Facts) {
        let mut account = self.account(client);
        account.weight = facts.weight;
        if account.sync_priority != facts.sync_priority {
            let behind = account.paid.saturating_sub(self.clock(account.sync_priority));
            account.sync_priority = facts.sync_priority;
            self.set_account(client, account);
            self.use_clock(facts.sync_priority);
            account.paid = self.clock(facts.sync_priority).saturating_add(behind.max(-CREDIT_NS));
        }
        self.set_account(client, account);
    }

    fn ready(&mut self, client: ClientId, idle_ns: u64) {
        let mut account = self.account(client);
        account.paid = account.paid.max(self.clock(account.sync_priority) - CREDIT_NS);
        account.rested_us = u32::try_from(idle_ns / 1000).unwrap_or(u32::MAX);
        self.set_account(client, account);
    }

    fn noticed(&mut self, client: ClientId, _is_input: bool) {
        if let Some(account) = self.accounts[client.slot()].as_mut() {
            account.noticed = true;
        }
    }

    fn key(&self, client: ClientId) -> Key {
        let account = self.account(client);
        // Signed order in an unsigned key.
        let standing = self.standing(&account) as u64 ^ (1 << 63);
        Key(standing, (u64::from(u32::MAX - account.rested_us) << 32) | u64::from(client.0))
    }

    fn picked(&mut self, client: ClientId, _alone: bool, _now: Time) -> Allowance {
        let mut account = self.account(client);
        let slice_ns = self.slice_ns - self.head_start_ns(&account);
        account.noticed = false;
        self.advance(account.sync_priority, account.paid);
        self.set_account(client, account);
        Allowance { slice_ns, ..Allowance::default() }
    }

    fn served(&mut self, client: ClientId, served: &Served) {
        let mut account = self.account(client);
        account.paid = account.paid.saturating_add(price(served.length_ns, account.weight));
        self.set_account(client, account);
    }

    fn challenge(&self, client: ClientId) -> Option<i64> {
        let mut account = self.account(client);
        account.paid = account.paid.max(self.clock(account.sync_priority) - CREDIT_NS);
        Some(self.standing(&account))
    }

    fn defence(&self, client: ClientId) -> Defence {
        let account = self.account(client);
        Defence { key: account.paid, growth: 10_000 / account.weight.max(1), margin: MARGIN_NS }
    }

    fn save(&self, clients: &[ClientId], out: &mut Vec<u64>) {
        out.push(self.clocks.len() as u64);
        for clock in &self.clocks {
            out.extend([i64::from(clock.sync_priority) as u64, clock.now as u64]);
        }
        for account in clients.iter().map(|&client| self.account(client)) {
            out.extend([account.paid as u64, u64::from(account.noticed), u64::from(account.rested_us)]);
        }
    }

    fn load(&mut self, clients: &[ClientId], words: &mut Words) -> Option<()> {
        self.clocks.clear();
        for _ in 0..words.below(ClientId::LIMIT as u64 + 1)? {
            self.clocks.push(Clock { sync_priority: words.i32()?, now: words.signed()? });
        }
        self.clocks.sort_by_key(|clock| clock.sync_priority);
        for &client in clients {
            let (paid, noticed, rested_us) = (words.signed()?, words.flag()?, words.u32()?);
            self.set_account(client, Account { paid, noticed, rested_us, ..self.account(client) });
        }
        Some(())
    }
}

/// What server time costs a client of this weight.
fn price(ns: u64, weight: u32) -> i64 {
    i64::try_from(u128::from(ns) * 100 / u128::from(weight.max(1))).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(weight: u32, sync_priority: i32) -> Facts {
        Facts { descriptor: 4, weight, fixed_priority: 0, sync_priority }
    }

    fn serve(fair: &mut Fair, client: ClientId, ns: u64) {
        fair.picked(client, false, Time(0));
        fair.served(client, &Served { length_ns: ns, requests: 1, bytes: 4 });
    }

    #[test]
    fn a_sleeper_comes_back_at_most_the_credit_behind() {
        let mut fair = Fair::new(&Parameters::default());
        let (busy, sleeper) = (ClientId(1), ClientId(2));
        fair.join(busy, &facts(100, 0));
        fair.join(sleeper, &facts(100, 0));
        for _ in 0..100 {
            serve(&mut fair, busy, 5_000_000);
        }
        fair.ready(sleeper, 500_000_000);
        assert_eq!(fair.account(sleeper).paid, fair.clock(0) - CREDIT_NS);
        assert!(fair.key(sleeper) < fair.key(busy));
    }

    #[test]
    fn of_two_that_come_back_alike_the_longer_rested_is_first() {
        let mut fair = Fair::new(&Parameters::default());
        let (asker, busy, sleeper) = (ClientId(1), ClientId(2), ClientId(3));
        for client in [asker, busy, sleeper] {
            fair.join(client, &facts(100, 0));
        }
        serve(&mut fair, busy, 10_000_000);
        serve(&mut fair, busy, 10_000_000);
        fair.ready(asker, 100_000);
        fair.ready(sleeper, 9_000_000);
        assert_eq!(fair.account(asker).paid, fair.account(sleeper).paid);
        assert!(fair.key(sleeper) < fair.key(asker));
        fair.served(sleeper, &Served { length_ns: 1, requests: 1, bytes: 4 });
        assert!(fair.key(asker) < fair.key(sleeper), "it is a tie's end and no more");
    }

    #[test]
    fn weight_divides_the_price() {
        let mut fair = Fair::new(&Parameters::default());
        let (single, double) = (ClientId(1), ClientId(2));
        fair.join(single, &facts(100, 0));
        fair.join(double, &facts(200, 0));
        serve(&mut fair, single, 1000);
        serve(&mut fair, double, 2000);
        assert_eq!(fair.account(single).paid, fair.account(double).paid);
    }

    #[test]
    fn input_earns_latency_and_no_bandwidth() {
        let parameters = Parameters::default();
        let mut fair = Fair::new(&parameters);
        let (a, b) = (ClientId(1), ClientId(2));
        fair.join(a, &facts(100, 0));
        fair.join(b, &facts(100, 0));
        fair.served(a, &Served { length_ns: 1000, requests: 1, bytes: 4 });
        assert!(fair.key(b) < fair.key(a));
        fair.noticed(a, true);
        assert!(fair.key(a) < fair.key(b));
        assert_eq!(fair.picked(a, false, Time(0)).slice_ns, parameters.slice_ns / 2);
        assert!(fair.key(b) < fair.key(a), "the head start is spent");
    }

    #[test]
    fn a_high_sync_priority_leaves_the_clock_of_the_others_alone() {
        let mut fair = Fair::new(&Parameters::default());
        let (high, low) = (ClientId(1), ClientId(2));
        fair.join(high, &facts(100, 10));
        fair.join(low, &facts(100, 0));
        for _ in 0..1000 {
            serve(&mut fair, high, 5_000_000);
        }
        assert_eq!(fair.clock(0), 0);
        fair.changed(high, &facts(100, 0));
        assert!(fair.account(high).paid <= fair.clock(0) + 5_000_000, "it does not have to wait for its past");
        assert_eq!(fair.clocks.len(), 1);
    }
}
