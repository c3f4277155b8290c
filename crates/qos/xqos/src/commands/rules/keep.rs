// SPDX-License-Identifier: MIT
//! `xqos rules run`, `off` and `dry-run`: apply rules on a display.

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{io, process, thread};
use xqos_agent::rules::daemon::Daemon;
use xqos_agent::rules::effect::Effect;
use xqos_agent::rules::warnings::{Rights, warnings};
use xqos_agent::rules::{loader, selection_lock};
use xqos_agent::session::{Session, display_name};
use xqos_cli::output::{self, line, note, print};
use xqos_sys::{self as sys, Signals};
use xqos_text::quantity::{Micros, within};
use xqos_text::table::{Column, TextTable};

/// Applies rules to the clients of a display until stopped
///
/// Rules are evaluated for each client when it connects, when its windows get a class, and when they become active,
/// fullscreen or iconic. Changed rule files are read again; a file with a mistake keeps its last valid version.
/// Settings made manually or by a program for itself are not changed. When the command is stopped, by ^C, SIGTERM or
/// `xqos rules off`, it undoes its settings. Only one `xqos rules run` can run on each display.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos rules run
  xqos rules run --verbose
  xqos rules off                  stops it, from anywhere on the display

It prints 'ready' once it is active.")]
pub struct Run {
    /// Also report how many rules there are, and which never matched
    #[arg(long, short)]
    verbose: bool,
    /// How long an Xvnc or xrdp display must have no viewer before its state is unwatched, 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = absence)]
    unwatched_after: Duration,
}

fn absence(text: &str) -> Result<Duration, String> {
    within(text, 1_000_000..=3_600_000_000).map(Micros::duration)
}

impl Run {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let daemon = Daemon::start(display, self.verbose, self.unwatched_after, start_boost)?;
        let signals = Signals::watch().context("cannot watch for signals")?;
        let stop = until_signal(signals).context("cannot watch for signals")?;
        line("ready")?;
        Ok(daemon.run(&stop)?)
    }
}

fn start_boost(display: &str) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--display", display, "boost", "--no-server", "--only-named"]);
    // Discard its greeting, but let its errors go to our standard error.
    command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()
}

/// Returns a stream that closes at a signal. A thread waits for the signal, because the daemon may be waiting for a
/// server that does not answer. In that case, the thread ends the process, and the server drops the leased settings.
fn until_signal(signals: Signals) -> io::Result<UnixStream> {
    const UNDONE_WITHIN: Duration = Duration::from_secs(3);
    let (stop, running) = UnixStream::pair()?;
    let wait = move || {
        while !signals.termination_requested() && sys::poll(&[signals.as_raw_fd()], None).is_ok() {}
        drop(running);
        thread::sleep(UNDONE_WITHIN);
        note("the X server did not answer in time; it drops the settings when it continues");
        process::exit(0);
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(stop)
}

pub fn off(display: Option<&str>) -> Result<()> {
    let name = display_name(display)?;
    match selection_lock::end_daemon(&xqos_client::connect_soon(Some(&name))?)? {
        Some(holder) if holder.pid != 0 => line(&format!(
            "rules no longer apply on the X server {name}: pid {} has undone its settings; to resume: xqos rules run",
            holder.pid
        )),
        Some(_) => line(&format!("rules no longer apply on the X server {name}; to resume: xqos rules run")),
        None => line(&format!("no rules are applied on the X server {name}: there is nothing to stop")),
    }
}

/// Shows what rules would set for each client of a display, and changes nothing
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos rules dry-run
  xqos rules dry-run --json | jq '.clients[] | select(.settings != [])'

NOW is the client's current value. A value that was set manually or by the
program itself stays, whatever a rule says.")]
pub struct DryRun {
    /// Print JSON instead of a table: each client with all rules
    #[arg(long)]
    json: bool,
}

impl DryRun {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let session = Session::open(display)?;
        let loaded = loader().load();
        warnings(loaded.rules.rules(), loaded.limits, Rights::of_process(display)).iter().for_each(|text| note(text));
        loaded.mistakes.iter().for_each(|mistake| note(&mistake.to_string()));
        let own = std::process::id() as i32;
        let entries: Vec<_> = session.others()?.into_iter().filter(|entry| entry.pid != own).collect();
        let effects = Effect::evaluate(&session, &entries, &loaded.rules)?;
        if self.json {
            return output::json(&json!({ "version": 1, "clients": effects }));
        }
        for (at, rule) in loaded.rules.rules().iter().enumerate() {
            if !effects.iter().any(|effect| effect.rules[at].matched) {
                note(&format!("rule '{}' ({}) matches no connected client", rule.id, rule.place));
            }
        }
        let mut table = TextTable::new(vec![
            Column::number("PID", 0),
            Column::words("PROGRAM", 0).elastic(),
            Column::words("SETTING", 0),
            Column::words("NOW", 0),
            Column::words("RULE", 0),
            Column::words("PLACE", 1),
        ]);
        let set: Vec<&Effect> = effects.iter().filter(|one| !one.ignored && !one.settings.is_empty()).collect();
        for (effect, chosen) in set.iter().flat_map(|one| one.settings.iter().map(move |setting| (one, setting))) {
            let pid = effect.pid.map(|pid| pid.to_string()).unwrap_or_default();
            let now = chosen.now.clone().unwrap_or_default();
            table.row(vec![pid, effect.name(), chosen.written.clone(), now, chosen.rule.clone(), chosen.place.clone()]);
        }
        if set.is_empty() { line("no rule would set anything now") } else { print(&table.render(output::width())) }
    }
}
