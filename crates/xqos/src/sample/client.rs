// SPDX-License-Identifier: MIT
//! The figures of a client.

use super::measured::Found;
use super::ms;
use crate::client::{printable, role_of};
use crate::kind;
use crate::processor::Processor;
use crate::requests::{Names, opcodes};
use serde::Serialize;
use xqos_abi::{ClientEntry, ClientList, Label, entry_flag};
use xqos_trace::histogram::Histogram;
use xqos_trace::model;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Client {
    pub client: String,
    pub pid: Option<i32>,
    pub uid: Option<u32>,
    pub program: Option<String>,
    pub title: Option<String>,
    pub role: Option<&'static str>,
    pub local: bool,
    /// The address from which a client of another machine connected.
    pub host: Option<String>,
    pub group: Option<Group>,
    pub by: By,
    pub you: bool,
    pub ready: bool,
    pub holds_server_grab: bool,
    pub grabs_pointer: bool,
    pub grabs_keyboard: bool,
    pub connected_ms: f64,
    pub share: f64,
    pub server_time_ms: f64,
    /// The same as far as it is the cause: without what it does for others, with what window managers do for it.
    pub charged_share: f64,
    pub charged_ms: f64,
    pub reserved_time_ms: f64,
    pub requests: u64,
    pub requests_per_s: f64,
    pub slices: u64,
    pub response: Option<Response>,
    pub waiting_ms: Option<f64>,
    pub waited_ms: f64,
    pub longest_wait_ms: f64,
    pub longest_request: Option<LongestRequest>,
    pub grabs: u32,
    pub grabbed_ms: f64,
    /// How the kernel schedules the program's main thread, where that is not as usual.
    pub cpu: Option<Processor>,
    pub weight: f64,
    pub fixed_priority: i32,
    pub sync_priority: i32,
    pub depletions: u32,
    pub misses: u32,
    /// What `auto` would find.
    pub measured: Option<Found>,
    pub reservation: Option<Reserved>,
    /// What people are shown: the program, printable, or the client.
    #[serde(skip)]
    pub name: String,
    #[serde(skip)]
    pub entry: ClientEntry,
}

/// The clients with which it shares.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    pub name: String,
    /// Where one was set.
    pub weight: Option<f64>,
    /// The most that the group gets, where that was set.
    pub cap: Option<f64>,
    /// What its clients use together.
    pub reservation: Option<GroupReserved>,
}

#[derive(Clone, Debug, Serialize)]
pub struct GroupReserved {
    pub budget_ms: f64,
    pub period_ms: f64,
    #[serde(flatten)]
    pub kind: kind::Fields,
}

/// Who made its settings: itself, hand, or the name that somebody gave, such as that of a rule.
#[derive(Clone, Debug, Default, Serialize)]
pub struct By {
    pub reservation: Option<String>,
    pub settings: Option<String>,
}

impl By {
    /// Whether measurement made its reservation.
    pub fn is_auto(&self) -> bool {
        self.reservation.as_deref().is_some_and(|by| by.starts_with("auto"))
    }

    pub fn shown(&self) -> &str {
        self.reservation.as_deref().or(self.settings.as_deref()).unwrap_or_default()
    }
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
    pub major: u8,
    pub minor: u16,
}

#[derive(Clone, Debug, Serialize)]
pub struct Reserved {
    pub budget_ms: f64,
    pub period_ms: f64,
    #[serde(flatten)]
    pub kind: kind::Fields,
    pub held_back: bool,
    pub budget_left_ms: f64,
    pub deadline_in_ms: f64,
    /// Part of the reservation that was used.
    pub used: f64,
}

/// What is known about a client beside its entry.
pub struct Beside<'a> {
    pub now_ns: u64,
    /// The list of the sample before.
    pub before: Option<&'a ClientList>,
    /// Response times since the sample before.
    pub responses: Option<&'a Histogram>,
    /// The client in the trace.
    pub traced: Option<&'a model::Client>,
    pub title: Option<&'a String>,
    pub measured: Option<Found>,
    pub names: &'a Names,
    /// Of the time of slices, the part in which the server had a processor.
    pub running: f64,
}

/// What a client has used since the sample before, or since it connected.
struct Used {
    elapsed_ns: u64,
    server_ns: u64,
    charged_ns: u64,
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
            charged_ns: entry.charged_ns.saturating_sub(earlier.charged_ns),
            reserved_ns: entry.reserved_time_ns.saturating_sub(earlier.reserved_time_ns),
            requests: entry.requests.saturating_sub(earlier.requests),
        }
    }
}

impl<'a> Beside<'a> {
    /// Nothing but the names of requests.
    pub fn new(now_ns: u64, names: &'a Names) -> Beside<'a> {
        Beside { now_ns, before: None, responses: None, traced: None, title: None, measured: None, names, running: 1.0 }
    }
}

impl Client {
    /// Whether it is the cause of other work than its own.
    pub fn is_charged_otherwise(&self) -> bool {
        (self.charged_ms - self.server_time_ms).abs() > (self.server_time_ms / 100.0).max(1.0)
    }

    pub fn new(entry: &ClientEntry, beside: &Beside) -> Client {
        let has = |flag: u32| entry.flags & flag != 0;
        let used = Used::since(beside.before, entry, beside.now_ns);
        let waits_since = beside.traced.and_then(model::Client::waits_since);
        Client {
            client: format!("{:#x}", entry.client),
            pid: (entry.pid != 0).then_some(entry.pid),
            uid: (entry.uid != u32::MAX).then_some(entry.uid),
            program: (!entry.name.is_empty()).then(|| entry.name.clone()),
            title: beside.title.cloned(),
            role: role_of(entry),
            local: has(entry_flag::LOCAL),
            host: (!entry.host.is_empty()).then(|| entry.host.clone()),
            group: Group::of(entry),
            by: By { reservation: text(&entry.reservation_origin), settings: text(&entry.settings_origin) },
            you: has(entry_flag::YOU),
            ready: has(entry_flag::READY),
            holds_server_grab: has(entry_flag::GRABS_SERVER),
            grabs_pointer: has(entry_flag::GRABS_POINTER),
            grabs_keyboard: has(entry_flag::GRABS_KEYBOARD),
            connected_ms: ms(beside.now_ns.saturating_sub(entry.connected_ns)),
            share: used.server_ns as f64 / used.elapsed_ns as f64 * beside.running,
            server_time_ms: ms(entry.server_time_ns),
            charged_share: used.charged_ns as f64 / used.elapsed_ns as f64 * beside.running,
            charged_ms: ms(entry.charged_ns),
            reserved_time_ms: ms(entry.reserved_time_ns),
            requests: entry.requests,
            requests_per_s: used.requests as f64 / (used.elapsed_ns as f64 / 1e9),
            slices: entry.slices,
            response: beside.responses.and_then(Response::new),
            waiting_ms: waits_since.map(|since| ms(beside.now_ns.saturating_sub(since.0))),
            waited_ms: ms(entry.waited_ns),
            longest_wait_ms: ms(entry.longest_wait_ns),
            longest_request: LongestRequest::new(entry, beside),
            grabs: entry.grabs,
            grabbed_ms: ms(entry.grabbed_ns),
            cpu: Some(entry.pid).filter(|&pid| pid > 0).and_then(Processor::of),
            weight: f64::from(entry.weight) / 100.0,
            fixed_priority: entry.fixed_priority,
            sync_priority: entry.sync_priority,
            depletions: entry.depletions,
            misses: entry.misses,
            measured: beside.measured.clone(),
            reservation: has(entry_flag::RESERVED).then(|| Reserved::new(entry, &used, beside.now_ns)),
            name: if entry.name.is_empty() { format!("{:#x}", entry.client) } else { printable(&entry.name) },
            entry: entry.clone(),
        }
    }
}

fn text(label: &Label) -> Option<String> {
    (!label.is_empty()).then(|| label.to_string())
}

impl Group {
    fn of(entry: &ClientEntry) -> Option<Group> {
        (entry.group != 0).then(|| Group {
            name: entry.group_name.to_string(),
            weight: (entry.group_weight != 0).then(|| f64::from(entry.group_weight) / 100.0),
            cap: (entry.group_cap_ppm != 0).then(|| f64::from(entry.group_cap_ppm) / 1e6),
            reservation: (entry.group_period_us != 0).then(|| GroupReserved {
                budget_ms: f64::from(entry.group_budget_us) / 1e3,
                period_ms: f64::from(entry.group_period_us) / 1e3,
                kind: entry.group_kind().into(),
            }),
        })
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
        let (major, minor) = opcodes(entry.longest_request);
        let ms = ms(entry.longest_request_ns);
        (major != 0).then(|| LongestRequest { name: beside.names.name(major, minor), ms, major, minor })
    }
}

impl Reserved {
    fn new(entry: &ClientEntry, used: &Used, now_ns: u64) -> Reserved {
        let reserved_share = used.reserved_ns as f64 / used.elapsed_ns as f64;
        Reserved {
            budget_ms: f64::from(entry.budget_us) / 1e3,
            period_ms: f64::from(entry.period_us) / 1e3,
            kind: entry.kind().into(),
            held_back: entry.flags & entry_flag::HELD_BACK != 0,
            budget_left_ms: entry.budget_left_ns as f64 / 1e6,
            deadline_in_ms: (i128::from(entry.deadline_ns) - i128::from(now_ns)) as f64 / 1e6,
            used: reserved_share * f64::from(entry.period_us) / f64::from(entry.budget_us.max(1)),
        }
    }
}

/// A client with a reservation, for tests.
#[cfg(test)]
pub fn entry() -> ClientEntry {
    ClientEntry {
        client: 0x40_0000,
        pid: 1234,
        uid: 1000,
        weight: 150,
        flags: entry_flag::RESERVED | entry_flag::HARD | entry_flag::LOCAL,
        budget_us: 3000,
        period_us: 10_000,
        depletions: 7,
        longest_request: 73,
        budget_left_ns: -250_000,
        deadline_ns: 10_004_000_000,
        server_time_ns: 2_500_000_000,
        requests: 123_456,
        longest_wait_ns: 17_400_000,
        longest_request_ns: 11_200_000,
        connected_ns: 5_000_000_000,
        name: "a-program-with-a-long-name".into(),
        ..ClientEntry::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(entry: &ClientEntry) -> serde_json::Value {
        serde_json::to_value(Client::new(entry, &Beside::new(10_000_000_000, &Names::default()))).unwrap()
    }

    #[test]
    fn json_has_milliseconds_and_nulls_for_what_is_unknown() {
        let client = json(&entry());
        assert_eq!(client["client"], "0x400000");
        assert_eq!(client["pid"], 1234);
        assert_eq!(client["server_time_ms"], 2500.0);
        assert_eq!(client["share"], 0.5);
        assert_eq!(client["weight"], 1.5);
        assert_eq!(client["longest_request"]["name"], "GetImage");
        assert_eq!(client["reservation"]["budget_left_ms"], -0.25);
        assert_eq!(client["reservation"]["deadline_in_ms"], 4.0);
        assert_eq!(client["reservation"]["hard"], true);
        assert!(client["reservation"]["soft"].is_null());
        let paper = ClientEntry { flags: entry_flag::RESERVED | entry_flag::SOFT_PAPER, ..entry() };
        assert_eq!(json(&paper)["reservation"]["soft"], "paper");
        let remote = json(&ClientEntry { uid: u32::MAX, ..ClientEntry::default() });
        for field in ["pid", "uid", "program", "title", "response", "reservation", "longest_request"] {
            assert!(remote[field].is_null(), "{field}: {remote}");
        }
    }

    #[test]
    fn who_works_for_others_has_a_role() {
        assert_eq!(json(&ClientEntry { flags: entry_flag::COMPOSITOR, ..entry() })["role"], "compositor");
        assert!(json(&entry())["role"].is_null());
    }

    #[test]
    fn an_interval_counts_what_was_used_since_the_sample_before() {
        let earlier = ClientEntry { server_time_ns: 2_000_000_000, requests: 123_000, ..entry() };
        let before = ClientList { now_ns: 9_000_000_000, clients: vec![earlier], ..ClientList::default() };
        let names = Names::default();
        let beside = Beside { before: Some(&before), running: 0.5, ..Beside::new(10_000_000_000, &names) };
        let client = Client::new(&entry(), &beside);
        assert_eq!((client.share, client.requests_per_s), (0.25, 456.0), "half of a second, half of it run");
    }
}
