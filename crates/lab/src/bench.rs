// SPDX-License-Identifier: MIT
//! The benchmark: runs experiments, keeps their raw data with the facts of the machine, and renders what is kept.
//!
//! A folder of results holds `NAME.json` for each experiment (raw data), and, made from these at any time, `results.json`
//! (verdicts and tables) and `index.html`. Findings go to standard output, progress to standard error. An
//! experiment's raw data are written when it is done and at once, so that a run which was interrupted can go on. One that
//! takes hours keeps each of its parts, in `NAME.parts`, until it is done.

mod build;
mod compare;
mod experiment;
mod interrupt;
mod parts;
mod progress;
mod publish;
mod results;
mod run;
mod summary;
mod tables;

pub use compare::{Comparison, compare};
pub use experiment::Experiment;
pub use publish::publish;
pub use results::report;
pub use run::{Options, run};
pub use tables::table;

pub(crate) use build::Build;
pub(crate) use experiment::{Measure, Takes};
pub(crate) use parts::Parts;
pub(crate) use results::Finding;
#[cfg(test)]
pub(crate) use results::{read_all, text};
pub(crate) use summary::conclusions;

use crate::server::{Kind, Module, Server, Setup};
use crate::tiles::SCREEN;
use anyhow::{Context, Result, anyhow};
use progress::Progress;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Trials of a full run.
pub const USUAL_TRIALS: u32 = 6;

/// What an experiment may use.
#[derive(Debug)]
pub(crate) struct Bench {
    pub quick: bool,
    pub pairs: u32,
    module: PathBuf,
    progress: Progress,
    /// Where its parts are kept, and what they are of.
    parts: (PathBuf, String),
}

impl Bench {
    /// The parts that are measured already; what is added outlives an interruption.
    pub fn parts<T: Serialize + DeserializeOwned>(&self) -> Result<Parts<T>> {
        let (path, of) = &self.parts;
        Parts::open(path, of)
    }

    /// A line of progress of an experiment that knows better than its estimate how much is left.
    pub fn say_with_left(&self, what: impl AsRef<str>, left: Duration) {
        self.progress.say_with_left(what.as_ref(), left);
    }

    /// A line of progress.
    pub fn say(&self, what: impl AsRef<str>) {
        self.progress.say(what.as_ref());
    }

    pub fn time(&self, full_ms: u64, quick_ms: u64) -> Duration {
        Duration::from_millis(if self.quick { quick_ms } else { full_ms })
    }

    pub fn module(&self) -> Module {
        Module::new(&self.module)
    }

    /// Xvfb as it comes.
    pub fn stock(&self, max_clients: u32) -> Result<Server> {
        Setup { max_clients, screen: SCREEN, ..Setup::stock(Kind::Xvfb) }.start()
    }

    /// Xvfb with xqos in it; an error when it stepped aside, for then nothing of it would be measured.
    pub fn xqos(&self, module: Module, max_clients: u32) -> Result<Server> {
        let setup = Setup::with_module(Kind::Xvfb, module);
        let server = Setup { max_clients, screen: SCREEN, ..setup }.start()?;
        server.armed()?;
        Ok(server)
    }
}

/// A name of the catalogue, `all`, or a file, which joins the catalogue.
fn choose(known: &mut Vec<Experiment>, names: &[String]) -> Result<Vec<usize>> {
    if names.is_empty() || names.iter().any(|name| name == "all") {
        return Ok((0..known.len()).collect());
    }
    let mut chosen = Vec::new();
    for name in names {
        if name.ends_with(".toml") {
            let own = Experiment::read(Path::new(name))?;
            known.retain(|experiment| experiment.name != own.name);
            known.push(own);
        }
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
        let names = || known.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = known.iter().position(|experiment| experiment.name == stem);
        chosen.push(found.ok_or_else(|| {
            anyhow!("no experiment {name}; there are: {}. A file of your own is named with its .toml", names())
        })?);
    }
    Ok(chosen)
}

/// A reader that goes away is no error: the results are in the folder.
fn print(text: &str) -> Result<()> {
    progress::clear_line();
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot write the results"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_chosen_in_the_order_given_and_unknown_ones_listed() {
        let names = |names: &[&str]| {
            let mut known = crate::experiments::all();
            let chosen = choose(&mut known, &names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())?;
            Ok::<Vec<String>, anyhow::Error>(chosen.into_iter().map(|at| known[at].name.clone()).collect())
        };
        assert_eq!(names(&["idle", "demo"]).unwrap(), ["idle", "demo"]);
        assert_eq!(names(&["all"]).unwrap().len(), crate::experiments::all().len());
        let error = names(&["demo", "nonsense"]).unwrap_err().to_string();
        assert!(error.contains("nonsense") && error.contains("fairness"), "{error}");
        assert!(names(&["nowhere.toml"]).unwrap_err().to_string().contains("cannot read nowhere.toml"));
    }
}
