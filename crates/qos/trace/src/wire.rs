// SPDX-License-Identifier: MIT
//! Messages of a capture on the time axis of a trace.
//!
//! `xqos analyse --messages --json` prints the messages, one per line, with the wall clock's time. The trace's header
//! has the difference between that clock and the trace's clock, so both must be from the same machine. A connection of
//! the capture is a client of the trace if the server gave both the same resource base.

use crate::model::Model;
use anyhow::{Context, Result, bail};
use indexmap::IndexSet;
use std::collections::BTreeMap;
use std::io::BufRead;
use xqos_core::Time;
use xqos_fleet::message_line::MessageLine;

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
pub struct WireConnection {
    /// "emacs (connection 1)", or its address if the capture does not name the program.
    pub name: String,
    /// The resource base that the server assigned, and when; `None` if the capture lacks the connection setup.
    pub accepted: Option<(u32, Time)>,
    /// In order of time.
    pub messages: Vec<Message>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wire {
    pub connections: Vec<WireConnection>,
    pub names: Vec<String>,
}

impl Wire {
    /// Reads the lines. `realtime_offset_ns` is that of the trace's header.
    pub fn read(lines: impl BufRead, realtime_offset_ns: i64) -> Result<Wire> {
        let (mut wire, mut names) = (BTreeMap::<u32, WireConnection>::new(), IndexSet::new());
        let mut start_ns = None;
        for text in lines.lines() {
            let text = text.context("cannot read the messages")?;
            let line: MessageLine =
                serde_json::from_str(&text).with_context(|| format!("cannot read the message {text}"))?;
            let since_ns = (line.seconds * 1e9).round() as i64;
            if let (Some(unix_ns), None) = (line.unix_ns, start_ns) {
                let offset_ns = since_ns.saturating_add(realtime_offset_ns);
                start_ns = Some((unix_ns as i64).saturating_sub(offset_ns));
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
                "setup-reply" => {
                    let fields = line.fields.unwrap_or_default();
                    let base = fields.get("resource_id_base").and_then(|base| base.strip_prefix("0x"));
                    connection.accepted = base.and_then(|base| Some((u32::from_str_radix(base, 16).ok()?, at)));
                }
                "request" | "reply" | "event" | "error" => {
                    let shown = if line.kind == "error" { format!("error {name}") } else { name.into_owned() };
                    let name = names.insert_full(shown).0 as u32;
                    let (sequence, bytes) = (line.sequence.unwrap_or(0), line.length.unwrap_or(0));
                    let is_request = line.kind == "request";
                    connection.messages.push(Message { at, is_request, sequence, bytes, name });
                }
                _ => {}
            }
        }
        Ok(Wire { connections: wire.into_values().collect(), names: names.into_iter().collect() })
    }

    /// For each connection, the key of the trace's client, if the trace has it.
    ///
    /// The server reuses a base after a client has disconnected. Therefore the connection must exist at the same time
    /// as the client; among several, the one accepted closest to the client's connection time is chosen.
    pub fn clients(&self, model: &Model) -> Vec<Option<usize>> {
        let mut of_client = BTreeMap::<usize, (u64, usize)>::new();
        for (number, connection) in self.connections.iter().enumerate() {
            let Some((base, at)) = connection.accepted else { continue };
            let clients = model.clients().iter().enumerate();
            let clients = clients.filter(|(_, client)| {
                let life = (client.connected, client.gone.unwrap_or(model.now));
                client.identity.base == base && connection.is_within(life)
            });
            let apart = clients.map(|(key, client)| (client.connected.0.abs_diff(at.0), key)).min();
            if let Some((apart_ns, key)) = apart {
                let best = of_client.entry(key).or_insert((apart_ns, number));
                *best = (*best).min((apart_ns, number));
            }
        }
        let mut found = vec![None; self.connections.len()];
        of_client.into_iter().for_each(|(key, (_, number))| found[number] = Some(key));
        found
    }

    /// True if there is a message from this interval.
    pub fn has_messages(&self, life: (Time, Time)) -> bool {
        self.connections.iter().any(|connection| connection.is_within(life))
    }
}

impl WireConnection {
    /// True if the connection exists at some point of this interval.
    fn is_within(&self, (from, to): (Time, Time)) -> bool {
        /// The two clocks are compared only once, and may differ a little later.
        const PRECISION_NS: u64 = 100_000_000;
        let times = self.messages.iter().map(|message| message.at).chain(self.accepted.map(|(_, at)| at));
        let (first, last) = times.fold((Time::NEVER, Time(0)), |(first, last), at| (first.min(at), last.max(at)));
        first <= to.after(PRECISION_NS) && last.after(PRECISION_NS) >= from
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
    fn a_reused_base_matches_the_connection_of_the_same_time() {
        const MS: u64 = 1_000_000;
        let connection = |from: u64, to: u64| {
            let message = Message { at: Time(to * MS), is_request: true, sequence: 1, bytes: 4, name: 0 };
            let accepted = Some((0x40_0000, Time(from * MS)));
            WireConnection { name: "xprop".to_owned(), accepted, messages: vec![message] }
        };
        // The trace begins at 5 s. It has the second half of the second connection's client, and another client.
        let connections = vec![connection(1000, 2000), connection(3000, 6000), connection(8000, 8100)];
        let wire = Wire { connections, names: vec!["GetProperty".to_owned()] };
        let mut model = Model::new();
        let client = ClientId(1);
        for (ms, what) in [
            (5000, Entry::Fact(Fact::Connected { client, descriptor: 4 })),
            (5000, Entry::Identity { client, pid: 7, base: 0x40_0000, uid: 0 }),
            (6010, Entry::Fact(Fact::Disconnected { client })),
            (8000, Entry::Fact(Fact::Connected { client, descriptor: 4 })),
            (8000, Entry::Identity { client, pid: 8, base: 0x40_0000, uid: 0 }),
            (9000, Entry::End),
        ] {
            model.take(&Event { at: Time(ms * MS), what });
        }
        assert_eq!(wire.clients(&model), [None, Some(0), Some(1)]);
        let earlier = Wire { connections: vec![connection(1000, 2000)], ..wire };
        assert_eq!(earlier.clients(&model), [None]);
        assert!(!earlier.has_messages((Time(5000 * MS), Time(9000 * MS))));
        assert!(earlier.has_messages((Time(500 * MS), Time(1500 * MS))));
    }

    #[test]
    fn other_lines_are_refused() {
        for text in ["nonsense\n", "{}\n", "{\"kind\":\"request\",\"connection\":1,\"seconds\":0.0}\n"] {
            assert!(Wire::read(text.as_bytes(), 0).is_err(), "{text}");
        }
        assert_eq!(Wire::read(&b""[..], 0).unwrap(), Wire::default());
    }
}
