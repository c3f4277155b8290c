// SPDX-License-Identifier: MIT
//! Exports a trace for Perfetto's viewer (ui.perfetto.dev, which works offline), as protobuf messages of its published
//! schema, `protos/perfetto/trace/trace.proto`.
//!
//! Each client has a track of server grabs and, below it, a track of bursts (activation to deactivation), a
//! track of slices, and a counter of its reservation's budget. The export omits flow arrows: with thousands of slices
//! they would hide everything else.

use crate::file::write_varint;
use crate::model::{Budget, Model};
use crate::names::Names;
use crate::show::cause;
use std::collections::BTreeMap;
use std::io::{self, Write};
use xqos_abi::trace::{Entry, Event};
use xqos_cli::time::of_ns;
use xqos_core::{ClientId, Fact, Service, Time};

/// A builtin clock of Perfetto.
const CLOCK_MONOTONIC: u64 = 3;
const SEQUENCE: u64 = 1;
/// SEQ_INCREMENTAL_STATE_CLEARED: the packet refers to no earlier packet.
const STATE_CLEARED: u64 = 1;

/// Field numbers of the schema.
mod field {
    pub const TRACE_PACKET: u32 = 1;
    pub const TIMESTAMP: u32 = 8;
    pub const SEQUENCE_ID: u32 = 10;
    pub const TRACK_EVENT: u32 = 11;
    pub const SEQUENCE_FLAGS: u32 = 13;
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub const TRACK_DESCRIPTOR: u32 = 60;
    pub const DESCRIPTOR_UUID: u32 = 1;
    pub const DESCRIPTOR_NAME: u32 = 2;
    pub const DESCRIPTOR_PARENT: u32 = 5;
    pub const DESCRIPTOR_COUNTER: u32 = 8;
    pub const EVENT_TYPE: u32 = 9;
    pub const EVENT_TRACK: u32 = 11;
    pub const EVENT_NAME: u32 = 23;
    pub const EVENT_COUNTER_VALUE: u32 = 30;
    pub const EVENT_ANNOTATION: u32 = 4;
    pub const ANNOTATION_INT: u32 = 4;
    pub const ANNOTATION_NAME: u32 = 10;
}

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// A protobuf message under construction.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(mut self, field: u32, value: u64) -> Self {
        write_varint(&mut self.0, u64::from(field) << 3);
        write_varint(&mut self.0, value);
        self
    }

    fn bytes(mut self, field: u32, bytes: &[u8]) -> Self {
        write_varint(&mut self.0, (u64::from(field) << 3) | 2);
        write_varint(&mut self.0, bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    fn text(self, field: u32, text: &str) -> Self {
        self.bytes(field, text.as_bytes())
    }

    fn message(self, field: u32, message: Message) -> Self {
        self.bytes(field, &message.0)
    }
}

#[derive(Clone, Copy)]
enum Track {
    Client,
    Bursts,
    Slices,
    Budget,
}

fn uuid(key: usize, track: Track) -> u64 {
    (key as u64 + 1) * 8 + track as u64
}

pub fn write(events: impl Iterator<Item = Event>, names: &Names, out: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer { out, model: Model::new(), names, described: BTreeMap::new(), grab: None, first: true };
    for event in events {
        writer.take(&event)?;
    }
    Ok(())
}

struct Writer<'a, W> {
    out: &'a mut W,
    model: Model,
    names: &'a Names,
    /// For each client, the name that was written, and whether the budget track was described.
    described: BTreeMap<usize, (String, bool)>,
    /// The holder of the server grab.
    grab: Option<usize>,
    first: bool,
}

impl<W: Write> Writer<'_, W> {
    fn take(&mut self, event: &Event) -> io::Result<()> {
        let burst = self.model.take(event);
        match event.what {
            Entry::Fact(Fact::Served(Service { client, start, requests, last_request, .. })) => {
                if let Some(key) = self.model.key(client) {
                    self.describe(key)?;
                    let count = Message::default().text(field::ANNOTATION_NAME, "requests");
                    let count = count.number(field::ANNOTATION_INT, requests.into());
                    let name = if requests > 0 { self.names.of(last_request) } else { "reading".to_owned() };
                    let begin = event_of(SLICE_BEGIN, uuid(key, Track::Slices)).text(field::EVENT_NAME, &name);
                    self.packet(start.min(event.at), begin.message(field::EVENT_ANNOTATION, count))?;
                    self.packet(event.at, event_of(SLICE_END, uuid(key, Track::Slices)))?;
                }
            }
            Entry::Budget { client, left_ns, .. } => {
                if let Some(key) = self.model.key(client) {
                    self.describe(key)?;
                    let counter = event_of(COUNTER, uuid(key, Track::Budget));
                    self.packet(event.at, counter.number(field::EVENT_COUNTER_VALUE, (left_ns / 1000) as u64))?;
                }
            }
            Entry::Fact(Fact::Input { client } | Fact::Exposed { client, .. })
            | Entry::Paced { client, .. }
            | Entry::Cut { client, .. } => {
                if let Some(key) = self.model.key(client) {
                    self.describe(key)?;
                    let instant = event_of(INSTANT, uuid(key, Track::Client));
                    self.packet(event.at, instant.text(field::EVENT_NAME, event.what.name()))?;
                }
            }
            Entry::Fact(Fact::Grabbed { by }) => self.grab(by, event.at)?,
            _ => {}
        }
        if let Some(burst) = burst {
            self.describe(burst.key)?;
            let track = uuid(burst.key, Track::Bursts);
            let why = burst.causes.first().map(|(why, _)| format!(": {}", cause(why, &self.model, self.names)));
            let waited = format!("waited {}{}", of_ns(burst.waited_ns), why.unwrap_or_default());
            self.packet(burst.activation, event_of(SLICE_BEGIN, track).text(field::EVENT_NAME, &waited))?;
            self.packet(burst.end, event_of(SLICE_END, track))?;
        }
        Ok(())
    }

    /// Ends the current grab and begins that of `holder`. A grab is a slice on its holder's track.
    fn grab(&mut self, holder: Option<ClientId>, at: Time) -> io::Result<()> {
        if let Some(key) = self.grab.take() {
            self.packet(at, event_of(SLICE_END, uuid(key, Track::Client)))?;
        }
        self.grab = holder.and_then(|id| self.model.key(id));
        let Some(key) = self.grab else { return Ok(()) };
        self.describe(key)?;
        let begin = event_of(SLICE_BEGIN, uuid(key, Track::Client));
        self.packet(at, begin.text(field::EVENT_NAME, "holds the server grab"))
    }

    /// Describes a client's tracks, and does so again when the client's name or reservation becomes known.
    fn describe(&mut self, key: usize) -> io::Result<()> {
        let budget: Option<Budget> = self.model.clients().get(key).and_then(|client| client.budget);
        let now = (self.model.name(key), budget.is_some());
        if self.described.get(&key) == Some(&now) {
            return Ok(());
        }
        let parent = uuid(key, Track::Client);
        self.descriptor(
            Message::default().number(field::DESCRIPTOR_UUID, parent).text(field::DESCRIPTOR_NAME, &now.0),
        )?;
        for (track, name) in [(Track::Bursts, "bursts"), (Track::Slices, "slices")] {
            let child = Message::default().number(field::DESCRIPTOR_UUID, uuid(key, track));
            let child = child.text(field::DESCRIPTOR_NAME, name).number(field::DESCRIPTOR_PARENT, parent);
            self.descriptor(child)?;
        }
        if now.1 {
            let counter = Message::default().number(field::DESCRIPTOR_UUID, uuid(key, Track::Budget));
            let counter = counter.text(field::DESCRIPTOR_NAME, "budget left, us");
            let counter = counter.number(field::DESCRIPTOR_PARENT, parent);
            self.descriptor(counter.message(field::DESCRIPTOR_COUNTER, Message::default()))?;
        }
        self.described.insert(key, now);
        Ok(())
    }

    fn descriptor(&mut self, descriptor: Message) -> io::Result<()> {
        let packet = self.begin().message(field::TRACK_DESCRIPTOR, descriptor);
        self.out.write_all(&Message::default().message(field::TRACE_PACKET, packet).0)
    }

    fn packet(&mut self, at: Time, event: Message) -> io::Result<()> {
        let packet = self.begin().number(field::TIMESTAMP, at.0);
        let packet = packet.number(field::TIMESTAMP_CLOCK_ID, CLOCK_MONOTONIC).message(field::TRACK_EVENT, event);
        self.out.write_all(&Message::default().message(field::TRACE_PACKET, packet).0)
    }

    fn begin(&mut self) -> Message {
        let packet = Message::default().number(field::SEQUENCE_ID, SEQUENCE);
        if std::mem::take(&mut self.first) { packet.number(field::SEQUENCE_FLAGS, STATE_CLEARED) } else { packet }
    }
}

fn event_of(kind: u64, track: u64) -> Message {
    Message::default().number(field::EVENT_TYPE, kind).number(field::EVENT_TRACK, track)
}
