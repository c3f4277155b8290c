// SPDX-License-Identifier: MIT
//! xqos-bench: runs the experiments of `xqos_lab::bench`. `xqos bench` starts this program.

#![forbid(unsafe_code)]

use anyhow::{Result, bail};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use xqos_cli::program::{self, Packaging};
use xqos_cli::{module_file, output};
use xqos_lab::{actor, bench, chaos, experiments, fleet};

/// Runs the experiments that compare servers with and without xqos
///
/// Each experiment starts X servers of its own, and loads and measuring clients beside them; nothing of your session is
/// touched. Keep the machine otherwise idle: every number is a median of trials, with and without xqos in turn. What
/// else the machine did meanwhile is kept with the results, and a run that was disturbed is called noisy.
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
  xqos bench report out/bench -o report.html
  xqos bench compare out/before out/bench
  xqos bench fleet --sessions 100 out/fleet
  xqos bench chaos --seconds 600 --seed 7 --host libc";

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the experiments, and about how long each takes
    List,
    /// Says whether files of experiments make sense
    ///
    /// Nothing is measured. A mistake is one line: file, line, and what to write instead; the exit status is 1.
    Check {
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Runs experiments and writes their report
    ///
    /// Each result is kept as soon as it is there. A run that was interrupted (^C ends all servers and clients that it
    /// has started; exit status 130) goes on when it is started again with the same command: what is there already, of
    /// the same X server, module, --quick and --trials, is not measured again. An experiment that needs a program which
    /// is not installed is skipped; the others are run, and the exit status is 1.
    Run {
        /// Experiments of `xqos bench list`, files that you wrote (FILE.toml), or all
        #[arg(required = true, value_name = "NAME|FILE|all")]
        names: Vec<String>,
        /// The folder for results and report
        #[arg(long, alias = "output", value_name = "DIR", default_value = "out/bench")]
        out: PathBuf,
        /// Shorter runs: enough to see that everything works, not for numbers to publish
        #[arg(long)]
        quick: bool,
        /// How often each number is measured; the median is taken
        #[arg(long, alias = "pairs", value_name = "N", default_value_t = bench::USUAL_TRIALS,
            value_parser = clap::value_parser!(u32).range(1..))]
        trials: u32,
        /// Measures everything anew
        #[arg(long)]
        again: bool,
    },
    /// Writes the report of earlier results again
    Report {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// One page that needs nothing beside it [default: index.html in DIR]
        #[arg(short = 'o', long = "output", value_name = "FILE")]
        page: Option<PathBuf>,
    },
    /// Writes the part of earlier results that is published
    ///
    /// OUT/data/NAME.json holds tables, verdicts and charts of each experiment, without the samples of each turn that DIR
    /// has; OUT/report.html shows all that is in OUT/data. `report` and `compare` read OUT/data as they
    /// read DIR.
    Publish {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[arg(value_name = "OUT")]
        out: PathBuf,
    },
    /// Writes the tables of documents from results
    ///
    /// In each FILE what stands between `<!-- xqos bench table: WHAT -->` and `<!-- end of table -->` is made anew. WHAT is
    /// `headlines` (the README's), `goals` (all of them), `missed`, `verdicts of NAME`, or `NAME.KEY` (the table of an
    /// experiment that has this key). A FILE without any stays as it is. Without --into the headlines are printed.
    Table {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[arg(long, value_name = "FILE", num_args = 1..)]
        into: Vec<PathBuf>,
    },
    /// Compares two folders of results
    ///
    /// For each verdict that both have: the value in A and in B, their ratio, and what follows. B is better or worse
    /// only where the measurements of the two do not overlap; otherwise no difference is seen. The exit status does not
    /// depend on it.
    Compare {
        #[arg(value_name = "A")]
        a: PathBuf,
        #[arg(value_name = "B")]
        b: PathBuf,
        /// Writes JSON
        #[arg(long)]
        json: bool,
    },
    /// Simulates the sessions of a fleet: traces, captures, and the tables of all of them
    ///
    /// In DIR: traces/ and captures/ with a file for each session, and fleet.parquet with what `xqos trace export` and
    /// `xqos analyse --parquet` make of them. The number of a session is its seed, so every run makes the same files.
    /// Prints how many records and bytes there are, and how long the tables took.
    Fleet {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// How many
        #[arg(long, value_name = "N", default_value_t = 1000)]
        sessions: u32,
        /// Writes JSON
        #[arg(long)]
        json: bool,
    },
    /// Does random things to a server with xqos in it, and checks all along what has to hold
    ///
    /// Programs are started, stopped, continued and killed; reservations, weights, groups, policies, rules, traces and pacing
    /// are set; garbage goes to the X socket, to the extension and to the control socket; the server is reset. The server
    /// must answer, its sums must add up, and after each reset no thread is raised, and memory and descriptors are as
    /// before. A failure names its seed; the exit status is 1.
    Chaos {
        /// For how long
        #[arg(long, value_name = "N", default_value_t = 60)]
        seconds: u64,
        /// At most so many operations
        #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
        operations: u64,
        /// What the operations are drawn from
        #[arg(long, value_name = "S", default_value_t = 1)]
        seed: u64,
        /// How xqos is in the server: by its own functions, or by its calls of libc
        #[arg(long, value_name = "dix|libc", default_value = "dix", value_parser = ["dix", "libc"])]
        host: String,
        /// Prints each operation
        #[arg(long, short)]
        verbose: bool,
    },
    /// Plays a part in an experiment, which starts it
    #[command(hide = true)]
    Act { role: String },
    #[command(flatten)]
    Packaging(Packaging),
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
            Action::Run { names, out, quick, trials, again } => bench::run(
                experiments::all(),
                &bench::Options {
                    names: names.clone(),
                    out: out.clone(),
                    quick: *quick,
                    trials: *trials,
                    again: *again,
                    module: Some(module_file::find(None)?),
                },
            ),
            Action::Packaging(packaging) => packaging.perform(CommandLine::command(), "xqos-bench"),
            Action::Chaos { seconds, operations, seed, host, verbose } => {
                let stood = chaos::run(&chaos::Options {
                    host: chaos::Host::from_name(host).unwrap_or(chaos::Host::Dix),
                    seed: *seed,
                    seconds: *seconds,
                    operations: *operations,
                    module: module_file::find(None)?,
                    is_told: *verbose,
                })?;
                output::line(&stood.text())
            }
            Action::Fleet { folder, sessions, json } => {
                let made = fleet::make(folder, *sessions)?;
                if *json { output::json(&made) } else { output::print(&made.text()) }
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
            bail!("{} of {} files have a mistake each", several.len(), files.len())
        }
    }
}

fn listing() -> String {
    let experiments = experiments::all();
    let width = experiments.iter().map(|one| one.name.len()).max().unwrap_or(0);
    let line = |one: &bench::Experiment| {
        let [quick, full] = [true, false].map(|quick| time(one.estimate_s(quick, bench::USUAL_TRIALS) as u32));
        format!("{:<width$}  {quick:>7}  {full:>7}  {}\n", one.name, one.about)
    };
    let head = format!("{:<width$}  {:>7}  {:>7}\n", "", "--quick", "full");
    experiments.iter().fold(head, |text, one| text + &line(one))
}

fn time(seconds: u32) -> String {
    if seconds < 90 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use xqos_cli::{documents, sibling};

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
        assert_eq!(sibling::check_listing("xqos-bench", &CommandLine::command()), Ok(()));
    }

    #[test]
    fn help_fits_a_terminal() {
        assert!(EXAMPLES.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn every_command_in_documents_and_help_parses() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let parse = |words| CommandLine::try_parse_from(words).map(drop);
        assert_eq!(documents::faults(&root, &CommandLine::command(), parse), [""; 0]);
    }
}
