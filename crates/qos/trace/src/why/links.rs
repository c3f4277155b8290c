// SPDX-License-Identifier: MIT
//! Clients that wait for their own link rather than for the server.
//!
//! A client that waits for a reply sends its next request when the reply has arrived. Over a link with latency, the
//! server therefore sees an idle client for a round trip after each reply. A stretch is a series of such times.

use std::collections::BTreeMap;
use xqos_core::Time;

/// Shorter times are the program's own work, longer ones a pause.
const ROUND_TRIP_NS: std::ops::RangeInclusive<u64> = 2_000_000..=2_000_000_000;
/// Fewer round trips are no evidence of a slow link.
const LEAST: usize = 5;
/// The maximum number of round trips of a stretch whose lengths are stored.
const KEPT: usize = 10_000;
/// Prefixes of the names of core requests with a reply. Extensions follow the same convention.
const ASKS: [&str; 8] = ["Get", "Query", "List", "Intern", "Alloc", "Lookup", "Translate", "GrabPointer"];
/// Local programs that relay the connections of remote programs.
const RELAYS: [&str; 6] = ["ssh", "sshd", "xqos-wire", "nxproxy", "socat", "xpra"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from: Time,
    pub to: Time,
    pub ns: u64,
    trips: Vec<u64>,
}

impl Stretch {
    pub fn round_trips(&self) -> usize {
        self.trips.len()
    }

    pub fn median_ns(&self) -> u64 {
        let mut trips = self.trips.clone();
        trips.sort_unstable();
        trips.get(trips.len() / 2).copied().unwrap_or(0)
    }
}

#[derive(Debug, Default)]
struct Link {
    /// The time of the client's last reply, if the client has been idle since.
    replied: Option<Time>,
    now: Option<Stretch>,
    longest: Option<Stretch>,
}

impl Link {
    fn pause(&mut self) {
        let ended = self.now.take().filter(|stretch| stretch.trips.len() >= LEAST);
        if ended.as_ref().map(|stretch| stretch.ns) > self.longest.as_ref().map(|stretch| stretch.ns) {
            self.longest = ended;
        }
    }
}

/// The links of all clients, by their keys.
#[derive(Debug, Default)]
pub struct Links(BTreeMap<usize, Link>);

impl Links {
    /// A client's burst has ended with this request.
    pub fn served(&mut self, key: usize, request: &str, at: Time) {
        let link = self.0.entry(key).or_default();
        link.replied = is_question(request).then_some(at);
    }

    /// A client has a request again.
    pub fn arrived(&mut self, key: usize, at: Time) {
        let Some(link) = self.0.get_mut(&key) else { return };
        let Some((replied, ns)) = link.replied.take().map(|replied| (replied, at.since(replied))) else { return };
        if ns > *ROUND_TRIP_NS.end() {
            return link.pause();
        }
        if ROUND_TRIP_NS.contains(&ns) {
            let stretch = link.now.get_or_insert(Stretch { from: replied, to: at, ns: 0, trips: Vec::new() });
            (stretch.to, stretch.ns) = (at, stretch.ns + ns);
            if stretch.trips.len() < KEPT {
                stretch.trips.push(ns);
            }
        }
    }

    /// A client got input: its next request need not be due to a reply.
    pub fn input(&mut self, key: usize) {
        if let Some(link) = self.0.get_mut(&key) {
            link.replied = None;
        }
    }

    /// The longest stretch of all clients for which `is_remote` holds.
    pub fn longest(mut self, is_remote: impl Fn(usize) -> bool) -> Option<(usize, Stretch)> {
        self.0.values_mut().for_each(Link::pause);
        let all = self.0.into_iter().filter(|&(key, _)| is_remote(key));
        all.filter_map(|(key, link)| Some((key, link.longest?))).max_by_key(|(_, stretch)| stretch.ns)
    }
}

/// True if a client with this pid and program runs on another machine.
pub fn is_remote(pid: u32, program: &str) -> bool {
    pid == 0 || RELAYS.contains(&program)
}

fn is_question(request: &str) -> bool {
    let name = request.rsplit(' ').next().unwrap_or_default();
    ASKS.iter().any(|begin| name.starts_with(begin))
}
