//! `xqos bench`: the experiments of `xqos_lab::bench`.

use crate::{module_file, output};
use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use xqos_lab::bench;

/// Runs the experiments that compare servers with and without xqos
///
/// Each experiment starts X servers of its own, and loads and measuring clients beside them; nothing of your session is
/// touched. Keep the machine otherwise idle: every number is a median of pairs, one with and one without xqos.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  xqos bench list
  xqos bench run all --quick
  xqos bench run all --output out/bench
  xqos bench report out/bench";

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists the experiments
    List,
    /// Runs experiments and writes their report
    Run {
        /// Experiments of `xqos bench list`, or all
        #[arg(required = true, value_name = "NAME|all")]
        names: Vec<String>,
        /// The folder for results and report
        #[arg(long, value_name = "DIR", default_value = "out/bench")]
        output: PathBuf,
        /// Shorter runs: enough to see that everything works, not for numbers to publish
        #[arg(long)]
        quick: bool,
        /// Runs with and without xqos, for each number
        #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
        pairs: u32,
    },
    /// Writes the report of earlier results again
    Report {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

impl Arguments {
    pub fn perform(&self) -> Result<()> {
        match &self.action {
            Action::List => output::print(&listing()),
            Action::Run { names, output, quick, pairs } => bench::run(&bench::Options {
                names: names.clone(),
                output: output.clone(),
                quick: *quick,
                pairs: *pairs,
                module: Some(module_file::find(None)?),
            }),
            Action::Report { folder } => bench::report(folder),
        }
    }
}

fn listing() -> String {
    let experiments = bench::list();
    let width = experiments.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    experiments.iter().fold(String::new(), |text, (name, about)| text + &format!("{name:<width$}  {about}\n"))
}
