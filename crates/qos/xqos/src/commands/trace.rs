// SPDX-License-Identifier: MIT
//! `xqos trace`: records what happens inside the server, and shows, summarises and exports recordings.

mod record;
mod stats;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};
use xqos_abi::trace::names;
use xqos_cli::output::{self, NewFile};
use xqos_cli::sibling;
use xqos_core::Time;
use xqos_sys as sys;
use xqos_text::quantity::Micros;
use xqos_trace::export::{csv, page, parquet, perfetto};
use xqos_trace::file::Trace;
use xqos_trace::model::Model;
use xqos_trace::names::Names;
use xqos_trace::show::{self, Filter};
use xqos_trace::wire::Wire;

/// Records what happens inside the server, and shows recordings
///
/// A trace has every decision of the scheduler with its reason: which clients had work and since when, which was served
/// and for how long, which input was delivered, which client held the server grab, and how budgets were used. The
/// server writes the trace into shared memory, and only during a recording. It adds no cost to requests unless --level
/// requests is given.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: TraceCommand,
}

const EXAMPLES: &str = "\
Examples:
  xqos trace record desk.trace              until ^C
  xqos trace record --until-wait 20ms hiccup.trace
                                            until a client waits that long;
                                            keeps the seconds before it
  xqos trace stats desk.trace               which clients waited, and why
  xqos trace export desk.trace desk.html    a timeline as a page
  xqos trace show --client mpv desk.trace   record by record";

#[derive(Debug, Subcommand)]
enum TraceCommand {
    Record(record::Arguments),
    Show(Show),
    Stats(stats::Arguments),
    Export(Export),
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        match &self.command {
            TraceCommand::Record(arguments) => arguments.perform(display),
            TraceCommand::Show(arguments) => arguments.perform(),
            TraceCommand::Stats(arguments) => arguments.perform(),
            TraceCommand::Export(arguments) => arguments.perform(),
        }
    }
}

/// Prints a trace as text, one line per record
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos trace show desk.trace | less
  xqos trace show --kind dispatch,slice --from 2s --to 2.1s desk.trace")]
struct Show {
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only clients with this text in their program's name, or with this pid
    #[arg(long, value_name = "NAME|PID")]
    client: Option<String>,
    /// Only records of these kinds
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = PossibleValuesParser::new(names()))]
    kind: Vec<String>,
    /// Begin at this time, counted from the start of the trace
    #[arg(long, value_name = "TIME")]
    from: Option<Micros>,
    /// End at this time
    #[arg(long, value_name = "TIME")]
    to: Option<Micros>,
}

impl Show {
    fn perform(&self) -> Result<()> {
        let (trace, names) = open(&self.file)?;
        let filter = Filter {
            client: self.client.clone(),
            kinds: self.kind.clone(),
            from_ns: self.from.map_or(0, Micros::ns),
            to_ns: self.to.map(Micros::ns),
        };
        let mut model = Model::new();
        let mut out = BufWriter::new(std::io::stdout().lock());
        for event in trace.events() {
            model.take(&event);
            if filter.matches(&event, &model) {
                if let Err(error) = writeln!(out, "{}", show::line(&event, &model, &names)) {
                    return unless_closed(error);
                }
            }
        }
        out.flush().or_else(unless_closed)
    }
}

/// Ignores a reader that has closed the pipe.
fn unless_closed(error: io::Error) -> Result<()> {
    if error.kind() == ErrorKind::BrokenPipe { Ok(()) } else { Err(error).context("cannot write the output") }
}

fn is_closed(error: &anyhow::Error) -> bool {
    error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).any(|io| io.kind() == ErrorKind::BrokenPipe)
}

/// Exports a trace as a page, or for Perfetto, CSV or Parquet
#[derive(Args, Debug)]
#[command(after_help = EXPORT_EXAMPLES)]
struct Export {
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The output file; its extension chooses the format. An existing file is replaced once the new one is complete.
    /// With --format, - is the standard output
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// The format, regardless of the extension
    #[arg(long, value_enum)]
    format: Option<ExportFormat>,
    /// For Parquet: the machine of the trace, if the trace does not name it [default: this one]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// For pages and Perfetto: also show the messages in this capture, made on the same machine during the trace
    #[arg(long, value_name = "CAPTURE")]
    wire: Option<PathBuf>,
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  xqos trace export desk.trace desk.html       a self-contained page
  xqos trace export desk.trace desk.pftrace    for Perfetto's viewer
  xqos trace export desk.trace desk.csv        one line per record
  xqos trace export desk.trace - --format csv  the same, to standard output
  xqos trace export desk.trace fleet.parquet   adds to a folder of tables
  xqos trace export --wire emacs.pcapng desk.trace desk.html
                                               with messages on the wire

The page has a lane for each client: when it had work, when it was served, its
budget and deadlines, the input it got, and where its requests were cut. For a
recording with --kernel, it also has a lane for each processor on the same time
axis: the thread that ran, interrupts, and wake-ups. Perfetto gets these as
tracks. The button Accounting draws the budget of each reservation over time, as
in Figure 5 of the paper of 2008, with the original rule as a dashed line.

With --wire, a lane also has the client's messages on the wire: requests above,
replies and events below, with lines to the slices that executed them if the
trace has the client's start. Record the trace while `xqos cap` runs.

Drag and wheel move and zoom; a drag with shift zooms to the selected span. A
click sets marker A, a click with shift sets marker B, and the table covers the
time between them. A search shows only the programs with a text in their name.

Parquet is a folder of tables (sessions, clients, bursts, waits), partitioned by
host, display and day, for any number of traces. DuckDB and Spark read it; the
document fleet.md describes its columns and five questions. Exporting a trace
again replaces its rows.";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    Html,
    Perfetto,
    Csv,
    Parquet,
}

impl ExportFormat {
    fn of(path: &Path) -> Option<ExportFormat> {
        match path.extension()?.to_str()? {
            "html" | "htm" => Some(ExportFormat::Html),
            "pftrace" | "perfetto-trace" | "perfetto" => Some(ExportFormat::Perfetto),
            "csv" => Some(ExportFormat::Csv),
            "parquet" => Some(ExportFormat::Parquet),
            _ => None,
        }
    }
}

impl Export {
    fn perform(&self) -> Result<()> {
        let Some(format) = self.format.or_else(|| ExportFormat::of(&self.output)) else {
            bail!(
                "{} has no extension that names a format: end it in .html, .pftrace, .csv or .parquet, or give --format",
                self.output.display()
            );
        };
        if output::is_same(&self.file, &self.output) {
            bail!("{} is the trace itself: name another output file", self.output.display());
        }
        if self.wire.is_some() && !matches!(format, ExportFormat::Html | ExportFormat::Perfetto) {
            bail!("--wire is for pages and Perfetto: name an output that ends in .html or .pftrace");
        }
        let (trace, names) = open(&self.file)?;
        let wire = self.wire.as_ref().map_or_else(|| Ok(Wire::default()), |path| read_wire(path, &trace))?;
        match format {
            ExportFormat::Html => self.create(|out| {
                let additions = page::Additions { wire, ..page::Additions::default() };
                let page = page::render(&trace.header, trace.events(), &names, additions)?;
                Ok(out.write_all(page.as_bytes())?)
            }),
            ExportFormat::Perfetto => self.create(|out| Ok(perfetto::write(trace.events(), &names, &wire, out)?)),
            ExportFormat::Csv => self.create(|out| Ok(csv::write(trace.events(), &names, out)?)),
            ExportFormat::Parquet => self.add_tables(&trace, &names),
        }
    }

    /// Returns true if the output is the standard output.
    fn is_printed(&self) -> bool {
        self.output == Path::new("-")
    }

    fn create(&self, write: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
        let failed = || format!("cannot write {}", self.output.display());
        let new =
            (!self.is_printed()).then(|| NewFile::create(&self.output, 0o666)).transpose().with_context(failed)?;
        let printed = || Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?));
        let mut out = BufWriter::new(new.as_ref().map_or_else(printed, NewFile::file).with_context(failed)?);
        match write(&mut out).and_then(|()| Ok(out.flush()?)) {
            Err(error) if is_closed(&error) => Ok(()),
            written => written.and_then(|()| Ok(new.map_or(Ok(()), NewFile::finish)?)).with_context(failed),
        }
    }

    fn add_tables(&self, trace: &Trace, names: &Names) -> Result<()> {
        ensure!(!self.is_printed(), "Parquet is a folder of tables: name a folder instead of -");
        // Older traces do not name their host.
        let unknown = || trace.header.host.is_empty().then(sys::host_name);
        let host = self.host.clone().or_else(unknown);
        let target = parquet::TraceTables { folder: &self.output, host: host.as_deref(), session: None };
        parquet::write(&trace.header, trace.events(), names, &target)?;
        Ok(())
    }
}

/// Opens a trace file; also returns the names of its server's requests.
pub fn open(path: &Path) -> Result<(Trace, Names)> {
    let trace = Trace::open(path)?;
    let names = Names::new(trace.header.extensions.clone());
    Ok((trace, names))
}

/// The messages of a capture with the clock of the trace, through the program that decodes captures.
fn read_wire(capture: &Path, trace: &Trace) -> Result<Wire> {
    let program = sibling::needed("xqos-wire", "--wire")?;
    let mut command = Program::new(&program);
    command.args(["analyse", "--messages", "--json"]).arg(capture);
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.with_context(|| format!("cannot start {}", program.display()))?;
    let out = child.stdout.take().map(BufReader::new).context("the messages cannot be read")?;
    let wire = Wire::read(out, trace.header.realtime_offset_ns);
    let mut said = String::new();
    child.stderr.take().map_or(Ok(0), |mut err| err.read_to_string(&mut said))?;
    let mut notes = said.lines().map(|line| line.trim_start_matches("xqos: "));
    if !child.wait()?.success() {
        return Err(anyhow!("{}", notes.next_back().unwrap_or("the capture cannot be read").to_owned()));
    }
    let wire = wire?;
    notes.for_each(output::note);
    if wire.connections.is_empty() {
        output::note(&format!("{} has no X connection", capture.display()));
    } else if !wire.has_messages(span_of(trace)) {
        output::note(&format!(
            "{} has no message from the time of the trace: run `xqos cap` on the server's machine during the recording",
            capture.display()
        ));
    }
    Ok(wire)
}

fn span_of(trace: &Trace) -> (Time, Time) {
    let mut model = Model::without_causes();
    trace.events().for_each(|event| _ = model.take(&event));
    (model.began.unwrap_or(model.now), model.now)
}
