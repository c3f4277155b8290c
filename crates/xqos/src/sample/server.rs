// SPDX-License-Identifier: MIT
//! The figures of the server as a whole.

use super::ms;
use crate::client::printable;
use crate::processor::Processor;
use crate::requests::Names;
use serde::Serialize;
use xqos_abi::{ClientList, LongRequest, ServerInfo, entry_flag};

#[derive(Clone, Debug, Default, Serialize)]
pub struct Server {
    pub policy: &'static str,
    pub clients: usize,
    /// How many clients the server can have; 0: not known.
    pub clients_limit: u32,
    pub share: f64,
    pub outside_share: f64,
    /// Of the time of slices, the part in which the server had a processor.
    pub running: f64,
    pub utilization_admitted: f64,
    pub utilization_limit: f64,
    /// Server time paid from reservations.
    pub utilization_used: f64,
    pub blocking_ms: f64,
    /// How the kernel schedules the server's thread, where that is not as usual.
    pub cpu: Option<Processor>,
    pub reservations: u32,
    pub longest_requests: Vec<Longest>,
    /// Connections, also those that are being set up and our own.
    #[serde(skip)]
    pub connected: u32,
    #[serde(skip)]
    pub busy_s: f64,
    #[serde(skip)]
    pub cpu_s: f64,
    #[serde(skip)]
    pub early_ends: u64,
    /// Why xqos stepped aside.
    #[serde(skip)]
    pub aside: Option<String>,
    #[serde(skip)]
    pub lost: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Longest {
    pub name: String,
    pub ms: f64,
    /// Since its end.
    pub ago_ms: f64,
    pub pid: i32,
    pub client: String,
    #[serde(skip)]
    pub program: String,
}

/// What the server has told since a sample, or since it began.
struct Spent {
    elapsed_ns: u64,
    busy_ns: u64,
    cpu_ns: u64,
    reserved_ns: u64,
}

impl Spent {
    fn since(before: Option<&(ClientList, ServerInfo)>, list: &ClientList, info: &ServerInfo) -> Spent {
        let reserved = |list: &ClientList| list.clients.iter().map(|entry| entry.reserved_time_ns).sum::<u64>();
        match before {
            Some((before_list, before_info)) => Spent {
                elapsed_ns: list.now_ns.saturating_sub(before_list.now_ns),
                busy_ns: info.busy_ns.saturating_sub(before_info.busy_ns),
                cpu_ns: list.server_cpu_ns.saturating_sub(before_list.server_cpu_ns),
                reserved_ns: reserved(list).saturating_sub(reserved(before_list)),
            },
            None => Spent {
                elapsed_ns: info.uptime_ns,
                busy_ns: info.busy_ns,
                cpu_ns: list.server_cpu_ns,
                reserved_ns: reserved(list),
            },
        }
    }
}

impl Server {
    /// `before` is the sample before this one. The longest requests and the limit of reservations are asked for apart.
    pub fn new(list: &ClientList, info: &ServerInfo, before: Option<&(ClientList, ServerInfo)>) -> Server {
        let spent = Spent::since(before, list, info);
        let part = |ns: u64| ns as f64 / spent.elapsed_ns.max(1) as f64;
        // Slices last longer than the server works in them where the kernel gives the processor to others.
        let running = (spent.cpu_ns as f64 / spent.busy_ns.max(1) as f64).min(1.0);
        Server {
            policy: info.policy.name(),
            clients: list.clients.iter().filter(|entry| entry.flags & entry_flag::YOU == 0).count(),
            clients_limit: info.clients_limit,
            connected: info.clients.into(),
            share: part(spent.busy_ns) * running,
            running,
            outside_share: part(spent.cpu_ns.saturating_sub(spent.busy_ns)),
            utilization_admitted: f64::from(info.admitted_utilization_ppm) / 1e6,
            utilization_limit: 0.0,
            utilization_used: part(spent.reserved_ns),
            blocking_ms: f64::from(info.blocking_observed_us) / 1e3,
            cpu: i32::try_from(info.server_pid).ok().and_then(Processor::of),
            reservations: info.reservations,
            longest_requests: Vec::new(),
            busy_s: info.busy_ns as f64 / 1e9,
            cpu_s: list.server_cpu_ns as f64 / 1e9,
            early_ends: info.early_ends,
            aside: (!info.armed).then(|| info.reason.clone()),
            lost: 0,
        }
    }
}

impl Longest {
    pub(super) fn new(request: &LongRequest, now_ns: u64, names: &Names) -> Longest {
        Longest {
            name: names.of(request.request),
            ms: ms(request.ns),
            ago_ms: ms(now_ns.saturating_sub(request.at_ns)),
            pid: request.pid,
            client: format!("{:#x}", request.client),
            program: printable(&request.name),
        }
    }
}
