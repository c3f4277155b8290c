// SPDX-License-Identifier: MIT
//! Writes packets to files: scrubs them, keeps only those between two events, and cuts them to the snap length.
//!
//! ```text
//! packet ──▶ session ──events─▶ trigger ──start, stop──┐
//!    │          └──marks──▶ scrubber                   ▼
//!    └────────────────────────▶ ───packets──▶ the last seconds ──▶ beginnings ──▶ snap length ──▶ pcapng
//! ```
//!
//! If writing fails, only the recording stops. The caller continues and gets the error at the end.

mod beginnings;
mod output;
mod ring;

pub use ring::{Ring, Target, numbered};

use super::scrub::{Extent, Marker, Scrubber};
use super::trigger::{self, EventWatcher, SeenEvents, State};
use super::{Link, Record};
use crate::messages::{Format, MessageLog};
use crate::observe::Observer;
use crate::session::Session;
use crate::x11::message_name::Filter;
use output::Output;
use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `None` keeps all data of the packets.
    pub scrub: Option<Extent>,
    /// Maximum bytes kept of a packet.
    pub snap_bytes: Option<usize>,
    pub trigger: trigger::Settings,
    pub also_port: Option<u16>,
    /// Also print each message to standard output.
    pub prints_messages: bool,
}

/// Why a recording stopped early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    #[error(transparent)]
    File(io::Error),
    #[error(transparent)]
    Print(io::Error),
}

#[derive(Debug, Default)]
pub struct Recorded {
    pub files: u64,
    pub packets: u64,
    /// Length on the wire.
    pub bytes: u64,
    /// True if the start event occurred.
    pub has_started: bool,
    /// Packets other than TCP, which a scrubbed file omits.
    pub left_out: u64,
    /// Packets with messages that were too long to wait for. The file contains only the heads of these messages.
    pub given_up: u64,
    pub error: Option<RecordError>,
}

/// Observers of a recording's session. The caller owns them, because a session only borrows its observers.
#[derive(Debug)]
pub struct Watchers {
    marker: Marker,
    watcher: EventWatcher,
    log: Option<MessageLog<Lines>>,
    lines: Lines,
}

/// Lines of the current packet's messages. They are printed once the trigger has seen the packet.
#[derive(Clone, Debug, Default)]
struct Lines(Rc<RefCell<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Watchers {
    pub fn new(settings: &Settings) -> Watchers {
        let lines = Lines::default();
        let log = || MessageLog::new(lines.clone(), Format::Text, None, Filter::default());
        Watchers {
            marker: Marker::new(settings.scrub.unwrap_or(Extent::Cookie)),
            watcher: EventWatcher::new(&settings.trigger),
            log: settings.prints_messages.then(log),
            lines,
        }
    }
}

#[derive(Debug)]
pub struct Recorder<'a> {
    session: Option<Session<'a>>,
    watcher: EventWatcher,
    lines: Lines,
    scrubber: Option<Scrubber>,
    output: Output,
}

impl<'a> Recorder<'a> {
    /// Starts a recording. Without `interface`, an interface is added for each link type at its first packet.
    pub fn new(
        target: Target,
        interface: Option<(Link, &str)>,
        settings: &Settings,
        watchers: &'a mut Watchers,
    ) -> io::Result<Recorder<'a>> {
        let scrubber = settings.scrub.map(|_| Scrubber::new(&watchers.marker));
        let (watcher, lines) = (watchers.watcher.clone(), watchers.lines.clone());
        let needs_session = settings.scrub.is_some() || settings.trigger.needs_messages() || settings.prints_messages;
        let session = needs_session.then(|| {
            let mut observers: Vec<&mut dyn Observer> = vec![&mut watchers.marker, &mut watchers.watcher];
            observers.extend(watchers.log.as_mut().map(|log| log as &mut dyn Observer));
            let session = Session::new(observers);
            settings.also_port.into_iter().fold(session, Session::also_port)
        });
        let output = Output::new(target, interface, settings)?;
        Ok(Recorder { session, watcher, lines, scrubber, output })
    }

    pub fn take(&mut self, record: &Record<'_>) {
        self.advance_to(record.at_ns);
        if self.is_over() {
            return;
        }
        if let Some(session) = &mut self.session {
            session.packet(record);
        }
        let was_running = self.output.trigger.state() == State::Running;
        let Recorder { watcher, scrubber, output, .. } = self;
        match scrubber {
            Some(scrubber) => scrubber.take(record, &mut |record| output.take(record)),
            None => output.take(record),
        }
        let seen = watcher.take();
        output.trigger.observe(record.at_ns, seen);
        let is_running = output.trigger.state() == State::Running;
        self.print(was_running || is_running);
        self.follow_trigger(was_running, record.at_ns);
    }

    /// Tells the trigger that time has passed.
    pub fn advance_to(&mut self, now_ns: u64) {
        self.watcher.advance_to(now_ns);
        let was_running = self.output.trigger.state() == State::Running;
        let seen = self.watcher.take();
        if seen != SeenEvents::default() {
            self.output.trigger.observe(now_ns, seen);
        }
        self.output.trigger.advance_to(now_ns);
        self.follow_trigger(was_running, now_ns);
    }

    /// True if nothing more will be recorded.
    pub fn is_over(&self) -> bool {
        self.output.trigger.state() == State::Over || self.output.recorded.error.is_some()
    }

    pub fn recorded(&self) -> &Recorded {
        &self.output.recorded
    }

    pub fn flush(&mut self) {
        self.output.flush();
    }

    pub fn finish(mut self) -> Recorded {
        self.flush_scrubber();
        self.flush();
        let (left_out, given_up) = self.scrubber.map_or((0, 0), |it| (it.left_out, it.given_up));
        let has_started = self.output.trigger.has_started();
        Recorded { has_started, left_out, given_up, ..self.output.recorded }
    }

    /// Prints the lines of the current packet, or drops them.
    fn print(&mut self, is_wanted: bool) {
        let lines = self.lines.0.take();
        if !is_wanted || lines.is_empty() {
            return;
        }
        if let Err(error) = io::stdout().write_all(&lines) {
            self.output.fail(RecordError::Print(error));
        }
    }

    /// Writes what was held when the recording starts. When it ends, writes the packets still in the scrubber, which
    /// arrived before the end.
    fn follow_trigger(&mut self, was_running: bool, now_ns: u64) {
        match self.output.trigger.state() {
            State::Running if !was_running => self.output.start(now_ns),
            State::Over if was_running => {
                self.flush_scrubber();
                self.flush();
                if self.output.trigger.restart() {
                    self.output.next_file();
                }
            }
            _ => {}
        }
    }

    fn flush_scrubber(&mut self) {
        let Recorder { scrubber: Some(scrubber), output, .. } = self else { return };
        scrubber.finish(&mut |record| output.take(record));
    }
}
