// SPDX-License-Identifier: MIT
//! Writes packets to files: scrubs them, keeps only those between two events, and cuts them to the snap length.
//!
//! ```text
//! packet ──▶ session ──events─▶ trigger ──start, stop──┐
//!    │          └─messages─▶ scrubber                  ▼
//!    └────────────────────────▶ ───packets──▶ the last seconds ──▶ beginnings ──▶ snap length ──▶ pcapng
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`rewrite`] | records an existing file again |
//! | [`trigger`] | decides when recording starts and stops |
//! | [`scrub`] | removes confidential data |
//! | `output`, `ring` | the last stage, and the files |
//!
//! If writing fails, only the recording stops. The caller continues and gets the error at the end.

mod output;
pub mod rewrite;
mod ring;
pub mod scrub;
pub mod trigger;

pub use ring::{Ring, Target, numbered};

use crate::capture::{Link, Record};
use crate::messages::{MessageFormat, MessageLog};
use crate::observe::{Observer, Observers};
use crate::session::ObservedSession;
use crate::x11::message_name::Filter;
use output::Output;
use scrub::{Extent, Scrubber};
use std::io::{self, Write};
use std::path::PathBuf;
use trigger::{EventWatcher, SeenEvents, TriggerState};

#[derive(Clone, Debug, Default)]
pub struct RecordingSettings {
    /// `None` keeps all data of the packets.
    pub scrub: Option<Extent>,
    /// Maximum bytes kept of a packet.
    pub snap_bytes: Option<usize>,
    pub trigger: trigger::TriggerSettings,
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
    /// With numbered files, the last one.
    pub numbered: Option<PathBuf>,
}

/// Observers of a recording's messages: confidential bytes, the trigger's events, and lines to print.
#[derive(Debug)]
struct RecordingObservers {
    scrubber: Option<Scrubber>,
    watcher: EventWatcher,
    /// Lines are printed once the trigger has seen the packet.
    log: Option<MessageLog<Vec<u8>>>,
}

impl Observers for RecordingObservers {
    fn each(&mut self, notify: &mut dyn FnMut(&mut dyn Observer)) {
        self.scrubber.iter_mut().for_each(|scrubber| notify(scrubber));
        notify(&mut self.watcher);
        self.log.iter_mut().for_each(|log| notify(log));
    }
}

#[derive(Debug)]
pub struct Recorder {
    session: ObservedSession<RecordingObservers>,
    needs_messages: bool,
    output: Output,
}

impl Recorder {
    /// Starts a recording. Without `interface`, an interface is added for each link type at its first packet.
    pub fn new(target: Target, interface: Option<(Link, &str)>, settings: &RecordingSettings) -> io::Result<Recorder> {
        let log = || MessageLog::new(Vec::new(), MessageFormat::Text, None, Filter::default());
        let session = ObservedSession::new(RecordingObservers {
            scrubber: settings.scrub.map(Scrubber::new),
            watcher: EventWatcher::new(&settings.trigger),
            log: settings.prints_messages.then(log),
        });
        let session = settings.also_port.into_iter().fold(session, ObservedSession::also_port);
        let needs_messages = settings.scrub.is_some() || settings.trigger.needs_messages() || settings.prints_messages;
        Ok(Recorder { session, needs_messages, output: Output::new(target, interface, settings)? })
    }

    pub fn take(&mut self, record: &Record<'_>) {
        self.advance_to(record.at_ns);
        if self.is_over() {
            return;
        }
        if self.needs_messages {
            self.session.packet(record);
        }
        let was_running = self.output.trigger.state == TriggerState::Running;
        let Recorder { session, output, .. } = self;
        match &mut session.observers.scrubber {
            Some(scrubber) => scrubber.take(record, &mut |record| output.take(record)),
            None => output.take(record),
        }
        output.trigger.observe(record.at_ns, session.observers.watcher.take());
        let is_running = output.trigger.state == TriggerState::Running;
        self.print(was_running || is_running);
        self.follow_trigger(was_running, record.at_ns);
    }

    /// Reports the current time to the trigger.
    pub fn advance_to(&mut self, now_ns: u64) {
        let watcher = &mut self.session.observers.watcher;
        watcher.advance_to(now_ns);
        let seen = watcher.take();
        let was_running = self.output.trigger.state == TriggerState::Running;
        if seen != SeenEvents::default() {
            self.output.trigger.observe(now_ns, seen);
        }
        self.output.trigger.advance_to(now_ns);
        self.follow_trigger(was_running, now_ns);
    }

    /// True if nothing more will be recorded.
    pub fn is_over(&self) -> bool {
        self.output.trigger.state == TriggerState::Over || self.output.recorded.error.is_some()
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
        let (left_out, given_up) = self.session.observers.scrubber.map_or((0, 0), |it| (it.left_out, it.given_up));
        let (has_started, numbered) = (self.output.trigger.has_started, self.output.numbered());
        Recorded { has_started, left_out, given_up, numbered, ..self.output.recorded }
    }

    /// Prints the lines of the current packet, or drops them.
    fn print(&mut self, is_wanted: bool) {
        let lines = self.session.observers.log.as_mut().map(MessageLog::take).unwrap_or_default();
        if !is_wanted || lines.is_empty() {
            return;
        }
        if let Err(error) = io::stdout().write_all(&lines) {
            self.output.fail(RecordError::Print(error));
        }
    }

    /// When the recording starts, writes the packets that were held. When it ends, writes the packets that are still in
    /// the scrubber, because they arrived before the end.
    fn follow_trigger(&mut self, was_running: bool, now_ns: u64) {
        match self.output.trigger.state {
            TriggerState::Running if !was_running => self.output.start(now_ns),
            TriggerState::Over if was_running => {
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
        let Recorder { session, output, .. } = self;
        session.observers.scrubber.iter_mut().for_each(|it| it.finish(&mut |record| output.take(record)));
    }
}
