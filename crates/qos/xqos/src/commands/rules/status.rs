// SPDX-License-Identifier: MIT
//! `xqos rules status` and `reload`: ask the daemon of a display.

use anyhow::{Context, Result, bail};
use clap::Args;
use xqos_agent::rules::selection_lock::{self, DaemonQuery};
use xqos_agent::rules::status::Status;
use xqos_agent::session::display_name;
use xqos_cli::output::{self, line, print};
use xqos_text::escape::printable;
use xqos_text::table::{Column, TextTable};
use xqos_text::time::ago_of_ms;

/// Shows whether rules apply on a display, since when, which rules apply to which clients, and the last error
///
/// The figures are those of the `xqos rules run` that runs on the display. A setting made manually or by the program
/// itself overrides a rule; `xqos explain` shows that for one client.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  xqos rules status
  xqos rules status --json | jq '.applied[].rule'

Exit status: 1 if no rules are applied on the display.")]
pub struct Show {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Show {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let name = display_name(display)?;
        let status = ask(&name, DaemonQuery::Status)?;
        if self.json {
            return output::json(&status);
        }
        let Status { pid, running_ms, read_ago_ms, rules, last_error, .. } = &status;
        line(&format!("rules apply on the X server {name}: pid {pid}, for {}", ago_of_ms(*running_ms)))?;
        line(&format!("rules: {}, read {} ago", rules.count, ago_of_ms(*read_ago_ms)))?;
        rules.files.iter().try_for_each(|file| line(&format!("  {}", printable(file))))?;
        rules.mistakes.iter().try_for_each(|mistake| line(&format!("refused: {}", printable(mistake))))?;
        match last_error {
            Some(last) => line(&format!("last error, {} ago: {}", ago_of_ms(last.ago_ms), printable(&last.text)))?,
            None => line("no error since it started")?,
        }
        if status.applied.is_empty() {
            return line("no rule applies to a client now");
        }
        print(&format!("\n{}", table(&status).render(output::width())))
    }
}

fn table(status: &Status) -> TextTable {
    let mut table = TextTable::new(vec![
        Column::number("PID", 0),
        Column::words("PROGRAM", 0).elastic(),
        Column::words("SETTING", 0),
        Column::words("RULE", 0),
        Column::words("PLACE", 1),
    ]);
    for one in &status.applied {
        let pid = if one.pid == 0 { "remote".to_owned() } else { one.pid.to_string() };
        let name = if one.program.is_empty() { &one.client } else { &one.program };
        table.row([pid.as_str(), name, &one.setting, &one.rule, &one.place].map(printable).into());
    }
    table
}

pub fn reload(display: Option<&str>) -> Result<()> {
    let name = display_name(display)?;
    let rules = ask(&name, DaemonQuery::Reload)?.rules;
    let Some(first) = rules.mistakes.first() else {
        return line(&format!(
            "read again on the X server {name}; rules: {}, files: {}",
            rules.count,
            rules.files.len()
        ));
    };
    let more = match rules.mistakes.len() {
        1 => String::new(),
        all => format!(" (and {} more: `xqos rules check`)", all - 1),
    };
    let effect = if rules.keeps_earlier { "the last valid version stays in effect" } else { "the file is not used" };
    bail!("{}{more}; {effect}", printable(first))
}

fn ask(display: &str, question: DaemonQuery) -> Result<Status> {
    let answer = selection_lock::ask(&xqos_client::connect_soon(Some(display))?, question)?;
    let Some(answer) = answer else {
        bail!("no rules are applied on the X server {display}: start `xqos rules run`");
    };
    serde_json::from_str(&answer).context("the rules daemon is of another version: restart it")
}
