// SPDX-License-Identifier: MIT
//! `xqos cap`: captures the X traffic of a program or of a network interface, or rewrites an existing capture.
//!
//! | source of packets | file |
//! |---|---|
//! | a relay for the program that is started | `program` |
//! | an interface | `interface` |
//! | a capture | `again` |

mod again;
mod interface;
mod program;
mod progress;
mod quantity;

use crate::program::counted;
use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args};
use quantity::{ports, start, stop, time};
use std::ffi::OsString;
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use xqos_cli::output::{self, note};
use xqos_cli::quantity::Micros;
use xqos_wire::capture::live;
use xqos_wire::capture::record::{Recorded, Settings};
use xqos_wire::capture::scrub::Extent;
use xqos_wire::capture::trigger::{self, Start, Stop};

/// Captures X traffic into a file, of a program or of a network interface
///
/// With a program, it runs against a relay: a display of its own, behind which is the one of DISPLAY. So a program on this
/// machine is captured as well, whose traffic no interface shows; descriptors that it passes (MIT-SHM, DRI3) go through.
/// With an interface, the packets that go by are captured, as tcpdump does it. With a capture, it is written anew.
///
/// The file is pcapng: `xqos analyse` reads it, and Wireshark shows it as X11. What lets a client in, the cookie of the
/// X server, is never in it unless asked for; --scrub removes text, keys and pixels too, for files that others get.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("source").args(["program", "interface", "read", "list"]).required(true))]
pub struct Arguments {
    /// Where to write the capture; a file that is there is not replaced, except with -r
    #[arg(long, short, value_name = "FILE", required_unless_present = "list")]
    output: Option<PathBuf>,
    /// Capture on this network interface, such as lo, eth0 or any
    #[arg(long, short, value_name = "IFACE")]
    interface: Option<String>,
    /// Read this capture instead of making one
    #[arg(long, short, value_name = "CAPTURE")]
    read: Option<PathBuf>,
    /// List the network interfaces
    #[arg(long)]
    list: bool,
    /// TCP ports, such as 6010 or 6000-6063 [default: 6000-6063 of an interface, all of a capture]
    #[arg(long, value_name = "PORTS", value_parser = ports, conflicts_with = "program")]
    port: Option<RangeInclusive<u16>>,
    /// Packets of an interface, in libpcap's words, instead of --port
    #[arg(long, value_name = "EXPR", conflicts_with_all = ["program", "read", "port"])]
    filter: Option<String>,
    /// Stop after this time, such as 30s or 10min
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with_all = ["program", "read"])]
    duration: Option<Duration>,
    /// Begin the file here: now, key, or first-window
    #[arg(long, value_name = "EVENT", default_value = "now", value_parser = start)]
    start_on: Start,
    /// End the file here: key, first-window, or quiet=TIME when no message came for that time
    #[arg(long, value_name = "EVENT", value_parser = stop)]
    stop_on: Option<Stop>,
    /// With --start-on: how much from before is kept
    #[arg(long, value_name = "TIME", default_value = "5s")]
    before: Micros,
    /// Keep at most this many bytes of each packet; 96 cover its headers and the beginning of a message
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(64..))]
    snaplen: Option<u32>,
    /// Overwrite text, keys and pixels; sizes, names of messages, and times stay
    #[arg(long)]
    scrub: bool,
    /// Leave the cookie that lets a client in
    #[arg(long, conflicts_with = "scrub")]
    keep_cookie: bool,
    /// Say nothing when all goes well
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
  sudo xqos cap -i any -o desk.pcapng --duration 30s
  sudo xqos cap -i lo --port 6010 -o ssh.pcapng
  xqos cap -r desk.pcapng --scrub -o for-others.pcapng
  xqos cap --list

Events: a key that is pressed; the first window that is mapped; quiet since a
last message. When the file has ended the program goes on. A file that begins
within a connection has no names of extensions that were asked for before.

A program has ended when it has, and all connections of what it started; ^C
ends it, and the file. Its DISPLAY is a new one from :64 on, with the cookie of
the old one. To the X server all its clients are this process.

Cost of the relay, on two virtual cores with Xvfb 21.1.7: a round trip takes 32
instead of 13 us, with --scrub 39; requests of 64 kB go into the file at 340
MB/s (215 to 870), where the server alone takes 2.5 GB/s. These are medians of
nine turns on a busy machine. Nothing is dropped: who is too fast waits.

What a program or an interface says goes into the file as it comes: it can be
read while it grows, and after a crash or on a full disk up to there. It cannot
be recorded again, so a file that is there is not replaced. What -r writes can
be: a file of that name is replaced once the new one is whole.

For each client the file has the name of its program, in a comment that analyse
and Wireshark show.

Scrubbed are: names of programs, properties, drawn text and its glyphs, images,
messages between clients, key codes of events, and what no table names. Names of
atoms, fonts and extensions stay, and so do lengths: how much was typed, and
when, can be seen. Lost with them: how well bytes compress, and whether a
property that was read twice had changed. Packets that are not TCP are left out.
Checksums stay those of the original.

Interfaces: needs root or CAP_NET_RAW, which the program behind this command can
be given: sudo setcap cap_net_raw+ep $(which xqos-wire)

Exit status: that of the program, or 128 + n when signal n ended it; 1 when
nothing could be captured or the file is not complete; else 0.";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        if self.list {
            list()?;
            return Ok(ExitCode::SUCCESS);
        }
        let output = self.output.as_deref().context("no file is named: add -o FILE")?;
        match (&self.interface, &self.read) {
            (Some(interface), _) => interface::capture(self, interface, output)?,
            (_, Some(capture)) => again::write(self, capture, output)?,
            (None, None) => return program::capture(self, display, output),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn settings(&self) -> Settings {
        let extent = if self.scrub { Extent::All } else { Extent::Cookie };
        Settings {
            scrub: (!self.keep_cookie).then_some(extent),
            snap_bytes: self.snaplen.map(|bytes| bytes as usize),
            trigger: trigger::Settings { start: self.start_on, stop: self.stop_on, before_ns: self.before.ns() },
            // Whatever uses the only port is X.
            also_port: self.port.as_ref().filter(|ports| ports.len() == 1).map(|ports| *ports.start()),
        }
    }

    /// Prints the summary line; an incomplete or empty file is an error.
    fn conclude(&self, recorded: &Recorded, path: &Path, about: &str) -> Result<()> {
        let Recorded { packets, bytes, .. } = recorded;
        let file = path.display();
        if let Some(trouble) = &recorded.error {
            bail!("{file} is not complete, it ends after {packets} packets: {trouble}");
        }
        if !recorded.has_started {
            if self.read.is_none() {
                output::discard(path);
            }
            bail!("nothing is captured into {file}: what it was to start on did not come");
        }
        if recorded.given_up > 0 {
            let given_up = counted(recorded.given_up, "packet");
            note(&format!("{given_up} waited too long for the end of their messages: blanked"));
        }
        let left_out = match recorded.left_out {
            0 => String::new(),
            count => format!(", {count} left out that are not TCP"),
        };
        if !self.quiet {
            note(&format!("{about}{}, {bytes} bytes in {file}{left_out}", counted(*packets, "packet")));
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

/// Readable by the user only: what people type may be in it.
fn create(output: &Path) -> Result<File> {
    output::recording(output, 0o600)
}
