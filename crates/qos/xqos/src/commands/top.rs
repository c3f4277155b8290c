// SPDX-License-Identifier: MIT
//! `xqos top`: shows live which clients use the server.
//!
//! [`xqos_agent::sample`] combines the server's own figures and a trace of level `slices` into a sample, which the
//! screen and the JSON show.

mod screen;
mod settings;

use anyhow::Result;
use clap::Args;
use std::io::IsTerminal;
use std::time::Duration;
use xqos_agent::attach::{Attached, AttachedServer};
use xqos_agent::sample::{Sampler, fields_help};
use xqos_cli::output;
use xqos_text::quantity::{Micros, within};

/// Shows live which clients use the server: share, response times, waits, grabs and reservations
///
/// Works with every policy, including stock. It adds no cost to requests.
#[derive(Args, Debug)]
#[command(after_help = help())]
pub struct Arguments {
    /// Print the figures since each client connected, once
    #[arg(long)]
    once: bool,
    /// Print JSON: one object per line and sample
    #[arg(long)]
    json: bool,
    /// Time between samples
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Micros,
    /// Watch a server without xqos until ^C, through the kernel's trace of its system calls; root only. Connections
    /// that close meanwhile are summed up by program, if the program is known
    #[arg(long, value_name = "PID|:N", num_args = 0..=1, default_missing_value = "")]
    attach: Option<String>,
    /// Discard the saved settings of the screen
    #[arg(long, conflicts_with_all = ["once", "json", "attach"])]
    reset: bool,
}

const EXAMPLES: &str = "\
Examples:
  xqos top
  xqos top --once
  xqos top --json | jq -c '.clients[0]'
  xqos top --reset
  sudo xqos top --attach :0

Settings of the screen are kept in ~/.config/xqos/top.toml (or below
XDG_CONFIG_HOME): columns, sort, reverse, group and waits.

(last): since the last sample, or with --once since the client connected;
(ever): always since it connected.";

fn help() -> String {
    format!("{EXAMPLES}\n\nKeys:\n{}\n\n{}", screen::keys_help(80).join("\n"), fields_help())
}

pub fn interval(text: &str) -> Result<Micros, String> {
    within(text, 100_000..=3_600_000_000)
}

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<()> {
        let every = self.interval.duration();
        if let Some(word) = &self.attach {
            return self.watch(AttachedServer::find(word, display)?, every);
        }
        if self.once {
            let sample = Sampler::once(display)?;
            return if self.json {
                output::line(&serde_json::to_string(&sample)?)
            } else {
                output::print(&screen::text(&sample))
            };
        }
        if self.json {
            return stream(display, every);
        }
        let file = settings::SettingsFile::of_user();
        if self.reset {
            file.reset()?;
        }
        screen::run(display, every, file)
    }

    /// Prints a table for each interval; on a terminal, each table replaces the previous one.
    fn watch(&self, target: AttachedServer, every: Duration) -> Result<()> {
        const CLEAR: &str = "\x1b[H\x1b[J";
        let mut attached = Attached::new(target)?;
        while let Some(sample) = attached.watch(every)? {
            let text = match self.json {
                true => serde_json::to_string(&sample)? + "\n",
                false if std::io::stdout().is_terminal() => format!("{CLEAR}{}", sample.text(output::width())),
                false => sample.text(output::width()) + "\n",
            };
            if !output::try_print(&text)? || self.once {
                break;
            }
        }
        Ok(())
    }
}

/// Prints a line for each sample until the reader closes the pipe.
fn stream(display: Option<&str>, every: Duration) -> Result<()> {
    let mut sampler = Sampler::open(display)?;
    loop {
        sampler.wait(every);
        let sample = match sampler.sample() {
            Err(error) if error.is_late() => {
                output::note(&error.in_one_line());
                continue;
            }
            sample => sample?,
        };
        if !output::try_print(&format!("{}\n", serde_json::to_string(&sample)?))? {
            return Ok(());
        }
    }
}
