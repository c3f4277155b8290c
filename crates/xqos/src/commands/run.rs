// SPDX-License-Identifier: MIT
//! `xqos run`: starts a program and reserves server time for its own X connections.

use crate::kind::Kind;
use anyhow::Result;
use clap::{ArgGroup, Args};
use std::ffi::OsString;
use std::process::ExitCode;
use xqos_agent::amount::Amount;
use xqos_agent::run::{Wish, run};
use xqos_text::quantity::Weight;

/// Starts a program with a reservation, a weight or processor time
///
/// Each X connection of the program gets these settings as soon as it is made, even if the program is started through a
/// shell, env, nice or a launcher that forks and exits. Programs that it starts itself get nothing: a reservation for a
/// panel or a terminal is not meant for everything that is opened from it. All settings end with the connections.
///
/// With --reserve auto, xqos measures the program: a connection with a steady rhythm, such as that of a video player,
/// gets what it needs, and its reservation follows later changes.
///
/// If a reservation is refused because too much is reserved already, the connection is served like any other. The
/// program keeps running unless --strict is given.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(mut_args(|arg| if ["hard", "soft"].contains(&arg.get_id().as_str()) { arg.requires("reserve") } else { arg }))]
#[command(group = ArgGroup::new("wish").args(["reserve", "weight", "cpu"]).required(true).multiple(true))]
pub struct Arguments {
    /// Server time and period, such as 3ms/10ms; auto measures the need
    #[arg(long, value_name = "BUDGET/PERIOD|auto")]
    reserve: Option<Amount>,
    #[command(flatten)]
    kind: Kind,
    /// Share of server time relative to other clients, 0.01 to 100; 1 is the default (policy fair)
    #[arg(long, value_name = "W")]
    weight: Option<Weight>,
    /// Processor time and period for the program's main thread, such as 2ms/10ms; with --reserve auto, auto measures
    /// the need (SCHED_DEADLINE; other threads get nice value -15; needs CAP_SYS_NICE)
    #[arg(long, value_name = "BUDGET/PERIOD|auto")]
    cpu: Option<Amount>,
    /// Stop the program if its reservation is refused, instead of running it without one
    #[arg(long, requires = "reserve")]
    strict: bool,
    /// Print nothing on success
    #[arg(long, short)]
    quiet: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  xqos run --reserve 3ms/10ms -- mpv film.mkv
  xqos run --reserve auto -- mpv film.mkv
  xqos run --reserve 2ms/8ms --hard -- sh -c 'cd game && ./start'
  xqos run --weight 0.5 --quiet -- firefox
  sudo -E xqos run --reserve 3ms/10ms --cpu 2ms/10ms -- ./player
  sudo -E xqos run --reserve auto --cpu auto -- ./player

Times need a unit: us, ms or s. To undo it while the program runs, use
xqos release --pid N or xqos weight --pid N 1.

Exit status: that of the program, or 128 + n if signal n ended it; 1 if it could
not be started, or was refused with --strict. INT, TERM and HUP are passed on to
it.";

impl Arguments {
    pub fn perform(&self, display: Option<&str>) -> Result<ExitCode> {
        let wish = Wish {
            reserve: self.reserve,
            kind: self.kind.get(),
            weight: self.weight,
            cpu: self.cpu,
            is_strict: self.strict,
            is_quiet: self.quiet,
            program: self.program.clone(),
        };
        Ok(run(display, &wish)?.into())
    }
}
