// SPDX-License-Identifier: MIT
//! From packets to a file: what is secret overwritten, only what is between two events, no more than a snap length of each.
//!
//! ```text
//! packet ──▶ session ──signs──▶ trigger ──start, stop──┐
//!    │          └──marks──▶ scrubber                   ▼
//!    └────────────────────────▶ ───packets──▶ the last seconds ──▶ snap length ──▶ pcapng
//! ```
//!
//! A file that cannot be written ends the recording and nothing else: whoever gives packets goes on, and learns of it at
//! the end.

use super::scrub::{Extent, Marker, Scrubber};
use super::trigger::{self, Lookout, Signs, State, Trigger};
use super::{Link, Record, Writer};
use crate::session::Session;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter};

/// What is kept of the time before a start, in memory.
const MAX_KEPT_BYTES: usize = 256 << 20;
/// Some of the largest packets at once.
const BUFFER_BYTES: usize = 1 << 18;
/// A packet's own costs in memory.
const PACKET_COSTS: usize = 64;

/// What becomes of the packets.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Settings {
    /// `None`: the file has everything that the packets have.
    pub scrub: Option<Extent>,
    /// Maximum bytes kept of a packet.
    pub snap_bytes: Option<usize>,
    pub trigger: trigger::Settings,
    /// A port that is X's, besides those of displays.
    pub also_port: Option<u16>,
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Recorded {
    pub packets: u64,
    /// As they were on the wire.
    pub bytes: u64,
    /// Whether what it was to start on came.
    pub has_started: bool,
    /// Packets that were no TCP, which a scrubbed file has not.
    pub left_out: u64,
    /// Packets whose messages were too long to wait for; of these only heads are in the file.
    pub given_up: u64,
    /// Why there is no more.
    pub trouble: Option<io::Error>,
}

/// What sees the packets of a recording. It is kept by the caller, since a session only borrows it.
#[derive(Debug)]
pub struct Watch {
    marker: Marker,
    lookout: Lookout,
}

impl Watch {
    pub fn new(settings: &Settings) -> Watch {
        Watch { marker: Marker::new(settings.scrub.unwrap_or(Extent::Cookie)), lookout: Lookout::default() }
    }
}

/// A recording.
#[derive(Debug)]
pub struct Recorder<'a> {
    session: Option<Session<'a>>,
    lookout: Lookout,
    scrubber: Option<Scrubber>,
    tail: Tail,
}

impl<'a> Recorder<'a> {
    /// Begins a file. Where there is one interface, it can be named; otherwise each kind gets one with its first packet.
    pub fn new(
        file: File,
        interface: Option<(Link, &str)>,
        settings: &Settings,
        watch: &'a mut Watch,
    ) -> io::Result<Recorder<'a>> {
        let mut writer =
            Writer::new(BufWriter::with_capacity(BUFFER_BYTES, file), concat!("xqos ", env!("CARGO_PKG_VERSION")))?;
        let snap_bytes = settings.snap_bytes.map_or(0, |bytes| bytes as u32);
        if let Some((link, name)) = interface {
            writer.add_interface(link, name, snap_bytes)?;
        }
        let scrubber = settings.scrub.map(|_| Scrubber::new(&watch.marker));
        let lookout = watch.lookout.clone();
        let needs_session = settings.scrub.is_some() || settings.trigger.needs_messages();
        let session = needs_session.then(|| {
            let session = Session::new(vec![&mut watch.marker, &mut watch.lookout]);
            settings.also_port.into_iter().fold(session, Session::also_port)
        });
        let tail = Tail {
            writer: Some(writer),
            trigger: Trigger::new(settings.trigger),
            before_ns: settings.trigger.before_ns,
            snap_bytes: settings.snap_bytes.unwrap_or(usize::MAX),
            kept: VecDeque::new(),
            kept_bytes: 0,
            recorded: Recorded::default(),
        };
        Ok(Recorder { session, lookout, scrubber, tail })
    }

    /// Takes the next packet.
    pub fn take(&mut self, record: &Record<'_>) {
        self.pass(record.at_ns);
        if self.is_over() {
            return;
        }
        let Recorder { session, lookout, scrubber, tail } = self;
        if let Some(session) = session {
            session.packet(record);
        }
        let signs = lookout.take();
        match scrubber {
            Some(scrubber) => scrubber.take(record, &mut |record| tail.take(record)),
            None => tail.take(record),
        }
        self.see(record.at_ns, signs);
    }

    /// The clock went on.
    pub fn pass(&mut self, now_ns: u64) {
        if self.tail.trigger.state() == State::Running {
            self.tail.trigger.pass(now_ns);
            self.end_if_over();
        }
    }

    /// Nothing more is recorded.
    pub fn is_over(&self) -> bool {
        self.tail.trigger.state() == State::Over || self.tail.writer.is_none()
    }

    /// What is recorded up to now.
    pub fn recorded(&self) -> &Recorded {
        &self.tail.recorded
    }

    /// Puts into the file what is buffered.
    pub fn flush(&mut self) {
        self.tail.write(|writer| writer.flush());
    }

    /// Ends the file.
    pub fn finish(mut self) -> Recorded {
        self.hand_on_rest();
        self.flush();
        let (left_out, given_up) = self.scrubber.map_or((0, 0), |it| (it.left_out, it.given_up));
        let has_started = self.tail.trigger.state() != State::Waiting;
        Recorded { has_started, left_out, given_up, ..self.tail.recorded }
    }

    fn see(&mut self, at_ns: u64, signs: Signs) {
        let was_waiting = self.tail.trigger.state() == State::Waiting;
        self.tail.trigger.see(at_ns, signs);
        if was_waiting && self.tail.trigger.state() == State::Running {
            self.tail.start();
        }
        self.end_if_over();
    }

    /// What waits in the scrubber was before the end too.
    fn end_if_over(&mut self) {
        if self.tail.trigger.state() == State::Over {
            self.hand_on_rest();
            self.flush();
        }
    }

    fn hand_on_rest(&mut self) {
        let Recorder { scrubber: Some(scrubber), tail, .. } = self else { return };
        scrubber.finish(&mut |record| tail.take(record));
    }
}

/// A packet of the time before the start.
#[derive(Debug)]
struct Kept {
    at_ns: u64,
    link: Link,
    length: u32,
    bytes: Box<[u8]>,
    program: Option<Box<str>>,
}

/// The end of the way: from the trigger to the file.
#[derive(Debug)]
struct Tail {
    writer: Option<Writer<BufWriter<File>>>,
    trigger: Trigger,
    before_ns: u64,
    snap_bytes: usize,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
    recorded: Recorded,
}

impl Tail {
    fn take(&mut self, record: &Record<'_>) {
        let bytes = &record.bytes[..record.bytes.len().min(self.snap_bytes)];
        let record = Record { bytes, ..*record };
        if self.trigger.state() == State::Waiting { self.keep(&record) } else { self.put(&record) }
    }

    fn keep(&mut self, record: &Record<'_>) {
        let Record { at_ns, link, length, bytes, program } = *record;
        self.kept_bytes += bytes.len() + PACKET_COSTS;
        self.kept.push_back(Kept { at_ns, link, length, bytes: bytes.into(), program: program.map(Into::into) });
        let since_ns = at_ns.saturating_sub(self.before_ns);
        while self.kept_bytes > MAX_KEPT_BYTES || self.kept.front().is_some_and(|first| first.at_ns < since_ns) {
            let Some(first) = self.kept.pop_front() else { return };
            self.kept_bytes -= first.bytes.len() + PACKET_COSTS;
        }
    }

    /// What was kept is the beginning.
    fn start(&mut self) {
        for Kept { at_ns, link, length, bytes, program } in std::mem::take(&mut self.kept) {
            self.put(&Record { at_ns, link, length, bytes: &bytes, program: program.as_deref() });
        }
    }

    fn put(&mut self, record: &Record<'_>) {
        if self.write(|writer| writer.write(record)) {
            self.recorded.packets += 1;
            self.recorded.bytes += u64::from(record.length);
        }
    }

    /// After the first failure nothing is written any more.
    fn write(&mut self, write: impl FnOnce(&mut Writer<BufWriter<File>>) -> io::Result<()>) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        match write(writer) {
            Ok(()) => true,
            Err(error) => {
                self.recorded.trouble = Some(error);
                // What is buffered cannot be written either, and dropping would try to.
                if let Some(writer) = self.writer.take() {
                    let _ = writer.into_inner().into_parts();
                }
                false
            }
        }
    }
}
