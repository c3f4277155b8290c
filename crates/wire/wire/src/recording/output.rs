// SPDX-License-Identifier: MIT
//! Last stage of a recording: from the trigger to the files.

use super::ring::Target;
use super::trigger::{Trigger, TriggerState};
use super::{RecordError, Recorded, RecordingSettings};
use crate::capture::{CaptureWriter, KeptRecord, Link, Record};
use crate::observe::ConnectionId;
use crate::session::Session;
use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;

/// Maximum memory for packets that arrived before the start.
const MAX_HELD_BYTES: usize = 256 << 20;
/// Room for a few of the largest packets.
const BUFFER_BYTES: usize = 1 << 18;
/// Memory overhead per packet.
const PACKET_COSTS: usize = 64;

#[derive(Debug)]
pub struct Output {
    target: Target,
    /// Link type and name of the only interface. If `None`, each link type has an interface.
    interface: Option<(Link, String)>,
    writer: Option<CaptureWriter<BufWriter<File>>>,
    pub trigger: Trigger,
    before_ns: u64,
    snap_bytes: usize,
    /// The last packets before the start.
    held: VecDeque<KeptRecord>,
    held_bytes: usize,
    beginnings: Option<Beginnings>,
    pub recorded: Recorded,
}

impl Output {
    pub fn new(target: Target, interface: Option<(Link, &str)>, settings: &RecordingSettings) -> io::Result<Output> {
        let can_join = settings.trigger.can_join() && !matches!(target, Target::Nowhere);
        let mut output = Output {
            target,
            interface: interface.map(|(link, name)| (link, name.to_owned())),
            writer: None,
            trigger: Trigger::new(settings.trigger.clone()),
            before_ns: settings.trigger.before_ns,
            snap_bytes: settings.snap_bytes.unwrap_or(usize::MAX),
            held: VecDeque::new(),
            held_bytes: 0,
            beginnings: can_join.then(|| Beginnings::new(settings.also_port)),
            recorded: Recorded::default(),
        };
        // A single file is valid even if it has no packet.
        if matches!(output.target, Target::One(_)) {
            output.open()?;
        }
        Ok(output)
    }

    pub fn take(&mut self, record: &Record<'_>) {
        if self.trigger.state == TriggerState::Waiting { self.hold(record) } else { self.write_packet(record) }
    }

    /// Writes the packets that arrived before the start.
    pub fn start(&mut self, now_ns: u64) {
        self.forget_before(now_ns.saturating_sub(self.before_ns));
        self.held_bytes = 0;
        for packet in std::mem::take(&mut self.held) {
            self.write_packet(&packet.record());
        }
    }

    /// Ends the current file, so that the next packet begins another one.
    pub fn next_file(&mut self) {
        self.flush();
        self.writer = None;
        if let Some(beginnings) = &mut self.beginnings {
            beginnings.next_file();
        }
    }

    pub fn numbered(&self) -> Option<PathBuf> {
        if let Target::Ring(ring) = &self.target { Some(ring.current()) } else { None }
    }

    pub fn flush(&mut self) {
        if let Some(Err(error)) = self.writer.as_mut().map(CaptureWriter::flush) {
            self.fail(RecordError::File(error));
        }
    }

    /// Writes nothing more after the first error.
    pub fn fail(&mut self, error: RecordError) {
        self.recorded.error.get_or_insert(error);
        // Drop would try to write the buffered data again.
        if let Some(writer) = self.writer.take() {
            let _ = writer.into_inner().into_parts();
        }
    }

    fn hold(&mut self, record: &Record<'_>) {
        if matches!(self.target, Target::Nowhere) {
            return;
        }
        self.held_bytes += record.bytes.len() + PACKET_COSTS;
        self.held.push_back(KeptRecord::new(record));
        self.forget_before(record.at_ns.saturating_sub(self.before_ns));
    }

    fn forget_before(&mut self, since_ns: u64) {
        while self.held_bytes > MAX_HELD_BYTES || self.held.front().is_some_and(|first| first.at_ns < since_ns) {
            let Some(first) = self.held.pop_front() else { return };
            self.held_bytes -= first.bytes.len() + PACKET_COSTS;
            if let Some(beginnings) = &mut self.beginnings {
                beginnings.leave_out(&first.record());
            }
        }
    }

    fn write_packet(&mut self, record: &Record<'_>) {
        if self.recorded.error.is_some() {
            return;
        }
        let joined = self.beginnings.as_mut().and_then(|beginnings| beginnings.write(record));
        let record = joined.as_ref().map_or(*record, KeptRecord::record);
        let bytes = &record.bytes[..record.bytes.len().min(self.snap_bytes)];
        match self.write(&Record { bytes, ..record }) {
            Ok(()) => {
                self.recorded.packets += 1;
                self.recorded.bytes += u64::from(record.length);
            }
            Err(error) => self.fail(RecordError::File(error)),
        }
    }

    fn write(&mut self, record: &Record<'_>) -> io::Result<()> {
        if self.writer.is_none() {
            self.open()?;
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write(record))
    }

    /// Begins the next file, if there is one.
    fn open(&mut self) -> io::Result<()> {
        let file = match &mut self.target {
            Target::Nowhere => return Ok(()),
            Target::One(file) => file.try_clone()?,
            Target::Ring(ring) => ring.next_file()?,
        };
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let mut writer = CaptureWriter::new(file, concat!("xqos ", env!("CARGO_PKG_VERSION")))?;
        if let Some((link, name)) = &self.interface {
            let snap_bytes = u32::try_from(self.snap_bytes).unwrap_or(0);
            writer.add_interface(*link, name, snap_bytes)?;
        }
        self.recorded.files += 1;
        self.writer = Some(writer);
        Ok(())
    }
}

/// Begins a file in the middle of connections. A second session decodes each packet when the packet is written or
/// dropped. Its state therefore matches the start of the next file, even if that file has the seconds before its start
/// event.
#[derive(Debug)]
struct Beginnings {
    session: Session<'static>,
    /// Connections of which the current file has a packet.
    in_file: HashSet<ConnectionId>,
}

impl Beginnings {
    fn new(also_port: Option<u16>) -> Beginnings {
        let session = also_port.into_iter().fold(Session::new(Vec::new()), Session::also_port);
        Beginnings { session, in_file: HashSet::new() }
    }

    fn next_file(&mut self) {
        self.in_file.clear();
    }

    /// Takes a packet that is in no file.
    fn leave_out(&mut self, record: &Record<'_>) {
        self.session.packet(record);
    }

    /// Takes a packet of the current file. If it is the first packet of its connection in this file, but not in the
    /// capture, returns it with the program's name and a checkpoint.
    fn write(&mut self, record: &Record<'_>) -> Option<KeptRecord> {
        let connection = self.session.connection(record);
        let is_joined = connection.is_some_and(|connection| self.in_file.insert(connection));
        let joined = is_joined.then(|| self.session.beginning(record)).flatten().map(|(program, checkpoint)| {
            let (program, checkpoint) = (record.program.or(program), checkpoint.as_deref());
            KeptRecord::new(&Record { program, checkpoint, ..*record })
        });
        self.session.packet(record);
        if connection.is_none() {
            self.in_file.extend(self.session.connection(record));
        }
        joined
    }
}
