// SPDX-License-Identifier: MIT
//! `xqos near`: runs a program behind a proxy that answers its queries locally where the answer is known.
//!
//! | file | contents |
//! |---|---|
//! | `proxy` | the running proxy: its display, cookie and thread |
//! | `run` | the event loop over all clients and the scout |
//! | `client` | one client's sockets |
//! | `scouts` | the proxy's own connections, which query ahead |
//! | `connect` | connections to the X server that are being established |
//! | `cache` | the queries of each program's last start |
//! | `profiles` | the queries of each toolkit's programs, for first starts |
//! | `resident` | one proxy shared by several programs |
//! | `report` | the report at the end |

mod cache;
mod client;
mod connect;
mod profiles;
mod proxy;
mod report;
mod resident;
mod run;
mod scouts;

use crate::program::Program;
use anyhow::{Context, Result};
use cache::{Cache, Caches};
use clap::Args;
use proxy::Proxy;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use xqos_cli::output::{self, note};
use xqos_near::{NearSettings, Questions};
use xqos_sys::{self as sys, Signals};

/// Runs a program far from its X server, and answers known queries locally
///
/// Before they show a window, programs wait for dozens to hundreds of replies, one after another; over a slow link each
/// wait takes a round trip. Most answers never change, or the server reports their changes. `xqos near` runs the
/// program on a separate display: a proxy that answers what it knows and forwards everything else. The X server's side
/// needs no extra software, and can also be reached over ssh -X. Run this command on the far machine, next to the
/// program, as `xqos ssh` does.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    near: NearOptions,
    /// Do not use the queries of the last start, and do not save the queries of this start
    #[arg(long, conflicts_with = "resident")]
    forget: bool,
    /// Add the queries of this start to a profile, which is created if it does not exist
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resident", "stop", "serve"])]
    profile: Option<PathBuf>,
    /// Share one proxy between all programs on this display; it starts with the first program and exits after 10 min
    /// without programs
    #[arg(long)]
    resident: bool,
    /// Stop the resident proxy of this display, which ends the connections of its programs
    #[arg(long, conflicts_with_all = ["program", "relaxed", "verify", "report", "forget", "resident"])]
    stop: bool,
    /// Run as the resident proxy
    #[arg(long, hide = true, conflicts_with_all = ["program", "resident", "stop"])]
    serve: bool,
    /// The folder of the `xqos ssh` session, which is removed at the end
    #[arg(long, hide = true, value_name = "FOLDER", conflicts_with_all = ["resident", "stop", "serve"])]
    session: Option<PathBuf>,
    /// Print nothing on success
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", required_unless_present_any = ["stop", "serve"])]
    program: Vec<OsString>,
}

/// Options that control how queries are answered and what is reported; `xqos ssh` also has them.
#[derive(Args, Clone, Copy, Debug)]
pub struct NearOptions {
    /// Also answer right after requests without a reply, if they concern only the program's own windows
    #[arg(long)]
    pub relaxed: bool,
    /// When the program has exited, also ask the X server, and report every answer or colour that differs
    #[arg(long)]
    pub verify: bool,
    /// At the end, print how many queries were answered locally, and how much time that saved
    #[arg(long)]
    pub report: bool,
}

impl NearOptions {
    /// The options as arguments for another `xqos near`.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        let NearOptions { relaxed, verify, report } = *self;
        let options = [(relaxed, "--relaxed"), (verify, "--verify"), (report, "--report")];
        options.into_iter().filter_map(|(is_wanted, option)| is_wanted.then_some(option))
    }
}

/// A folder that is removed on drop, even if the connection of `xqos ssh` is lost.
struct SessionFolder<'a>(&'a Path);

impl Drop for SessionFolder<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0);
    }
}

const EXAMPLES: &str = "\
Examples:
  xqos near -- emacs
  xqos near --report -- gtk3-demo
  xqos near --verify -- xterm
  xqos near --resident -- xterm
  xqos near --stop
  xqos near --profile gtk3.profile -- gtk3-demo
  ssh -YC far xqos near -- emacs

The program's queries are saved in ~/.cache/xqos/near (XDG_CACHE_HOME), and the
next start sends them all together while the program begins. A first start sends
those of a profile instead: the usual queries of the toolkit whose libraries the
program has loaded. Queries are saved, answers never.

Answered locally: atom names, extensions and their versions, colours of
TrueColor visuals, picture formats; keyboard maps, outputs, devices and
properties, until the server reports a change; the geometry of the program's own
pixmaps. Never answered: focus and selection owners, the pointer, grabs, images.
In strict order, the default, a query is answered locally only if the previous
request had a reply, so that errors and events keep their order. With --relaxed,
an error or event may arrive after an answer that was given early.

MIT-SHM, DRI2 and DRI3 are hidden: they share memory, which a network cannot.

Exit status: that of the program, or 128 + n if signal n ended it; 1 if it could
not be started, if the X server could not be reached, or if --verify found a
difference and the program exited with 0.";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        // Do this before starting threads, which would otherwise receive the signals.
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
        let _session = self.session.as_deref().map(SessionFolder);
        sys::adopt_orphans().context("cannot become the parent of the program's orphaned processes")?;
        let profile =
            self.profile.as_deref().map(|file| read_profile(file).map(|profile| (file, profile))).transpose()?;
        let command = cache::name(&self.program[0]);
        let cache = if self.forget || profile.is_some() { Cache::none() } else { Cache::of(name, &command) };
        let caches = Caches::One(command, cache);
        let proxy = Proxy::start((!name.is_empty()).then_some(name), self.settings(), caches)?;
        let mut program = Program::start(&self.program, &proxy.display(), Some(proxy.authority()))?;
        let open = || {
            let state = proxy.state();
            (state.open, state.waiting)
        };
        program.watch(Some(&open), signals, self.quiet)?;
        if self.near.verify {
            proxy.settle();
        }
        let is_unreachable = proxy.state().is_unreachable;
        let report = proxy.finish()?;
        if let Some((file, _)) = profile.as_ref().filter(|_| report.questions.is_empty()) {
            note(&format!("the program sent no queries to the X server; {} is unchanged", file.display()));
        } else if let Some((file, mut profile)) = profile {
            profile.merge(&report.questions.for_others());
            let written = output::write(file, 0o644, profile.write().as_bytes());
            written.with_context(|| format!("cannot write {}", file.display()))?;
        }
        if self.near.report {
            report::lines(&report).iter().for_each(|line| note(line));
        }
        let differences = report.counts.differences;
        if self.near.verify && (differences > 0 || !self.quiet) {
            note(&report::verdict(&report.counts));
        }
        let is_wrong = self.near.verify && differences > 0 && program.status() == 0;
        Ok(ExitCode::from(if is_wrong || is_unreachable { 1 } else { program.status() }))
    }

    fn settings(&self) -> NearSettings {
        let NearOptions { relaxed, verify, .. } = self.near;
        NearSettings { relaxed, verify, ..NearSettings::default() }
    }
}

fn read_profile(file: &Path) -> Result<Questions> {
    match cache::read(file, 0) {
        Ok(text) => Questions::read(&text).with_context(|| format!("{} is not a profile", file.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Questions::default()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}
