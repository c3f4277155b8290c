// SPDX-License-Identifier: MIT
//! `xqos trace stats`: summarises a trace.
//!
//! If several clients of a program have disconnected, one row shows their sum: a script that starts a new process for
//! each query takes one row.

use super::open;
use anyhow::Result;
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use xqos_agent::field::{Value, columns_help, count, fields, json_help, table, time};
use xqos_agent::sample::{DEPARTED, Departed, departed};
use xqos_cli::output;
use xqos_core::PolicyKind;
use xqos_text::time::of_ms;
use xqos_trace::histogram::Histogram;
use xqos_trace::model::{Client, Figures, Identity, Model};
use xqos_trace::names::Names;
use xqos_trace::show;

/// Summarises a trace: shares, response times, missed deadlines, the longest requests, and causes of delays
#[derive(Args, Debug)]
#[command(after_help = help())]
pub struct Arguments {
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos trace stats desk.trace
  xqos trace stats --json desk.trace | jq '.delays[0]'

A burst begins when a client has work and ends when all of it is done, or with
the trace; its length is the response time. A client waits while it has work and
is not served: for slices of other clients, for the server's own work, or
because the server has no processor. Only --kernel tells the last two apart.

JSON: seconds, policy, decisions, early_ends, lost_records, clients, departed,
delays (an array of who, why, ms), other_delays_ms (the rest of the delays),
worst (an array of at_s, who, waited_ms, text).";

fn help() -> String {
    let columns = columns_help(CLIENT, 80);
    let clients = json_help("clients, an array", CLIENT);
    let departed = json_help("departed, an array of programs of which more than one client has left", DEPARTED);
    format!("{EXAMPLES}\n\nColumns:\n{columns}\n{clients}\n{departed}")
}

impl Arguments {
    pub fn perform(&self) -> Result<()> {
        let (trace, names) = open(&self.file)?;
        let mut model = Model::new();
        for event in trace.events() {
            model.take(&event);
        }
        model.conclude();
        let statistics = Statistics::of(&model, &names);
        if self.json { output::json(&statistics) } else { output::print(&statistics.text()) }
    }
}

/// Maximum number of delays in the JSON, and of delays, waits and kinds of requests in the text.
const DELAYS: usize = 20;
const SHOWN: usize = 10;

#[derive(Debug, Serialize)]
struct Statistics {
    seconds: f64,
    policy: Option<&'static str>,
    decisions: u64,
    early_ends: u64,
    lost_records: u64,
    clients: Vec<ClientFigures>,
    departed: Vec<Departed>,
    /// Largest first.
    delays: Vec<Delay>,
    other_delays_ms: f64,
    worst: Vec<Worst>,
}

#[derive(Debug, Serialize)]
struct Delay {
    who: String,
    why: String,
    ms: f64,
}

#[derive(Debug, Serialize)]
struct Worst {
    at_s: f64,
    who: String,
    waited_ms: f64,
    text: String,
}

#[derive(Debug)]
struct ClientFigures {
    name: String,
    identity: Identity,
    total: Figures,
    share: f64,
    is_summed: bool,
    /// Name of its longest request.
    longest: Option<String>,
    /// The kinds of its requests by total time, if requests were timed.
    kinds: Vec<RequestFigures>,
}

#[derive(Debug, Serialize)]
struct RequestFigures {
    name: String,
    count: u64,
    ms: f64,
    longest_ms: f64,
    bytes: u64,
}

fields! {
const CLIENT of client: ClientFigures as JSON;

"pid": "process id" => count(client.identity.pid);
"name" elastic("CLIENT", 8, ""): "name of the client" => Value::Text(client.name.clone());
"client": "its first resource id" => Value::Text(format!("{:#x}", client.identity.base));
"summed": "true if it has left, and departed includes it" => Value::Flag(client.is_summed);
"share" number("SHARE", 6, ""): "share of the trace's time" => Value::Share(client.share);
"server_time_ms" number("TIME", 7, ""): "server time used" => time(client.total.server_time_ns);
"reserved_time_ms": "the part that was paid from its reservation" => time(client.total.reserved_time_ns);
"requests" number("REQUESTS", 8, ""): "requests served" => count(client.total.requests);
"slices": "times it was served" => count(client.total.slices);
"responses.count" number("BURSTS", 8, ""): "number of bursts" => count(client.responses().count());
"responses.mean_ms" number("MEAN", 7, ""): "mean response time" => time(client.responses().mean_ns());
"responses.p50_ms" number("P50", 7, ""): "median response time" => time(client.responses().quantile_ns(0.5));
"responses.p99_ms" number("P99", 7, ""): "99th percentile of the response time" =>
    time(client.responses().quantile_ns(0.99));
"responses.worst_ms" number("WORST", 7, ""): "longest response time" => time(client.responses().worst_ns());
"waited_ms" number("WAITED", 7, ""): "total time from arrival to dispatch" => time(client.total.waited_ns);
"longest_wait_ms": "longest time from arrival to dispatch" => time(client.total.longest_wait_ns);
"misses" number("MISSED", 7, ""): "deadlines missed" => count(client.total.misses);
"cuts" number("CUTS", 7, ""): "times another client was served between two parts of its requests" =>
    count(client.total.cuts).if_any();
"" elastic("LONGEST REQUEST", 8, ""): "its processor time and name" =>
    Value::or_none(client.longest.as_ref(), |name| Value::Text(format!("{} {name}", of_ms(client.longest_ms()))));
"longest_request.name": "name of its longest request" => Value::or_none(client.longest.clone(), Value::Text);
"longest_request.ms": "processor time of that request" =>
    Value::Number(client.longest_ms()).when(client.longest.is_some());
"depletions": "times its budget was used up" => count(client.total.depletions);
"grabs": "server grabs" => count(client.total.grabs);
"grabbed_ms": "time for which it held the server grab" => time(client.total.grabbed_ns);
"longest_grab_ms": "its longest server grab" => time(client.total.longest_grab_ns);
"inputs": "input events that it got" => count(client.total.inputs);
"exposes": "Expose events that it got" => count(client.total.exposes);
"finished": "rests of its cut requests that were executed early, for another client" => count(client.total.finished);
"without_processor_ms": "time in which it could run but had no processor; 0 without --kernel" =>
    time(client.total.without_processor_ns);
"kinds": "array of name, count, ms, longest_ms, bytes; with level requests" =>
    Value::Other(json!(client.kinds), String::new());
}

impl ClientFigures {
    fn of(client: &Client, name: String, share: f64, is_summed: bool, names: &Names) -> ClientFigures {
        let total = client.total.clone();
        let kind = |(&request, kind): (&u32, &xqos_trace::model::RequestTotals)| RequestFigures {
            name: names.of(request),
            count: kind.count,
            ms: ms(kind.ns),
            longest_ms: ms(kind.longest_ns),
            bytes: kind.bytes,
        };
        let mut kinds: Vec<RequestFigures> = total.kinds.iter().map(kind).collect();
        kinds.sort_by(|a, b| b.ms.total_cmp(&a.ms));
        let longest = total.longest_request.map(|(_, request)| names.of(request));
        ClientFigures { name, identity: client.identity.clone(), total, share, is_summed, longest, kinds }
    }

    fn responses(&self) -> &Histogram {
        &self.total.responses
    }

    fn longest_ms(&self) -> f64 {
        self.total.longest_request.map_or(0.0, |(ns, _)| ms(ns))
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The sums of programs of which more than one client has left, by user and name.
struct Programs(BTreeMap<(u32, String), Departed>);

impl Programs {
    fn of(model: &Model, span_ns: f64) -> Programs {
        let mut programs: BTreeMap<(u32, String), Departed> = BTreeMap::new();
        for client in model.clients().iter().filter(|client| client.gone.is_some()) {
            let Identity { uid, program, .. } = &client.identity;
            let (sum, total) = (programs.entry((*uid, program.clone())).or_default(), &client.total);
            (sum.uid, sum.program) = (Some(*uid), (!program.is_empty()).then(|| program.clone()));
            sum.clients += 1;
            sum.share += total.server_time_ns as f64 / span_ns;
            sum.server_time_ms += ms(total.server_time_ns);
            sum.requests += total.requests;
            sum.waited_ms += ms(total.waited_ns);
            sum.longest_wait_ms = sum.longest_wait_ms.max(ms(total.longest_wait_ns));
        }
        programs.retain(|_, sum| sum.clients > 1);
        Programs(programs)
    }

    /// The sum that includes this client, if any.
    fn sum_of(&self, client: &Client) -> Option<&Departed> {
        let Identity { uid, program, .. } = &client.identity;
        client.gone.and_then(|_| self.0.get(&(*uid, program.clone())))
    }

    /// "xwd x140" for clients that are summed up, otherwise the client's own name.
    fn name(&self, model: &Model, key: usize) -> String {
        match model.clients().get(key).and_then(|client| self.sum_of(client)) {
            Some(sum) => format!("{} x{}", departed::name(sum), sum.clients),
            None => model.name(key),
        }
    }
}

impl Statistics {
    /// Statistics of all records that the model has taken.
    fn of(model: &Model, names: &Names) -> Statistics {
        let span_ns = model.span_ns().max(1) as f64;
        let programs = Programs::of(model, span_ns);
        let figures = |(key, client): (usize, &Client)| {
            let share = client.total.server_time_ns as f64 / span_ns;
            ClientFigures::of(client, model.name(key), share, programs.sum_of(client).is_some(), names)
        };
        let mut clients: Vec<ClientFigures> = model.clients().iter().enumerate().map(figures).collect();
        clients.sort_by_key(|client| Reverse(client.total.server_time_ns));
        let mut delays = delays(model, names, &programs);
        let others = delays.split_off(DELAYS.min(delays.len()));
        let worst = model.worst.iter().map(|burst| Worst {
            at_s: model.began.map_or(0, |began| burst.activation.since(began)) as f64 / 1e9,
            who: model.name(burst.key),
            waited_ms: ms(burst.waited_ns),
            text: show::burst(burst, model, names),
        });
        let mut departed: Vec<Departed> = programs.0.into_values().collect();
        departed.sort_by(|a, b| b.share.total_cmp(&a.share));
        Statistics {
            seconds: span_ns / 1e9,
            policy: model.policy.map(PolicyKind::name),
            decisions: model.decisions,
            early_ends: model.early_ends,
            lost_records: model.lost,
            clients,
            departed,
            delays,
            other_delays_ms: others.iter().map(|delay| delay.ms).sum(),
            worst: worst.collect(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{:.3} s, policy {}, {} decisions, {} slices ended early",
            self.seconds,
            self.policy.unwrap_or("unknown"),
            self.decisions,
            self.early_ends
        );
        if self.lost_records > 0 {
            text += &format!("; {} records are missing", self.lost_records);
        }
        let has_work = |total: &Figures| total.slices > 0 || total.responses.count() > 0;
        let is_shown = |client: &&ClientFigures| has_work(&client.total) && !client.is_summed;
        let clients: Vec<&ClientFigures> = self.clients.iter().filter(is_shown).collect();
        text += &format!("\n\n{}{}", table(CLIENT, &clients).render(None), departed::text(&self.departed, None));
        for ClientFigures { name, total, .. } in self.clients.iter().filter(|one| one.total.without_processor_ns > 0) {
            let time = of_ms(ms(total.without_processor_ns));
            text += &format!("{name} was ready but had no processor for {time}\n");
        }
        for ClientFigures { name, total, .. } in self.clients.iter().filter(|client| client.total.grabs > 0) {
            let times = if total.grabs == 1 { "once".to_owned() } else { format!("{} times", total.grabs) };
            let [all, longest] = [total.grabbed_ns, total.longest_grab_ns].map(|ns| of_ms(ms(ns)));
            text += &format!("{name} held the server grab {times}, for {all} in all and {longest} at most\n");
        }
        text + &self.delays_text() + &self.expensive()
    }

    fn delays_text(&self) -> String {
        let (mut text, (named, others)) = (String::new(), self.delays.split_at(SHOWN.min(self.delays.len())));
        if !named.is_empty() {
            text += "\nDelays, in total\n";
            named.iter().for_each(|one| text += &format!("{:>10}  {}: {}\n", of_ms(one.ms), one.who, one.why));
            let others_ms = others.iter().map(|delay| delay.ms).sum::<f64>() + self.other_delays_ms;
            if others_ms > 0.0 {
                text += &format!("{:>10}  others\n", of_ms(others_ms));
            }
        }
        if !self.worst.is_empty() {
            text += "\nThe longest waits\n";
            self.worst.iter().take(SHOWN).for_each(|worst| text += &format!("  {}\n", worst.text));
        }
        text
    }

    /// The kinds of requests that took the most time, if requests were timed.
    fn expensive(&self) -> String {
        let mut kinds: Vec<(&ClientFigures, &RequestFigures)> =
            self.clients.iter().flat_map(|client| client.kinds.iter().map(move |kind| (client, kind))).collect();
        kinds.sort_by(|a, b| b.1.ms.total_cmp(&a.1.ms));
        let line = |&(client, kind): &(&ClientFigures, &RequestFigures)| {
            let [all, mean, longest] = [kind.ms, kind.ms / kind.count.max(1) as f64, kind.longest_ms].map(of_ms);
            let (who, RequestFigures { name, count, .. }) = (&client.name, kind);
            format!("{all:>10}  {who} {name}: {count} requests, {mean} each, {longest} the longest\n")
        };
        match kinds.is_empty() {
            true => String::new(),
            false => format!(
                "\nThe most expensive kinds of requests\n{}",
                kinds.iter().take(SHOWN).map(line).collect::<String>()
            ),
        }
    }
}

/// The delays, largest first. Clients that are summed up have a common name.
fn delays(model: &Model, names: &Names, programs: &Programs) -> Vec<Delay> {
    let name = |key| programs.name(model, key);
    let mut sums: BTreeMap<(String, String), u64> = BTreeMap::new();
    for (key, why, ns) in model.delays() {
        let sum = sums.entry((name(key), show::cause_of(&why, model, names, name))).or_default();
        *sum = sum.saturating_add(ns);
    }
    let mut delays: Vec<Delay> = sums.into_iter().map(|((who, why), ns)| Delay { who, why, ms: ms(ns) }).collect();
    delays.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    delays
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::trace::{Entry, Event};
    use xqos_core::{ClientId, Fact, Service, Time};

    /// Serves a client between two times in ms. The client has waited since `activation`.
    fn serve(model: &mut Model, id: u16, activation: u64, (from, to): (u64, u64)) {
        const MS: u64 = 1_000_000;
        let client = ClientId(id);
        let service = Service::new(client, Time(from * MS), Time(to * MS));
        let served = Entry::Fact(Fact::Served(Service { requests: 2, last_request: 73, ..service }));
        model.take(&Event { at: Time(activation * MS), what: Entry::Fact(Fact::Arrived { client }) });
        model.take(&Event { at: Time(to * MS), what: served });
    }

    fn connect(model: &mut Model, id: u16, pid: u32, name: [u8; 16]) {
        let (client, at) = (ClientId(id), model.now);
        let identity = Entry::Identity { client, pid, base: pid << 8, uid: 7 };
        for what in [
            Entry::Fact(Fact::Connected { client, descriptor: 4 }),
            identity,
            Entry::Name { client, part: 0, bytes: name },
        ] {
            model.take(&Event { at, what });
        }
    }

    #[test]
    fn departed_clients_are_summed_up_by_program() {
        let mut model = Model::new();
        connect(&mut model, 1, 10, *b"mpv\0\0\0\0\0\0\0\0\0\0\0\0\0");
        for turn in 0..5 {
            let begin = turn * 20;
            connect(&mut model, 2, 100 + turn as u32, *b"xwd\0\0\0\0\0\0\0\0\0\0\0\0\0");
            serve(&mut model, 2, begin, (begin, begin + 4));
            serve(&mut model, 1, begin + 1, (begin + 4, begin + 5));
            model.take(&Event { at: model.now, what: Entry::Fact(Fact::Disconnected { client: ClientId(2) }) });
        }
        connect(&mut model, 2, 200, *b"xprop\0\0\0\0\0\0\0\0\0\0\0");
        serve(&mut model, 2, 90, (90, 100));
        model.take(&Event { at: model.now, what: Entry::Fact(Fact::Disconnected { client: ClientId(2) }) });

        let statistics = Statistics::of(&model, &Names::default());
        let [xwd] = &statistics.departed[..] else { panic!("{:?}", statistics.departed) };
        assert_eq!((xwd.program.as_deref(), xwd.uid, xwd.clients, xwd.requests), (Some("xwd"), Some(7), 5, 10));
        assert!((xwd.share - 0.20).abs() < 1e-9, "20 ms of 100 ms: {}", xwd.share);
        let alone: Vec<&str> =
            statistics.clients.iter().filter(|one| !one.is_summed).map(|one| one.name.as_str()).collect();
        assert_eq!(alone, ["xprop (200)", "mpv (10)"], "the only one of its program stays a client");
        let shares =
            statistics.clients.iter().filter(|one| !one.is_summed).map(|one| one.share).sum::<f64>() + xwd.share;
        assert!((shares - 0.35).abs() < 1e-9, "the server was busy for 35 ms of 100 ms: {shares}");
        let [delay] = &statistics.delays[..] else { panic!("{:?}", statistics.delays) };
        assert_eq!((delay.who.as_str(), delay.why.as_str()), ("mpv (10)", "behind xwd x5 GetImage"));
        assert!((delay.ms - 15.0).abs() < 1e-9, "3 ms each time: {}", delay.ms);
    }
}
