// SPDX-License-Identifier: MIT
//! A sample of a server: its own figures (ListClients), and response times from the trace between two samples.
//!
//! [`Sampler`] takes samples. The screen, the tables and the JSON are generated from the fields ([`crate::field`]) of a
//! [`Sample`].

pub mod client;
pub mod departed;
mod sampler;
mod server;

use crate::field;
pub use client::{CLIENT, ClientSample};
use departed::ClientLists;
pub use departed::{DEPARTED, Departed};
pub use sampler::Sampler;
use serde::Serialize;
pub use server::{LONGEST, Longest, SERVER, ServerSample};
use xqos_abi::{ClientEntry, ClientList, ServerInfo};
use xqos_client::Control;

/// Version of the JSON schema, increased when a field is removed or changes its meaning, but not when one is added.
pub const VERSION: u32 = 1;

/// Columns and JSON fields, for the help of the commands that print them.
pub fn fields_help() -> String {
    format!(
        "Columns:\n{}\nJSON: the same of `xqos list` and `xqos top`. version ({VERSION}), now_ms, interval_ms\n\
         (null: the figures are since each client connected), server, clients, departed.\n\n{}\n{}\n{}",
        field::columns_help(CLIENT, 80),
        field::json_help("server", SERVER),
        field::json_help("clients, an array", CLIENT),
        field::json_help(
            "departed, an array: sums of clients that left in the interval, or since the server started",
            DEPARTED
        )
    )
}

#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub version: u32,
    pub now_ms: f64,
    pub interval_ms: Option<f64>,
    pub server: ServerSample,
    pub clients: Vec<ClientSample>,
    pub departed: Vec<Departed>,
}

/// Figures of a server and its clients at one moment.
#[derive(Clone, Debug)]
pub struct Readings {
    pub info: ServerInfo,
    pub list: ClientList,
    /// Departed clients by program; empty after xqos has stepped aside.
    pub departed: Vec<ClientEntry>,
    /// Utilization limit of reservations, at most the server's share of a processor; 0 after xqos has stepped aside.
    pub limit_ppm: u32,
}

impl Readings {
    pub fn of(control: &Control) -> xqos_client::Result<Readings> {
        let (info, list) = (control.server_info()?, control.clients()?);
        let (mut departed, mut limit_ppm) = (Vec::new(), 0);
        if info.armed {
            (departed, limit_ppm) = (control.departed()?.clients, control.processor()?.limit_ppm);
        }
        Ok(Readings { info, list, departed, limit_ppm })
    }

    /// Time since earlier readings, or since the server's start.
    pub fn elapsed_ns(&self, before: Option<&Readings>) -> u64 {
        before.map_or(self.info.uptime_ns, |before| self.list.now_ns.saturating_sub(before.list.now_ns))
    }

    pub fn client_lists(&self) -> ClientLists<'_> {
        ClientLists { clients: &self.list.clients, departed: &self.departed }
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use xqos_abi::{LongRequest, entry_flag};
    use xqos_trace::histogram::Histogram;
    use xqos_trace::names::Names;

    /// A sample with a value in every field that may be null.
    fn sample() -> Sample {
        let entry = ClientEntry {
            flags: entry_flag::RESERVED,
            longest_request: 73,
            group: 1,
            group_period_us: 10_000,
            ..ClientEntry::default()
        };
        let longest = Longest::new(&LongRequest::default(), 0, &Names::default());
        let mut responses = Histogram::default();
        responses.add(1);
        let measured = Some(xqos_tune::ClientAnalysis::default().report());
        let client = ClientSample { responses: Some(responses), measured, ..crate::fixture::client(&entry) };
        let server = ServerSample { longest_requests: vec![longest], ..ServerSample::default() };
        let (clients, departed) = (vec![client], vec![Departed::default()]);
        Sample { version: VERSION, now_ms: 0.0, interval_ms: None, server, clients, departed }
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
        let (is_letter, help) = (|letter: char| letter.is_alphanumeric() || letter == '_', fields_help());
        let words: Vec<&str> = help.split(|letter| !is_letter(letter)).collect();
        for field in fields {
            assert!(words.contains(&field.as_str()), "{field} is not in the help");
        }
    }
}
