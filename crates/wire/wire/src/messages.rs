// SPDX-License-Identifier: MIT
//! Logs each message of a capture as one line: text, or JSON (Figure 2 of Packard and Gettys, 2003).
//!
//! ```text
//! 0.001832 1 > 14 Request InternAtom 20: only_if_exists true, name_len 7, name "WM_NAME"
//! ```
//!
//! A line has the seconds since the first X packet, the connection, the direction (`>` is to the server), the sequence
//! number, the kind, the name, the length, and the known fields. The time is that of the last byte's packet.

use crate::observe::{ConnectionId, Direction, Ending, Message, MissingBytes, Observer, Opened};
use crate::x11::fields;
use crate::x11::message_name::Filter;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::io::{self, Write};
use xqos_fleet::message_line::MessageLine;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFormat {
    Text,
    /// One JSON object per line.
    Json,
}

/// Writes the log. After the first error, nothing more is written.
#[derive(Debug)]
pub struct MessageLog<W> {
    out: W,
    format: MessageFormat,
    /// Number of the only connection to log, counted from 1.
    only: Option<u32>,
    filter: Filter,
    start_ns: Option<u64>,
    last_ns: u64,
    failed: Option<io::Error>,
}

impl MessageLog<Vec<u8>> {
    /// Returns the lines written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}

impl<W: Write> MessageLog<W> {
    pub fn new(out: W, format: MessageFormat, only: Option<u32>, filter: Filter) -> MessageLog<W> {
        MessageLog { out, format, only, filter, start_ns: None, last_ns: 0, failed: None }
    }

    /// Returns the first error.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// Writes a line about a message or another event. With a filter, writes only lines about matching messages.
    fn line<'a, K: Serialize>(
        &mut self,
        id: ConnectionId,
        at_ns: u64,
        message: Option<&Message<'_>>,
        text: Arguments<'_>,
        line: impl FnOnce() -> MessageLine<'a, K>,
    ) {
        self.last_ns = at_ns;
        let ns = at_ns.saturating_sub(*self.start_ns.get_or_insert(at_ns));
        let number = id.0.saturating_add(1);
        let is_wanted = match message {
            Some(message) => self.filter.takes(message.kind, message.name),
            None => self.filter == Filter::default(),
        };
        if !is_wanted || self.failed.is_some() || self.only.is_some_and(|only| only != number) {
            return;
        }
        let seconds = format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000);
        let result = match self.format {
            MessageFormat::Text => writeln!(self.out, "{seconds} {number} {text}"),
            MessageFormat::Json => {
                let mut value = json!(MessageLine { connection: number, seconds: ns as f64 / 1e9, ..line() });
                value.as_object_mut().into_iter().for_each(|members| members.retain(|_, value| *value != Value::Null));
                writeln!(self.out, "{value}")
            }
        };
        self.failed = result.err();
    }
}

fn arrow(direction: Direction) -> char {
    if direction == Direction::Requests { '>' } else { '<' }
}

/// Names and values of the fields that [`fields::text`] shows.
fn as_object(fields: &str) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
    let pairs = fields.split(fields::SEPARATOR).filter_map(|field| field.split_once(' '));
    pairs.map(|(name, value)| (name.into(), value.into())).collect()
}

impl<W: Write> Observer for MessageLog<W> {
    fn opened(&mut self, id: ConnectionId, opened: &Opened) {
        let Opened { at_ns, client, server, started_midstream } = *opened;
        let how = if started_midstream { "joined" } else { "opened" };
        let [from, to] = [client, server].map(|address| Some(address.to_string().into()));
        let line = || MessageLine { kind: how, client: from, server: to, unix_ns: Some(at_ns), ..Default::default() };
        self.line(id, at_ns, None, format_args!("{how} {client} {server}"), line);
    }

    fn named(&mut self, id: ConnectionId, program: &str) {
        let line = || MessageLine { kind: "program", name: Some(program.into()), ..Default::default() };
        self.line(id, self.last_ns, None, format_args!("program {}", program.escape_debug()), line);
    }

    fn message(&mut self, id: ConnectionId, message: &Message<'_>) {
        let Message { sequence, kind, name, length, last_ns, .. } = *message;
        let fields = fields::text(message);
        let shown = if fields.is_empty() { String::new() } else { format!(": {}", fields.replace('\t', ", ")) };
        let arrow = arrow(kind.direction());
        let line = || MessageLine {
            kind: json!(kind),
            sequence: Some(sequence),
            name: Some(name.into()),
            length: Some(length),
            fields: Some(as_object(&fields)),
            ..Default::default()
        };
        let message = Some(message);
        self.line(id, last_ns, message, format_args!("{arrow} {sequence} {kind:?} {name} {length}{shown}"), line);
    }

    fn gap(&mut self, id: ConnectionId, gap: &MissingBytes) {
        let MissingBytes { direction, at_ns, offset, length, .. } = *gap;
        let arrow = arrow(direction);
        let (direction, offset, length) = (Some(arrow), Some(offset), Some(length));
        let line = || MessageLine { kind: "gap", direction, offset, length, ..Default::default() };
        self.line(id, at_ns, None, format_args!("{arrow} gap {} {}", gap.offset, gap.length), line);
    }

    fn ended(&mut self, id: ConnectionId, at_ns: u64, ending: Ending) {
        let word = Some(format!("{ending:?}").to_lowercase());
        let line = || MessageLine { kind: "ended", ending: word, ..Default::default() };
        self.line(id, at_ns, None, format_args!("ended {ending:?}"), line);
    }
}
