// SPDX-License-Identifier: MIT
//! Experiments defined by files: what is measured, on which servers, with which loads, and how it is evaluated.
//!
//! A file is checked ([`check`]), and its axes are combined into cases ([`case`]). Each case is measured once per turn
//! ([`stage`], [`loads`], [`measuring`]). Expressions over these trials ([`data`], [`expression`]) give the tables,
//! verdicts and charts ([`study`]). docs/experiments/format.md describes the format.

mod around_load;
mod bursts;
mod case;
mod check;
mod data;
mod drag;
mod expression;
mod format;
mod loads;
mod measure;
mod measuring;
mod simulation;
mod stage;
mod started;
mod study;
mod texts;

use crate::program::Missing;
use crate::study::Study;
use crate::workbench::{Bench, Parts};
use anyhow::{Context, Result, bail};
use case::Case;
use data::{AxisValues, Cell, Data, Trial};
use format::Definition;
use measure::Measure;
use serde::{Deserialize, Serialize};
use stage::Stage;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

#[derive(Clone, Debug, PartialEq)]
pub struct Mistake {
    /// The quoted text, or a line number.
    at: MistakeLocation,
    what: String,
}

#[derive(Clone, Debug, PartialEq)]
enum MistakeLocation {
    Text(String),
    Line(usize),
}

#[derive(Debug)]
pub struct Experiment {
    pub name: String,
    text: String,
    definition: Definition,
    axes: Vec<AxisValues>,
    cases: Vec<Case>,
}

/// Raw data. The experiment file is stored with them, so results can be evaluated without the original file.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    file: String,
    trials: Vec<Trial>,
}

impl Mistake {
    fn at(text: &str, what: impl Into<String>) -> Mistake {
        Mistake { at: MistakeLocation::Text(text.to_owned()), what: what.into() }
    }

    /// `FILE:LINE: TEXT`.
    fn message(&self, path: &str, text: &str) -> String {
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        let line = match &self.at {
            MistakeLocation::Line(line) => *line,
            MistakeLocation::Text(at) => text.find(&format!("\"{at}\"")).or_else(|| text.find(at)).map_or(1, line_of),
        };
        format!("{path}:{line}: {}", self.what)
    }
}

impl Experiment {
    /// Reads a user's experiment, which is named after its file.
    pub fn read(path: &Path) -> Result<Experiment> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_stem().and_then(|name| name.to_str()).context("the file name is not valid UTF-8")?;
        Experiment::parse(name, &path.display().to_string(), &text).map_err(anyhow::Error::msg)
    }

    /// `path` is printed before the line number of a mistake.
    pub(crate) fn parse(name: &str, path: &str, text: &str) -> Result<Experiment, String> {
        Experiment::of_text(name, text).map_err(|mistake| mistake.message(path, text))
    }

    fn of_text(name: &str, text: &str) -> Result<Experiment, Mistake> {
        let definition: Definition = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            Mistake { at: MistakeLocation::Line(line), what: error.message().to_owned() }
        })?;
        let axes = data::axes(&definition);
        if let Some(empty) = axes.iter().find(|axis| axis.values.is_empty()) {
            let what = format!("the axis '{}' has no values: write at least one", empty.name);
            return Err(Mistake::at(&format!("{} = []", empty.name), what));
        }
        let cells = data::cells(&axes.iter().collect::<Vec<_>>());
        let cells = cells.iter().filter(|cell| !case::is_left_out(&definition, cell));
        let cases = cells.map(|cell| case::case(&definition, &axes, cell)).collect::<Result<Vec<_>, _>>()?;
        check::check(&definition, &axes, &cases)?;
        Ok(Experiment { name: name.to_owned(), text: text.to_owned(), definition, axes, cases })
    }

    pub fn about(&self) -> &str {
        &self.definition.about
    }

    /// True if the figures are also valid with one processor and a clock that counts instructions: response times,
    /// order, shares and costs. Throughput of caches, several processors, sound and networks need a real machine.
    pub fn is_exact(&self) -> bool {
        self.definition.exact
    }

    pub fn estimate_s(&self, quick: bool, trials: u32) -> f64 {
        let turns = self.turns(quick, trials);
        let of_case = |case: &Case| {
            let starts: f64 = case.loads.iter().map(|load| 0.7 + 0.05 * load.clients as f64).sum();
            let around = case.before(quick).map_or(0, |before| before + case.after(quick)) as f64 * 0.04;
            let one = (case.time(quick) + case.warm_up).as_secs_f64() + 0.3 + starts + around;
            one * f64::from(if case.setting.once == Some(true) { 1 } else { turns }) / case.together as f64
        };
        self.cases.iter().filter(|case| !quick || case.setting.quick != Some(false)).map(of_case).sum()
    }

    /// Number of trials that the run asks for, which a quick run reduces to one.
    pub(crate) fn trials(quick: bool, trials: u32) -> u32 {
        if quick { 1 } else { trials.max(1) }
    }

    fn turns(&self, quick: bool, trials: u32) -> u32 {
        let of_one = if quick { 1 } else { self.definition.order.turns.unwrap_or(1) };
        let turns = self.definition.order.fixed_turns.unwrap_or(trials * of_one);
        (if quick { turns.min(2) } else { turns }).min(self.definition.order.most_turns.unwrap_or(u32::MAX))
    }

    /// Measures everything that has not been measured yet, so a run can continue after an interruption.
    pub(crate) fn run(&self, bench: &Bench) -> Result<serde_json::Value> {
        let (path, of) = &bench.parts;
        let mut parts = Parts::open(path, of)?;
        let mut stage = Stage::new(bench, &self.definition);
        let turns = self.turns(bench.quick, bench.pairs);
        let outside: Vec<&AxisValues> =
            self.axes.iter().filter(|axis| self.definition.order.outside.contains(&axis.name)).collect();
        let new_after = self.definition.order.new_servers.as_deref().and_then(check::turns);
        for outer in data::cells(&outside) {
            stage.clear(true);
            for turn in 0..turns {
                if new_after.is_some_and(|turns| turn % turns == 0) {
                    stage.clear(false);
                }
                let is_done = |case: &Case| {
                    let is_it = |trial: &Trial| trial.turn == turn && trial.case == case.cell;
                    turn > 0 && case.setting.once == Some(true) || parts.list().iter().any(is_it)
                };
                let mut due = self.cases_in(&outer, bench.quick);
                due.retain(|case| !is_done(case));
                // Alternate the order, so that no case is always first.
                if turn % 2 == 1 {
                    due.reverse();
                }
                for cases in due.chunk_by(|one, other| one.together == other.together) {
                    if cases[0].together > 1 {
                        self.measure_together(bench, cases, turn, &mut parts)?;
                        continue;
                    }
                    for case in cases {
                        match self.definition.order.new_servers.as_deref() {
                            Some("case") => stage.clear(false),
                            Some("server") if !stage.has_server(case) => stage.clear(false),
                            _ => {}
                        }
                        if let Some(trial) = self.trial(bench, &mut stage, case, turn)? {
                            parts.add(trial)?;
                        }
                    }
                }
            }
        }
        if parts.list().is_empty() {
            bail!("nothing could be measured: programs are not installed, or this user may not run them");
        }
        Ok(serde_json::to_value(Measured { file: self.text.clone(), trials: parts.into_list() })?)
    }

    /// `None` if the case cannot be measured here.
    fn trial(&self, bench: &Bench, stage: &mut Stage, case: &Case, turn: u32) -> Result<Option<Trial>> {
        let name = case.name(&self.axes);
        bench.progress.say(&format!("{name}: turn {}", turn + 1));
        match stage.trial(case, turn) {
            Err(error) if case.measure == Measure::Command && error.is::<Missing>() => {
                bench.progress.note(&format!("{name}: left out: {error}"));
                Ok(None)
            }
            trial => trial.with_context(|| name),
        }
    }

    /// Measures several cases at the same time, each on a server of its own. After an error, no further case begins.
    fn measure_together(&self, bench: &Bench, cases: &[&Case], turn: u32, parts: &mut Parts<Trial>) -> Result<()> {
        let (next, (sender, receiver)) = (AtomicUsize::new(0), channel());
        thread::scope(|scope| {
            // Processes end with the thread that started them, and this thread lives until its cases are measured.
            for _ in 0..cases[0].together {
                let (next, sender) = (&next, sender.clone());
                scope.spawn(move || {
                    // Only uniqueness matters, so relaxed ordering is enough.
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let trial = self.trial(bench, &mut Stage::new(bench, &self.definition), case, turn);
                        if sender.send(trial).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            receiver.into_iter().try_for_each(|trial| trial?.map_or(Ok(()), |trial| parts.add(trial)))
        })
    }

    fn cases_in(&self, outer: &Cell, quick: bool) -> Vec<&Case> {
        let is_in = |case: &&Case| outer.iter().all(|(axis, value)| case.cell.get(axis) == Some(value));
        self.cases.iter().filter(is_in).filter(|case| !quick || case.setting.quick != Some(false)).collect()
    }

    pub(crate) fn study(&self, raw: serde_json::Value) -> Result<Study> {
        let measured: Measured = serde_json::from_value(raw)?;
        let published = self.definition.setting.published.clone().unwrap_or_default();
        let mut data = Data::new(self.axes.clone(), measured.trials);
        data.published = published;
        Ok(study::study(&self.name, &self.definition, &data))
    }

    /// The experiment file with which these raw data were measured.
    pub(crate) fn of_raw(name: &str, raw: &serde_json::Value) -> Option<Experiment> {
        let text = raw.get("file")?.as_str()?;
        Experiment::of_text(name, text).ok()
    }
}

#[cfg(test)]
pub(crate) mod tests;
