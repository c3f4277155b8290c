// SPDX-License-Identifier: MIT
//! The server as a whole in a sample, and its fields.

use super::{Readings, ms};
use crate::field::{Value, count, fields, part, time, time_of_us};
use crate::processor::Processor;
use serde_json::json;
use xqos_abi::{LongRequest, ServerInfo, entry_flag};
use xqos_text::time::ago_of_ms;
use xqos_trace::names::Names;

#[derive(Clone, Debug, Default)]
pub struct ServerSample {
    pub info: ServerInfo,
    /// Number of clients except this one.
    pub clients: usize,
    pub share: f64,
    pub outside_share: f64,
    pub running: f64,
    pub limit_ppm: u32,
    pub utilization_used: f64,
    /// Scheduling of the server's thread, if it is not the default.
    pub cpu: Option<Processor>,
    pub longest_requests: Vec<Longest>,
    pub cpu_ns: u64,
    pub lost: u64,
}

fields! {
pub const SERVER of server: ServerSample as JSON;

"policy": "name of the scheduling policy" => Value::Text(server.info.policy.name().to_owned());
"clients" gauge("xqos_clients"): "connected clients" => count(server.clients);
"clients_limit" gauge("xqos_clients_limit"): "maximum number of clients; 0: not known" =>
    count(server.info.clients_limit);
"armed" gauge("xqos_armed"): "false after xqos stepped aside" => Value::Flag(server.info.armed);
"share": "part of the time spent on clients" => Value::Share(server.share);
"outside_share": "part of the time in which its thread ran for anything else, such as input and updates of viewers" =>
    Value::Share(server.outside_share);
"running": "part of the slices' time in which the server had a processor; shares count only that part" =>
    Value::Share(server.running);
"busy_ms" counter("xqos_server_busy_seconds"): "server time spent on clients" => time(server.info.busy_ns);
"cpu_ms" counter("xqos_server_cpu_seconds"): "processor time of the server's thread" => time(server.cpu_ns);
"early_ends" counter("xqos_early_ends"): "slices ended early for another client" => count(server.info.early_ends);
"utilization_admitted" gauge("xqos_utilization_admitted"): "sum of budget / period of all reservations" =>
    part(server.info.admitted_utilization_ppm);
"utilization_limit" gauge("xqos_utilization_limit"): "maximum of that sum" => part(server.limit_ppm);
"utilization_used": "part of the time paid from reservations" => Value::Number(server.utilization_used);
"blocking_ms" gauge("xqos_blocking_seconds"): "longest recent time for which a request delayed a reserved client" =>
    time_of_us(server.info.blocking_observed_us);
"reservations" gauge("xqos_reservations"): "clients with a reservation" => count(server.info.reservations);
"cpu": "kernel scheduling of the server's thread, as for a client" =>
    Value::or_none(server.cpu.as_ref(), Processor::value);
"longest_requests": "array of name, ms, ago_ms, pid, client, program" =>
    Value::Other(json!(server.longest_requests), String::new());
}

#[derive(Clone, Debug)]
pub struct Longest {
    pub name: String,
    pub ns: u64,
    /// Time since its end.
    pub ago_ms: f64,
    pub pid: i32,
    pub client: u32,
    pub program: String,
}

fields! {
pub const LONGEST of longest: Longest as JSON;

"ms" number("LENGTH", 8, ""): "processor time of the request" => time(longest.ns);
"name" elastic("REQUEST", 8, ""): "name of the request" => Value::Text(longest.name.clone());
"program" elastic("PROGRAM", 8, ""): "program of its client" => Value::Text(longest.program.clone());
"pid" number("PID", 7, ""): "process of its client; 0 on another machine" =>
    match longest.pid { 0 => Value::Other(json!(0), "remote".to_owned()), pid => count(pid) };
"ago_ms" number("AGO", 8, ""): "time since its end" => Value::Other(json!(longest.ago_ms), ago_of_ms(longest.ago_ms));
"client": "first resource id of its client" => Value::Text(format!("{:#x}", longest.client));
}

impl ServerSample {
    /// Figures since earlier readings, or since the server's start. The longest requests are queried separately.
    pub fn new(now: &Readings, before: Option<&Readings>) -> ServerSample {
        let used = |readings: &Readings| {
            let reserved_ns = readings.list.clients.iter().map(|entry| entry.reserved_time_ns).sum::<u64>();
            [readings.info.busy_ns, readings.list.server_cpu_ns, reserved_ns]
        };
        let (since, then) = (used(now), before.map_or([0; 3], used));
        let [busy_ns, cpu_ns, reserved_ns] = [0, 1, 2].map(|at: usize| since[at].saturating_sub(then[at]));
        let elapsed_ns = now.elapsed_ns(before).max(1) as f64;
        let part = |ns: u64| ns as f64 / elapsed_ns;
        // A slice lasts longer than the server's work in it if the kernel preempts the server.
        let running = (cpu_ns as f64 / busy_ns.max(1) as f64).min(1.0);
        let Readings { info, list, limit_ppm, .. } = now;
        ServerSample {
            clients: list.clients.iter().filter(|entry| entry.flags & entry_flag::YOU == 0).count(),
            share: part(busy_ns) * running,
            running,
            outside_share: part(cpu_ns.saturating_sub(busy_ns)),
            limit_ppm: *limit_ppm,
            utilization_used: part(reserved_ns),
            cpu: i32::try_from(info.server_pid).ok().and_then(Processor::of),
            cpu_ns: list.server_cpu_ns,
            info: info.clone(),
            ..ServerSample::default()
        }
    }

    /// Reason why xqos has stepped aside; `None` if it has not.
    pub fn aside(&self) -> Option<&str> {
        (!self.info.armed).then_some(&self.info.reason)
    }
}

impl Longest {
    pub(super) fn new(request: &LongRequest, now_ns: u64, names: &Names) -> Longest {
        Longest {
            name: names.of(request.request),
            ns: request.ns,
            ago_ms: ms(now_ns.saturating_sub(request.at_ns)),
            pid: request.pid,
            client: request.client,
            program: request.name.clone(),
        }
    }
}
