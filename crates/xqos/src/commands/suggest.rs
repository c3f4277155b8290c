// SPDX-License-Identifier: MIT
//! `xqos suggest`: what to reserve for the clients of a trace, and a rule that does.
//!
//! The trace's bursts go through the tuner as those of a live server do, so what is suggested is what `auto` would reserve.

use super::trace::open;
use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use xqos_agent::auto::in_us;
use xqos_cli::output;
use xqos_cli::quantity::Reservation;
use xqos_cli::table::{Column, Table};
use xqos_cli::time::of_ns;
use xqos_trace::model::{Identity, Model};
use xqos_tune::{Beat, Burst, Client, Report, State};

/// Finds in a trace what to reserve for its clients, and prints a rule that does
///
/// A client that works in a steady rhythm, as players, games and animations do, gets a reservation: the server time that it
/// needs, in each of its periods. The rhythm is found in the times at which it had work, the need in the server time that
/// each of its jobs took. A client without a rhythm needs none: policy fair serves it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A trace that `xqos trace record` wrote, of some seconds at least
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Write JSON instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos trace record --time 10s film.trace
  xqos suggest film.trace
  xqos suggest --json film.trace | jq -r .rules

What is found:
  period      from one job to the next; of a client that rests after each
              answer, what it would be on an idle server
  demand      server time that 15 of 16 jobs do not exceed
  reserve     budget / period, with a margin for what comes next
  confidence  0 to 1: how well the jobs fit the period
  aperiodic   no rhythm in 3 s of work and more; nothing to reserve
  light       a rhythm, and less than 1 % of the server: nothing to reserve

JSON: seconds, lost_records; clients, an array of pid, name, program, found
(periodic, light, aperiodic, too little), kind (null, clock or loop), period_ms,
rest_ms (of a loop), demand_ms, mean_ms, reserve (null, or budget_ms,
period_ms, typed), confidence, near, coverage, jobs; rules, as text.";

/// What a client is, for people.
const PERIODIC: &str = "periodic";
const LIGHT: &str = "light";
const APERIODIC: &str = "aperiodic";
const TOO_LITTLE: &str = "too little";

impl Arguments {
    pub fn perform(&self) -> Result<()> {
        let suggestion = Suggestion::read(&self.file)?;
        if self.json { output::json(&suggestion) } else { output::print(&suggestion.text()) }
    }
}

#[derive(Debug, Serialize)]
struct Suggestion {
    seconds: f64,
    lost_records: u64,
    clients: Vec<Found>,
    rules: String,
}

/// What was found about a client.
#[derive(Debug, Default, Serialize)]
struct Found {
    pid: u32,
    name: String,
    program: String,
    found: &'static str,
    kind: Option<&'static str>,
    period_ms: Option<f64>,
    rest_ms: Option<f64>,
    demand_ms: Option<f64>,
    mean_ms: Option<f64>,
    reserve: Option<Reserve>,
    confidence: f64,
    near: Option<f64>,
    coverage: Option<f64>,
    jobs: usize,
}

#[derive(Debug, Serialize)]
struct Reserve {
    budget_ms: f64,
    period_ms: f64,
    typed: String,
}

/// A client while the trace is read.
#[derive(Debug, Default)]
struct Seen {
    client: Client,
    /// The last time that it had a period.
    periodic: Option<Report>,
    was_given_up: bool,
}

impl Seen {
    fn take(&mut self, burst: Burst) {
        self.client.take(burst);
        let report = self.client.report();
        match report.state {
            State::Periodic => self.periodic = Some(report),
            State::Aperiodic | State::GivenUp => self.was_given_up = true,
            State::Gathering | State::Silent => {}
        }
    }
}

impl Suggestion {
    fn read(path: &Path) -> Result<Suggestion> {
        let (trace, _) = open(path)?;
        let mut model = Model::without_causes();
        let mut seen: BTreeMap<usize, Seen> = BTreeMap::new();
        for event in trace.events() {
            if let Some(burst) = model.take(&event) {
                let (start, end, served_ns) = (burst.activation, burst.end, burst.worked_ns);
                seen.entry(burst.key).or_default().take(Burst { start, end, served_ns });
            }
        }
        if seen.is_empty() {
            bail!("{}: no client had work while this was recorded: record while the program draws", path.display());
        }
        let named = |key: usize| model.clients().get(key).map(|client| client.identity.clone()).unwrap_or_default();
        let found = seen.iter().map(|(&key, seen)| Found::new(seen, &named(key), model.name(key)));
        let mut clients: Vec<Found> = found.collect();
        clients.sort_by_key(|found| std::cmp::Reverse((found.reserve.is_some(), found.jobs)));
        let rules = rules(&clients);
        Ok(Suggestion { seconds: model.span_ns() as f64 / 1e9, lost_records: model.lost, clients, rules })
    }

    fn text(&self) -> String {
        let mut text = format!("{:.3} s", self.seconds);
        if self.lost_records > 0 {
            text += &format!("; {} records are missing", self.lost_records);
        }
        text += &format!("\n\n{}\n", self.table().render(None));
        match self.rules.is_empty() {
            true => text + "No rule: no client has a rhythm that is worth a reservation.\n",
            false => text + &self.rules,
        }
    }

    fn table(&self) -> Table {
        let number = |title| Column { title, right: true, rank: 0, elastic: false };
        let words = |title| Column { title, right: false, rank: 0, elastic: true };
        let mut table = Table::new(vec![
            words("CLIENT"),
            words("FOUND"),
            number("PERIOD"),
            number("DEMAND"),
            number("RESERVE"),
            number("CONFIDENCE"),
            number("JOBS"),
        ]);
        for client in &self.clients {
            let time = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| of_ns((ms * 1e6) as u64));
            table.row(vec![
                client.name.clone(),
                client.words(),
                time(client.period_ms),
                time(client.demand_ms),
                client.reserve.as_ref().map_or("none".to_owned(), |reserve| reserve.typed.clone()),
                format!("{:.2}", client.confidence),
                client.jobs.to_string(),
            ]);
        }
        table
    }
}

impl Found {
    fn new(seen: &Seen, identity: &Identity, name: String) -> Found {
        let last = seen.client.report();
        let found = match (&seen.periodic, seen.was_given_up) {
            (Some(report), _) if report.wish.is_some() => PERIODIC,
            (Some(_), _) => LIGHT,
            (None, true) => APERIODIC,
            (None, false) => TOO_LITTLE,
        };
        let who = Found {
            pid: identity.pid,
            name,
            program: identity.program.clone(),
            found,
            jobs: last.jobs,
            confidence: if found == TOO_LITTLE { 0.0 } else { last.confidence },
            near: last.seen.map(|fit| fit.near),
            coverage: last.seen.map(|fit| fit.coverage),
            ..Found::default()
        };
        match &seen.periodic {
            Some(report) => who.with(report),
            None => who,
        }
    }

    fn with(self, report: &Report) -> Found {
        let ms = |ns: u64| ns as f64 / 1e6;
        let Some(beat) = report.beat else { return self };
        let clock = match beat {
            Beat::Clock(fit) => Some(fit),
            Beat::Loop(_) => None,
        };
        let period_ns = report.wish.map_or(beat.length_ns(), |wish| wish.period_ns);
        Found {
            kind: Some(if clock.is_some() { "clock" } else { "loop" }),
            period_ms: Some(ms(period_ns)),
            rest_ms: clock.is_none().then(|| ms(beat.length_ns())),
            demand_ms: Some(ms(report.quantile_ns)),
            mean_ms: Some(ms(report.mean_ns)),
            reserve: report.wish.map(|wish| Reserve::new(wish.budget_ns, wish.period_ns)),
            confidence: report.confidence,
            near: Some(clock.map_or(report.confidence, |fit| fit.near)),
            coverage: clock.map(|fit| fit.coverage),
            ..self
        }
    }

    fn words(&self) -> String {
        match self.kind {
            Some("loop") => format!("{}, a loop", self.found),
            _ => self.found.to_owned(),
        }
    }
}

impl Reserve {
    fn new(budget_ns: u64, period_ns: u64) -> Reserve {
        let wanted = in_us(budget_ns + 999, period_ns);
        let (Reservation { budget, period }, typed) = (wanted, wanted.typed());
        Reserve { budget_ms: f64::from(budget.0) / 1e3, period_ms: f64::from(period.0) / 1e3, typed }
    }
}

/// A rule for each program that should have a reservation.
fn rules(clients: &[Found]) -> String {
    let mut done = BTreeSet::new();
    let mut text = String::new();
    for client in clients {
        let Some(reserve) = &client.reserve else { continue };
        if client.program.is_empty() || !done.insert(&client.program) {
            continue;
        }
        let separator = if text.is_empty() { "version = 1\n\n" } else { "\n" };
        text += &format!(
            "{separator}[[rule]]\nid = {}\nmatch = {{ exe = [{}] }}\nset = {{ reserve = \"auto\" }}    # found: \"{}\"\n",
            quoted(&client.program),
            quoted(&format!("*/{}", client.program)),
            reserve.typed
        );
    }
    text
}

/// A string of TOML. A program may call itself anything.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => quoted += &format!("\\u{:04X}", letter as u32),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_one_rule_however_many_connections_it_has() {
        let found = |program: &str, reserve: Option<Reserve>| Found {
            program: program.to_owned(),
            found: if reserve.is_some() { PERIODIC } else { APERIODIC },
            reserve,
            ..Found::default()
        };
        let reserve = || Some(Reserve::new(2_240_000, 40_000_000));
        let rules =
            rules(&[found("mpv", reserve()), found("mpv", reserve()), found("a\"b", reserve()), found("xterm", None)]);
        let expected = "version = 1\n\n[[rule]]\nid = \"mpv\"\nmatch = { exe = [\"*/mpv\"] }\nset = { reserve = \"auto\" }    \
                        # found: \"2.24ms/40ms\"\n";
        assert!(rules.starts_with(expected), "{rules}");
        assert_eq!(rules.matches("[[rule]]").count(), 2, "{rules}");
        assert!(rules.contains(r#"exe = ["*/a\"b"]"#), "{rules}");
    }

    #[test]
    fn what_is_printed_can_be_typed() {
        let reserve = Reserve::new(2_240_001, 41_667_900);
        assert_eq!(reserve.typed, "2.241ms/41.667ms");
        assert!(reserve.typed.parse::<Reservation>().is_ok());
    }
}
