// SPDX-License-Identifier: MIT
//! Usage of the clients of one display, summed by user and program. The sums are kept after a disconnect.
//!
//! The server reports figures for each connection and drops them when the connection ends. Here, each connection adds
//! what it has used since the last report, so the sums never decrease. This module uses no clock and no files.

use crate::client::{ConnectionKey, connection};
use crate::field::{MetricKind, metrics};
use crate::sample::departed::{ClientLists, since};
use crate::sample::{CLIENT, ClientSample};
use std::collections::{BTreeMap, HashMap};
use xqos_abi::{ClientEntry, entry_flag};
use xqos_core::WAIT_BOUNDS_NS;

/// Label for all users and programs beyond the limit.
const OTHER: &str = "other";
const WAITS: usize = WAIT_BOUNDS_NS.len() + 1;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels {
    pub user: String,
    pub program: String,
}

/// Sums of the clients that share labels.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub connections: usize,
    /// Values of the metrics: counters since the start, and gauges of the connected clients.
    pub values: BTreeMap<&'static str, f64>,
    pub waits: [u64; WAITS],
    pub waited_ns: u64,
}

/// Usage sums for one server process.
#[derive(Debug)]
pub struct UsageAccount {
    server_pid: u32,
    before: HashMap<ConnectionKey, ClientEntry>,
    /// Last reported figures of departed clients, by program.
    departed: Vec<ClientEntry>,
    totals: Labelled<Totals>,
}

impl UsageAccount {
    pub fn new(server_pid: u32, max_labels: usize) -> UsageAccount {
        let (before, departed) = (HashMap::new(), Vec::new());
        UsageAccount { server_pid, before, departed, totals: Labelled::new(max_labels) }
    }

    pub fn is_of(&self, server_pid: u32) -> bool {
        self.server_pid == server_pid
    }

    pub fn totals(&self) -> &BTreeMap<Labels, Totals> {
        &self.totals.all
    }

    /// Excludes what these clients had used before the first report.
    pub fn begin_at(&mut self, clients: &[ClientEntry], departed: &[ClientEntry]) {
        self.departed = departed.to_vec();
        self.before = clients.iter().map(|entry| (connection(entry), entry.clone())).collect();
    }

    /// Records that all clients have disconnected. Their last usage is added when the server is queried again.
    pub fn all_disconnected(&mut self) {
        self.totals.all.values_mut().for_each(Totals::forget_present);
    }

    /// Adds what connected and departed clients have used since the last report.
    pub fn add(
        &mut self,
        clients: Vec<ClientEntry>,
        departed: Vec<ClientEntry>,
        mut labels: impl FnMut(&ClientEntry) -> Labels,
    ) {
        self.all_disconnected();
        let then: Vec<ClientEntry> = self.before.values().cloned().collect();
        let before = ClientLists { clients: &then, departed: &self.departed };
        let left = since(&before, &ClientLists { clients: &clients, departed: &departed });
        let left = left.into_iter().filter(|(before, now)| now.client > before.client);
        let left: Vec<(Labels, ClientEntry, ClientEntry)> = left
            .map(|(before, now)| (if now.name.is_empty() { Labels::other() } else { labels(&now) }, before, now))
            .collect();
        self.departed = departed;
        let others = clients.into_iter().filter(|entry| entry.flags & entry_flag::YOU == 0);
        let labelled: Vec<(Labels, ClientEntry)> = others.map(|entry| (labels(&entry), entry)).collect();
        self.totals.start(labelled.iter().map(|(labels, _)| labels).chain(left.iter().map(|(labels, ..)| labels)));
        let previous = std::mem::take(&mut self.before);
        for (labels, entry) in labelled {
            let earlier = previous.get(&connection(&entry)).cloned().unwrap_or_default();
            let totals = self.totals.of(labels);
            totals.connections += 1;
            totals.add_counters(&earlier, &entry);
            totals.add_gauges(&entry);
            self.before.insert(connection(&entry), entry);
        }
        for (labels, before, now) in left {
            self.totals.of(labels).add_counters(&before, &now);
        }
    }
}

impl Labels {
    fn other() -> Labels {
        Labels { user: OTHER.to_owned(), program: OTHER.to_owned() }
    }
}

/// Values by labels. When there are too many labels, the values of further labels are added to [`OTHER`].
///
/// New labels replace those that the current round has not seen, starting with those unseen for the longest time. The
/// removed counters have already been exported, so a sum of rates misses nothing and counts nothing twice.
#[derive(Debug)]
pub struct Labelled<T> {
    pub all: BTreeMap<Labels, T>,
    seen: BTreeMap<Labels, u64>,
    most: usize,
    rounds: u64,
}

impl<T: Default> Labelled<T> {
    pub fn new(most: usize) -> Labelled<T> {
        Labelled { all: BTreeMap::new(), seen: BTreeMap::new(), most, rounds: 0 }
    }

    pub fn start<'a>(&mut self, seen: impl Iterator<Item = &'a Labels>) {
        self.rounds += 1;
        self.seen
            .extend(seen.filter(|labels| self.all.contains_key(labels)).map(|labels| (labels.clone(), self.rounds)));
    }

    pub fn of(&mut self, mut labels: Labels) -> &mut T {
        let other = Labels::other();
        let taken = self.all.len() - usize::from(self.all.contains_key(&other));
        if !self.all.contains_key(&labels) && taken >= self.most {
            let unseen = self.seen.iter().filter(|&(labels, &seen)| *labels != other && seen < self.rounds);
            match unseen.min_by_key(|&(_, &seen)| seen).map(|(oldest, _)| oldest.clone()) {
                Some(oldest) => {
                    self.all.remove(&oldest);
                    self.seen.remove(&oldest);
                }
                None => labels = other,
            }
        }
        self.seen.insert(labels.clone(), self.rounds);
        self.all.entry(labels).or_default()
    }
}

impl Totals {
    /// Removes gauges, which count connected clients only.
    fn forget_present(&mut self) {
        self.connections = 0;
        for (metric, _) in metrics(CLIENT).filter(|(metric, _)| metric.kind != MetricKind::Counter) {
            self.values.remove(metric.name);
        }
    }

    fn add_counters(&mut self, before: &ClientEntry, now: &ClientEntry) {
        let (earlier, later) = (ClientSample::of(before), ClientSample::of(now));
        for (metric, field) in metrics(CLIENT).filter(|(metric, _)| metric.kind == MetricKind::Counter) {
            let used = field.number_of(&later).unwrap_or(0.0) - field.number_of(&earlier).unwrap_or(0.0);
            *self.values.entry(metric.name).or_default() += used.max(0.0);
        }
        for ((total, before), now) in self.waits.iter_mut().zip(before.waits).zip(now.waits) {
            *total += u64::from(now.wrapping_sub(before));
        }
        self.waited_ns += now.waited_ns.saturating_sub(before.waited_ns);
    }

    fn add_gauges(&mut self, now: &ClientEntry) {
        let client = ClientSample::of(now);
        for (metric, field) in metrics(CLIENT).filter(|(metric, _)| metric.kind != MetricKind::Counter) {
            let Some(value) = field.number_of(&client) else { continue };
            let total = self.values.entry(metric.name).or_default();
            *total = if metric.kind == MetricKind::Sum { *total + value } else { total.max(value) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_sim::Dice;

    fn client(base: u32, program: &str, requests: u64) -> ClientEntry {
        ClientEntry {
            client: base,
            name: program.into(),
            requests,
            waits: [requests as u32; WAITS],
            ..Default::default()
        }
    }

    fn by_name(entry: &ClientEntry) -> Labels {
        Labels { user: "me".into(), program: entry.name.clone() }
    }

    /// Requests by program.
    fn requests(account: &UsageAccount) -> Vec<(String, f64)> {
        let of = |totals: &Totals| totals.values["xqos_client_requests"];
        account.totals().iter().map(|(labels, totals)| (labels.program.clone(), of(totals))).collect()
    }

    fn expected(pairs: &[(&str, f64)]) -> Vec<(String, f64)> {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    #[test]
    fn usage_stays_when_clients_disconnect() {
        let mut account = UsageAccount::new(1, 10);
        account.add(vec![client(1, "a", 10), client(2, "a", 5), client(3, "b", 7)], vec![], by_name);
        assert_eq!(requests(&account), expected(&[("a", 15.0), ("b", 7.0)]));
        account.add(vec![client(1, "a", 12)], vec![], by_name);
        assert_eq!(requests(&account), expected(&[("a", 17.0), ("b", 7.0)]));
        account.add(vec![], vec![], by_name);
        assert_eq!(requests(&account), expected(&[("a", 17.0), ("b", 7.0)]));
        let again = ClientEntry { connected_ns: 9, ..client(1, "a", 3) };
        account.add(vec![again], vec![], by_name);
        assert_eq!(requests(&account), expected(&[("a", 20.0), ("b", 7.0)]), "the same resource base, another client");
        let connections: Vec<usize> = account.totals().values().map(|totals| totals.connections).collect();
        assert_eq!(connections, [1, 0]);
    }

    #[test]
    fn counters_never_decrease() {
        let mut account = UsageAccount::new(1, 3);
        let mut last: BTreeMap<Labels, Totals> = BTreeMap::new();
        // Clients connect, work and disconnect in random order.
        let mut dice = Dice::new(7);
        for round in 0..500 {
            let mut clients = Vec::new();
            for base in 0..dice.below(6) as u32 {
                let used = 10 * round + dice.below(10);
                clients.push(ClientEntry { connected_ns: dice.below(2), ..client(base, &format!("p{base}"), used) });
            }
            account.add(clients, vec![], by_name);
            assert!(account.totals().len() <= 4, "three programs and `other`");
            for (labels, totals) in account.totals() {
                let Some(earlier) = last.get(labels) else { continue };
                for (metric, _) in metrics(CLIENT).filter(|(metric, _)| metric.kind == MetricKind::Counter) {
                    let (now, before) = (totals.values[metric.name], earlier.values[metric.name]);
                    assert!(now >= before, "{}: {labels:?}", metric.name);
                }
                assert!(totals.waits.iter().zip(earlier.waits).all(|(&now, before)| now >= before));
            }
            last.clone_from(account.totals());
        }
    }

    #[test]
    fn programs_beyond_the_limit_are_summed_up() {
        let mut account = UsageAccount::new(1, 2);
        let clients = || ["a", "b", "c", "d"].map(|name| client(name.as_bytes()[0].into(), name, 1)).to_vec();
        account.add(clients(), vec![], by_name);
        assert_eq!(requests(&account), expected(&[("a", 1.0), ("b", 1.0), ("other", 2.0)]));
        account.add(clients(), vec![], by_name);
        assert_eq!(account.totals()[&Labels { user: OTHER.into(), program: OTHER.into() }].connections, 2);
    }

    #[test]
    fn departed_programs_make_room_for_new_ones() {
        let mut account = UsageAccount::new(1, 2);
        account.add(vec![client(1, "a", 1), client(2, "b", 5)], vec![], by_name);
        account.add(vec![client(2, "b", 6), client(3, "c", 1)], vec![], by_name);
        assert_eq!(requests(&account), expected(&[("b", 6.0), ("c", 1.0)]), "a has left");
        account.add(vec![client(3, "c", 1), client(4, "d", 2), client(5, "e", 7)], vec![], by_name);
        assert_eq!(requests(&account), expected(&[("c", 1.0), ("d", 2.0), ("other", 7.0)]), "one label was free");
        account.add(vec![client(5, "e", 9)], vec![], by_name);
        assert_eq!(requests(&account), expected(&[("d", 2.0), ("e", 2.0), ("other", 7.0)]), "e: only new usage");
        account.add(vec![], vec![], by_name);
        account.add(vec![client(6, "a", 3)], vec![], by_name);
        assert_eq!(requests(&account), expected(&[("a", 3.0), ("e", 2.0), ("other", 7.0)]), "a restarts at zero");
    }

    #[test]
    fn usage_before_the_first_query_is_not_counted() {
        let mut account = UsageAccount::new(1, 9);
        account.begin_at(&[client(1, "a", 1000)], &[]);
        account.add(vec![client(1, "a", 1000), client(2, "b", 4)], vec![], by_name);
        assert_eq!(requests(&account), expected(&[("a", 0.0), ("b", 4.0)]));
        assert!(account.is_of(1) && !account.is_of(2));
    }

    #[test]
    fn counts_of_waits_may_wrap_around() {
        let mut account = UsageAccount::new(1, 9);
        let with = |count| ClientEntry { waits: [count; WAITS], ..client(1, "a", 1) };
        account.begin_at(&[with(u32::MAX - 1)], &[]);
        account.add(vec![with(3)], vec![], by_name);
        assert_eq!(account.totals().values().next().unwrap().waits, [5; WAITS]);
    }

    #[test]
    fn short_lived_clients_are_counted_once() {
        let mut account = UsageAccount::new(1, 9);
        let gone = |count, requests| ClientEntry { client: count, ..client(0, "a", requests) };
        account.add(vec![client(1, "a", 10)], vec![gone(1, 5)], by_name);
        assert_eq!(requests(&account), expected(&[("a", 15.0)]));
        account.all_disconnected();
        account.add(vec![], vec![gone(4, 37)], by_name);
        assert_eq!(requests(&account), expected(&[("a", 37.0)]), "10 of the 37 were reported while it was connected");
        assert_eq!(account.totals().values().next().unwrap().waits, [37; WAITS]);
        account.add(vec![], vec![gone(4, 37)], by_name);
        assert_eq!(requests(&account), expected(&[("a", 37.0)]));
    }

    #[test]
    fn the_exporter_itself_is_not_counted() {
        let mut account = UsageAccount::new(1, 9);
        account.add(vec![ClientEntry { flags: entry_flag::YOU, ..client(1, "xqos", 1) }], vec![], by_name);
        assert!(account.totals().is_empty());
    }
}
