// SPDX-License-Identifier: MIT
//! `xqos link`: runs a program on an emulated slow network.
//!
//! The program and its servers run in two network namespaces. This process forwards packets between them and signals to
//! the program. When the program exits, this process kills all others there and exits with the program's status.

mod cookie;
pub mod quantity;

use crate::program::Program;
use anyhow::{Context, Result, bail};
use clap::Args;
use quantity::{Rate, delay, loss, queue, rate};
use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use xqos_cli::output::{discard, note, recording};
use xqos_sys::{self as sys, Signals};
use xqos_wire::link::log::LinkTotals;
use xqos_wire::link::shape::{Queue, Shape};
use xqos_wire::link::{Link, LinkSettings, Side};
use xqos_wire::relay::authority::Authority;

/// Maximum time until a server listens. Xorg takes some seconds on a slow machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Polling interval for listening ports, because no event reports them.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
const X_PORT: u16 = 6000;

/// Runs a program on a slow network of its own
///
/// The program runs at one end of an emulated link (10.0.0.2), and the servers of --server at the other end (10.0.0.1),
/// with a separate network namespace for each end. Packets are delayed and dropped as on a line of the given rate and
/// delay; their contents are not changed. Without options, the link is as fast as this machine.
///
/// When the program has exited, all other processes at both ends are killed, and nothing is left behind.
/// Root is not needed if the kernel allows user namespaces; the programs then see themselves as root.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Bits per second in each direction: 1kbit to 100gbit, or unlimited
    #[arg(long, value_name = "RATE", default_value = "unlimited", value_parser = rate)]
    rate: Rate,
    /// Delay in each direction, up to 10s
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = delay)]
    delay: u64,
    /// Limit of the queue at each end: bytes such as 64k, or packets such as 50p [default: what arrives in one round
    /// trip]
    #[arg(long, value_name = "SIZE", value_parser = queue)]
    queue: Option<Queue>,
    /// Percentage of packets that are lost
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = loss)]
    loss: u32,
    /// Variation of the delay, in both directions; packets may overtake each other
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = delay)]
    jitter: u64,
    /// Seed of the random numbers that determine loss and jitter
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "netem")]
    seed: u64,
    /// Log what happened to each packet, and when the link was busy
    #[arg(long, value_name = "FILE", conflicts_with = "netem")]
    log: Option<PathBuf>,
    /// Use the kernel's netem instead of xqos's own emulation
    #[arg(long)]
    netem: bool,
    /// Start this shell command at the other end before the program; may be repeated
    #[arg(long, value_name = "COMMAND")]
    server: Vec<String>,
    /// Wait until a server listens on this TCP port; may be repeated
    #[arg(long, value_name = "N", requires = "server")]
    port: Vec<u16>,
    /// Print nothing on success
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments [default: your shell]
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  xqos link --rate 10mbit --delay 10ms --display :7 \\
    --server 'Xvfb :7 -listen tcp' -- xterm
  xqos link --rate 1mbit --delay 50ms --loss 0.1% --seed 7 -- ping 10.0.0.1
  xqos link --rate 100kbit --queue 20p --log queue.log --port 8000 \\
    --server 'python3 -m http.server 8000' -- curl -O 10.0.0.1:8000/file
  xqos link --delay 100ms                  a shell at the end of a long line

X servers: with --display :N, the program gets DISPLAY=10.0.0.1:N and starts
once the server listens. The server needs -listen tcp and a display number that
is free on this machine. The server and the program get a common cookie, unless
the server's command has -ac or -auth, or is more than one command: then that
command must let 10.0.0.1:N in. A relay makes a running display available, as
--server 'socat TCP-LISTEN:6000,fork UNIX-CONNECT:/tmp/.X11-unix/X0' does.

Both ends: the device is link0, for ip, tcpdump or wireshark. IPv6 is off unless
you turn it on there. Rates count IP packets, which have at most 1500 bytes.

Log: one line for each packet (direction, number, bytes, arrival, start and end
of transmission, delivery, fate) and for each busy interval. Times are in
nanoseconds since 1970.

Exit status: that of the program, or 128 + n if signal n ended it; 1 if the link
or the program could not be started. INT, TERM and HUP are passed on.";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        let display = display.map(number).transpose()?;
        if display.is_some() && self.server.is_empty() {
            bail!("--display needs an X server at the other end: add --server 'Xvfb :7 -listen tcp'");
        }
        // Do this before starting threads, which would otherwise receive the signals.
        let signals = Signals::watch().context("cannot watch for the program's end")?;
        // Refuse an existing file early; the link opens the log again later.
        let log = self.log.as_deref().map(|path| recording(path, 0o666)).transpose()?;
        let link = Link::start(&self.settings()).inspect_err(|_| self.log.iter().for_each(|path| discard(path)))?;
        drop(log);
        let status = self.run(&link, display, &signals);
        let totals = link.finish();
        let status = status?;
        self.print_totals(&totals?);
        Ok(ExitCode::from(status))
    }

    fn settings(&self) -> LinkSettings {
        let Arguments { rate, delay, jitter, queue, loss, seed, netem, .. } = *self;
        let shape = Shape { rate, delay_ns: delay, jitter_ns: jitter, queue, loss_ppm: loss };
        LinkSettings { shape, seed, log: self.log.clone(), netem }
    }

    fn run(&self, link: &Link, display: Option<u16>, signals: &Signals) -> Result<u8> {
        let authority = display.map(|number| cookie::make(number, &self.server)).transpose()?.flatten();
        let file = authority.as_ref().map(Authority::path);
        let mut servers =
            self.server.iter().map(|server| start_server(link, server, file)).collect::<Result<Vec<_>>>()?;
        let x_port = display.map(|number| X_PORT + number);
        for &port in self.port.iter().chain(&x_port) {
            if let Some(signal) = wait_for(link, port, &mut servers, signals)? {
                return Ok(128 + signal);
            }
        }
        let mut program = self.start_program(link, display, file)?;
        program.watch(None, signals, self.quiet)?;
        Ok(program.status())
    }

    fn start_program(&self, link: &Link, display: Option<u16>, authority: Option<&Path>) -> Result<Program> {
        let shell = || env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or("/bin/sh".into());
        let (program, arguments) = match self.program.split_first() {
            Some((program, arguments)) => (program.clone(), arguments),
            None => (shell(), &[][..]),
        };
        let mut command = Command::new(&program);
        command.args(arguments);
        command.envs(display.map(|number| ("DISPLAY", format!("{}:{number}", Side::Server.address()))));
        Program::spawn(link.command_in(Side::Client, &mut command), authority)
    }

    fn print_totals(&self, [requests, replies]: &[LinkTotals; 2]) {
        if !self.quiet {
            note(&format!("to the server: {}; back: {}", summary(requests), summary(replies)));
        }
    }
}

/// Parses `:7` as display 7. A host name before the colon is refused, because it names another machine.
fn number(display: &str) -> Result<u16> {
    let number = display.strip_prefix(':').map(|rest| rest.split('.').next().unwrap_or(rest));
    let number = number.and_then(|number| number.parse().ok()).filter(|&number: &u16| number <= u16::MAX - X_PORT);
    number.with_context(|| format!("'{display}' is not a display at the other end: write its number, such as :7"))
}

fn start_server(link: &Link, server: &str, authority: Option<&Path>) -> Result<Child> {
    let mut command = Command::new("/bin/sh");
    let script = authority.map_or_else(|| server.to_owned(), |_| cookie::with_cookie(server));
    command.envs(authority.map(|file| ("XAUTHORITY", file)));
    // Start a new process group: ^C in the terminal is meant for the program, and the server must outlive the program.
    command.args(["-c", &script]).process_group(0).stdin(Stdio::null());
    // The server's output must not mix with the program's.
    command.stdout(io::stderr());
    sys::unblock_signals_in(&mut command);
    link.command_in(Side::Server, &mut command).spawn().with_context(|| format!("cannot start '{server}'"))
}

/// Waits until a server listens on the port. Returns the number of a signal that arrived in the meantime.
fn wait_for(link: &Link, port: u16, servers: &mut [Child], signals: &Signals) -> Result<Option<u8>> {
    let end = Instant::now() + PATIENCE;
    while !link.server_listens(port).context("cannot check the server's ports")? {
        // A server may fork into the background and exit successfully. If all servers failed, none will ever listen.
        let ended = servers.iter_mut().map(|server| Ok(server.try_wait()?)).collect::<Result<Vec<_>>>()?;
        if ended.iter().all(|ended| ended.is_some_and(|status| !status.success())) {
            bail!("the server exited before it listened on port {port} of 10.0.0.1: see its messages above");
        }
        if Instant::now() > end {
            bail!("no server listens on TCP port {port} of 10.0.0.1: an X server needs -listen tcp");
        }
        sys::poll(&[signals.as_raw_fd()], Some(POLL_INTERVAL)).context("cannot wait for the server")?;
        while let Some(signal) = signals.next() {
            if signal.number != libc::SIGCHLD {
                return Ok(Some(signal.number as u8));
            }
        }
    }
    Ok(None)
}

fn summary(totals: &LinkTotals) -> String {
    let LinkTotals { packets, bytes, lost, dropped, busy_ns, .. } = totals;
    let mut text = format!("{packets} packets, {bytes} bytes");
    for (count, what) in [(lost, "lost"), (dropped, "dropped")] {
        if *count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    if *busy_ns > 0 {
        text += &format!(", busy for {:.3} s", *busy_ns as f64 / 1e9);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_at_the_other_end_is_a_number() {
        assert_eq!(number(":7").unwrap(), 7);
        assert_eq!(number(":12.0").unwrap(), 12);
        for text in ["7", "host:7", ":", ":x", ":65535", ":-1", ""] {
            assert!(number(text).unwrap_err().to_string().contains("such as :7"), "{text}");
        }
    }

    #[test]
    fn totals_omit_counts_of_zero() {
        let mut totals = LinkTotals { packets: 3, bytes: 180, ..LinkTotals::default() };
        assert_eq!(summary(&totals), "3 packets, 180 bytes");
        (totals.dropped, totals.busy_ns) = (1, 1_500_000_000);
        assert_eq!(summary(&totals), "3 packets, 180 bytes, 1 dropped, busy for 1.500 s");
    }
}
