// SPDX-License-Identifier: MIT
//! `xqos cap`: captures the X traffic of a program or of a network interface, or rewrites an existing capture.
//!
//! | source of packets | file |
//! |---|---|
//! | a relay for the program that is started | `program` |
//! | an interface | `interface` |
//! | a capture | `rewrite` |

mod event;
mod interface;
mod program;
mod progress;
mod quantity;
mod rewrite;

use crate::program::counted;
use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use event::{start, stop};
use quantity::{ports, time};
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use xqos_cli::output::{self, note};
use xqos_sys::Signals;
use xqos_text::quantity::Micros;
use xqos_wire::capture::live;
use xqos_wire::recording::scrub::Extent;
use xqos_wire::recording::trigger::{self, Start, Stop};
use xqos_wire::recording::{RecordError, Recorded, RecordingSettings, Ring, Target, numbered};

/// Captures the X traffic of a program or of a network interface into a file
///
/// With PROGRAM, the program runs on a separate display: a relay that forwards to the X server of DISPLAY. This also
/// captures local programs, whose traffic no network interface shows. File descriptors (MIT-SHM, DRI3) are passed on.
/// With -i, the packets of a network interface are captured, as by tcpdump. With -r, an existing capture is rewritten.
///
/// The file is pcapng: `xqos analyse` reads it, and Wireshark shows it as X11. The X server's cookie, which clients
/// need to connect, is removed unless --keep-cookie is given. --scrub also removes text, keys and pixels, so that you
/// can share the file.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("source").args(["program", "interface", "read", "list"]).required(true))]
pub struct Arguments {
    /// The capture to write, instead of printing each message; an existing file is replaced only with -r
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Capture on this network interface, such as lo, eth0 or any
    #[arg(long, short, value_name = "IFACE")]
    interface: Option<String>,
    /// Rewrite this capture instead of making one
    #[arg(long, short, value_name = "CAPTURE", requires = "output")]
    read: Option<PathBuf>,
    /// List the network interfaces
    #[arg(long)]
    list: bool,
    /// TCP ports, such as 6010 or 6000-6063 [default: 6000-6063 for an interface, all ports for a capture]
    #[arg(long, value_name = "PORTS", value_parser = ports, conflicts_with = "program")]
    port: Option<RangeInclusive<u16>>,
    /// Packets to capture, as a libpcap filter expression, instead of --port
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["program", "read", "port"])]
    filter: Option<String>,
    /// Stop after this time, such as 30s or 10min
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["program", "read"])]
    duration: Option<Duration>,
    /// Begin at this event: now, window, key, button, drag, selection, message=NAME, wait=TIME or signal
    #[arg(long, value_name = "EVENT", default_value = "now", value_parser = start)]
    start_on: Start,
    /// End at this event: one of those of --start-on, quiet=TIME (no message for that time), or time=TIME
    #[arg(long, value_name = "EVENT", value_parser = stop)]
    stop_on: Option<Stop>,
    /// Begin again after each stop event, with numbered files
    #[arg(long, requires = "stop_on")]
    repeat: bool,
    /// With --repeat: keep only the last N files
    #[arg(long, value_name = "N", requires_all = ["repeat", "output"])]
    keep: Option<NonZeroUsize>,
    /// With --start-on: how much of the time before the event to keep
    #[arg(long, value_name = "TIME", default_value = "5s", requires = "output")]
    before: Micros,
    /// Keep at most this many bytes of each packet; 96 cover the headers and the beginning of a message
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..), requires = "output")]
    snaplen: Option<u32>,
    /// Overwrite text, keys and pixels; keep sizes, message names and times
    #[arg(long, requires = "output")]
    scrub: bool,
    /// Keep the X server's cookie in the file
    #[arg(long, conflicts_with = "scrub", requires = "output")]
    keep_cookie: bool,
    /// Do not print the summary
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  xqos cap -o editor.pcapng -- emacs
  xqos cap -o start.pcapng --stop-on quiet=2s -- gtk3-demo
  xqos cap -o key.pcapng --start-on key --before 1s --stop-on quiet=1s -- xterm
  xqos cap -o slow.pcapng --start-on wait=100ms --stop-on time=2s --repeat \\
    --keep 10 -- emacs
  sudo xqos cap -i any -o desk.pcapng --duration 30s
  sudo xqos cap -i lo --port 6010 -o ssh.pcapng
  xqos cap -r desk.pcapng --scrub -o for-others.pcapng
  xqos cap --list
  xqos cap -- xclock                      print each message as it arrives

Without -o, each message is one line, as in `xqos analyse --messages`. The lines
contain typed text, and mix with the program's own output.

Events:
  window         a window is mapped; window=NAME: one with this name or class
  key, button    a key or a mouse button is pressed
  drag           the pointer moves while a button is pressed
  selection      a program takes a selection, or asks for its contents
  message=NAME   a request, reply, event or error, such as QueryExtension,
                 RENDER::Composite, MapNotify or BadWindow
  wait=TIME      a request has no answer after this time
  signal         SIGUSR1 is sent to this command (kill -USR1 PID)
  quiet=TIME     no message for this time, counted from the last one
  time=TIME      this long after the start

After the file has ended, the program continues. With --repeat, the files are
start-0001.pcapng, start-0002.pcapng and so on for -o start.pcapng; numbers of
existing files are left out. A file that begins in the middle of a connection
has a comment with which xqos decodes the rest. Other programs lack the names
of extensions there.

The capture ends when the program and everything that it started have exited
or closed their connections; ^C ends the program and the file. The program's
DISPLAY is a new one, :64 or above, with the original display's cookie. The X
server sees all its clients as this process.

Cost of the relay, on two virtual cores with Xvfb 21.1.7: a round trip takes 32
us instead of 13 us, or 39 us with --scrub. Requests of 64 kB are written at 340
MB/s (215 to 870), where the server alone takes 2.5 GB/s. These are medians of
nine runs on a busy machine. The relay drops nothing: a fast client waits.

A capture of a program or an interface is written as it arrives: it can be read
while it grows, and stays usable after a crash or on a full disk. It cannot be
repeated, so an existing file is not replaced. Only -r replaces an existing
file, once the new one is complete.

For each client, the file has the name of its program in a comment, which
xqos analyse and Wireshark show.

Scrubbing: --scrub overwrites names of programs, properties, drawn text and its
glyphs, images, messages between clients, key codes of events, and unknown
messages. Names of atoms, fonts and extensions stay, and so do lengths: it
remains visible how much was typed, and when. A scrubbed file no longer shows
how well bytes compress, what unused bytes and coordinates contain, or whether a
property that was read twice had changed.
Packets other than TCP are left out. Checksums stay those of the original.

Interfaces: with -i, the capture runs at nice -20, if this user may do that, so
that the kernel drops fewer packets. -i needs root or CAP_NET_RAW, which you can
give to this program by
sudo setcap cap_net_raw+ep $(which xqos-wire)

Exit status: that of the program, or 128 + n if signal n ended it; 1 if nothing
could be captured or the file is incomplete; otherwise 0.";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        if self.list {
            list()?;
            return Ok(ExitCode::SUCCESS);
        }
        match (&self.interface, &self.read, &self.output) {
            (Some(interface), ..) => interface::capture(self, interface)?,
            (None, Some(capture), Some(output)) => rewrite::write(self, capture, output)?,
            _ => return program::capture(self, display),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn settings(&self) -> RecordingSettings {
        let extent = if self.scrub { Extent::All } else { Extent::Cookie };
        RecordingSettings {
            scrub: (!self.keep_cookie).then_some(extent),
            snap_bytes: self.snaplen.map(|bytes| bytes as usize),
            trigger: trigger::TriggerSettings {
                start: self.start_on.clone(),
                stop: self.stop_on.clone(),
                before_ns: self.before.ns(),
                repeat: self.repeat,
                signal: Arc::default(),
            },
            // If a single port is captured, treat all its connections as X.
            prints_messages: self.output.is_none(),
            also_port: self.port.as_ref().filter(|ports| ports.len() == 1).map(|ports| *ports.start()),
        }
    }

    /// Creates the file. Only the user can read it, because it may contain what people type.
    fn target(&self) -> Result<Target> {
        Ok(match &self.output {
            // Only the messages are wanted.
            None => Target::Nowhere,
            Some(path) if self.repeat => Target::Ring(Ring::new(path, self.keep).with_context(|| self.cannot_write())?),
            Some(path) => Target::One(output::recording(path, 0o600)?),
        })
    }

    fn signals(&self) -> io::Result<Signals> {
        if self.settings().trigger.needs_signal() { Signals::watch_with_user_signal() } else { Signals::watch() }
    }

    fn cannot_write(&self) -> String {
        format!("cannot write {}", self.file())
    }

    /// The file, or with --repeat, the first one.
    fn file(&self) -> String {
        let path = self.output.as_ref().map(|path| if self.repeat { numbered(path, 1) } else { path.clone() });
        path.unwrap_or_default().display().to_string()
    }

    /// Removes the file if nothing was recorded. A ring removes its own unused file.
    fn discard(&self) {
        if let Some(path) = self.output.as_ref().filter(|_| !self.repeat) {
            output::discard(path);
        }
    }

    /// Prints the summary line; an incomplete or empty file is an error.
    fn conclude(&self, recorded: &Recorded, about: &str) -> Result<()> {
        let Recorded { packets, bytes, .. } = recorded;
        let file = self.file();
        match &recorded.error {
            Some(RecordError::Print(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            Some(RecordError::Print(error)) => bail!("cannot write to standard output: {error}"),
            Some(error) => match &recorded.numbered {
                Some(last) => bail!("{} is missing or incomplete: {error}", last.display()),
                None => bail!("{file} is incomplete, it ends after {packets} packets: {error}"),
            },
            None => {}
        }
        if !recorded.has_started {
            if self.read.is_none() {
                self.discard();
            }
            bail!("nothing was captured: the event of --start-on did not occur");
        }
        if recorded.given_up > 0 {
            let given_up = counted(recorded.given_up, "packet");
            note(&format!("{given_up} waited too long for the rest of their messages and were blanked"));
        }
        let left_out = match recorded.left_out {
            0 => String::new(),
            count => format!(", {count} left out because they are not TCP"),
        };
        if !self.quiet {
            let place = match (&self.output, self.repeat) {
                (None, _) => String::new(),
                (Some(_), false) => format!(" in {file}"),
                (Some(_), true) => format!(" in {}", counted(recorded.files, "numbered file")),
            };
            note(&format!("{about}{}, {bytes} bytes{place}{left_out}", counted(*packets, "packet")));
        }
        Ok(())
    }
}

fn list() -> Result<()> {
    let interfaces = live::interfaces().context("the network interfaces cannot be listed")?;
    let width = interfaces.iter().map(|interface| interface.name.len()).max().unwrap_or(0);
    for interface in interfaces {
        let state = if interface.flags.is_up() { "up  " } else { "down" };
        let addresses: Vec<String> = interface.addresses.iter().map(|address| address.addr.to_string()).collect();
        let line = format!("{:width$}  {state}  {}", interface.name, addresses.join(" "));
        output::line(line.trim_end())?;
    }
    Ok(())
}
