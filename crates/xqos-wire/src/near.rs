// SPDX-License-Identifier: MIT
//! `xqos near`: runs a program behind a proxy that answers its queries locally where the answer is known.
//!
//! | file | contents |
//! |---|---|
//! | `proxy` | the running proxy: its display, cookie and thread |
//! | `run` | the event loop over all clients and the scout |
//! | `client` | one client's sockets |
//! | `ahead` | the proxy's own connections, which query ahead |
//! | `connect` | connections to the X server that are being established |
//! | `cache` | the queries of each program's last start |
//! | `resident` | one proxy shared by several programs |
//! | `told` | the report at the end |

mod ahead;
mod cache;
mod client;
mod connect;
mod proxy;
mod resident;
mod run;
mod told;

use crate::program::Program;
use anyhow::{Context, Result};
use cache::{Cache, Caches};
use clap::Args;
use proxy::Proxy;
use std::ffi::OsString;
use std::process::ExitCode;
use xqos_cli::output::note;
use xqos_near::Settings;
use xqos_sys::{self as sys, Signals};

/// Runs a program far from its X server, and answers it here what is known here
///
/// Programs wait for dozens to hundreds of replies before they show a window, one after another; over a long line each wait
/// is a round trip. Most of the answers never change, or the server tells when they do. The program runs against a display
/// of its own, behind which a proxy answers what it knows and sends on everything else. The X server at the other end needs
/// nothing, and may be reached over ssh -X: run it on the far side, beside the program, as `xqos ssh` does.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    manner: Manner,
    /// Remember nothing of this start, and use nothing of the last one
    #[arg(long)]
    forget: bool,
    /// Share one proxy with other programs on this display; the first one starts it, and it ends after 10 min with none
    #[arg(long)]
    resident: bool,
    /// End the resident proxy of this display, and with it the connections of its programs
    #[arg(long, conflicts_with_all = ["program", "relaxed", "verify", "report", "forget", "resident"])]
    stop: bool,
    /// Be the resident proxy
    #[arg(long, hide = true, conflicts_with_all = ["program", "resident", "stop"])]
    serve: bool,
    /// Say nothing when all goes well
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", required_unless_present_any = ["stop", "serve"])]
    program: Vec<OsString>,
}

/// Options about how queries are answered and what is reported; `xqos ssh` has them too.
#[derive(Args, Clone, Copy, Debug)]
pub struct Manner {
    /// Also answer right after requests that have no reply, where they concern the program's own windows
    #[arg(long)]
    pub relaxed: bool,
    /// Ask the X server too when the program has ended, and report each answer or colour that it did not give
    #[arg(long)]
    pub verify: bool,
    /// At the end, tell what was asked, what was answered here, and how much time that saved
    #[arg(long)]
    pub report: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos near -- emacs
  xqos near --report -- gtk3-demo
  xqos near --verify -- xterm
  xqos near --resident -- xterm
  xqos near --stop
  ssh -YC far xqos near -- emacs

The second start is faster than the first: what the program asked is remembered
in ~/.cache/xqos/near (XDG_CACHE_HOME), and asked all at once before it begins.
Only questions are kept, never answers.

Answered are names of atoms, extensions and their versions, colours of TrueColor
visuals, formats of pictures, maps of keyboards, outputs, devices and properties
until the server says that they changed, and the geometry of own pixmaps. Never
answered: who has the focus or a selection, where the pointer is, grabs, images.
In strict order, the default, a question is answered here only if the request
before it had a reply: errors and events come where they would have come. With
--relaxed they may come after an answer that is given early.

MIT-SHM, DRI2 and DRI3 are hidden: they pass memory, which a line cannot.

Exit status: that of the program, or 128 + n when signal n ended it; 1 when it
could not be started, or when --verify found a difference and the program ended
with 0.";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        // Before threads start, or they would receive the signals.
        let signals = Signals::watch().context("cannot watch for the program's end")?;
        let name = display.map(str::to_owned).or_else(|| std::env::var("DISPLAY").ok()).unwrap_or_default();
        match () {
            () if self.stop => resident::stop(&name),
            () if self.serve => resident::serve(&name, self.settings(), &signals),
            () if self.resident => resident::run(self, &name, &signals),
            () => self.run(&name, &signals),
        }
    }

    fn run(&self, name: &str, signals: &Signals) -> Result<ExitCode> {
        sys::adopt_orphans().context("cannot look after the program's processes")?;
        let cache = if self.forget { Cache::none() } else { Cache::of(name, &self.program[0]) };
        let proxy = Proxy::start((!name.is_empty()).then_some(name), self.settings(), Caches::One(cache))?;
        let mut program = Program::start(&self.program, &proxy.display(), Some(proxy.authority()))?;
        program.watch(Some(&|| proxy.open()), signals, self.quiet)?;
        if self.manner.verify {
            proxy.settle();
        }
        let told = proxy.finish()?;
        if self.manner.report {
            told::lines(&told).iter().for_each(|line| note(line));
        }
        let differences = told.report.differences;
        if self.manner.verify && (differences > 0 || !self.quiet) {
            note(&told::verdict(&told.report));
        }
        let is_wrong = self.manner.verify && differences > 0 && program.status() == 0;
        Ok(ExitCode::from(if is_wrong { 1 } else { program.status() }))
    }

    fn settings(&self) -> Settings {
        let Manner { relaxed, verify, .. } = self.manner;
        Settings { relaxed, verify, ..Settings::default() }
    }
}
