// SPDX-License-Identifier: MIT
//! `xqos plot`: draws a capture as time against bytes, as an HTML page, an SVG picture or an xplot file.

use crate::analyse::read;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use xqos_cli::output::{self, NewFile};
use xqos_text::time::read_ns;
use xqos_wire::plot::model::{Choice, Connection, LeftOut, Plot};
use xqos_wire::plot::track::Window;
use xqos_wire::plot::{page, svg, xpl};
use xqos_wire::x11::message_name::Filter;

/// Draws a capture of X traffic: time against bytes, with every packet and message
///
/// Each packet is a bar at its time, from its first byte to its last byte. Two lines show what the receiver has
/// acknowledged and how far its window allows the sender to go. Each X message stands next to its packet with its name,
/// in a colour that shows what the connection was doing until then: idle, blocked by the network, blocked by the
/// receiver, or waiting for a reply. Where a line is flat, nothing could be sent, and the colour says why.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The capture: pcap or pcapng
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The output file; its extension chooses the format: .html, .svg or .xpl
    #[arg(short, long, value_name = "OUTPUT", default_value = "plot.html")]
    output: PathBuf,
    /// The format, regardless of the extension
    #[arg(long, value_enum)]
    format: Option<PlotFormat>,
    /// Draw only this connection, by its number
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    connection: Option<u32>,
    /// Begin at this time, counted from the start of the first connection
    #[arg(long, value_name = "TIME", value_parser = read_ns)]
    from: Option<u64>,
    /// End at this time
    #[arg(long, value_name = "TIME", value_parser = read_ns)]
    to: Option<u64>,
    /// Draw only these messages, such as message=CreateWindow,Expose; packets are still drawn
    #[arg(long = "where", value_name = "FILTER")]
    filter: Option<Filter>,
    /// The title above the plot [default: the capture's name]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Also treat connections to this TCP port as X; may be repeated
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
    /// Leave the fields of messages out of the page
    #[arg(long)]
    no_fields: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos plot editor.pcapng                          a page: plot.html
  xqos plot editor.pcapng -o editor.html --title 'An editor over 50 ms'
  xqos plot editor.pcapng -o start.svg --connection 2 --to 1.5s
  xqos plot editor.pcapng --where message=CreateWindow,MapWindow,Expose
  xqos plot editor.pcapng -o editor.xpl && xplot.org -x editor.xpl

An existing file is replaced once the new one is complete.

Formats:
  html   one self-contained page with all connections: zoom from a packet to
         the whole time, markers, statistics of a span; a click on a message
         shows its fields and leads to its reply
  svg    a picture of one connection, for light and dark backgrounds; readable
         without colour
  xpl    a file for xplot (Shepard 1990), with a window for each direction

svg and xpl show one connection: the one with the most bytes, or the one that
--connection names.

The page has the fields of the first million messages, up to 8 MB of text. To
read the fields of later messages, plot a span with --from and --to. Fields show
what programs drew, wrote and copied: --no-fields leaves them out. After 8
million messages or packets the rest is left out, and a note says so.

Keys of the page:
  wheel           zoom time; with shift: bytes
  drag            move; with shift: zoom to a rectangle
  click           select a message, or set marker A; with shift: marker B
  double click    zoom to the message
  a b Escape      set marker A or B at the pointer; remove both
  n p r Enter     next and previous message, its reply or request, zoom to it
  0 f z w         whole time, fit bytes, zoom to A..B, keep TCP's window in view
  o 2 3 4 [ ]     all connections, both directions or one, next connection
  ?               show all keys";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlotFormat {
    Html,
    Svg,
    Xpl,
}

impl PlotFormat {
    fn of(path: &Path) -> Option<PlotFormat> {
        match path.extension()?.to_str()? {
            "html" | "htm" => Some(PlotFormat::Html),
            "svg" => Some(PlotFormat::Svg),
            "xpl" => Some(PlotFormat::Xpl),
            _ => None,
        }
    }
}

impl Arguments {
    pub fn perform(&self) -> Result<()> {
        let Some(format) = self.format.or_else(|| PlotFormat::of(&self.output)) else {
            bail!(
                "{} has no extension that names a format: end it in .html, .svg or .xpl, or give --format",
                self.output.display()
            );
        };
        let window = self.window()?;
        let failed = || format!("cannot write {}", self.output.display());
        let file = NewFile::create(&self.output, 0o666).with_context(failed)?;
        let plot = self.read(Choice {
            connection: self.connection,
            window,
            filter: self.filter.clone().unwrap_or_default(),
            with_fields: format == PlotFormat::Html && !self.no_fields,
        })?;
        let mut out = BufWriter::new(file.file().with_context(failed)?);
        let title = self.title();
        match format {
            PlotFormat::Html => page::write(&plot, &title, &mut out),
            PlotFormat::Svg => svg::write(&plot, self.one(&plot)?, &title, &mut out),
            PlotFormat::Xpl => xpl::write(&plot, self.one(&plot)?, &title, &mut out),
        }
        .and_then(|()| out.flush())
        .and_then(|()| file.finish())
        .with_context(failed)
    }

    fn window(&self) -> Result<Window> {
        let (from_ns, to_ns) = (self.from.unwrap_or(0), self.to.unwrap_or(u64::MAX));
        if from_ns >= to_ns {
            bail!("--from has to be before --to");
        }
        Ok(Window { from_ns, to_ns })
    }

    fn title(&self) -> String {
        let name = || self.file.file_name().map(|name| name.to_string_lossy().into_owned());
        self.title.clone().or_else(name).unwrap_or_default()
    }

    fn read(&self, choice: Choice) -> Result<Plot> {
        let mut plot = Plot::new(choice);
        let counts = read(&self.file, &self.port, vec![&mut plot])?;
        left_out(&plot.left_out).iter().for_each(|text| output::note(&format!("{}: {text}", self.file.display())));
        if let (Some(number), true) = (self.connection, plot.connections.is_empty()) {
            bail!("there is no connection {number}: the capture has {}", counts.connections);
        }
        if plot.connections.values().all(Connection::is_empty) {
            let seconds = plot.ended_ns as f64 / 1e9;
            bail!("nothing was sent in this time: choose --from and --to within the {seconds:.3} s of the capture");
        }
        if self.filter.is_some() && plot.connections.values().all(Connection::has_no_message) {
            bail!("there is no message of --where in this time: `xqos analyse` lists the names of all messages");
        }
        Ok(plot)
    }

    fn one<'a>(&self, plot: &'a Plot) -> Result<&'a Connection> {
        let one = plot.busiest().context("the capture has no X connection")?;
        if plot.connections.len() > 1 {
            let (number, all) = (one.number, plot.connections.len());
            output::note(&format!(
                "drawing connection {number}, which has the most bytes of {all}; choose another with --connection"
            ));
        }
        Ok(one)
    }
}

fn left_out(left_out: &LeftOut) -> Option<String> {
    let parts = left_out.counts().into_iter().filter(|(_, count)| *count > 0);
    let parts = parts.map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ");
    (!parts.is_empty()).then(|| format!("too many for one plot, left out: {parts}; choose a span with --from and --to"))
}
