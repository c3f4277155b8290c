// SPDX-License-Identifier: MIT
//! The benchmark: runs experiments, stores their raw data with facts about the machine, and renders stored results.
//!
//! A folder of results has a file `NAME.json` with the raw data of each experiment. `results.json` (verdicts and
//! tables) and `index.html` can be regenerated from these files at any time. Findings go to standard output, progress
//! to standard error. The raw data of an experiment are written as soon as the experiment has finished, so an
//! interrupted run can continue. An experiment that takes hours also stores its finished parts in `NAME.parts`.

mod compare;
mod exact;
mod interrupt;
mod report;
mod run;

pub use compare::{Comparison, compare};
pub use exact::run_exact;
pub use report::{publish, report, table};
pub use run::{BenchOptions, run};

#[cfg(test)]
pub(crate) use report::text;

pub use crate::file::Experiment;

use crate::workbench;
use anyhow::{Result, anyhow};
use std::path::Path;
use xqos_cli::output;

pub const USUAL_TRIALS: u32 = 6;

/// Finds experiments by name; `all` selects all of them. Experiment files are added to the catalogue.
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
            anyhow!("there is no experiment '{name}'; choose from {}, or give the path of your own .toml file", names())
        })?);
    }
    Ok(chosen)
}

fn print(text: &str) -> Result<()> {
    workbench::clear_line();
    output::print(text)
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
