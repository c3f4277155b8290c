// SPDX-License-Identifier: MIT
//! `xqos trace record`: copies records from the server's ring buffer into a file.
//!
//! Records are read every 20 ms and written every second, as a self-contained chunk. With a trigger, nothing is written
//! until it fires: records are kept in memory, in a [`Backlog`].
//!
//! The file is created before the recording begins, and removed again if nothing was written. The recording ends if the
//! server exits or crashes; the file is then complete, even if the trigger has not fired.

use anyhow::{Result, bail};
use clap::Args;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use xqos_abi::trace::{Entry, Event, Level, Words};
use xqos_agent::recording::{Backlog, ENDED, READ_EVERY, Source, merged};
use xqos_agent::session::Session;
use xqos_cli::output;
use xqos_cli::program::one_line;
use xqos_core::Time;
use xqos_sys::{self as sys, Signals};
use xqos_text::quantity::Micros;
use xqos_trace::file::{Header, TraceWriter};
use xqos_trace::kernel::Kernel;
use xqos_trace::model::{Burst, Model};
use xqos_trace::show;

const WRITE_EVERY: Duration = Duration::from_secs(1);
/// How long the recording continues after the trigger.
const AFTER_TRIGGER: Duration = Duration::from_secs(1);

/// Records a trace into a file, until ^C, a time, a size or a long wait
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The file to write; an existing file is not replaced
    #[arg(value_name = "FILE", default_value = "xqos.trace")]
    file: PathBuf,
    /// What to record: slices (decisions and slices), or requests (each request as well)
    #[arg(long, value_name = "slices|requests", default_value = "slices", value_parser = level)]
    level: Level,
    /// Stop after this time
    #[arg(long, value_name = "TIME")]
    time: Option<Micros>,
    /// Stop when the file has this many megabytes
    #[arg(long, value_name = "MB")]
    size: Option<u64>,
    /// Stop one second after a client that is not busy has waited longer than this; keep only the time before it
    #[arg(long, value_name = "TIME")]
    until_wait: Option<Micros>,
    /// With --until-wait: only consider programs with this text in their name, even if they are busy
    #[arg(long, value_name = "NAME", requires = "until_wait")]
    client: Option<String>,
    /// With --until-wait: how much of the time before the wait to keep
    #[arg(long, value_name = "TIME", default_value = "10s")]
    keep: Micros,
    /// Also record which threads the kernel ran, wake-ups and interrupts (needs root)
    #[arg(long)]
    kernel: bool,
    /// Size of the shared memory in records, if there is no other recording
    #[arg(long, value_name = "RECORDS", default_value_t = 0, hide_default_value = true)]
    ring: u32,
}

const EXAMPLES: &str = "\
Examples:
  xqos trace record --time 10s desk.trace
  xqos trace record --until-wait 20ms --keep 5s hiccup.trace
  xqos trace record --until-wait 20ms --client mpv hiccup.trace
  xqos trace record --level requests --time 2s all.trace
  sudo xqos trace record --kernel --time 10s desk.trace

Level slices adds no cost to requests. Level requests times each request, which
costs tens of nanoseconds. The server never waits for the recorder: records that
arrive too fast are lost, counted and reported.

A client is busy if it would use more than half of the server when alone. Such a
client always has work and waits for its turn by design, so its waits end a
recording only if --client names it.

A server that is killed, stopped or reset ends the recording, and the file is
complete. With --until-wait, it then has what was kept in memory.";

fn level(text: &str) -> Result<Level, String> {
    let found = [Level::Slices, Level::Requests].into_iter().find(|level| level.name() == text);
    found.ok_or_else(|| format!("'{text}' is not a level: write slices or requests"))
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let (session, info) = Session::open_armed(display)?;
        let without = |error: &_| output::note(&format!("recording without the kernel's events: {}", one_line(error)));
        let kernel = self.kernel.then(Kernel::start).and_then(|started| started.inspect_err(without).ok());
        let signals = Signals::watch()?;
        let source = Source::open(&session, self.level, self.ring)?;
        let header = source.header(info.server_pid, kernel.is_some())?;
        let file = output::recording(&self.file, 0o666)?;
        let writer = TraceWriter::new(file, &header).inspect_err(|_| output::discard(&self.file))?;
        let mut recorder = TraceRecorder {
            arguments: self,
            source,
            kernel,
            model: Model::new(),
            backlog: self.until_wait.map(|_| Backlog::default()),
            writer,
            header,
            triggered: None,
            read_at: Time(1),
        };
        output::note(&match self.until_wait {
            Some(wait) => format!("waiting until a client waits longer than {wait}; ^C ends without a file"),
            None => format!("recording {} into {}; ^C ends the recording", session.display, self.file.display()),
        });
        let concluded = recorder.run(&signals).and_then(|()| recorder.conclude());
        if recorder.backlog.is_some() {
            output::discard(&self.file);
        }
        concluded
    }
}

struct TraceRecorder<'a> {
    arguments: &'a Arguments,
    source: Source<'a>,
    header: Header,
    kernel: Option<Kernel>,
    model: Model,
    /// While this is set, the file is empty.
    backlog: Option<Backlog>,
    writer: TraceWriter,
    /// When the trigger fired, and the burst that fired it.
    triggered: Option<(Instant, Burst)>,
    /// All records until this time have been read.
    read_at: Time,
}

impl TraceRecorder<'_> {
    fn run(&mut self, signals: &Signals) -> Result<()> {
        let began = Instant::now();
        let (mut written, mut renewed) = (began, began);
        loop {
            self.read()?;
            let now = Instant::now();
            if now - written >= WRITE_EVERY {
                written = now;
                self.writer.flush()?;
            }
            let is_over = self.arguments.time.is_some_and(|time| now - began >= time.duration())
                || self.is_large()
                || self.triggered.as_ref().is_some_and(|(at, _)| now - *at >= AFTER_TRIGGER)
                || self.source.ended.is_some();
            if is_over || signals.next().is_some() {
                return Ok(());
            }
            if self.backlog.is_some() && now - renewed >= self.arguments.keep.duration() / 2 {
                renewed = now;
                self.source.begin_anew()?;
            }
            std::thread::sleep(READ_EVERY);
        }
    }

    fn is_large(&self) -> bool {
        self.arguments.size.is_some_and(|size| self.writer.bytes() >= size.saturating_mul(1_000_000))
    }

    fn read(&mut self) -> Result<()> {
        self.read_at = Time(sys::monotonic_ns());
        let records = self.source.read()?;
        let of_kernel = self.kernel.as_mut().map(Kernel::read).unwrap_or_default();
        merged(records, of_kernel).try_for_each(|words| self.take(words))
    }

    fn take(&mut self, words: Words) -> Result<()> {
        let event = Event::decode(words);
        let is_begin = matches!(event, Some(Event { what: Entry::Begin { .. }, .. }));
        if is_begin {
            // The wait for a trigger may last for weeks.
            self.model.forget_gone();
        }
        let burst = event.as_ref().and_then(|event| self.model.take(event));
        let Some(backlog) = &mut self.backlog else { return self.writer.add(words) };
        backlog.add(words, is_begin, self.arguments.keep.duration());
        let Some(burst) = burst.filter(|burst| self.fires(burst)) else { return Ok(()) };
        self.triggered = Some((Instant::now(), burst));
        self.write_backlog()
    }

    fn fires(&self, burst: &Burst) -> bool {
        let is_long = self.arguments.until_wait.is_some_and(|wait| burst.waited_ns > wait.ns());
        let is_wanted = self.model.clients().get(burst.key).is_some_and(|client| match &self.arguments.client {
            Some(name) => client.identity.program.contains(name.as_str()),
            // This command's own requests also wait, but do not fire the trigger.
            None => !client.is_busy() && client.identity.pid != std::process::id(),
        });
        is_long && is_wanted && self.triggered.is_none()
    }

    /// Writes the kept records; later records go directly into the file.
    fn write_backlog(&mut self) -> Result<()> {
        let backlog = self.backlog.take().unwrap_or_default();
        backlog.records().try_for_each(|words| self.writer.add(words))
    }

    fn conclude(&mut self) -> Result<()> {
        if self.backlog.is_some() && self.source.ended.is_none() {
            bail!("no client waited that long: nothing was written");
        }
        self.write_backlog()?;
        // With ENDED, the server has already written the end record.
        if self.source.ended != Some(ENDED) {
            // The trace ends now and not at the last record, because a server that hangs or idles writes no records.
            let end = self.read_at.max(self.model.now);
            self.writer.add(Event { at: end, what: Entry::End }.encode())?;
        }
        self.writer.flush()?;
        let (records, megabytes) = (self.writer.records(), self.writer.bytes() as f64 / 1e6);
        let names = xqos_trace::names::Names::new(self.header.extensions.clone());
        if let Some((_, burst)) = &self.triggered {
            output::note(&show::burst(burst, &self.model, &names));
        }
        if self.model.lost > 0 {
            output::note(&format!(
                "{} records arrived too fast and are missing: use a larger --ring than {}",
                self.model.lost,
                if self.arguments.ring == 0 { xqos_abi::ring::DEFAULT_CAPACITY } else { self.arguments.ring }
            ));
        }
        if let Some(lost) = self.kernel.as_ref().map(|kernel| kernel.instance.lost()).filter(|&lost| lost > 0) {
            output::note(&format!("{lost} events of the kernel arrived too fast and are missing"));
        }
        if let Some(why) = self.source.ended {
            output::note(why);
        }
        let file = self.arguments.file.display();
        output::note(&format!("{records} records, {megabytes:.2} MB in {file}: see `xqos trace stats {file}`"));
        Ok(())
    }
}
