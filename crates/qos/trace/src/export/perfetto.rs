// SPDX-License-Identifier: MIT
//! Exports a trace for Perfetto's viewer (ui.perfetto.dev, which works offline), as protobuf messages of its published
//! schema, `protos/perfetto/trace/trace.proto`.
//!
//! Each client has a track of server grabs and, below it, a track of bursts (activation to deactivation), a
//! track of slices, and a counter of its reservation's budget. With records of the kernel, each processor has a track
//! of the threads that it ran, with wake-ups as instants, and below it a track of interrupts. With a capture, each
//! client has a track of its messages on the wire. The export omits flow arrows: with thousands of slices they would
//! hide everything else.

use crate::file::write_varint;
use crate::model::{Budget, Burst, Model, RunningThreads, ThreadRun};
use crate::names::Names;
use crate::show::cause;
use crate::wire::Wire;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use xqos_abi::trace::{Entry, Event};
use xqos_core::{ClientId, Fact, Service, Time};
use xqos_text::time::of_ns;

/// Builtin clocks of Perfetto.
const CLOCK_MONOTONIC: u64 = 3;
const CLOCK_BOOTTIME: u64 = 6;
const SEQUENCE: u64 = 1;
/// SEQ_INCREMENTAL_STATE_CLEARED: the packet refers to no earlier packet.
const STATE_CLEARED: u64 = 1;

/// Field numbers of the schema.
mod field {
    pub const TRACE_PACKET: u32 = 1;
    pub const CLOCK_SNAPSHOT: u32 = 6;
    pub const CLOCKS: u32 = 1;
    pub const CLOCK_ID: u32 = 1;
    pub const CLOCK_TIMESTAMP: u32 = 2;
    pub const PRIMARY_CLOCK: u32 = 2;
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

/// The track of a processor's threads. The next number is the track of its interrupts.
fn processor_uuid(cpu: u32) -> u64 {
    (1 << 40) + u64::from(cpu) * 2
}

fn wire_uuid(at: usize) -> u64 {
    (1 << 41) + at as u64
}

/// Writes a trace, and the messages of a capture if there is one.
pub fn write(events: impl Iterator<Item = Event>, names: &Names, wire: &Wire, out: &mut impl Write) -> io::Result<()> {
    let mut writer = PerfettoWriter {
        out,
        model: Model::new(),
        names,
        described: BTreeMap::new(),
        grab: None,
        processors: BTreeSet::new(),
        running: RunningThreads::default(),
        now: Time(0),
        first: true,
    };
    for event in events {
        writer.take(&event)?;
    }
    writer.messages(wire)?;
    writer.finish()
}

struct PerfettoWriter<'a, W> {
    out: &'a mut W,
    model: Model,
    names: &'a Names,
    /// For each client, the name that was written, and whether the budget track was described.
    described: BTreeMap<usize, (String, bool)>,
    /// The holder of the server grab, and when the grab started.
    grab: Option<(usize, Time)>,
    processors: BTreeSet<u32>,
    running: RunningThreads,
    now: Time,
    first: bool,
}

impl<W: Write> PerfettoWriter<'_, W> {
    fn take(&mut self, event: &Event) -> io::Result<()> {
        if self.first {
            self.clocks(event.at)?;
        }
        self.now = self.now.max(event.at);
        let burst = self.model.take(event);
        if let Some(run) = self.running.take(event, self.model.began.unwrap_or(event.at)) {
            self.ran(run)?;
        }
        match event.what {
            Entry::Fact(Fact::Served(Service { client, start, requests, last_request, .. })) => {
                if let Some(track) = self.track(client, Track::Slices)? {
                    let count = Message::default().text(field::ANNOTATION_NAME, "requests");
                    let count = count.number(field::ANNOTATION_INT, requests.into());
                    let name = if requests > 0 { self.names.of(last_request) } else { "reading".to_owned() };
                    let begin = event_of(SLICE_BEGIN, track).text(field::EVENT_NAME, &name);
                    self.packet(start.min(event.at), begin.message(field::EVENT_ANNOTATION, count))?;
                    self.packet(event.at, event_of(SLICE_END, track))?;
                }
            }
            Entry::Budget { client, left_ns, .. } => {
                if let Some(track) = self.track(client, Track::Budget)? {
                    let left_us = (left_ns / 1000) as u64;
                    self.packet(event.at, event_of(COUNTER, track).number(field::EVENT_COUNTER_VALUE, left_us))?;
                }
            }
            Entry::Fact(Fact::Input { client } | Fact::Exposed { client, .. })
            | Entry::Paced { client, .. }
            | Entry::Cut { client, .. }
            | Entry::Finished { client, .. } => {
                if let Some(track) = self.track(client, Track::Client)? {
                    self.instant(track, event.what.name(), event.at)?;
                }
            }
            Entry::Fact(Fact::Grabbed { by }) => self.grab(by, event.at)?,
            Entry::Wakeup { cpu, thread } => {
                let name = format!("wakes {}", self.model.thread_name(thread));
                let track = self.processor(cpu)?;
                self.instant(track, &name, event.at)?;
            }
            Entry::Interrupt { cpu, number, is_soft, ns } => {
                let track = self.processor(cpu)? + 1;
                let began = Time(event.at.0.saturating_sub(ns));
                self.slice(track, &self.model.interrupt_name(number, is_soft), [began, event.at])?;
            }
            _ => {}
        }
        burst.map_or(Ok(()), |burst| self.burst(&burst))
    }

    fn burst(&mut self, burst: &Burst) -> io::Result<()> {
        self.describe(burst.key)?;
        let why = burst.causes.first().map(|(why, _)| format!(": {}", cause(why, &self.model, self.names)));
        let waited = format!("waited {}{}", of_ns(burst.waited_ns), why.unwrap_or_default());
        self.slice(uuid(burst.key, Track::Bursts), &waited, [burst.activation, burst.end])
    }

    /// Relates the trace's clock to the viewer's, which drops events of a clock that it cannot convert. Both readings
    /// are the same, because the trace does not say how long the machine slept.
    fn clocks(&mut self, at: Time) -> io::Result<()> {
        let mut snapshot = Message::default().number(field::PRIMARY_CLOCK, CLOCK_MONOTONIC);
        for clock in [CLOCK_MONOTONIC, CLOCK_BOOTTIME] {
            let clock = Message::default().number(field::CLOCK_ID, clock).number(field::CLOCK_TIMESTAMP, at.0);
            snapshot = snapshot.message(field::CLOCKS, clock);
        }
        let packet = self.begin().message(field::CLOCK_SNAPSHOT, snapshot);
        self.write(packet)
    }

    /// The track of a processor, which is described at its first use.
    fn processor(&mut self, cpu: u32) -> io::Result<u64> {
        let track = processor_uuid(cpu);
        if self.processors.insert(cpu) {
            self.descriptor(descriptor(track, &format!("processor {cpu}"), None))?;
            self.descriptor(descriptor(track + 1, "interrupts", Some(track)))?;
        }
        Ok(track)
    }

    fn ran(&mut self, run: ThreadRun) -> io::Result<()> {
        let track = self.processor(run.cpu)?;
        self.slice(track, &self.model.thread_name(run.thread), [run.from, run.to])
    }

    /// The messages of each connection, as instants below its client.
    fn messages(&mut self, wire: &Wire) -> io::Result<()> {
        for (at, (connection, key)) in wire.connections.iter().zip(wire.clients(&self.model)).enumerate() {
            match key {
                Some(key) => {
                    self.describe(key)?;
                    self.descriptor(descriptor(wire_uuid(at), "wire", Some(uuid(key, Track::Client))))?;
                }
                None => self.descriptor(descriptor(wire_uuid(at), &connection.name, None))?,
            }
            for message in &connection.messages {
                let arrow = if message.is_request { '>' } else { '<' };
                let name = wire.names.get(message.name as usize).map_or("", String::as_str);
                self.instant(wire_uuid(at), &format!("{arrow} {name}"), message.at)?;
            }
        }
        Ok(())
    }

    /// Ends the bursts, the grab, and the threads that the processors were running.
    fn finish(mut self) -> io::Result<()> {
        self.model.unfinished().map_or(Ok(()), |event| self.take(&event))?;
        self.model.end_bursts().iter().try_for_each(|burst| self.burst(burst))?;
        self.grab(None, self.now)?;
        let running = std::mem::take(&mut self.running);
        running.unfinished(self.now).try_for_each(|run| self.ran(run))
    }

    /// The server grab changes its holder. A grab is a slice on its holder's track.
    fn grab(&mut self, holder: Option<ClientId>, at: Time) -> io::Result<()> {
        let ended = std::mem::replace(&mut self.grab, holder.and_then(|id| self.model.key(id)).map(|key| (key, at)));
        let Some((key, since)) = ended else { return Ok(()) };
        self.describe(key)?;
        self.slice(uuid(key, Track::Client), "holds the server grab", [since, at])
    }

    /// A track of a connected client, which is described at its first use.
    fn track(&mut self, client: ClientId, track: Track) -> io::Result<Option<u64>> {
        let Some(key) = self.model.key(client) else { return Ok(None) };
        self.describe(key)?;
        Ok(Some(uuid(key, track)))
    }

    /// Describes a client's tracks, and does so again when the client's name or reservation becomes known.
    fn describe(&mut self, key: usize) -> io::Result<()> {
        let budget: Option<Budget> = self.model.clients().get(key).and_then(|client| client.budget);
        let now = (self.model.name(key), budget.is_some());
        if self.described.get(&key) == Some(&now) {
            return Ok(());
        }
        let parent = uuid(key, Track::Client);
        self.descriptor(descriptor(parent, &now.0, None))?;
        for (track, name) in [(Track::Bursts, "bursts"), (Track::Slices, "slices")] {
            self.descriptor(descriptor(uuid(key, track), name, Some(parent)))?;
        }
        if now.1 {
            let counter = descriptor(uuid(key, Track::Budget), "budget left, us", Some(parent));
            self.descriptor(counter.message(field::DESCRIPTOR_COUNTER, Message::default()))?;
        }
        self.described.insert(key, now);
        Ok(())
    }

    fn slice(&mut self, track: u64, name: &str, [began, ended]: [Time; 2]) -> io::Result<()> {
        self.packet(began, event_of(SLICE_BEGIN, track).text(field::EVENT_NAME, name))?;
        self.packet(ended, event_of(SLICE_END, track))
    }

    fn instant(&mut self, track: u64, name: &str, at: Time) -> io::Result<()> {
        self.packet(at, event_of(INSTANT, track).text(field::EVENT_NAME, name))
    }

    fn descriptor(&mut self, descriptor: Message) -> io::Result<()> {
        let packet = self.begin().message(field::TRACK_DESCRIPTOR, descriptor);
        self.write(packet)
    }

    fn packet(&mut self, at: Time, event: Message) -> io::Result<()> {
        let packet = self.begin().number(field::TIMESTAMP, at.0);
        let packet = packet.number(field::TIMESTAMP_CLOCK_ID, CLOCK_MONOTONIC).message(field::TRACK_EVENT, event);
        self.write(packet)
    }

    fn write(&mut self, packet: Message) -> io::Result<()> {
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

fn descriptor(track: u64, name: &str, parent: Option<u64>) -> Message {
    let message = Message::default().number(field::DESCRIPTOR_UUID, track).text(field::DESCRIPTOR_NAME, name);
    parent.into_iter().fold(message, |message, parent| message.number(field::DESCRIPTOR_PARENT, parent))
}
