// SPDX-License-Identifier: MIT
//! Departed clients, summed up by user and program. They show the usage of a script that starts a new process for each
//! request, which a list of connected clients does not.
//!
//! The server reports sums since its start. Usage that was already reported while a client was connected is not counted
//! again.

use super::ms;
use crate::client::{ConnectionKey, connection};
use crate::field::{Value, count, fields, table, time_of_ms};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use xqos_abi::ClientEntry;
use xqos_text::escape::printable;

/// Departed clients of one user and program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Departed {
    /// The program's name; `None` if it is unknown, or if there are too many programs to distinguish.
    pub program: Option<String>,
    pub uid: Option<u32>,
    pub clients: u32,
    pub share: f64,
    pub server_time_ms: f64,
    pub requests: u64,
    pub waited_ms: f64,
    pub longest_wait_ms: f64,
}

/// Smaller shares are not shown in tables.
const LEAST_SHARE: f64 = 0.0005;

/// A server's report on its clients at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientLists<'a> {
    pub clients: &'a [ClientEntry],
    pub departed: &'a [ClientEntry],
}

/// The sums of `now`, each preceded by the part that earlier reports already contain.
pub fn since(before: &ClientLists, now: &ClientLists) -> Vec<(ClientEntry, ClientEntry)> {
    let connected: HashSet<ConnectionKey> = now.clients.iter().map(connection).collect();
    let began: HashMap<(u32, &str), u64> = now.departed.iter().map(|sum| (sum.program(), sum.connected_ns)).collect();
    let mut reported: HashMap<(u32, &str), ClientEntry> = HashMap::new();
    let mut count = |program, sum: &ClientEntry| reported.entry(program).or_default().absorb(sum);
    let nobody = (u32::MAX, "");
    for gone in before.clients.iter().filter(|entry| !connected.contains(&connection(entry))) {
        let program = if began.contains_key(&gone.program()) { gone.program() } else { nobody };
        count(program, &ClientEntry { client: 0, ..gone.departed() });
    }
    for sum in before.departed {
        // A sum with another start time is new: the server merged the previous sum into that of all other programs.
        let is_same = began.get(&sum.program()) == Some(&sum.connected_ns);
        count(if is_same { sum.program() } else { nobody }, sum);
    }
    now.departed.iter().map(|sum| (reported.remove(&sum.program()).unwrap_or_default(), sum.clone())).collect()
}

/// Clients that departed in the interval, or since the server's start.
///
/// `running`: the fraction of the time in slices during which the server had a processor.
pub fn list(before: &ClientLists, now: &ClientLists, elapsed_ns: u64, running: f64) -> Vec<Departed> {
    let mut list: Vec<Departed> = since(before, now)
        .iter()
        .map(|(before, now)| {
            let server_ns = now.server_time_ns.saturating_sub(before.server_time_ns);
            Departed {
                program: (!now.name.is_empty()).then(|| now.name.clone()),
                uid: (now.uid != u32::MAX).then_some(now.uid),
                clients: now.client.saturating_sub(before.client),
                share: server_ns as f64 / elapsed_ns.max(1) as f64 * running,
                server_time_ms: ms(server_ns),
                requests: now.requests.saturating_sub(before.requests),
                waited_ms: ms(now.waited_ns.saturating_sub(before.waited_ns)),
                longest_wait_ms: ms(now.longest_wait_ns),
            }
        })
        .filter(|departed| departed.clients > 0)
        .collect();
    list.sort_by(|a, b| b.share.total_cmp(&a.share));
    list
}

pub fn name(departed: &Departed) -> String {
    departed.program.as_deref().map_or_else(|| "other".to_owned(), printable)
}

fields! {
pub const DEPARTED of left: Departed as JSON;

"program" elastic("CLIENTS THAT LEFT", 17, ""):
    "name of the program; null: all programs that are not listed separately" =>
    Value::Other(json!(left.program), name(left));
"clients" number("COUNT", 6, ""): "number of clients" => count(left.clients);
"share" number("SHARE", 6, ""): "part of the time" => Value::Share(left.share);
"server_time_ms" number("TIME", 7, ""): "server time used" => time_of_ms(left.server_time_ms);
"requests" number("REQUESTS", 8, ""): "requests served" => count(left.requests);
"longest_wait_ms" number("MAXWAIT", 7, ""): "longest wait of any of them since the server started" =>
    time_of_ms(left.longest_wait_ms);
"waited_ms": "total time from arrival to dispatch" => time_of_ms(left.waited_ms);
"uid": "their user" => Value::Other(json!(left.uid), String::new());
}

/// A table of the sums that are not negligible; empty if there are none.
pub fn text(departed: &[Departed], width: Option<usize>) -> String {
    let shown: Vec<&Departed> = departed.iter().filter(|departed| departed.share >= LEAST_SHARE).collect();
    if shown.is_empty() { String::new() } else { format!("\n{}", table(DEPARTED, &shown).render(width)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(client: u32, name: &str, ns: u64) -> ClientEntry {
        ClientEntry { client, name: name.into(), server_time_ns: ns, ..ClientEntry::default() }
    }

    fn used(before: &ClientLists, now: &ClientLists) -> Vec<(String, u32, u64)> {
        let list = list(before, now, 100, 1.0);
        list.iter().map(|one| (name(one), one.clients, (one.share * 100.0).round() as u64)).collect()
    }

    #[test]
    fn reported_usage_is_not_counted_again_on_departure() {
        let (there, stays) = (entry(0x20_0000, "xwd", 30), entry(0x40_0000, "xwd", 9));
        let before = ClientLists { clients: &[there, stays.clone()], departed: &[entry(5, "xwd", 50)] };
        let now = ClientLists { clients: &[stays], departed: &[entry(8, "xwd", 100)] };
        assert_eq!(used(&before, &now), [("xwd".into(), 3, 20)], "100 - 50 - 30");
        assert_eq!(used(&ClientLists::default(), &now), [("xwd".into(), 8, 100)], "since the server began");
        assert!(used(&now, &now).is_empty());
    }

    #[test]
    fn a_program_merged_into_the_others_is_not_counted_again() {
        let others = |client, ns| ClientEntry { uid: u32::MAX, ..entry(client, "", ns) };
        let before = ClientLists { clients: &[], departed: &[entry(5, "old", 50), others(1, 7)] };
        let now = ClientLists { clients: &[], departed: &[entry(2, "new", 4), others(7, 60)] };
        assert_eq!(used(&before, &now), [("new".into(), 2, 4), ("other".into(), 1, 3)]);
        assert!(text(&list(&before, &now, 100, 1.0), Some(80)).contains("new"));
    }
}
