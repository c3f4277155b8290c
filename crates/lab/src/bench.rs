//! The benchmark: runs experiments, keeps their raw data with the facts of the machine, and renders what is kept.
//!
//! A folder of results holds `NAME.json` for each experiment (raw data), and, made from these at any time, `results.json`
//! (verdicts and tables), `report.txt` and `index.html`. Findings go to standard output, progress to standard error.

use crate::experiments::{self, Experiment};
use crate::machine::Machine;
use crate::server::{self, Kind, Module, Server, Setup};
use crate::study::Study;
use crate::tiles::SCREEN;
use crate::{page, render};
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to run and where to keep it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of [`list`]; `all`, or none, is every experiment.
    pub names: Vec<String>,
    /// Folder of the results; created when missing.
    pub output: PathBuf,
    /// One short pair of each measurement: shows that everything works, and gives no numbers to quote.
    pub quick: bool,
    /// Pairs whose median is taken.
    pub pairs: u32,
    /// See [`server::find_module`].
    pub module: Option<PathBuf>,
}

/// Name and purpose of each experiment.
pub fn list() -> Vec<(&'static str, &'static str)> {
    experiments::ALL.iter().map(|experiment| (experiment.name, experiment.about)).collect()
}

/// Runs experiments one after the other. A missed goal is a finding, not an error; an experiment that could not be run
/// is one, after the others have been run.
pub fn run(options: &Options) -> Result<()> {
    let chosen = choose(&options.names)?;
    let module = server::find_module(options.module.as_deref())?;
    fs::create_dir_all(&options.output).with_context(|| format!("cannot create {}", options.output.display()))?;
    let version = Setup::stock(Kind::Xvfb).start()?.version()?;
    let count = chosen.len();
    let mut failed = Vec::new();
    for experiment in chosen {
        let pairs = if options.quick || !experiment.paired { 1 } else { options.pairs.max(1) };
        let bench =
            Bench { name: experiment.name, quick: options.quick, pairs, module: module.clone(), began: Instant::now() };
        let machine = Machine::facts(version.clone());
        bench.say("begins");
        match (experiment.run)(&bench) {
            Ok(raw) => {
                let stored = Stored { experiment: experiment.name.into(), quick: options.quick, pairs, machine, raw };
                stored.write(&options.output)?;
                print(&format!("{}\n", render::study(&(experiment.study)(stored.raw)?)))?;
                bench.say("done");
            }
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "{}: {error:#}", experiment.name);
                failed.push(experiment.name);
            }
        }
    }
    let found = read_all(&options.output)?;
    write_findings(&options.output, &found)?;
    if count > 1 {
        print(&format!("{}\n", summary(&found)))?;
    }
    print(&format!("{}\n", options.output.join("index.html").display()))?;
    if failed.is_empty() { Ok(()) } else { Err(anyhow!("could not be run: {}", failed.join(", "))) }
}

/// Renders again what a folder holds.
pub fn report(folder: &Path) -> Result<()> {
    let found = read_all(folder)?;
    if found.is_empty() {
        bail!("{} holds no results: make some with `xqos bench run all --output {0}`", folder.display());
    }
    write_findings(folder, &found)?;
    print(&format!("{}\n{}\n", report_text(&found), folder.join("index.html").display()))?;
    Ok(())
}

/// A reader that goes away is no error: the results are in the folder.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("cannot write the results"),
        _ => Ok(()),
    }
}

/// What an experiment may use.
#[derive(Debug)]
pub(crate) struct Bench {
    name: &'static str,
    pub quick: bool,
    pub pairs: u32,
    module: PathBuf,
    began: Instant,
}

impl Bench {
    /// A line of progress.
    pub fn say(&self, what: impl AsRef<str>) {
        let seconds = self.began.elapsed().as_secs_f64();
        let _ = writeln!(std::io::stderr(), "{seconds:6.1} s  {}: {}", self.name, what.as_ref());
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
        let info = server.control()?.server_info()?;
        if !info.armed {
            bail!("xqos stepped aside: {}\n{}", info.reason, server.log());
        }
        Ok(server)
    }
}

/// Raw data of one experiment, as kept.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    experiment: String,
    quick: bool,
    pairs: u32,
    machine: Machine,
    raw: Value,
}

impl Stored {
    fn write(&self, folder: &Path) -> Result<()> {
        write(&folder.join(format!("{}.json", self.experiment)), &serde_json::to_string(self)?)
    }
}

/// What was found, and under which circumstances.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    pub experiment: String,
    pub quick: bool,
    pub pairs: u32,
    pub machine: Machine,
    #[serde(flatten)]
    pub study: Study,
}

fn choose(names: &[String]) -> Result<Vec<&'static Experiment>> {
    if names.is_empty() || names.iter().any(|name| name == "all") {
        return Ok(experiments::ALL.iter().collect());
    }
    let find = |name: &String| experiments::ALL.iter().find(|experiment| experiment.name == name);
    let known = || list().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    names.iter().map(|name| find(name).ok_or_else(|| anyhow!("no experiment {name}; there are: {}", known()))).collect()
}

/// In the order of [`list`]; files of other names are not ours.
fn read_all(folder: &Path) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for experiment in &experiments::ALL {
        let path = folder.join(format!("{}.json", experiment.name));
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let of_file = || format!("{} is not a result of this version", path.display());
        let stored: Stored = serde_json::from_str(&text).with_context(of_file)?;
        let study = (experiment.study)(stored.raw).with_context(of_file)?;
        let Stored { experiment, quick, pairs, machine, .. } = stored;
        found.push(Finding { experiment, quick, pairs, machine, study });
    }
    Ok(found)
}

fn write_findings(folder: &Path, found: &[Finding]) -> Result<()> {
    // Charts repeat the raw data, which lie beside.
    let mut brief = found.to_vec();
    brief.iter_mut().for_each(|finding| finding.study.charts.clear());
    write(&folder.join("results.json"), &serde_json::to_string_pretty(&brief)?)?;
    write(&folder.join("report.txt"), &report_text(found))?;
    write(&folder.join("index.html"), &page::html(found)?)
}

fn report_text(found: &[Finding]) -> String {
    let studies: Vec<String> = found.iter().map(|finding| render::study(&finding.study)).collect();
    let machine = found.first().map(|finding| render::machine(&finding.machine)).unwrap_or_default();
    format!("{}\n{}\n{machine}", studies.join("\n\n"), summary(found))
}

fn summary(found: &[Finding]) -> String {
    let verdicts = found.iter().flat_map(|finding| {
        finding.study.verdicts.iter().map(|verdict| {
            let mut verdict = verdict.clone();
            verdict.what = format!("{}: {}", finding.experiment, verdict.what);
            verdict
        })
    });
    let verdicts: Vec<_> = verdicts.filter(|verdict| verdict.is_met().is_some()).collect();
    let met = verdicts.iter().filter(|verdict| verdict.is_met() == Some(true)).count();
    let quick =
        if found.iter().any(|finding| finding.quick) { " (some of it measured in a hurry: --quick)" } else { "" };
    format!("All goals{quick}\n\n{}\n{met} of {} goals are met\n", render::verdicts(&verdicts), verdicts.len())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_chosen_in_the_order_given_and_unknown_ones_listed() {
        let names = |names: &[&str]| choose(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        let chosen: Vec<&str> = names(&["idle", "demo"]).unwrap().iter().map(|experiment| experiment.name).collect();
        assert_eq!(chosen, ["idle", "demo"]);
        assert_eq!(names(&["all"]).unwrap().len(), list().len());
        let error = names(&["demo", "nonsense"]).unwrap_err().to_string();
        assert!(error.contains("nonsense") && error.contains("fairness"), "{error}");
    }

    #[test]
    fn a_folder_without_results_is_an_error_with_a_next_step() {
        let error = report(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.contains("bench run"), "{error}");
    }
}
