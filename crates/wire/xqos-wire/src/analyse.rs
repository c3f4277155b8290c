// SPDX-License-Identifier: MIT
//! `xqos analyse`: reports what a capture of X traffic shows about the programs in it.

mod links;
mod text;

use anyhow::{Context, Result, bail};
use clap::Args;
use links::Links;
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};
use xqos_cli::output;
use xqos_sys as sys;
use xqos_text::quantity::Micros;
use xqos_wire::analysis::Analysis;
use xqos_wire::analysis::images::Images;
use xqos_wire::analysis::proxied::Remedy;
use xqos_wire::contents::Contents;
use xqos_wire::messages::{MessageFormat, MessageLog};
use xqos_wire::observe::Observer;
use xqos_wire::predict::predictions;
use xqos_wire::predict::script::ScriptRecorder;
use xqos_wire::report::Report;
use xqos_wire::report::budget::Budget;
use xqos_wire::report::compare::compare;
use xqos_wire::report::parquet;
use xqos_wire::report::table::csv;
use xqos_wire::session::{self, Session};
use xqos_wire::x11::message_name::Filter;

/// Shows where a program's time and bytes went in a capture, and what it could avoid
///
/// Reads pcap and pcapng files from `xqos cap`, tcpdump or Wireshark, captured between clients and an X server. For
/// each connection it reports: time spent idle, blocked by the network, blocked by the receiver, and waiting for
/// replies; every round trip that the client waited for, and whether it was avoidable; start-up until the first window
/// and until the client is quiet; messages by name; what the bytes were used for, and how well they compress.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The capture; with --compare, the captures before and after a change
    #[arg(value_name = "FILE", required = true, num_args = 1..=2)]
    files: Vec<PathBuf>,
    /// One-way network delay for which savings are calculated
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    latency: Micros,
    /// Also treat connections to this TCP port as X; may be repeated
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
    /// Show only this connection, by its number in the table
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["csv", "compare"])]
    connection: Option<usize>,
    /// Show only rows or lines of these messages, such as message=CreateWindow,MapWindow; totals count all messages
    #[arg(long = "where", value_name = "FILTER", conflicts_with_all = ["csv", "compare", "parquet", "images"])]
    filter: Option<Filter>,
    /// Print each message as a line, instead of figures; with --json, as a JSON object
    #[arg(long, conflicts_with_all = ["csv", "compare", "parquet", "budget", "proxy", "predict"])]
    messages: bool,
    /// Compress each image and each set of glyphs with zlib, zstd, LZ4, PNG and JPEG XL, instead of printing figures
    #[arg(long, conflicts_with_all = ["csv", "compare", "parquet", "budget", "proxy", "predict", "messages", "connection"])]
    images: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print CSV: connection,table,name,count,bytes,seconds,avoidable
    #[arg(long, conflicts_with_all = ["json", "compare"])]
    csv: bool,
    /// Show what is better and what is worse in the second capture
    #[arg(long)]
    compare: bool,
    /// Add tables to this folder of Parquet files, next to those of other sessions
    #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "csv", "compare", "connection"])]
    parquet: Option<PathBuf>,
    /// With --parquet: the machine that the capture is from [default: this one]
    #[arg(long, value_name = "NAME", requires = "parquet")]
    host: Option<String>,
    /// Exit with 1 if a limit is exceeded: round-trips, avoidable, bytes, waits, seconds, errors
    #[arg(long, value_name = "NAME=NUMBER,...", conflicts_with = "compare")]
    budget: Option<Budget>,
    /// Show which waits would remain with a proxy next to the program: lbx, strict, relaxed; or batch
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["csv", "compare"])]
    proxy: Option<Remedy>,
    /// Predict start-up time over a simulated link: rate, delay, queue; or grid, for twenty links
    #[arg(long, value_name = "LINK", conflicts_with_all = ["csv", "compare", "connection"])]
    predict: Option<Links>,
}

const EXAMPLES: &str = "\
Examples:
  xqos analyse editor.pcapng
  xqos analyse --latency 100ms --connection 2 editor.pcapng
  xqos analyse --compare before.pcapng after.pcapng
  xqos analyse --budget round-trips=50,bytes=200k,waits=300ms,seconds=2s \\
    editor.pcapng
  xqos analyse --proxy strict --latency 100ms editor.pcapng
  xqos analyse --predict rate=1mbit,delay=50ms editor.pcapng
  xqos analyse --parquet fleet.parquet editor.pcapng
  xqos analyse --messages --connection 1 editor.pcapng
  xqos analyse --messages --where message=MapWindow,BadWindow editor.pcapng
  xqos analyse --images editor.pcapng
  xqos analyse --json editor.pcapng | jq '.connections[0].waits[:3]'

Words:
  round trip   a request whose reply the client waited for; requests that are
               sent together and waited for together are one round trip
  avoidable    the answer was known, could have been requested together with
               others, or was not needed
  pipelined    a reply that arrived while the client kept working
  link         blocked by the slowest link: its queue was not empty
  window       blocked by TCP's window while the link was free
  receiver     blocked because the receiver did not read
  delay        waiting for replies, or with requests blocked by any of these

Proxies:
  lbx       answers what the X extension of 1996 did: atoms, extensions, colours
  strict    answers whatever stays valid until the server reports a change, if
            the previous request had a reply
  relaxed   also answers after requests without a reply that concern only the
            program's own windows
  batch     no proxy: one request asks for all atoms, one for all extensions and
            their versions, one for properties that are read in a row

A proxy of --proxy runs next to the program and knows which queries it made at
its last start.

Links of --predict: rate=1mbit,delay=50ms (one way). queue=64k sets the queue;
the default is what arrives in one round trip. grid is 100 Mb/s to 10 kb/s by
0.1 to 100 ms. Start-up lasts from the first packet until 2 s of silence after
the first window, or without a window, until the first 2 s of silence. The
capture must be from a fast link. With --proxy, start-up behind that proxy is
predicted too.

Names of --where are those of requests (with their replies), events and errors:
InternAtom, RENDER::Composite, Expose, BadWindow.

Lines of --messages: seconds since the first packet, number of the connection,
> to the server or < back, sequence number, kind, name, length, known fields.
JSON: kind (of the message, or opened, joined, program, gap, ended), seconds,
connection, sequence, name, length, fields {NAME: TEXT}, unix_ns (of opened and
joined, since 1970).

--images compresses each image alone, and reports the processor time of this
machine. JSON: [{of, codec, requests, bytes, compressed_bytes, processor_s}].

Limits of --budget apply to all connections together: round-trips, avoidable,
bytes (X data both ways; 200k, 5M), waits (time spent waiting for replies),
seconds (until the last client was quiet for 2 s), errors.

JSON: version, latency_s, connections [client, program (if the capture names it,
as those of xqos cap do), server, began_s (since 1970), seconds,
started_midstream (the beginning is missing), ending, is_whole (no message is
missing), requests, replies, events and errors {NAME: {count, bytes}}, waits
[{name, count, seconds, avoidable (how many), reasons {REASON: count}}],
patterns [{pattern, count, in_a_row, seconds, avoidable}], idle_s,
blocked_network_s, blocked_receiver_s (these three add up to seconds, for either
stream), reply_wait_s, network_delay_s, round_trips, avoidable, pipelined,
saving_s (of avoidable at latency_s), bytes, missing_bytes, bandwidth
{USE: bytes}, unused {NAME: {count, bytes, not_zero}}, repeated {NAME: {shapes,
coordinates, repeated}}, streams {requests, replies: {packets, bytes,
retransmitted_bytes, missing_bytes, idle_s, blocked_link_s, blocked_window_s,
blocked_receiver_s, link_bytes_per_s, round_trip_s}}, startup {window, quiet:
{seconds, requests, bytes, round_trips, avoidable, saving_s, reply_wait_s,
blocked_s, client_s (these three add up to seconds), waits}, is_quiet}; with
--proxy, proxy {proxy, waits, left, saving_s, names [{name, waits, left,
saving_s}]}], with --predict predictions
[{rate_bit_per_s, delay_s, seconds, network_delay_s, reply_wait_s,
round_trips, link_bytes, proxy {the same five}}], and session: the same totals,
connections, left_out, quiet_s, compression {USE: {bytes, sampled_bytes, zstd,
deflate (the fraction that remains)}}. With --compare: sums, round_trips and
bytes [{what, unit, before, after, verdict}].";

impl Arguments {
    pub fn perform(&self) -> Result<()> {
        match (self.files.as_slice(), self.compare) {
            ([before, after], true) => self.perform_compare(before, after),
            ([file], false) if self.messages => self.print_messages(file),
            ([file], false) if self.images => self.print_images(file),
            ([_], false) if self.json && self.connection.is_some() => {
                bail!("--json has all connections: leave out --connection, or add --messages")
            }
            ([file], false) => self.perform_one(file),
            (_, true) => bail!("--compare needs two captures: the one before and the one after"),
            (_, false) => bail!("give one capture, or two with --compare"),
        }
    }

    fn perform_one(&self, file: &Path) -> Result<()> {
        let mut report = self.read(file)?;
        if let Some(filter) = &self.filter {
            report.keep(filter);
        }
        match () {
            () if self.json => output::json(&report)?,
            () if self.csv => output::print(&csv(&report))?,
            () if self.parquet.is_some() => self.write_tables(&report, file)?,
            () => output::print(&self.text(&report)?)?,
        }
        let broken = self.budget.iter().flat_map(|budget| budget.check(&report));
        let broken: Vec<String> = broken.map(|excess| excess.to_string()).collect();
        if !broken.is_empty() {
            bail!("over the budget: {}", broken.join("; "));
        }
        Ok(())
    }

    fn print_messages(&self, file: &Path) -> Result<()> {
        let format = if self.json { MessageFormat::Json } else { MessageFormat::Text };
        let only = self.connection.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let filter = self.filter.clone().unwrap_or_default();
        let mut log = MessageLog::new(BufWriter::new(io::stdout().lock()), format, only, filter);
        let contents = read(file, &self.port, vec![&mut log])?;
        if let Some(number) = self.connection.filter(|&number| number == 0 || number as u64 > contents.connections) {
            bail!("there is no connection {number}: the capture has {}", contents.connections);
        }
        match log.finish() {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(error).context("cannot write to standard output")
            }
            _ => Ok(()),
        }
    }

    fn print_images(&self, file: &Path) -> Result<()> {
        let mut images = Images::default();
        read(file, &self.port, vec![&mut images])?;
        if self.json { output::json(&images.figures) } else { output::print(&text::images(&images.figures)) }
    }

    fn write_tables(&self, report: &Report, file: &Path) -> Result<()> {
        let Some(folder) = &self.parquet else { return Ok(()) };
        let host = self.host.clone().unwrap_or_else(sys::host_name);
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        // A session is named after the capture's start and file name, so analysing a capture again replaces its rows.
        let session = format!("{:.0}-{name}", report.session.began_s * 1e6);
        parquet::write(report, &parquet::CaptureTables { folder, host: &host, session: &session })?;
        Ok(())
    }

    fn text(&self, report: &Report) -> Result<String> {
        let Some(number) = self.connection else { return Ok(text::session(report)) };
        let found = number.checked_sub(1).and_then(|place| report.connections.get(place));
        let count = report.connections.len() as u64 + report.session.left_out;
        if found.is_none() && (1..=count).contains(&(number as u64)) {
            bail!("connection {number} was left out: use --messages, or xqos plot with --connection");
        }
        found.map(text::connection).with_context(|| format!("there is no connection {number}: the capture has {count}"))
    }

    fn perform_compare(&self, before: &Path, after: &Path) -> Result<()> {
        let comparison = compare(&self.read(before)?, &self.read(after)?);
        if self.json { output::json(&comparison) } else { output::print(&text::comparison(&comparison)) }
    }

    fn read(&self, file: &Path) -> Result<Report> {
        let mut analysis = Analysis::with_remedy(self.proxy);
        let mut recorders: Vec<ScriptRecorder> = match (&self.predict, self.proxy) {
            (None, _) => Vec::new(),
            (Some(_), None) => vec![ScriptRecorder::default()],
            (Some(_), proxy) => vec![ScriptRecorder::default(), ScriptRecorder::with_remedy(proxy)],
        };
        let mut observers: Vec<&mut dyn Observer> = vec![&mut analysis];
        observers.extend(recorders.iter_mut().map(|recorder| recorder as &mut dyn Observer));
        read(file, &self.port, observers)?;
        let name = file.display();
        let mut report = analysis.report(f64::from(self.latency.0) / 1e6);
        let (first, left_out) = (report.connections.len(), report.session.left_out);
        if left_out > 0 {
            output::note(&format!(
                "{name}: these are figures of the first {first} connections, without {left_out} more"
            ));
        }
        if let Some(links) = &self.predict {
            let scripts: Option<Vec<_>> = recorders.into_iter().map(ScriptRecorder::script).collect();
            let scripts = scripts.with_context(|| {
                format!("{name} does not have the program's whole start: capture it again with xqos cap -- PROGRAM")
            })?;
            let foretold = predictions(&scripts[0], scripts.get(1), &links.0);
            report.predictions =
                foretold.context("the link drops too much for the start to finish: give it a larger queue")?;
        }
        Ok(report)
    }
}

/// Reads a capture, and prints a note about each part of it that the figures and plots cannot take into account.
pub fn read(file: &Path, ports: &[u16], observers: Vec<&mut dyn Observer>) -> Result<Contents> {
    let name = file.display();
    let session = ports.iter().fold(Session::new(observers), |session, port| session.also_port(*port));
    let (counts, notes) = session::read(file, session).with_context(|| format!("cannot read the capture {name}"))?;
    missing(&counts).into_iter().chain(notes).for_each(|text| output::note(&format!("{name}: {text}")));
    if counts.connections == 0 {
        let not_read = counts.other_packets + counts.fragments + counts.broken_packets + counts.unknown_links;
        let advice = match counts.packets - not_read {
            0 => "capture TCP between the program and the X server, or the program with xqos cap -- PROGRAM",
            _ => "give the port of the X server with --port",
        };
        bail!("{name} has no X connection ({} packets): {advice}", counts.packets);
    }
    Ok(counts)
}

fn missing(counts: &Contents) -> Vec<String> {
    let line = |count: u64, text: &str| (count > 0).then(|| format!("{count} {text}"));
    let list = [
        line(
            counts.gap_bytes - counts.lost_bytes,
            "bytes inside messages were not captured (as with tcpdump -s 96): text, pixels and repetition are unknown",
        ),
        line(
            counts.lost_bytes,
            "bytes of further messages were not captured: counts are too low, and waits around them are left out",
        ),
        line(counts.skipped_bytes, "bytes could not be decoded"),
        line(counts.not_followed_packets, "packets were left out: they belong to too many simultaneous connections"),
        line(counts.copies, "packets were captured twice, as on a bridge and its port; each is counted once"),
        line(counts.other_packets, "packets were left out: they are not TCP over IP"),
        line(counts.unknown_links, "packets were left out: their link type is unknown"),
        line(counts.broken_packets, "packets are damaged or cut inside their headers: capture more bytes per packet"),
    ];
    list.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::collections::BTreeSet;
    use xqos_wire::analysis::counts::MessageSum;
    use xqos_wire::analysis::figure::Declared;
    use xqos_wire::analysis::proxied::figures::LeftFigures;
    use xqos_wire::analysis::redundancy::{RepeatedCoordinates, UnusedBytes};
    use xqos_wire::report::{Figures, PatternFigures, PhaseFigures, StreamFigures, WaitFigures, table};

    #[derive(clap::Parser)]
    struct Alone {
        #[command(flatten)]
        _arguments: Arguments,
    }

    fn keys<T: Declared>() -> impl Iterator<Item = &'static str> {
        T::FIGURES.iter().map(|figure| figure.key)
    }

    #[test]
    fn the_help_names_every_declared_figure() {
        let words: BTreeSet<&str> = EXAMPLES.split(|letter: char| !letter.is_alphanumeric() && letter != '_').collect();
        let parts = keys::<WaitFigures>().chain(keys::<PatternFigures>()).chain(keys::<StreamFigures>());
        let rows = keys::<MessageSum>().chain(keys::<UnusedBytes>()).chain(keys::<RepeatedCoordinates>());
        let all = keys::<Figures>().chain(parts).chain(keys::<PhaseFigures>()).chain(rows).chain(keys::<LeftFigures>());
        let missing: Vec<_> = all.filter(|key| !words.contains(key)).collect();
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn the_help_names_every_limit_and_the_columns_of_csv() {
        let help = Alone::command().render_long_help().to_string();
        let limits = Figures::FIGURES.iter().map(|figure| figure.limit);
        let missing: Vec<_> = limits.chain([table::HEADER]).filter(|name| !help.contains(name)).collect();
        assert_eq!(missing, [""; 0]);
    }
}
