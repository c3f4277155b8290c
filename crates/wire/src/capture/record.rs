// SPDX-License-Identifier: MIT
//! Writes packets to a file: scrubs them, keeps only those between two events, and cuts them to the snap length.
//!
//! ```text
//! packet ──▶ session ──events─▶ trigger ──start, stop──┐
//!    │          └──marks──▶ scrubber                   ▼
//!    └────────────────────────▶ ───packets──▶ the last seconds ──▶ snap length ──▶ pcapng
//! ```
//!
//! If writing fails, only the recording stops. The caller continues and gets the error at the end.

use super::scrub::{Extent, Marker, Scrubber};
use super::trigger::{self, EventWatcher, SeenEvents, State, Trigger};
use super::{KeptRecord, Link, Record, Writer};
use crate::messages::{Format, MessageLog};
use crate::observe::Observer;
use crate::session::Session;
use crate::x11::message_name::Filter;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Stdout};
use std::sync::{Arc, OnceLock};

/// Maximum memory for packets that arrived before the start.
const MAX_HELD_BYTES: usize = 256 << 20;
/// Room for a few of the largest packets.
const BUFFER_BYTES: usize = 1 << 18;
/// Memory overhead per packet.
const PACKET_COSTS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// `None` keeps all data of the packets.
    pub scrub: Option<Extent>,
    /// Maximum bytes kept of a packet.
    pub snap_bytes: Option<usize>,
    pub trigger: trigger::Settings,
    /// Also treat this port as X.
    pub also_port: Option<u16>,
    /// Also print each message to standard output.
    pub prints_messages: bool,
}

#[derive(Debug, Default)]
pub struct Recorded {
    pub packets: u64,
    /// Length on the wire.
    pub bytes: u64,
    /// True if the start event occurred.
    pub has_started: bool,
    /// Packets other than TCP, which a scrubbed file omits.
    pub left_out: u64,
    /// Packets with messages that were too long to wait for. The file contains only the heads of these messages.
    pub given_up: u64,
    /// Why recording stopped early.
    pub error: Option<io::Error>,
}

/// Observers of a recording's session. The caller owns them, because a session only borrows its observers.
#[derive(Debug)]
pub struct Watchers {
    marker: Marker,
    watcher: EventWatcher,
    log: Option<MessageLog<Stdout>>,
}

impl Watchers {
    pub fn new(settings: &Settings) -> Watchers {
        let log = || MessageLog::new(io::stdout(), Format::Text, None, Filter::default());
        Watchers {
            marker: Marker::new(settings.scrub.unwrap_or(Extent::Cookie)),
            watcher: EventWatcher::default(),
            log: settings.prints_messages.then(log),
        }
    }
}

#[derive(Debug)]
pub struct Recorder<'a> {
    session: Option<Session<'a>>,
    watcher: EventWatcher,
    scrubber: Option<Scrubber>,
    output: Output,
    /// The error because of which no more messages are printed.
    unprinted: Option<Arc<OnceLock<io::Error>>>,
}

impl<'a> Recorder<'a> {
    /// Starts a file. Without `interface`, an interface is added for each link type at its first packet.
    pub fn new(
        file: File,
        interface: Option<(Link, &str)>,
        settings: &Settings,
        watchers: &'a mut Watchers,
    ) -> io::Result<Recorder<'a>> {
        let mut writer =
            Writer::new(BufWriter::with_capacity(BUFFER_BYTES, file), concat!("xqos ", env!("CARGO_PKG_VERSION")))?;
        let snap_bytes = settings.snap_bytes.map_or(0, |bytes| bytes as u32);
        if let Some((link, name)) = interface {
            writer.add_interface(link, name, snap_bytes)?;
        }
        let scrubber = settings.scrub.map(|_| Scrubber::new(&watchers.marker));
        let watcher = watchers.watcher.clone();
        let needs_session = settings.scrub.is_some() || settings.trigger.needs_messages() || settings.prints_messages;
        let unprinted = watchers.log.as_ref().map(MessageLog::failed);
        let session = needs_session.then(|| {
            let mut observers: Vec<&mut dyn Observer> = vec![&mut watchers.marker, &mut watchers.watcher];
            observers.extend(watchers.log.as_mut().map(|log| log as &mut dyn Observer));
            let session = Session::new(observers);
            settings.also_port.into_iter().fold(session, Session::also_port)
        });
        let output = Output {
            writer: Some(writer),
            trigger: Trigger::new(settings.trigger),
            before_ns: settings.trigger.before_ns,
            snap_bytes: settings.snap_bytes.unwrap_or(usize::MAX),
            held: VecDeque::new(),
            held_bytes: 0,
            recorded: Recorded::default(),
        };
        Ok(Recorder { session, watcher, scrubber, output, unprinted })
    }

    pub fn take(&mut self, record: &Record<'_>) {
        self.advance_to(record.at_ns);
        if self.is_over() {
            return;
        }
        let Recorder { session, watcher, scrubber, output, unprinted } = self;
        if let Some(session) = session {
            session.packet(record);
        }
        if let Some(error) = unprinted.as_ref().and_then(|failed| failed.get()) {
            output.write(|_| Err(io::Error::new(error.kind(), error.to_string())));
            return;
        }
        let seen = watcher.take();
        match scrubber {
            Some(scrubber) => scrubber.take(record, &mut |record| output.take(record)),
            None => output.take(record),
        }
        self.observe(record.at_ns, seen);
    }

    /// Tells the trigger that time has passed.
    pub fn advance_to(&mut self, now_ns: u64) {
        if self.output.trigger.state() == State::Running {
            self.output.trigger.advance_to(now_ns);
            self.end_if_over();
        }
    }

    /// True if nothing more will be recorded.
    pub fn is_over(&self) -> bool {
        self.output.trigger.state() == State::Over || self.output.writer.is_none()
    }

    pub fn recorded(&self) -> &Recorded {
        &self.output.recorded
    }

    pub fn flush(&mut self) {
        self.output.write(|writer| writer.flush());
    }

    pub fn finish(mut self) -> Recorded {
        self.flush_scrubber();
        self.flush();
        let (left_out, given_up) = self.scrubber.map_or((0, 0), |it| (it.left_out, it.given_up));
        let has_started = self.output.trigger.state() != State::Waiting;
        Recorded { has_started, left_out, given_up, ..self.output.recorded }
    }

    fn observe(&mut self, at_ns: u64, seen: SeenEvents) {
        let was_waiting = self.output.trigger.state() == State::Waiting;
        self.output.trigger.observe(at_ns, seen);
        if was_waiting && self.output.trigger.state() == State::Running {
            self.output.start();
        }
        self.end_if_over();
    }

    /// At the end of the recording, writes the packets still in the scrubber, which arrived before the end.
    fn end_if_over(&mut self) {
        if self.output.trigger.state() == State::Over {
            self.flush_scrubber();
            self.flush();
        }
    }

    fn flush_scrubber(&mut self) {
        let Recorder { scrubber: Some(scrubber), output, .. } = self else { return };
        scrubber.finish(&mut |record| output.take(record));
    }
}

/// Last stage: from the trigger to the file.
#[derive(Debug)]
struct Output {
    writer: Option<Writer<BufWriter<File>>>,
    trigger: Trigger,
    before_ns: u64,
    snap_bytes: usize,
    held: VecDeque<KeptRecord>,
    held_bytes: usize,
    recorded: Recorded,
}

impl Output {
    fn take(&mut self, record: &Record<'_>) {
        let bytes = &record.bytes[..record.bytes.len().min(self.snap_bytes)];
        let record = Record { bytes, ..*record };
        if self.trigger.state() == State::Waiting { self.hold(&record) } else { self.write_packet(&record) }
    }

    fn hold(&mut self, record: &Record<'_>) {
        self.held_bytes += record.bytes.len() + PACKET_COSTS;
        self.held.push_back(KeptRecord::new(record));
        let since_ns = record.at_ns.saturating_sub(self.before_ns);
        while self.held_bytes > MAX_HELD_BYTES || self.held.front().is_some_and(|first| first.at_ns < since_ns) {
            let Some(first) = self.held.pop_front() else { return };
            self.held_bytes -= first.bytes.len() + PACKET_COSTS;
        }
    }

    /// Writes the packets that arrived before the start.
    fn start(&mut self) {
        for packet in std::mem::take(&mut self.held) {
            self.write_packet(&packet.record());
        }
    }

    fn write_packet(&mut self, record: &Record<'_>) {
        if self.write(|writer| writer.write(record)) {
            self.recorded.packets += 1;
            self.recorded.bytes += u64::from(record.length);
        }
    }

    /// Writes nothing more after the first error.
    fn write(&mut self, write: impl FnOnce(&mut Writer<BufWriter<File>>) -> io::Result<()>) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        match write(writer) {
            Ok(()) => true,
            Err(error) => {
                self.recorded.error = Some(error);
                // Drop would try to write the buffered data again.
                if let Some(writer) = self.writer.take() {
                    let _ = writer.into_inner().into_parts();
                }
                false
            }
        }
    }
}
