// SPDX-License-Identifier: MIT
//! Messages of a capture on the time axis of a trace.
//!
//! `xqos analyse --messages --json` prints the messages, one per line, with the wall clock's time. A trace knows the
//! difference between that clock and its own, so both must be from the same machine. A connection of the capture is a
//! client of the trace if the server gave both the same resource base.

use crate::indices::Indices;
use crate::model::Model;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::BufRead;
use xqos_core::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub at: Time,
    /// From the client; otherwise a reply, an event or an error.
    pub is_request: bool,
    /// Number of the request, or of the request that it answers; requests are counted from 1.
    pub sequence: u64,
    pub bytes: u64,
    /// Index into [`Wire::names`].
    pub name: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// "emacs (connection 1)", or its address if the capture does not name the program.
    pub name: String,
    /// The resource base that the server gave it, and when; `None` if the capture does not have its start.
    pub accepted: Option<(u32, Time)>,
    /// In order of time.
    pub messages: Vec<Message>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    pub connections: Vec<Connection>,
    pub names: Vec<String>,
}

/// A line of `xqos analyse --messages --json`.
#[derive(Deserialize)]
struct Line {
    kind: String,
    connection: u32,
    seconds: f64,
    /// Only `opened` and `joined` have it.
    unix_ns: Option<i64>,
    client: Option<String>,
    name: Option<String>,
    #[serde(default)]
    sequence: u64,
    #[serde(default)]
    length: u64,
    fields: Option<Fields>,
}

#[derive(Deserialize)]
struct Fields {
    resource_id_base: Option<String>,
}

impl Wire {
    /// Reads the lines. `realtime_offset_ns` is that of the trace's header.
    pub fn read(lines: impl BufRead, realtime_offset_ns: i64) -> Result<Wire> {
        let (mut wire, mut names) = (BTreeMap::<u32, Connection>::new(), Indices::default());
        let mut start_ns = None;
        for text in lines.lines() {
            let text = text.context("cannot read the messages")?;
            let line: Line = serde_json::from_str(&text).with_context(|| format!("cannot read the message {text}"))?;
            let since_ns = (line.seconds * 1e9).round() as i64;
            if let (Some(unix_ns), None) = (line.unix_ns, start_ns) {
                start_ns = Some(unix_ns - since_ns - realtime_offset_ns);
            }
            let Some(start_ns) = start_ns else { bail!("the messages do not begin with a connection") };
            let at = Time(u64::try_from(start_ns.saturating_add(since_ns)).unwrap_or(0));
            let connection = wire.entry(line.connection).or_default();
            let (name, number) = (line.name.unwrap_or_default(), line.connection);
            match line.kind.as_str() {
                "opened" | "joined" => {
                    connection.name = format!("{} (connection {number})", line.client.unwrap_or_default());
                }
                "program" => connection.name = format!("{name} (connection {number})"),
                "setup-reply" => connection.accepted = line.fields.and_then(|fields| Some((fields.base()?, at))),
                "request" | "reply" | "event" | "error" => {
                    let shown = if line.kind == "error" { format!("error {name}") } else { name };
                    let name = names.index(shown);
                    let (is_request, bytes) = (line.kind == "request", line.length);
                    connection.messages.push(Message { at, is_request, sequence: line.sequence, bytes, name });
                }
                _ => {}
            }
        }
        Ok(Wire { connections: wire.into_values().collect(), names: names.all })
    }

    /// For each connection, the key of the trace's client, if the trace has it.
    pub fn clients(&self, model: &Model) -> Vec<Option<usize>> {
        let client_of = |connection: &Connection| {
            let (base, at) = connection.accepted?;
            let clients = model.clients().iter().enumerate().filter(|(_, client)| client.identity.base == base);
            // A base is used again after a client has disconnected.
            clients.min_by_key(|(_, client)| client.connected.0.abs_diff(at.0)).map(|(key, _)| key)
        };
        self.connections.iter().map(client_of).collect()
    }
}

impl Fields {
    fn base(&self) -> Option<u32> {
        u32::from_str_radix(self.resource_id_base.as_ref()?.strip_prefix("0x")?, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_abi::trace::{Entry, Event};
    use xqos_core::{ClientId, Fact};

    const LINES: &str = r#"{"kind":"opened","client":"10.0.0.1:4000","server":"10.0.0.2:6000","connection":1,"seconds":0.0,"unix_ns":5000000000}
{"kind":"program","name":"emacs","connection":1,"seconds":0.0}
{"kind":"setup-reply","sequence":0,"name":"SetupReply","length":500,"fields":{"resource_id_base":"0x400000"},"connection":1,"seconds":0.001}
{"kind":"request","sequence":1,"name":"InternAtom","length":20,"fields":{"name":"a"},"connection":1,"seconds":0.002}
{"kind":"opened","client":"10.0.0.1:4001","server":"10.0.0.2:6000","connection":2,"seconds":0.002,"unix_ns":5002000000}
{"kind":"reply","sequence":1,"name":"InternAtom","length":32,"fields":{},"connection":1,"seconds":0.003}
{"kind":"gap","direction":"<","offset":3,"length":5,"connection":1,"seconds":0.004}
{"kind":"error","sequence":2,"name":"BadWindow","length":32,"fields":{},"connection":2,"seconds":0.005}
"#;

    #[test]
    fn messages_get_the_clock_of_the_trace_and_connections_their_client() {
        let wire = Wire::read(LINES.as_bytes(), 4_000_000_000).unwrap();
        assert_eq!(wire.names, ["InternAtom", "error BadWindow"]);
        let [first, second] = wire.connections.as_slice() else { panic!("{wire:#?}") };
        assert_eq!(
            (first.name.as_str(), second.name.as_str()),
            ("emacs (connection 1)", "10.0.0.1:4001 (connection 2)")
        );
        let at = |ns: u64| Time(1_000_000_000 + ns);
        let request = Message { at: at(2_000_000), is_request: true, sequence: 1, bytes: 20, name: 0 };
        let reply = Message { at: at(3_000_000), is_request: false, bytes: 32, ..request };
        assert_eq!(
            (first.accepted, first.messages.as_slice()),
            (Some((0x40_0000, at(1_000_000))), &[request, reply][..])
        );
        let mut model = Model::new();
        for (id, ms) in [(1, 100), (2, 1001)] {
            let client = ClientId(id);
            let mut add = |what| model.take(&Event { at: Time(ms * 1_000_000), what });
            add(Entry::Fact(Fact::Connected { client, descriptor: 4 }));
            add(Entry::Identity { client, pid: 7, base: 0x40_0000, uid: 0 });
        }
        assert_eq!(wire.clients(&model), [Some(1), None], "the client that connected at about that time");
    }

    #[test]
    fn other_lines_are_refused() {
        for text in ["nonsense\n", "{}\n", "{\"kind\":\"request\",\"connection\":1,\"seconds\":0.0}\n"] {
            assert!(Wire::read(text.as_bytes(), 0).is_err(), "{text}");
        }
        assert_eq!(Wire::read(&b""[..], 0).unwrap(), Wire::default());
    }
}
