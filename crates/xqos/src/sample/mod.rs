// SPDX-License-Identifier: MIT
//! One look at the server: its own figures (ListClients), and response times from the trace in between.
//!
//! [`Sampler`] takes samples; the screen, the tables, the JSON and the metrics are made from a [`Sample`], which is the schema
//! of `list --json` and `top --json`.

pub mod client;
pub mod departed;
pub mod measured;
mod sampler;
mod server;

pub use client::{Client, GroupReserved, Reserved};
pub use sampler::Sampler;
use serde::Serialize;
pub use server::{Longest, Server};
pub use xqos_trace::show::Departed;

/// The version of the schema. A field that is added leaves it as it is; one that goes, or means something else, raises it.
pub const VERSION: u32 = 1;

/// The fields of the JSON, for the help of the commands that write it.
macro_rules! json_help {
    () => {
        "\
JSON: the same of `xqos list` and `xqos top`. version (1), now_ms, interval_ms
(null: the figures are since each client connected), server, clients, departed.

server: policy, clients (their number), clients_limit (how many it can have; 0:
not known), share (of the time, for clients), outside_share (the server's
processor time for anything else: input, updates of viewers), running (of the
time of slices, the part in which the server had a processor; shares count that
part), utilization_admitted, utilization_limit, utilization_used, blocking_ms,
cpu (null: as usual; or budget_ms and period_ms, priority, or nice),
reservations, and longest_requests (an array: name, ms, ago_ms, pid, client).

clients, an array: client, pid, uid, program (null, as pid and uid, for a client
of another machine), title (of a window; null in list), role (null, compositor,
window manager, or window manager and compositor), local, host (null where it is
local), group (null, or name, and weight, cap and reservation: null where not
set), by (reservation and settings: null, itself, hand, or a name), you, ready,
holds_server_grab, grabs_pointer and grabs_keyboard (false where the server is
served from below: it cannot be seen), connected_ms (time since), share (of the
interval), server_time_ms, charged_share and charged_ms (of what it is the cause
of: a window manager's work counts for the client that makes it),
reserved_time_ms (paid from the reservation),
requests, requests_per_s (in the interval), slices, response (null, or count,
p50_ms, p99_ms, worst_ms of the interval), waiting_ms (null where it has nothing
to wait for, or without a trace), waited_ms, longest_wait_ms, longest_request
(null, or name, ms, major, minor), grabs, grabbed_ms, cpu (as above), weight,
fixed_priority, sync_priority, depletions, misses, measured (null without a
trace, or what auto would find: state, one of gathering, periodic, aperiodic and
silent, period_ms and budget_ms of what it would reserve, null: nothing, and
confidence, 0 to 1), and reservation (null, or budget_ms, period_ms, hard, soft
(null where it is hard, or best-effort or paper), held_back, budget_left_ms,
deadline_in_ms, used (part of the reservation, in the interval)).

departed, an array: clients that left in the interval (since the server began
where that is null), summed up: program (null: programs that are too many to be
told apart), uid, clients (how many), share, server_time_ms, requests,
waited_ms, longest_wait_ms (of all since the server began)."
    };
}
pub(crate) use json_help;

#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub version: u32,
    pub now_ms: f64,
    pub interval_ms: Option<f64>,
    pub server: Server,
    pub clients: Vec<Client>,
    pub departed: Vec<Departed>,
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::Names;
    use serde_json::Value;
    use xqos_abi::{ClientEntry, LongRequest, entry_flag};

    /// With a value in every field that may be null.
    fn sample() -> Sample {
        let entry = ClientEntry {
            pid: 1,
            flags: entry_flag::RESERVED,
            longest_request: 73,
            group: 1,
            group_period_us: 10_000,
            ..ClientEntry::default()
        };
        let names = Names::default();
        let longest = Longest::new(&LongRequest::default(), 0, &names);
        let response = Some(client::Response { count: 1, p50_ms: 1.0, p99_ms: 1.0, worst_ms: 1.0 });
        let measured = Some(measured::Found { state: "periodic", period_ms: None, budget_ms: None, confidence: 1.0 });
        let client = Client { response, measured, ..Client::new(&entry, &client::Beside::new(0, &names)) };
        let server = Server { longest_requests: vec![longest], ..Server::default() };
        Sample {
            version: VERSION,
            now_ms: 0.0,
            interval_ms: None,
            server,
            clients: vec![client],
            departed: vec![Departed::default()],
        }
    }

    fn fields(value: &Value) -> Vec<String> {
        match value {
            Value::Object(object) => {
                object.iter().flat_map(|(name, value)| [vec![name.clone()], fields(value)].concat()).collect()
            }
            Value::Array(list) => list.iter().flat_map(fields).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_field_of_the_json_is_in_the_help() {
        let fields = fields(&serde_json::to_value(sample()).unwrap());
        assert!(fields.len() > 60, "{fields:?}");
        let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
        let words: Vec<&str> = json_help!().split(|letter| !is_letter(letter)).collect();
        for field in fields {
            assert!(words.contains(&field.as_str()), "{field} is not in the help");
        }
        assert!(json_help!().contains(&format!("version ({VERSION})")));
    }
}
