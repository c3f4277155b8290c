// SPDX-License-Identifier: MIT
//! `xqos why`: explains why programs waited for the X server.
//!
//! A recorder keeps the latest records. After a long wait, it writes a folder with the trace, its page and the
//! explanation. [`xqos_trace::why`] finds the cause, `text` puts it into words.

mod report;
mod text;

use anyhow::Result;
use clap::Args;
use report::Folders;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;
use xqos_agent::session::Session;
use xqos_agent::why::{WaitRecorder, Wish};
use xqos_cli::output::{self, note};
use xqos_cli::program::one_line;
use xqos_sys::{self as sys, Signals};
use xqos_text::quantity::Micros;
use xqos_text::time::of_ns;
use xqos_trace::why::{WaitQuery, diagnose};

/// Explains why programs waited for the X server, for how long, and what to do about it
///
/// Records the server and keeps the last seconds in memory. When a client has waited longer than the limit, when Enter
/// is pressed, or at SIGUSR1, it explains the longest wait of these seconds and writes a folder xqos-why-DATE-TIME with
/// the explanation, the trace and the trace as a page. It runs until ^C, or for the time of --time.
///
/// Causes that it distinguishes: one long request, a server grab, many busy clients, a server without a processor, the
/// client's own slow link, a used-up reservation, and the server's own work.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Explain this trace instead of a running server; writes no folder
    #[arg(value_name = "TRACE", conflicts_with_all = ["time", "history", "every", "keep", "output", "no_kernel"])]
    file: Option<PathBuf>,
    /// Record for this time, then explain the longest wait, even if it was short
    #[arg(long, value_name = "TIME")]
    time: Option<Micros>,
    /// Waits up to this time are normal
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    limit: Micros,
    /// How much of the time before a wait to keep [default: 10s, or the time of --time]
    #[arg(long, value_name = "TIME")]
    history: Option<Micros>,
    /// Shortest time between two folders for long waits
    #[arg(long, value_name = "TIME", default_value = "1min")]
    every: Micros,
    /// Keep this many folders of this run, and remove the oldest ones
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    keep: u16,
    /// Where to make the folders; created if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// As root: do not record the kernel's threads and interrupts
    #[arg(long)]
    no_kernel: bool,
}

const DEFAULT_HISTORY: Duration = Duration::from_secs(10);

const EXAMPLES: &str = "\
Examples:
  xqos why                      wait for a stutter; Enter explains the last 10 s
  xqos why --time 30s           record for 30 s, then explain the longest wait
  sudo xqos why --limit 50ms    as root, it names the programs that took the
                                server's processor
  pkill -USR1 -f 'xqos why'     explain now
  xqos why desk.trace           explain a recorded trace

Only waits of clients that are not busy make a folder: busy clients wait for
each other by design. A trace in a folder is at level slices, which adds no cost
to requests; at most 32 MB of records are kept in memory. As root, the kernel's
threads and interrupts are recorded too, in the kernel's own buffer.

In a folder: why.txt, why.html (open it in a browser), and why.trace (for
`xqos trace stats`, `xqos replay` and `xqos trace export`).";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        if let Some(file) = &self.file {
            let (trace, names) = crate::commands::trace::open(file)?;
            let question = WaitQuery { limit_ns: self.limit.ns(), ..WaitQuery::default() };
            let diagnosis = diagnose(trace.events(), &names, &question);
            return output::print(&text::explained(&diagnosis, &trace.header, self.limit.ns()));
        }
        let (session, info) = Session::open_armed(display)?;
        let mut folders = Folders::new(&self.output, self.keep.into())?;
        let signals = Signals::watch_with_user_signal()?;
        let wish = Wish {
            limit_ns: self.limit.ns(),
            time: self.time.map(Micros::duration),
            history: self.history.or(self.time).map_or(DEFAULT_HISTORY, Micros::duration),
            every: self.every.duration(),
            has_kernel: !self.no_kernel,
        };
        let mut recorder = WaitRecorder::start(&session, info.server_pid, wish)?;
        note(&match self.time {
            Some(time) => {
                format!("recording {} for {}; Enter or ^C ends it earlier", session.display, of_ns(time.ns()))
            }
            None => format!(
                "recording {}: a wait longer than {}, Enter or SIGUSR1 makes a folder; ^C ends",
                session.display,
                of_ns(self.limit.ns())
            ),
        });
        while let Some(recording) = recorder.next(&signals, is_enter_pressed)? {
            let written = folders.write(&recording);
            let told = written
                .map(|folder| note(&format!("{} has the explanation, the trace and its page", folder.display())));
            if self.time.is_some() {
                return told;
            }
            told.unwrap_or_else(|error| note(&one_line(&error)));
        }
        Ok(())
    }
}

/// True if Enter was pressed in the terminal since the last call.
fn is_enter_pressed() -> bool {
    let stdin = std::io::stdin();
    let is_ready = || sys::readable([std::os::fd::AsFd::as_fd(&stdin)], Some(Duration::ZERO)).is_ok_and(|[is]| is);
    sys::has_keyboard() && is_ready() && stdin.lock().read(&mut [0; 256]).is_ok_and(|bytes| bytes > 0)
}
