// SPDX-License-Identifier: MIT
//! A client in a sample, and its fields.

use crate::client::{connection, reservation_of, reservation_of_group, role_of, soft_rule, words};
use crate::field::{EVER, LAST, Value, count, fields, time, time_of_us};
use crate::processor::Processor;
use crate::session::GRABS;
use serde_json::{Value as Json, json};
use std::collections::BTreeSet;
use xqos_abi::{ClientEntry, ClientList, entry_flag, us};
use xqos_core::{ReservationKind, WAIT_BOUNDS_NS};
use xqos_text::escape::printable;
use xqos_text::quantity::Reservation;
use xqos_text::time::of_ns;
use xqos_trace::histogram::Histogram;
use xqos_trace::names::opcodes;
use xqos_tune::{RhythmReport, RhythmState};

pub const WAITS: usize = WAIT_BOUNDS_NS.len() + 1;

#[derive(Clone, Debug, Default)]
pub struct ClientSample {
    pub entry: ClientEntry,
    pub now_ns: u64,
    pub share: f64,
    /// `share` plus the time in the client's slices in which the server had no processor.
    pub elapsed_share: f64,
    /// The share that the client causes: excludes its work for other clients, includes a window manager's work for it.
    pub charged_share: f64,
    pub requests_per_s: f64,
    /// Fraction of its reservation that it used.
    pub used: f64,
    /// Processor time of its process in the interval, as a part of one processor.
    pub process_share: Option<f64>,
    /// Histogram of the waits in the interval, with the classes of the entry.
    pub waits: [u32; WAITS],
    pub title: Option<String>,
    /// Response times in the interval, if there is a trace.
    pub responses: Option<Histogram>,
    pub waits_since_ns: Option<u64>,
    pub longest_request: String,
    /// Scheduling of its main thread, if it is not the default.
    pub cpu: Option<Processor>,
    /// Result of the measurement that `auto` uses.
    pub measured: Option<RhythmReport>,
}

fields! {
pub const CLIENT of client: ClientSample as JSON;

"pid" number("PID", 7, ""): "process; null, like uid and program, for a client on another machine" =>
    match client.entry.pid { 0 => Value::Other(Json::Null, "remote".to_owned()), pid => count(pid) };
"program" elastic("PROGRAM", 14, ""): "name of the program" =>
    Value::Other(json!(known(&client.entry.name)), client.name());
"share" number("SHARE", 6, LAST): "part of the time that the server spent on it" => Value::Share(client.share);
"charged_share" number("CHARGED", 7, LAST):
    "SHARE plus a window manager's work for it, if that differs; the manager is not charged for this work" =>
    Value::Share(client.charged_share).shown_if(client.is_charged_otherwise());
"server_time_ms" number("TIME", 7, EVER) counter("xqos_client_server_seconds"): "server time used" =>
    time(client.entry.server_time_ns);
"requests_per_s" number("REQ/S", 6, LAST): "requests per second" => Value::Rate(client.requests_per_s);
"response.p99_ms" number("P99", 7, LAST): "response time, from having work to having none left: 99th percentile" =>
    client.answered(|times| time(times.quantile_ns(0.99)));
"longest_wait_ms" number("MAXWAIT", 7, EVER) gauge("xqos_client_longest_wait_seconds"):
    "longest time from a request's arrival to its dispatch; can be far above the recent P99" =>
    time(client.entry.longest_wait_ns);
"" words("RESERVED", 12): "budget / period; once the budget is used up, a 'hard' reservation holds the client back \
    ('held'), and 'soft=paper' grants the next budget with a later deadline; the clients of a 'group' use it \
    together" =>
    Value::or_none(client.reserved(), Value::Text);
"" elastic("LONGEST REQUEST", 22, EVER):
    "processor time and name of its longest single request; a trace (`xqos trace`) has the elapsed time" =>
    client.longest(Value::Text(format!("{} {}", of_ns(client.entry.longest_request_ns), client.longest_request)));
"longest_part_ms" number("BLOCKING", 8, EVER) gauge("xqos_client_longest_part_seconds"):
    "longest time that others waited for one of its requests, or for a part of one that was cut (`xqos policy --cut`); \
    processor time; a column only if it is shorter than the longest request" =>
    client.longest(time_of_us(client.entry.longest_part_us).shown_if(client.is_cut()));
"reservation.used" number("USED", 6, LAST): "part of its reservation that was used" =>
    client.own(Value::Share(client.used));
"elapsed_share" number("WALL", 6, LAST):
    "SHARE plus the time in which the server worked on it but had no processor, because other programs ran" =>
    Value::Share(client.elapsed_share);
"process_share" number("CPU%", 6, LAST):
    "processor time of its own process, as a part of one processor; null in list, and for a client on another machine" =>
    Value::or_none(client.process_share, Value::Share);
"response.p50_ms" number("P50", 7, LAST): "response time: median" =>
    client.answered(|times| time(times.quantile_ns(0.5)));
"grabbed_ms" number("GRAB", 7, EVER) counter("xqos_client_grabbed_seconds"): "time for which it held the server grab" =>
    time(client.entry.grabbed_ns).if_any();
"role" words("ROLE", 14): "compositor, window manager, or window manager and compositor: served before other clients \
    (`xqos policy --desktop`)" =>
    Value::or_none(role_of(&client.entry), |role| Value::Text(role.to_owned()));
"by" words("BY", 12): "origin of its settings (JSON: reservation and settings): null, itself, hand, or a name such as \
    a rule's; 'auto 0.93' was measured, with this confidence (0 to 1)" => client.by();
"group.name" words("GROUP", 8): "group with which it shares server time (`xqos policy --groups`)" =>
    client.group(Value::Text(client.entry.group_name.to_string()));
"reservation.budget_left_ms" number("LEFT", 7, ""): "budget left in this period; negative after a long request" =>
    client.own(Value::Time(client.entry.budget_left_ns as f64));
"depletions" number("DEPLETED", 8, EVER) counter("xqos_client_depletions"): "times its budget was used up" =>
    count(client.entry.depletions).if_any();
"misses" number("MISSED", 6, EVER) counter("xqos_client_misses"):
    "deadlines missed with budget left and work waiting" =>
    count(client.entry.misses).if_any();
"requests" number("REQUESTS", 8, EVER) counter("xqos_client_requests"): "requests served" =>
    count(client.entry.requests);
"cpu" words("CPU", 12):
    "kernel scheduling of its main thread, if not the default: budget_ms / period_ms, a priority, or nice" =>
    Value::or_none(client.cpu.as_ref(), Processor::value);
"weight" number("WEIGHT", 6, ""): "weight under policy fair (`xqos weight`)" =>
    Value::Number(f64::from(client.entry.weight) / 100.0);
"slice_ms" number("SLICE", 8, ""): "its longest slice, if set (`xqos limit`)" =>
    time(u64::from(client.entry.slice_us) * 1000).if_any();
"fixed_priority" number("PRIORITY", 8, ""): "priority under policy fixed (`xqos priority`)" =>
    count(client.entry.fixed_priority).if_any();
"sync_priority" number("SYNC", 6, ""): "priority set through the SYNC extension" =>
    count(client.entry.sync_priority).if_any();
"title" elastic("TITLE", 20, ""): "title of one of its windows; null in list" =>
    Value::or_none(client.title.clone(), Value::Text);
"" title("HOLDS"): "grabs that it holds now" => Value::Text(client.held_grabs().join(", "));
"" title("AUTO"): "reservation that auto would make" => Value::or_none(client.measured, found);
"response.worst_ms" title("WORST"): "worst response time" => client.answered(|times| time(times.worst_ns()));
"response.count" title("BURSTS"): "times it had work" => client.answered(|times| count(times.count()));
"waiting_ms" title("WAITING"):
    "time for which it has waited for its turn; null if it has no work, or without a trace" =>
    Value::or_none(client.waits_since_ns, |since| time(client.now_ns.saturating_sub(since)));
"waited_ms" title("WAITED") counter("xqos_client_waited_seconds"): "total time from arrival to dispatch" =>
    time(client.entry.waited_ns);
"grabs" title("GRABS") counter("xqos_client_grabs"): "server grabs" => count(client.entry.grabs).if_any();
"cuts" title("CUTS") counter("xqos_client_cuts"): "times another client was served between two parts of its requests" =>
    count(client.entry.cuts).if_any();
"long_grabs" counter("xqos_client_long_grabs"): "server grabs of one second or longer" =>
    count(client.entry.long_grabs);
"host" title("HOST"): "address from which it connected; null if local" =>
    Value::or_none(known(&client.entry.host), |host| Value::Text(host.to_owned()));
"client": "its first resource id" => Value::Text(format!("{:#x}", client.entry.client));
"uid": "its user" => count(client.entry.uid).when(client.entry.uid != u32::MAX);
"local": "true if it runs on the server's machine" => client.flag(entry_flag::LOCAL);
"you": "true if it is this command" => client.flag(entry_flag::YOU);
"ready": "true if it has work for the server" => client.flag(entry_flag::READY);
"holds_server_grab": "true if it holds the server grab: no other client is served" =>
    client.flag(entry_flag::GRABS_SERVER);
"grabs_pointer": "true if it grabs the pointer; always false if xqos serves the server through libc" =>
    client.flag(entry_flag::GRABS_POINTER);
"grabs_keyboard": "the same for the keyboard" => client.flag(entry_flag::GRABS_KEYBOARD);
"charged_ms" counter("xqos_client_charged_seconds"):
    "server time that it caused, including a window manager's work for it" =>
    time(client.entry.charged_ns);
"connected_ms": "time since it connected" => time(client.now_ns.saturating_sub(client.entry.connected_ns));
"reserved_time_ms": "server time paid from its reservation" => time(client.entry.reserved_time_ns);
"slices": "times it was served" => count(client.entry.slices);
"longest_request.name": "name of its longest request" => client.longest(Value::Text(client.longest_request.clone()));
"longest_request.ms" gauge("xqos_client_longest_request_seconds"): "processor time of its longest request" =>
    client.longest(time(client.entry.longest_request_ns));
"longest_request.major": "major opcode of its longest request" =>
    client.longest(count(opcodes(client.entry.longest_request).0));
"longest_request.minor": "minor opcode of its longest request" =>
    client.longest(count(opcodes(client.entry.longest_request).1));
"group.weight": "weight of its group; null if not set" =>
    client.group(or_unset(client.entry.group_weight, 100.0));
"group.cap": "maximum share of its group; null if not set" =>
    client.group(or_unset(client.entry.group_cap_ppm, 1e6));
"group.reservation.budget_ms": "budget of its group" => client.shared(time_of_us(client.entry.group_budget_us));
"group.reservation.period_ms": "period of that budget" => client.shared(time_of_us(client.entry.group_period_us));
"group.reservation.hard": "true if the group is held back once its budget is used up" =>
    client.shared(Value::Flag(client.entry.group_kind().is_hard()));
"group.reservation.soft": "best-effort or paper; null if hard" =>
    client.shared(soft(client.entry.group_kind()));
"reservation.budget_ms": "its own budget" => client.own(time_of_us(client.entry.budget_us));
"reservation.period_ms": "period of that budget" => client.own(time_of_us(client.entry.period_us));
"reservation.hard": "true if it is held back once its budget is used up" =>
    client.own(Value::Flag(client.entry.kind().is_hard()));
"reservation.soft": "best-effort or paper; null if hard" => client.own(soft(client.entry.kind()));
"reservation.held_back": "true while it is held back, until its next period" =>
    client.own(client.flag(entry_flag::HELD_BACK));
"reservation.deadline_in_ms": "time until the end of its period" =>
    client.own(Value::Time((i128::from(client.entry.deadline_ns) - i128::from(client.now_ns)) as f64));
"reservation.ratio" sum("xqos_client_reserved_ratio"): "its own budget / period" =>
    client.own(Value::Number(f64::from(client.entry.budget_us) / f64::from(client.entry.period_us.max(1))));
"measured.state": "what auto finds: gathering, periodic, aperiodic or silent; null without a trace" =>
    Value::or_none(client.measured, |report| Value::Text(state(report).to_owned()));
"measured.period_ms": "period that auto would reserve; null: none" =>
    Value::or_none(client.measured.and_then(|report| report.need), |need| time(need.period_ns));
"measured.budget_ms": "budget that auto would reserve; null: none" =>
    Value::or_none(client.measured.and_then(|report| report.need), |need| time(need.budget_ns));
"measured.confidence": "confidence of auto, 0 to 1" =>
    Value::or_none(client.measured, |report| Value::Number(report.confidence));
}

impl ClientSample {
    /// `running`: the fraction of the time in slices during which the server had a processor.
    pub fn new(entry: &ClientEntry, before: Option<&ClientList>, now_ns: u64, running: f64) -> ClientSample {
        let same = |other: &&ClientEntry| connection(other) == connection(entry);
        let earlier = before.and_then(|list| Some((list.now_ns, list.clients.iter().find(same)?)));
        let new = ClientEntry::default();
        let (since_ns, earlier) = earlier.unwrap_or((entry.connected_ns, &new));
        let elapsed_ns = now_ns.saturating_sub(since_ns).max(1) as f64;
        let part = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed_ns;
        let elapsed_share = part(entry.server_time_ns, earlier.server_time_ns);
        ClientSample {
            now_ns,
            share: elapsed_share * running,
            elapsed_share,
            charged_share: part(entry.charged_ns, earlier.charged_ns) * running,
            requests_per_s: part(entry.requests, earlier.requests) * 1e9,
            used: part(entry.reserved_time_ns, earlier.reserved_time_ns) * f64::from(entry.period_us)
                / f64::from(entry.budget_us.max(1)),
            waits: std::array::from_fn(|class| entry.waits[class].wrapping_sub(earlier.waits[class])),
            ..ClientSample::of(entry)
        }
    }

    /// The sum of several clients, for a table. Settings of single clients are not in it.
    pub fn sum<'a>(clients: impl IntoIterator<Item = &'a ClientSample>) -> ClientSample {
        let mut sum = ClientSample::default();
        let mut processes = BTreeSet::new();
        for client in clients {
            if client.entry.longest_request_ns > sum.entry.longest_request_ns {
                sum.longest_request.clone_from(&client.longest_request);
            }
            sum.entry.absorb(&client.entry);
            sum.share += client.share;
            sum.elapsed_share += client.elapsed_share;
            sum.charged_share += client.charged_share;
            sum.requests_per_s += client.requests_per_s;
            // A process can have several connections.
            let share = client.process_share.filter(|_| processes.insert(client.entry.pid));
            sum.process_share = sum.process_share.map_or(share, |sum| Some(sum + share.unwrap_or(0.0)));
            sum.waits.iter_mut().zip(client.waits).for_each(|(sum, count)| *sum = sum.saturating_add(count));
            if let Some(times) = &client.responses {
                sum.responses.get_or_insert_default().absorb(times);
            }
        }
        sum
    }

    /// A client without per-interval figures.
    pub fn of(entry: &ClientEntry) -> ClientSample {
        ClientSample { entry: entry.clone(), ..ClientSample::default() }
    }

    /// Name for users: the program, or else the client.
    pub fn name(&self) -> String {
        match self.entry.name.as_str() {
            "" => format!("{:#x}", self.entry.client),
            name => printable(name),
        }
    }

    pub fn has(&self, flag: u32) -> bool {
        self.entry.flags & flag != 0
    }

    /// Returns true if its charged time differs noticeably from its own server time.
    pub fn is_charged_otherwise(&self) -> bool {
        let own_ns = self.entry.server_time_ns;
        self.entry.charged_ns.abs_diff(own_ns) > (own_ns / 100).max(1_000_000)
    }

    pub fn is_auto(&self) -> bool {
        self.entry.reservation_origin.as_str().starts_with("auto")
    }

    /// Its own or its group's reservation, for a table.
    fn reserved(&self) -> Option<String> {
        let typed = |(Reservation { budget, period }, kind): (Reservation, ReservationKind),
                     held: Option<&'static str>| {
            format!("{}/{} ms{}", budget.ms(), period.ms(), held.unwrap_or(words(kind)))
        };
        let held = self.has(entry_flag::HELD_BACK).then_some(" held");
        let of_group = || Some(typed(reservation_of_group(&self.entry)?, None) + " group");
        reservation_of(&self.entry).map(|own| typed(own, held)).or_else(of_group)
    }

    fn held_grabs(&self) -> Vec<&'static str> {
        GRABS.into_iter().filter(|(flag, ..)| self.has(*flag)).map(|(_, name, _)| name).collect()
    }

    fn flag(&self, flag: u32) -> Value {
        Value::Flag(self.has(flag))
    }

    fn by(&self) -> Value {
        let [reservation, settings] =
            [&self.entry.reservation_origin, &self.entry.settings_origin].map(|origin| known(origin.as_str()));
        let shown = reservation.or(settings).unwrap_or_default().to_owned();
        Value::Other(json!({ "reservation": reservation, "settings": settings }), shown)
    }

    fn answered(&self, value: impl FnOnce(&Histogram) -> Value) -> Value {
        match &self.responses {
            Some(times) if times.count() > 0 => value(times),
            Some(_) => Value::Other(Json::Null, "-".to_owned()),
            None => Value::None,
        }
    }

    fn own(&self, value: Value) -> Value {
        value.when(self.has(entry_flag::RESERVED))
    }

    fn group(&self, value: Value) -> Value {
        value.when(self.entry.group != 0)
    }

    fn shared(&self, value: Value) -> Value {
        value.when(self.entry.group_period_us != 0)
    }

    /// Returns true if others waited for less than its longest request, because its requests are cut.
    fn is_cut(&self) -> bool {
        let (whole_ns, part_us) = (self.entry.longest_request_ns, self.entry.longest_part_us);
        // The part is known in whole microseconds, and 0 if it is unknown.
        (1..us(whole_ns)).contains(&part_us) && of_ns(u64::from(part_us) * 1000) != of_ns(whole_ns)
    }

    fn longest(&self, value: Value) -> Value {
        value.when(self.entry.longest_request != 0)
    }
}

fn known(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn or_unset(value: u32, unit: f64) -> Value {
    Value::Number(f64::from(value) / unit).when(value != 0)
}

/// The rule of a soft reservation; null if it is hard.
fn soft(kind: ReservationKind) -> Value {
    Value::or_none(soft_rule(kind), |rule| Value::Text(rule.to_owned()))
}

fn state(report: RhythmReport) -> &'static str {
    match report.state {
        RhythmState::Gathering => "gathering",
        RhythmState::Periodic => "periodic",
        RhythmState::Aperiodic | RhythmState::GivenUp => "aperiodic",
        RhythmState::Silent => "silent",
    }
}

fn found(report: RhythmReport) -> Value {
    let need = report.need.map(|need| format!(" {} / {}", of_ns(need.budget_ns), of_ns(need.period_ns)));
    Value::Text(format!("{}{}, confidence {:.2}", state(report), need.unwrap_or_default(), report.confidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{client, entry};

    fn json(entry: &ClientEntry) -> serde_json::Value {
        serde_json::to_value(client(entry)).unwrap()
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
        for field in ["pid", "uid", "program", "title", "response", "reservation", "longest_request", "group"] {
            assert!(remote[field].is_null(), "{field}: {remote}");
        }
    }

    #[test]
    fn a_cut_request_has_a_column_for_the_time_that_others_waited() {
        let field = |title| CLIENT.iter().find(|field| field.title == title).unwrap();
        let blocking = |entry: &ClientEntry| field("BLOCKING").text(&client(entry));
        let shown = |longest_part_us| blocking(&ClientEntry { longest_part_us, ..entry() });
        assert_eq!(field("LONGEST REQUEST").text(&client(&entry())), "11.2 ms GetImage");
        assert_eq!(shown(300), "300 us");
        assert_eq!(shown(11_199), "", "it was not cut");
        assert_eq!(shown(0), "", "unknown");
        assert_eq!(blocking(&ClientEntry { longest_request_ns: 423_654, longest_part_us: 423, ..entry() }), "");
        let json = json(&ClientEntry { longest_part_us: 300, cuts: 9, ..entry() });
        assert_eq!((&json["longest_part_ms"], &json["cuts"]), (&json!(0.3), &json!(9)));
    }

    #[test]
    fn compositors_have_a_role() {
        assert_eq!(json(&ClientEntry { flags: entry_flag::COMPOSITOR, ..entry() })["role"], "compositor");
        assert!(json(&entry())["role"].is_null());
    }

    #[test]
    fn an_interval_covers_the_time_since_the_previous_sample() {
        let earlier = ClientEntry { server_time_ns: 2_000_000_000, requests: 123_000, ..entry() };
        let before = ClientList { now_ns: 9_000_000_000, clients: vec![earlier], ..ClientList::default() };
        let client = ClientSample::new(&entry(), Some(&before), 10_000_000_000, 0.5);
        assert_eq!((client.share, client.requests_per_s), (0.25, 456.0), "half of 0.5 s, as `running` is 0.5");
        assert_eq!(client.elapsed_share, 0.5);
    }

    #[test]
    fn a_sum_counts_each_process_once_and_keeps_the_longest_request() {
        let of = |pid, longest_request_ns, name: &str| ClientSample {
            share: 0.25,
            process_share: Some(0.5),
            longest_request: name.to_owned(),
            ..ClientSample::of(&ClientEntry {
                pid,
                longest_request_ns,
                longest_request: 1,
                waits: [1; WAITS],
                ..entry()
            })
        };
        let sum = ClientSample::sum(&[of(7, 1, "short"), of(7, 9, "long"), of(8, 2, "short")]);
        assert_eq!((sum.share, sum.process_share, sum.longest_request.as_str()), (0.75, Some(1.0), "long"));
        assert_eq!((sum.entry.waits, sum.entry.requests), ([3; WAITS], 3 * entry().requests));
        assert!(reservation_of(&sum.entry).is_none());
    }
}
