//! The figures of a client.

use super::ms;
use crate::processor::Processor;
use crate::requests::{Names, opcodes};
use crate::session::{printable, role_of};
use serde::Serialize;
use xqos_abi::{ClientEntry, ClientList, entry_flag};
use xqos_trace::histogram::Histogram;
use xqos_trace::model;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Client {
    pub pid: Option<i32>,
    pub name: String,
    pub client: String,
    pub title: Option<String>,
    pub role: Option<&'static str>,
    pub share: f64,
    pub server_time_ms: f64,
    pub requests: u64,
    pub requests_per_s: f64,
    pub response: Option<Response>,
    pub waiting_ms: Option<f64>,
    pub longest_wait_ms: f64,
    pub longest_request: Option<LongestRequest>,
    pub grabs: u32,
    pub grabbed_ms: f64,
    /// How the kernel schedules the program's main thread, where that is not as usual.
    pub cpu: Option<Processor>,
    pub holds_grab: bool,
    pub depletions: u32,
    pub misses: u32,
    pub sync_priority: i32,
    pub reservation: Option<Reserved>,
    #[serde(skip)]
    pub entry: ClientEntry,
    #[serde(skip)]
    pub waited_s: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Response {
    pub count: u64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub worst_ms: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct LongestRequest {
    pub name: String,
    pub ms: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Reserved {
    pub budget_ms: f64,
    pub period_ms: f64,
    pub hard: bool,
    pub left_ms: f64,
    /// Part of the reservation that was used.
    pub used: f64,
    pub held_back: bool,
}

/// What is known about a client beside its entry.
pub(super) struct Beside<'a> {
    pub now_ns: u64,
    /// The list of the sample before.
    pub before: Option<&'a ClientList>,
    /// Response times since the sample before.
    pub responses: Option<&'a Histogram>,
    /// The client in the trace.
    pub traced: Option<&'a model::Client>,
    pub title: Option<&'a String>,
    pub names: &'a Names,
    /// Of the time of slices, the part in which the server had a processor.
    pub running: f64,
}

/// What a client has used since the sample before, or since it connected.
struct Used {
    elapsed_ns: u64,
    server_ns: u64,
    reserved_ns: u64,
    requests: u64,
}

impl Used {
    fn since(before: Option<&ClientList>, entry: &ClientEntry, now_ns: u64) -> Used {
        let same = |other: &&ClientEntry| (other.client, other.connected_ns) == (entry.client, entry.connected_ns);
        let earlier = before.and_then(|list| Some((list.now_ns, list.clients.iter().find(same)?)));
        let new = ClientEntry::default();
        let (since_ns, earlier) = earlier.unwrap_or((entry.connected_ns, &new));
        Used {
            elapsed_ns: now_ns.saturating_sub(since_ns).max(1),
            server_ns: entry.server_time_ns.saturating_sub(earlier.server_time_ns),
            reserved_ns: entry.reserved_time_ns.saturating_sub(earlier.reserved_time_ns),
            requests: entry.requests.saturating_sub(earlier.requests),
        }
    }
}

impl Client {
    pub(super) fn new(entry: &ClientEntry, beside: &Beside) -> Client {
        let has = |flag: u32| entry.flags & flag != 0;
        let used = Used::since(beside.before, entry, beside.now_ns);
        let waits_since = beside.traced.and_then(model::Client::waits_since);
        Client {
            pid: (entry.pid != 0).then_some(entry.pid),
            name: if entry.name.is_empty() { format!("{:#x}", entry.client) } else { printable(&entry.name) },
            client: format!("{:#x}", entry.client),
            title: beside.title.cloned(),
            role: role_of(entry),
            share: used.server_ns as f64 / used.elapsed_ns as f64 * beside.running,
            server_time_ms: ms(entry.server_time_ns),
            requests: entry.requests,
            requests_per_s: used.requests as f64 / (used.elapsed_ns as f64 / 1e9),
            response: beside.responses.and_then(Response::new),
            waiting_ms: waits_since.map(|since| ms(beside.now_ns.saturating_sub(since.0))),
            longest_wait_ms: ms(entry.longest_wait_ns),
            longest_request: LongestRequest::new(entry, beside),
            grabs: entry.grabs,
            grabbed_ms: ms(entry.grabbed_ns),
            cpu: Some(entry.pid).filter(|&pid| pid > 0).and_then(Processor::of),
            holds_grab: has(entry_flag::GRABS_SERVER),
            depletions: entry.depletions,
            misses: entry.misses,
            sync_priority: entry.sync_priority,
            reservation: has(entry_flag::RESERVED).then(|| Reserved::new(entry, &used)),
            waited_s: entry.waited_ns as f64 / 1e9,
            entry: entry.clone(),
        }
    }
}

impl Response {
    fn new(times: &Histogram) -> Option<Response> {
        (times.count() > 0).then(|| Response {
            count: times.count(),
            p50_ms: ms(times.quantile_ns(0.5)),
            p99_ms: ms(times.quantile_ns(0.99)),
            worst_ms: ms(times.worst_ns()),
        })
    }
}

impl LongestRequest {
    fn new(entry: &ClientEntry, beside: &Beside) -> Option<LongestRequest> {
        // Of the whole trace: what was the longest does not become shorter in the next interval.
        let traced = beside.traced.and_then(|client| client.total.longest_request);
        if let Some((ns, request)) = traced.filter(|&(ns, _)| ns > entry.longest_request_ns) {
            return Some(LongestRequest { name: beside.names.of(request), ms: ms(ns) });
        }
        let (major, minor) = opcodes(entry.longest_request);
        (major != 0).then(|| LongestRequest { name: beside.names.name(major, minor), ms: ms(entry.longest_request_ns) })
    }
}

impl Reserved {
    fn new(entry: &ClientEntry, used: &Used) -> Reserved {
        let reserved_share = used.reserved_ns as f64 / used.elapsed_ns as f64;
        Reserved {
            budget_ms: f64::from(entry.budget_us) / 1e3,
            period_ms: f64::from(entry.period_us) / 1e3,
            hard: entry.flags & entry_flag::HARD != 0,
            left_ms: entry.budget_left_ns as f64 / 1e6,
            used: reserved_share * f64::from(entry.period_us) / f64::from(entry.budget_us.max(1)),
            held_back: entry.flags & entry_flag::HELD_BACK != 0,
        }
    }
}
