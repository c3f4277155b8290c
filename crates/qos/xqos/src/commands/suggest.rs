// SPDX-License-Identifier: MIT
//! `xqos suggest`: finds what to reserve for the clients of a trace, and prints a rule for it.
//!
//! The trace's bursts go through the same tuner as those of a live server, so the suggestion is what `auto` would
//! reserve.

use super::trace::open;
use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use xqos_abi::cut;
use xqos_agent::client::in_us;
use xqos_agent::field::{Value, count, fields, json_help, table, time, time_of_us};
use xqos_cli::output;
use xqos_text::quantity::Reservation;
use xqos_trace::model::{Identity, Model};
use xqos_tune::{Beat, Burst, ClientAnalysis, RhythmReport, RhythmState};

/// Finds what to reserve for the clients of a trace, and prints a rule for it
///
/// A client with a steady rhythm, such as a player, a game or an animation, gets a reservation of the server time that
/// it needs in each period. The rhythm is derived from the times at which the client had work, and the need from the
/// server time of each job. A client without a rhythm needs no reservation: policy fair serves it.
#[derive(Args, Debug)]
#[command(after_help = help())]
pub struct Arguments {
    /// A trace from `xqos trace record`, at least a few seconds long
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos trace record --time 10s film.trace
  xqos suggest film.trace
  xqos suggest --json film.trace | jq -r .rules

Results:
  period      time from one job to the next; for a client that rests after each
              reply, the period that it would have on an idle server
  demand      server time that 15 of 16 jobs do not exceed
  reserve     budget / period, with a margin for later jobs
  confidence  0 to 1: how well the jobs fit the period
  aperiodic   no rhythm in 3 s of work or more; nothing to reserve
  light       a rhythm, but less than 1 % of the server; nothing to reserve
  too little  too few jobs to find a rhythm; record for longer

JSON: seconds, lost_records, clients, rules (as text).";

fn help() -> String {
    format!("{EXAMPLES}\n\n{}", json_help("clients, an array", COLUMNS))
}

/// Printed results for a client.
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
    clients: Vec<ClientResult>,
    rules: String,
}

#[derive(Debug)]
struct ClientResult {
    pid: u32,
    name: String,
    program: String,
    found: &'static str,
    last: RhythmReport,
    /// The report and period from when the client was last periodic.
    periodic: Option<(RhythmReport, Beat)>,
}

fields! {
const COLUMNS of client: ClientResult as JSON;

"pid": "process id" => count(client.pid);
"name" elastic("CLIENT", 8, ""): "name of the client" => Value::Text(client.name.clone());
"program": "name of the program" => Value::Text(client.program.clone());
"found" elastic("FOUND", 8, ""): "periodic, light, aperiodic, or too little" =>
    Value::Other(json!(client.found), format!("{}{}", client.found, if client.is_loop() { ", a loop" } else { "" }));
"kind": "clock or loop" =>
    Value::or_none(client.periodic, |_| Value::Text(if client.is_loop() { "loop" } else { "clock" }.to_owned()));
"period_ms" number("PERIOD", 7, ""): "from one job to the next" =>
    client.time(|report, beat| report.need.map_or(beat.length_ns(), |need| need.period_ns));
"rest_ms": "pause of a loop after each reply" => client.time(|_, beat| beat.length_ns()).when(client.is_loop());
"demand_ms" number("DEMAND", 7, ""): "server time that 15 of 16 jobs do not exceed" =>
    client.time(|report, _| report.quantile_ns);
"mean_ms": "mean server time of a job" => client.time(|report, _| report.mean_ns);
"reserve.budget_ms": "budget to reserve" => Value::or_none(client.reserve(), |reserve| time_of_us(reserve.budget.0));
"reserve.period_ms": "period of the budget" => Value::or_none(client.reserve(), |reserve| time_of_us(reserve.period.0));
"reserve.typed" number("RESERVE", 7, ""): "budget / period, in the form that commands accept" =>
    client.reserve().map_or(Value::Other(Json::Null, "none".to_owned()), |reserve| Value::Text(reserve.typed()));
"confidence" number("CONFIDENCE", 10, ""): "0 to 1: how well the jobs fit the period" =>
    Value::Other(json!(client.confidence()), format!("{:.2}", client.confidence()));
"near": "fraction of intervals close to the period" => Value::or_none(client.fit(), |(near, _)| Value::Number(near));
"coverage": "jobs per period" => Value::or_none(client.fit().and_then(|fit| fit.1), Value::Number);
"jobs" number("JOBS", 6, ""): "number of jobs" => count(client.last.jobs);
}

/// A client while the trace is being read.
#[derive(Debug, Default)]
struct Tracked {
    client: ClientAnalysis,
    /// The report from when the client was last periodic.
    periodic: Option<RhythmReport>,
    was_given_up: bool,
}

impl Tracked {
    fn take(&mut self, burst: Burst) {
        self.client.take(burst);
        let report = self.client.report();
        match report.state {
            RhythmState::Periodic => self.periodic = Some(report),
            RhythmState::Aperiodic | RhythmState::GivenUp => self.was_given_up = true,
            RhythmState::Gathering | RhythmState::Silent => {}
        }
    }
}

impl Suggestion {
    fn read(path: &Path) -> Result<Suggestion> {
        let (trace, _) = open(path)?;
        let mut model = Model::without_causes();
        let mut seen: BTreeMap<usize, Tracked> = BTreeMap::new();
        for event in trace.events() {
            if let Some(burst) = model.take(&event) {
                let (start, end, served_ns) = (burst.activation, burst.end, burst.worked_ns);
                seen.entry(burst.key).or_default().take(Burst { start, end, served_ns });
            }
        }
        if seen.is_empty() {
            bail!("{}: no client had work during this recording: record while the program draws", path.display());
        }
        let named = |key: usize| model.clients().get(key).map(|client| client.identity.clone()).unwrap_or_default();
        let results = seen.iter().map(|(&key, seen)| ClientResult::new(seen, &named(key), model.name(key)));
        let mut clients: Vec<ClientResult> = results.collect();
        clients.sort_by_key(|client| std::cmp::Reverse((client.reserve().is_some(), client.last.jobs)));
        let rules = rules(&clients);
        Ok(Suggestion { seconds: model.span_ns() as f64 / 1e9, lost_records: model.lost, clients, rules })
    }

    fn text(&self) -> String {
        let mut text = format!("{:.3} s", self.seconds);
        if self.lost_records > 0 {
            text += &format!("; {} records are missing", self.lost_records);
        }
        text += &format!("\n\n{}\n", table(COLUMNS, &self.clients.iter().collect::<Vec<_>>()).render(None));
        match self.rules.is_empty() {
            true => text + "No rule: no client has a rhythm that needs a reservation.\n",
            false => text + &self.rules,
        }
    }
}

impl ClientResult {
    fn new(seen: &Tracked, identity: &Identity, name: String) -> ClientResult {
        let found = match (&seen.periodic, seen.was_given_up) {
            (Some(report), _) if report.need.is_some() => PERIODIC,
            (Some(_), _) => LIGHT,
            (None, true) => APERIODIC,
            (None, false) => TOO_LITTLE,
        };
        let (pid, program, last) = (identity.pid, identity.program.clone(), seen.client.report());
        let periodic = seen.periodic.and_then(|report| Some((report, report.beat?)));
        ClientResult { pid, name, program, found, last, periodic }
    }

    fn is_loop(&self) -> bool {
        matches!(self.periodic, Some((_, Beat::Loop(_))))
    }

    fn time(&self, of: impl FnOnce(&RhythmReport, &Beat) -> u64) -> Value {
        let none = Value::Other(Json::Null, "-".to_owned());
        self.periodic.map_or(none, |(report, beat)| time(of(&report, &beat)))
    }

    fn reserve(&self) -> Option<Reservation> {
        self.periodic?.0.need.map(|need| reservation(need.budget_ns, need.period_ns))
    }

    fn confidence(&self) -> f64 {
        match self.periodic {
            Some((report, _)) => report.confidence,
            None if self.found == TOO_LITTLE => 0.0,
            None => self.last.confidence,
        }
    }

    /// The fraction of intervals close to the period, and the jobs per period; a loop has one job per period.
    fn fit(&self) -> Option<(f64, Option<f64>)> {
        match self.periodic {
            Some((_, Beat::Clock(fit))) => Some((fit.near, Some(fit.coverage))),
            Some((report, Beat::Loop(_))) => Some((report.confidence, None)),
            None => self.last.seen.map(|fit| (fit.near, Some(fit.coverage))),
        }
    }
}

/// A reservation rounded up to whole microseconds.
fn reservation(budget_ns: u64, period_ns: u64) -> Reservation {
    in_us(budget_ns + 999, period_ns)
}

/// One rule for each program that needs a reservation. Names have no control characters, so a JSON string is also a
/// TOML string.
fn rules(clients: &[ClientResult]) -> String {
    let (mut done, mut ids) = (BTreeSet::new(), BTreeSet::new());
    let mut text = String::new();
    for client in clients {
        let Some(reserve) = client.reserve() else { continue };
        if client.program.is_empty() || !done.insert(&client.program) {
            continue;
        }
        let mut id = id_of(&client.program);
        while !ids.insert(id.clone()) {
            id.push('_');
        }
        let separator = if text.is_empty() { "version = 1\n\n" } else { "\n" };
        // A rule matches the whole name, but the server has only the beginning of a long one.
        let is_whole = cut(&format!("{}_", client.program)).len() > client.program.len();
        text += &format!(
            "{separator}[[rule]]\nid = {}\nmatch = {{ name = {} }}\nset = {{ reserve = \"auto\" }}    # found: \"{}\"\n",
            json!(id),
            json!(format!("{}{}", client.program, if is_whole { "" } else { "*" })),
            reserve.typed()
        );
    }
    text
}

/// An id for the rule of a program: its name, with characters that are invalid in an id replaced.
fn id_of(program: &str) -> String {
    let is_fit = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    program.chars().take(60).map(|letter| if is_fit(letter) { letter } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use xqos_core::Time;
    use xqos_rules::read::Scope;

    #[test]
    fn a_program_with_several_connections_gets_one_rule() {
        let found = |program: &str, is_periodic: bool| {
            let mut seen = Tracked::default();
            // A film of 25 frames a second.
            for frame in (0..100).filter(|_| is_periodic) {
                let start = Time(1_000_000_000 + frame * 40_000_000);
                seen.take(Burst { start, end: start.after(2_000_000), served_ns: 2_000_000 });
            }
            ClientResult::new(&seen, &Identity { program: program.to_owned(), ..Identity::default() }, String::new())
        };
        let programs = [("mpv", true), ("mpv", true), ("a\"b", true), ("a b", true), ("xterm", false)];
        let rules = rules(&programs.map(|(program, is_periodic)| found(program, is_periodic)));
        let expected = "version = 1\n\n[[rule]]\nid = \"mpv\"\nmatch = { name = \"mpv\" }\nset = { reserve = \"auto\" }    # found: \"2";
        assert!(rules.starts_with(expected) && rules.contains("/40ms\"\n"), "{rules}");
        let read = xqos_rules::read::file("t.toml", &rules, Scope::User).unwrap();
        assert_eq!(read.rules.iter().map(|rule| rule.id.as_str()).collect::<Vec<_>>(), ["mpv", "a-b", "a-b_"]);
        assert!(rules.contains(r#"name = "a\"b" }"#), "{rules}");
        let rules = super::rules(&[found("FactoryGameSteam-Win64-Shipping", true)]);
        assert!(rules.contains(r#"name = "FactoryGameSteam-Win64-Shipping*" }"#), "{rules}");
    }

    #[test]
    fn a_printed_reservation_can_be_typed() {
        let reserve = reservation(2_240_001, 41_667_900);
        assert_eq!(reserve.typed(), "2.241ms/41.667ms");
        assert!(reserve.typed().parse::<Reservation>().is_ok());
    }
}
