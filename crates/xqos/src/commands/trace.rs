// SPDX-License-Identifier: MIT
//! `xqos trace`: records what happens inside the server, and shows, summarises and exports recordings.

mod record;
mod wire;

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use xqos_abi::trace::names;
use xqos_agent::field::{Value, count, fields, table, time_of_ms};
use xqos_cli::output::{self, NewFile};
use xqos_cli::quantity::Micros;
use xqos_cli::time::of_ms;
use xqos_sys as sys;
use xqos_trace::export::{csv, page, parquet, perfetto};
use xqos_trace::file::Trace;
use xqos_trace::model::Model;
use xqos_trace::names::Names;
use xqos_trace::show::{self, ClientStatistics, Filter, Statistics};
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
    command: Command,
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
enum Command {
    Record(record::Arguments),
    Show(Show),
    Stats(Stats),
    Export(Export),
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        match &self.command {
            Command::Record(arguments) => arguments.perform(display),
            Command::Show(arguments) => arguments.perform(),
            Command::Stats(arguments) => arguments.perform(),
            Command::Export(arguments) => arguments.perform(),
        }
    }
}

/// Prints a trace as text, one line per record
#[derive(Args, Debug)]
#[command(after_help = SHOW_EXAMPLES)]
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

const SHOW_EXAMPLES: &str = "\
Examples:
  xqos trace show desk.trace | less
  xqos trace show --kind dispatch,slice --from 2s --to 2.1s desk.trace";

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
fn unless_closed(error: std::io::Error) -> Result<()> {
    if error.kind() == std::io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error).context("cannot write the output") }
}

/// Summarises a trace: shares, response times, missed deadlines, the longest requests, and causes of delays
#[derive(Args, Debug)]
#[command(after_help = STATS_EXAMPLES)]
struct Stats {
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

const STATS_EXAMPLES: &str = "\
Examples:
  xqos trace stats desk.trace
  xqos trace stats --json desk.trace | jq '.delays[0]'

A burst begins when a client has work and ends when all of it is done; its
length is the response time. Of that time, a client waits while it is not served
itself: for slices of other clients, for the server's own work, or because the
server has no processor. Only --kernel recordings tell the last two apart.

JSON: seconds, policy, decisions, early_ends, lost_records; clients, an array of
pid, name, client, summed (it has left, and departed includes it), share (of the
trace's time), server_time_ms, reserved_time_ms, requests, slices, responses
(count, mean_ms, p50_ms, p99_ms, worst_ms), waited_ms, longest_wait_ms,
longest_request (null, or name, ms), depletions, misses, grabs, grabbed_ms,
longest_grab_ms, inputs, exposes, cuts (times another client was served between
two parts of its requests), finished (rests of cut requests that were executed
early, for another client), without_processor_ms (with --kernel), kinds (name,
count, ms, longest_ms, bytes; with level requests); departed, programs of which
more than one client has left: an array of program (null if unknown), uid,
clients (how many), share, server_time_ms, requests, waited_ms, longest_wait_ms;
delays, an array of who, why, ms; other_delays_ms (the rest of the delays);
worst, an array of at_s, who, waited_ms, text.";

impl Stats {
    fn perform(&self) -> Result<()> {
        let (trace, names) = open(&self.file)?;
        let mut model = Model::new();
        for event in trace.events() {
            model.take(&event);
        }
        let statistics = Statistics::of(&model, &names);
        if self.json { output::json(&statistics) } else { output::print(&text(&statistics)) }
    }
}

pub fn text(statistics: &Statistics) -> String {
    let mut text = format!(
        "{:.3} s, policy {}, {} decisions, {} slices ended early",
        statistics.seconds,
        statistics.policy.as_deref().unwrap_or("unknown"),
        statistics.decisions,
        statistics.early_ends
    );
    if statistics.lost_records > 0 {
        text += &format!("; {} records are missing", statistics.lost_records);
    }
    let shown = |client: &&ClientStatistics| client.slices > 0 && !client.summed;
    let clients: Vec<&ClientStatistics> = statistics.clients.iter().filter(shown).collect();
    text += &format!("\n\n{}", table(COLUMNS, &clients).render(None));
    text += &xqos_agent::sample::departed::text(&statistics.departed, None);
    for client in statistics.clients.iter().filter(|client| client.without_processor_ms > 0.0) {
        text += &format!("{} was ready but had no processor for {}\n", client.name, of_ms(client.without_processor_ms));
    }
    for client in statistics.clients.iter().filter(|client| client.grabs > 0) {
        let times = if client.grabs == 1 { "once".to_owned() } else { format!("{} times", client.grabs) };
        let (all, longest) = (of_ms(client.grabbed_ms), of_ms(client.longest_grab_ms));
        text += &format!("{} held the server grab {times}, for {all} in all and {longest} at most\n", client.name);
    }
    if !statistics.delays.is_empty() {
        text += "\nDelays, in total\n";
        for delay in statistics.delays.iter().take(10) {
            text += &format!("{:>10}  {}: {}\n", of_ms(delay.ms), delay.who, delay.why);
        }
        let others: f64 = statistics.delays.iter().skip(10).map(|delay| delay.ms).sum();
        if others + statistics.other_delays_ms > 0.0 {
            text += &format!("{:>10}  others\n", of_ms(others + statistics.other_delays_ms));
        }
    }
    if !statistics.worst.is_empty() {
        text += "\nThe longest waits\n";
        for worst in statistics.worst.iter().take(10) {
            text += &format!("  {}\n", worst.text);
        }
    }
    text + &expensive(statistics)
}

fields! {
/// The columns for a client in a trace.
const COLUMNS of client: ClientStatistics;

"name" elastic("CLIENT", 8, ""): "name of the client" => Value::Text(client.name.clone());
"share" number("SHARE", 6, ""): "share of the trace's time" => Value::Share(client.share);
"server_time_ms" number("TIME", 7, ""): "server time used" => time_of_ms(client.server_time_ms);
"requests" number("REQUESTS", 8, ""): "requests served" => count(client.requests);
"responses.count" number("BURSTS", 8, ""): "number of bursts" => count(client.responses.count);
"responses.mean_ms" number("MEAN", 7, ""): "mean response time" => time_of_ms(client.responses.mean_ms);
"responses.p50_ms" number("P50", 7, ""): "median response time" => time_of_ms(client.responses.p50_ms);
"responses.p99_ms" number("P99", 7, ""): "99th percentile of the response time" => time_of_ms(client.responses.p99_ms);
"responses.worst_ms" number("WORST", 7, ""): "longest response time" => time_of_ms(client.responses.worst_ms);
"waited_ms" number("WAITED", 7, ""): "total time from arrival to dispatch" => time_of_ms(client.waited_ms);
"misses" number("MISSED", 7, ""): "deadlines missed" => count(client.misses);
"cuts" number("CUTS", 7, ""): "times another client was served between two parts of its requests" =>
    count(client.cuts).if_any();
"longest_request" elastic("LONGEST REQUEST", 8, ""): "its processor time and name" =>
    Value::or_none(client.longest_request.as_ref(), |one| Value::Text(format!("{} {}", of_ms(one.ms), one.name)));
}

/// The kinds of requests that took the most time, if requests were timed.
fn expensive(statistics: &Statistics) -> String {
    let mut kinds: Vec<_> =
        statistics.clients.iter().flat_map(|client| client.kinds.iter().map(move |kind| (client, kind))).collect();
    kinds.sort_by(|a, b| b.1.ms.total_cmp(&a.1.ms));
    if kinds.is_empty() {
        return String::new();
    }
    let mut text = "\nThe most expensive kinds of requests\n".to_owned();
    for (client, kind) in kinds.into_iter().take(10) {
        let mean = of_ms(kind.ms / kind.count.max(1) as f64);
        text += &format!(
            "{:>10}  {} {}: {} requests, {mean} each, {} the longest\n",
            of_ms(kind.ms),
            client.name,
            kind.name,
            kind.count,
            of_ms(kind.longest_ms)
        );
    }
    text
}

/// Exports a trace as a page, or for Perfetto, CSV or Parquet
#[derive(Args, Debug)]
#[command(after_help = EXPORT_EXAMPLES)]
struct Export {
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The output file; its extension chooses the format. An existing file is replaced once the new one is complete
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// The format, regardless of the extension
    #[arg(long, value_enum)]
    format: Option<Format>,
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
enum Format {
    Html,
    Perfetto,
    Csv,
    Parquet,
}

impl Format {
    fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "html" | "htm" => Some(Format::Html),
            "pftrace" | "perfetto-trace" | "perfetto" => Some(Format::Perfetto),
            "csv" => Some(Format::Csv),
            "parquet" => Some(Format::Parquet),
            _ => None,
        }
    }
}

impl Export {
    fn perform(&self) -> Result<()> {
        let Some(format) = self.format.or_else(|| Format::of(&self.output)) else {
            bail!(
                "{} has no extension that names a format: end it in .html, .pftrace, .csv or .parquet, or give --format",
                self.output.display()
            );
        };
        if output::is_same(&self.file, &self.output) {
            bail!("{} is the trace itself, which cannot be recorded again: name another file", self.output.display());
        }
        if self.wire.is_some() && !matches!(format, Format::Html | Format::Perfetto) {
            bail!("--wire is for pages and Perfetto: name an output that ends in .html or .pftrace");
        }
        let (trace, names) = open(&self.file)?;
        let wire = self.wire.as_ref().map_or_else(|| Ok(Wire::default()), |path| wire::read(path, &trace.header))?;
        match format {
            Format::Html => self.create(|out| {
                let page = page::render_with(&trace.header, trace.events(), &names, wire)?;
                Ok(out.write_all(page.as_bytes())?)
            }),
            Format::Perfetto => self.create(|out| Ok(perfetto::write_with(trace.events(), &names, &wire, out)?)),
            Format::Csv => self.create(|out| Ok(csv::write(trace.events(), &names, out)?)),
            Format::Parquet => self.add_tables(&trace, &names),
        }
    }

    fn create(&self, write: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
        let failed = || format!("cannot write {}", self.output.display());
        let file = NewFile::create(&self.output, 0o666).with_context(failed)?;
        let mut out = BufWriter::new(file.file().with_context(failed)?);
        write(&mut out).and_then(|()| Ok(out.flush()?)).with_context(failed)?;
        file.finish().with_context(failed)
    }

    fn add_tables(&self, trace: &Trace, names: &Names) -> Result<()> {
        // Older traces do not name their host.
        let unknown = || trace.header.host.is_empty().then(sys::host_name);
        let host = self.host.clone().or_else(unknown);
        let target = parquet::Target { folder: &self.output, host: host.as_deref(), session: None };
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
