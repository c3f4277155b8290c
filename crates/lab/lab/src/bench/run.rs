// SPDX-License-Identifier: MIT
//! Runs experiments one after the other.
//!
//! Results that were measured with the same servers and the same thoroughness are kept, so an interrupted run continues
//! where it stopped. A missed goal is a finding, not an error. An experiment that could not run is an error, which is
//! reported after all other experiments have run.

use super::report::{of_one, write_findings};
use super::{Experiment, choose, interrupt, print};
use crate::disturbance::DisturbanceWatch;
use crate::machine::{self, Machine};
use crate::program::Missing;
use crate::render;
use crate::results::{Build, Data, Finding, Stored, Subject, goals, read_all};
use crate::server::{self, ServerKind, Setup};
use crate::study::Table;
use crate::workbench::{self, Bench, Pace, Plan, Progress};
use anyhow::{Context, Error, Result, ensure};
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

const MEASURED: &str = "measured";

/// Options of `xqos bench run`, whose help explains them.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    pub names: Vec<String>,
    pub out: PathBuf,
    pub quick: bool,
    pub trials: u32,
    pub again: bool,
    /// See [`server::find_module`].
    pub module: Option<PathBuf>,
}

/// Measures, writes and prints. SIGINT, SIGTERM or SIGHUP ends everything that was started; this process then exits
/// with status 130.
pub fn run(mut known: Vec<Experiment>, options: &BenchOptions) -> Result<()> {
    let chosen = choose(&mut known, &options.names)?;
    let chosen: Vec<&Experiment> = chosen.into_iter().map(|at| &known[at]).collect();
    let module = server::find_module(options.module.as_deref())?;
    fs::create_dir_all(&options.out).with_context(|| format!("cannot create {}", options.out.display()))?;
    interrupt::watch(&options.out)?;
    let outcome = run_chosen(options, &known, &chosen, module);
    if outcome.is_err() {
        interrupt::wait_if_ending();
    }
    outcome
}

fn run_chosen(options: &BenchOptions, known: &[Experiment], chosen: &[&Experiment], module: PathBuf) -> Result<()> {
    xqos_sys::adopt_orphans().context("cannot adopt orphaned processes")?;
    let server = Setup::stock(ServerKind::Xvfb).start()?.version()?;
    let subject = Subject { server, module: machine::module_version(&module)? };
    let outcomes = BenchRun { options, module, subject }.all(chosen)?;
    let found = read_all(known, &options.out)?;
    write_findings(&options.out, &found)?;
    if chosen.len() > 1 {
        print(&format!("{}\n{}\n", goals(&found), render::table(&table(&outcomes))))?;
    }
    print(&format!("{}\n", options.out.join("index.html").display()))?;
    verdict(&outcomes)
}

struct BenchRun<'a> {
    options: &'a BenchOptions,
    module: PathBuf,
    subject: Subject,
}

/// What was done for an experiment, or why it could not run.
type ExperimentResult = Result<&'static str>;

impl BenchRun<'_> {
    fn all(&self, chosen: &[&Experiment]) -> Result<Vec<(String, ExperimentResult)>> {
        let to_do = |experiment: &&&Experiment| self.stored(experiment).is_none();
        let estimates = |from: usize| chosen[from..].iter().filter(to_do).map(|one| self.estimate_s(one)).sum();
        let mut pace = Pace::default();
        let mut outcomes = Vec::new();
        for (index, experiment) in chosen.iter().enumerate() {
            let plan = Plan {
                place: (index + 1, chosen.len()),
                of_this_s: self.estimate_s(experiment),
                of_others_s: estimates(index + 1),
                pace: pace.factor(),
            };
            let progress = Progress::new(&experiment.name, plan);
            let began = Instant::now();
            let outcome = self.one(experiment, progress)?;
            if matches!(outcome, Ok(MEASURED)) {
                pace.add(self.estimate_s(experiment), began.elapsed().as_secs_f64());
            }
            outcomes.push((experiment.name.clone(), outcome));
        }
        Ok(outcomes)
    }

    fn estimate_s(&self, experiment: &Experiment) -> f64 {
        experiment.estimate_s(self.options.quick, self.options.trials)
    }

    fn one(&self, experiment: &Experiment, progress: Progress) -> Result<ExperimentResult> {
        if let Some(stored) = self.stored(experiment) {
            let measured = machine::date(stored.machine.measured_at);
            progress.note(&format!("kept the result of {measured}; use --again to measure again"));
            print(&text(&stored.finding(Some(experiment))?))?;
            return Ok(Ok("kept"));
        }
        match self.measured(experiment, progress) {
            Ok(stored) => {
                stored.write(&self.options.out)?;
                // The result now contains all parts. Ignore errors: most experiments have no file of parts.
                let _ = fs::remove_file(self.options.out.join(format!("{}.parts", experiment.name)));
                print(&text(&stored.finding(Some(experiment))?))?;
                Ok(Ok(MEASURED))
            }
            Err(error) => {
                interrupt::wait_if_ending();
                let outcome = Err(error);
                workbench::line(&format!("{}: {}", experiment.name, said(&outcome)));
                Ok(outcome)
            }
        }
    }

    /// A stored result that need not be measured again.
    fn stored(&self, experiment: &Experiment) -> Option<Stored> {
        let trials = Experiment::trials(self.options.quick, self.options.trials);
        let is_alike = |stored: &Stored| stored.is_of(&self.subject, self.options.quick, trials);
        let stored = Stored::read(&self.options.out, &experiment.name)?.ok().filter(is_alike);
        // A result that this version cannot evaluate comes from another version, so measure it again.
        stored.filter(|stored| !self.options.again && stored.clone().finding(Some(experiment)).is_ok())
    }

    fn measured(&self, experiment: &Experiment, progress: Progress) -> Result<Stored> {
        let quick = self.options.quick;
        let pairs = Experiment::trials(quick, self.options.trials);
        let Subject { server, module } = self.subject.clone();
        let parts = self.options.out.join(format!("{}.parts", experiment.name));
        if self.options.again {
            // A missing file is not an error.
            let _ = fs::remove_file(&parts);
        }
        let of = format!("{server}, module {module}, quick {quick}, pairs {pairs}");
        let bench = Bench { quick, pairs, module: self.module.clone(), progress, parts: (parts, of) };
        let machine = Machine::facts(server, module);
        let watch = DisturbanceWatch::begin();
        bench.progress.say("starting");
        let raw = experiment.run(&bench)?;
        bench.progress.done();
        let disturbance = watch.and_then(DisturbanceWatch::end);
        Ok(Stored { experiment: experiment.name.clone(), quick, pairs, machine, disturbance, data: Data::Raw(raw) })
    }
}

/// The text of one result, without the mark of another build.
fn text(finding: &Finding) -> String {
    of_one(finding, Build::of(std::slice::from_ref(finding))) + "\n"
}

fn said(outcome: &ExperimentResult) -> String {
    let missing = |error: &Error| error.downcast_ref::<Missing>().map(|missing| format!("skipped: {missing}"));
    match outcome {
        Ok(done) => (*done).to_owned(),
        Err(error) => missing(error).unwrap_or_else(|| format!("failed: {error:#}")),
    }
}

fn table(outcomes: &[(String, ExperimentResult)]) -> Table {
    let mut table = Table::new("", &["experiment", "status"]);
    // The reason may include a server's log, so print only the first line.
    let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
    table.rows.extend(outcomes.iter().map(|(name, outcome)| vec![name.clone(), first_line(said(outcome))]));
    table
}

/// Returns an error if an experiment could not run.
fn verdict(outcomes: &[(String, ExperimentResult)]) -> Result<()> {
    let reason = |(name, outcome): &(String, ExperimentResult)| {
        let missing = outcome.as_ref().err()?.downcast_ref::<Missing>();
        Some(missing.map_or_else(|| name.clone(), |missing| format!("{name} ({missing})")))
    };
    let reasons: Vec<String> = outcomes.iter().filter_map(reason).collect();
    ensure!(reasons.is_empty(), "could not be run: {}", reasons.join(", "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_missing_program_skips_and_any_other_error_fails() {
        let skipped: ExperimentResult = Err(Error::new(Missing::new("mpv")).context("the film"));
        assert_eq!(said(&skipped), "skipped: mpv is missing: install Debian's package mpv");
        let failed = Err(anyhow!("no answer").context("the film"));
        assert_eq!(said(&failed), "failed: the film: no answer");
        let outcomes = [("soft", skipped), ("hard", failed), ("idle", Ok(MEASURED))];
        let outcomes = outcomes.map(|(name, outcome)| (name.to_owned(), outcome));
        let error = verdict(&outcomes).unwrap_err().to_string();
        assert_eq!(error, "could not be run: soft (mpv is missing: install Debian's package mpv), hard");
        assert!(verdict(&outcomes[2..]).is_ok());
    }
}
