// SPDX-License-Identifier: MIT
//! xqos-bench: runs the experiments of `xqos_lab::bench`. `xqos bench` starts this program.

#![forbid(unsafe_code)]

use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use xqos_cli::program::{self, Packaging};
use xqos_cli::{module_file, output};
use xqos_lab::{actor, bench, chaos, experiments, fleet};

/// Runs the experiments that compare servers with and without xqos
///
/// Each experiment starts its own X servers, load clients and measuring clients, and does not affect your session. Keep
/// the machine otherwise idle: each figure is the median of trials that alternate between servers with and without
/// xqos. Other load during a run is recorded with the results, and a disturbed run is marked as noisy.
#[derive(Debug, Parser)]
#[command(name = "xqos-bench", bin_name = "xqos bench", version, max_term_width = 100, after_help = EXAMPLES)]
struct CommandLine {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  xqos bench list
  xqos bench run all --quick --out out/quick
  xqos bench run all --out out/bench
  xqos bench run instructions --exact --out out/after
  xqos bench report out/bench -o report.html
  xqos bench compare out/before out/bench
  xqos bench fleet --sessions 100 out/fleet
  xqos bench chaos --seconds 600 --seed 7 --host libc";

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the experiments and roughly how long each takes
    List,
    /// Checks experiment files without running them
    ///
    /// Nothing is measured. Each mistake is reported on one line: the file, the line number, and what to write instead.
    /// The exit status is then 1.
    Check {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Runs experiments and writes their report
    ///
    /// Each result is saved as soon as it is complete. ^C stops all servers and clients that the run started; the exit
    /// status is 130. Start an interrupted run again with the same command to continue it: results with the same X
    /// server, module, --quick and --trials are reused. An experiment that needs a missing program is skipped, and the
    /// exit status is then 1.
    Run {
        /// Experiments from `xqos bench list`, your own experiment files (FILE.toml), or all
        #[arg(required = true, value_name = "NAME|FILE|all")]
        names: Vec<String>,
        /// The folder for results and report
        #[arg(long, alias = "output", value_name = "DIR", default_value = "out/bench")]
        out: PathBuf,
        /// Shorter runs, to check that everything works; not for figures to publish
        #[arg(long)]
        quick: bool,
        /// Trials per measurement; the median is reported [default: 6, with --exact 1]
        #[arg(long, alias = "pairs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        trials: Option<u32>,
        /// Run on the exact machine: a virtual one whose clock counts instructions, so that every run gives the same
        ///
        /// Needs the source tree of xqos and `scripts/setup --for machine`. A second of the experiment takes two to
        /// five seconds. Only experiments that `xqos bench list` marks as exact can run there: one processor has no
        /// caches to share, no sound and no network.
        #[arg(long)]
        exact: bool,
        /// Measure again, even where results exist
        #[arg(long)]
        again: bool,
    },
    /// Rewrites the report from saved results
    Report {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// The report as one self-contained page [default: index.html in DIR]
        #[arg(short = 'o', long = "output", value_name = "FILE")]
        page: Option<PathBuf>,
    },
    /// Writes the publishable part of saved results
    ///
    /// OUT/data/NAME.json contains the tables, verdicts and charts of an experiment, but not the samples of its trials.
    /// OUT/report.html shows all results in OUT/data. `report` and `compare` accept OUT/data in place of DIR.
    Publish {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[arg(value_name = "OUT")]
        out: PathBuf,
    },
    /// Updates result tables and figures in documents
    ///
    /// In each FILE, the text between `<!-- xqos bench table: WHAT -->` and `<!-- end of table -->` is replaced. WHAT
    /// is `headlines` (as in the README), `goals` (all goals), `missed`, `verdicts of NAME`, or `NAME.KEY` (the table
    /// of experiment NAME with this key). The text between `<!-- figure: WHAT -->` and `<!-- end -->` is replaced by a
    /// figure. There, WHAT is `PAPER.FIGURE` (of lab/papers), `NAME // KEY` (the value of a verdict), or `NAME.KEY //
    /// ROW // COLUMN` (a cell); a KEY can also be the text of the verdict, or the title of the table. A FILE without
    /// these marks is not changed. Without --into, the headlines are printed.
    Table {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[arg(long, value_name = "FILE", num_args = 1..)]
        into: Vec<PathBuf>,
    },
    /// Compares two folders of results
    ///
    /// For each verdict in both folders, prints the values in A and in B, their ratio, and a conclusion. B is called
    /// better or worse only if the two ranges of measurements do not overlap. The exit status does not depend on the
    /// result.
    Compare {
        #[arg(value_name = "A")]
        a: PathBuf,
        #[arg(value_name = "B")]
        b: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Simulates a fleet: writes traces, captures and tables of many sessions
    ///
    /// Writes a trace and a capture of each session to DIR/traces and DIR/captures, and to DIR/fleet.parquet the tables
    /// that `xqos trace export` and `xqos analyse --parquet` make from them. Seeds are session numbers, so every run
    /// writes the same files. Prints the number of records and bytes, and how long it took to make the tables.
    Fleet {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// How many sessions
        #[arg(long, value_name = "N", default_value_t = 1000)]
        sessions: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stresses a server that runs xqos with random operations, and checks its invariants
    ///
    /// Starts, stops, continues and kills programs; sets reservations, weights, groups, policies, rules, traces and
    /// pacing; sends garbage to the X socket, the extension and the control socket; resets the server. Throughout, the
    /// server must answer and its totals must add up. After each reset, no thread may keep a raised priority, and
    /// memory and file descriptors must be back to their previous levels. A failure prints its seed; the exit status is
    /// then 1.
    Chaos {
        /// Run for this many seconds
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,
        /// Stop after this many operations
        #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
        operations: u64,
        /// Seed of the random operations
        #[arg(long, value_name = "S", default_value_t = 1)]
        seed: u64,
        /// How xqos is attached to the server: through the server's own functions (dix), or through its libc calls
        /// (libc)
        #[arg(long, value_name = "dix|libc", default_value = "dix", value_parser = host())]
        host: chaos::Host,
        /// Print each operation
        #[arg(long, short)]
        verbose: bool,
    },
    /// Plays one role in an experiment; experiments start it themselves
    #[command(hide = true)]
    Act { role: String },
    #[command(flatten)]
    Packaging(Packaging),
}

fn host() -> impl TypedValueParser<Value = chaos::Host> {
    let of = |name: String| chaos::Host::ALL.iter().find(|host| host.0 == name).map_or(chaos::Host::Dix, |host| host.1);
    PossibleValuesParser::new(chaos::Host::ALL.iter().map(|host| host.0)).map(of)
}

fn main() -> ExitCode {
    let matches = program::matches(CommandLine::command());
    let line = CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    program::exit(line.perform().map(|()| ExitCode::SUCCESS))
}

impl CommandLine {
    fn perform(&self) -> Result<()> {
        match &self.action {
            Action::List => output::print(&listing()),
            Action::Check { files } => check(files),
            Action::Run { names, out, quick, trials, exact, again } => {
                let run = if *exact { bench::run_exact } else { bench::run };
                let trials = trials.unwrap_or(if *exact { 1 } else { bench::USUAL_TRIALS });
                let options = bench::BenchOptions {
                    names: names.clone(),
                    out: out.clone(),
                    quick: *quick,
                    trials,
                    again: *again,
                    module: Some(module_file::find(None)?),
                };
                run(experiments::all(), &options)
            }
            Action::Packaging(packaging) => packaging.perform(CommandLine::command(), "xqos-bench"),
            Action::Chaos { seconds, operations, seed, host, verbose } => {
                let counts = chaos::run(&chaos::ChaosOptions {
                    host: *host,
                    seed: *seed,
                    seconds: *seconds,
                    operations: *operations,
                    module: module_file::find(None)?,
                    is_verbose: *verbose,
                })?;
                output::line(&counts.text())
            }
            Action::Fleet { folder, sessions, json } => {
                let summary = fleet::make(folder, *sessions)?;
                if *json { output::json(&summary) } else { output::print(&summary.text()) }
            }
            Action::Act { role } => actor::perform(role),
            Action::Report { folder, page } => bench::report(&experiments::all(), folder, page.as_deref()),
            Action::Publish { folder, out } => bench::publish(&experiments::all(), folder, out),
            Action::Table { folder, into } => bench::table(&experiments::all(), folder, into),
            Action::Compare { a, b, json } => {
                let comparison = bench::compare(&experiments::all(), a, b)?;
                if *json { output::json(&comparison) } else { output::print(&comparison.text()) }
            }
        }
    }
}

/// Checks all files before failing, so that one run lists every mistake.
fn check(files: &[PathBuf]) -> Result<()> {
    let mistakes: Vec<_> = files.iter().filter_map(|file| bench::Experiment::read(file).err()).collect();
    match mistakes.as_slice() {
        [] => Ok(()),
        [one] => bail!("{one:#}"),
        several => {
            several.iter().for_each(|mistake| eprintln!("{mistake:#}"));
            bail!("{} of {} files have mistakes: correct them as the lines above say", several.len(), files.len())
        }
    }
}

fn listing() -> String {
    let experiments = experiments::all();
    let width = experiments.iter().map(|one| one.name.len()).max().unwrap_or(0);
    let line = |one: &bench::Experiment| {
        let [quick, full] = [true, false].map(|quick| time(one.estimate_s(quick, bench::USUAL_TRIALS) as u32));
        let exact = if one.is_exact() { "exact" } else { "" };
        format!("{:<width$}  {quick:>7}  {full:>7}  {exact:<5}  {}\n", one.name, one.about())
    };
    let head = format!("{:<width$}  {:>7}  {:>7}\n", "", "--quick", "full");
    experiments.iter().fold(head, |text, one| text + &line(one))
}

fn time(seconds: u32) -> String {
    if seconds < 90 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

#[cfg(test)]
#[allow(dead_code, reason = "each program's tests use some of the checks")]
#[path = "../../../ground/cli/tests/support/checks.rs"]
mod checks;

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
        assert_eq!(checks::check_listing("xqos-bench", &CommandLine::command()), Ok(()));
    }

    #[test]
    fn help_fits_a_terminal() {
        assert!(EXAMPLES.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn every_command_in_documents_and_help_parses() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let parse = |words| CommandLine::try_parse_from(words).map(drop);
        assert_eq!(checks::faults(&root, &CommandLine::command(), parse), [""; 0]);
    }
}
